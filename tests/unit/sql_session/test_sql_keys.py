"""Keys that change, and foreign keys that act, as a SQL session meets them: on a replicant of a
whole database in this process, with the real master, log and stores."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from leasehold.dev.database import DevDatabase
from tests.support.sql_session.sql_client import SqlClient


@pytest.fixture
def client(database: DevDatabase) -> Iterator[SqlClient]:
    made = SqlClient(database)
    made.ask("create table p (id int primary key, a int unique)")
    made.ask(
        "create table c (id int primary key, p int references p on delete cascade"
        " on update cascade, a int references p (a) on delete set null on update set null)"
    )
    made.ask("insert into p values (1, 10), (2, 20), (3, 30)")
    made.ask("insert into c values (11, 1, 10), (12, 1, null), (21, 2, 20)")
    yield made
    made.session.fail()
    made.ask("rollback; drop table c; drop table p")
    made.session.close()


PARENTS, CHILDREN = "select * from p order by id", "select * from c order by id"


def test_an_update_of_a_key_is_one_row(client: SqlClient) -> None:
    assert client.ask("update p set id = 9 where id = 3 returning id, a") == [(9, 30)]
    assert client.tags == ["UPDATE 1"]
    assert client.ask(PARENTS) == [(1, 10), (2, 20), (9, 30)]
    assert client.ask("update p set id = 9, a = 31 where id = 9 returning *") == [(9, 31)]


def test_rows_of_one_statement_may_take_each_other_s_keys(client: SqlClient) -> None:
    client.ask("update p set id = id + 1")
    assert client.tags == ["UPDATE 3"]
    assert client.ask(PARENTS) == [(2, 10), (3, 20), (4, 30)]
    assert client.ask(CHILDREN) == [(11, 2, 10), (12, 2, None), (21, 3, 20)]
    client.ask("update p set id = case id when 2 then 3 else 2 end where id in (2, 3)")
    assert client.ask(PARENTS) == [(2, 20), (3, 10), (4, 30)]
    assert client.ask(CHILDREN) == [(11, 3, 10), (12, 3, None), (21, 2, 20)]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("update p set id = 2 where id = 1", "23505"),
        ("update p set id = 7", "23505"),
        ("update p set id = null where id = 1", "23502"),
        ("update p set a = 20 where id = 1", "23505"),
        ("update c set p = 7 where id = 11", "23503"),
        ("insert into p values (1, 1) on conflict (id) do update set id = 2", "23505"),
    ],
)
def test_what_can_not_be_is_refused(client: SqlClient, text: str, code: str) -> None:
    assert client.code(text) == code
    assert client.ask(PARENTS) == [(1, 10), (2, 20), (3, 30)]


def test_an_insert_may_move_the_row_that_is_in_its_way(client: SqlClient) -> None:
    text = "insert into p values (1, 1) on conflict (id) do update set id = 5 returning id, a"
    assert client.ask(text) == [(5, 10)]
    assert client.ask(CHILDREN) == [(11, 5, 10), (12, 5, None), (21, 2, 20)]


def test_a_block_sees_its_moved_rows(client: SqlClient) -> None:
    client.ask("begin; update p set id = 8 where id = 1")
    assert client.ask(PARENTS) == [(2, 20), (3, 30), (8, 10)]
    client.ask("savepoint s; update p set id = 1 where id = 2; delete from p where id = 8")
    assert client.ask(PARENTS) == [(1, 20), (3, 30)]
    client.ask("rollback to s; update p set a = 11 where id = 8")
    assert client.ask("update p set id = 7 where id = 8 returning *") == [(7, 11)]
    client.ask("insert into p values (1, 12)")
    client.ask("commit")
    assert client.ask(PARENTS) == [(1, 12), (2, 20), (3, 30), (7, 11)]
    assert client.ask(CHILDREN) == [(11, 7, None), (12, 7, None), (21, 2, 20)]


def test_what_follows_is_counted_by_nobody_and_seen_after_commit(client: SqlClient) -> None:
    client.ask("begin; delete from p where id = 1")
    assert client.tags[-1] == "DELETE 1"
    assert client.ask("select count(*) from c") == [(3,)]
    client.ask("commit")
    assert client.ask(CHILDREN) == [(21, 2, 20)]
    client.ask("delete from p")
    assert client.tags == ["DELETE 2"]
    assert client.ask(CHILDREN) == []


def test_what_a_block_says_itself_of_rows_that_follow(client: SqlClient) -> None:
    """Parents first, children after: nothing is left to be done for those."""
    client.ask("begin; delete from p where id = 1; delete from c where p = 1; commit")
    assert client.ask(CHILDREN) == [(21, 2, 20)]
    client.ask("begin; delete from p where id = 2; insert into p values (2, 21); commit")
    assert client.ask(CHILDREN) == []


@pytest.mark.parametrize("level", ["read committed", "repeatable read", "serializable"])
def test_at_every_level(client: SqlClient, level: str) -> None:
    client.ask(f"begin isolation level {level}; update p set id = id + 10 where id < 3")
    client.ask("delete from p where id = 12; commit")
    assert client.ask(CHILDREN) == [(11, 11, 10), (12, 11, None)]


def test_a_change_request_moves_a_row(client: SqlClient, database: DevDatabase) -> None:
    """The values of an update may name columns of the key, expressions among them."""
    moved = {"table": "p", "op": "update", "key": {"id": 1}, "values": {"id": {"expr": "id + 50"}}}
    outcome = database.ask(moved)
    assert outcome.committed
    assert outcome.outcome.rows_affected == 1
    assert client.ask(CHILDREN) == [(11, 51, 10), (12, 51, None), (21, 2, 20)]
    taken = {"table": "p", "op": "update", "key": {"id": 2}, "values": {"id": 3}}
    assert database.ask(taken).outcome.code == "23505"
    upsert = {"table": "p", "op": "upsert", "key": {"id": 2}, "values": {"id": 7}}
    assert database.ask(upsert).outcome.code == "08P01"


def test_catalogs_tell_of_actions(client: SqlClient) -> None:
    asked = "select confupdtype, confdeltype from pg_catalog.pg_constraint where contype = 'f'"
    assert sorted(client.ask(asked)) == [("c", "c"), ("n", "n")]
