"""A limit on how fast bytes are moved."""

from __future__ import annotations

import threading
from typing import Final

from leasehold.adapters.os.clock import boottime_ns

NS_PER_S: Final = 1_000_000_000


class Pace:
    """Keeps the bytes of all that share it below a rate; None: no limit. For one thread."""

    def __init__(self, bytes_per_s: float | None = None) -> None:
        self._bytes_per_s = bytes_per_s
        self._free_ns = 0
        self._pause = threading.Event()  # never set

    def spend(self, size_bytes: int) -> None:
        """Wait until that many bytes more have their turn."""
        if self._bytes_per_s is None:
            return
        now_ns = boottime_ns()
        begin_ns = max(self._free_ns, now_ns)
        self._free_ns = begin_ns + int(size_bytes * NS_PER_S / self._bytes_per_s)
        self._pause.wait((begin_ns - now_ns) / NS_PER_S)
