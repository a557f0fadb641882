"""Advisory locks and views on the replicants of a real cluster.

Goal: a lock is one in the whole database, and free again when the node dies that had it (D10).
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import psycopg
import pytest

from infra.local_cluster import LocalCluster
from leasehold.adapters.redis.client import make_client
from tests.support.cluster.secure_suite import dsn_of
from tests.support.cluster.system_cluster import Beside, settings_of, until

NODES = ("m1", "r1", "r2")
ENDED = (psycopg.OperationalError, psycopg.errors.AdminShutdown)


@pytest.fixture(scope="module")
def cluster(beside: Beside) -> Iterator[LocalCluster]:
    environ = {**os.environ, "LEASEHOLD_SESSION_TTL_MS": "3000"}
    with beside.running("objects", NODES, environ) as made:
        yield made


def connect(cluster: LocalCluster, place: int) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(dsn_of(cluster, place), autocommit=True)


def tries(connection: psycopg.Connection[tuple[object, ...]], key: int) -> bool:
    found = connection.execute("select pg_try_advisory_lock(%s)", (key,)).fetchone()
    assert found is not None
    return bool(found[0])


def gets(connection: psycopg.Connection[tuple[object, ...]], key: int) -> bool:
    """Try, while the ledger may give none yet."""
    try:
        return tries(connection, key)
    except psycopg.errors.IoError:
        return False


def test_a_lock_and_a_view_are_the_same_on_two_replicants(cluster: LocalCluster) -> None:
    with connect(cluster, 0) as one, connect(cluster, 1) as other:
        one.execute("create table t (id int primary key, n int)")
        one.execute("create view v as select n from t where id > 1")
        assert tries(one, 1)
        assert not tries(other, 1)
        one.execute("insert into t values (1, 10), (2, 20)")
        one.execute("select pg_advisory_unlock(1)")
        assert tries(other, 1)
        assert other.execute("select n from v").fetchall() == [(20,)]
        one.execute("begin")
        one.execute("select pg_advisory_xact_lock(2)")
        one.execute("update t set n = 21 where id = 2")
        one.execute("commit")
        assert tries(other, 2)
        assert other.execute("select n from v").fetchall() == [(21,)]


def test_d10_a_killed_node_s_locks_are_free_after_a_ttl(cluster: LocalCluster) -> None:
    with connect(cluster, 1) as other:
        gone = connect(cluster, 0)
        assert tries(gone, 3)
        assert not tries(other, 3)
        cluster.kill("r1")
        try:
            until(lambda: tries(other, 3), "the lock of a node that is gone")
        finally:
            cluster.start("r1")
        with pytest.raises(ENDED):
            gone.execute("select 1")


def test_d10_a_redis_without_its_state_ends_who_holds_a_lock(cluster: LocalCluster) -> None:
    with connect(cluster, 1) as holder, connect(cluster, 1) as other:
        assert tries(holder, 4)
        settings = settings_of(cluster, "r2")
        with make_client(settings.redis) as client:
            for key in client.scan_iter(f"leasehold:{{{settings.cluster.database}}}:*"):
                client.delete(key)

        def has_ended() -> bool:
            try:
                holder.execute("select 1")
            except ENDED:
                return True
            return False

        until(has_ended, "the end of a session whose lock may be lost")
        until(lambda: gets(other, 4), "the grace after the loss")
