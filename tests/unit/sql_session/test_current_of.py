"""UPDATE and DELETE … WHERE CURRENT OF a cursor, in sessions of a whole database in this process.
What PostgreSQL does with the same statements is
`tests/integration/postgres_compat/test_cursors_postgres.py`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from leasehold.dev.database import DevDatabase
from tests.support.sql_session.sql_client import SqlClient, database_with


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevDatabase]:
    with database_with(
        tmp_path_factory,
        "create table t (id int primary key, a int)",
        "create table u (id int primary key, a int)",
        "create table pair (n numeric(6, 2), name text, a int, primary key (n, name))",
        "create table bare (a int)",
    ) as made:
        yield made


@pytest.fixture
def client(database: DevDatabase) -> Iterator[SqlClient]:
    made = SqlClient(database)
    made.ask("insert into t select n, n * 10 from generate_series(1, 5) as n")
    made.ask("insert into u select n, n from generate_series(4, 6) as n")
    yield made
    if made.status().name != "IDLE":
        made.ask("rollback")
    made.ask("delete from t; delete from u; delete from pair; delete from bare")
    made.session.close()
    assert made.session.room.bytes_taken == 0, "every cursor has given its room back"


@pytest.fixture
def other(database: DevDatabase) -> Iterator[SqlClient]:
    made = SqlClient(database)
    yield made
    made.session.close()


def refused(client: SqlClient, text: str, words: str, code: str = "24000") -> None:
    """The transaction goes on from before it."""
    client.ask("savepoint before")
    with pytest.raises(Exception, match=words) as caught:
        client.ask(text)
    assert getattr(caught.value, "sqlstate", "") == code
    client.ask("rollback to before")


def rows(client: SqlClient, table: str = "t") -> list[Any]:
    return client.ask(f"table {table} order by 1, 2")


def test_the_row_on_which_it_stands_is_changed(client: SqlClient, other: SqlClient) -> None:
    client.ask("begin; declare c scroll cursor for select a from t order by id; fetch 2 from c")
    assert client.ask("update t set a = 0 where current of c returning *") == [(2, 0)]
    client.ask("update t as x set a = u.id from u where current of c")
    assert client.tags == ["UPDATE 1"], "joined with three rows it is changed once"
    assert client.ask("fetch last from c") == [(50,)]
    assert client.ask("delete from t where current of c returning id") == [(5,)]
    assert client.ask("fetch prior from c") == [(40,)]
    client.ask("update t set a = -1 where current of c; commit")
    assert [row[0] for row in rows(other)] == [1, 2, 3, 4]
    assert rows(other)[3] == (4, -1)


def test_it_follows_the_row_and_no_other_one(client: SqlClient) -> None:
    """Under another key, and not to one that has come under its key."""
    client.ask("begin; declare c cursor for select a from t order by id; fetch 2 from c")
    assert client.ask("update t set id = 12 where current of c returning id") == [(12,)]
    client.ask("insert into t values (2, 77)")
    assert client.ask("update t set id = id + 1 where current of c returning *") == [(13, 20)]
    client.ask("savepoint s; update t set id = 14 where id = 13; rollback to s")
    assert client.ask("delete from t where current of c returning id") == [(13,)]
    client.ask("insert into t values (13, 78)")
    client.ask("delete from t where current of c")
    assert client.tags == ["DELETE 0"]
    client.ask("rollback to s")
    assert client.ask("update t set id = 2, a = 9 where id = 2 returning a") == [(9,)]
    client.ask("declare d cursor for select a from t where id = 2; fetch d")
    assert client.ask("delete from t where current of d returning a") == [(9,)], "a later row"
    assert client.ask("delete from t where current of c returning id") == [(13,)]
    client.ask("commit")


def test_rows_that_take_each_others_keys(client: SqlClient) -> None:
    client.ask("begin; declare c cursor for select id from t where id = 2; fetch c")
    client.ask("update t set id = 6 - id")
    assert client.ask("update t set a = 0 where current of c returning id") == [(4,)]
    client.ask("truncate t; insert into t values (4, 4)")
    client.ask("update t set a = 0 where current of c")
    assert client.tags == ["UPDATE 0"], "it was of the rows that are gone"


def test_keys_of_several_columns_and_of_none(client: SqlClient) -> None:
    client.ask("insert into pair values (1.50, 'x', 1), (1.5, 'y', 2); insert into bare values (7)")
    client.ask("begin; declare c cursor for select a from pair order by name desc; fetch c")
    assert client.ask("update pair set a = 9 where current of c returning name") == [("y",)]
    client.ask("declare b cursor for select 1 from bare; fetch b")
    assert client.ask("delete from bare where current of b returning a") == [(7,)]
    client.ask("commit")
    assert sorted(client.ask("select name, a from pair")) == [("x", 1), ("y", 9)]


def test_with_values(client: SqlClient) -> None:
    """What is prepared names a cursor that need not be there yet."""
    client.ask("begin")
    (statement,) = client.session.statements(
        "update t set a = $1 + t.id where current of c returning a + $2"
    )
    prepared = client.session.prepare(statement, ())
    assert [str(t.type) if hasattr(t, "type") else str(t) for t in prepared.parameters]
    client.ask("declare c cursor for select * from t order by id; fetch 3 from c")
    assert client.run(prepared, (100, 1000)) == [(1103,)]


def test_what_it_stands_on_is_no_row_of_the_table(client: SqlClient) -> None:
    simple = "is not a simply updatable scan of table"
    client.ask("begin")
    refused(client, "delete from t where current of c", 'cursor "c" does not exist', "34000")
    client.ask("declare c cursor for select * from t order by id")
    refused(client, "delete from t where current of c", "is not positioned on a row")
    client.ask("fetch c")
    refused(client, "delete from u where current of c", simple)
    client.ask("fetch all from c")
    refused(client, "delete from t where current of c", "is not positioned on a row")
    for query in (
        *(
            "select count(*) from t",
            "select distinct a from t",
            "select t.* from t join u using (a)",
        ),
        *("table t union all table t", "values (1)", "select rank() over () from t", "select 1"),
        *("select sum(a) over () from t", "select * from (select * from t) as s", "table pg_class"),
        *("selectv count(*) from t", "select a from t group by a", "select generate_series(1, 2)"),
    ):
        client.ask(f"declare d cursor for {query}; fetch d")
        refused(client, "delete from t where current of d", simple)
        client.ask("close d")
    refused(client, "update t set a = 1 where current of c and true", "syntax error", "42601")
    refused(client, "select * from t where current of c", "syntax error", "42601")
    refused(client, "update t set a = 1 where current of c returning no", "does not exist", "42703")


def test_rows_that_are_locked(client: SqlClient) -> None:
    client.ask("begin; declare c cursor for select * from t left join u using (id) for update of t")
    client.ask("fetch 1 from c")
    assert client.ask("update t set a = 0 where current of c returning *") == [(1, 0)]
    refused(
        client, "delete from u where current of c", "does not have a FOR UPDATE/SHARE reference"
    )
    client.ask("declare d cursor for select * from t x join t y on x.id = y.id for update; fetch d")
    refused(client, "delete from t where current of d", "has multiple FOR UPDATE/SHARE references")
    client.ask("declare e cursor for selectv u.id from t left join u using (id) order by t.id")
    client.ask("fetch e; delete from u where current of e")
    assert client.tags[-1] == "DELETE 0", "an outer join has found none"
    client.ask("move 3 in e")
    assert client.ask("delete from u where current of e returning id") == [(4,)]


def test_a_cursor_that_outlives_its_transaction(client: SqlClient) -> None:
    client.ask("begin; declare c cursor with hold for select * from t order by id; fetch c")
    client.ask("update t set a = 1 where current of c; commit; begin")
    refused(client, "delete from t where current of c", "is held from a previous transaction")
    client.ask("commit; close c")


def test_explained(client: SqlClient) -> None:
    """No cursor is needed for that; and the row is all that is verified of it."""
    told = client.ask("explain update t set a = 1 where current of c")
    assert [line.split(" (")[0] for (line,) in told] == ["Primary Key Search on t"]
    told = client.ask("explain (reads) delete from t where current of c")
    assert len(told) == 1
    assert "all of" not in told[0][0]


@pytest.mark.parametrize("level", ["read committed", "serializable", "repeatable read"])
def test_others_write_meanwhile(client: SqlClient, other: SqlClient, level: str) -> None:
    client.ask(f"begin isolation level {level}; declare c cursor for select id from t order by id")
    client.ask("fetch 2 from c")
    other.ask("update t set a = a + 1 where id = 3")
    client.ask("update t set a = a + 5 where current of c")
    other.ask("update t set a = a + 1 where id = 2")
    code = client.code("commit")
    assert code == ("40001" if level == "repeatable read" else "00000")
    if code == "00000":
        assert rows(other)[1] == (2, 26), "run again, of the row that it stood on"


def test_a_replay_follows_the_same_rows(client: SqlClient, other: SqlClient) -> None:
    """Its key changes, a savepoint takes a change back, errors come again, another row comes. What
    was fetched is as it was (T2)."""
    client.ask("begin; declare c cursor for select id from t order by id")
    client.ask("savepoint s")
    assert client.code("update t set a = 0 where current of c") == "24000"
    client.ask("rollback to s; fetch 2 from c; update t set id = 12 where current of c")
    client.ask("savepoint s; update t set id = 13 where current of c; rollback to s")
    client.ask("insert into t values (2, 0), (13, 0)")
    client.ask("update t set a = a + 1 where current of c; update t set a = a + 1 where id = 3")
    client.ask("fetch c; delete from t where current of c")
    other.ask("update t set a = a + 100 where id in (2, 3)")
    assert client.code("commit") == "00000"
    assert rows(other) == [(1, 10), (2, 0), (4, 40), (5, 50), (12, 121), (13, 0)]
