"""A message that no master survives is refused (L10).

A new master decides the first message of each queue alone, and says in the log that it is about to
before it looks into it: a process that dies of a message, or is deposed while it decides it, can
say nothing afterwards. Who finds there that `LOST_MAX` terms have ended over the very message that
is next only reads it, to know who asked, and refuses it; one that has ended another term even so
is refused unread. Whichever message it is that no master survives, after a few terms it is the
first one: what is decided before it in its batch grows from one message on
(`Attempts.limit_requests`).

What counts is what masters have said of a message, never that a term has ended: masters come and go
for many reasons, and most of them have said nothing, or decided it at once. One that has said
something, lives on, and knows that it was never busy for long (its append failed, L4; it was cut
off) remembers that, and takes it back when it is master again (`Spared`).
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Final, NamedTuple

from leasehold.model.errors import TooComplex
from leasehold.model.records.log import Attempt, Decisions, LogPosition
from leasehold.model.records.requests import Queue
from leasehold.model.time_units import NS_PER_MS

LOST_MAX: Final = 2
"""Terms that may end over a message: one may be chance, and each costs users an election."""
BUSY_MS_MAX: Final = 500
"""A turn of the master's loop that took longer may be why it was deposed: an election waits for
2 s and more."""
GROWN_MAX: Final = 1 << 20
"""More requests than any record decides."""
SPARED_MAX: Final = 16
"""Remembered: masters that lose so many terms in a row have worse to do."""


class Spared(NamedTuple):
    """An attempt, as it was said by a term of this process that ended for another reason."""

    queue: str
    offset: int
    rows: int


def attempts_after(known: tuple[Attempt, ...], record: Decisions) -> tuple[Attempt, ...]:
    """Return what is known of the queues behind a record that counts, by queue; the same on all
    nodes. ⚠ In a queue that was recreated, or begins at another place, another message has that
    offset."""
    through = record.decided_through
    of_queue = {
        each.queue: each
        for each in known
        if through.get(each.queue, each.offset) == each.offset
        and each.queue not in record.queue_topics
    }
    for attempt in record.attempts:
        of_queue[attempt.queue] = attempt
    return tuple([of_queue[queue] for queue in sorted(of_queue)])


class Attempts:
    """What one term knows of the message that it decides first of each queue."""

    def __init__(self, position: LogPosition, spared: Iterable[Spared] = ()) -> None:
        """Begin at `position`, right after the Claim. `spared`: what this process has said in
        earlier terms, and no statement of its has taken back yet."""
        self._alone = {queue.value for queue in Queue}  # nothing of it was decided in this term
        self._spared = list(spared)
        self._before = {each.queue: self._without_spared(each) for each in position.attempts}
        # By queue: this term's word on it in the log, if there is one, and those on their way
        # behind that. The last one counts, until it is decided.
        self._words: dict[str, list[Attempt]] = {}
        self._in_log: set[str] = set()  # queues of which the last word was read back
        self._busy = False
        self._most = 1

    def _without_spared(self, attempt: Attempt) -> Attempt:
        is_spared = Spared(*attempt[:3]) in self._spared
        return attempt._replace(lost=max(0, attempt.lost - is_spared))

    def forget(self, queue: Queue) -> None:
        """Forget the queue, which is not the one that was spoken of: what its offsets name are
        other messages."""
        self._before.pop(queue.value, None)

    def is_alone(self, queue: Queue) -> bool:
        """Whether the next message of the queue is to be decided alone."""
        return queue.value in self._alone

    def rows_before(self, queue: Queue, offset: int) -> int:
        """Return how many rows of that message (a chunk) the log says were decided, 0 of any
        other."""
        before = self._before.get(queue.value)
        return before.rows if before is not None and before.offset == offset else 0

    def lost_over(self, queue: Queue, offset: int, rows: int = 0) -> int:
        """Return how many terms have ended over just that."""
        before = self._before.get(queue.value)
        return before.lost if before is not None and before[1:3] == (offset, rows) else 0

    def is_said(self, queue: Queue, offset: int, rows: int = 0) -> bool:
        """Whether the log says that just that is decided now."""
        if queue.value not in self._in_log:
            return False
        return self._words[queue.value][-1] == self._charged(queue, offset, rows)

    def say(self, queue: Queue, offset: int, rows: int = 0) -> list[Attempt]:
        """Return what the next record says: that this is decided then. What was said of another
        queue is taken back: if this term ends over the one, the other is not to blame."""
        said = [
            other._replace(lost=self.lost_over(Queue(other.queue), other.offset, other.rows))
            for other in [words[-1] for words in self._words.values()]
            if other.queue != queue.value
        ]
        said.append(self._charged(queue, offset, rows))
        for attempt in said:
            self._words.setdefault(attempt.queue, []).append(attempt)
            self._in_log.discard(attempt.queue)
        return said

    def _charged(self, queue: Queue, offset: int, rows: int) -> Attempt:
        return Attempt(queue.value, offset, rows, self.lost_over(queue, offset, rows) + 1)

    def note_turn(self, took_ns: int) -> None:
        """Take how long a turn of this master's took."""
        if self._words and took_ns >= BUSY_MS_MAX * NS_PER_MS:
            self._busy = True

    def read_back(self, record: Decisions, decided: Container[str]) -> None:
        """Take a record of this term that counts. `decided`: queues of which it has decided a
        message; what it says of where a queue begins is none."""
        for queue in list(self._alone):
            if queue in decided:
                self._alone.discard(queue)
                self._words.pop(queue, None)
                self._in_log.discard(queue)
                self._busy = False
        for attempt in record.attempts:
            self._in_log.add(attempt.queue)
            words = self._words.get(attempt.queue, [])
            if attempt in words:
                del words[: words.index(attempt)]
            position = Spared(*attempt[:3])
            self._spared = [each for each in self._spared if each != position]

    def is_refused(self, queue: Queue, offset: int, rows: int = 0) -> bool:
        return self.lost_over(queue, offset, rows) >= LOST_MAX

    def is_refused_unread(self, queue: Queue, offset: int, rows: int = 0) -> bool:
        """Whether reading it has ended a term, too."""
        return self.lost_over(queue, offset, rows) > LOST_MAX

    def limit_requests(self, requests_max: int) -> int:
        """Return how many requests the next record may decide."""
        return min(self._most, requests_max)

    def grow(self) -> None:
        """Let the next record decide twice as many requests: one that decided some was read
        back."""
        self._most = min(2 * self._most, GROWN_MAX)

    def spared(self) -> list[Spared]:
        """Return what the next term of this process has to know, if this one ends now while it
        lives: all that the log may hold against a message now. ⚠ Of a queue that is more than the
        last word: the record which takes an earlier one back may be lost."""
        spared = list(self._spared)
        if not self._busy:
            words = [attempt for said in self._words.values() for attempt in said]
            spared += [Spared(*a[:3]) for a in words if self._is_against(a)]
        # Each word replaces those before it: of this process one at most is in the log.
        return list(dict.fromkeys(spared))[-SPARED_MAX:]

    def _is_against(self, word: Attempt) -> bool:
        """Return whether a word of this term is held against the message that it is about."""
        queue, offset, rows, lost = word
        return lost > self.lost_over(Queue(queue), offset, rows)


def no_master_survives(lost: int) -> TooComplex:
    """Return the reason for which such a message is refused."""
    return TooComplex(
        f"{lost} masters, one after the other, ended or were deposed while they decided this"
        " message alone, so it is refused without being looked into; nothing of it was applied."
        " Ask for less at once; if it is small, please report it"
    )
