"""The groups by name, in the order in which they run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tests.bench import (
    agents,
    backup,
    bootstrap,
    commit,
    cost,
    handover,
    importing,
    init,
    levels,
    lock,
    neighbours,
    rate,
    read,
    renewal,
    rows,
    sessions,
    stall_postgres,
    step,
    tables,
    takeover,
    wire,
)
from tests.bench.bench_settings import BenchSettings
from tests.bench.beside import beside_metric
from tests.bench.figure import Figure
from tests.bench.index import (
    BESIDE,
    LoadedRows,
    loaded_stand,
    measure_index,
    measure_keys,
    measure_menu,
    measure_stall,
)

LATENCIES: Final = ("p50", "p99", "stall")
SESSION_SPANS: Final = ("before", "during", "blocked")


def _beside(suffix: str) -> tuple[str, ...]:
    """The metrics of writers beside changes."""
    return tuple(
        f"{each}{suffix}"
        for each in (
            *(beside_metric(when) for when in BESIDE),
            *(f"machine_stall_{when}" for when in ("before", *BESIDE)),
            *(f"write_{each}_before" for each in LATENCIES),
            *(f"write_{each}_{when}" for when in BESIDE for each in (*LATENCIES, "p99_ratio")),
        )
    )


GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "commit": ("commit_p50_1r", "commit_p99_1r", "commit_p50", "commit_p99"),
    "rate": ("txn_rate_64", "txn_rate_1000"),
    "cost": (
        "write_cost_idle",
        *(f"write_{what}_{per_second}" for per_second in cost.PACES for what in cost.FIGURES),
    ),
    "step": (
        "step_p50_3",
        "step_p99_3",
        "step_p50_10",
        "step_p99_10",
        "add_column_e2e",
        "empty_index_e2e",
        "step_p50_100",
        "step_p99_100",
    ),
    "agents": agents.METRICS,
    "index": ("bulk_rate", "index_rows_rate", "backfill_rate"),
    "menu": (
        "unique_index_rows_rate",
        "add_default_e2e",
        "check_rows_rate",
        "computed_check_rows_rate",
        "not_null_rows_rate",
        "foreign_key_rows_rate",
        "alter_type_rows_rate",
        "generated_rows_rate",
        "drop_column_e2e",
    ),
    "keys": (
        "primary_key_rows_rate",
        "copied_rows_rate",
        "primary_key_rows_rate_beside",
        "copied_rows_rate_beside",
        *(f"machine_stall_{when}" for when in ("before", "primary_key")),
        *(f"write_{each}_before" for each in LATENCIES),
        *(f"write_{each}_primary_key" for each in (*LATENCIES, "p99_ratio")),
    ),
    "stall": _beside(""),
    "stall_pg": _beside("_pg"),
    "sessions": (
        *(f"session_{each}_{when}" for when in SESSION_SPANS for each in LATENCIES),
        "blocked_change",
    ),
    "renewal": ("renewal_10", "renewal_1000"),
    "levels": (
        "row_history_off",
        "row_history_on",
        *(f"level_p50_{name}" for name in levels.SHORT.values()),
        *(f"wire_level_p50_{name}" for name in levels.SHORT.values()),
    ),
    "lock": ("lock_rate_shared", "lock_collisions_shared", "lock_rate_own", "lock_collisions_own"),
    "wire": tuple(
        f"wire_{each}{of}"
        for others, groups in (
            (
                "_pg",
                (
                    ("read_p50",),
                    ("read_rate",),
                    ("select_only_rate",),
                    ("update_rate", "update_p50", "update_p99"),
                    ("tpcb_rate", "tpcb_p50", "tpcb_p99"),
                ),
            ),
            (
                "_sync",
                (
                    ("one_p50", "one_p99"),
                    ("paced_p50", "paced_p99"),
                    (f"update_{wire.CLIENTS}_rate",),
                    (f"update_{wire.MANY_CLIENTS}_rate",),
                ),
            ),
        )
        for many in groups
        for of in ("", others)
        for each in many
    ),
    "init": ("pgbench_init", "pgbench_init_pg"),
    "neighbours": tuple(
        f"neighbours_{each}{of}"
        for of in ("", "_pg")
        for each in (
            *("read_p50", "update_p50"),
            *(f"{name}_{what}" for name in ("read", "update") for what in neighbours.FIGURES),
        )
    ),
    "read": (
        *("held_lease", "point_read", "range_read", "sql_read"),
        *("embedded_point_read", "embedded_range_read"),
    ),
    "takeover": ("takeover",),
    "handover": handover.METRICS,
    "tables": (
        *(
            f"{metric}_{size}"
            for size in tables.sizes_of(BenchSettings())
            for metric in tables.METRICS
        ),
        *tables.PER_TABLE,
    ),
    "bootstrap": tuple(
        f"bootstrap_{what}_{figure}"
        for what in ("node", "replica")
        for figure in ("took", "stored")
    ),
    "rows": rows.METRICS,
    "backup": backup.METRICS,
    "import": importing.METRICS,
}
"""Group → its metrics, in the order in which they are printed."""
SUMMARIES: Final = {
    "commit": "a single-row update with one replicant and with three",
    "rate": "verified updates in flight, 64 and 1,000",
    "cost": "what a steady single-row write takes of the processors, and a cluster without one",
    "step": "a step of a schema change with 3, 10 and 100 agents; whole changes",
    "agents": "a step with 1,000 agents, and its processor time",
    "index": "1,000,000 rows loaded, and CREATE INDEX over them",
    "menu": "the other kinds of change on the same rows",
    "keys": "another primary key on the same rows, alone and beside writers",
    "stall": "writers beside changes on the same rows",
    "stall_pg": "the same writers beside the same changes of a PostgreSQL",
    "sessions": "short transactions of an embedded replica beside changes",
    "renewal": "an agent's renewal with leases on 10 and on 1,000 tables",
    "levels": "what isolation levels and the history of rows cost",
    "lock": "two writers of one row under one lock and under two",
    "wire": "pgbench on a replicant and on a PostgreSQL",
    "init": "pgbench -i on a replicant and on a PostgreSQL",
    "neighbours": "small statements beside others' large ones, and on a PostgreSQL",
    "read": "reads in process",
    "takeover": "a killed master",
    "handover": "what writers wait for while masters and nodes stop, die and start again",
    "tables": "200 and 2,000 tables: CREATE TABLE, commands, connecting, idle, memory",
    "bootstrap": "a new node and a new embedded replica on 1,000,000 rows",
    "rows": "what a row costs among 1,000,000 and 10,000,000",
    "backup": "1,000,000 rows backed up, verified and restored",
    "import": "1,000,000 rows from a PostgreSQL by the command, and by COPY",
}

_ALONE: Final = {
    "commit": commit.measure,
    "cost": cost.measure,
    "rate": rate.measure,
    "step": step.measure,
    "agents": agents.measure,
    "read": read.measure,
    "takeover": takeover.measure,
    "handover": handover.measure,
    "stall_pg": stall_postgres.measure,
    "sessions": sessions.measure,
    "renewal": renewal.measure,
    "levels": levels.measure,
    "lock": lock.measure,
    "wire": wire.measure,
    "init": init.measure,
    "neighbours": neighbours.measure,
    "tables": tables.measure,
    "bootstrap": bootstrap.measure,
    "rows": rows.measure,
    "backup": backup.measure,
    "import": importing.measure,
}
_ON_ROWS: Final = {
    "index": measure_index,
    "menu": measure_menu,
    "keys": measure_keys,
    "stall": measure_stall,
}


def measure(names: list[str], settings: BenchSettings) -> Iterator[Figure]:
    """Every figure of the named groups as soon as it is known."""
    assert set(names) <= GROUPS.keys(), names
    for name in names:
        if name in _ALONE:
            yield from _ALONE[name](settings)
        elif name == next(each for each in names if each in _ON_ROWS):
            on_rows = [_ON_ROWS[each] for each in names if each in _ON_ROWS]
            with _loaded(settings) as loaded:
                for group in on_rows:
                    yield from group(loaded)


@contextmanager
def _loaded(settings: BenchSettings) -> Iterator[LoadedRows]:
    yield from loaded_stand(settings)
