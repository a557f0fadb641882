"""How long a fast way (`log.py`, `requests.py`) is left alone by who has left it."""

from __future__ import annotations

from leasehold.model.time_units import NS_PER_MS


class FaultPause:
    """`pause_ms`, doubled up to `pause_ms_max` for each fault that comes before the way was taken
    for `pause_ms_max`. Times are in ns of one clock."""

    def __init__(self, pause_ms: int, pause_ms_max: int) -> None:
        self._first_ns = pause_ms * NS_PER_MS
        self._most_ns = pause_ms_max * NS_PER_MS
        self._pause_ns = self._first_ns
        self._faulty = False  # once, at least
        self.until_ns = 0
        """Not to be taken before."""

    def fault(self, now_ns: int, since_ns: int) -> None:
        """`since_ns`: when the way was taken last."""
        lasted_ns = now_ns - max(since_ns, self.until_ns)
        again = self._faulty and lasted_ns < self._most_ns
        self._pause_ns = min(2 * self._pause_ns, self._most_ns) if again else self._first_ns
        self._faulty = True
        self.until_ns = now_ns + self._pause_ns

    def rest(self, now_ns: int) -> None:
        """Left without a fault, and not to be taken again at once."""
        self.until_ns = max(self.until_ns, now_ns + self._first_ns)
