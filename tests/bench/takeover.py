"""Group takeover: from the master's death to the next commit's answer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from leasehold.admin.watch import ClusterWatch
from tests.bench.bench_settings import BenchSettings
from tests.bench.figure import Figure, percentile
from tests.bench.stand import BenchFailure, Stand, say, stand

ROUNDS: Final = 3
MASTERS: Final = ("m1", "m2")
KNOWN_TIMEOUT_S: Final = 30.0
SETTLE_WRITES: Final = 50


def measure(settings: BenchSettings) -> Iterator[Figure]:
    with stand([*MASTERS, "r1"], settings.warm_up) as where, ClusterWatch(where.settings) as watch:
        where.submit({"sql": "CREATE TABLE t (id bigint PRIMARY KEY, n bigint)"})
        where.submit({"table": "t", "op": "insert", "key": [1], "values": {"n": 0}})
        times = [_takeover(where, watch, number) for number in range(ROUNDS)]
        yield Figure("takeover", percentile(times, 0.5), "s")


def _takeover(where: Stand, watch: ClusterWatch, number: int) -> float:
    for count in range(SETTLE_WRITES):
        where.submit({"table": "t", "op": "update", "key": [1], "values": {"n": count}})
    if not watch.wait_for(lambda view: view.log.master in MASTERS, KNOWN_TIMEOUT_S):
        raise BenchFailure("no master was seen in the log")
    master = watch.view.log.master
    begin = time.monotonic()
    where.cluster.kill(master)
    where.submit({"table": "t", "op": "update", "key": [1], "values": {"n": -number}})
    took = time.monotonic() - begin
    say(f"{master} killed; the next commit was answered after {took:.2f} s")
    where.cluster.start(master)
    return took
