"""The one statement of a session that runs now: how it is ended before its end, and what it does
not do where it must not block."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final, TypeVar

from leasehold.adapters.os.clock import unix_us
from leasehold.adapters.os.computing_turns import ComputingTurns, Turn
from leasehold.adapters.sqlite.query import Limits
from leasehold.adapters.sqlite.short_statements import LOOKS_MAX, is_brief
from leasehold.model.budget import UNBOUNDED_BYTES, Budget, spending
from leasehold.model.errors import QueryCanceled, RequestTooLarge
from leasehold.pgwire.session import WouldBlock
from leasehold.pgwire.wire_errors import Canceled
from leasehold.replica.sql_reads import Seen
from leasehold.sql.planning.plan import Prepared

T = TypeVar("T")
BOUNDED_ROWS_MAX: Final = 50
NON_BLOCKING_CHARACTERS_MAX: Final = 512
"""Longer texts take their time to be read."""
PLAN_LOOKS_MAX: Final = 3
"""A plan that takes more looks at its budget, each after some millisecond, is made elsewhere."""


class Running:
    """The one statement of a session that runs, and whether it may block (`non_blocking`).

    All is called by the session's thread, except `cancel`, which any thread may call.
    """

    def __init__(self, computing: ComputingTurns) -> None:
        """Let nothing run yet. `computing`: how the node's sessions share its processors."""
        self._computing, self._turn = computing, Turn()
        self._lock = threading.Lock()
        self._runs = False
        self._cancelled: Exception | None = None
        self._deadline_s: float | None = None
        self._limits = Limits(stop=self._stopped_in_turn)
        self._bounded_limits = Limits(rows_max=BOUNDED_ROWS_MAX, stop=self._has_looked)
        self._looks = 0
        self._plan_looks = 0  # of the plan that was made last
        self.non_blocking = False
        self.text, self.began_us = "", 0

    @property
    def limits(self) -> Limits:
        return self._bounded_limits if self.non_blocking else self._limits

    # ------------------------------------------------------------ where it must not block

    def check_may_block(self) -> None:
        """Raise WouldBlock, before what waits or takes long, where that is not allowed."""
        if self.non_blocking:
            raise WouldBlock

    @property
    def has_computed(self) -> bool:
        """Whether the session was found computing just before: its texts are not read where others
        wait for the same thread."""
        return self._computing.has_computed(self._turn)

    def planning(self, text: str) -> AbstractContextManager[Budget]:
        """Return the block in which a plan is made of a statement: it ends with its time limit or a
        cancel, and by turns if the session has computed just before. Where it must not block it
        ends soon, or with WouldBlock, and begins with that if the plan before was a long one."""
        if not self.non_blocking:
            self._computing.look(self._turn, self.stopped)
        elif len(text) > NON_BLOCKING_CHARACTERS_MAX or self._plan_looks > PLAN_LOOKS_MAX:
            raise WouldBlock
        self._plan_looks = 0
        return spending(Budget(UNBOUNDED_BYTES, look=self._look_at_plan))

    def _look_at_plan(self) -> None:
        self._plan_looks += 1
        if self.non_blocking:
            if self._plan_looks > PLAN_LOOKS_MAX:
                raise WouldBlock
        elif self._stopped_in_turn():
            why = self.why_stopped()
            if why is not None:
                raise why

    def run_in_time(self, snapshot: Seen, plan: Prepared, work: Callable[[], T]) -> T:
        """Return what `work` does, which runs the plan, and is undone when it does not return.

        Raises WouldBlock where it must not block and does not surely end soon, or has not.
        """
        if not self.non_blocking:
            return work()
        if not is_brief(snapshot.connection, plan):
            raise WouldBlock
        self._looks = 0
        try:
            return work()
        except (QueryCanceled, RequestTooLarge):
            raise WouldBlock from None

    def _stopped_in_turn(self) -> bool:
        """Wait for the next turn at computing where one is wanted, and return whether to stop."""
        self._computing.look(self._turn, self.stopped)
        return self.stopped()

    def _has_looked(self) -> bool:
        self._looks += 1
        return self._looks > LOOKS_MAX

    # ------------------------------------------------------------ one statement

    @property
    def runs(self) -> bool:
        return self._runs

    def show_activity(self, text: str) -> None:
        """Keep what is done now, for those who look at the session."""
        self.text, self.began_us = text, unix_us()

    def begin(self, limit_s: float, text: str = "") -> None:
        """Let a statement begin, of which `text` is shown to those who look at the session.
        `limit_s` is its time limit in seconds; 0: none."""
        self.show_activity(text)
        self._deadline_s = time.monotonic() + limit_s if limit_s else None
        self._computing.begin(self._turn)
        with self._lock:
            self._runs, self._cancelled = True, None

    def end(self) -> None:
        self._computing.end(self._turn)
        with self._lock:
            self._runs = False

    def cancel(self, reason: Exception) -> None:
        """End what runs now, never the next one, with `reason`."""
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
