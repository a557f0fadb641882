"""What a candidate would have to answer, should it become master (L7): the answers of counting
records after `answered_through`, which the master of their time may have given, or not."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from leasehold.model.records.log import Claim, Decisions, LogPosition
from leasehold.replication.effects import LogRead
from leasehold.replication.master.answers import Answers, answers_of

UNANSWERED_RECORDS_MAX: Final = 20_000


class UnansweredRecords:
    """The answers in log order, of the newest UNANSWERED_RECORDS_MAX records."""

    def __init__(self) -> None:
        self._answers: deque[Answers] = deque(maxlen=UNANSWERED_RECORDS_MAX)
        self._reread: deque[LogRead] = deque(maxlen=UNANSWERED_RECORDS_MAX)

    def remember(self, record: Decisions, offset: int) -> None:
        """Keep the answers of a record that counts, and forget those that it says were given."""
        while self._answers and self._answers[0].offset < record.answered_through:
            self._answers.popleft()
        answers = answers_of(record, offset)
        if answers.results or answers.conflicts:
            self._answers.append(answers)

    def read_again(self, event: LogRead, position: LogPosition) -> None:
        """Take a record from before this process, which begins to read at `answered_through`; the
        store is at `position`.

        L1 ⚠: whether it counts was judged in another life, and a deposed master's record that was
        passed over must not be answered now. What counts is the chain of digests that ends where
        this store stands (L2), so it is followed back from there.
        """
        self._reread.append(event)
        if event.offset + 1 < position.offset:
            return
        first: dict[bytes, LogRead] = {}
        for read in self._reread:
            first.setdefault(read.digest, read)
        counting: list[LogRead] = []
        at = first.pop(position.digest, None)
        while at is not None:
            counting.append(at)
            assert isinstance(at.record, Claim | Decisions), "nothing else is in the chain"
            at = first.pop(at.record.previous, None)
        self._reread.clear()
        counting.reverse()
        for read in counting:
            if isinstance(read.record, Decisions):
                self.remember(read.record, read.offset)

    def keep(self, answers: Iterable[Answers]) -> None:
        """Take back what a master of this process has not given."""
        self._answers.extend(answers)

    def hand_over(self, answered_through: int) -> list[Answers]:
        """Return what a master that begins now has to give, and forget it."""
        handed_over = [each for each in self._answers if each.offset >= answered_through]
        self._answers.clear()
        return handed_over
