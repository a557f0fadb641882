"""Group lock: two writers of different columns of one row, under one lock and under two."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from infra.demo.lock_duel import fight
from leasehold.replica.replica import open_replica
from tests.bench.bench_settings import BenchSettings
from tests.bench.figure import Figure
from tests.bench.stand import replicants, say, stand

COLUMNS: Final = ("a", "b")
KEY: Final = 1
JOB_TIMEOUT_S: Final = 60.0


def measure(settings: BenchSettings) -> Iterator[Figure]:
    with stand(["m1", *replicants(settings.replicants), "changefeed"], settings.warm_up) as where:
        where.submit({"sql": "CREATE TABLE t (id bigint PRIMARY KEY, a bigint, b bigint)"})
        where.submit({"table": "t", "op": "insert", "key": [KEY], "values": {"a": 0, "b": 0}})
        with open_replica(where.named("duel")) as replica:
            for when in ("shared", "own"):
                if when == "own":
                    where.change("ALTER TABLE t ADD LOCK second COVERING (b)", JOB_TIMEOUT_S)
                duel = fight(replica, "t", KEY, COLUMNS, settings.seconds)
                say(f"{when}: {duel}")
                yield Figure(f"lock_rate_{when}", duel.committed / duel.seconds, "txn/s")
                yield Figure(f"lock_collisions_{when}", duel.collision_rate * 100, "%")
