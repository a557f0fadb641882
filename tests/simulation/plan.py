"""What the run of a seed is: its cluster, its workloads, how long it takes and how rough it is."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from leasehold.catalog.part import Part
from leasehold.in_process.cluster import ClusterShape
from leasehold.lease.agent.session import HolderLimits
from leasehold.model.time_units import NS_PER_MS
from leasehold.replication.fast_path.log import FastLogSettings
from leasehold.replication.fast_path.own_appends import OwnAppendsSettings
from leasehold.replication.fast_path.requests import FastRequestSettings
from leasehold.replication.log.retention import HistorySettings
from leasehold.replication.log.truncation import TruncationSettings
from leasehold.replication.master.backfill_pacing import BackfillSettings
from leasehold.replication.master.batch_limits import BatchSettings
from leasehold.replication.master.schema_changes import SchemaSettings
from leasehold.replication.master.settings import MasterSettings
from leasehold.schema_change.coordinator.coordinator import CoordinatorSettings
from leasehold.schema_change.coordinator.ledger import LedgerSideSettings
from leasehold.schema_change.coordinator.sliced_verification import WalkSettings
from tests.simulation.disks import RESERVE_BYTES
from tests.simulation.many_tables import ManyTables
from tests.simulation.menu import Menu
from tests.simulation.steering import Steering
from tests.simulation.workloads import (
    Bank,
    Barriers,
    Increments,
    Items,
    SchemaChanger,
    Workload,
)

TTL_MS: Final = 1_200

SHAPE: Final = ClusterShape(
    database="sim",
    candidates=2,
    replicants=2,
    subscribers=1,
    election_timeout_ms=700,
    schema=SchemaSettings(
        CoordinatorSettings(
            verification_ms=3_000,
            ledger=LedgerSideSettings(session_ttl_ms=TTL_MS, look_ms=300, look_again_ms=50),
            walk=WalkSettings(whole_max=4, rows_max=4),
        )
    ),
    leases=HolderLimits(
        session_ttl_ns=TTL_MS * NS_PER_MS,
        renew_every_ns=TTL_MS * NS_PER_MS // 3,
        margin_ns=50 * NS_PER_MS,
        retry_after_ns=100 * NS_PER_MS,
    ),
)
FAST_LOG: Final = FastLogSettings(
    silence_ms=150, row_min=2, late_ms=20, trust_ms=1_000, pause_ms=20, pause_ms_max=500
)
"""The fast way of the log, taken and left often: a hop takes up to 2 ms, and writes come tens of ms
apart."""


OWN_APPENDS: Final = OwnAppendsSettings(silence_ms=100, row_min=2, pause_ms=20, pause_ms_max=500)
"""The log is fetched by its master, and not fetched, in turns."""
FAST_REQUESTS: Final = FastRequestSettings(
    row_min=2,
    apart_ms=300,
    late_ms=30,
    answer_ms=20,
    patience_ms=300,
    hold_after_ms=50,
    pause_ms=20,
    pause_ms_max=500,
)

WORKLOADS: Final[tuple[tuple[type[Workload], int], ...]] = (
    (Bank, 40),
    (Increments, 40),
    (Items, 25),
    (SchemaChanger, 600),
    (Menu, 120),
)


EARLIER: Final = frozenset({1, 2, 3, 5, 6, 24, 44, 77, 78, 171})
"""Seeds that are named somewhere, from before runs drew their workloads and what befalls machines:
what they do stays what it is."""
STEERED_FROM: Final = 45_500
"""Seeds before it are as they were when nobody steered jobs amid faults."""
TRUNCATION: Final = TruncationSettings(
    kept_records=60,
    away_ms=1_500,
    copy_away_ms=1_000,
    every_ms=400,
    silence_ms=1_000,
    ask_late_ms=7_000,
)
"""A node that is down for longer than that begins from a copy. An ask may be late by the longest
time for which a node is cut off, and by that for which the broker is away."""
RECOVERY_MS_MAX: Final = 40_000
"""From the last fault until each job has ended and all is coherent: the longest cool-down (C5,
10 s), an election with its lease (2 s), and a job's steps, each of which may wait for a user (2 s)
or a session that has died (1.2 s)."""
PART_OF: Final = range(1, 9)
"""Ids of tables that workloads make, and some that do not exist."""
MANY_TABLES: Final = (60, 120, 240)


@dataclass(frozen=True, slots=True)
class Plan:
    """How long and how rough. Times are virtual ms; `workloads` with their mean pause.
    `machines`: disks, power, clocks and the broker fail, too. `tables`: so many beside the
    others'."""

    chaos_ms: int = 6_000
    fault_pause_ms: int = 250
    heal_ms_max: int = 90_000
    work_factor: int = 1
    """How much slower machines are than those that costs were measured on (`work_costs.py`)."""
    shape: ClusterShape = field(default_factory=lambda: SHAPE)
    workloads: tuple[tuple[type[Workload], int], ...] = WORKLOADS
    parts: Mapping[str, Part] = field(default_factory=dict)
    """What partial replicas hold from the beginning, by their names."""
    some_tables: Mapping[str, Collection[int]] = field(default_factory=dict)
    """Which tables replicas hold once these are set up, by their names: as many as there are."""
    machines: bool = False
    tables: int = 0


def plan_of(seed: int) -> Plan:
    """Runs differ in shape and pace too, not only in their faults."""
    rng = random.Random(f"{seed}/plan")
    shape = replace(
        SHAPE,
        candidates=rng.choice((2, 2, 3)),
        replicants=rng.choice((1, 2, 3)),
        subscribers=rng.choice((1, 1, 2)),
        election_timeout_ms=rng.choice((300, 700, 1_500)),
        master=MasterSettings(
            # Small bounds make records close early and chunks be decided in parts.
            batch=BatchSettings(
                record_bytes_max=rng.choice((3_500, 900_000)),
                large_operations=rng.choice((1, 2_000)),
                slice_operations=1,
                requests_max=rng.choice((1, 3, 2_000)),
            ),
            backfill=_backfill_of(rng.choice((1, 4, 2_000))),
            delete_every_ms=rng.choice((300, 5_000)),
        ),
    )
    chaos_ms, fault_pause_ms = rng.choice((3_000, 6_000, 10_000)), rng.choice((80, 250, 600))
    # Mostly the past is forgotten as soon as it is past, for which an hour's run has no time.
    keep_ms = rng.choice((0, 0, 1_000, 24 * 3_600_000))
    history = HistorySettings(keep_ms, rng.choice((0, 300, 60_000)))
    shape = replace(shape, master=replace(shape.master, history=history))
    # By a generator of its own: what seeds that are named somewhere do must stay what it is.
    if random.Random(f"{seed}/fast log").random() < 0.5:
        shape = replace(shape, fast_log=FAST_LOG)
    if random.Random(f"{seed}/fast requests").random() < 0.5:
        shape = replace(shape, fast_requests=FAST_REQUESTS)
    if random.Random(f"{seed}/own appends").random() < 0.5:
        shape = replace(shape, own_appends=OWN_APPENDS)
    factor = random.Random(f"{seed}/work").choice((1, 1, 5, 15))
    plan = Plan(
        chaos_ms=chaos_ms,
        fault_pause_ms=fault_pause_ms,
        heal_ms_max=RECOVERY_MS_MAX,
        shape=shape,
        work_factor=factor,
    )
    return plan if seed in EARLIER else _mixed(plan, seed)


def _mixed(plan: Plan, seed: int) -> Plan:
    """Return the plan with workloads that are drawn, too, and what befalls machines: a run without
    some of it reaches states that one with all of it never does. Who steers jobs is alone with
    them: it judges that each does what it was told, and nothing else."""
    rng = random.Random(f"{seed}/mix")
    workloads: list[tuple[type[Workload], int]]
    workloads = [each for each in WORKLOADS if rng.random() < 0.75] or list(WORKLOADS)
    if rng.random() < 0.5:
        workloads.append((Barriers, 60))
    tables = rng.choice(MANY_TABLES) if rng.random() < 0.04 else 0
    if tables:
        workloads = [(ManyTables, 15), *workloads[:2]]
    elif seed >= STEERED_FROM and random.Random(f"{seed}/steering").random() < 0.15:
        rows = [each for each in workloads if each[0] not in (SchemaChanger, Menu)]
        workloads = [(Steering, 120), *rows]
    shape, machines = plan.shape, rng.random() < 0.7
    some_tables: dict[str, Collection[int]] = {}
    if shape.replicants > 1 and rng.random() < 0.2:
        some_tables["r1"] = rng.sample(PART_OF, 4)
    if machines:
        shape = replace(shape, disk_reserve_bytes=RESERVE_BYTES)
    if rng.random() < 0.3:
        shape = replace(shape, master=replace(shape.master, truncation=TRUNCATION))
    return replace(
        plan,
        workloads=tuple(workloads),
        machines=machines,
        tables=tables,
        shape=shape,
        some_tables=some_tables,
    )


def _backfill_of(rows_max: int) -> BackfillSettings:
    return BackfillSettings(
        rows_max, rows_beside_max=rows_max, rows_beside_min=max(1, rows_max // 4)
    )
