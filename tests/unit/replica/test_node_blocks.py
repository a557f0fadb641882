"""What a node does with the blocks of numbers that the master gives it, or does not give."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Barrier, Event, Thread
from typing import Any

import pytest

from leasehold.catalog.sequence import Options, define_sequence
from leasehold.catalog.sequence_ownership import make_sequence_relation
from leasehold.model.errors import LeaseholdError, NoMaster, OutcomeUnknown, QueryCanceled
from leasehold.model.records.requests import ChangeRequest, Outcome
from leasehold.replica.sequences import node_blocks as numbers
from leasehold.replica.sequences.node_blocks import (
    BLOCK_VALUES,
    BLOCK_VALUES_MAX,
    Found,
    NodeSequenceValues,
)

SEQUENCE = make_sequence_relation(define_sequence(Options()), 1 << 30 | 1, "s")
THREADS = 8
EACH = 500


class Master:
    """Counts on; `answers` stands in for what it says."""

    def __init__(self) -> None:
        self.last = 0
        self.epoch = 1
        self.asked: list[int] = []
        self.answers: Callable[[], Outcome] | None = None

    def submit(
        self, request: ChangeRequest, timeout_s: float, stopped: Callable[[], bool] | None = None
    ) -> Outcome:
        if self.answers is not None:
            return self.answers()
        (operation,) = request.operations
        count: int = operation.values["take"]
        self.asked.append(count)
        first, self.last = self.last + 1, self.last + count
        told = {"numbers": (SEQUENCE.table_id, first, count, self.epoch), "at": 7}
        return Outcome(1, 7, 0, 0, True, answer=told)


@pytest.fixture
def master() -> Master:
    return Master()


@pytest.fixture
def node(master: Master) -> NodeSequenceValues:
    def no_reads() -> object:
        raise AssertionError("nothing is looked up here")

    return NodeSequenceValues(master.submit, no_reads)  # type: ignore[arg-type]


def drawn(node: NodeSequenceValues, epoch: int = 1) -> int:
    found = Found(SEQUENCE, epoch)
    while (number := node.draw(found)) is None:
        node.fill(found, 0)
    return number


def test_blocks_grow_while_they_are_used_up_soon(node: NodeSequenceValues, master: Master) -> None:
    assert [drawn(node) for _ in range(200)] == list(range(1, 201))
    assert master.asked[:3] == [BLOCK_VALUES, 2 * BLOCK_VALUES, 4 * BLOCK_VALUES]
    for _ in range(5 * BLOCK_VALUES_MAX):
        drawn(node)
    assert max(master.asked) == BLOCK_VALUES_MAX


@contextmanager
def another_waiting(node: NodeSequenceValues, master: Master) -> Iterator[None]:
    """Somebody waits for the master's answer, which comes when this ends."""
    asked, answered = Event(), Event()

    def late() -> Outcome:
        asked.set()
        answered.wait(5)
        return Outcome(1, 7, 0, 0, True, answer={"numbers": (SEQUENCE.table_id, 1, 32, 1)})

    master.answers = late
    first = Thread(target=node.fill, args=(Found(SEQUENCE, 1), 0))
    first.start()
    asked.wait()
    try:
        yield
    finally:
        answered.set()
        first.join()


def test_who_waits_for_another_one_waits_no_longer_than_he_would(
    node: NodeSequenceValues, master: Master, monkeypatch: pytest.MonkeyPatch
) -> None:
    with another_waiting(node, master):
        monkeypatch.setattr(numbers, "ANSWER_TIMEOUT_S", 0.01)
        with pytest.raises(NoMaster, match="others have waited"):
            node.fill(Found(SEQUENCE, 1), 0)
    assert drawn(node) == 1


def test_who_is_told_to_end_waits_no_longer(node: NodeSequenceValues, master: Master) -> None:
    """Neither for his own answer nor for another one's; who comes next takes a block."""
    ended = Event()
    with another_waiting(node, master), pytest.raises(QueryCanceled):
        node.fill(Found(SEQUENCE, 1), 0, lambda: True)
    assert drawn(node) == 1
    given: list[Callable[[], bool] | None] = []

    def never(request: ChangeRequest, timeout_s: float, stopped: Callable[[], bool] | None) -> Any:
        given.append(stopped)
        raise QueryCanceled("told to end")

    node._submit = never
    with pytest.raises(QueryCanceled):
        node.fill(Found(SEQUENCE, 2), 0, ended.is_set)
    assert given == [ended.is_set]
    node._submit, master.answers = master.submit, None
    master.epoch = 2
    assert drawn(node, epoch=2) == 1


def test_a_statement_that_needs_many_gets_them_at_once(
    node: NodeSequenceValues, master: Master
) -> None:
    node.fill(Found(SEQUENCE, 1), 100_000)
    assert master.asked == [100_000]


def test_a_block_of_another_epoch_is_thrown_away(node: NodeSequenceValues, master: Master) -> None:
    assert drawn(node) == 1
    master.epoch, master.last = 2, 0
    assert drawn(node, epoch=2) == 1
    assert node.draw(Found(SEQUENCE, 1)) is None


def test_threads_share_a_block(node: NodeSequenceValues) -> None:
    given: list[list[int]] = [[] for _ in range(THREADS)]
    begin = Barrier(THREADS)

    def run(mine: list[int]) -> None:
        begin.wait()
        mine.extend(drawn(node) for _ in range(EACH))

    threads = [Thread(target=run, args=(mine,)) for mine in given]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    numbers = [number for mine in given for number in mine]
    assert len(set(numbers)) == THREADS * EACH
    assert all(mine == sorted(mine) for mine in given)


@pytest.mark.parametrize(
    ("code", "told"),
    [("42P01", "40001"), ("2200H", "2200H"), ("", "57P03")],
)
def test_what_a_statement_is_told_without_numbers(
    node: NodeSequenceValues, master: Master, code: str, told: str
) -> None:
    """It has done nothing; so never that its outcome is unknown (T5)."""

    def answers() -> Outcome:
        if not code:
            raise OutcomeUnknown("no answer in 30 s")
        return Outcome(1, 0, 0, 0, True, code, "so it is", {})

    master.answers = answers
    with pytest.raises(LeaseholdError) as error:
        drawn(node)
    assert error.value.sqlstate == told


def test_what_is_left_of_a_block_is_given_back_once_and_handed_out_no_more(
    node: NodeSequenceValues, master: Master
) -> None:
    """Before ALTER SEQUENCE: the next number would be behind the block otherwise."""
    for _ in range(3):
        drawn(node)
    told: list[Any] = []

    def back(request: ChangeRequest, *_: Any) -> Outcome:
        told.append(request.operations[0].values)
        raise OutcomeUnknown("nobody has heard of it", request_id=b"")

    taking, node._submit = node._submit, back
    node.give_back(Found(SEQUENCE, 2))
    assert not told, "it is a block of another epoch"
    node.give_back(Found(SEQUENCE, 1))
    node.give_back(Found(SEQUENCE, 1))
    last = BLOCK_VALUES
    assert told == [{"back": 4, "last": last, "epoch": 1, "untouched": False, "at": 7}]
    node._submit = taking
    assert drawn(node) == BLOCK_VALUES + 1
