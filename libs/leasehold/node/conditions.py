"""What an operator must know: said when it begins and when it ends, and not again and again."""

from __future__ import annotations

from typing import Final

from leasehold.model.time_units import NS_PER_S

EVERY_NS: Final = 60 * NS_PER_S
"""How often one condition is told at most: one that comes and goes is told with how often it has
come meanwhile."""


class Condition:
    """A condition that holds or not. `note` is to be called again and again; times are of one
    monotonic clock, in ns."""

    def __init__(self, begins: str, ends: str, *, after_ns: int = 0) -> None:
        """Begin with it not holding. `begins` and `ends`: the words for either, as sentences
        without a full stop. `after_ns`: how long it has to hold before it is told."""
        self._begins = begins
        self._ends = ends
        self._after_ns = after_ns
        self._since_ns: int | None = None
        self._told = False
        self._told_ns: int | None = None
        self._untold = 0  # how often it has come since, and was not told

    def note(self, now_ns: int, *, holds: bool, detail: str = "") -> str:
        """Take whether it holds now, and return what is to be said, "" for nothing. `detail`: what
        is known of it."""
        if not holds:
            return self._end(now_ns)
        if self._since_ns is None:
            self._since_ns = now_ns
            if self._is_too_soon(now_ns):
                self._untold += 1
        if self._told or now_ns - self._since_ns < self._after_ns or self._is_too_soon(now_ns):
            return ""
        self._told, self._told_ns = True, now_ns
        times, self._untold = self._untold, 0
        words = f"{self._begins}: {detail}" if detail else self._begins
        return f"{words} (it had come {times} times more since it was told)" if times else words

    def _is_too_soon(self, now_ns: int) -> bool:
        return self._told_ns is not None and now_ns - self._told_ns < EVERY_NS

    def _end(self, now_ns: int) -> str:
        since_ns, self._since_ns = self._since_ns, None
        if not self._told:
            return ""
        self._told = False
        assert since_ns is not None, "what is told holds"
        return f"{self._ends}, after {(now_ns - since_ns) / NS_PER_S:.1f} s"
