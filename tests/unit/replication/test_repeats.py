"""A request that is asked again has one outcome (L5), also after refused attempts (R1)."""

from __future__ import annotations

from leasehold.model.ids import request_id
from leasehold.model.records.requests import Outcome
from leasehold.replication.log.apply import COLLECT_EVERY_RECORDS
from leasehold.replication.outcomes import OutcomeSettings
from tests.support.replication.world import TABLE, WALL_MS, World, insert, update


def test_l5_the_same_id_gets_the_same_answer_and_is_applied_once(world: World) -> None:
    first = world.ask(insert(1, a=5))
    number = world.put(update(1, a={"expr": "a + 1"}))
    world.tick()
    world.pump()
    world.tick()
    again = world.ask(update(1, a={"expr": "a + 1"}), number)
    assert again == world.answers(number)[0]
    assert again.rows_affected == 1
    assert world.row(world.node, 1) == {1: 1, 2: 6}
    assert first.lsn + 1 == again.lsn


def test_l5_twice_in_one_batch_is_once(world: World) -> None:
    number = world.fresh_id()
    world.put(insert(1, a=1), number)
    world.put(insert(1, a=1), number)
    world.tick()
    world.pump()
    world.tick()
    first, second = world.answers(number)
    assert first == second
    assert first.lsn == 2


def test_l5_a_refused_attempt_is_followed_only_by_the_next(world: World) -> None:
    world.ask(insert(1, a=1))
    number = world.fresh_id()
    stale = {**update(1, expect=99, a={"expr": "a + 1"}), "on_conflict": "retry"}
    assert world.ask(stale, number).attempt == 1
    assert world.ask({**stale, "attempt": 3}, number).attempt == 1
    assert world.ask({**update(1, a=2), "attempt": 2}, number).lsn == 3


def asked_again_after_the_memory_ended(outcomes: OutcomeSettings) -> tuple[Outcome, int]:
    """An increment, asked again under its id when its outcome was collected; → answer, value."""
    world = World(outcomes=outcomes)
    world.ask({"sql": TABLE})
    world.ask(insert(1, a=0))
    number = world.fresh_id()
    add_one = update(1, a={"expr": "a + 1"})
    assert world.ask(add_one, number).lsn == 3
    for _ in range(3 * COLLECT_EVERY_RECORDS):
        world.ms += 200
        world.ask(update(1, b="x"))
    assert world.node._store.outcome(number) is None
    again = world.ask(add_one, number)
    row = world.row(world.node, 1)
    assert row is not None
    return again, row[2]


def test_l5_what_is_too_old_to_be_remembered_is_not_decided_again() -> None:
    """A resent record carries a new Kafka timestamp, so the id's own time has to tell."""
    again, value = asked_again_after_the_memory_ended(
        OutcomeSettings(horizon_ms=5_000, ahead_ms_max=1_000)
    )
    assert (again.code, again.lsn, value) == ("LH001", 0, 1)


def test_l5_l9_a_clock_that_jumps_forth_and_back_has_nothing_decided_twice() -> None:
    """The log's time goes along and does not come back; what is remembered goes by neither."""
    world = World(outcomes=OutcomeSettings(horizon_ms=5_000, ahead_ms_max=1_000))
    world.ask({"sql": TABLE})
    world.ask(insert(1, a=0))
    number = world.fresh_id()
    add_one = update(1, a={"expr": "a + 1"})
    assert world.ask(add_one, number).lsn == 3
    world.wall_off_ms = 60_000
    for _ in range(3 * COLLECT_EVERY_RECORDS):
        world.put(update(1, b="x"), request_id(WALL_MS + world.ms + 60_000, world.random_bytes()))
        world.tick()
        world.pump()
    assert world.node.position.commit_us > (WALL_MS + world.ms + 50_000) * 1_000
    world.wall_off_ms = 0
    again = world.ask(add_one, number)
    row = world.row(world.node, 1)
    assert (again.code, again.lsn, row and row[2]) == ("", 3, 1)


def test_l5_an_id_that_is_ahead_is_remembered_until_it_is_old() -> None:
    """It was taken nearly a second early, so it is too old nearly a second late."""
    world = World(outcomes=OutcomeSettings(horizon_ms=5_000, ahead_ms_max=1_000))
    world.ask({"sql": TABLE})
    world.ask(insert(1, a=0))
    add_one = update(1, a={"expr": "a + 1"})
    number = request_id(WALL_MS + world.ms + 900, world.random_bytes())
    assert world.ask(add_one, number).lsn == 3
    while world.node._store.outcome(number) is not None:
        world.ms += 5
        world.ask(update(1, b="x"))
    again = world.ask(add_one, number)
    row = world.row(world.node, 1)
    assert (again.code, row and row[2]) == ("LH001", 1)


def test_l5_off_it_is_applied_a_second_time() -> None:
    forgetful = OutcomeSettings(horizon_ms=5_000, ahead_ms_max=1_000, ids_own_time_counts=False)
    again, value = asked_again_after_the_memory_ended(forgetful)
    assert again.lsn
    assert value == 2


def test_r1_giving_up_is_decided_and_final(world: World) -> None:
    world.ask(insert(1, a=1))
    number = world.fresh_id()
    world.ask({**update(1, expect=99, a={"expr": "a + 1"}), "on_conflict": "retry"}, number)
    given_up = world.ask({**update(1, a=2), "attempt": 2, "give_up": True}, number)
    assert (given_up.final, given_up.dead_lettered, given_up.code) == (True, True, "40001")
    assert world.ask({**update(1, a=2), "attempt": 3}, number) == given_up
    assert world.row(world.node, 1) == {1: 1, 2: 1}
