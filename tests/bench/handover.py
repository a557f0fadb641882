"""Group handover: how long writers wait while processes are stopped, killed and started again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final

from leasehold.adapters.os.clock import boottime_ns
from leasehold.admin.watch import ClusterWatch
from tests.bench.bench_settings import BenchSettings
from tests.bench.figure import Figure, percentile
from tests.bench.stand import BenchFailure, Stand, replicants, say, stand

ROUNDS: Final = 3
MASTERS: Final = ("m1", "m2")
ROWS: Final = 100
PER_SECOND: Final = 200
SETTLE_S: Final = 3.0
"""How long writes go on before and behind each event."""
KNOWN_TIMEOUT_S: Final = 30.0
EVENTS: Final = ("steady", "handover", "master_killed", "node_killed", "rolling_restart")
METRICS: Final = tuple(f"{event}_stall" for event in EVENTS)

Span = tuple[str, int, int]


def measure(settings: BenchSettings) -> Iterator[Figure]:
    nodes = replicants(settings.replicants)
    with (
        stand([*MASTERS, *nodes], settings.warm_up) as where,
        ClusterWatch(where.settings) as watch,
    ):
        where.submit({"sql": "CREATE TABLE t (id bigint PRIMARY KEY, n bigint)"})
        for key in range(ROWS):
            where.submit({"table": "t", "op": "insert", "key": [key], "values": {"n": 0}})
        writer = where.child("writer", "steady_writer", "t", ROWS, PER_SECOND)
        writer.wait_ready()
        acts: list[tuple[str, Callable[[], None]]] = [
            ("steady", lambda: None),
            *[("handover", lambda: _restart(where, _master(watch)))] * ROUNDS,
            *[("master_killed", lambda: _kill(where, _master(watch)))] * ROUNDS,
            *[("node_killed", lambda: _kill(where, nodes[0]))] * ROUNDS,
            ("rolling_restart", lambda: _roll(where, [*nodes, *MASTERS])),
        ]
        spans = [_span(event, act) for event, act in acts]
        times = writer.answer(stop=True)
        yield from figures(times, spans)


def figures(times: list[tuple[int, int]], spans: list[Span]) -> Iterator[Figure]:
    """Yield, of each event, the median over its rounds of the longest latency of the writes that
    were due in its span."""
    for event in EVENTS:
        stalls = [
            max((answered - due) / 1e6 for due, answered in times if begin <= due < end)
            for name, begin, end in spans
            if name == event
        ]
        say(f"{event}: longest waits {', '.join(f'{stall:.0f}' for stall in stalls)} ms")
        yield Figure(f"{event}_stall", percentile(stalls, 0.5), "ms")


def _span(event: str, act: Callable[[], None]) -> Span:
    time.sleep(SETTLE_S)
    begin_ns = boottime_ns()
    act()
    time.sleep(SETTLE_S)
    return event, begin_ns, boottime_ns()


def _master(watch: ClusterWatch) -> str:
    if not watch.wait_for(lambda view: view.log.master in MASTERS, KNOWN_TIMEOUT_S):
        raise BenchFailure("no master was seen in the log")
    return watch.view.log.master


def _restart(where: Stand, name: str) -> None:
    where.cluster.stop(name)
    time.sleep(SETTLE_S)
    where.cluster.start(name)


def _kill(where: Stand, name: str) -> None:
    where.cluster.kill(name)
    time.sleep(SETTLE_S)
    where.cluster.start(name)


def _roll(where: Stand, names: list[str]) -> None:
    for name in names:
        where.cluster.stop(name)
        where.cluster.start(name)
        time.sleep(SETTLE_S)
