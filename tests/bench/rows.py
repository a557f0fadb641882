"""Group rows: what a row costs in a table of so many and in one of ten times as many: loaded, put
into an index, compared on all nodes, copied to a new node and to a new embedded replica."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.bench import bulk_loader
from tests.bench.bench_settings import BenchSettings
from tests.bench.bootstrap import begin_node, begin_replica, load
from tests.bench.commands import command_ms
from tests.bench.figure import Figure
from tests.bench.stand import Stand, stand

TIMES: Final = (1, 10)
"""Of LEASEHOLD_BENCH_ROWS."""
COSTS: Final = ("load", "index", "check", "node", "replica")
METRICS: Final = (
    *(f"rows_{cost}_{times}x" for times in TIMES for cost in COSTS),
    *(f"rows_{cost}_growth" for cost in COSTS),
)
TIMEOUT_S: Final = 7_200.0


def measure(settings: BenchSettings) -> Iterator[Figure]:
    with stand(["m1", "r1", "changefeed", "spark"], settings.warm_up) as where:
        where.submit({"sql": bulk_loader.CREATE})
        there = 0
        found: list[dict[str, float]] = []
        for times in TIMES:
            rows = settings.rows * times
            found.append({})
            for cost, took_s, of in _costs(where, there, rows):
                found[-1][cost] = took_s / of * 1e6
                yield Figure(f"rows_{cost}_{times}x", found[-1][cost], "µs/row")
            there = rows
        few, many = found
        for cost in COSTS:
            yield Figure(f"rows_{cost}_growth", many[cost] / few[cost], "times")


def _costs(where: Stand, there: int, rows: int) -> Iterator[tuple[str, float, int]]:
    """What is done, how many seconds it takes, and for how many rows."""
    yield "load", load(where, there, rows), rows - there
    yield "index", where.change(bulk_loader.INDEX, TIMEOUT_S).took_ms / 1e3, rows
    where.change(bulk_loader.DROP_INDEX, TIMEOUT_S)
    yield "check", command_ms(where, "check", timeout_s=TIMEOUT_S) / 1e3, rows
    yield "node", begin_node(where).took_s, rows
    yield "replica", begin_replica(where).took_s, rows
