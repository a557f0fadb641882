"""The order in which clients have their turns on the listener's loop.

Turns differ: planning a statement takes ten times as long as reading a row by a prepared one. In
the order in which they were asked for, a read beside thirty clients that plan waits for all of
them. So each turn is due STRETCH times as long after it was asked for as its client's turns have
taken of late, and the one that is due first comes first. Who needs little waits for little, and
nobody is overtaken for longer than STRETCH times what he needs himself.

After ROUND_S of turns the loop looks at its sockets: whoever has come meanwhile is among the next.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from time import monotonic, thread_time
from typing import Final

STRETCH: Final = 64.0
ROUND_S: Final = 0.0005
WEIGHT: Final = 0.25
"""Of the last turn, in what a client's turns take."""


class LoopTurn:
    """The turns of one client: `take` is one, `mean_s` what they take of the processor."""

    __slots__ = ("mean_s", "take")

    def __init__(self, take: Callable[[], object]) -> None:
        self.take = take
        self.mean_s = 0.0


class LoopTurns:
    """The turns that wait. All methods are called on the loop's thread."""

    def __init__(
        self,
        call_soon: Callable[[Callable[[], None]], object],
        end_round: Callable[[], None],
        now_s: Callable[[], float] = monotonic,
        used_s: Callable[[], float] = thread_time,
    ) -> None:
        """Begin with none. `call_soon` makes the loop call, behind a look at its sockets;
        `end_round` is called behind the turns of a round. `used_s` counts this thread's seconds of
        the processor: those that others take meanwhile are nobody's here."""
        self._call_soon = call_soon
        self._end_round = end_round
        self._now_s = now_s
        self._used_s = used_s
        self._waiting: list[tuple[float, int, LoopTurn]] = []
        self._asked = 0
        self._is_scheduled = False

    def ask(self, turn: LoopTurn) -> None:
        """Give a client its turn, which it does not wait for already, as soon as it is the next."""
        self._asked += 1  # who is due at the same time comes in the order of asking
        due_s = self._now_s() + STRETCH * turn.mean_s
        heappush(self._waiting, (due_s, self._asked, turn))
        self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._call_soon(self._serve_round)

    def _serve_round(self) -> None:
        self._is_scheduled = False
        begun_s = last_s = self._used_s()
        try:
            while self._waiting and last_s - begun_s < ROUND_S:
                turn = heappop(self._waiting)[2]
                turn.take()
                used_s = self._used_s()
                turn.mean_s += WEIGHT * (used_s - last_s - turn.mean_s)
                last_s = used_s
        finally:  # a defect in one client's turn leaves the others theirs
            if self._waiting:
                self._schedule()
            self._end_round()
