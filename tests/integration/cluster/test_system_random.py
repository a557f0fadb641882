"""Scenario 80 on real parts: the menu at random with rows on it, a master and a replicant killed.

Every statement ends in success or in a SQLSTATE that is foreseen for its kind, every job in
success, a cancel, or a failure that names rows; at the end every node is consistent. Longer with
LEASEHOLD_RANDOM_SECONDS, the same statements (their timing is the machine's) with LEASEHOLD_SEED.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator

import pytest

from infra.local_cluster import LocalCluster
from leasehold import ChangeProducer, Replica
from leasehold.admin.watch import ClusterWatch
from tests.simulation.menu import demand_ended_well
from tests.support.cluster.system_cluster import Beside, assert_consistent, until
from tests.support.cluster.system_random import RealMenu

pytestmark = pytest.mark.long("a random menu of changes: worth its time with many seeds")

NODES = ("m1", "m2", "r1", "r2")
SECONDS = float(os.environ.get("LEASEHOLD_RANDOM_SECONDS", "60"))
SEED = int(os.environ.get("LEASEHOLD_SEED", "0")) or time.time_ns() % 1_000_000
JOBS_S = 120.0


@pytest.fixture(scope="module")
def cluster(beside: Beside) -> Iterator[LocalCluster]:
    environ = {**os.environ, "LEASEHOLD_SESSION_TTL_MS": "3000"}
    with beside.running("random", (*NODES, "changefeed", "spark"), environ) as made:
        yield made


class Deaths:
    """Who dies when, as parts of the time; each is started again at once."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        self._begun = time.monotonic()
        self._left = [(0.3, "m1"), (0.5, "r1"), (0.7, "m2")]

    def __call__(self) -> None:
        passed = (time.monotonic() - self._begun) / SECONDS
        if self._left and passed > self._left[0][0]:
            _, name = self._left.pop(0)
            self._cluster.kill(name)
            self._cluster.start(name, wait=False)


def test_80_a_random_menu_ends_as_foreseen_and_every_node_is_consistent(
    cluster: LocalCluster, producer: ChangeProducer, replica: Replica, watch: ClusterWatch
) -> None:
    print(f"seed {SEED}: replay its statements with LEASEHOLD_SEED={SEED}")
    menu = RealMenu(random.Random(SEED), producer, replica, watch)
    menu.run(SECONDS, Deaths(cluster))

    def all_ended() -> bool:
        jobs = watch.view.jobs
        return all(number in jobs and jobs[number].job.status.ended for number in menu.jobs)

    give_up = time.monotonic() + JOBS_S
    menu.end_jobs(lambda: all_ended() or time.monotonic() > give_up)
    for number in menu.jobs:
        demand_ended_well(watch.view.jobs[number].job)
    until(lambda: all(name in watch.view.nodes for name in NODES), "every node")
    assert_consistent(cluster, NODES)
    ends = sorted(watch.view.jobs[number].job.status.value for number in menu.jobs)
    words = ", ".join(f"{ends.count(end)} {end}" for end in dict.fromkeys(ends))
    print(f"{menu.statements} statements, jobs: {words}; answers: {dict(menu.client.codes)}")
    assert ends.count("succeeded") > 5
