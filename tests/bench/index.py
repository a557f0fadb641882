"""Groups index and stall, on the same rows: bulk load, CREATE INDEX, writers beside it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Final

from infra.demo.changes import rows_per_second
from leasehold.adapters.os.clock import boottime_ns
from tests.bench import bulk_loader
from tests.bench.bench_settings import BenchSettings
from tests.bench.beside import WRITES_PER_S, Done, writes_beside
from tests.bench.cpu import cpu_times, per_unit
from tests.bench.figure import Figure
from tests.bench.jobs_reader import Ended
from tests.bench.pacing import phase_spans
from tests.bench.stand import Stand, replicants, say, stand
from tests.bench.topic_bytes import grown, topic_bytes

JOB_TIMEOUT_S: Final = 900.0
MARKER_TIMEOUT_S: Final = 600.0
BESIDE: Final = {
    "during": f"CREATE INDEX beside_words ON {bulk_loader.TABLE} (words)",
    "unique": f"CREATE UNIQUE INDEX beside_id ON {bulk_loader.TABLE} (words, id)",
    "default": f"ALTER TABLE {bulk_loader.TABLE} ADD COLUMN beside int NOT NULL DEFAULT 7",
    "type": f"ALTER TABLE {bulk_loader.TABLE} ALTER beside TYPE text",
}
"""Changes that backfill or look through every row by the names in their figures, in this order."""


class LoadedRows:
    """The stand with the rows on it; made for the first group that asks, shared by both."""

    def __init__(self, where: Stand, rows: int, processes: list[str]) -> None:
        self.where = where
        self.rows = rows
        self.processes = processes
        self.changed = False
        where.submit({"sql": bulk_loader.CREATE})
        where.submit({"sql": "CREATE TABLE marker (id bigint PRIMARY KEY)"})
        say(f"loading {rows} rows")
        loader = where.child("loader", "bulk_loader", rows)
        self.seconds = loader.answer(stop=False)["seconds"]
        self._wait_for_changefeed()

    def change(self, sql: str) -> Ended:
        """A schema change over all rows; tells what it cost each process."""
        self.changed = True
        before = cpu_times(self.where.cluster, self.processes)
        sizes = topic_bytes(self.where.cluster)
        ended = self.where.change(sql, JOB_TIMEOUT_S)
        after = cpu_times(self.where.cluster, self.processes)
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
    """Changes that backfill or look through every row, one after the other; what they leave
    stays."""
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
    """Writers beside the changes that backfill or look through every row."""
    if not loaded.changed:
        say("a first change, so that broker and Spark have compiled what they need")
        loaded.change(bulk_loader.INDEX)
    start = loaded.where.child
    writer = start("writer", "steady_writer", bulk_loader.TABLE, loaded.rows, WRITES_PER_S)
    changes = {when: partial(_beside, loaded, sql) for when, sql in BESIDE.items()}
    yield from writes_beside(start, writer, changes, loaded.rows)


def _beside(loaded: LoadedRows, sql: str) -> Done:
    say(sql)
    ended = loaded.change(sql)
    phases = phase_spans(ended.job.marks, time.time_ns() - boottime_ns())
    return Done(ended.took_ms / 1e3, phases)
