"""Group cost: processor time of a single-row write at a steady pace, in all processes.

Most of the cluster's work goes on whether anybody writes or not, so what it takes without a write
is measured first; a paced write's price includes its share of it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from leasehold.adapters.os.clock import boottime_ns
from tests.bench.bench_settings import BenchSettings
from tests.bench.cpu import Tree, cpu_times, per_unit, spent_s, tree_times
from tests.bench.figure import Figure, percentile
from tests.bench.pacing import Span, Write, due_in
from tests.bench.stand import Stand, replicants, say, stand

PACES: Final = (100, 200)
FIGURES: Final = ("cost", "paced_p50", "paced_p99")
MASTERS: Final = ("m1", "m2")
ROWS: Final = 1_000
SETTLE_S: Final = 2.0


def measure(settings: BenchSettings) -> Iterator[Figure]:
    names = replicants(settings.replicants)
    processes = ["kafka", "redis", *MASTERS, *names]
    with stand([*MASTERS, *names], settings.warm_up) as where:
        where.submit({"sql": "CREATE TABLE t (id bigint PRIMARY KEY, n bigint NOT NULL)"})
        for key in range(ROWS):
            where.submit({"table": "t", "op": "insert", "key": [key], "values": {"n": 0}})
        say(f"nothing for {settings.seconds} s")
        time.sleep(SETTLE_S)
        before = cpu_times(where.cluster, processes)
        time.sleep(settings.seconds)
        after = cpu_times(where.cluster, processes)
        say(f"processor time, µs a second: {per_unit(before, after, settings.seconds)}")
        yield Figure("write_cost_idle", _spent_s(before, after) / settings.seconds * 1e3, "ms/s")
        for per_second in PACES:
            yield from _paced(where, processes, per_second, settings.seconds)


def _paced(where: Stand, processes: list[str], per_second: int, seconds: int) -> Iterator[Figure]:
    say(f"{per_second} writes/s for {seconds} s")
    writer = where.child("writer", "steady_writer", "t", ROWS, per_second)
    writer.wait_ready()
    time.sleep(SETTLE_S)
    begin_ns, before = boottime_ns(), _look(where, processes, writer.pid)
    time.sleep(seconds)
    end_ns, after = boottime_ns(), _look(where, processes, writer.pid)
    writes = due_in((Write(*each) for each in writer.answer(stop=True)), Span(begin_ns, end_ns))
    say(f"processor time, µs a write: {per_unit(before, after, len(writes))}")
    took = [write.latency_ms for write in writes]
    yield Figure(f"write_cost_{per_second}", _spent_s(before, after) / len(writes) * 1e6, "µs")
    yield Figure(f"write_paced_p50_{per_second}", percentile(took, 0.5), "ms")
    yield Figure(f"write_paced_p99_{per_second}", percentile(took, 0.99), "ms")


def _look(where: Stand, processes: list[str], writer: int) -> dict[str, Tree]:
    return {**cpu_times(where.cluster, processes), "asker": tree_times([writer])[writer]}


def _spent_s(before: dict[str, Tree], after: dict[str, Tree]) -> float:
    return sum(spent_s(before[name], after[name]) for name in before.keys() & after.keys())
