"""Group stall_pg: the writers of group stall beside the same changes of a PostgreSQL, on the same
rows: what this machine lets a database do in this hour.

One node at its default durability, alone on the machine. Its own way to change a table online is
CREATE INDEX CONCURRENTLY; the other changes take the table's lock.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from statistics import median
from typing import Final

import psycopg

from tests.bench import bulk_loader
from tests.bench.bench_settings import BenchSettings
from tests.bench.beside import WRITES_PER_S, Done, writes_beside
from tests.bench.child import start
from tests.bench.figure import Figure
from tests.bench.index import CHECK, CITIES, COMPUTED, DEFAULTS, REFERS, TYPE, city_names
from tests.bench.postgres import connected, postgres
from tests.bench.stand import say

TABLE: Final = bulk_loader.TABLE
AT_LEAST_S: Final = 20.0
"""An index is made again for so long: one takes two seconds, in which little happens by chance."""
BESIDE: Final[dict[str, tuple[tuple[str, ...], str | None]]] = {
    "during": ((f"CREATE INDEX CONCURRENTLY beside ON {TABLE} (words)",), "beside"),
    "unique": ((f"CREATE UNIQUE INDEX CONCURRENTLY beside ON {TABLE} (words, id)",), "beside"),
    "check": ((CHECK,), None),
    "computed": ((COMPUTED,), None),
    "default": (DEFAULTS, None),
    "type": ((TYPE,), None),
    "refers": ((REFERS,), None),
}
"""The changes of group stall in PostgreSQL's words, each with the index that it makes."""


def measure(settings: BenchSettings) -> Iterator[Figure]:
    with ExitStack() as stack:
        port = stack.enter_context(postgres())
        if port is None:
            return
        connection = stack.enter_context(connected(port))
        _load(connection, settings.rows)
        child = partial(start, stack, os.environ)
        writer = child("writer", "steady_postgres", port, TABLE, settings.rows, WRITES_PER_S)
        changes = {when: partial(_change, connection, *each) for when, each in BESIDE.items()}
        yield from writes_beside(child, writer, changes, settings.rows, "_pg")


def _load(connection: psycopg.Connection, rows: int) -> None:
    say(f"PostgreSQL: loading {rows} rows")
    connection.execute(bulk_loader.CREATE)
    columns = ("id", *bulk_loader.row(0))
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY {TABLE} ({', '.join(columns)}) FROM STDIN") as copy,
    ):
        for key in range(rows):
            copy.write_row((key, *bulk_loader.row(key).values()))
    connection.execute(CITIES)
    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO cities VALUES (%s)", [(name,) for name in city_names()])
    connection.execute("VACUUM ANALYZE")
    connection.execute("CHECKPOINT")  # of the load: it is not the writers' to wait for


def _change(connection: psycopg.Connection, series: Sequence[str], index: str | None) -> Done:
    """The median time of one after the other, and of an index that is made again and again."""
    say(f"PostgreSQL: {series[0]}")
    took_s: list[float] = []
    while True:
        for sql in series:
            begin = time.monotonic()
            connection.execute(sql)
            took_s.append(time.monotonic() - begin)
        if index is None:
            return Done(median(took_s), {})
        connection.execute(f"DROP INDEX CONCURRENTLY {index}")
        if sum(took_s) >= AT_LEAST_S:
            return Done(median(took_s), {})
