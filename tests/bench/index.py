"""Groups index and stall, on the same rows: bulk load, CREATE INDEX, writers beside it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from statistics import median
from typing import Final

from infra.demo.changes import rows_per_second
from leasehold.adapters.os.clock import boottime_ns
from leasehold.catalog.job import Phase
from tests.bench import bulk_loader
from tests.bench.bench_settings import BenchSettings
from tests.bench.beside import AT_A_TIME, WRITES_PER_S, Done, writes_beside
from tests.bench.bootstrap import load
from tests.bench.cpu import cpu_times, per_unit
from tests.bench.figure import Figure
from tests.bench.jobs_reader import Ended
from tests.bench.pacing import Span, phase_spans
from tests.bench.stand import Stand, replicants, say, stand
from tests.bench.topic_bytes import grown, topic_bytes

JOB_TIMEOUT_S: Final = 900.0
MARKER_TIMEOUT_S: Final = 600.0
DEFAULTS: Final = tuple(
    f"ALTER TABLE {bulk_loader.TABLE} ADD COLUMN beside{number} int NOT NULL DEFAULT 7"
    for number in range(AT_A_TIME)
)
"""Columns with a constant default, which touch no row, in the words of both databases."""
CHECK: Final = f"ALTER TABLE {bulk_loader.TABLE} ADD CONSTRAINT beside_n CHECK (n >= 0)"
COMPUTED: Final = f"ALTER TABLE {bulk_loader.TABLE} ADD CONSTRAINT long CHECK (length(words) > 1)"
"""The one SQLite looks at by itself, the other by the compiled expression."""
CITIES: Final = "CREATE TABLE cities (city text PRIMARY KEY)"
REFERS: Final = f"ALTER TABLE {bulk_loader.TABLE} ADD FOREIGN KEY (city) REFERENCES cities (city)"
TYPE: Final = f"ALTER TABLE {bulk_loader.TABLE} ALTER beside0 TYPE text"
BESIDE: Final = {
    "during": (f"CREATE INDEX beside_words ON {bulk_loader.TABLE} (words)",),
    "unique": (f"CREATE UNIQUE INDEX beside_id ON {bulk_loader.TABLE} (words, id)",),
    "check": (CHECK,),
    "computed": (COMPUTED,),
    "default": DEFAULTS,
    "type": (TYPE,),
    "refers": (REFERS,),
}
"""Changes beside writers by the names in their figures, in this order. All but the defaults
backfill or look through every row."""


class LoadedRows:
    """The stand with the rows on it; made for the first group that asks, shared by both."""

    def __init__(self, where: Stand, rows: int, processes: list[str]) -> None:
        self.where = where
        self.rows = rows
        self.processes = processes
        self.changed = False
        self.cities = False
        where.submit({"sql": bulk_loader.CREATE})
        where.submit({"sql": "CREATE TABLE marker (id bigint PRIMARY KEY)"})
        self.seconds = load(where, 0, rows)
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
    with stand(services, settings.warm_up) as where:
        yield LoadedRows(where, settings.rows, ["kafka", *services])


def measure_index(loaded: LoadedRows) -> Iterator[Figure]:
    yield Figure("bulk_rate", loaded.rows / loaded.seconds, "rows/s")
    say("CREATE INDEX")
    ended = loaded.change(bulk_loader.INDEX)
    yield Figure("index_rows_rate", loaded.rows / ended.took_ms * 1e3, "rows/s")
    yield Figure("backfill_rate", rows_per_second(ended.job), "rows/s")


def measure_menu(loaded: LoadedRows) -> Iterator[Figure]:
    """The other kinds of change, one after the other; what they leave stays. A rate where every
    row is filled or looked at, a time where none is touched."""
    table = bulk_loader.TABLE
    for metric, sql in (
        ("unique_index_rows_rate", f"CREATE UNIQUE INDEX rows_words_key ON {table} (words)"),
        ("add_default_e2e", f"ALTER TABLE {table} ADD COLUMN seats int NOT NULL DEFAULT 7"),
        ("check_rows_rate", f"ALTER TABLE {table} ADD CHECK (n >= 0 AND seats < 10)"),
        ("computed_check_rows_rate", f"ALTER TABLE {table} ADD CHECK (length(words) > 2)"),
        ("not_null_rows_rate", f"ALTER TABLE {table} ALTER words SET NOT NULL"),
        ("foreign_key_rows_rate", REFERS),
        ("alter_type_rows_rate", f"ALTER TABLE {table} ALTER seats TYPE text"),
        (
            "generated_rows_rate",
            f"ALTER TABLE {table} ADD letters int GENERATED ALWAYS AS (length(words) * 2) STORED",
        ),
        ("drop_column_e2e", f"ALTER TABLE {table} DROP COLUMN seats"),
    ):
        say(sql)
        if metric == "foreign_key_rows_rate":
            _load_cities(loaded)
        if metric == "alter_type_rows_rate":
            loaded.where.change(f"ALTER TABLE {table} DROP CONSTRAINT rows_check", JOB_TIMEOUT_S)
        ended = loaded.change(sql)
        if metric.endswith("_e2e"):
            yield Figure(metric, ended.took_ms, "ms")
        else:
            yield Figure(metric, loaded.rows / ended.took_ms * 1e3, "rows/s")


def city_names() -> list[str]:
    """Return every value that the rows have of their city."""
    return [bulk_loader.row(key)["city"] for key in range(bulk_loader.CITIES)]


def _load_cities(loaded: LoadedRows) -> None:
    """What the rows refer to, unless it is there; their own index is made with the key."""
    if loaded.cities:
        return
    loaded.cities = True
    loaded.where.submit({"sql": CITIES})
    rows = [
        {"table": "cities", "op": "insert", "key": [name], "values": {}} for name in city_names()
    ]
    loaded.where.submit({"transaction": rows})


def measure_stall(loaded: LoadedRows) -> Iterator[Figure]:
    """Writers beside changes of each kind."""
    if not loaded.changed:
        say("a first change, so that broker and Spark have compiled what they need")
        loaded.change(bulk_loader.INDEX)
    _load_cities(loaded)
    start = loaded.where.child
    writer = start("writer", "steady_writer", bulk_loader.TABLE, loaded.rows, WRITES_PER_S)
    changes = {when: partial(_beside, loaded, series) for when, series in BESIDE.items()}
    yield from writes_beside(start, writer, changes, loaded.rows)


def measure_keys(loaded: LoadedRows) -> Iterator[Figure]:
    """Another primary key, alone and beside writers of another column, which goes on being the key
    by which they name rows: both keys have the same values."""
    table = bulk_loader.TABLE
    sql = f"ALTER TABLE {table} DROP CONSTRAINT {table}_pkey, ADD PRIMARY KEY (n)"
    say(sql)
    ended = loaded.change(sql)
    yield Figure("primary_key_rows_rate", loaded.rows / ended.took_ms * 1e3, "rows/s")
    yield Figure("copied_rows_rate", loaded.rows / _copied_s(ended), "rows/s")
    start = loaded.where.child
    writer = start("writer", "steady_writer", table, loaded.rows, WRITES_PER_S, "city")
    sql = f"ALTER TABLE {table} DROP CONSTRAINT {table}_pkey, ADD PRIMARY KEY (id)"
    beside: list[Ended] = []

    def change() -> Done:
        say(sql)
        beside.append(loaded.change(sql))
        phases = phase_spans(beside[0].job.marks, time.time_ns() - boottime_ns())
        return Done(beside[0].took_ms / 1e3, phases)

    yield from writes_beside(start, writer, {"primary_key": change}, loaded.rows)
    yield Figure("copied_rows_rate_beside", loaded.rows / _copied_s(beside[0]), "rows/s")


def _copied_s(ended: Ended) -> float:
    """How long the rows were copied for: in the last phase of the job that fills anything."""
    spans = phase_spans(ended.job.marks, 0)
    for phase, each in spans.items():
        took = ", ".join(f"{(span.end_ns - span.begin_ns) / 1e9:.2f}" for span in each)
        say(f"{phase}: {took} s")
    begin_ns, end_ns = spans[Phase.BACKFILLING.value][-1]
    return (end_ns - begin_ns) / 1e9


def _beside(loaded: LoadedRows, series: Sequence[str]) -> Done:
    """One change after the other; what all but the last cost is not told."""
    say("; ".join(series[:2]) + (f" and {len(series) - 2} more" if len(series) > 2 else ""))
    ended = [loaded.where.change(sql, JOB_TIMEOUT_S) for sql in series[:-1]]
    ended.append(loaded.change(series[-1]))
    ahead_ns = time.time_ns() - boottime_ns()
    phases: dict[str, list[Span]] = {}
    for one in ended:
        for phase, spans in phase_spans(one.job.marks, ahead_ns).items():
            phases.setdefault(phase, []).extend(spans)
    return Done(median(one.took_ms for one in ended) / 1e3, phases)
