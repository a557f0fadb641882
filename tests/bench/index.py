"""Groups index and stall, on the same rows: bulk load, CREATE INDEX, writers beside it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from infra.demo.changes import rows_per_second
from leasehold.adapters.clock import boottime_ns
from tests.bench import bulk_loader
from tests.bench.bench_settings import BenchSettings
from tests.bench.child import Child
from tests.bench.cpu import cpu_seconds, per_unit
from tests.bench.figure import Figure, in_words, latencies, percentile
from tests.bench.jobs_reader import Ended
from tests.bench.machine_stalls import longest_ms, shared_ms
from tests.bench.pacing import Span, Write, due_between, due_in, phase_spans
from tests.bench.stand import Stand, replicants, say, stand
from tests.bench.topic_bytes import grown, topic_bytes

JOB_TIMEOUT_S: Final = 900.0
MARKER_TIMEOUT_S: Final = 600.0
WRITES_PER_S: Final = 200
SETTLE_S: Final = 3.0
QUIET_S: Final = 10.0
BESIDE: Final = {
    "during": f"CREATE INDEX beside_words ON {bulk_loader.TABLE} (words)",
    "unique": f"CREATE UNIQUE INDEX beside_id ON {bulk_loader.TABLE} (words, id)",
    "default": f"ALTER TABLE {bulk_loader.TABLE} ADD COLUMN beside int NOT NULL DEFAULT 7",
    "type": f"ALTER TABLE {bulk_loader.TABLE} ALTER beside TYPE text",
}
"""Changes that fill or look through every row by the names in their figures, in this order."""


class LoadedRows:
    """The stand with the rows on it; made for the first group that asks, shared by both."""

    def __init__(self, where: Stand, rows: int, processes: list[str]) -> None:
        self.where = where
        self.rows = rows
        self.processes = processes
        where.submit({"sql": bulk_loader.CREATE})
        where.submit({"sql": "CREATE TABLE marker (id bigint PRIMARY KEY)"})
        say(f"loading {rows} rows")
        loader = where.child("loader", "bulk_loader", rows)
        self.seconds = loader.answer(stop=False)["seconds"]
        self._wait_for_changefeed()

    def change(self, sql: str) -> Ended:
        """A schema change over all rows; tells what it cost each process."""
        before = cpu_seconds(self.where.cluster, self.processes)
        sizes = topic_bytes(self.where.cluster)
        ended = self.where.change(sql, JOB_TIMEOUT_S)
        after = cpu_seconds(self.where.cluster, self.processes)
        say(f"bytes per row: {grown(sizes, topic_bytes(self.where.cluster), self.rows)}")
        say(f"processor time per row, µs: {per_unit(before, after, self.rows)}")
        return ended

    def _wait_for_changefeed(self) -> None:
        """What it publishes of a later change stands behind all the rows."""
        begin = time.monotonic()
        self.where.change("ALTER TABLE marker ADD COLUMN seen text", MARKER_TIMEOUT_S)
        say(f"the changefeed had the rows {time.monotonic() - begin:.1f} s later")


def loaded_stand(settings: BenchSettings) -> Iterator[LoadedRows]:
    services = ["m1", *replicants(settings.replicants), "changefeed", "spark"]
    with stand(services) as where:
        yield LoadedRows(where, settings.rows, ["kafka", *services])


def measure_index(loaded: LoadedRows) -> Iterator[Figure]:
    yield Figure("bulk_rate", loaded.rows / loaded.seconds, "rows/s")
    say("CREATE INDEX")
    ended = loaded.change(bulk_loader.INDEX)
    yield Figure("index_rows_rate", loaded.rows / ended.took_ms * 1e3, "rows/s")
    yield Figure("backfill_rate", rows_per_second(ended.job), "rows/s")


def measure_menu(loaded: LoadedRows) -> Iterator[Figure]:
    """Changes that fill or look through every row, one after the other; what they leave stays."""
    table = bulk_loader.TABLE
    for metric, sql in (
        ("unique_index_rows_rate", f"CREATE UNIQUE INDEX rows_words_key ON {table} (words)"),
        ("add_default_rows_rate", f"ALTER TABLE {table} ADD COLUMN seats int NOT NULL DEFAULT 7"),
        ("check_rows_rate", f"ALTER TABLE {table} ADD CHECK (n >= 0 AND seats < 10)"),
        ("alter_type_rows_rate", f"ALTER TABLE {table} ALTER seats TYPE text"),
        ("drop_column_e2e", f"ALTER TABLE {table} DROP COLUMN seats"),
    ):
        say(sql)
        if metric == "alter_type_rows_rate":
            loaded.where.change(f"ALTER TABLE {table} DROP CONSTRAINT rows_check", JOB_TIMEOUT_S)
        ended = loaded.change(sql)
        if metric.endswith("_e2e"):
            yield Figure(metric, ended.took_ms, "ms")
        else:
            yield Figure(metric, loaded.rows / ended.took_ms * 1e3, "rows/s")


def measure_stall(loaded: LoadedRows) -> Iterator[Figure]:
    """Writers beside the changes that fill or look through every row, each with a rest before and
    after, and the machine's own stalls meanwhile: what a change did to the writers is told from
    what the machine did."""
    processors = sorted(os.sched_getaffinity(0))
    watchers = [loaded.where.child(f"cpu{n}", "machine_stalls", n) for n in processors]
    writer = loaded.where.child(
        "writer", "steady_writer", bulk_loader.TABLE, loaded.rows, WRITES_PER_S
    )
    for child in (*watchers, writer):
        child.wait_ready()
    say(f"{WRITES_PER_S} writes/s, changes beside them, {QUIET_S:g} s between two")
    quiet = [_quiet_span()]
    spans, phases = {}, {}
    for when, sql in BESIDE.items():
        say(sql)
        begin_ns = boottime_ns()
        ended = loaded.change(sql)
        spans[when] = Span(begin_ns, boottime_ns())
        phases[when] = phase_spans(ended.job.marks, time.time_ns() - boottime_ns())
        say(f"took {ended.took_ms / 1e3:.1f} s beside the writes")
        if when != "during":
            yield Figure(f"{when}_rows_rate_beside", loaded.rows / ended.took_ms * 1e3, "rows/s")
        quiet.append(_quiet_span())
    writes = _writes(writer)
    stalls = _stalls(watchers)
    yield from _waits("before", writes, quiet[0], stalls)
    for (when, span), around in zip(spans.items(), pairwise(quiet), strict=True):
        yield from _waits(when, writes, span, stalls)
        beside, alone = due_between(writes, *span), _latencies_in(writes, around)
        ratio = percentile(beside, 0.99) / percentile(alone, 0.99)
        yield Figure(f"write_p99_ratio_{when}", ratio, "times")
        for phase, parts in {**phases[when], "alone": list(around)}.items():
            _say_phase(f"{when}: {phase}", _latencies_in(writes, parts))


def _quiet_span() -> Span:
    """Some seconds without a change; what a change before them has left is not in them."""
    time.sleep(SETTLE_S)
    begin_ns = boottime_ns()
    time.sleep(QUIET_S)
    return Span(begin_ns, boottime_ns())


def _stalls(watchers: Sequence[Child]) -> list[Span] | None:
    """The machine's own stalls; None where they can't be told from ours."""
    found = [watcher.answer(stop=True) for watcher in watchers]
    if None in found:
        say("the machine's own stalls are left out: this user may not have real-time priority")
        return None
    return [Span(*each) for stalls in found for each in stalls]


def _waits(
    when: str, writes: Sequence[Write], span: Span, stalls: Sequence[Span] | None
) -> Iterator[Figure]:
    due = due_in(writes, span)
    yield from latencies("write", when, [each.latency_ms for each in due])
    if stalls is None:
        return
    yield Figure(f"machine_stall_{when}", longest_ms(stalls, span), "ms")
    longest = max(due, key=lambda each: each.latency_ms)
    share = in_words(shared_ms(stalls, Span(*longest)))
    say(f"{when}: of its longest wait, {in_words(longest.latency_ms)} ms, the machine's {share}")


def _latencies_in(writes: Sequence[Write], spans: Iterable[Span]) -> list[float]:
    return [latency for each in spans for latency in due_between(writes, *each)]


def _say_phase(phase: str, found: Sequence[float]) -> None:
    if found:
        p50, p99, longest = (in_words(percentile(found, share)) for share in (0.5, 0.99, 1))
        say(f"{phase}: {len(found)} writes, p50 {p50}, p99 {p99}, longest {longest} ms")


def _writes(writer: Child) -> list[Write]:
    return [Write(due, answered) for due, answered in writer.answer(stop=True)]
