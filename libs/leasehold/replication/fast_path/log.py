"""Which way the log's records reach a node: told by the master through Redis, or read from Kafka.

Once a record has been read from the log at offset N, "at N of this log stand these bytes" stays
true. So whoever has read it may tell it on, and it may be lost, doubled, late and overtaken, or be
told by a master that is none any more: whether it counts is judged as ever (L1, L2, L9), by every
node for itself. What a node has to see to is that it is *this* log, and that it misses nothing:

- ⚠ `in_order`: told records are taken one after the other, each at the offset that is next. Where
  one is missing the rest is read from Kafka, from there on.
- ⚠ `granted_first`: only in a term in which the log, as Kafka gave it, granted a lease to this very
  incarnation. Of two clusters that share a Redis, one may be a copy of the other, with its term and
  all; but its master reads other acknowledgements, and an incarnation is a fresh random one.

Kafka is the truth, and the fast way (`LogWays`, a node's side) is left for it at once: when a
record is missing or too large to be told, when nothing was heard for `silence_ms`, when a term
begins or Redis has gone. A node that hears nothing has no way to know whether there was anything;
so while nobody writes the log is read from Kafka, and who writes now and then is not slower than
without all this. `LogTelling` is the master's side: it tells while somebody listens and Redis
answers soon.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from leasehold.model.time_units import NS_PER_MS
from leasehold.replication.fast_path.backoff import FaultPause

NOT_TOLD: Final = 0
NOBODY: Final = (0, b"")
"""A term that no master has."""
TOLD_BYTES_MAX: Final = 48 * 1024
"""Of a record that is told; a larger one costs Kafka next to nothing beside what it holds, and
Redis keeps what it sends for each node that does not take it at once."""

Term = tuple[int, bytes]
"""A master's epoch and incarnation."""


@dataclass(frozen=True, slots=True)
class FastLogSettings:
    """`silence_ms`: how long a node waits for the next record before it asks Kafka; also how close
    together records have to come for the fast way to be worth it. It is taken after `row_min` of
    those, when the last was heard at most `late_ms` after Kafka gave it. Having left it a node
    stays with Kafka for `pause_ms`, doubled up to `pause_ms_max` for each fault that comes before
    it was taken for `pause_ms_max`. Every `trust_ms` both ways are compared anew.

    The master's: Redis has `answer_ms` to say who listens; then, and where nobody does, nothing is
    told for `pause_ms`, doubled up to `pause_ms_max`."""

    on: bool = True
    silence_ms: int = 50
    row_min: int = 4
    late_ms: int = 3
    trust_ms: int = 10_000
    answer_ms: int = 20
    pause_ms: int = 100
    pause_ms_max: int = 5_000


@dataclass(frozen=True, slots=True)
class FastLogRules:
    """⚠ rules for models and the simulation to switch off."""

    in_order: bool = True
    granted_first: bool = True


RULES: Final = FastLogRules()


class LogWays:
    """A node's side. Times are this host's CLOCK_BOOTTIME in ns.

    Invariant: what was taken or read before `next_offset` is the whole log below it.
    """

    def __init__(
        self, settings: FastLogSettings, next_offset: int, rules: FastLogRules = RULES
    ) -> None:
        self._settings = settings
        self._rules = rules
        self._silence_ns = settings.silence_ms * NS_PER_MS
        self._late_ns = settings.late_ms * NS_PER_MS
        self.next_offset = next_offset
        self.fast = False
        """Whether the log is not read from Kafka now."""
        self.term: Term = NOBODY
        """Whom to listen to; NOBODY: to none."""
        self._told = -1  # the highest offset that was heard in this term
        self._told_ns = 0
        self._row = 0
        self._read_ns = 0  # when Kafka last gave something
        self._since_ns = 0  # when the fast way was taken
        self._pause = FaultPause(settings.pause_ms, settings.pause_ms_max)

    # ------------------------------------------------------------ what happens

    def follow(self, term: Term, granted: Term, now_ns: int) -> None:
        """The term of the node's position, and the one in which it was last granted a lease."""
        if not self._settings.on or (term != granted and self._rules.granted_first):
            term = NOBODY
        if term == self.term:
            return
        self.term = term
        self._told, self._row = -1, 0
        self._leave(now_ns, fault=False)

    def read(self, offset: int, now_ns: int) -> bool:
        """Kafka gave the record at `offset`; whether it is to be applied."""
        if offset < self.next_offset:
            return False
        self.next_offset = offset + 1
        self._read_ns = now_ns
        return True

    def told(self, offset: int, now_ns: int, *, whole: bool) -> bool:
        """The record at `offset` was heard of, from the master of `term`; `whole`: with its bytes.
        Whether it is to be applied now."""
        if self.term == NOBODY:
            return False
        news = offset >= self.next_offset
        if news or not self.fast:  # what is told again must not pass for a sign of life
            close = offset == self._told + 1 and now_ns - self._told_ns <= self._silence_ns
            self._row = (self._row if close else 0) + 1 if whole else 0
            self._told, self._told_ns = offset, now_ns
        if not news:
            if offset == self.next_offset - 1 and now_ns - self._read_ns <= self._late_ns:
                self._enter(now_ns)
            return False
        if not whole or (offset > self.next_offset and self._rules.in_order):
            if self.fast:
                self._leave(now_ns, fault=whole)
            return False
        self._enter(now_ns)  # before Kafka gave it
        if not self.fast:
            return False
        self.next_offset = offset + 1
        return True

    def doubted(self, next_offset: int, now_ns: int) -> None:
        """What was told does not follow what this node has: Kafka is to be read from there."""
        self.next_offset = next_offset
        self._leave(now_ns, fault=True)

    def lost(self, now_ns: int) -> None:
        """There is no connection."""
        self._row = 0
        if self.fast:
            self._leave(now_ns, fault=True)

    def tick(self, now_ns: int) -> None:
        """To be called when `due_ns` has come."""
        if not self.fast:
            return
        if now_ns - self._told_ns >= self._silence_ns:
            self._leave(now_ns, fault=False)
        elif now_ns - self._since_ns >= self._settings.trust_ms * NS_PER_MS:
            self.fast, self._row = False, 0  # no pause: nothing speaks against it

    # ------------------------------------------------------------ what to wait for

    def due_ns(self) -> int | None:
        """When `tick` has to be called next, while nothing is heard."""
        if not self.fast:
            return None
        return min(
            self._told_ns + self._silence_ns,
            self._since_ns + self._settings.trust_ms * NS_PER_MS,
        )

    def awaited_until_ns(self, now_ns: int) -> int:
        """Only the record that Kafka gave last has still to be heard, and the fast way is to be
        taken: until when it is worth waiting for that, 0 = it is not."""
        if self.fast or self._told != self.next_offset - 2 or not self._ready(now_ns, 1):
            return 0
        until_ns = self._read_ns + self._late_ns
        return until_ns if now_ns < until_ns else 0

    # ------------------------------------------------------------ changing over

    def _ready(self, now_ns: int, missing: int = 0) -> bool:
        return self._row + missing >= self._settings.row_min and now_ns >= self._pause.until_ns

    def _enter(self, now_ns: int) -> None:
        if not self.fast and self._ready(now_ns):
            self.fast = True
            self._since_ns = now_ns

    def _leave(self, now_ns: int, *, fault: bool) -> None:
        self.fast, self._row = False, 0
        if fault:
            self._pause.fault(now_ns, self._since_ns)
        else:
            self._pause.rest(now_ns)


class LogTelling:
    """The master's side: whether it is worth telling."""

    def __init__(self, settings: FastLogSettings) -> None:
        self._settings = settings
        self._answer_ns = settings.answer_ms * NS_PER_MS
        self._number = NOT_TOLD
        self._unsure: deque[tuple[int, int]] = deque()  # (number, when) told, nothing known yet
        self._try_ns = 0
        self._pause_ms = 0

    def begin(self, now_ns: int) -> None:
        """A term begins: nothing is known of who listens."""
        self._unsure.clear()
        self._try_ns = now_ns
        self._pause_ms = 0

    def choose(self, now_ns: int) -> int:
        """The number to tell a record under now; NOT_TOLD: don't."""
        if not self._settings.on or now_ns < self._try_ns:
            return NOT_TOLD
        if self._unsure and now_ns - self._unsure[0][1] >= self._answer_ns:
            self._fails(now_ns)
            return NOT_TOLD
        self._number += 1
        self._unsure.append((self._number, now_ns))
        return self._number

    def answered(self, number: int, now_ns: int, *, heard: bool) -> None:
        """What became of that one and those before. Who says so when it was given up meanwhile
        changes nothing."""
        known = False
        while self._unsure and self._unsure[0][0] <= number:
            known = self._unsure.popleft()[0] == number
        if known and heard:
            self._pause_ms = 0
        elif known:
            self._fails(now_ns)

    def _fails(self, now_ns: int) -> None:
        settings = self._settings
        self._unsure.clear()
        self._pause_ms = min(max(2 * self._pause_ms, settings.pause_ms), settings.pause_ms_max)
        self._try_ns = now_ns + self._pause_ms * NS_PER_MS
