"""Which way a node's acknowledgement goes: told to the master's ear, or put on the topic `acks`.

That this incarnation has applied everything below an offset stays true once it is. So such an
acknowledgement may be lost, doubled, late and overtaken without harm (C1 takes the highest that was
heard), nobody needs it once the master has heard it, and a log that keeps it is not worth what a
broker takes for a record of its own. Everything else that nodes say goes by the topic: asks for
leases and their return, and with them the position again, every `renewal_ms`.

The fast way (`Tell`) is believed while it is seen to work, and never relied upon:

- until a master was seen to listen, in each epoch anew, acknowledgements go both ways;
- when nobody listened, or nobody said so in `answer_ms`, they go both ways again, and the fast
  one is tried less and less often: an outage costs one wait, not one per acknowledgement, and a
  Redis that is merely slow is not waited for by each;
- the last one of a row goes by the topic too, `patience_ms` later: a master whose connection died
  unnoticed hears that much later, and no more.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from leasehold.model.time_units import NS_PER_MS

NOT_TOLD: Final = 0


@dataclass(frozen=True, slots=True)
class FastAckSettings:
    """`answer_ms`: how long Redis may take to say that somebody listened; far more than it takes,
    and not much more than the topic does. `patience_ms`: how long an acknowledgement may rely on
    its word. After a failure the fast way is left alone for `pause_ms`, doubled each time, up to
    `pause_ms_max`."""

    on: bool = True
    answer_ms: int = 20
    patience_ms: int = 50
    pause_ms: int = 100
    pause_ms_max: int = 5_000


class FastAcks:
    """A node's side. Times are this host's CLOCK_BOOTTIME in ns."""

    def __init__(self, settings: FastAckSettings) -> None:
        self._settings = settings
        self._answer_ns = settings.answer_ms * NS_PER_MS
        self._patience_ns = settings.patience_ms * NS_PER_MS
        self._term = (0, b"")
        self._works = False
        self._try_ns = 0  # not before, unless it works
        self._pause_ms = 0
        self._number = NOT_TOLD
        self._unsure: deque[tuple[int, int]] = deque()  # (number, when) told, nothing known yet
        self._alone_ns = -1  # when the last was told that did not go by the topic too; -1: none
        self._owed = False  # one was told that nobody has heard

    def choose(self, epoch: int, incarnation: bytes, now_ns: int) -> tuple[int, bool]:
        """For an acknowledgement now, to the master of that epoch: the number to tell it under
        (NOT_TOLD: don't), and whether it goes on the topic."""
        if not self._settings.on or not epoch:
            return NOT_TOLD, True
        if self._term != (epoch, incarnation):
            self._term = (epoch, incarnation)
            self._works = False
            self._try_ns = now_ns
            self._pause_ms = 0
            self._unsure.clear()
        if not self._works and (now_ns < self._try_ns or self._unsure):
            return NOT_TOLD, True
        self._number += 1
        self._unsure.append((self._number, now_ns))
        if self._works:
            self._alone_ns = now_ns
        return self._number, not self._works

    def on_topic(self) -> None:
        """The position was put there: nothing rests on the fast way alone."""
        self._alone_ns = -1
        self._owed = False

    def told(self, number: int, now_ns: int, *, heard: bool) -> None:
        """What became of that one and those before. Who says so when it was given up meanwhile
        changes nothing."""
        known = False
        while self._unsure and self._unsure[0][0] <= number:
            known = self._unsure.popleft()[0] == number
        if known and heard:
            self._works = True
            self._pause_ms = 0
        elif known:
            self._failed(now_ns)

    def overdue(self, now_ns: int) -> bool:
        """Whether the position has to go on the topic now: it has relied on this long enough."""
        if self._unsure and now_ns - self._unsure[0][1] >= self._answer_ns:
            self._unsure.clear()
            self._failed(now_ns)
        if self._owed:
            return True
        return self._alone_ns >= 0 and now_ns - self._alone_ns >= self._patience_ns

    def due_ns(self) -> int | None:
        """When `overdue` has to be asked next."""
        due = []
        if self._unsure:
            due.append(self._unsure[0][1] + self._answer_ns)
        if self._alone_ns >= 0:
            due.append(self._alone_ns + self._patience_ns)
        return min(due, default=None)

    def _failed(self, now_ns: int) -> None:
        settings = self._settings
        self._works = False
        self._pause_ms = min(max(2 * self._pause_ms, settings.pause_ms), settings.pause_ms_max)
        self._try_ns = now_ns + self._pause_ms * NS_PER_MS
        self._owed = self._alone_ns >= 0
