"""Disks, power and the broker: what befalls a machine costs time, and nothing that was promised.

The simulation judges each step: who answers reads has all that was answered, a node goes on after
no write that has failed, and in the end all stores are what the log implies.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest

from leasehold.in_process.bus import MemoryBus, Scheduler
from leasehold.model.errors import DiskNearlyFull
from leasehold.model.topics import MESSAGE_BYTES_MAX
from leasehold.replication.node import Node
from tests.simulation.disks import RESERVE_BYTES, Trouble
from tests.simulation.harm import Harm
from tests.simulation.menu import Menu
from tests.simulation.plan import EARLIER, STEERED_FROM, WORKLOADS, plan_of
from tests.simulation.simulation import MS, Simulation
from tests.simulation.stage import Stage
from tests.simulation.steering import Steering
from tests.simulation.workloads import SchemaChanger, Workload

REFUSES = [Trouble.FULL, Trouble.SYNC_FAILS]


def is_back(stage: Stage, name: str) -> Callable[[], bool]:
    return lambda: name in stage.coherent() and stage.row(1)[2] == 11


def is_down(stage: Stage, name: str) -> Callable[[], bool]:
    return lambda: not stage.node(name).up


@pytest.mark.parametrize("trouble", REFUSES, ids=lambda trouble: trouble.name)
def test_a_node_whose_disk_takes_no_write_stops_and_comes_back(trouble: Trouble) -> None:
    stage = Stage()
    asked = stage.ask(stage.update(1, 11))
    stage.disks.of("r1").trouble = trouble
    stage.until(lambda: not stage.node("r1").up, "r1 to stop")
    stage.answer(asked)
    stage.disks.of("r1").trouble = Trouble.NONE
    stage.until(is_back(stage, "r1"), "r1")


@pytest.mark.parametrize("trouble", REFUSES, ids=lambda trouble: trouble.name)
def test_a_master_whose_disk_takes_no_write_is_followed_by_another(trouble: Trouble) -> None:
    stage = Stage()
    before = stage.master
    assert before is not None
    stage.disks.of(before.settings.name).trouble = trouble
    stage.settle(stage.update(1, 11))
    assert stage.master is not before
    stage.disks.of(before.settings.name).trouble = Trouble.NONE
    stage.until(lambda: before.up, "it to start again")
    stage.settle(stage.update(2, 22))


def test_a_node_that_goes_on_after_a_failed_write_is_found() -> None:
    """The check sees it: what it tells afterwards it might not have."""
    stage = Stage()
    kept = Node.stop

    def goes_on(node: Node, error: Any) -> list[Any]:
        node._store.rollback()
        node._open = False
        return []

    stage.disks.of("r1").trouble = Trouble.SYNC_FAILS
    stage.ask(stage.update(1, 11))
    with patch.object(Node, "stop", goes_on), pytest.raises(Harm, match=r"^disk: r1 goes on"):
        stage.passing(500)
    assert Node.stop is kept


def test_what_was_synced_in_vain_may_be_there_all_the_same() -> None:
    """The next process finds one state or the other, and goes on from either."""
    found = set()
    for seed in range(8):
        stage = Stage()
        disk = stage.disks.of("r1")
        disk._rng = random.Random(seed)
        disk.trouble = Trouble.SYNC_FAILS
        stage.settle(stage.update(1, 11))
        stage.until(is_down(stage, "r1"), "r1 to stop")
        found.add(disk.found is not None)
        disk.trouble = Trouble.NONE
        stage.until(is_back(stage, "r1"), "r1")
    assert found == {False, True}


def test_a_power_cut_takes_the_last_commits_and_the_log_brings_them_back() -> None:
    stage = Stage()
    for value in range(20):
        stage.settle(stage.update(1, value))
    node, disk = stage.node("r1"), stage.disks.of("r1")
    had = stage.stores.get("r1").position().offset
    node.crash()
    disk._rng = random.Random(1)
    assert disk.cut_power() > 3
    assert disk.found is not None
    assert disk.found.position.offset < had
    stage.restart("r1")
    assert node.node is not None
    assert node.node.position.offset < had
    stage.settle(stage.update(1, 11))
    stage.until(is_back(stage, "r1"), "r1")


def test_a_master_refuses_what_needs_room_and_a_node_without_room_leaves() -> None:
    stage = Stage(disk_reserve_bytes=RESERVE_BYTES)
    stage.machines.watch_disks()
    master = stage.master
    assert master is not None
    name = master.settings.name
    stage.disks.of(name).trouble = Trouble.SHORT
    stage.passing(1_500)
    assert stage.settle(stage.update(1, 11)).code == DiskNearlyFull.sqlstate
    assert stage.settle({"table": "t", "op": "delete", "key": {"id": 2}}).lsn
    stage.disks.of(name).trouble = Trouble.OUT
    stage.until(lambda: not master.up, "it to leave")
    stage.until(lambda: stage.master is not None, "another master")
    stage.settle(stage.update(1, 11))
    assert not master.up, "it waits for room"
    stage.disks.of(name).trouble = Trouble.NONE
    stage.until(lambda: master.up, "it to start again")


def test_the_broker_is_away_for_all_and_nothing_is_lost() -> None:
    """Longer than an append waits: the master gives its epoch up, and somebody claims the next."""
    stage = Stage()
    stage.cluster.bus.be_away(stage.scheduler.now_ns + 3_000 * MS)
    asked = [stage.ask(stage.update(1, value)) for value in (1, 11)]
    assert not stage.coherent() or stage.comes_true(lambda: not stage.coherent())
    for each in asked:
        stage.answer(each)
    stage.until(lambda: len(stage.coherent()) == 2, "both")
    assert stage.row(1)[2] == 11


def test_what_waits_for_the_broker_goes_in_the_order_in_which_it_came() -> None:
    scheduler = Scheduler()
    bus = MemoryBus(scheduler)
    read: list[bytes] = []
    bus.subscribe("t", 0, 0, lambda message: read.append(message.key), lambda: 5)
    bus.append("t", 0, b"0", None)
    bus.be_away(scheduler.now_ns + 10)
    bus.once_there(lambda: bus.append("t", 0, b"1", None))
    scheduler.run_until(scheduler.now_ns + 7)
    assert bus.is_away
    bus.be_away(scheduler.now_ns + 10)
    bus.once_there(lambda: bus.append("t", 0, b"2", None))
    scheduler.run_until(scheduler.now_ns + 9)
    assert (read, bus.end("t")) == ([], 1)
    scheduler.run_until(scheduler.now_ns + 20)
    assert read == [b"0", b"1", b"2"]
    bus.once_there(lambda: bus.append("t", 0, b"3", None))
    assert bus.end("t") == 4


def test_the_broker_takes_no_record_that_is_too_large() -> None:
    """Its sender is told, and stays no master."""
    stage = Stage()
    master = stage.master
    assert master is not None
    failed: list[str] = []
    kept = Node._append_failed

    def note(node: Node, reason: str, now: Any) -> list[Any]:
        failed.append(reason)
        return kept(node, reason, now)

    end = stage.cluster.bus.end(stage.cluster.topics.log.name)
    with patch.object(Node, "_append_failed", note):
        master.driver.append(bytes(MESSAGE_BYTES_MAX + 1))
        stage.until(lambda: bool(failed), "it to be told")
    sizes = [
        len(message.value or b"")
        for message in stage.cluster.bus.read(stage.cluster.topics.log.name, 0, end)
    ]
    assert max(sizes, default=0) <= MESSAGE_BYTES_MAX
    assert "more than the broker takes" in failed[0]
    assert stage.settle(stage.update(1, 11)).lsn


def test_runs_leave_kinds_of_faults_and_workloads_out_and_each_has_some() -> None:
    """Swarm testing: what a seed has is drawn by the seed."""
    kinds, workloads, machines, parts, tables = set(), set(), set(), set(), set()
    for seed in range(10_000, 10_100):
        plan = plan_of(seed)
        workloads.add(tuple(kind.__name__ for kind, _ in plan.workloads))
        machines.add(plan.machines)
        parts.add(bool(plan.some_tables))
        tables.add(bool(plan.tables))
        if seed < 10_030:
            sim = Simulation(seed, plan)
            kinds.add(tuple(sorted(fault.__name__ for _, fault in sim.chaos._faults)))
            kinds.add(tuple(sorted(kind.__name__ for kind in sim.machines._kinds)))
    assert machines == parts == tables == {False, True}
    assert len(workloads) > 15
    assert len(kinds) > 30
    for seed in EARLIER:
        assert plan_of(seed).workloads == WORKLOADS
        assert not plan_of(seed).machines


def test_who_steers_jobs_is_alone_with_them_and_comes_late() -> None:
    """What seeds do that are named somewhere stays what it is."""

    def kinds_of(seed: int) -> set[type[Workload]]:
        return {kind for kind, _ in plan_of(seed).workloads}

    after = [kinds_of(seed) for seed in range(STEERED_FROM, STEERED_FROM + 60)]
    steered = [kinds for kinds in after if Steering in kinds]
    assert 0 < len(steered) < len(after) / 2
    assert not any(kinds & {Menu, SchemaChanger} for kinds in steered)
    before = range(STEERED_FROM - 60, STEERED_FROM)
    assert not any(Steering in kinds_of(seed) for seed in before)
