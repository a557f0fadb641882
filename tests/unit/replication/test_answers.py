"""Answers are given in log order, no earlier than C1 allows, and until the broker has them (L7)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from leasehold.model.records.log import Commit, Decisions, Disposition, Refusal
from leasehold.model.records.requests import Outcome
from leasehold.model.topics import RESULT_PARTITIONS
from leasehold.replication.effects import Send, Topic
from leasehold.replication.master.answers import RESULTS_PER_MESSAGE_MAX, PendingAnswers, answers_of
from leasehold.replication.master.record_draft import Repeat


def record(commits: int = 0, refusals: tuple[Refusal, ...] = (), reply_to: int = 3) -> Decisions:
    made = tuple(
        Commit(bytes([n % 256, n // 256]), 1, n + 1, {}, (), 1, reply_to) for n in range(commits)
    )
    return Decisions(1, b"i", 1, b"", 8, made, refusals, {}, 0, ())


def refusal(disposition: Disposition, reply_to: int = 3) -> Refusal:
    return Refusal(
        b"r", 2, disposition, "40001", "words", {"table": "t"}, 5, reply_to, "requests", 9,
        "application/json", b"body", None,
    )  # fmt: skip


def sends(pending: PendingAnswers, may_answer: Callable[[int], bool]) -> list[Send]:
    given = pending.release(may_answer)
    assert all(isinstance(one, Send) for one in given)
    return [one for one in given if isinstance(one, Send)]


def test_answers_follow_from_the_record_alone() -> None:
    answers = answers_of(record(commits=2, refusals=(refusal(Disposition.DEAD_LETTER),)), 40)
    lsns = [result.outcome.lsn for _, result in answers.results]
    assert lsns == [8, 9, 0]
    assert [result.offset for _, result in answers.results] == [40, 40, 40]
    assert answers.results[2][1].outcome.dead_lettered
    assert answers.conflicts == []


def test_a_conflict_goes_to_the_stream_and_its_asker_is_told_it_is_not_final() -> None:
    answers = answers_of(record(refusals=(refusal(Disposition.CONFLICT),)), 40)
    (conflict,) = answers.conflicts
    assert (conflict.request_id, conflict.attempt, conflict.body) == (b"r", 2, b"body")
    assert not answers.results[0][1].outcome.final


def test_nobody_is_told_who_did_not_ask() -> None:
    answers = answers_of(record(commits=1, reply_to=-1), 40)
    assert answers.results == []


@pytest.mark.parametrize("reply_to", [RESULT_PARTITIONS, 9_999])
def test_l7_an_answer_that_nobody_could_read_is_not_given(reply_to: int) -> None:
    """The topic has no such partition: what is sent there fails, and would be sent for ever."""
    asked = record(
        commits=1, refusals=(refusal(Disposition.CONFLICT, reply_to),), reply_to=reply_to
    )
    answers = answers_of(asked, 40, [Repeat(b"old", reply_to, Outcome(1, 2, 1, 0, True))])
    assert answers.results == []
    assert len(answers.conflicts) == 1, "the stream has its own partitions"
    pending = PendingAnswers()
    pending.add(answers_of(record(commits=1, reply_to=reply_to), 40))
    assert pending.release(lambda _: True) == []
    assert pending.answered_through(50) == 50
    last = answers_of(record(commits=1, reply_to=RESULT_PARTITIONS - 1), 40)
    assert [partition for partition, _ in last.results] == [RESULT_PARTITIONS - 1]


def test_c1_nothing_leaves_before_it_may_and_order_is_kept() -> None:
    pending = PendingAnswers()
    for offset in (40, 41):
        pending.add(answers_of(record(commits=1), offset))
    assert sends(pending, lambda _: False) == []
    # The later one alone may not overtake: what it tells of stands on the earlier one.
    assert sends(pending, lambda offset: offset == 41) == []
    given = sends(pending, lambda _: True)
    assert [send.record.results[0].offset for send in given] == [40, 41]


def test_c1_repeats_wait_with_the_record_that_was_being_made() -> None:
    old = Repeat(b"old", 5, Outcome(1, 2, 1, 0, True))
    pending = PendingAnswers()
    pending.add(answers_of(record(), 40, [old]))
    assert sends(pending, lambda offset: offset < 40) == []
    (send,) = sends(pending, lambda _: True)
    assert (send.topic, send.partition) == (Topic.RESULTS, 5)


def test_l7_answered_through_waits_for_the_broker() -> None:
    pending = PendingAnswers()
    pending.add(answers_of(record(commits=1), 40))
    assert pending.answered_through(50) == 40
    (send,) = sends(pending, lambda _: True)
    assert pending.answered_through(50) == 40
    pending.sent(send.token)
    assert pending.answered_through(50) == 50


def test_l7_what_the_broker_confirmed_out_of_order_counts_in_order() -> None:
    pending = PendingAnswers()
    for offset in (40, 41):
        pending.add(answers_of(record(commits=1), offset))
    first, second = sends(pending, lambda _: True)
    pending.sent(second.token)
    assert pending.answered_through(50) == 40
    pending.sent(first.token)
    assert pending.answered_through(50) == 50


def test_l7_a_deposed_masters_open_answers_are_kept_for_whoever_is_next() -> None:
    pending = PendingAnswers()
    for offset in (40, 41, 42):
        pending.add(answers_of(record(commits=1), offset))
    given = sends(pending, lambda offset: offset < 42)
    pending.sent(given[0].token)
    assert [answers.offset for answers in pending.not_given()] == [41, 42]


def test_messages_are_bounded() -> None:
    pending = PendingAnswers()
    pending.add(answers_of(record(commits=RESULTS_PER_MESSAGE_MAX + 1), 40))
    sizes = [len(send.record.results) for send in sends(pending, lambda _: True)]
    assert sizes == [RESULTS_PER_MESSAGE_MAX, 1]
