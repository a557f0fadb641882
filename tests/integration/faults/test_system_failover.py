"""Three brokers, and a Redis with a replica and Sentinels: one of each is taken away under load.

Goal: nothing that was acknowledged is lost, nobody is told what is not so, no statement fails, and
everything goes on by itself: with those that are left, and with all of them again.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Final

import psycopg
import pytest

from infra.local_cluster import LocalCluster
from infra.redis.servers import SENTINEL
from leasehold import ChangeProducer, Replica
from leasehold.adapters.os.clock import boottime_ns
from leasehold.admin.watch import ClusterWatch
from leasehold.model.topics import Topics
from leasehold.settings.client import ClientSettings
from tests.support.cluster.secure_suite import dsn_of
from tests.support.cluster.system_cluster import (
    assert_consistent,
    command,
    logged,
    running,
    settings_of,
    until,
)
from tests.support.cluster.system_jobs import begin, ended
from tests.support.cluster.system_load import Load, made_counters, settled
from tests.support.cluster.system_subscriber import following

NODES = ("m1", "m2", "r1")
SERVICES = (*NODES, "changefeed")
KEYS = range(6)
OWN: Final = 90
"""The row of the SQL session that goes on through everything."""
ENVIRON = {**os.environ, "LEASEHOLD_SESSION_TTL_MS": "3000"}
"""Short, since a ledger that lost its state is waited for one whole TTL (D6)."""
MORE: Final = {"brokers": 3, "redis": SENTINEL}
PAUSE_S: Final = 0.05
PATIENCE_S: Final = 60


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with running(tmp_path_factory.mktemp("failover"), SERVICES, ENVIRON, MORE) as made:
        made_counters(settings_of(made, "setup"), (*KEYS, OWN))
        yield made


@pytest.fixture(scope="module")
def session(cluster: LocalCluster, load: Load) -> Iterator[Session]:
    with Session(dsn_of(cluster, 0)) as made:
        yield made


class Session:
    """A SQL session whose statements go on and on, and must not fail. How long one waits is told:
    on a machine that others use a broker's failover takes longer than reads wait by default."""

    def __init__(self, dsn: str) -> None:
        self._connection = psycopg.connect(dsn, autocommit=True)
        self._connection.execute(f"SET leasehold.coherent_timeout = '{PATIENCE_S}s'")
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="session")
        self.committed = 0
        self.longest_wait_s = 0.0
        self.errors: list[BaseException] = []

    def __enter__(self) -> Session:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        self._connection.close()

    def _run(self) -> None:
        try:
            while not self._stop.wait(PAUSE_S):
                begun_ns = boottime_ns()
                self._connection.execute("UPDATE t SET n = n + 1 WHERE id = %s", (OWN,))
                self.committed += 1
                found = self._connection.execute("SELECT n FROM t WHERE id = %s", (OWN,))
                assert found.fetchone() == (self.committed,)
                self.longest_wait_s = max(self.longest_wait_s, (boottime_ns() - begun_ns) / 1e9)
        except BaseException as error:
            self.errors.append(error)
            raise


def goes_on(load: Load, session: Session, what: str) -> None:
    """The writers and the session do their work; say how long somebody has waited so far."""
    before = session.committed
    load.more(100)
    until(lambda: session.committed > before + 5 or bool(session.errors), "statements of a session")
    assert not session.errors, session.errors
    print(
        f"{what}: longest wait {load.longest_wait_s:.1f} s of a request,"
        f" {session.longest_wait_s:.1f} s of a statement"
    )
    load.longest_wait_s = session.longest_wait_s = 0.0


def log_of(cluster: LocalCluster) -> str:
    return Topics(cluster.cluster_settings.database).log.name


def starts_again(cluster: LocalCluster, broker: str) -> None:
    cluster.start(broker)
    kafka = cluster.kafka_settings
    until(lambda: cluster.brokers.all_in_sync(kafka), "all replicas in sync again")


# ---------------------------------------------------------------- brokers


def test_l4_the_broker_that_leads_the_log_dies(
    cluster: LocalCluster, load: Load, session: Session
) -> None:
    kafka = cluster.kafka_settings
    leader = cluster.brokers.leader_of(log_of(cluster), kafka)
    cluster.brokers.kill(leader)
    goes_on(load, session, "the broker that led the log died")
    assert cluster.brokers.leader_of(log_of(cluster), kafka) not in ("", leader)
    starts_again(cluster, leader)
    goes_on(load, session, "it came back")


@pytest.mark.long("another failover of ten seconds and more, of the same parts")
def test_l4_the_active_controller_dies(cluster: LocalCluster, load: Load, session: Session) -> None:
    controller = cluster.brokers.active_controller()
    assert controller
    cluster.brokers.kill(controller)
    goes_on(load, session, "the active controller died")
    until(lambda: cluster.brokers.active_controller() not in ("", controller), "another controller")
    starts_again(cluster, controller)


@pytest.mark.long("another failover of ten seconds and more, of the same parts")
def test_l4_the_broker_that_leads_the_log_stands_still(
    cluster: LocalCluster, load: Load, session: Session
) -> None:
    """It wakes as a leader that is none any more: what it would take is refused by its epoch."""
    kafka = cluster.kafka_settings
    leader = cluster.brokers.leader_of(log_of(cluster), kafka)
    cluster.brokers.kill(leader, signal.SIGSTOP)
    try:
        goes_on(load, session, "the broker that led the log stood still")
    finally:
        cluster.brokers.kill(leader, signal.SIGCONT)
    starts_again(cluster, leader)
    goes_on(load, session, "it woke")


@pytest.mark.long("another failover of ten seconds and more, of the same parts")
def test_l2_a_broker_comes_back_with_an_empty_disk(
    cluster: LocalCluster, load: Load, session: Session
) -> None:
    """Two of three have what was acknowledged; it takes all of it from them."""
    kafka = cluster.kafka_settings
    name = cluster.brokers.leader_of(log_of(cluster), kafka)
    cluster.brokers.stop(name)
    goes_on(load, session, "the broker that led the log was stopped")
    cluster.brokers.empty(name)
    starts_again(cluster, name)
    assert cluster.brokers.in_sync(log_of(cluster), kafka) == set(cluster.brokers.names)
    other = next(each for each in cluster.brokers.names if each != name)
    cluster.brokers.stop(other)
    goes_on(load, session, "another one was stopped, and it has all")
    starts_again(cluster, other)


# ---------------------------------------------------------------- Redis


def taken_over(cluster: LocalCluster, master: str) -> None:
    until(lambda: cluster.redis.master() not in ("", master), "another master of Redis")


def test_d6_d11_sentinel_makes_the_replica_master(
    cluster: LocalCluster,
    watch: ClusterWatch,
    producer: ChangeProducer,
    load: Load,
    session: Session,
    tmp_path: Path,
) -> None:
    """Writes go on, and a schema change that everybody follows, also who has no store."""
    with following(cluster, "follower", "t", tmp_path / "rows") as service:
        until(lambda: bool(service.rows), "a row from the subscriber")
        master = cluster.redis.master()
        cluster.redis.kill(master)
        try:
            taken_over(cluster, master)
            goes_on(load, session, "the master of Redis died")
            ended(watch, begin(producer, "ALTER TABLE t ADD COLUMN note text"))
            note = {"table": "t", "op": "update", "key": {"id": 0}, "values": {"note": "new"}}
            assert settled(producer.submit(note)).lsn
            until(lambda: any(r["values"].get("note") == "new" for r in service.rows), "the note")
        finally:
            cluster.start("redis")


@pytest.mark.long("another failover of ten seconds and more, of the same parts")
def test_d11_a_master_of_redis_that_stood_still_wakes_as_none(
    cluster: LocalCluster,
    watch: ClusterWatch,
    producer: ChangeProducer,
    load: Load,
    session: Session,
    tmp_path: Path,
) -> None:
    """For a moment there are two; nobody's lease is extended by the one that is passed over."""
    with following(cluster, "sleeper", "t", tmp_path / "rows") as service:
        until(lambda: bool(service.rows), "a row from the subscriber")
        master = cluster.redis.master()
        cluster.redis.kill(master, signal.SIGSTOP)
        try:
            taken_over(cluster, master)
            goes_on(load, session, "the master of Redis stood still")
        finally:
            cluster.redis.kill(master, signal.SIGCONT)
        for column in ("a", "b"):
            ended(watch, begin(producer, f"ALTER TABLE t ADD COLUMN {column} text"))
        goes_on(load, session, "it woke")
        until(lambda: bool(service.rows) and "b" in service.rows[-1]["values"], "the new column")
    cluster.start("redis")


@pytest.mark.long("another failover of ten seconds and more, of the same parts")
def test_d11_there_and_back_again(
    cluster: LocalCluster, watch: ClusterWatch, producer: ChangeProducer, load: Load
) -> None:
    """A server that is made master again has the run id that it had, and another's state: its name
    is another one, so that nobody takes it for the one before."""
    first = cluster.redis.master()
    for _ in range(2):
        master = cluster.redis.master()
        cluster.redis.fail_over()
        taken_over(cluster, master)
        cluster.start("redis")
        load.more(50)
    assert cluster.redis.master() == first
    ended(watch, begin(producer, "ALTER TABLE t ADD COLUMN again text"))


# ---------------------------------------------------------------- the end


def test_l3_l5_no_failover_lost_or_doubled_a_write(
    cluster: LocalCluster,
    settings: ClientSettings,
    replica: Replica,
    load: Load,
    session: Session,
) -> None:
    load.stop()
    session.stop()
    assert not session.errors, session.errors
    load.assert_exact(replica)
    row = replica.get("t", OWN)
    assert row is not None
    assert row["n"] == session.committed
    load.assert_same_answers(settings)
    assert_consistent(cluster, NODES)
    said = command(cluster, "status")
    assert said.code == 0, (said.out, said.err)
    assert "could be lost" not in said.out
    for name in SERVICES:
        assert "Traceback" not in logged(cluster, name)
