"""Drawn faults on real parts: processes killed and paused, links cut, disks lost, clocks moved, two
at once; clients of every kind, and schema changes, go on all the while.

Goal: nothing acknowledged is lost, nothing is done twice, no level shows what it prevents, every
feed is whole, and all is coherent soon after the last fault. Method: `tests/faults`, whose checkers
know nothing of the inside. A schedule that fails is printed; `python -m tests.faults --schedule`
runs it again.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from tests.faults.campaign import Campaign, Wishes
from tests.faults.parts import LIGHT, WITH_SPARK
from tests.faults.schedule import EVENTS_MAX, Schedule, found_schedules
from tests.models.summary import Tell
from tests.support.cluster.secure_suite import not_in_secure_mode

pytestmark = not_in_secure_mode("its proxies stand between processes and listeners without TLS")

SEED: Final = int(os.environ.get("LEASEHOLD_SEED", "0"))
FEW: Final = 20
AT_ONCE: Final = 6
"""Faults of a round, where there are few: most of a round is its beginning and its end."""
FIRST_SEED: Final = 212_130
"""Of those that are drawn beside the schedules that have found a defect. Others each time are the
many, and `make faults`."""
SLOW: Final = ("broker_kill",)
"""A broker takes as long to come back as a whole round does."""
NEW: Final = (
    *("sync_fails", "write_fails", "torn_pages", "slow_disk", "short_of_memory", "reorder"),
    *("redis_slow_disk", "redis_sync_fails", "redis_tail", "broker_slow_disk", "redis_full"),
    "broker_clock",
)
"""Kinds of which few rounds were judged so far: the many draw them."""
MANY: Final = 200


def run(wishes: Wishes, folder: Path, tell: Tell) -> None:
    lines: list[str] = []
    campaign = Campaign(wishes, folder, lines.append)
    went_well = campaign.run()
    tell("\n".join([lines[0], *lines[campaign.tally.rounds + 1 :]]))
    schedules = [report.schedule.to_json() for report in campaign.failed]
    assert went_well, "\n".join([*lines, *schedules])


def is_short(schedule: Schedule) -> bool:
    kinds = {event.kind for event in schedule.events}
    few = len(schedule.events) <= EVENTS_MAX
    return schedule.parts == LIGHT.name and few and not kinds & set(SLOW)


def test_c1_l5_faults_lose_nothing(tmp_path: Path, tell: Tell) -> None:
    """Each schedule that has found a defect, and others up to twenty faults."""
    found = () if SEED else tuple(filter(is_short, found_schedules().values()))
    run(
        Wishes(
            parts=LIGHT,
            schedules=found,
            faults=FEW,
            seed=SEED or FIRST_SEED,
            events=AT_ONCE,
            without=(*SLOW, *NEW),
        ),
        tmp_path,
        tell,
    )


@pytest.mark.long("two hundred faults, a quarter of an hour")
def test_c1_l5_many_faults_lose_nothing(tmp_path: Path, tell: Tell) -> None:
    """Those that take longer are first."""
    slow = (s for s in found_schedules().values() if not is_short(s) and s.parts == LIGHT.name)
    run(Wishes(parts=LIGHT, schedules=tuple(slow), faults=MANY, seed=SEED), tmp_path, tell)


@pytest.mark.long("Spark beside the others: its driver alone takes a minute to start")
def test_r1_faults_beside_spark_lose_nothing(tmp_path: Path, tell: Tell) -> None:
    """Requests that Spark tries again, and schema changes that it fills."""
    run(Wishes(parts=WITH_SPARK, faults=FEW, seed=SEED, events=AT_ONCE), tmp_path, tell)
