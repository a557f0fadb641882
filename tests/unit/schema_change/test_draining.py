"""What a step waits for: leases below its version (D2, D4, D7), the ledger itself (D6)."""

from __future__ import annotations

from typing import Any

from leasehold.catalog.job import Phase, Status
from leasehold.lease.commands import (
    NEVER_LATE,
    ExpireAgent,
    Holders,
    Lease,
    Release,
    SetMinVersion,
)
from leasehold.lease.ledger import ledger
from leasehold.lease.ledger.state import LedgerState, SessionRow
from leasehold.model.records.log import LedgerRun
from leasehold.schema_change.coordinator.effects import (
    LeaseAcked,
)
from tests.support.schema_change.job_story import (
    INDEX,
    OPTIONAL,
    hold,
    reach,
    ready_world,
)
from tests.support.schema_change.job_world import MS, RUN, World
from tests.support.schema_change.made_statements import create_table

# ------------------------------------------------------------------ D2, D4: who is waited for


def test_d4_drain_waits_for_a_lease_below_and_names_it() -> None:
    world = ready_world()
    hold(world, 1)
    world.ddl(OPTIONAL)
    reach(world, 0, Phase.DRAINING)
    world.until(lambda: bool(world.coordinator.blockers(1)))
    assert [(h.agent, h.version) for h in world.coordinator.blockers(1)] == [("slow", 1)]
    assert "slow" in world.coordinator.waiting_for(1)
    for _ in range(50):
        world.calm() or world.pass_time(50)
    assert world.job().phase is Phase.DRAINING
    ledger.apply(world.ledger, Release(77, NEVER_LATE, 1, 1), RUN)
    world.give(LeaseAcked(1, 2))
    reach(world, 1, Phase.PUBLISHING)
    assert world.coordinator.blockers(1) == ()


def test_d4_acknowledgement_wakes_the_waiter_at_once() -> None:
    world = ready_world()
    hold(world, 1)
    world.ddl(OPTIONAL)
    reach(world, 0, Phase.DRAINING)
    world.until(lambda: bool(world.coordinator.blockers(1)))
    while world.calm():
        pass
    assert not world.calls
    world.give(LeaseAcked(1, 2))
    assert [type(call.command) for call in world.calls] == [Holders]


def test_d4_an_acknowledgement_alone_drains_nothing() -> None:
    world = ready_world()
    hold(world, 1)
    world.ddl(OPTIONAL)
    reach(world, 0, Phase.DRAINING)
    for _ in range(20):
        world.give(LeaseAcked(1, 2))
        world.calm()
    assert world.job().phase is Phase.DRAINING


def test_d4_lease_taken_between_the_look_and_the_fence_is_waited_for() -> None:
    """An agent whose store lags may acquire v until the ledger's own min_version is raised."""
    world = ready_world()
    world.ddl(OPTIONAL)
    reach(world, 0, Phase.DRAINING)
    while not any(isinstance(call.command, SetMinVersion) for call in world.calls):
        assert world.calm()
    hold(world, 1)
    for _ in range(30):
        world.calm() or world.pass_time(20)
    assert world.job().phase is Phase.DRAINING
    assert [h.agent for h in world.coordinator.blockers(1)] == ["slow"]


def test_d7_lease_of_a_session_that_stands_still_for_a_ttl_blocks_no_longer() -> None:
    world = ready_world()
    hold(world, 1)
    world.dead.add(77)
    world.ddl(OPTIONAL)
    reach(world, 0, Phase.DRAINING)
    world.until(lambda: bool(world.coordinator.blockers(1)))
    world.settle()
    assert world.job().status is Status.SUCCEEDED
    assert 77 not in world.ledger.sessions


def test_d7_agents_in_the_way_are_expired_after_the_time_that_the_job_says() -> None:
    world = ready_world()
    hold(world, 1)
    world.ddl(OPTIONAL)
    world.control("set", cancel_blockers_after_ms=400)
    reach(world, 0, Phase.DRAINING)
    world.until(lambda: "to end" in world.coordinator.waiting_for(1))
    began = world.now_ns
    expired: list[Any] = []
    while not expired:
        assert world.now_ns - began <= 2_000 * MS
        expired = [c.command for c in world.calls if isinstance(c.command, ExpireAgent)]
        world.calm() or world.pass_time(10)
    assert world.now_ns - began >= 400 * MS
    assert [command.agent for command in expired] == ["slow"]
    world.dead.add(77)
    world.settle()
    assert world.job().status is Status.SUCCEEDED


def test_agents_in_the_way_are_waited_for_while_the_job_says_nothing() -> None:
    world = ready_world()
    hold(world, 1)
    world.ddl(OPTIONAL)
    reach(world, 0, Phase.DRAINING)
    for _ in range(300):
        assert not any(isinstance(call.command, ExpireAgent) for call in world.calls)
        world.calm() or world.pass_time(100)
    assert world.job().phase is Phase.DRAINING


def test_the_first_looks_count_and_who_stays_is_named() -> None:
    world = ready_world()
    hold(world, 1)
    world.ddl(OPTIONAL)
    reach(world, 0, Phase.DRAINING)
    began = world.now_ns
    world.until(lambda: "to end" in world.coordinator.waiting_for(1))
    assert world.coordinator.blockers(1) == ()
    world.until(lambda: bool(world.coordinator.blockers(1)))
    assert world.now_ns - began >= 100 * MS
    assert world.coordinator.waiting_for(1) == "1 leases to end, of slow"


def test_polls_back_off_and_stay_bounded() -> None:
    world = ready_world()
    hold(world, 1)
    world.ddl(OPTIONAL)
    reach(world, 0, Phase.DRAINING)
    world.until(lambda: "to end" in world.coordinator.waiting_for(1))
    asked = 0
    for _ in range(1_000):  # ten seconds
        world.pass_time(10)
        asked += sum(isinstance(call.command, Holders) for call in world.calls)
        while world.calm():
            pass
    assert 30 <= asked <= 60


def test_d2_publish_is_refused_while_a_lease_below_is_held() -> None:
    """As after a fence that was wrongly early: the ledger itself refuses, and names the holder."""
    world = ready_world()
    world.ddl(OPTIONAL)
    reach(world, 1, Phase.PUBLISHING)
    world.ledger.sessions[5] = world.ledger.sessions.get(5) or SessionRow("old", 1, False)
    world.ledger.put(5, {Lease(1, 1)})
    for _ in range(20):
        world.perform_call() or world.pass_time(50)
    assert world.job().phase is Phase.PUBLISHING
    assert [h.agent for h in world.coordinator.blockers(1)] == ["old"]
    world.ledger.put(5, ())
    world.settle()
    assert world.job().status is Status.SUCCEEDED


# ------------------------------------------------------------------ the ledger (D6)


def test_d6_ledger_away_job_waits_and_says_so() -> None:
    world = ready_world()
    world.ledger_up = False
    world.ddl(OPTIONAL)
    for _ in range(50):
        world.calm() or world.pass_time(50)
    assert world.job().phase is Phase.PUBLISHING
    assert "can't be reached" in world.coordinator.waiting_for(1)
    world.ledger_up = True
    world.settle()
    assert world.job().status is Status.SUCCEEDED


def test_d6_lost_ledger_is_seeded_from_the_log_and_its_run_id_recorded_after_the_grace() -> None:
    world = ready_world()
    assert world.catalog.ledger_run == RUN
    world.ddl(INDEX)
    reach(world, 0, Phase.DRAINING)
    world.ledger, world.run_id = LedgerState(), "run-2"
    began = world.now_ns
    world.until(lambda: world.catalog.ledger_run == "run-2")
    assert world.now_ns - began >= 100 * 1_000_000, "one TTL"
    world.settle()
    assert world.job().status is Status.SUCCEEDED
    assert world.ledger.tables[1].current == world.table().version


def test_d6_record_of_the_run_id_is_a_write_of_no_job() -> None:
    world = World(agents=0)
    world.until(lambda: any(isinstance(w, LedgerRun) for ws in world.log for w in ws))


def test_new_tables_are_made_known_to_the_ledger() -> None:
    world = ready_world()
    for name in "uvw":
        world.ddl(create_table(name))
    world.until_ready()
    assert sorted(world.ledger.tables) == [1, 2, 3, 4]
    world.takeover()
    world.until_ready()
    assert sorted(world.ledger.tables) == [1, 2, 3, 4]


def test_deposed_master_drives_nothing() -> None:
    world = ready_world()
    world.ddl(OPTIONAL)
    world.ledger.epoch = 9
    for _ in range(50):
        world.calm() or world.pass_time(50)
    assert world.coordinator.ledger.epoch_lost == 9
    assert world.job().phase is Phase.PUBLISHING
    assert "another node is master" in world.coordinator.waiting_for(1)


def test_d2_d6_a_ledger_seeded_from_before_the_descriptor_hears_of_it() -> None:
    """It forgot between the publish and the descriptor's commit: without being told once more it
    would refuse leases on the new version for ever, and those on the old one would never end."""
    world = ready_world()
    hold(world, 1)
    world.ddl(OPTIONAL)
    reach(world, 0, Phase.DRAINING)
    assert world.ledger.tables[1].current == 2
    world.ledger.tables[1] = world.ledger.tables[1]._replace(current=1)
    world.until(lambda: world.ledger.tables[1].current == 2)
    assert world.job().phase is Phase.DRAINING
    world.dead.add(77)
    world.settle()
    assert world.job().status is Status.SUCCEEDED


def test_d2_d6_also_when_nobody_holds_a_lease() -> None:
    world = ready_world()
    world.ddl(OPTIONAL)
    reach(world, 0, Phase.DRAINING)
    world.ledger.tables[1] = world.ledger.tables[1]._replace(current=1)
    world.settle()
    assert world.job().status is Status.SUCCEEDED
