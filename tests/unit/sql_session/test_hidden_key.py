"""Tables without a primary key, on a whole database in this process (T7)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from leasehold.catalog.descriptor import Descriptor
from leasehold.dev.database import DevDatabase
from tests.support.sql_session.sql_client import SqlClient


@pytest.fixture
def client(database: DevDatabase) -> Iterator[SqlClient]:
    made = SqlClient(database)
    made.ask("create table h (a int, note text)")
    yield made
    assert not database.check().differences
    made.session.fail()
    made.ask("rollback; drop table if exists h; drop table if exists k")
    made.session.close()


def rows_of(client: SqlClient) -> list[tuple[object, ...]]:
    return sorted(client.ask("select * from h"), key=str)


def table_h(database: DevDatabase) -> Descriptor:
    return next(t for t in database.tables() if t.name == "h")


def test_equal_rows_are_two_rows(client: SqlClient) -> None:
    assert client.ask("insert into h values (1, 'x'), (1, 'x') returning *") == [(1, "x")] * 2
    client.ask("insert into h select 1, 'x'")
    assert client.ask("select * from h") == [(1, "x")] * 3
    assert client.ask("select h.* from h join h as g on h.a = g.a where g.note = 'y'") == []
    assert client.ask("select count(*) from h") == [(3,)]


def test_rows_are_changed_and_deleted(client: SqlClient) -> None:
    client.ask("insert into h values (1, 'x'), (2, 'y'), (2, 'y')")
    assert client.ask("update h set note = 'z' where a = 2 returning *") == [(2, "z")] * 2
    assert client.tags == ["UPDATE 2"]
    assert client.ask("delete from h where a = 1 returning note") == [("x",)]
    assert rows_of(client) == [(2, "z"), (2, "z")]


def test_a_transaction_sees_and_changes_its_own_rows(client: SqlClient) -> None:
    client.ask("insert into h values (1, 'before')")
    client.ask("begin; insert into h values (1, 'own'), (2, 'own')")
    client.ask("savepoint s; update h set note = 'changed' where a = 1")
    assert rows_of(client) == [(1, "changed"), (1, "changed"), (2, "own")]
    client.ask("rollback to s; delete from h where a = 2; update h set a = 5 where note = 'own'")
    assert rows_of(client) == [(1, "before"), (5, "own")]
    client.ask("commit")
    assert rows_of(client) == [(1, "before"), (5, "own")]


def test_a_row_that_another_has_changed_is_a_verify_error(
    client: SqlClient, database: DevDatabase
) -> None:
    client.ask("insert into h values (1, 'x')")
    client.ask("begin isolation level repeatable read; update h set a = 2")
    other = SqlClient(database, "r2")
    other.ask("update h set a = 3")
    assert client.code("commit") == "40001"
    other.session.close()
    assert rows_of(client) == [(3, "x")]


def test_nobody_is_shown_the_key(client: SqlClient, database: DevDatabase) -> None:
    assert table_h(database).hidden_key
    wanted = "where attrelid = 'h'::regclass and attnum > 0 order by attnum"
    assert client.ask(f"select attname from pg_attribute {wanted}") == [("a",), ("note",)]
    assert client.ask("select count(*) from pg_index where indrelid = 'h'::regclass") == [(0,)]
    assert client.ask("select count(*) from pg_constraint where conrelid = 'h'::regclass") == [(0,)]
    assert client.code('select "" from h') != "00000"
    unnamed = {"table": "h", "op": "insert", "values": {"": "01234567-89ab-7def-8123-456789abcdef"}}
    assert not database.ask(unnamed).committed
    assert client.code("insert into h values (1, 'x') on conflict (a) do nothing") == "42P10"
    assert client.code("insert into h values (1) on conflict on constraint h_pkey do nothing")
    client.ask("insert into h values (1, 'x') on conflict do nothing")
    assert client.code("create table k (a int references h)") == "42704"
    assert client.code("alter table h drop constraint h_pkey") == "42704"


def test_a_request_makes_its_rows_once(client: SqlClient, database: DevDatabase) -> None:
    row = {"table": "h", "op": "insert", "values": {"a": 7, "note": "asked"}}
    first = database.ask(row)
    assert first.committed
    assert database.ask({**row, "id": first.request_id}).outcome.lsn == first.outcome.lsn
    several = [row, row, {**row, "values": {"a": 8}}]
    assert database.ask({"transaction": several}).outcome.rows_affected == 3
    assert client.ask("select a, count(*) from h group by a order by a") == [(7, 3), (8, 1)]


@pytest.mark.parametrize(
    "asked",
    [
        {"op": "update", "key": {"a": 7}, "values": {"note": "x"}},
        {"op": "delete", "key": {"a": 7}},
        {"op": "upsert", "key": {"a": 7}, "values": {"note": "x"}},
        {"op": "insert", "key": {"a": 7}, "values": {"note": "x"}},
    ],
)
def test_a_request_can_name_no_row(
    client: SqlClient, database: DevDatabase, asked: dict[str, object]
) -> None:
    refused = database.ask({"table": "h", **asked}).outcome
    assert refused.code == "0A000"
    assert "has no primary key" in refused.message


def test_schema_changes_leave_the_rows(client: SqlClient, database: DevDatabase) -> None:
    client.ask("insert into h values (1, 'x'), (1, 'x'), (2, null)")
    client.ask("alter table h add column n int not null default 4; create index h_a on h (a)")
    client.ask("alter table h rename column a to b; alter table h alter column note type char(9)")
    assert client.ask("select b, note, n from h where b = 1") == [(1, "x", 4)] * 2
    assert client.code("create unique index h_u on h (b)") == "23505"
    client.ask("truncate h")
    assert client.ask("select * from h") == []


def test_several_tables_are_dropped_at_once(client: SqlClient) -> None:
    client.ask("create table k (a int) with (fillfactor=100)")
    client.ask("drop table if exists nowhere, h, k, elsewhere")
    assert client.tags == ["DROP TABLE"]
    assert len([r for r in client.reports if "does not exist" in getattr(r, "message", "")]) == 2
    assert client.code("select * from h") == client.code("select * from k") == "42P01"
    assert client.code("drop table nowhere, h") == "42P01"


def test_vacuum_is_said_outside_a_block(client: SqlClient) -> None:
    client.ask("vacuum analyze h; analyze h")
    assert client.tags == ["VACUUM", "ANALYZE"]
    client.ask("begin")
    assert client.code("vacuum h") == "25001"
