"""Group commit: how long one client waits for one row's commit, updates one after the other."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from tests.bench.bench_settings import BenchSettings
from tests.bench.figure import Figure, percentile
from tests.bench.stand import Stand, replicants, say, stand

WARM_UP: Final = 200
COMMITS: Final = 1_000
ROWS: Final = 100


def measure(settings: BenchSettings) -> Iterator[Figure]:
    with stand(["m1", "r1"], settings.warm_up) as one:
        times = _commits(one)
        yield Figure("commit_p50_1r", percentile(times, 0.5), "ms")
        yield Figure("commit_p99_1r", percentile(times, 0.99), "ms")
    with stand(["m1", *replicants(settings.replicants)], settings.warm_up) as more:
        times = _commits(more)
        yield Figure("commit_p50", percentile(times, 0.5), "ms")
        yield Figure("commit_p99", percentile(times, 0.99), "ms")


def _commits(where: Stand) -> list[float]:
    say(f"{COMMITS} commits one after the other")
    where.submit({"sql": "CREATE TABLE t (id bigint PRIMARY KEY, n bigint NOT NULL DEFAULT 0)"})
    for key in range(ROWS):
        where.submit({"table": "t", "op": "insert", "key": [key], "values": {"n": 0}})
    times = []
    for number in range(WARM_UP + COMMITS):
        request = {"table": "t", "op": "update", "key": [number % ROWS], "values": {"n": number}}
        begin = time.perf_counter()
        where.submit(request)
        times.append((time.perf_counter() - begin) * 1e3)
    return times[WARM_UP:]
