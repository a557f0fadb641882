"""A statement is stopped inside of a function's call, and its aggregates keep a limited number of
bytes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leasehold.adapters.sqlite.query import Limits, run
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.catalog.elements import CommitContext
from leasehold.model.errors import (
    DivisionByZero,
    InvalidArgument,
    OutOfMemory,
    QueryCanceled,
    RequestTooLarge,
)
from leasehold.sql.planning.plan import prepare

MB = 1 << 20


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore(tmp_path / "store.db", cache_mb=1)
    yield made
    made.close()


def rows(store: SqliteStore, text: str, limits: Limits) -> list[tuple[Any, ...]]:
    with store.open_snapshot() as snapshot:
        prepared = prepare(text, snapshot.newest)
        found = run(snapshot.connection, prepared, context=CommitContext(0, b""), limits=limits)
        return found.all()


def test_a_statement_ends_inside_of_one_call(store: SqliteStore) -> None:
    """Goal: SQLite asks between its own steps; this one step would take minutes."""
    looks = iter(range(1_000))
    stop = Limits(stop=lambda: next(looks) > 4)
    with pytest.raises(QueryCanceled):
        rows(store, "select regexp_count(repeat('a', 262144), 'a*b|a')", stop)


KEPT = "repeat('x', 100) || n"


@pytest.mark.parametrize(
    "columns",
    [
        f"cardinality(array_agg({KEPT}))",
        f"jsonb_array_length(jsonb_agg({KEPT}))",
        f"length(jsonb_object_agg({KEPT}, 1)::text)",
        f"length(string_agg(distinct {KEPT}, ',' order by {KEPT}))",
        f"cardinality(array_agg({KEPT}) over ())",
    ],
)
def test_what_aggregates_keep_is_limited(store: SqliteStore, columns: str) -> None:
    """Goal: 53200 instead of a process that the kernel ends."""
    text = f"select {columns} from generate_series(1, %d) n limit 1"
    with pytest.raises(OutOfMemory, match="more than 1 MB"):
        rows(store, text % 50_000, Limits(memory_bytes_max=MB))
    assert rows(store, text % 50, Limits(memory_bytes_max=MB))[0][0] > 0


def test_what_sqlite_joins_by_itself_is_limited(store: SqliteStore) -> None:
    """Goal: its own limit is a billion of bytes in each value."""
    text = "select length(string_agg(repeat('x', 250000), ',')) from generate_series(1, 1200)"
    with pytest.raises(RequestTooLarge):
        rows(store, text, Limits())


def test_the_failure_of_one_statement_ends_no_other_of_its_connection(store: SqliteStore) -> None:
    """Goal: also where another error comes right behind it, before anybody has looked."""
    columns = "jsonb_object_agg(nullif(n, 3)::text, n), sum(1 / (n - 4))"
    text = f"select {columns} from generate_series(1, 9) n"
    context = CommitContext(0, b"")
    with store.open_snapshot() as snapshot:
        failing = prepare(text, snapshot.newest)
        with pytest.raises((InvalidArgument, DivisionByZero)):
            run(snapshot.connection, failing, context=context).all()
        next_one = prepare("select array_agg(n) from generate_series(1, 3) n", snapshot.newest)
        assert run(snapshot.connection, next_one, context=context).all()[0][0] is not None


KEEPING = "cardinality(array_agg(repeat('x', 100))"
GROUPS = (
    f"select {KEEPING}) from generate_series(1, 50000) n group by n",
    f"select {KEEPING} over (order by n rows 5 preceding)) from generate_series(1, 20000) n",
)


@pytest.mark.parametrize("text", GROUPS)
def test_what_one_group_has_kept_is_free_for_the_next(store: SqliteStore, text: str) -> None:
    """Goal: only what is kept at once counts."""
    found = rows(store, text, Limits(memory_bytes_max=MB))
    assert len(found) in (20_000, 50_000)


def test_an_aggregate_that_refuses_a_row_ends_in_its_words_beside_a_table_of_ours(
    store: SqliteStore,
) -> None:
    """Goal: no SystemError from generate_series, which runs on while the exception is set."""
    text = "select jsonb_object_agg(nullif(n, 3)::text, n) from generate_series(1, 5) n"
    with pytest.raises(InvalidArgument, match="must not be null"):
        rows(store, text, Limits())
    assert rows(store, "select count(*) from generate_series(1, 5) n", Limits()) == [(5,)]
