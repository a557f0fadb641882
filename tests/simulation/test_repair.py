"""A node repairs its entries when it is told to, and only then; while writes go on."""

from __future__ import annotations

import pytest

from leasehold.admin.repairs import proof_of
from leasehold.admin.sliced_check import SlicedCheck
from leasehold.model.records.acks import CheckReport
from leasehold.model.records.log import Barrier, CheckSlice
from tests.simulation.stage import Stage

TABLE = 1


def reports_on(stage: Stage, subject: bytes) -> list[CheckReport]:
    """What every node has to say of it."""
    topics = stage.cluster.topics

    def told() -> list[CheckReport]:
        acks = stage.cluster.bus.read(topics.acks.name, 0, 0)
        records = (stage.codec.decode(message.value or b"") for message in acks)
        return [r for r in records if isinstance(r, CheckReport) and r.subject == subject]

    stage.until(lambda: len(told()) == len(stage.cluster.nodes), "every node's report")
    return told()


def checked(stage: Stage, repair: str = "", part: CheckSlice | None = None) -> list[CheckReport]:
    """A check by every node, of which one may repair."""
    return reports_on(stage, stage.ask({"barrier": [TABLE, repair, part]}))


def test_a_check_is_done_once_however_often_it_is_asked_for(stage: Stage) -> None:
    """The same id is one barrier, by another master, too; each asking is answered."""
    asked = stage.ask({"barrier": [TABLE]})
    offsets = {report.offset for report in reports_on(stage, asked)}
    assert len(offsets) == 1, "one position for all nodes"
    first = stage.answer(asked)
    stage.cluster.nodes["m1"].crash()
    stage.settle(stage.update(1, 40))
    stage.results.clear()
    assert stage.settle({"barrier": [TABLE], "id": asked}) == first
    stage.passing(500)
    assert {report.offset for report in reports_on(stage, asked)} == offsets


def test_a_barrier_that_an_older_replica_appends_is_taken(stage: Stage) -> None:
    barrier = Barrier(stage.cluster.fresh_id(), TABLE)
    stage.cluster.bus.append(stage.cluster.topics.log.name, 0, b"", stage.codec.encode(barrier))
    assert len({report.offset for report in reports_on(stage, barrier.id)}) == 1


@pytest.fixture
def stage() -> Stage:
    made = Stage()
    made.settle({"sql": "create index i on t (a)"})
    made.until(lambda: all(j.status.ended for j in made.reference.catalog.jobs.values()), "i")
    return made


@pytest.mark.parametrize("damaged", ["m1", "m2", "r1"])
def test_entries_are_put_right_on_the_node_that_is_told(stage: Stage, damaged: str) -> None:
    store = stage.stores.get(damaged)
    lost = next(entry for entry in store.contents.entries if entry[3] == (1,))
    for held in (store._committed, store._now):  # a master has a transaction open
        held.entries.discard(lost)
        held.entries.add((*lost[:2], (99,), (7,)))
    proof = proof_of(checked(stage))
    assert proof == ((damaged,), ())
    assert proof_of(checked(stage)).nodes == (damaged,), "looking changes nothing"
    other = next(name for name in stage.cluster.nodes if name != damaged)
    assert {r.repaired for r in checked(stage, other)} == {-1, 0}, "nothing to do there"
    assert proof_of(checked(stage)).nodes == (damaged,)
    stage.ask(stage.update(2, 22))
    (done,) = (r for r in checked(stage, damaged) if r.node == damaged)
    assert done.repaired == 2
    again = checked(stage)
    assert {r.findings_total for r in again} == {0}
    assert len({r.checksum for r in again}) == 1
    stage.settle(stage.update(1, 12))


def test_a_row_that_differs_is_no_repair(stage: Stage) -> None:
    held = stage.stores.get("r1")._committed
    held.pairs[TABLE, (1,)] = {**held.pairs[TABLE, (1,)], 2: 1_000}
    proof = proof_of(checked(stage))
    assert proof.nodes == ()
    assert "its rows are not those of" in proof.reasons[0]


def test_a_check_in_slices_is_one_barrier_each_while_writes_go_on(stage: Stage) -> None:
    table = stage.reference.catalog.newest(TABLE)
    check, offsets = SlicedCheck(table, list(stage.cluster.nodes), 10), []
    while (part := check.wanted) is not None:
        stage.ask(stage.update(1, 30 + check.slices))
        reports = checked(stage, part=part)
        assert len({report.offset for report in reports}) == 1, "one position for all nodes"
        offsets.append(reports[0].offset)
        check.take(reports)
    assert check.verdict() == []
    assert check.slices == 2, "the rows, and the index"
    assert offsets == sorted(set(offsets)), "each at a position of its own"
    assert set(check.rows.values()) == {2}
