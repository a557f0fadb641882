"""Masters told to stop, and all processes restarted in turn, under load.

Goal: no statement fails, what was acknowledged is there, once, and nobody waits for an election.
How long the longest of the writers waited is printed, not asserted: machines differ.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import psycopg
import pytest

from infra.local_cluster import LocalCluster
from leasehold import Replica, open_replica
from leasehold.admin.watch import ClusterWatch
from leasehold.settings.client import ClientSettings
from tests.integration.faults.masters import BY_SQL, HANDOVER_KEYS, MASTERS, NODES, SERVICES
from tests.integration.faults.masters.test_system_takeover import (
    await_master,
    await_standby,
    master_of,
    other_than,
)
from tests.support.cluster.secure_suite import dsn_of
from tests.support.cluster.system_cluster import (
    assert_consistent,
    await_coherent,
    logged,
    seen,
    settings_of,
)
from tests.support.cluster.system_load import OFTEN_S, Load

KEYS = HANDOVER_KEYS
HANDED_OVER = "its predecessor has handed its term over"


@pytest.fixture(scope="module")
def replica(cluster: LocalCluster) -> Iterator[Replica]:
    with open_replica(settings_of(cluster, "embedded")) as made:
        yield made


class SqlWriter:
    """Adds one by SQL on r1, statement after statement; `waits` has how long each took, in s."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._dsn = dsn_of(cluster, 0)
        self._stop = threading.Event()
        self.waits: list[float] = []
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="sql writer")

    def __enter__(self) -> SqlWriter:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            with psycopg.connect(self._dsn, autocommit=True) as client:
                while not self._stop.wait(OFTEN_S):
                    begun = time.monotonic()
                    client.execute("UPDATE t SET n = n + 1 WHERE id = %s", (BY_SQL,))
                    self.waits.append(time.monotonic() - begun)
        except psycopg.Error as error:
            self.error = error


def test_l3_l5_terms_are_handed_over_under_load(
    cluster: LocalCluster, settings: ClientSettings, watch: ClusterWatch, replica: Replica
) -> None:
    """Twice, so that both have done it; what writers ask meanwhile the next master decides."""
    with Load(settings, "t", KEYS) as load, SqlWriter(cluster) as by_sql:
        load.more(100)
        for _ in MASTERS:
            leaving = master_of(watch)
            heir, steady_s = other_than(leaving), max(by_sql.waits)
            by_sql.waits.clear()
            cluster.stop(leaving)
            epoch = await_master(watch, heir)
            load.more(50)
            print(f"longest wait {max(by_sql.waits):.3f} s, before {steady_s:.3f} s")
            assert HANDED_OVER in logged(cluster, heir)
            cluster.start(leaving)
            await_standby(watch, leaving, epoch)
        load.more(50)
        load.stop()
    assert by_sql.error is None, by_sql.error
    load.assert_exact(replica)
    load.assert_same_answers(settings)
    assert_consistent(cluster, NODES)


@pytest.mark.long("40 s; terms are handed over under load in make test")
def test_a_rolling_restart_fails_no_statement(
    cluster: LocalCluster, settings: ClientSettings, watch: ClusterWatch
) -> None:
    """Every process but the one that the SQL client is connected to, one after the other."""
    with Load(settings, "t", KEYS) as load, SqlWriter(cluster) as by_sql:
        load.more(100)
        by_sql.waits.clear()
        for name in ("changefeed", "r2", *MASTERS):
            cluster.stop(name)
            cluster.start(name)
            if name in MASTERS:
                await_standby(watch, name, watch.view.log.epoch)
            elif name == "r2":
                await_coherent(watch, name, 0)
            load.more(50)
        print(f"longest wait {max(by_sql.waits):.3f} s of {len(by_sql.waits)} statements")
        load.stop()
    assert by_sql.error is None, by_sql.error
    assert_consistent(cluster, NODES)


def test_a_master_without_a_standby_ends_and_the_next_one_goes_on(
    cluster: LocalCluster, settings: ClientSettings, watch: ClusterWatch
) -> None:
    master = master_of(watch)
    cluster.stop(other_than(master))
    with Load(settings, "t", KEYS) as load:
        load.more(20)
        cluster.stop(master)
        cluster.start(master)
        load.more(20)
        load.stop()
    cluster.start(other_than(master))
    seen(watch, lambda view: view.log.master == master, "the only master")


def test_no_process_has_met_an_error_of_its_own(cluster: LocalCluster) -> None:
    for name in SERVICES:
        assert "Traceback" not in logged(cluster, name)
