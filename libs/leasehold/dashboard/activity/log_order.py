"""Sees that no record of the log is passed over. PURE.

Offsets of the log follow each other without a gap. Faust drops what it has fetched when its group
rebalances, and goes on behind it: then what is missing is read again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

PATIENCE_S: Final = 15.0
"""So long after it was asked for again what is missing may come: records that were fetched before
come first. What does not come is no longer there: the log is kept for nobody's counts."""


class LogOrder:
    """The next offset that is to be counted; None = whichever comes."""

    def __init__(self) -> None:
        self.next: int | None = None
        self.lost = 0
        """Records that were not there any more."""
        self._asked_s: float | None = None

    def follow(self, offsets: Sequence[int], now_s: float) -> tuple[int, int | None]:
        """Return how many of these records, in their order, may be counted, and the offset from
        which the log has to be read again (None: it has not). The others are to be dropped."""
        for number, offset in enumerate(offsets):
            if self.next is not None and offset > self.next:
                if self._asked_s is None:
                    self._asked_s = now_s
                    return number, self.next
                if now_s - self._asked_s < PATIENCE_S:
                    return number, None
                self.lost += offset - self.next
            if self.next is None or offset >= self.next:
                self.next = offset + 1
                self._asked_s = None
        return len(offsets), None
