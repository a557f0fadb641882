"""SQL sessions that write: own rows, COMMIT, and statements that run again after a verify error.

Two sessions on different replicants of a whole database in this process.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from leasehold.adapters.os.clock import new_request_id
from leasehold.adapters.sqlite import write
from leasehold.dev.database import DevDatabase
from leasehold.model.errors import Refused
from leasehold.model.records.requests import OnConflict
from leasehold.replica.write_set import WriteSet
from leasehold.sql_session import transaction
from tests.support.sql_session.sql_client import SqlClient


@pytest.fixture
def one(database: DevDatabase) -> Iterator[SqlClient]:
    client = SqlClient(database, "r1")
    client.ask("create table t (id int primary key, a int not null, u int unique)")
    client.ask("insert into t (id, a) values (1, 10), (2, 20), (3, 30)")
    yield client
    client.session.fail()
    client.ask("rollback; drop table t")
    client.session.close()


@pytest.fixture
def other(database: DevDatabase, one: SqlClient) -> Iterator[SqlClient]:
    client = SqlClient(database, "r2")
    yield client
    client.session.close()


OPERATIONS_MAX = 1_000
ROWS = "select id, a from t order by id"


def test_each_write_tells_its_rows(one: SqlClient, other: SqlClient) -> None:
    assert one.ask("insert into t values (4, 40, 4), (5, 50, 5) returning id, a") == [
        (4, 40),
        (5, 50),
    ]
    assert one.tags == ["INSERT 0 2"]
    one.ask("update t set a = a + 1 where id > 3")
    assert one.tags == ["UPDATE 2"]
    one.ask("delete from t where id in (1, 4)")
    assert one.tags == ["DELETE 2"]
    assert other.ask(ROWS) == [(2, 20), (3, 30), (5, 51)]  # answered: on every coherent node


def test_own_writes_are_seen_by_their_transaction_alone(one: SqlClient, other: SqlClient) -> None:
    one.ask("begin; update t set a = 11 where id = 1; delete from t where id = 2")
    one.ask("insert into t values (9, 90, null)")
    assert one.ask(ROWS) == [(1, 11), (3, 30), (9, 90)]
    assert other.ask(ROWS) == [(1, 10), (2, 20), (3, 30)]
    one.ask("rollback")
    assert one.ask(ROWS) == [(1, 10), (2, 20), (3, 30)]


def test_the_default_level_sees_none_of_its_own(one: SqlClient) -> None:
    one.ask("set leasehold.isolation = 'default'; begin; update t set a = 11 where id = 1")
    assert one.ask("select a from t where id = 1") == [(10,)]
    one.ask("commit")
    assert one.ask("select a from t where id = 1") == [(11,)]


def test_a_savepoint_takes_writes_back(one: SqlClient, other: SqlClient) -> None:
    one.ask("begin; update t set a = 11 where id = 1; savepoint s; delete from t")
    one.ask("rollback to s; update t set a = 21 where id = 2; commit")
    assert other.ask(ROWS) == [(1, 11), (2, 21), (3, 30)]


def test_statements_of_one_text_are_one_transaction(one: SqlClient) -> None:
    assert one.code("update t set a = 11 where id = 1; select 1/0") == "22012"
    assert one.ask("select a from t where id = 1") == [(10,)]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("insert into t values (1, 1, 1)", "23505"),
        ("insert into t values (8, null, 1)", "23502"),
        ("insert into t values (8, 8, 8), (9, 9, 8)", "23505"),  # found at COMMIT
        ("insert into t values ('x', 1, 1)", "22P02"),
        ("insert into t values (8, 3000000000, 1)", "22003"),
        ("insert into nope values (1)", "42P01"),
        ("update t set nope = 1", "42703"),
        ("begin read only; delete from t", "25006"),
        ("set default_transaction_read_only = on; delete from t", "25006"),
        ("set default_transaction_read_only = on; create table made (id int primary key)", "25006"),
        ("set default_transaction_read_only = on; truncate t", "25006"),
        ("set default_transaction_read_only = on; create role made", "25006"),
    ],
)
def test_what_is_refused(one: SqlClient, text: str, code: str) -> None:
    assert one.code(text) == code
    one.ask("rollback; reset all")
    assert one.ask(ROWS) == [(1, 10), (2, 20), (3, 30)]


# ------------------------------------------------------------ verify errors (T2)


def test_a_block_runs_again_when_that_changes_no_answer(one: SqlClient, other: SqlClient) -> None:
    one.ask("begin; update t set a = a + 1 where id = 1")
    other.ask("update t set a = a + 100 where id = 1")
    one.ask("commit")
    assert one.tags == ["COMMIT"]
    assert one.ask("select a from t where id = 1") == [(111,)]


def test_a_block_does_not_run_again_against_a_row_count(one: SqlClient, other: SqlClient) -> None:
    one.ask("begin; update t set a = 0 where a < 15")
    other.ask("update t set a = 15 where id = 1")
    assert one.code("commit") == "40001"
    assert one.ask("select a from t where id = 1") == [(15,)]


def test_a_block_does_not_run_again_against_returned_rows(one: SqlClient, other: SqlClient) -> None:
    assert one.ask("begin; update t set a = a + 1 where id = 1 returning a") == [(11,)]
    other.ask("update t set a = a + 100 where id = 1")
    assert one.code("commit") == "40001"
    assert one.ask("select a from t where id = 1") == [(110,)]


def test_a_block_does_not_run_again_against_an_error(one: SqlClient, other: SqlClient) -> None:
    one.ask("begin; savepoint s")
    assert one.code("select 1 / (a - 10) from t where id = 1") == "22012"
    one.ask("rollback to s; update t set a = a + 1 where id = 1")
    other.ask("update t set a = 50 where id = 1")  # now there is no division by zero
    assert one.code("commit") == "40001"


def test_what_was_taken_back_is_not_written_by_a_replay(one: SqlClient, other: SqlClient) -> None:
    one.ask("begin; update t set a = a + 1 where id = 1; savepoint s")
    one.ask("update t set a = 0 where id = 3; rollback to s")
    other.ask("update t set a = 100 where id = 1")
    one.ask("commit")
    assert one.ask(ROWS) == [(1, 101), (2, 20), (3, 30)]


@pytest.mark.parametrize("arbiter", ["", "(id)", "(u)"])
def test_a_program_that_embeds_the_node_upserts_likewise(
    database: DevDatabase, one: SqlClient, other: SqlClient, arbiter: str
) -> None:
    reads = one.node.reads("an embedding program")
    writes = WriteSet(reads)
    done = writes.execute(f"insert into t values (9, 9, 9) on conflict {arbiter} do nothing")
    assert done.rowcount == 1
    other.ask("insert into t values (9, 90, 9)")
    request = writes.request(new_request_id(), 1, OnConflict.REPLAY)
    assert request is not None
    outcome = database.submit(request, 30)
    assert (outcome.lsn, outcome.code, outcome.final) == (0, "40001", False)
    reads.close()


def test_verifyretry_off_is_told_at_once(one: SqlClient, other: SqlClient) -> None:
    one.ask("set verifyretry off; begin; update t set a = a + 1 where id = 1")
    other.ask("update t set a = a + 100 where id = 1")
    assert one.code("commit") == "40001"
    assert one.ask("select a from t where id = 1") == [(110,)]


def test_repeatable_read_never_runs_again(one: SqlClient, other: SqlClient) -> None:
    one.ask("begin isolation level repeatable read; select * from t")
    other.ask("update t set a = a + 100 where id = 1")
    one.ask("update t set a = a + 1 where id = 1")
    assert one.code("commit") == "40001"
    assert one.ask("select a from t where id = 1") == [(110,)]


def test_a_replay_keeps_the_time(one: SqlClient, other: SqlClient) -> None:
    one.ask("begin; update t set a = extract(epoch from now())::int where id = 1")
    ((before,),) = one.ask("select a from t where id = 1")
    other.ask("update t set a = 0 where id = 1")
    one.ask("commit")
    assert other.ask("select a from t where id = 1") == [(before,)]


# ------------------------------------------------------------ limits, COPY


def test_a_transaction_has_a_size(one: SqlClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction, "OPERATIONS_MAX", OPERATIONS_MAX)
    monkeypatch.setattr(write, "WRITES_MAX", OPERATIONS_MAX)
    too_many = f"insert into t select g, g from generate_series(10, {OPERATIONS_MAX + 11}) g"
    assert one.code(too_many) == "54000"
    half = "insert into t select g, g from generate_series({}, {}) g"
    one.ask("begin;" + half.format(10, OPERATIONS_MAX))
    assert one.code(half.format(OPERATIONS_MAX + 1, OPERATIONS_MAX + 50)) == "54000"
    one.ask("rollback")


def test_copy_takes_rows_of_named_columns(one: SqlClient, other: SqlClient) -> None:
    session = one.session
    (statement,) = session.statements("copy t (a, id) from stdin csv")
    portal = session.bind(session.prepare(statement, ()), ())
    assert portal.copy is not None
    assert (portal.copy.table, [c.name for c in portal.copy.columns]) == ("t", ["a", "id"])
    portal.copy.take([(70, 7), (80, 8)])
    assert portal.fetch(1).tag == "COPY 2"
    session.end_batch()
    assert other.ask("select id, a from t where id > 5 order by id") == [(7, 70), (8, 80)]


@pytest.mark.parametrize(
    ("text", "code", "position"),
    [
        ("copy nope from stdin", "42P01", None),
        ("copy t (id, nope) from stdin", "42703", 13),
        ("copy t (id, id) from stdin", "42701", 13),
    ],
)
def test_copy_is_refused(one: SqlClient, text: str, code: str, position: int | None) -> None:
    with pytest.raises(Refused) as caught:
        one.ask(text)
    assert (caught.value.sqlstate, caught.value.detail.get("position")) == (code, position)


def test_own_rows_are_made_for_who_looks_at_them_alone(
    one: SqlClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block that inserts row by row would else go through all of them with each."""
    seen: list[int] = []

    def own_rows(connection: Any, tables: Any, emptied: Any = ()) -> Any:
        seen.append(sum(len(rows) for _, rows in tables.values()))
        return write.own_rows(connection, tables, emptied)

    monkeypatch.setattr(transaction, "own_rows", own_rows)
    one.ask("begin; insert into t (id, a) values (7, 1), (8, 2)")
    seen.clear()
    assert one.ask("insert into t (id, a) values (9, 3) returning id, a + 1") == [(9, 4)]
    assert seen == [0]
    counted = "insert into t (id, a) values (10, 3) returning (select count(*) from t)"
    assert one.ask(counted) == [(6,)]
    assert one.ask("update t set a = 0 where id = 9 returning a") == [(0,)]
    assert seen == [0, 3, 4]
    one.ask("rollback")


@pytest.mark.parametrize(
    "text",
    [
        "insert into w values (2, 'toolong')",
        "insert into w values (2, 'abc'), (3, 'toolong')",
        "insert into w values (2, 'abc'), (3, 4::text), (4, 'toolong')",
        "insert into w select 2, 'toolong'",
        "insert into w values (1) on conflict (id) do update set v = 'toolong'",
        "insert into w (id, c) values (2, 'toolong')",
        "update w set v = 'toolong' where id = 1",
        "update w set v = 'toolong'",
        "update w set (v, c) = ('abc', 'toolong')",
        "update w set v = coalesce(null, v, 'toolong')",
        "update w set v = case when id = 1 then 'toolong' else v end",
    ],
)
def test_a_constant_that_is_too_long_is_refused_and_not_cut(one: SqlClient, text: str) -> None:
    """CAST cuts, a column never does."""
    one.ask("create table w (id int primary key, v varchar(5), c char(3))")
    one.ask("insert into w values (1, null, 'b'), (9, 'abc' || '  ', 'abc    ')")
    try:
        assert one.code(text) == "22001"
        assert one.ask("select id, v, c from w order by id") == [
            (1, None, "b"),
            (9, "abc  ", "abc"),
        ]
        one.ask("update w set v = 'toolong'::varchar(5) where id = 1")
        assert one.ask("select v from w where id = 1") == [("toolo",)]
    finally:
        one.session.fail()
        one.ask("drop table w")


@pytest.mark.parametrize(
    "text",
    [
        "select coalesce(null::varchar(3), 'toolong')",
        "select case when true then 'toolong' else 'x'::varchar(3) end",
        "select 'x'::varchar(3) where false union all select 'toolong'",
        "select v from (values ('toolong'), ('x'::varchar(3))) t (v) where v <> 'x'",
    ],
)
def test_beside_a_type_with_a_length_a_constant_keeps_its_own(one: SqlClient, text: str) -> None:
    assert one.ask(text) == [("toolong",)]


def test_what_set_says_is_computed_for_rows_of_which_where_holds(one: SqlClient) -> None:
    text = (
        "insert into t (id, a) values (1, 0), (2, 4) on conflict (id) do update"
        " set a = 100 / excluded.a where excluded.a <> 0"
    )
    one.ask(text)
    assert one.tags == ["INSERT 0 1"]
    assert one.ask(ROWS) == [(1, 10), (2, 25), (3, 30)]
    assert one.code(text.replace("<> 0", "< 4")) == "22012"


def test_rows_on_conflict_cost_the_same_however_many_there_are(
    one: SqlClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0
    key_in = write.Writing._key_in

    def counted(self: write.Writing, arbiter: int, image: Any) -> Any:
        nonlocal asked
        asked += 1
        return key_in(self, arbiter, image)

    monkeypatch.setattr(write.Writing, "_key_in", counted)
    text = "insert into t select n, n, n from generate_series({}, {}) n on conflict do nothing"
    one.ask(text.format(1_001, 1_100))
    few, asked = asked, 0
    one.ask(text.format(2_001, 3_000))
    assert asked <= 11 * few
    # What this very statement has made is in the way, by either key; what it has replaced is not.
    one.ask("insert into t values (5, 5, 5), (6, 6, 5), (5, 7, 7) on conflict do nothing")
    assert one.tags == ["INSERT 0 1"]
    upsert = "insert into t values {} on conflict (u) do update set u = 99"
    one.ask(upsert.format("(8, 8, 5), (9, 9, 5)"))
    assert one.ask("select id, u from t where id in (5, 8, 9) order by id") == [(5, 99), (9, 5)]
    assert one.code(upsert.format("(10, 10, 10), (11, 11, 10)")) == "21000"
