"""A long hunt: `python -m tests.simulation --seeds 1000`. Each failing seed prints its story; the
end says which rules were exercised how often, which never, and how long it took to recover.

It can be taken up again: `--tally FILE` adds the figures to those of earlier pieces, and begins
behind the last seed of these; `--minutes` ends a piece in time.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
import traceback
from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from tests.simulation.exercised import counting, summary
from tests.simulation.simulation import Recovery, Simulation
from tests.support.whole_file import write_whole_file

SEPARATOR = ": "
AHEAD = 4
"""So many seeds for each worker are under way or wait for it."""


class Told(NamedTuple):
    """Of one seed. `wrong`: "" or what went wrong, with its history. `line`: about the run.
    `exercised`: how often, by rule and place."""

    seed: int
    wrong: str
    line: str
    seconds: float
    faults: int
    exercised: dict[str, int]
    recovery: tuple[int, ...]


def story(seed: int) -> Told:
    """Run a seed."""
    sim = Simulation(seed)
    began = time.monotonic()
    wrong = line = ""
    with counting() as counted:
        try:
            sim.run()
            line = _line(sim)
        except Exception:  # noqa: BLE001  the hunt goes on with the next seed
            history = "\n".join(sim.history)
            wrong = f"{history}\n{traceback.format_exc()}"
    took = time.monotonic() - began
    named = {f"{rule}{SEPARATOR}{words}": count for (rule, words), count in counted.items()}
    faults = sim.chaos.count + sim.chaos.handed_over + sim.machines.count
    recovery = tuple(sim.recovery or ())
    return Told(seed, wrong, f"seed {seed}: {took:.1f} s, {line}", took, faults, named, recovery)


def _line(sim: Simulation) -> str:
    commits = len(sim.reference.commits)
    jobs = Counter(job.status.value for job in sim.reference.catalog.jobs.values())
    told = sum(node.received_records for node in sim.cluster.nodes.values())
    landed = sum(node.driver.landed_records for node in sim.cluster.nodes.values())
    asked = sum(getattr(w.client, "told_requests", 0) for w in sim.workloads)
    held = sum(getattr(w.client, "held_requests", 0) for w in sim.workloads)
    return (
        f"{sim.scheduler.now_ns / 1e9:.0f} virtual s, {sim.chaos.count}"
        f" + {sim.machines.count} faults, epoch {sim.reference.position.epoch}, {commits} commits,"
        f" {sim.reference.refusals} refusals, {sim.reads} reads, {sim.decoded} decoded,"
        f" {told} records told, {landed} not read back, {asked} requests ({held} held),"
        f" jobs {dict(jobs)}, {sim.recovery}"
    )


@dataclass
class Tally:
    """The figures of all pieces of a hunt. `exercised`, `met`: how often and in how many runs, by
    rule and place. `recoveries`: in virtual ms, by `Recovery`."""

    first: int = 0
    seeds: int = 0
    seconds: float = 0.0
    faults: int = 0
    failing: list[int] = field(default_factory=list)
    exercised: dict[str, int] = field(default_factory=dict)
    met: dict[str, int] = field(default_factory=dict)
    recoveries: list[list[int]] = field(default_factory=list)

    def add(self, told: Told) -> None:
        self.seeds += 1
        self.seconds += told.seconds
        self.faults += told.faults
        if told.wrong:
            self.failing.append(told.seed)
        for place, count in told.exercised.items():
            self.exercised[place] = self.exercised.get(place, 0) + count
            self.met[place] = self.met.get(place, 0) + 1
        if told.recovery:
            self.recoveries.append(list(told.recovery))

    def lines(self) -> Iterator[str]:
        yield from summary(_by_rule(self.exercised), _by_rule(self.met))
        yield (
            f"{self.seeds - len(self.failing)} of {self.seeds} seeds from {self.first} on hold,"
            f" {self.faults:,} faults, {self.seconds / max(1, self.seeds):.2f} s a seed; failing:"
            f" {self.failing or 'none'}"
        )
        for number, goal in enumerate(Recovery._fields):
            found = sorted(each[number] for each in self.recoveries)
            if found:
                p50, p99 = found[len(found) // 2], found[len(found) * 99 // 100]
                yield f"{goal} after the last fault: p50 {p50}, p99 {p99}, most {found[-1]} ms"


def _by_rule(named: dict[str, int]) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for place, count in named.items():
        rule, _, words = place.partition(SEPARATOR)
        found[rule, words] = count
    return found


def collect_seldom() -> None:
    """Have a worker look for cycles a tenth as often: all that a seed has made goes with it."""
    gc.freeze()
    gc.set_threshold(5_000, 10, 10)


def run(seeds: range, tally: Tally, workers: int, minutes: float) -> Iterator[Told]:
    """Run seeds, in their order, and add them up, until the time is over."""
    end = time.monotonic() + 60 * minutes
    rest = iter(seeds)
    with ProcessPoolExecutor(workers, initializer=collect_seldom) as pool:
        # ⚠ Not all at once: 15,000 fill the pipe by which the executor of Python 3.11.2 is woken,
        # and it stands still (cpython issue 105829).
        under_way = deque(pool.submit(story, seed) for seed in islice(rest, AHEAD * workers))
        while under_way:
            told = under_way.popleft().result()
            if time.monotonic() < end:
                under_way.extend(pool.submit(story, seed) for seed in islice(rest, 1))
            tally.add(told)
            yield told


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=24 * 60, help="begin no seed after that")
    parser.add_argument("--tally", type=Path, help="a file with the figures of earlier pieces")
    parser.add_argument("--quiet", action="store_true")
    args = parser.parse_args()
    tally = Tally(first=args.first)
    if args.tally is not None and args.tally.exists():
        kept: dict[str, Any] = json.loads(args.tally.read_text(encoding="utf-8"))
        tally = Tally(**kept)
    begin = tally.first + tally.seeds
    for told in run(range(begin, begin + args.seeds), tally, args.workers, args.minutes):
        if told.wrong:
            command = f"make sim SEED={told.seed}"
            print(f"---- seed {told.seed}: replay with `{command}`\n{told.wrong}", flush=True)
        elif not args.quiet:
            print(told.line, flush=True)
        if args.tally is not None:
            write_whole_file(args.tally, json.dumps(asdict(tally)))
    print("\n".join(tally.lines()))
    return 1 if tally.failing else 0


if __name__ == "__main__":
    sys.exit(main())
