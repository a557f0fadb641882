"""What a candidate would have to answer, should it become master (L7): the answers of counting
records after `answered_through`, which the master of their time may have given, or not."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final, NamedTuple

from leasehold.model.records.log import Claim, Decisions, LogPosition
from leasehold.replication.effects import LogRead
from leasehold.replication.master.answers import Answers, answers_of
from leasehold.replication.queue_limits import UNANSWERED_BYTES_MAX

UNANSWERED_RECORDS_MAX: Final = 20_000


class _Reread(NamedTuple):
    """What is kept of a record that is read again; `previous` is None outside of the chain."""

    digest: bytes
    previous: bytes | None
    answers: Answers | None
    answered_through: int


class UnansweredRecords:
    """The answers in log order, of the newest records: UNANSWERED_RECORDS_MAX, and
    UNANSWERED_BYTES_MAX."""

    def __init__(self) -> None:
        self._answers: deque[Answers] = deque()
        self._bytes = 0
        self._reread: deque[_Reread] = deque(maxlen=UNANSWERED_RECORDS_MAX)

    def remember(self, record: Decisions, offset: int) -> None:
        """Keep the answers of a record that counts, and forget those that it says were given."""
        self._remember(answers_of(record, offset), record.answered_through)

    def _remember(self, answers: Answers, answered_through: int) -> None:
        while self._answers and self._answers[0].offset < answered_through:
            self._forget_first()
        if answers.results or answers.conflicts:
            self._add(answers)

    def _add(self, answers: Answers) -> None:
        self._answers.append(answers)
        self._bytes += answers.size
        while len(self._answers) > UNANSWERED_RECORDS_MAX or (
            self._bytes > UNANSWERED_BYTES_MAX and len(self._answers) > 1
        ):
            self._forget_first()

    def _forget_first(self) -> None:
        self._bytes -= self._answers.popleft().size

    def read_again(self, event: LogRead, position: LogPosition) -> None:
        """Take a record from before this process, which begins to read at `answered_through`; the
        store is at `position`.

        L1 ⚠: whether it counts was judged in another life, and a deposed master's record that was
        passed over must not be answered now. What counts is the chain of digests that ends where
        this store stands (L2), so it is followed back from there.
        """
        record = event.record
        self._reread.append(
            _Reread(
                event.digest,
                record.previous if isinstance(record, Claim | Decisions) else None,
                answers_of(record, event.offset) if isinstance(record, Decisions) else None,
                record.answered_through if isinstance(record, Decisions) else 0,
            )
        )
        if event.offset + 1 < position.offset:
            return
        first: dict[bytes, _Reread] = {}
        for read in self._reread:
            first.setdefault(read.digest, read)
        counting: list[_Reread] = []
        at = first.pop(position.digest, None)
        while at is not None:
            counting.append(at)
            assert at.previous is not None, "nothing else is in the chain"
            at = first.pop(at.previous, None)
        self._reread.clear()
        counting.reverse()
        for read in counting:
            if read.answers is not None:
                self._remember(read.answers, read.answered_through)

    def keep(self, answers: Iterable[Answers]) -> None:
        """Take back what a master of this process has not given."""
        for each in answers:
            self._add(each)

    def hand_over(self, answered_through: int) -> list[Answers]:
        """Return what a master that begins now has to give, and forget it."""
        handed_over = [each for each in self._answers if each.offset >= answered_through]
        self._answers.clear()
        self._bytes = 0
        return handed_over
