"""Rows per second as people want to see it: over the last few seconds. PURE."""

from __future__ import annotations

from collections import deque
from typing import Final

RATE_WINDOW_MS: Final = 5_000


class RateWindow:
    """Running totals with the times at which they were reached; the caller gives the time."""

    def __init__(self, window_ms: int = RATE_WINDOW_MS) -> None:
        self._window_ns = window_ms * 1_000_000
        self._counts: deque[tuple[int, int]] = deque()

    def add(self, rows: int, now_ns: int) -> None:
        """Note the running total `rows`, which never falls."""
        assert not self._counts or rows >= self._counts[-1][1], (rows, self._counts[-1])
        self._counts.append((now_ns, rows))
        # One older than the window stays: the rate is measured from it.
        while len(self._counts) > 2 and self._counts[1][0] <= now_ns - self._window_ns:
            self._counts.popleft()

    def rows_per_second(self) -> float:
        if len(self._counts) < 2:
            return 0.0
        (from_ns, before), (to_ns, after) = self._counts[0], self._counts[-1]
        return (after - before) * 1e9 / (to_ns - from_ns) if to_ns > from_ns else 0.0
