"""T6: a barrier is a place behind all that was answered before it was asked, whoever is master.

Each answer is judged by the simulation itself (`Simulation._judge_place`).
"""

from __future__ import annotations

import pytest

from leasehold.model.records.log import Barrier
from tests.simulation.harm import Harm
from tests.simulation.stage import Stage


@pytest.fixture
def stage() -> Stage:
    return Stage()


def places(stage: Stage, asked: bytes) -> list[int]:
    return [outcome.lsn for outcome in stage.results.get(asked, [])]


def test_nobody_but_a_master_writes_it(stage: Stage) -> None:
    """It leaves nothing behind: no row, no outcome, no record of its own."""
    before = stage.reference.position.lsn
    stage.pass_barrier(stage.node("r1"))
    stage.pass_barrier(stage.node("r2"))
    assert stage.reference.position.lsn == before
    log = stage.cluster.bus.read(stage.cluster.topics.log.name)
    records = [stage.codec.decode_log(message.value or b"") for message in log]
    assert not any(isinstance(record, Barrier) for record in records)


def test_t6_it_is_behind_what_is_decided_before_it(stage: Stage) -> None:
    """Asked beside writes, in one record with them or alone."""
    for number in range(12):
        write = stage.ask(stage.update(1, number)) if number % 3 else None
        asked = stage.ask({"barrier": [None]})
        if write is not None:
            answered = stage.answer(write).lsn
            stage.until(lambda asked=asked: places(stage, asked) != [], "a place")  # type: ignore[misc]
            assert places(stage, asked)[0] > answered, "it came after the write on the queue"
        stage.passing(number)
    stage.pass_barrier(stage.node("r1"))


def test_t6_of_a_deposed_master_it_is_answered_by_the_next(stage: Stage) -> None:
    """The record with the barrier lands behind the Claim of the next term, and counts nowhere."""
    epoch = stage.reference.position.epoch
    stage.scripted["m1"].fates = ["unknown"]
    stage.scripted["m1"].late_ms = 8_000
    asked = stage.ask({"barrier": [None]})
    stage.until(lambda: stage.reference.position.epoch > epoch, "the term is given up")
    assert places(stage, asked) == [], "its record has not landed"
    write = stage.settle(stage.update(1, 99))
    stage.until(lambda: places(stage, asked) != [], "an answer")
    late = stage.ask({"barrier": [None]})
    stage.until(lambda: places(stage, late) != [], "an answer")
    assert places(stage, late)[0] > write.lsn
    stage.passing(10_000)


def test_t6_an_answer_that_is_lost_with_its_master_is_asked_for_again(stage: Stage) -> None:
    asked = stage.ask({"barrier": [None]})
    stage.passing(3)
    stage.node("m1").crash()
    stage.settle(stage.update(2, 5))
    stage.ask({"barrier": [None], "id": asked})
    stage.until(lambda: places(stage, asked) != [], "an answer")


def test_the_judge_sees_a_place_that_is_too_early(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    from leasehold.replication.master.batch import Batch

    passed = Batch.pass_barrier

    def too_early(batch: Batch, *given: object) -> None:
        passed(batch, *given)  # type: ignore[arg-type]
        last = batch.draft.repeats.pop()
        early = last.outcome._replace(lsn=last.outcome.lsn - 1)
        batch.draft.repeats.append(last._replace(outcome=early))

    monkeypatch.setattr(Batch, "pass_barrier", too_early)
    with pytest.raises(Harm, match="T6"):
        stage.pass_barrier(stage.node("r1"))
