"""Answers waiting to be given (C1, L7): results and conflicts of decided records, in log order."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from leasehold.model.records.log import Decisions, Disposition, Refusal
from leasehold.model.records.requests import Conflict, Outcome, Result, ResultBatch
from leasehold.model.topics import RESULT_PARTITIONS
from leasehold.replication.effects import PublishAnswers, Send, Topic
from leasehold.replication.master.answers_size import RESULT_BYTES, outcome_bytes, weigh
from leasehold.replication.master.record_draft import Repeat
from leasehold.replication.outcomes import outcome_of_commit, outcome_of_refusal

RESULTS_PER_MESSAGE_MAX: Final = 500
NOBODY: Final[Mapping[bytes, bytes]] = {}


@dataclass(slots=True)
class Answers:
    """The results and conflicts that one record's decisions give, and what requesters are told,
    which may be lost. `unsent` counts sends that the broker has not acknowledged yet; -1 before
    they are given, `size` is about what they take in memory."""

    offset: int
    results: list[tuple[int, Result]] = field(default_factory=list)
    told: list[tuple[bytes, Result]] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)
    unsent: int = -1
    size: int = 0

    def give(self, request_id: bytes, reply_to: int, requester: bytes, outcome: Outcome) -> None:
        """Add a result: on that partition if somebody reads it; else the requester is told."""
        self.size += outcome_bytes(outcome)
        result = Result(request_id, self.offset, outcome)
        if _is_read(reply_to):
            self.results.append((reply_to, result))
        else:
            self.told.append((requester, result))


def answers_of(
    record: Decisions,
    offset: int,
    repeats: Iterable[Repeat] = (),
    requesters: Mapping[bytes, bytes] = NOBODY,
) -> Answers:
    """Return the answers that follow from a record of the log alone (so a new master can give them
    again), remembered ones that were asked for while it was made, and those that requesters are
    told."""
    answers = Answers(offset)
    lsn = record.first_lsn
    for commit in record.commits:
        requester = requesters.get(commit.request_id, b"")
        if requester or _is_read(commit.reply_to):
            answers.give(
                commit.request_id, commit.reply_to, requester, outcome_of_commit(commit, lsn)
            )
        lsn += 1
    for refusal in record.refusals:
        requester = requesters.get(refusal.request_id, b"")
        if requester or (refusal.request_id and _is_read(refusal.reply_to)):
            outcome = outcome_of_refusal(refusal)
            answers.give(refusal.request_id, refusal.reply_to, requester, outcome)
        if refusal.disposition is Disposition.CONFLICT:
            answers.conflicts.append(_conflict(refusal, offset))
            image = 0 if refusal.image is None else weigh(refusal.image.values)
            answers.size += RESULT_BYTES + len(refusal.body or b"") + image
    for request_id, reply_to, outcome, requester in repeats:
        if requester or _is_read(reply_to):
            answers.give(request_id, reply_to, requester, outcome)
    return answers


def _tells(answers: Answers) -> Iterable[PublishAnswers]:
    requesters: dict[bytes, list[Result]] = {}
    for requester, result in answers.told:
        requesters.setdefault(requester, []).append(result)
    for requester, results in requesters.items():
        yield PublishAnswers(requester, ResultBatch(tuple(results)))


def _is_read(partition: int) -> bool:
    """Whether a requester can read what is put there. Any client may write another number into its
    request; an answer to that one could not be given, and L7 would give it again for ever."""
    return 0 <= partition < RESULT_PARTITIONS


def _conflict(refusal: Refusal, offset: int) -> Conflict:
    return Conflict(
        refusal.request_id,
        refusal.attempt,
        offset,
        str(refusal.detail.get("table", "")),
        refusal.content_type,
        refusal.body or b"",
        refusal.image,
        refusal.message,
    )


class PendingAnswers:
    """A queue by log offset; nothing leaves it before `may_answer(offset)` says so (C1 ⚠: first or
    repeated, commit or refusal)."""

    def __init__(self) -> None:
        self._waiting: deque[Answers] = deque()
        self._sending: deque[Answers] = deque()
        self._by_token: dict[int, Answers] = {}
        self._token = 0
        self._size = 0

    @property
    def size(self) -> int:
        """Return about how much memory those take that wait or are on their way."""
        return self._size

    def add(self, answers: Answers) -> bool:
        """Let the answers of a record wait; return whether there are any."""
        assert not self._waiting or self._waiting[-1].offset <= answers.offset
        if not (answers.results or answers.conflicts or answers.told):
            return False
        self._waiting.append(answers)
        self._size += answers.size
        return True

    def waiting(self) -> bool:
        return bool(self._waiting)

    def first_waiting(self) -> int | None:
        """Return the offset of the record whose answers are next, None where none wait."""
        return self._waiting[0].offset if self._waiting else None

    def release(self, may_answer: Callable[[int], bool]) -> list[Send | PublishAnswers]:
        sends: list[Send | PublishAnswers] = []
        while self._waiting and may_answer(self._waiting[0].offset):
            answers = self._waiting.popleft()
            given = list(self._sends(answers))
            answers.unsent = len(given)
            if given:
                self._sending.append(answers)
            else:
                self._size -= answers.size
            sends += _tells(answers)
            sends += given
        return sends

    def _sends(self, answers: Answers) -> Iterable[Send]:
        partitions: dict[int, list[Result]] = defaultdict(list)
        for partition, result in answers.results:
            partitions[partition].append(result)
        for partition, results in partitions.items():
            for start in range(0, len(results), RESULTS_PER_MESSAGE_MAX):
                part = tuple(results[start : start + RESULTS_PER_MESSAGE_MAX])
                yield Send(
                    Topic.RESULTS, partition, b"", ResultBatch(part), self._next_token(answers)
                )
        for conflict in answers.conflicts:
            yield Send(
                Topic.CONFLICTS, -1, conflict.request_id, conflict, self._next_token(answers)
            )

    def _next_token(self, answers: Answers) -> int:
        self._token += 1
        self._by_token[self._token] = answers
        return self._token

    def sent(self, token: int) -> None:
        answers = self._by_token.pop(token, None)
        if answers is not None:
            answers.unsent -= 1
        while self._sending and self._sending[0].unsent == 0:
            self._size -= self._sending.popleft().size

    def not_given(self) -> list[Answers]:
        """Return those that wait, and those whose sends the broker has not all acknowledged."""
        return [*self._sending, *self._waiting]

    def answered_through(self, log_end: int) -> int:
        """Return the log offset below which every answer was given and acknowledged by the broker
        (L7)."""
        for queue in (self._sending, self._waiting):
            if queue:
                return queue[0].offset
        return log_end
