"""Turns at computing, so that statements which compute for long leave a node's processors to all
others.

All sessions of a node, its listener and the thread that applies the log share one interpreter, and
the interpreter's lock knows no order: with thirty threads that compute each one that only wants it
for a moment waits for all of them, again and again. So a statement computes at once for FREE_S,
which is more than most ever need; statements that follow each other closely share this. After that
it computes in turns of SLICE_S, of which `at_once` are given at the same time, in the order in
which they were asked for.

A turn ends by the clock. Whoever has one and waits for something else meanwhile (its client, the
master) need not give it back: nobody is held up for longer than the rest of it.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable
from threading import Event, Lock
from time import monotonic
from typing import Final

FREE_S: Final = 0.01
SLICE_S: Final = 0.02
RESTED_S: Final = 0.05
"""A session that was not found computing for so long has all of FREE_S again."""
PATIENCE_S: Final = 0.05
"""How long one who waits for a turn does not look whether its statement has been cancelled."""
AT_ONCE_MAX: Final = 4
"""Most turns at the same time that are given without being told: beyond, they wait for each other
at the interpreter's lock, and all others with them."""


def default_at_once() -> int:
    """Return how many may compute at the same time: one processor is left for everybody else."""
    processors = len(os.sched_getaffinity(0))
    return max(1, min(processors - 1, AT_ONCE_MAX))


class Turn:
    """The right of one session to compute, until `until_s`. Used by one thread at a time."""

    __slots__ = ("began_s", "called", "seen_s", "until_s")

    def __init__(self) -> None:
        self.began_s = 0.0  # its statement
        self.seen_s = 0.0  # when it was last found computing
        self.until_s = 0.0
        self.called = Event()


class ComputingTurns:
    """The turns of one node's sessions. All methods may be called from any thread."""

    def __init__(self, at_once: int, now_s: Callable[[], float] = monotonic) -> None:
        """Give at most `at_once` turns at the same time; may be set later."""
        self.at_once = at_once
        self._now_s = now_s
        self._lock = Lock()
        self._computing: list[Turn] = []
        # In order, and found in a moment however many they are: whoever waits asks again and again,
        # each time under the lock. (The first of a dict is found behind all that were removed.)
        self._waiting: OrderedDict[Turn, None] = OrderedDict()

    @property
    def waiting(self) -> int:
        """Return how many statements wait for a turn."""
        return len(self._waiting)

    def has_computed(self, turn: Turn) -> bool:
        """Return whether the session of `turn` has computed so much just before that it goes on in
        turns."""
        return turn.until_s <= turn.seen_s and self._now_s() - turn.seen_s <= RESTED_S

    def begin(self, turn: Turn) -> None:
        """Let a statement begin: it computes at once for what is left of FREE_S."""
        now_s = turn.began_s = self._now_s()
        has_rested = now_s - turn.seen_s > RESTED_S
        turn.until_s = now_s + (FREE_S if has_rested else max(turn.until_s - turn.seen_s, 0.0))

    def end(self, turn: Turn) -> None:
        """Give the rest of a turn back: the statement has ended."""
        if turn.seen_s < turn.began_s:  # as most: it was not found computing
            return
        turn.seen_s = self._now_s()
        if turn in self._computing:
            with self._lock:
                if turn in self._computing:
                    self._computing.remove(turn)
                turn.until_s = 0.0
                self._call_next()

    def look(self, turn: Turn, stopped: Callable[[], bool]) -> None:
        """Go on computing: at once while the turn lasts, else when the next one is given. Returns
        without one when `stopped`; called every now and then by what computes."""
        now_s = turn.seen_s = self._now_s()
        if now_s < turn.until_s:
            return
        left_s = self.ask(turn, now_s)
        while left_s > 0.0:
            turn.called.wait(min(left_s, PATIENCE_S))
            if stopped():
                self.leave(turn)
                return
            left_s = self.ask(turn, self._now_s())

    def ask(self, turn: Turn, now_s: float) -> float:
        """Give `turn` the next slice if it is its turn, and return 0; else keep its place in the
        queue, and return after how many seconds it is to ask again (or once it is called)."""
        with self._lock:
            self._computing = [t for t in self._computing if t is not turn and now_s < t.until_s]
            free = len(self._computing) < self.at_once
            first = next(iter(self._waiting), turn)
            if free and first is turn:
                self._waiting.pop(turn, None)
                turn.until_s = now_s + SLICE_S
                self._computing.append(turn)
                self._call_next()
                return 0.0
            turn.called.clear()
            self._waiting.setdefault(turn)
            if free:  # it is another one's turn, who may have gone to sleep before
                first.called.set()
                return PATIENCE_S
            if first is not turn:
                return PATIENCE_S
            return max(min(t.until_s for t in self._computing) - now_s, 1e-4)

    def leave(self, turn: Turn) -> None:
        """Take `turn` out of the queue."""
        with self._lock:
            if turn in self._waiting:
                del self._waiting[turn]
                self._call_next()

    def _call_next(self) -> None:
        """Wake the first in the queue: it looks when a turn is over. Under _lock."""
        first = next(iter(self._waiting), None)
        if first is not None:
            first.called.set()
