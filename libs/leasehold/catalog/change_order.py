"""Keeps which of many things have changed, in the order of their last changes: for whoever follows
them without looking at all of them."""

from __future__ import annotations

from collections import deque
from itertools import takewhile
from typing import Final

GONE_TOLD_MAX: Final = 100_000
"""More than a node can forget in one turn: who follows hears of each that is gone."""


class ChangeOrder:
    """Ids in the order of their last changes. `count`: how many changes there have been."""

    def __init__(self) -> None:
        self.count = 0
        self._changed_at: dict[int, int] = {}  # of each id the last one, in that order
        self._gone: deque[int] = deque()  # those in there that are not there any more

    def copy(self) -> ChangeOrder:
        made = ChangeOrder()
        made.count = self.count
        made._changed_at = dict(self._changed_at)
        made._gone = deque(self._gone)
        return made

    def note(self, number: int) -> None:
        """Note that the one of this id has changed."""
        self.count += 1
        self._changed_at.pop(number, None)
        self._changed_at[number] = self.count

    def note_gone(self, number: int) -> None:
        """Note that the one of this id is not there any more. It is told of until many others have
        gone."""
        self.note(number)
        self._gone.append(number)
        if len(self._gone) > GONE_TOLD_MAX:
            self._changed_at.pop(self._gone.popleft(), None)

    def since(self, count: int) -> list[int]:
        """Return the ids that have changed since `count` was that number, also of what is not
        there any more, the last one first."""
        latest = reversed(self._changed_at.items())
        return [number for number, at in takewhile(lambda each: each[1] > count, latest)]
