"""What metrics cost a commit, without servers:
`python -m tests.bench.metrics_cost [TURNS]`, interpreted.

A master and a follower commit as in `transaction_cost`, in turns with and without their counters
and histograms; a turn is compared with the one beside it, and the median of these counts. Then one
scrape of both nodes, as a share of a processor where Prometheus asks each 15 s.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median
from typing import Any, Final

from prometheus_client import CollectorRegistry, generate_latest

from leasehold.adapters.metrics.collector import ExpositionCollector
from leasehold.adapters.metrics.exposition import Exposition
from leasehold.adapters.os.clock import now
from leasehold.adapters.os.garbage import collect_seldom
from leasehold.model.measures import Measures
from leasehold.node.node_samples import NodeLook
from tests.bench.transaction_cost import Pair, measure

TURNS: Final = 9
SIZES: Final = {"one update a record": (1, 600), "150 updates a record": (150, 40)}
SCRAPES: Final = 50
SCRAPED_EVERY_S: Final = 15.0


def _nothing(*_: Any, **__: Any) -> None:
    """Counts nothing."""


@contextmanager
def _without() -> Iterator[None]:
    kept = {name: getattr(Measures, name) for name in ("add", "observe")}
    for name in kept:
        setattr(Measures, name, _nothing)
    try:
        yield
    finally:
        for name, counts in kept.items():
            setattr(Measures, name, counts)


def counting(updates: int, records: int, turns: int) -> tuple[float, float]:
    """Return what a transaction takes of both nodes' processor time without counting, in µs, and
    how much more it takes with it, in per cent."""
    taken, shares = [], []
    for turn in range(turns):
        found: dict[bool, float] = {}
        for counts in (True, False) if turn % 2 else (False, True):
            if counts:
                found[counts] = sum(measure(updates, records).values())
            else:
                with _without():
                    found[counts] = sum(measure(updates, records).values())
        taken.append(found[False])
        shares.append((found[True] / found[False] - 1) * 100)
    return median(taken), median(shares)


def scrape_ms() -> float:
    """Return the processor time of one scrape of a node that has committed, in ms."""
    with tempfile.TemporaryDirectory() as folder, closing(Pair(Path(folder))) as pair:
        pair.decide([{"sql": "CREATE TABLE t (id bigint PRIMARY KEY)"}])
        look, exposition, registry = NodeLook(pair.master), Exposition(), CollectorRegistry()
        exposition.add("node", lambda: look.samples(now()))
        registry.register(ExpositionCollector(exposition))
        begin = time.process_time()
        for _ in range(SCRAPES):
            generate_latest(registry)
        return (time.process_time() - begin) / SCRAPES * 1e3


def main() -> None:
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else TURNS
    collect_seldom()
    for words, size in SIZES.items():
        taken, share = counting(*size, turns)
        sys.stdout.write(f"{words}: {taken:.1f} µs of both nodes, {share:+.1f} % with counting\n")
    took = scrape_ms()
    of_a_core = took / 1e3 / SCRAPED_EVERY_S * 100
    sys.stdout.write(f"a scrape: {took:.2f} ms, {of_a_core:.3f} % of a processor each 15 s\n")


if __name__ == "__main__":
    main()
