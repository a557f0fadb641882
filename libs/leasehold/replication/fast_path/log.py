"""Chooses how the log's records reach a node: published by the master through Redis, or read from
Kafka.

Once a record has been read from the log at offset N, "at N of this log stand these bytes" stays
true. So whoever has read it may publish it, and it may be lost, doubled, late and overtaken, or be
published by a master that is none any more: whether it counts is judged as ever (L1, L2, L9), by
every node for itself. What a node has to see to is that it is *this* log, and that it misses
nothing:

- ⚠ `in_order`: received records are taken one after the other, each at the offset that is next.
  Where one is missing the rest is read from Kafka, from there on.
- ⚠ `granted_first`: only in a term in which the log, as Kafka gave it, granted a lease to this very
  incarnation. Of two clusters that share a Redis, one may be a copy of the other, with its term and
  all; but its master reads other acknowledgements, and an incarnation is a fresh random one.

Kafka is the truth, and the fast path (`LogPath`, a node's side) is left for it at once: when a
record is missing or too large to be published, when nothing was received for `silence_ms`, when a
term begins or Redis has gone. A master writes by itself where nobody asks for anything, some times
a second; so a node that receives nothing for longer than that has missed something, and a cluster
without users is told its log as one with many is: who writes now and then finds the path taken, and
the broker answers no fetches for nothing. `LogPublisher` is the master's side: it publishes while
somebody subscribes and Redis answers soon.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from leasehold.model import byte_limits
from leasehold.model.time_units import NS_PER_MS
from leasehold.replication.fast_path.state_machine import NOT_PUBLISHED, FastPath, Pause

NOBODY: Final = (0, b"")
"""A term that no master has."""
PUBLISHED_BYTES_MAX: Final = byte_limits.FAST
"""Of a record that is published; a larger one costs Kafka next to nothing beside what it holds, and
Redis keeps what it sends for each node that does not take it at once."""

Term = tuple[int, bytes]
"""A master's epoch and incarnation."""


@dataclass(frozen=True, slots=True)
class FastLogSettings:
    """Times of the fast path of the log. `silence_ms`: how long a node waits for the next record
    before it asks Kafka: longer than a master lets pass (`heartbeat_ms`), and so short that what
    stands in Kafka alone renews a coherency lease in time (its duration less a renewal, and what
    grants are gathered for, are left for that). Also how close together records have to come for
    the fast path to be worth it. It is taken after `row_min` of those, when the last was received
    at most `late_ms` after Kafka gave it. Having left it a node stays with Kafka for `pause_ms`,
    doubled up to `pause_ms_max` for each fault that comes before it was taken for `pause_ms_max`.
    Every `trust_ms` both ways are compared anew.

    The master's: Redis has `answer_ms` to say who subscribes; then, and where nobody does, nothing
    is published for `pause_ms`, doubled up to `pause_ms_max`."""

    on: bool = True
    silence_ms: int = 250
    row_min: int = 4
    late_ms: int = 3
    trust_ms: int = 10_000
    answer_ms: int = 20
    pause_ms: int = 100
    pause_ms_max: int = 5_000


class LogPath:
    """A node's side. Times are this host's CLOCK_BOOTTIME in ns.

    Invariant: what was received or read before `next_offset` is the whole log below it.
    """

    def __init__(self, settings: FastLogSettings, next_offset: int) -> None:
        self._on = settings.on
        self._late_ns = settings.late_ms * NS_PER_MS
        self._trust_ns = settings.trust_ms * NS_PER_MS
        self.next_offset = next_offset
        self.term: Term = NOBODY
        """Whose records to subscribe to; NOBODY: to none."""
        self._received = -1  # the highest offset that was in this term
        self._read_ns = 0  # when Kafka last gave something
        self._path = FastPath(
            pause_ms=settings.pause_ms,
            pause_ms_max=settings.pause_ms_max,
            row_min=settings.row_min,
            apart_ms=settings.silence_ms,
        )

    @property
    def path(self) -> FastPath:
        """Return its state machine, for whoever looks at it."""
        return self._path

    @property
    def fast(self) -> bool:
        """Whether the log is not read from Kafka now."""
        return self._path.taken

    # ------------------------------------------------------------ what happens

    def follow(self, term: Term, granted: Term, now_ns: int) -> None:
        """The term of the node's position, and the one in which it was last granted a lease."""
        if not self._on or term != granted:
            term = NOBODY
        if term == self.term:
            return
        self.term = term
        self._received = -1
        self._path.leave(now_ns, Pause.ONCE)

    def read(self, offset: int, now_ns: int) -> bool:
        """Kafka gave the record at `offset`; whether it is to be applied."""
        if offset < self.next_offset:
            return False
        self.next_offset = offset + 1
        self._read_ns = now_ns
        return True

    def receive(self, offset: int, now_ns: int, *, whole: bool) -> bool:
        """The record at `offset` has come from the master of `term`; `whole`: with its bytes.
        Whether it is to be applied now."""
        if self.term == NOBODY:
            return False
        path = self._path
        news = offset >= self.next_offset
        if news or not path.taken:  # what comes again must not pass for a sign of life
            path.count(now_ns, follows=offset == self._received + 1)
            if not whole:
                path.end_row()
            self._received = offset
        if not news:
            if offset == self.next_offset - 1 and now_ns - self._read_ns <= self._late_ns:
                self._enter(now_ns)
            return False
        if not whole or offset > self.next_offset:
            if path.taken:
                path.leave(now_ns, Pause.FAULT if whole else Pause.ONCE)
            return False
        self._enter(now_ns)  # before Kafka gave it
        if not path.taken:
            return False
        self.next_offset = offset + 1
        return True

    def doubted(self, next_offset: int, now_ns: int) -> None:
        """What was received does not follow what this node has: Kafka is to be read from there."""
        self.next_offset = next_offset
        self._path.leave(now_ns, Pause.FAULT)

    def lost(self, now_ns: int) -> None:
        """Leave the path: there is no connection."""
        self._path.end_row()
        if self._path.taken:
            self._path.leave(now_ns, Pause.FAULT)

    def tick(self, now_ns: int) -> None:
        """Leave the path if nothing came, or to compare both ways anew. To be called when `due_ns`
        has come."""
        path = self._path
        if not path.taken:
            return
        if path.is_silent(now_ns):
            path.leave(now_ns, Pause.ONCE)
        elif now_ns - path.since_ns >= self._trust_ns:
            path.leave(now_ns, Pause.NONE)

    # ------------------------------------------------------------ what to wait for

    def due_ns(self) -> int | None:
        """Return when `tick` has to be called next, while nothing is received."""
        path = self._path
        return min(path.silent_at_ns, path.since_ns + self._trust_ns) if path.taken else None

    def awaited_until_ns(self, now_ns: int) -> int:
        """Return until when it is worth waiting for the record that Kafka gave last, 0 = it is not:
        it alone has still to be received, and the fast path is to be taken."""
        if self._received != self.next_offset - 2 or not self._path.is_ready(now_ns, missing=1):
            return 0
        until_ns = self._read_ns + self._late_ns
        return until_ns if now_ns < until_ns else 0

    def _enter(self, now_ns: int) -> None:
        if self._path.is_ready(now_ns):
            self._path.enter(now_ns)


class LogPublisher:
    """The master's side: whether it is worth publishing."""

    def __init__(self, settings: FastLogSettings) -> None:
        self._on = settings.on
        self._path = FastPath(
            pause_ms=settings.pause_ms,
            pause_ms_max=settings.pause_ms_max,
            answer_ms=settings.answer_ms,
        )

    def begin(self, now_ns: int) -> None:
        """A term begins: nothing is known of who subscribes."""
        self._path.restart(now_ns)

    def choose(self, now_ns: int) -> int:
        """The number to publish a record under now; NOT_PUBLISHED: don't."""
        path = self._path
        if self._on and path.is_ready(now_ns):
            path.enter(now_ns)
        if not path.taken:
            return NOT_PUBLISHED
        if path.is_overdue(now_ns):
            path.leave(now_ns, Pause.FAULT)
            return NOT_PUBLISHED
        return path.publish(now_ns)

    def confirm(self, number: int, now_ns: int, *, received: bool) -> None:
        """Take Redis's word for that one and those before: whether a node has received it."""
        if not self._path.confirm(number):
            return
        if received:
            self._path.forgive()
        else:
            self._path.leave(now_ns, Pause.FAULT)
