"""Group import: a table of so many rows of about 100 bytes, from a PostgreSQL by the command, and
by COPY from that PostgreSQL into another database of it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Final

import psycopg

from tests.bench.bench_settings import BenchSettings
from tests.bench.bulk_loader import CITIES, CREATE, TABLE, WORDS
from tests.bench.commands import run_command
from tests.bench.cpu import cpu_times, per_unit
from tests.bench.figure import Figure
from tests.bench.postgres import connected, postgres
from tests.bench.stand import Stand, say, stand

METRICS: Final = ("import_rate", "import_took", "import_verified_took", "import_rate_pg")
PROCESSES: Final = ("kafka", "redis", "m1", "r1")
USER: Final = "postgres"
OTHER: Final = "other"
TIMEOUT_S: Final = 3_600.0
FILL: Final = (
    f"INSERT INTO {TABLE} SELECT n, 'city ' || lpad(mod(n, {CITIES})::text, 6, '0'),"
    f" '{WORDS}' || lpad(n::text, 8, '0'), '2013-01-01', n FROM generate_series(1, %s) n"
)


def measure(settings: BenchSettings) -> Iterator[Figure]:
    """The copying as the command tells it, the whole of the command without comparing both sides,
    and once more with that."""
    rows = settings.rows
    with (
        postgres() as port,
        stand(["m1", "r1"], settings.warm_up) as where,
    ):
        if port is None:
            return
        with connected(port) as source:
            source.execute(CREATE)
            source.execute(FILL.encode(), (rows,))
            source.execute("VACUUM ANALYZE")
        before = cpu_times(where.cluster, PROCESSES)
        took_ms, told = _import(where, port, "--no-verify")
        spent = per_unit(before, cpu_times(where.cluster, PROCESSES), rows)
        say(f"µs of processor time a row: {spent}")
        yield Figure("import_rate", told["rows_per_second"], "rows/s")
        yield Figure("import_took", took_ms / 1e3, "s")
        where.change(f"DROP TABLE {TABLE}", TIMEOUT_S)
        took_ms, _ = _import(where, port, "--name", "verified")
        yield Figure("import_verified_took", took_ms / 1e3, "s")
        yield Figure("import_rate_pg", rows / _copy(port), "rows/s")


def _import(where: Stand, port: int, *options: str) -> tuple[float, dict[str, float]]:
    """Return the milliseconds of the command, and what it has told."""
    say(f"leasehold import {' '.join(options)}")
    address = f"postgresql://{USER}@127.0.0.1:{port}/{USER}"
    more = {"LEASEHOLD_SQL_PORT": str(where.cluster.ports.sql[0])}
    took_ms, said = run_command(
        where, "import", address, "--json", *options, timeout_s=TIMEOUT_S, more=more
    )
    return took_ms, json.loads(said)


def _copy(port: int) -> float:
    """Return the seconds in which the same rows come into another database."""
    say("the same rows by COPY")
    with connected(port) as source:
        source.execute(f"CREATE DATABASE {OTHER}")
        with connected(port, OTHER) as target:
            target.execute(CREATE)
            begin_s = time.monotonic()
            _pipe(source, target)
            return time.monotonic() - begin_s


def _pipe(source: psycopg.Connection, target: psycopg.Connection) -> None:
    reading, writing = source.cursor(), target.cursor()
    with (
        reading.copy(f"COPY {TABLE} TO STDOUT") as rows,
        writing.copy(f"COPY {TABLE} FROM STDIN") as there,
    ):
        for data in rows:
            there.write(data)
