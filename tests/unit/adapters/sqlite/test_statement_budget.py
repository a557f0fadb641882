"""A statement is stopped inside of a function's call, and its aggregates keep a limited number of
bytes."""

from __future__ import annotations

import random
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import apsw
import pytest

from leasehold.adapters.os import temp_room
from leasehold.adapters.os.memory_pool import MemoryPool
from leasehold.adapters.os.temp_room import TempRoom
from leasehold.adapters.sqlite.query import NO_LIMITS, Limits, Rows, run
from leasehold.adapters.sqlite.statement_memory import StatementMemory
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.catalog.elements import CommitContext
from leasehold.model.errors import (
    DivisionByZero,
    InvalidArgument,
    LeaseholdError,
    OutOfMemory,
    QueryCanceled,
    RequestTooLarge,
)
from leasehold.pgwire.wire_errors import DiskFull
from leasehold.sql.planning.plan import prepare

MB = 1 << 20


def memory(
    statement: int = 256 * MB, *, total: int = 1 << 30, temp: int = 1 << 30, folder: Path
) -> StatementMemory:
    together = MemoryPool(total, "LEASEHOLD_SQL_MEMORY_TOTAL_MB")
    return StatementMemory(statement, together, TempRoom(temp, folder, "LEASEHOLD_SQL_TEMP_MB"))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore(tmp_path / "store.db", cache_mb=1)
    yield made
    assert made.memory.pool.held == 0, "each budget was closed"
    made.close()


@pytest.fixture
def small(tmp_path: Path) -> Iterator[SqliteStore]:
    """A store whose statements hold a MB each, and two together."""
    bounds = memory(MB, total=2 * MB, folder=tmp_path / "temp")
    made = SqliteStore(tmp_path / "store.db", cache_mb=1, memory=bounds)
    yield made
    assert made.memory.pool.held == 0, "each budget was closed"
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
def test_what_aggregates_keep_is_limited(small: SqliteStore, columns: str) -> None:
    """Goal: 53200 instead of a process that the kernel ends."""
    text = f"select {columns} from generate_series(1, %d) n limit 1"
    with pytest.raises(OutOfMemory, match=r"more than 1 MB.*LEASEHOLD_SQL_MEMORY_MB"):
        rows(small, text % 50_000, NO_LIMITS)
    assert rows(small, text % 50, NO_LIMITS)[0][0] > 0


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
def test_what_one_group_has_kept_is_free_for_the_next(small: SqliteStore, text: str) -> None:
    """Goal: only what is kept at once counts."""
    found = rows(small, text, NO_LIMITS)
    assert len(found) in (20_000, 50_000)


def test_an_aggregate_that_refuses_a_row_ends_in_its_words_beside_a_table_of_ours(
    store: SqliteStore,
) -> None:
    """Goal: no SystemError from generate_series, which runs on while the exception is set."""
    text = "select jsonb_object_agg(nullif(n, 3)::text, n) from generate_series(1, 5) n"
    with pytest.raises(InvalidArgument, match="must not be null"):
        rows(store, text, Limits())
    assert rows(store, "select count(*) from generate_series(1, 5) n", Limits()) == [(5,)]


ENDINGS = {
    "is read": "select array_agg(n) from generate_series(1, 1000) n group by n % 10",
    "ends with a function's error": (
        "select cardinality(array_agg(n)) / min(n - 1) from generate_series(1, 1000) n group by n"
    ),
    "ends at its first row": "select 1 / (n - 1), repeat('x', 9) from generate_series(1, 1000) n",
    "ends with an aggregate's error": (
        "select jsonb_object_agg(nullif(n, 300)::text, n) from generate_series(1, 1000) n"
    ),
    "holds too much": "select array_agg(repeat('x', 100)) from generate_series(1, 20000) n",
    "holds too much in a window": (
        "select array_agg(repeat('x', 100)) over () from generate_series(1, 20000) n"
    ),
    "gives its first rows": (
        "select n, array_agg(n) over (order by n rows 5 preceding) from generate_series(1, 900) n"
    ),
}


def stop_after(looks: int) -> Callable[[], bool]:
    """Return what cancels a statement at that look."""
    left = iter(range(looks))
    return lambda: next(left, None) is None


def test_however_statements_end_the_memory_of_their_node_is_free(small: SqliteStore) -> None:
    """Goal: each budget is closed. Method: statements of all kinds, read for a random while, or
    cancelled at a random look, several at once, each on a snapshot of its own."""
    seed = random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    for _ in range(60):
        with ExitStack() as stack:
            opened = []
            for _ in range(chance.randint(1, 3)):
                snapshot = stack.enter_context(small.open_snapshot())
                limits = Limits(stop=stop_after(chance.choice((1, 5, 10_000))))
                prepared = prepare(chance.choice([*ENDINGS.values()]), snapshot.newest)
                with suppress(LeaseholdError):
                    later = chance.random() < 0.5
                    context = CommitContext(0, b"")
                    found = run(
                        snapshot.connection, prepared, context=context, limits=limits, later=later
                    )
                    stack.callback(found.close)
                    opened.append(found)
            for found in opened:
                with suppress(LeaseholdError):
                    kind = chance.randrange(3)
                    if kind == 0:
                        stack.callback(found.compute_all().close)
                    elif kind == 1:
                        found.fetch(chance.randint(1, 20))
                    else:
                        found.all()
        assert small.memory.pool.held == 0


def test_rows_that_are_computed_ahead_are_held(small: SqliteStore) -> None:
    """Goal: what a transaction shows beside own rows, and what draws numbers, is limited."""
    text = "select n, 'x' from generate_series(1, %d) n"
    with small.open_snapshot() as snapshot:
        for count, ends in ((1_000, False), (50_000, True)):
            prepared = prepare(text % count, snapshot.newest)
            found = run(snapshot.connection, prepared, context=CommitContext(0, b""))
            if ends:
                with pytest.raises(OutOfMemory, match="LEASEHOLD_SQL_MEMORY_MB"):
                    found.compute_all()
            else:
                ahead = found.compute_all()
                assert small.memory.pool.held > 0
                assert len(ahead.all()) == count


def test_statements_of_a_node_share_its_memory(small: SqliteStore) -> None:
    """Goal: the third of three that hold a MB each is refused, and comes in once one has ended."""
    text = "select n, array_agg(repeat('x', 10)) over () from generate_series(1, 6000) n"
    with ExitStack() as stack:

        def begun() -> Rows:
            snapshot = stack.enter_context(small.open_snapshot())
            prepared = prepare(text, snapshot.newest)
            found = run(snapshot.connection, prepared, context=CommitContext(0, b""))
            stack.callback(found.close)
            return found

        first = begun()
        begun()
        with pytest.raises(OutOfMemory, match=r"together.*LEASEHOLD_SQL_MEMORY_TOTAL_MB"):
            begun()
        first.close()
        begun()


WIDE = "repeat('x', 90)"
SPILLING = {
    "sort": f"select n * 79 % 9973, {WIDE} from generate_series(1::bigint, 90000) n order by 1",
    "distinct": f"select distinct n, {WIDE} from generate_series(1, 90000) n",
    "materialized": (
        f"with m as materialized (select n, {WIDE} from generate_series(1, 90000) n)"
        " select a.n from m a, m b where a.n = b.n"
    ),
    "recursive": (
        f"with recursive g(n, t) as (select 1, {WIDE} union select n + 1, t from g where n < 90000)"
        " select n from g"
    ),
}


def end_at_growth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a room be looked at with every look of a statement, whatever time it is."""
    monkeypatch.setattr(temp_room, "LOOK_EVERY_S", 0.0)


@pytest.mark.parametrize("text", SPILLING.values(), ids=SPILLING)
def test_what_sqlite_gathers_is_on_the_disk_up_to_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """Goal: 53100, which names the setting, and no more memory than a cache. Method: what SQLite
    holds in memory is asked of it while a statement goes on that has all its rows together."""
    end_at_growth(monkeypatch)
    for room, ends in ((1 << 30, False), (MB, True)):
        bounds = memory(temp=room, folder=tmp_path / "temp")
        store = SqliteStore(tmp_path / "store.db", cache_mb=1, memory=bounds)
        try:
            if ends:
                with pytest.raises(DiskFull, match=r"1 MB.*LEASEHOLD_SQL_TEMP_MB"):
                    rows(store, text, NO_LIMITS)
            else:
                before = apsw.memory_used()
                apsw.memory_high_water(True)
                rows(store, text, NO_LIMITS)
                assert apsw.memory_high_water() - before < 6 * MB
            assert rows(store, "select 1", NO_LIMITS) == [(1,)]
        finally:
            store.close()
    assert stat.S_IMODE((tmp_path / "temp").stat().st_mode) == 0o700


def test_statements_that_write_no_file_go_on_while_the_room_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Goal: only who takes more of it is refused."""
    end_at_growth(monkeypatch)
    room = TempRoom(MB, tmp_path / "temp")
    bounds = StatementMemory(256 * MB, MemoryPool(1 << 30), room)
    store = SqliteStore(tmp_path / "store.db", cache_mb=1, memory=bounds)
    try:
        assert room.take(MB)
        assert not room.take(1)
        text = "select count(*) from generate_series(1, 300000) n where n % 2 = 0"
        assert rows(store, text, NO_LIMITS) == [(150_000,)]
        with pytest.raises(DiskFull):
            rows(store, SPILLING["sort"], NO_LIMITS)
        room.give_back(MB)
    finally:
        store.close()
