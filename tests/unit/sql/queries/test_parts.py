# ruff: noqa: E501 - a statement stands in one line
"""Statements of several parts as plans and on a store: what becomes a part, what stays in one, and
what is verified of each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leasehold.adapters.sqlite.kept_rows import KEPT_TABLES_MAX, kept_tables
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.model.errors import FeatureNotSupported, Refused
from leasehold.model.records.requests import OnConflict
from leasehold.replica.reads import Reads
from leasehold.replica.write_set import WriteSet
from leasehold.sql.planning.plan import PlannedPart, Prepared
from leasehold.transaction.isolation import ISOLATION, Level
from tests.support.sql.asked import Asked, filled

KEEPS = "with d as (delete from bookings where flight = 1 returning *)"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    made = filled(tmp_path)
    yield made
    made.close()


def begun(store: SqliteStore, level: Level = Level.READ_COMMITTED) -> WriteSet:
    return WriteSet(Reads(store, lambda: True, None, lambda: None), ISOLATION[level])


PARTS: list[tuple[str, list[str]]] = [
    ("with q as (select id from flights) select * from q", []),
    ("with q as (select id from flights) update flights set seats = 0 where id in (table q)", []),
    (f"{KEEPS} select * from d", ["DELETE"]),
    (f"{KEEPS}, q as (select 1) select * from d, q", ["DELETE"]),
    # What two parts name is computed once.
    (
        "with q as (select 1 as v), i as (insert into bookings select v, 'x' from q) select * from q",
        ["SELECT", "INSERT"],
    ),
    # What another query of WITH names, and that alone, stays with it.
    (
        "with a as (select 1 as v), b as (select v from a), i as (insert into bookings select v, 'x' from b) select 1",
        ["INSERT"],
    ),
    # What is run for each row can't have a WITH of its own.
    (
        "with m as (select 1 as v) delete from bookings where flight = 1 returning (select v from m)",
        ["SELECT"],
    ),
    (f"with never as (select 1 / 0), {KEEPS[5:]} select 1", ["DELETE"]),
    ("select id from flights for update skip locked", ["SELECT"]),
    (
        "delete from flights where id in (select id from flights limit 1 for update nowait)",
        ["SELECT"],
    ),
]


@pytest.mark.parametrize(("text", "kinds"), PARTS)
def test_what_is_a_part(asked: Asked, text: str, kinds: list[str]) -> None:
    plan: Prepared = asked.prepared(text)
    assert [part.plan.tag for part in plan.parts] == kinds


def test_a_part_names_what_it_needs(store: SqliteStore) -> None:
    """Privileges of all parts are the statement's."""
    snapshot = store.open_snapshot()
    made = Asked(store).prepared(f"{KEEPS} insert into flights (id) select flight from d")
    snapshot.close()
    names = {(each.name, each.privilege.name) for each in made.needs}
    assert {("bookings", "DELETE"), ("bookings", "SELECT"), ("flights", "INSERT")} <= names


@pytest.mark.parametrize("level", [Level.READ_COMMITTED, Level.SERIALIZABLE])
def test_what_each_part_reads_is_in_the_read_set(store: SqliteStore, level: Level) -> None:
    writes = begun(store, level)
    writes.execute(
        "with q as (select seats from flights where id = 2), i as (insert into bookings select 3,"
        " 'zz', null from q returning seat) update bookings set name = i.seat from i"
        " where flight = 1 and bookings.seat = '1A'"
    )
    request = writes.request(b"\0" * 16, 1, OnConflict.FAIL)
    assert request is not None
    read = "" if request.reads is None else repr(request.reads)
    assert ("flights" in read or "(2,)" in read) == (level is Level.SERIALIZABLE)


def test_what_fails_leaves_nothing(store: SqliteStore) -> None:
    writes = begun(store)
    with pytest.raises(Refused):
        writes.execute(f"{KEEPS}, i as (insert into flights (id) values (1)) select * from d")
    assert not writes.pending
    assert writes.execute("select count(*) from bookings where flight = 1").rows == [(2,)]


def test_kept_tables_are_empty_for_the_next_and_bounded(store: SqliteStore) -> None:
    """They stay on the connection, since one that comes or goes costs all that is prepared."""
    with store.open_snapshot() as snapshot:
        connection = snapshot.connection

        def kept() -> list[Any]:
            named = "SELECT name FROM temp.sqlite_master WHERE name LIKE 'kept%'"
            return [name for (name,) in connection.execute(named)]

        plan = Asked(store).prepared("select 1")
        for number in range(KEPT_TABLES_MAX + 20):
            part = PlannedPart(number, 1, plan)
            with kept_tables(connection, (part,)):
                connection.execute(f"INSERT INTO temp.kept{number}_1 VALUES (1)")
            assert connection.execute(f"SELECT count(*) FROM kept{number}_1").fetchone() == (0,)
            assert connection.pragma("query_only")
        assert len(kept()) <= KEPT_TABLES_MAX + 1


def test_explain_tells_of_all_parts(asked: Asked) -> None:
    assert "bookings" in asked.plan(f"{KEEPS} select * from d")
    read = asked.rows(f"explain (reads) {KEEPS} update flights set seats = 0 where id = 2")
    assert read == [
        ("Reads bookings by primary key: = (1)",),
        ("Reads flights by primary key: = (2)",),
    ]


def test_rows_are_claimed_by_sessions_alone(store: SqliteStore) -> None:
    with pytest.raises(FeatureNotSupported, match="for SQL sessions"):
        begun(store).execute("select id from flights for update skip locked")


def test_for_update_knows_its_rows_whatever_orders_them(store: SqliteStore) -> None:
    writes = begun(store)
    found = writes.execute("select id from flights order by id * 1.5 desc limit 2 for update")
    assert found.rows == [(5,), (4,)]
    writes.update("flights", 1, {"seats": 1})
    request = writes.request(b"\0" * 16, 1, OnConflict.FAIL)
    assert request is not None
    assert request.reads is not None
    (table,) = request.reads.tables
    assert {key for key, *_ in table.visited} == {(5,), (4,)}


def test_on_conflict_takes_a_key_that_the_statement_has_freed(store: SqliteStore) -> None:
    """The row in the way has another key by now, as in PostgreSQL."""
    writes = begun(store)
    done = writes.execute(
        "insert into bookings values (1, '1A', 'x'), (1, '1A', 'y') on conflict (flight, seat)"
        " do update set seat = '9Z'"
    )
    assert done.rowcount == 2
    rows = writes.execute("select seat, name from bookings where flight = 1 order by 1").rows
    assert rows == [("1A", "y"), ("1B", None), ("9Z", "Ann")]
