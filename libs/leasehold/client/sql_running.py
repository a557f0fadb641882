"""The one statement of a session that runs now: how it is ended before its end."""

from __future__ import annotations

import threading
import time

from leasehold.adapters.sqlite_query import Limits
from leasehold.pgwire.wire_errors import Canceled


class Running:
    """`begin`, `end` and whoever looks: by the session's thread; `cancel` by any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs = False
        self._cancelled: Exception | None = None
        self._deadline_s: float | None = None
        self.limits = Limits(stop=self.stopped)

    def begin(self, limit_s: float) -> None:
        """`limit_s` 0: it has no time limit."""
        self._deadline_s = time.monotonic() + limit_s if limit_s else None
        with self._lock:
            self._runs, self._cancelled = True, None

    def end(self) -> None:
        with self._lock:
            self._runs = False

    def cancel(self, reason: Exception) -> None:
        """What runs now, never the next one."""
        with self._lock:
            if self._runs and self._cancelled is None:
                self._cancelled = reason

    def stopped(self) -> bool:
        return self._cancelled is not None or (
            self._deadline_s is not None and time.monotonic() > self._deadline_s
        )

    def why_stopped(self) -> Exception | None:
        if self._cancelled is not None:
            return self._cancelled
        if self.stopped():
            return Canceled("canceling statement due to statement timeout")
        return None
