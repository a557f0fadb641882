"""DECLARE, FETCH, MOVE and CLOSE in sessions of a whole database in this process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from leasehold.adapters.os.row_spool import SpoolRoom
from leasehold.adapters.sqlite.query import FETCH_BYTES_MAX, FIRST_ROWS
from leasehold.dbapi.connection import Connection
from leasehold.dbapi.errors import Error
from leasehold.dev.database import DevDatabase
from leasehold.model.errors import LeaseholdError, UnknownColumn
from leasehold.pgwire.session import Column, PortalsClosed, WouldBlock
from leasehold.sql.planning.plan import Plans
from leasehold.sql_session.cursors import CURSORS_MAX
from leasehold.sql_session.session import SqlSession
from leasehold.values.types import Type
from tests.support.sql_session.sql_client import SqlClient, database_with

ROWS = 600  # more than a batch


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevDatabase]:
    with database_with(
        tmp_path_factory,
        "create table t (id int primary key, a int not null, note text)",
        f"insert into t select n, n % 7, 'note ' || n from generate_series(1, {ROWS}) as n",
    ) as made:
        yield made


@pytest.fixture
def client(database: DevDatabase) -> Iterator[SqlClient]:
    made = SqlClient(database)
    yield made
    made.session.close()
    assert made.session._cursors.room.bytes_taken == 0, "every cursor has given its room back"


@pytest.fixture
def other(database: DevDatabase) -> Iterator[SqlClient]:
    made = SqlClient(database)
    yield made
    made.ask(f"rollback; delete from t where id > {ROWS}; update t set a = id % 7")
    made.session.close()


def numbers(rows: list[Any]) -> list[int]:
    return [row[0] for row in rows]


def test_explain_of_declare_is_that_of_its_query(client: SqlClient) -> None:
    """It declares nothing; positions are those of the whole text."""
    client.ask("drop table if exists explained; create table explained (id int primary key, a int)")
    query = "select * from explained where id = 1"
    for options in ("", "(reads) "):
        expected = client.ask(f"explain {options}{query}")
        found = client.ask(f"explain {options}declare c no scroll cursor with hold for {query}")
        assert found == expected
    assert client.code("fetch c") == "34000"
    text = "select 1; explain declare c cursor for select no from explained"
    with pytest.raises(UnknownColumn) as caught:
        client.ask(text)
    assert caught.value.detail["position"] == text.index("no ") + 1
    client.ask("drop table explained")


def test_rows_come_as_they_are_fetched(client: SqlClient) -> None:
    client.ask("begin; declare c cursor for select id, note from t order by id")
    assert client.tags == ["BEGIN", "DECLARE CURSOR"]
    assert client.ask("fetch c") == [(1, "note 1")]
    assert numbers(client.ask("fetch forward 300 from c")) == [*range(2, 302)]
    assert client.tags == ["FETCH 300"]
    assert numbers(client.ask("fetch all in c")) == [*range(302, ROWS + 1)]
    assert client.ask("fetch next c") == []
    assert client.tags == ["FETCH 0"]
    assert numbers(client.ask("fetch backward 2 c")) == [ROWS, ROWS - 1]
    client.ask("move absolute 10 c")
    assert client.tags == ["MOVE 1"]
    assert numbers(client.ask("fetch relative -3 c")) == [7]
    client.ask("close c")
    assert client.tags == ["CLOSE CURSOR"]
    assert client.code("fetch c") == "34000"


def test_large_rows_come_a_few_at_a_time(client: SqlClient, database: DevDatabase) -> None:
    """By whatever way they come; and all of them."""
    client.ask("create table large (id int primary key, a text)")
    try:
        client.ask("insert into large select n, repeat('x', 250000) from generate_series(1, 40) n")
        wanted = [*range(1, 41)]
        sizes: list[int] = []

        def ask(text: str) -> list[int]:
            session = client.session
            (statement,) = session.statements(text)
            portal = session.bind(session.prepare(statement, ()), ())
            found, tag = [], None
            try:
                while tag is None:
                    part, tag = portal.fetch(256)
                    sizes.append(sum(len(row[1]) for row in part))
                    found += numbers(list(part))
                    portal.rest(wholly=False)
            finally:
                portal.close()
            return found

        query = "select * from large order by id"
        assert ask(query) == wanted
        client.ask(f"begin; declare c scroll cursor for {query}")
        assert ask("fetch all c") == wanted
        assert ask("fetch backward all c") == wanted[::-1]
        client.ask("rollback")
        assert max(sizes) <= FIRST_ROWS * FETCH_BYTES_MAX
        brief = "select * from large where id < 41"
        session = client.session
        session.hurried = True
        with pytest.raises(WouldBlock):
            ask(brief)
        session.hurried = False
        assert sorted(ask(brief)) == wanted
        assert max(sizes) <= FIRST_ROWS * FETCH_BYTES_MAX
    finally:
        client.ask("rollback; drop table large")


def test_fetch_tells_the_cursors_columns(client: SqlClient) -> None:
    client.ask("begin; declare c binary cursor for select id, note as words from t")
    session = client.session
    (statement,) = session.statements("fetch 2 c")
    prepared = session.prepare(statement, ())
    assert prepared.columns is not None
    assert [(c.name, c.type) for c in prepared.columns] == [
        ("id", Type("integer")),
        ("words", Type("text")),
    ]
    assert prepared.binary
    assert session.declared("c") == prepared.columns
    (statement,) = session.statements("move 2 c")
    assert session.prepare(statement, ()).columns is None
    client.ask("close c; declare c cursor for select id from t")
    with pytest.raises(LeaseholdError) as caught:
        client.run(prepared)
    assert caught.value.sqlstate == "0A000"


def test_parameters_are_those_of_the_query(client: SqlClient) -> None:
    session = client.session
    client.ask("begin")
    (statement,) = session.statements("declare c cursor for select id from t where id <= $1")
    prepared = session.prepare(statement, (None,))
    assert (list(prepared.parameters), prepared.columns) == ([Type("integer")], None)
    client.run(prepared, (3,))
    assert sorted(numbers(client.ask("fetch all c"))) == [1, 2, 3]


def test_a_cursor_is_of_its_declaration(client: SqlClient, other: SqlClient) -> None:
    """Not of the first FETCH: neither others' commits nor own writes are seen that came after."""
    client.ask("begin; insert into t values (601, 1)")
    client.ask("declare c cursor for select count(*), sum(a) filter (where id > 600) from t")
    other.ask("insert into t values (602, 1)")
    client.ask("update t set a = 9 where id = 601; insert into t values (603, 1)")
    assert client.ask("fetch c") == [(601, 1)]
    client.ask("rollback")


def test_own_rows_are_among_them(client: SqlClient) -> None:
    client.ask("begin; delete from t where id > 3; insert into t values (1000, 5, 'own')")
    client.ask("declare c cursor for select id from t order by id")
    assert numbers(client.ask("fetch all c")) == [1, 2, 3, 1000]
    client.ask("rollback")


def test_no_snapshot_is_held_while_a_client_thinks(client: SqlClient) -> None:
    """SQLite's log could not be reset as long as one is."""
    client.ask("begin; declare c cursor for select id from t order by id; fetch c")
    with client.node.single_read().snapshot() as snapshot:
        connection = snapshot.connection  # type: ignore[attr-defined]
    # That reader is the one that DECLARE had: it has been given back.
    assert not connection.in_transaction
    client.ask("rollback")


@pytest.mark.parametrize("before", ["", "begin; "])
def test_declare_stands_in_a_transaction(client: SqlClient, before: str) -> None:
    code = client.code(f"{before}declare c cursor for select 1")
    assert code == ("00000" if before else "25P01")
    client.ask("rollback")
    assert client.ask("declare c cursor for select 5; fetch c") == [(5,)], "one text, one of them"
    assert client.code("fetch c") == "34000"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("declare c cursor for select nope from t", "42703"),
        ("declare c cursor for delete from t", "42601"),
        ("declare c cursor for with d as (delete from t returning id) select * from d", "0A000"),
        ("declare c cursor", "42601"),
        ("declare c scroll no scroll cursor for select 1", "42P11"),
        ("declare c insensitive asensitive cursor for select 1", "42P11"),
        ("declare c scroll cursor for select id from t for update", "0A000"),
        ("declare c cursor with hold for selectv id from t", "0A000"),
        ("declare c insensitive cursor for select id from t for update", "42P11"),
        ("declare here cursor for select 1", "42P03"),
        ("fetch nobody", "34000"),
        ("move all in nobody", "34000"),
        ("fetch 3000000000 here", "42601"),
        ("fetch 1.5 here", "42601"),
        ("fetch prior no_scroll", "55000"),
        ("move backward all in no_scroll", "55000"),
        ("fetch 4 late", "22012"),
        ("update t set a = 1 where current of here", "0A000"),
        ("delete from t where current of nobody", "0A000"),
        ("explain update t set a = 1 where current of here", "0A000"),
        ("select * from t where current of here", "42601"),
    ],
)
def test_refusals(client: SqlClient, text: str, code: str) -> None:
    client.ask("begin; declare here cursor for select 1")
    client.ask(
        "declare no_scroll no scroll cursor for select id from t order by id; fetch 2 no_scroll"
    )
    client.ask("declare late cursor for select 1 / (4 - id) from t order by id; fetch 3 late")
    assert client.code(text) == code
    assert client.code("select 1") == "25P02"
    client.ask("rollback")


@pytest.mark.parametrize(
    ("text", "words", "position"),
    [
        ("begin; declare c cursor for select nope from t", "column 'nope' does not exist", 36),
        ("begin; delete from t where current of c", "WHERE CURRENT OF is not supported", 20),
    ],
)
def test_a_position_is_of_the_whole_text(
    client: SqlClient, text: str, words: str, position: int
) -> None:
    with pytest.raises(LeaseholdError, match=words) as caught:
        client.ask(text)
    assert caught.value.detail["position"] == position
    client.ask("rollback")


def test_a_cursor_that_has_failed_is_of_no_use_any_more(client: SqlClient) -> None:
    client.ask("begin; declare c cursor for select 1 / (4 - id) from t order by id")
    client.ask("savepoint s; fetch 3 c")
    assert client.code("fetch c") == "22012"
    client.ask("rollback to s")
    assert client.code("fetch backward c") == "55000"
    client.ask("rollback to s; close c; rollback")


# ------------------------------------------------------------ savepoints, ends of transactions


def test_a_savepoint_takes_back_what_was_declared_since(client: SqlClient) -> None:
    client.ask("begin; declare old cursor for select id from t order by id; savepoint s")
    client.ask("declare young cursor for select 1; fetch 2 old; rollback to s")
    assert numbers(client.ask("fetch old")) == [3], "it stays where it is"
    assert client.code("fetch young") == "34000"
    client.ask("rollback to s; close old; rollback to s")
    assert client.code("fetch old") == "34000", "closed it stays"
    client.ask("rollback")


@pytest.mark.parametrize("end", ["commit", "rollback", "commit and chain", "rollback and chain"])
def test_cursors_end_with_their_transaction(client: SqlClient, end: str) -> None:
    client.ask(f"begin; declare c cursor for select 1; {end}")
    assert client.session._cursors.room.bytes_taken == 0
    assert client.code("fetch c") == "34000"
    client.ask("rollback")


def test_with_hold_outlives_a_commit_and_no_rollback(client: SqlClient, other: SqlClient) -> None:
    client.ask("declare a cursor with hold for select id from t order by id")
    client.ask("begin; declare b cursor with hold for select id from t order by id; fetch 2 b")
    other.ask("delete from t where id < 5; insert into t values (700, 1)")
    client.ask("commit; begin; declare c cursor with hold for select 1; fetch a; rollback")
    assert numbers(client.ask("fetch 2 b")) == [3, 4]
    assert numbers(client.ask("fetch a")) == [2], "what a rolled back transaction has fetched"
    assert client.code("fetch c") == "34000"
    assert client.ask("select name, is_holdable from pg_cursors order by name") == [
        ("a", 1),
        ("b", 1),
    ]
    client.ask("close all")
    assert client.tags == ["CLOSE CURSOR ALL"]
    assert client.reports[-1] == PortalsClosed(None), "those of the protocol, too"
    other.ask("insert into t select n, n % 7, 'note ' || n from generate_series(1, 4) as n")


@pytest.mark.parametrize("begin", ["", "begin; "])
def test_with_hold_has_to_be_whole_when_it_commits(client: SqlClient, begin: str) -> None:
    asked = "declare c cursor with hold for select 1 / (4 - id) from t order by id"
    if begin:
        client.ask(f"begin; insert into t values (800, 1); {asked}")
        assert client.code("commit") == "22012"
    else:
        assert client.code(asked) == "22012"
    assert client.ask("select count(*) from t") == [(ROWS,)]
    assert client.code("fetch c") == "34000"


def test_discard_all_closes_them(client: SqlClient) -> None:
    client.ask("declare c cursor with hold for select 1")
    client.ask("discard all")
    assert client.ask("select count(*) from pg_cursors") == [(0,)]


def test_the_catalog_tells_of_them(client: SqlClient) -> None:
    client.ask("begin")
    client.ask("declare a no scroll cursor for select 1")
    client.ask('declare "B c" binary scroll cursor for select 2')
    client.ask("declare v cursor for selectv id from t")
    asked = "select name, statement, is_holdable, is_binary, is_scrollable from pg_cursors"
    assert client.ask(f"{asked} order by name") == [
        ("B c", 'declare "B c" binary scroll cursor for select 2', 0, 1, 1),
        ("a", "declare a no scroll cursor for select 1", 0, 0, 0),
        ("v", "declare v cursor for selectv id from t", 0, 0, 0),
    ]
    client.ask("commit")


# ------------------------------------------------------------ bounds


def test_rows_beyond_the_room_are_refused_when_they_are_reached(
    client: SqlClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client.session._cursors, "room", SpoolRoom(bytes_max=8_000))
    client.ask("begin; declare c cursor for select id, note from t order by id; savepoint s")
    assert len(client.ask("fetch 256 c")) == 256
    assert client.code("fetch all c") == "54000"
    client.ask("rollback to s")
    assert client.code("declare d cursor for select id, note from t; fetch all d") == "54000"
    client.ask("rollback")
    assert client.code("declare c cursor with hold for select id, note from t") == "54000"
    assert client.session._cursors.room.bytes_taken == 0


def test_a_query_without_an_end_can_be_begun(
    client: SqlClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client.session._cursors, "room", SpoolRoom(bytes_max=100_000))
    client.ask("begin; declare c cursor for select * from generate_series(1, 1000000000000)")
    assert numbers(client.ask("fetch 3 c")) == [1, 2, 3]
    client.ask("rollback")


def test_a_session_has_so_many(client: SqlClient) -> None:
    client.ask("begin")
    for number in range(CURSORS_MAX):
        client.ask(f"declare c{number} cursor for select 1")
    client.ask("savepoint s")
    assert client.code("declare c cursor for select 1") == "54000"
    client.ask("rollback to s; close c0; declare c cursor for select 1; rollback")


def test_the_time_limit_is_declares(client: SqlClient) -> None:
    client.ask("set statement_timeout = '50ms'; begin")
    asked = "declare c cursor for select count(*) from t a, t b, t c where a.a + b.a < c.a"
    assert client.code(asked) == "57014"
    client.ask("rollback; set statement_timeout = 0")


# ------------------------------------------------------------ isolation


def test_what_a_cursor_has_read_is_verified(client: SqlClient, other: SqlClient) -> None:
    """Serializable: all of its query, as of BEGIN."""
    client.ask("begin isolation level serializable; insert into t values (601, 1)")
    other.ask("update t set a = 100 where id = 5")
    client.ask("declare c cursor for select sum(a) from t where id between 3 and 7; fetch c")
    assert client.code("commit") == "40001"
    client.ask("begin isolation level serializable; insert into t values (602, 1)")
    client.ask("declare c cursor for select a from t where id between 3 and 7; fetch c")
    other.ask("update t set a = 50 where id = 9")
    client.ask("commit")


def test_rows_that_were_not_fetched_contradict_nothing(client: SqlClient, other: SqlClient) -> None:
    """T2: what is compared is what the client was given."""
    for fetched, code in (("fetch 2 c", "00000"), ("fetch 5 c", "40001"), ("move 5 c", "40001")):
        client.ask("begin isolation level serializable; insert into t values (601, 1)")
        client.ask("declare c cursor for select a from t where id between 3 and 7 order by id")
        client.ask(fetched)
        other.ask("update t set a = a + 10 where id = 7")
        assert client.code("commit") == code, fetched
        other.ask("delete from t where id > 600")


def test_for_update_verifies_at_every_level(client: SqlClient, other: SqlClient) -> None:
    client.ask("begin; declare c cursor for select a from t where id < 4 for update; fetch 3 c")
    client.ask("insert into t values (601, 1)")
    other.ask("update t set a = 100 where id = 2")
    assert client.code("commit") == "40001"


# ------------------------------------------------------------ embedded


def test_the_embedded_connection_has_them(database: DevDatabase) -> None:
    session = SqlSession(database.sql_node(), Plans(), user="me")
    with Connection(session, lambda: None) as connection:
        connection.execute("declare c cursor for select id from t where id <= %s order by id", (4,))
        cursor = connection.execute("fetch 3 c")
        assert (cursor.rowcount, cursor.fetchall()) == (3, [(1,), (2,), (3,)])
        connection.execute("close c")
        with pytest.raises(Error) as caught:
            connection.execute("close c")
        assert caught.value.sqlstate == "34000"
        connection.rollback()
    assert session.declared("c") is None


def test_columns_are_told_as_the_querys(client: SqlClient) -> None:
    client.ask("declare c cursor with hold for select id + 1 as more from t")
    assert client.session.declared("c") == (Column("more", Type("integer")),)
    assert client.session.declared("d") is None
    client.session.close_declared("c")
    client.session.close_declared("c")
    assert client.session.declared("c") is None
