"""Advisory locks, views and notifications on the replicants of a real cluster.

Goal: a lock is one in the whole database, and free again when the node dies that had it (D10); what
is told is heard on every node, whichever master decides it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice

import psycopg
import pytest

import leasehold
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


def hear(connection: psycopg.Connection[tuple[object, ...]], count: int) -> list[str]:
    found = connection.notifies(timeout=60, stop_after=count)
    return [notify.payload for notify in found]


def test_what_is_told_is_heard_on_another_node(cluster: LocalCluster) -> None:
    with connect(cluster, 0) as one, connect(cluster, 1) as other:
        other.execute("create table heard (id int primary key)")
        other.execute("listen news")
        one.execute("listen news")
        with one.transaction():
            one.execute("insert into heard select * from generate_series(1, 10)")
            one.execute("select pg_notify('news', id::text) from heard order by id")
            one.execute("notify news, 'end'")
        wanted = [*(str(number) for number in range(1, 11)), "end"]
        assert hear(other, 11) == wanted
        assert other.execute("select count(*) from heard").fetchone() == (10,)
        assert hear(one, 11) == wanted


def test_what_is_told_comes_in_order_over_two_masters(cluster: LocalCluster) -> None:
    """Whoever listens hears each of the answered commits once, the master's death among them."""
    with connect(cluster, 0) as one, connect(cluster, 1) as other:
        other.execute("listen steps")
        for number in range(20):
            one.execute("select pg_notify('steps', %s)", (str(number),))
        cluster.kill("m1")
        cluster.start("m1")
        for number in range(20, 40):
            one.execute("select pg_notify('steps', %s)", (str(number),))
        assert hear(other, 40) == [str(number) for number in range(40)]


def test_a_program_with_a_replica_hears_and_tells(cluster: LocalCluster) -> None:
    settings = settings_of(cluster, "embedded")
    with (
        connect(cluster, 0) as one,
        leasehold.connect(settings, autocommit=True) as embedded,
    ):
        embedded.execute("listen news")
        one.execute("listen news")
        one.execute("notify news, 'to the program'")
        (told,) = islice(embedded.notifies(timeout_s=60), 1)
        assert told == ("news", "to the program", 0)
        embedded.execute("notify news, 'from the program'")
        assert hear(one, 2) == ["to the program", "from the program"]
