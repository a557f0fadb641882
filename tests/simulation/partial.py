"""Interleavings with a partial replica: r2 holds the table t, and u is another one (C7)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from leasehold.catalog.part import HeldTable, Part
from leasehold.in_process.node import MemoryNode
from leasehold.replication.acknowledging import PART_TOLD_EVERY_S
from leasehold.replication.coherency import CoherencySettings
from tests.simulation.plan import SHAPE
from tests.simulation.simulation import MS, SECOND
from tests.simulation.stage import Stage

HOLDS_T: Final = {"r2": Part.of([HeldTable(1, "t")])}
CUT_OFF_MS: Final = 3_000
LONGER_MS: Final = 2_000
"""A lease that a takeover is over before."""


def partial_stage(**shape: Any) -> Stage:
    """Return a stage on which both replicants are coherent."""
    stage = Stage(HOLDS_T, **shape)
    stage.settle({"sql": "create table u (id bigint primary key, a bigint not null)"})
    stage.until(lambda: len(stage.coherent()) == 2, "both replicants")
    return stage


def write_u(key: int) -> dict[str, Any]:
    return {"table": "u", "op": "insert", "key": {"id": key}, "values": {"a": 1}}


def cut_r2_off(stage: Stage) -> None:
    """Cut it off with a lease that has just been renewed."""
    node = stage.node("r2")
    stage.until(_has_lease(node, 470), "a new lease")
    node.isolate(stage.scheduler.now_ns + CUT_OFF_MS * MS)


def _has_lease(node: MemoryNode, left_ms: int) -> Callable[[], bool]:
    """Return whether the node's lease lasts so long."""

    def has() -> bool:
        assert node.node is not None, "it is up"
        return node.node.lease.until_ns - node.now().mono_ns > left_ms * MS

    return has


def a_write_while_the_part_is_cut_off() -> None:
    """Of t it waits for the last lease of r2; of u, behind it, too, for the order of the log."""
    stage = partial_stage()
    cut_r2_off(stage)
    first = stage.ask(stage.update(1, 11))
    stage.passing(20)
    second = stage.ask(write_u(1))
    stage.answer(first)
    stage.answer(second)


def a_table_is_emptied_while_its_part_is_cut_off() -> None:
    """No row changes: the record has a catalog write alone."""
    stage = partial_stage()
    cut_r2_off(stage)
    stage.settle({"sql": "truncate t"})


def a_part_starts_again_with_everything() -> None:
    """What its incarnation of before has said is not true of this one."""
    stage = partial_stage()
    node = stage.node("r2")
    node.crash()
    stage.stores.put("r2", stage.stores.get("r1").copy())
    node.start()
    stage.until(lambda: "r2" in stage.coherent(), "r2")
    stage.settle(write_u(1))
    cut_r2_off(stage)
    stage.settle(write_u(2))


def a_part_is_told_to_a_new_master() -> None:
    """m1 has written to t and dies before it answers. r2 hears nothing of it, and says what it
    holds to m2 while the lease of m1's still runs."""
    longer = replace(SHAPE.master, coherency=CoherencySettings(duration_ms=LONGER_MS))
    stage = partial_stage(election_timeout_ms=300, master=longer)
    node = stage.node("r2")
    stage.until(
        lambda: node.node is not None and node.node.lease.until_ns - node.now().mono_ns > 480 * MS,
        "a new lease",
    )
    assert node.node is not None, "it is up"
    before = stage.reference.position.lsn
    stage.scripted["r2"].deliver_ms = 2 * LONGER_MS
    stage.ask(stage.update(1, 11))
    stage.until(lambda: stage.reference.position.lsn > before, "the record")
    stage.node("m1").crash()
    stage.until(lambda: stage.master is not None, "m2")
    node.node.acknowledger._part_told_ns -= PART_TOLD_EVERY_S * SECOND
    node.node.acknowledger._acked_ns -= SECOND  # it acknowledges now, before its lease ends
    node.driver.tick_soon()
    stage.passing(2 * LONGER_MS)
