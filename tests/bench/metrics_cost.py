"""What metrics cost a commit, without servers:
`python -m tests.bench.metrics_cost [TURNS]`, interpreted.

A master and a follower commit as in `transaction_cost`, in turns with what they have counted
meanwhile, counted once more by itself: the difference of two whole runs, with counting and without,
is smaller than what a machine makes of it. Then one scrape, as a share of a processor where
Prometheus asks each 15 s.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median
from typing import Any, Final, TypeAlias

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


Call: TypeAlias = tuple[str, tuple[Any, ...], dict[str, Any]]


@contextmanager
def _noted(calls: list[Call]) -> Iterator[None]:
    """Note each call of a counter or a histogram, and make it."""
    kept = {name: getattr(Measures, name) for name in ("add", "observe")}

    def noting(name: str) -> Callable[..., None]:
        def count(self: Measures, *args: Any, **more: Any) -> None:
            calls.append((name, args, more))
            kept[name](self, *args, **more)

        return count

    for name in kept:
        setattr(Measures, name, noting(name))
    try:
        yield
    finally:
        for name, counts in kept.items():
            setattr(Measures, name, counts)


def counted_us(calls: list[Call]) -> float:
    """Return the processor time that these calls take together, in µs."""
    measures = Measures()
    bound = [(getattr(measures, name), args, more) for name, args, more in calls]
    begin = time.thread_time_ns()
    for count, args, more in bound:
        count(*args, **more)
    return (time.thread_time_ns() - begin) / 1e3


def counting(updates: int, records: int, turns: int) -> tuple[float, float, float]:
    """Return of a transaction: the processor time that it takes of both nodes, in µs, the calls
    that count it, and their share of that time, in per cent; each by its median. What counts the
    making of the table and its rows is among the calls."""
    calls: list[Call] = []
    with _noted(calls):
        measure(updates, records)
    transactions = updates * records
    taken, counted = [], []
    for _ in range(turns):
        taken.append(sum(measure(updates, records).values()))
        counted.append(counted_us(calls) / transactions)
    shares = [mine / whole * 100 for mine, whole in zip(counted, taken, strict=True)]
    return median(taken), len(calls) / transactions, median(shares)


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
        taken, calls, share = counting(*size, turns)
        sys.stdout.write(
            f"{words}: a transaction takes {taken:.1f} µs of both nodes, {share:.2f} % of it to"
            f" count ({calls:.2f} calls)\n"
        )
        sys.stdout.flush()
    took = scrape_ms()
    of_a_core = took / 1e3 / SCRAPED_EVERY_S * 100
    sys.stdout.write(f"a scrape: {took:.2f} ms, {of_a_core:.3f} % of a processor each 15 s\n")


if __name__ == "__main__":
    main()
