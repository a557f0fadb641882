"""`python -m tests.soak [--minutes N] [--seed S] [--kafka-heap MB] [--json FILE]`: hours of work on
real parts by writers, readers, schema changes and restarts. Prints what grows, how long a statement
took at most, and what failed.

Exit codes: 0 nothing grows and nothing failed, 1 otherwise, 2 wrong arguments or the machine lacks
something, 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Final

from infra.kafka.settings import HEAP_MB
from infra.local_cluster import ROOT, LocalCluster
from infra.ports import Ports
from infra.processes import ProcessFailure
from tests.soak.growth import Growth, Limit, Sample, judge
from tests.soak.load import Counts, Work
from tests.soak.samples import KeptRecords, take_sizes
from tests.support.cluster.system_cluster import settings_of

NODES: Final = ("m1", "m2", "r1", "r2", "r3")
SERVICES: Final = (*NODES, "changefeed", "spark", "dashboard")
RESTARTED: Final = ("r1", "m1", "r2", "m2", "r3", "changefeed")
SAMPLE_EVERY_S: Final = 30.0
HEAPS_EVERY: Final = 10
"""Samples: a heap is looked at after a collection, for which a broker stands still."""
CHECK_TIMEOUT_S: Final = 300.0


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the arguments; exits with 2 and a sentence on wrong ones."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=120.0, help="how long (120)")
    parser.add_argument("--seed", type=int, default=0, help="of what is read and written")
    parser.add_argument("--per-second", type=float, default=100.0, help="writes, and reads (100)")
    parser.add_argument("--change-every", type=float, default=15.0, metavar="S", help="(15)")
    parser.add_argument("--restart-every", type=float, default=60.0, metavar="S", help="(60)")
    parser.add_argument(
        "--kafka-heap", type=int, default=HEAP_MB, metavar="MB", help=f"its limit ({HEAP_MB})"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all samples there, too")
    wanted = parser.parse_args(arguments)
    if wanted.minutes <= 0 or wanted.per_second <= 0:
        parser.error("--minutes and --per-second are more than 0")
    return wanted


class Soak:
    """One run. `say`: takes lines for people."""

    def __init__(self, cluster: LocalCluster, wanted: argparse.Namespace) -> None:
        self._cluster = cluster
        self._wanted = wanted
        database = cluster.cluster_settings.database
        self.work = Work(cluster.ports.sql[:3], database, wanted.seed)
        self.series: dict[str, list[Sample]] = defaultdict(list)
        self._limits: dict[str, tuple[str, Limit | None]] = {}

    def run(self) -> None:
        """Start all, let it work for its time, and stop the work."""
        say(f"starting Kafka, Redis, {', '.join(SERVICES)}")
        self._cluster.start_servers()
        self._cluster.create_topics()
        self._cluster.start("spark", wait=False)
        for name in SERVICES:
            self._cluster.start(name)
        self.work.prepare()
        wanted = self._wanted
        self.work.start(
            self._cluster,
            RESTARTED,
            writers=4,
            per_second=wanted.per_second,
            change_every_s=wanted.change_every,
            restart_every_s=wanted.restart_every,
        )
        say(f"{wanted.minutes:g} minutes of work, seed {wanted.seed}")
        try:
            self._sample(wanted.minutes * 60)
        finally:
            self.work.end()

    def _sample(self, seconds: float) -> None:
        begun = time.monotonic()
        told = begun
        kept = KeptRecords(settings_of(self._cluster, "soak"))
        with closing(kept):
            for number in count():
                at_s = time.monotonic() - begun
                if at_s >= seconds:
                    return
                heaps = number % HEAPS_EVERY == 0
                sizes = take_sizes(self._cluster, SERVICES, kept, heaps=heaps)
                for name, (value, unit, limit) in sizes.items():
                    self.series[name].append(Sample(at_s, value))
                    self._limits[name] = unit, limit
                if time.monotonic() - told >= 300:
                    told = time.monotonic()
                    say(f"{at_s / 60:.0f} of {seconds / 60:.0f} minutes: {self._counts()}")
                self.work.stop.wait(min(SAMPLE_EVERY_S, max(0.1, seconds / 20)))

    def _counts(self) -> str:
        work = self.work
        return (
            f"{work.writes.done:,} writes, {work.reads.done:,} reads, {work.changes.done} changes,"
            f" {work.restarts.done} restarts, longest write {work.writes.longest_ms:,.0f} ms,"
            f" {self.failed} failed"
        )

    @property
    def failed(self) -> int:
        """How many statements and restarts have failed, of those that are kept."""
        work = self.work
        return sum(len(c.failures) for c in (work.writes, work.reads, work.changes, work.restarts))

    def growths(self) -> list[Growth]:
        """Return how each series grows, those that do first."""
        found = [
            judge(name, unit, self.series[name], limit)
            for name, (unit, limit) in self._limits.items()
        ]
        return sorted(found, key=lambda each: (each.flat is not False, each.name))

    def check(self) -> bool:
        """Return what `leasehold check` says once the work has ended, and print it where it is not
        well."""
        ended = subprocess.run(
            [sys.executable, "-m", "leasehold.cli.main", "check"],
            env=self._cluster.env("soak"),
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=CHECK_TIMEOUT_S,
            check=False,
        )
        if ended.returncode:
            print(ended.stdout + ended.stderr)
        return ended.returncode == 0


def say(words: str) -> None:
    """Progress: standard output carries the figures alone."""
    print(f"soak: {words}", file=sys.stderr, flush=True)


def report(soak: Soak, consistent: bool) -> bool:
    """Print what was found; return whether all of it is well."""
    growths = soak.growths()
    print(f"{'':34} {'first':>10} {'last':>10} {'an hour':>10}")
    for each in growths:
        words = {True: "flat", False: "GROWS", None: "too short to say"}[each.flat]
        if not each.judged:
            words = "told only"
        numbers = (f"{number:10,.1f}" for number in (each.first, each.last, each.per_hour))
        print(f"{each.name:34} {' '.join(numbers)} {each.unit:3} {words}")
    work = soak.work
    for name, counts in (
        ("writes", work.writes),
        ("reads", work.reads),
        ("schema changes", work.changes),
        ("restarts", work.restarts),
    ):
        print(f"{name}: {_told(counts)}")
        for failure in counts.failures:
            print(f"  failed: {failure}")
    print(f"leasehold check: {'consistent' if consistent else 'NOT consistent'}")
    return consistent and not soak.failed and all(each.flat is not False for each in growths)


def _told(counts: Counts) -> str:
    return (
        f"{counts.done:,} done, {counts.again:,} run again, longest {counts.longest_ms:,.0f} ms,"
        f" {len(counts.failures)} failed"
    )


def _interrupted(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main(arguments: Sequence[str]) -> int:
    """Run what the arguments say; return the exit code."""
    wanted = parse(arguments)
    signal.signal(signal.SIGTERM, _interrupted)
    try:
        with (
            tempfile.TemporaryDirectory(prefix="leasehold-soak-") as folder,
            LocalCluster(
                Path(folder), Ports.free(), kafka_heap_mb=wanted.kafka_heap, lasting=True
            ) as cluster,
        ):
            soak = Soak(cluster, wanted)
            soak.run()
            consistent = soak.check()
    except ProcessFailure as error:
        print(error, file=sys.stderr)
        return 2
    if wanted.json is not None:
        wanted.json.write_text(json.dumps(soak.series))
    return 0 if report(soak, consistent) else 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
