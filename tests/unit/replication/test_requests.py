"""What becomes of one request and of a batch (L3, L8, T0, T1), where that is decided."""

from __future__ import annotations

from typing import Any, Final

import pytest

from leasehold.model.errors import LeaseholdError, StoreCorrupted, StoreUnwritable
from leasehold.model.ids import genid
from leasehold.model.records.log import ChangeKind
from leasehold.replication.effects import (
    Topic,
)
from leasehold.replication.master.batch_limits import BatchSettings
from tests.models.mutants.transaction import VerifyRules, broken
from tests.support.replication.world import TABLE, World, insert, update


def test_l3_refusals_are_in_the_log_and_queues_go_on_behind_them(world: World) -> None:
    world.raw(b"not json")
    world.put(insert(1, a="wrong type"))
    good = world.put(insert(2, a=2))
    world.tick()
    world.pump()
    world.tick()
    record = world.decided()[-1]
    assert [refusal.code for refusal in record.refusals] == ["08P01", "22P02"]
    assert record.decided_through == {"requests": 4}
    assert world.answers(good)[0].lsn == 2


@pytest.mark.parametrize(
    ("broken", "request_"),
    [
        ("leasehold.replication.master.batch.verify", insert(1, a=1)),
        ("leasehold.schema_change.plan.statement_batch.plan", {"sql": "create index i on t (a)"}),
    ],
)
def test_l3_a_defect_that_one_request_meets_does_not_hold_up_the_rest(
    world: World, broken: str, request_: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would meet every master after this one too."""

    def defect(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a defect")

    with monkeypatch.context() as patch:
        patch.setattr(broken, defect)
        met = world.ask(request_)
    assert (met.code, met.final, met.dead_lettered) == ("XX000", True, True)
    assert "ZeroDivisionError" in met.message
    assert world.ask(insert(2, a=2)).lsn == 2


@pytest.mark.parametrize(
    ("failing", "request_"),
    [
        ("leasehold.replication.master.batch.verify", insert(1, a=1)),
        ("leasehold.schema_change.plan.statement_batch.plan", {"sql": "create index i on t (a)"}),
    ],
)
@pytest.mark.parametrize("error", [StoreUnwritable, StoreCorrupted])
def test_l6_a_store_that_fails_is_no_requests_fault(
    world: World,
    failing: str,
    request_: dict[str, Any],
    error: type[LeaseholdError],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The node stops: its store may have half of what it was to put."""

    def fail(*_: object, **__: object) -> None:
        raise error("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(failing, fail)
        asked = world.put(request_)
        world.tick()
    assert isinstance(world.node.stopped, error)
    assert not world.answers(asked)


def test_l8_what_does_not_fit_waits_for_the_next_record() -> None:
    world = World(BatchSettings(record_bytes_max=8_000, large_bytes_max=8_000))
    world.ask({"sql": TABLE})
    numbers = [world.put(insert(n, b="x" * 2_500)) for n in range(5)]
    for _ in range(4):
        world.tick()
        world.pump()
    world.tick()
    assert [world.answers(n)[0].lsn for n in numbers] == [2, 3, 4, 5, 6]
    sizes = [len(data) for data in world.log]
    assert max(sizes) <= 8_000
    assert len([record for record in world.decided() if record.commits]) == 4


def test_l8_what_can_never_fit_is_refused_and_holds_nobody_up() -> None:
    world = World(BatchSettings(record_bytes_max=8_000, large_bytes_max=8_000))
    world.ask({"sql": TABLE})
    too_large = world.put(insert(1, b="x" * 9_000))
    good = world.put(insert(2, b="x"))
    for _ in range(3):
        world.tick()
        world.pump()
    world.tick()
    assert world.answers(too_large)[0].code == "54000"
    assert world.answers(good)[0].lsn == 2


def test_t0_the_master_composes_from_its_own_row(world: World) -> None:
    """A writer of one column does not revert another's, whatever it has seen."""
    world.ask(insert(1, a=1, b="one"))
    world.ask(update(1, b="two"))
    world.ask(update(1, a=2))
    assert world.row(world.node, 1) == {1: 1, 2: 2, 3: "two"}
    assert world.row(world.follower, 1) == world.row(world.node, 1)


def test_t1_a_row_that_is_not_the_one_seen_refuses(world: World) -> None:
    lsn = world.ask(insert(1, a=1)).lsn
    world.ask(update(1, a=2))
    refused = world.ask({**update(1, expect=genid(lsn, 0), a=3), "on_conflict": "fail"})
    assert (refused.code, refused.final) == ("40001", True)
    assert world.row(world.node, 1) == {1: 1, 2: 2}


COMPUTED: Final = {"expr": "a + 1"}


DELETE: Final = {"table": "t", "op": "delete", "key": {"id": 1}, "expect": 99}


RESTS_ON_IT: Final[dict[str, dict[str, Any]]] = {
    "a constant": update(1, expect=99, a=3),
    "a constant beside an expression": update(1, expect=99, a=COMPUTED, b="x"),
    "an upsert": {**update(1, expect=99, a=3), "op": "upsert"},
    "a delete": DELETE,
    "a constant by lock": update(1, expect={"row": 99}, a=3),
    "one of several": {"transaction": [update(1, expect=99, a=COMPUTED), DELETE]},
    "a guard of others": {"transaction": [update(1, expect=99), insert(3, a=3)]},
}


RECOMPUTED: Final[dict[str, dict[str, Any]]] = {
    "an expression": update(1, expect=99, a=COMPUTED),
    "beside an insert": {"transaction": [insert(3, a=3), update(1, expect=99, a=COMPUTED)]},
    "beside what expects nothing": {
        "transaction": [update(2, a=7), update(1, expect=99, a=COMPUTED)]
    },
    "beside a row that only has to be there": {
        "transaction": [update(2, expect=0, a=7), update(1, expect=99, a=COMPUTED)]
    },
}


@pytest.mark.parametrize("name", RESTS_ON_IT)
def test_t1_what_rests_on_the_row_as_it_was_seen_is_not_retried(world: World, name: str) -> None:
    """Goal: without a word on conflicts (`retry`) an outdated constant is never written over a
    newer row; its sender is told at once, with what it takes to look again."""
    lsn = world.ask({"transaction": [insert(1, a=1), insert(2, a=2)]}).lsn
    refused = world.ask(RESTS_ON_IT[name])
    assert (refused.code, refused.final, refused.dead_lettered) == ("40001", True, True)
    seen = refused.detail["genid"]
    assert seen == ({"row": genid(lsn, 0)} if name == "a constant by lock" else genid(lsn, 0))
    assert world.row(world.node, 1) == {1: 1, 2: 1}
    assert not [s for s in world.sent if s.topic == Topic.CONFLICTS]
    assert world.ask(update(1, expect=seen, a=3)).lsn, "as it is now, it is what was seen"


@pytest.mark.parametrize("name", RECOMPUTED)
def test_what_is_computed_anew_of_the_newest_row_is_retried(world: World, name: str) -> None:
    world.ask({"transaction": [insert(1, a=1), insert(2, a=2)]})
    refused = world.ask(RECOMPUTED[name])
    assert (refused.code, refused.final, refused.lsn) == ("40001", False, 0)
    assert len([s for s in world.sent if s.topic == Topic.CONFLICTS]) == 1


def test_t1_off_a_stale_writer_overwrites() -> None:
    world = World()
    world.ask({"sql": TABLE})
    lsn = world.ask(insert(1, a=1)).lsn
    world.ask(update(1, a=2))
    with broken(VerifyRules(genids_are_verified=False)):
        assert world.ask(update(1, expect=genid(lsn, 0), a=3)).lsn
    assert world.row(world.node, 1) == {1: 1, 2: 3}


def test_one_request_is_all_or_nothing_and_sees_its_own_changes(world: World) -> None:
    many = [insert(1, a=1), update(1, a={"expr": "a + 1"}), insert(2, a=2)]
    assert world.ask({"transaction": many}).rows_affected == 3
    assert world.row(world.follower, 1) == {1: 1, 2: 2}
    twice = world.ask({"transaction": [insert(3, a=3), insert(1, a=9)]})
    assert twice.code == "23505"
    assert world.row(world.node, 3) is None
    kinds = [change.kind for change in world.commits()[-1].changes]
    assert kinds == [ChangeKind.INSERT, ChangeKind.UPDATE, ChangeKind.INSERT]


def test_an_update_or_delete_of_no_row_affects_none(world: World) -> None:
    assert world.ask(update(9, a=1)).rows_affected == 0
    gone = {"table": "t", "op": "delete", "key": {"id": 9}, "values": {}}
    assert world.ask(gone).rows_affected == 0


def test_expect_zero_means_the_row_whatever_its_genid(world: World) -> None:
    world.ask(insert(1, a=1))
    assert world.ask(update(1, expect=0, a=2)).lsn
    assert world.ask({**update(9, expect=0, a=2), "on_conflict": "fail"}).code == "40001"


def test_an_insert_may_hold_its_key_among_its_values(world: World) -> None:
    assert world.ask({"table": "t", "op": "insert", "values": {"id": 4, "a": 4}}).lsn
    assert world.row(world.follower, 4) == {1: 4, 2: 4}
    assert world.ask({"table": "t", "op": "insert", "values": {"a": 4}}).code == "08P01"


def test_upsert_is_either(world: World) -> None:
    upsert = {**insert(1, a=1), "op": "upsert"}
    world.ask(upsert)
    world.ask({**upsert, "values": {"b": "x"}})
    assert world.row(world.follower, 1) == {1: 1, 2: 1, 3: "x"}
