"""Group read: what a service pays in its own process, without a network."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final

import leasehold
from leasehold.replica.replica import open_replica
from tests.bench.bench_settings import BenchSettings
from tests.bench.figure import Figure, percentile
from tests.bench.stand import Stand, say, stand

ROUNDS: Final = 9
LEASE_CALLS: Final = 50_000
READ_CALLS: Final = 5_000
ROWS: Final = 1_000
ROWS_A_GROUP: Final = 10
INDEX_TIMEOUT_S: Final = 60.0


def measure(settings: BenchSettings) -> Iterator[Figure]:
    with stand(["m1", "r1", "changefeed"], settings.warm_up) as where:
        where.submit({"sql": "CREATE TABLE t (id bigint PRIMARY KEY, name text, n bigint)"})
        where.change("CREATE INDEX by_n ON t (n)", INDEX_TIMEOUT_S)
        for key in range(ROWS):
            values = {"name": f"name {key}", "n": key // ROWS_A_GROUP}
            where.producer.submit({"table": "t", "op": "insert", "key": [key], "values": values})
        where.producer.wait(60)
        agent = where.agent("bench-agent")
        agent.release(agent.acquire("t"))
        acquire, release = agent.acquire, agent.release

        def leases() -> None:
            for _ in range(LEASE_CALLS):
                release(acquire("t"))

        say(f"{ROUNDS} × {LEASE_CALLS} leases")
        yield Figure("held_lease", _each_s(leases, LEASE_CALLS) * 1e9, "ns")
        with open_replica(where.named("bench-replica")) as replica:
            get = replica.get
            assert get("t", 7) is not None, "the replica is coherent and has the rows"

            def reads() -> None:
                for number in range(READ_CALLS):
                    get("t", number % ROWS)

            def ranges() -> None:
                for number in range(READ_CALLS):
                    list(replica.get_by("t.by_n", number % (ROWS // ROWS_A_GROUP)))

            def queries() -> None:
                for number in range(READ_CALLS):
                    replica.query("SELECT n FROM t WHERE id = $1", [number % ROWS])

            assert len(list(replica.get_by("t.by_n", 7))) == ROWS_A_GROUP
            say(f"{ROUNDS} × {READ_CALLS} reads of each kind")
            for name, work in (
                ("point_read", reads),
                ("range_read", ranges),
                ("sql_read", queries),
            ):
                yield Figure(name, _each_s(work, READ_CALLS) * 1e6, "µs")
        yield from _by_sql(where)


def _by_sql(where: Stand) -> Iterator[Figure]:
    """As a program that embeds a replica asks: a DB-API connection, outside of transactions."""
    connected = leasehold.connect(where.named("bench-connection"), autocommit=True)
    with connected as connection, connection.cursor() as cursor:

        def points() -> None:
            for number in range(READ_CALLS):
                cursor.execute("SELECT name, n FROM t WHERE id = %s", (number % ROWS,))
                cursor.fetchone()

        def ranges() -> None:
            for number in range(READ_CALLS):
                group = number % (ROWS // ROWS_A_GROUP)
                cursor.execute("SELECT id, name FROM t WHERE n = %s", (group,))
                cursor.fetchall()

        cursor.execute("SELECT id, name FROM t WHERE n = 7")
        assert len(cursor.fetchall()) == ROWS_A_GROUP
        say(f"{ROUNDS} × {READ_CALLS} queries of each kind by SQL")
        for name, work in (("embedded_point_read", points), ("embedded_range_read", ranges)):
            yield Figure(name, _each_s(work, READ_CALLS) * 1e6, "µs")


def _each_s(work: Callable[[], None], calls: int) -> float:
    """The median round's seconds per call; the first round is the warm-up."""
    took = []
    for _ in range(ROUNDS + 1):
        begin = time.perf_counter()
        work()
        took.append((time.perf_counter() - begin) / calls)
    return percentile(took[1:], 0.5)
