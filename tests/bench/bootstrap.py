"""Group bootstrap: a new node and a new embedded replica on a table of so many rows, each from an
empty folder until it answers coherently; and how much that leaves on the disk."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from leasehold.replica.replica import open_replica
from tests.bench import bulk_loader
from tests.bench.bench_settings import BenchSettings
from tests.bench.figure import Figure
from tests.bench.stand import Stand, say, stand

NODE: Final = "r2"
REPLICA: Final = "bench-replica"
WAIT_S: Final = 1_800.0
MB: Final = 1e6


class Begun(NamedTuple):
    """How long it took to begin, and the size of the store then."""

    took_s: float
    stored_mb: float


def measure(settings: BenchSettings) -> Iterator[Figure]:
    with stand(["m1", "r1", "changefeed"], settings.warm_up) as where:
        where.submit({"sql": bulk_loader.CREATE})
        load(where, 0, settings.rows)
        for what, begun in (("node", begin_node(where)), ("replica", begin_replica(where))):
            yield Figure(f"bootstrap_{what}_took", begun.took_s, "s")
            yield Figure(f"bootstrap_{what}_stored", begun.stored_mb, "MB")


def load(where: Stand, first: int, end: int) -> float:
    """Load the rows from `first` to `end`; return the seconds that this took."""
    say(f"loading rows up to {end:,}")
    seconds: float = where.child("loader", "bulk_loader", first, end).answer(stop=False)["seconds"]
    return seconds


def begin_node(where: Stand) -> Begun:
    """Start a replicant in an empty folder, wait until it is ready, and take it away again."""
    say("a new node")
    folder = where.cluster.data / NODE
    begin = time.monotonic()
    where.cluster.start(NODE)
    begun = Begun(time.monotonic() - begin, _stored_mb(folder))
    where.cluster.stop(NODE)
    shutil.rmtree(folder)
    return begun


def begin_replica(where: Stand) -> Begun:
    """Open a replica in this process, in an empty folder, and take it away again."""
    say("a new embedded replica")
    folder = where.cluster.data / REPLICA
    begin = time.monotonic()
    with open_replica(where.named(REPLICA), wait_s=WAIT_S):
        begun = Begun(time.monotonic() - begin, _stored_mb(folder))
    shutil.rmtree(folder)
    return begun


def _stored_mb(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.rglob("store.db*")) / MB
