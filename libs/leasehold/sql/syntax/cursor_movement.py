"""The position of a cursor among its rows, and which of them FETCH and MOVE go over, as PostgreSQL
has it: before the first row, on one, or behind the last.

Rows are numbered from 1. What is not said is how many there are: whoever has them is asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, Protocol

from leasehold.model.errors import Refused

ALL: Final = None
"""In the place of a number of rows."""


class CursorSensitivity(Refused):
    """Backward with a cursor that goes forward only (NO SCROLL), or with one that has failed."""

    sqlstate = "55000"


class Direction(Enum):
    FORWARD = "forward"
    BACKWARD = "backward"
    ABSOLUTE = "absolute"
    RELATIVE = "relative"


class Movement(NamedTuple):
    """What FETCH and MOVE say. `number` None: ALL."""

    direction: Direction
    number: int | None

    @property
    def plain(self) -> Movement:
        """The same with a number that is not negative, where that turns the direction."""
        if self.number is None or self.number >= 0:
            return self
        match self.direction:
            case Direction.FORWARD:
                return Movement(Direction.BACKWARD, -self.number)
            case Direction.BACKWARD:
                return Movement(Direction.FORWARD, -self.number)
        return self


class Reached(Protocol):
    """The rows of a cursor, for whoever has them."""

    def reach(self, number: int | None) -> int:
        """How many there are, as far as row `number` (None: all of them). Raises what computing
        these rows raises."""
        ...


@dataclass(slots=True)
class CursorWalk:
    """The position of a cursor. `at` is the row it stands on; 0 before the first one, and behind
    the last one if `ended`, when `at` is one more than there are."""

    scrolls: bool
    at: int = 0
    ended: bool = False

    def fetch(self, movement: Movement, rows: Reached) -> range:
        """The rows that FETCH gives, in their order. Raises CursorSensitivity, what `reach` raises;
        the cursor can't be used any more then."""
        direction, count = movement.plain
        match direction:
            case Direction.ABSOLUTE:
                assert count is not None
                return self._absolute(count, rows)
            case Direction.RELATIVE:
                assert count is not None
                return self._relative(count, rows)
        if count == 0:
            return self._again(rows)
        return self._run(direction is Direction.FORWARD, count, rows)

    def move(self, movement: Movement, rows: Reached) -> int:
        """Likewise; how many rows MOVE counts."""
        direction, count = movement.plain
        if count == 0 and direction is not Direction.ABSOLUTE:
            return int(self.at > 0 and not self.ended)
        if direction is Direction.BACKWARD and count is ALL:
            passed = self.at - 1 if self.at else 0
            self._rewind()
            return passed
        return len(self.fetch(movement, rows))

    # ------------------------------------------------------------ what these are made of

    def _run(self, forward: bool, count: int | None, rows: Reached) -> range:
        return self._forward(count, rows) if forward else self._backward(count)

    def _forward(self, count: int | None, rows: Reached) -> range:
        if self.ended or count == 0:
            return range(0)
        first = self.at + 1
        there = rows.reach(None if count is ALL else self.at + count)
        last = there if count is ALL else min(there, self.at + count)
        self.ended = count is ALL or last < self.at + count
        self.at = last + 1 if self.ended else last
        return range(first, last + 1)

    def _backward(self, count: int | None) -> range:
        self._must_scroll()
        if self.at == 0 or count == 0:
            return range(0)
        first = self.at - 1
        last = 1 if count is ALL else max(self.at - count, 1)
        self.ended = False
        self.at = 0 if count is ALL or count > first else last
        return range(first, last - 1, -1)

    def _rewind(self) -> None:
        if self.at == 0:
            return
        self._must_scroll()
        self.at, self.ended = 0, False

    def _must_scroll(self) -> None:
        if not self.scrolls:
            raise CursorSensitivity(
                "cursor can only scan forward",
                hint="Declare it with SCROLL option to enable backward scan.",
            )

    def _again(self, rows: Reached) -> range:
        """The row it stands on once more."""
        if self.at == 0 or self.ended:
            return range(0)
        self._backward(1)
        return self._forward(1, rows)

    def _absolute(self, count: int, rows: Reached) -> range:
        if count < 0:
            self._forward(ALL, rows)
            if count < -1:
                self._backward(-count - 1)
            return self._backward(1)
        before = count - 1
        if count == 0 or before <= (self.at - 1 if self.ended else self.at) // 2:
            self._rewind()
            self._forward(max(before, 0), rows)
        elif count <= self.at:
            self._backward(self.at - before)
        else:
            self._forward(before - self.at, rows)
        return self._forward(1 if count else 0, rows)

    def _relative(self, count: int, rows: Reached) -> range:
        if count == 0:
            return self._again(rows)
        if count > 0:
            self._forward(count - 1, rows)
            return self._forward(1, rows)
        if count < -1:
            self._backward(-count - 1)
        return self._backward(1)
