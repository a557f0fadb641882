"""A long hunt: `python -m tests.simulation --seeds 1000`. Each failing seed prints its story."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor

from tests.simulation.simulation import Simulation


def story(seed: int) -> tuple[int, str, str]:
    """(seed, "" or what went wrong, with its history; a line about the run)."""
    sim = Simulation(seed)
    began = time.monotonic()
    try:
        sim.run()
    except Exception:  # noqa: BLE001  the hunt goes on with the next seed
        lines = "\n".join(sim.history)
        return seed, f"{lines}\n{traceback.format_exc()}", ""
    took = time.monotonic() - began
    commits = len(sim.reference.commits)
    jobs = [job.status.value for job in sim.reference.catalog.jobs.values()]
    told = sum(node.received_records for node in sim.cluster.nodes.values())
    landed = sum(node.driver.landed_records for node in sim.cluster.nodes.values())
    asked = sum(getattr(w.client, "told_requests", 0) for w in sim.workloads)
    held = sum(getattr(w.client, "held_requests", 0) for w in sim.workloads)
    line = (
        f"seed {seed}: {took:.1f} s, {sim.scheduler.now_ns / 1e9:.0f} virtual s,"
        f" {sim.chaos.count} faults, epoch {sim.reference.position.epoch}, {commits} commits,"
        f" {sim.reference.refusals} refusals, {sim.reads} reads, {sim.decoded} decoded,"
        f" {told} records told, {landed} not read back, {asked} requests ({held} held), {jobs}"
    )
    return seed, "", line


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--quiet", action="store_true")
    args = parser.parse_args()
    failed = []
    with ProcessPoolExecutor(args.workers) as pool:
        for seed, wrong, line in pool.map(story, range(args.first, args.first + args.seeds)):
            if wrong:
                failed.append(seed)
                print(f"---- seed {seed}: replay with `make sim SEED={seed}`\n{wrong}", flush=True)
            elif not args.quiet:
                print(line, flush=True)
    print(f"{args.seeds - len(failed)} of {args.seeds} seeds hold; failing: {failed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
