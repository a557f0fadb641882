"""Goal: SERIAL, IDENTITY and sequences in SQL sessions are what PostgreSQL's are, on every node.

Method: sessions on two replicants of one process. What PostgreSQL answers to the same statements is
compared in tests/integration/postgres_compat/test_sequences_postgres.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event, Thread
from typing import Any

import pytest

from leasehold.dev.database import DevDatabase
from leasehold.model.errors import QueryCanceled
from leasehold.pgwire.wire_errors import Canceled
from leasehold.replica.sequences import session_values
from leasehold.replica.sequences.node_blocks import BLOCK_VALUES, TRIES_MAX
from tests.support.sql_session.sql_client import SqlClient, client_of_tables


@pytest.fixture
def one(database: DevDatabase) -> Iterator[SqlClient]:
    with client_of_tables(
        database,
        "create table t (id serial primary key, v text)",
        dropped_by="drop table if exists t, u; drop sequence if exists s",
    ) as made:
        yield made


def test_rows_are_numbered_from_one(one: SqlClient) -> None:
    assert one.ask("insert into t (v) values ('a'), ('b') returning id") == [(1,), (2,)]
    assert one.ask("insert into t values (default, 'c') returning id, v") == [(3, "c")]
    assert one.ask("insert into t (v) select 'x' from generate_series(1, 3) returning id") == [
        *((4,), (5,), (6,))
    ]
    one.ask("insert into t default values")
    assert one.ask("select max(id) from t") == [(7,)]


def test_each_node_draws_from_numbers_of_its_own(one: SqlClient, other: SqlClient) -> None:
    for _ in range(3):
        one.ask("insert into t (v) values ('one')")
        other.ask("insert into t (v) values ('other')")
    # Each goes on in its own block, whatever the first numbers of these are.
    found = one.ask("select v, id from t order by v, id")
    ids = [number for _, number in found]
    assert len(set(ids)) == 6
    assert ids[1] - ids[0] == ids[2] - ids[1] == ids[4] - ids[3] == ids[5] - ids[4] == 1


def test_many_rows_of_one_statement(one: SqlClient) -> None:
    count = 20 * BLOCK_VALUES
    one.ask(f"insert into t (v) select 'x' from generate_series(1, {count})")
    assert one.ask("select count(*), count(distinct id) from t") == [(count, count)]
    assert one.ask("select max(id) - min(id) + 1 from t") == [(count,)]


def test_a_wait_for_numbers_is_cancelled(one: SqlClient) -> None:
    """By whoever asks for it, and by the statement's limit of time."""
    caught: list[str] = []

    def run() -> None:
        caught.append(one.code("insert into t (v) values ('a')"))

    numbers = one.node.sequence_values
    waits, submit = Event(), numbers._submit

    def unanswered(request: Any, timeout_s: float, stopped: Any) -> Any:
        waits.set()
        one.node.wait(stopped, timeout_s)
        raise QueryCanceled("told to end")

    numbers._submit = unanswered
    try:
        thread = Thread(target=run)
        thread.start()
        waits.wait()
        one.session.cancel(Canceled("canceling statement due to user request"))
        thread.join()
        assert caught == ["57014"]
        one.ask("set statement_timeout = 50")
        assert one.code("insert into t (v) values ('b')") == "57014"
    finally:
        numbers._submit = submit
        one.ask("reset statement_timeout")
    one.ask("insert into t (v) values ('c')")
    assert one.ask("select v from t order by id") == [("c",)]


def test_as_many_setvals_as_a_statement_has_rows(one: SqlClient) -> None:
    one.ask("create sequence s")
    count = TRIES_MAX + 5
    assert one.ask(f"select count(setval('s', n)) from generate_series(1, {count}) as n") == [
        (count,)
    ]
    assert one.ask("select nextval('s')") == [(count + 1,)]


def test_currval_goes_on_behind_the_commit_that_made_its_sequence(one: SqlClient) -> None:
    one.ask("begin; create table u (id serial primary key, n int); create sequence s")
    one.ask("insert into u (n) values (1), (2); select setval('s', 7); commit")
    assert one.ask("select currval('u_id_seq'), lastval(), currval('s')") == [(2, 2, 7)]
    assert one.ask("insert into u (n) values (3) returning id = currval('u_id_seq')") == [(1,)]
    one.ask("drop sequence s; create sequence s")
    assert one.code("select currval('s')") == "55000", "another one of that name"
    one.ask("drop sequence s")
    one.ask("begin; create sequence s; select nextval('s'); rollback")
    one.ask("create sequence s")
    assert one.code("select currval('s')") == "55000", "it was never made"


def test_a_transaction_draws_so_many_numbers_and_no_more(
    one: SqlClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_values, "DRAWN_MAX", 50)
    one.ask("create sequence s")
    assert one.ask("select count(nextval('s')) from generate_series(1, 50)") == [(50,)]
    assert one.code("select count(nextval('s')) from generate_series(1, 51)") == "54000"
    assert one.ask("select count(nextval('s')) from generate_series(1, 50)") == [(50,)]


def test_requests_get_their_number_from_the_master(
    database: DevDatabase, one: SqlClient, other: SqlClient
) -> None:
    other.ask("insert into t (v) values ('sql')")
    body = {"table": "t", "op": "insert", "values": {"v": "asked"}}
    for _ in range(3):
        assert database.ask(body).outcome.lsn
    one.ask("insert into t (v) values ('sql')")
    ids = [number for (number,) in one.ask("select id from t")]
    assert len(set(ids)) == 5


def test_an_upsert_of_a_row_that_is_there_leaves_its_number(
    database: DevDatabase, one: SqlClient
) -> None:
    one.ask("create table u (k int primary key, id serial, v text)")
    for said in ("a", "b"):
        for key in ({"key": [1]}, {"key": {"k": 2}}):
            body = {"table": "u", "op": "upsert", **key, "values": {"v": said}}
            assert database.ask(body).outcome.lsn
    assert one.ask("select k, id, v from u order by k") == [(1, 1, "b"), (2, 2, "b")]


def test_currval_lastval_setval(one: SqlClient, other: SqlClient) -> None:
    assert one.code("select lastval()") == "55000"
    assert one.code("select currval('t_id_seq')") == "55000"
    (number,) = one.ask("insert into t (v) values ('a') returning id")[0]
    assert one.ask("select currval('t_id_seq'), lastval()") == [(number, number)]
    assert other.code("select currval('t_id_seq')") == "55000"
    assert one.ask("select setval('t_id_seq', 500)") == [(500,)]
    assert one.ask("select currval('t_id_seq')") == [(500,)]
    # ⚠ What any node had taken before is nobody's any more.
    assert other.ask("select nextval('t_id_seq')") == [(501,)]
    assert one.ask("select setval('t_id_seq', 700, false)") == [(700,)]
    assert one.ask("select nextval('t_id_seq')") == [(700,)]
    assert one.code("select setval('t_id_seq', 0)") == "22003"
    assert one.ask("select pg_get_serial_sequence('t', 'id')") == [("public.t_id_seq",)]
    assert one.ask("select pg_get_serial_sequence('t', 'v')") == [(None,)]
    assert one.code("select nextval('t')") == "42809"
    assert one.code("select nextval('nothing')") == "42P01"
    one.ask("discard all")
    assert one.code("select lastval()") == "55000"


def test_identity(one: SqlClient) -> None:
    one.ask(
        "create table u (a int generated always as identity primary key,"
        " b bigint generated by default as identity (start with 10 increment by 5), c int)"
    )
    assert one.ask("insert into u (c) values (1) returning a, b") == [(1, 10)]
    assert one.ask("insert into u (b) values (77) returning a, b") == [(2, 77)]
    assert one.code("insert into u (a) values (9)") == "428C9"
    assert one.code("insert into u select 9") == "428C9"
    assert one.code("update u set a = 9") == "428C9"
    assert one.ask("insert into u (a) overriding system value values (9) returning a") == [(9,)]
    found = one.ask("insert into u (a, b) overriding user value values (9, 9) returning a, b")
    assert found == [(3, 20)]  # the row of 9 has drawn 15 for its b
    assert one.ask("insert into u (a, b) values (default, 1) returning a") == [(4,)]
    assert one.ask("update u set a = default where a = 4 returning a") == [(5,)]
    assert one.code("alter table u alter a drop default") == "42601"


def test_null_is_no_number(one: SqlClient) -> None:
    assert one.code("insert into t values (null, 'x')") == "23502"


def test_a_sequence_of_its_own(one: SqlClient, other: SqlClient) -> None:
    one.ask("create sequence s start 3 maxvalue 5")
    one.ask("create table u (k int default nextval('s'), v text)")
    assert one.ask("insert into u (v) values ('a') returning k") == [(3,)]
    assert one.ask("select nextval('s')") == [(4,)]
    assert one.ask("select nextval('s')") == [(5,)]
    assert one.code("select nextval('s')") == "2200H"
    assert one.code("drop sequence s") == "2BP01"
    other.ask("alter sequence s restart")
    assert one.ask("select nextval('s')") == [(3,)]
    assert one.ask("select last_value, log_cnt, is_called from s") == [(5, 0, 1)]
    other.ask("drop table u; drop sequence s")
    assert one.code("select nextval('s')") == "42P01"
    assert one.code("drop sequence if exists s") == "00000"


def test_a_sequence_that_another_table_draws_from_stays(one: SqlClient) -> None:
    """⚠ It went with its table: who left the other's column out was told to come again for ever."""
    one.ask("create table o (id serial primary key)")
    drawn = "default nextval('o_id_seq')"
    one.ask(f"create table u (k int {drawn}, l int {drawn})")
    drops = ("drop table o", "alter table o add x int, drop id")
    assert [one.code(drop) for drop in drops] == ["2BP01", "42P16"]
    one.ask("alter table o drop constraint o_pkey")
    assert one.code("alter table o drop id") == "2BP01"
    # Statements of one text come in their order: the change was ahead of the row before it.
    plain = "alter table u alter k drop default, alter l drop default"
    one.ask(f"insert into u values (default); {plain}")
    one.ask("drop table o; insert into u values (default)")
    assert one.ask("select * from u") == [(1, 2), (None, None)]
    one.ask(f"create table o (id serial primary key); create table p (k int {drawn})")
    one.ask("drop table o, p")


def test_a_sequence_is_no_table(one: SqlClient) -> None:
    for text in (
        "insert into t_id_seq values (1)",
        "update t_id_seq set last_value = 1",
        "delete from t_id_seq",
        "drop table t_id_seq",
        "truncate t_id_seq",
        "begin; truncate t_id_seq",
    ):
        assert one.code(text) == "42809", text
        one.ask("rollback")


def test_truncate_restarts(one: SqlClient, other: SqlClient) -> None:
    one.ask("insert into t (v) values ('a'), ('b')")
    other.ask("insert into t (v) values ('c')")
    one.ask("truncate t")
    (number,) = one.ask("insert into t (v) values ('d') returning id")[0]
    assert number == 3
    other.ask("truncate t restart identity")
    assert one.ask("insert into t (v) values ('e') returning id") == [(1,)]
    ids = {other.ask("insert into t (v) values ('f') returning id")[0][0] for _ in range(3)}
    assert 1 not in ids


def test_a_sequence_gets_another_name(one: SqlClient, other: SqlClient) -> None:
    one.ask("create table u (k int default nextval('t_id_seq'))")
    one.ask("insert into u default values; alter sequence t_id_seq rename to numbers")
    shown = (
        "select distinct column_default from information_schema.columns"
        " where column_default ~ 'nextval'"
    )
    assert one.ask(shown) == [("nextval('numbers'::regclass)",)]
    assert one.ask("select pg_get_serial_sequence('t', 'id')") == [("public.numbers",)]
    (mine,) = one.ask("insert into t (v) values ('a') returning id")[0]
    (theirs,) = other.ask("insert into u default values returning k")[0]
    assert len({1, mine, theirs}) == 3
    assert one.code("select nextval('t_id_seq')") == "42P01"
    assert one.code("alter sequence numbers rename to t") == "42P07"
    assert one.code("alter sequence no rename to x") == "42P01"
    assert one.code("alter sequence if exists no rename to x") == "00000"
    assert one.code("alter sequence t rename to x") == "42809"
    one.ask("create sequence t_id_seq; drop sequence t_id_seq; drop table u")
    one.ask("begin; create sequence s; alter sequence s rename to r; select nextval('r'); commit")
    assert one.ask("select nextval('r') > 1; drop sequence r") == []


# ------------------------------------------------------------------ between BEGIN and COMMIT


def test_a_table_and_its_rows_in_one_transaction(one: SqlClient, other: SqlClient) -> None:
    one.ask("begin; create table u (id serial primary key, v text)")
    assert one.ask("insert into u (v) values ('a'), ('b') returning id") == [(1,), (2,)]
    assert one.ask("select currval('u_id_seq')") == [(2,)]
    assert one.ask("select setval('u_id_seq', 9)") == [(9,)]
    assert one.ask("insert into u (v) values ('c') returning id") == [(10,)]
    one.ask("commit")
    assert other.ask("insert into u (v) values ('d') returning id") == [(11,)]


def test_what_is_rolled_back_has_made_nothing(one: SqlClient) -> None:
    one.ask("begin; create table u (id serial); insert into u default values; rollback")
    assert one.code("select nextval('u_id_seq')") == "42P01"
    (first,) = one.ask("insert into t (v) values ('a') returning id")[0]
    one.ask("begin; insert into t (v) values ('b'); rollback")
    (second,) = one.ask("insert into t (v) values ('c') returning id")[0]
    assert second == first + 2  # numbers are not given back


def test_restarts_inside_of_a_transaction(one: SqlClient, other: SqlClient) -> None:
    one.ask("insert into t (v) values ('a'), ('b')")
    other.ask("insert into t (v) values ('c')")
    one.ask("begin; truncate t restart identity")
    assert one.ask("insert into t (v) values ('d') returning id") == [(1,)]
    one.ask("savepoint a; truncate t restart identity")
    assert one.ask("insert into t (v) values ('e') returning id") == [(1,)]
    one.ask("rollback to a")
    one.ask("insert into t (v) values ('f')")
    one.ask("commit")
    assert one.ask("select v from t order by id") == [("d",), ("f",)]
    ids = {other.ask("insert into t (v) values ('g') returning id")[0][0] for _ in range(3)}
    assert len({*ids, *(n for (n,) in one.ask("select id from t"))}) == 5
    one.ask("begin; truncate t restart identity; rollback")
    assert other.ask("insert into t (v) values ('h') returning id")[0][0] == max(ids) + 1


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_at_levels_of_one_moment(one: SqlClient, other: SqlClient, level: str) -> None:
    one.ask(f"begin isolation level {level}; select * from t")
    other.ask("select setval('t_id_seq', 300)")
    # Numbers are of now: no transaction sees an older sequence.
    assert one.ask("insert into t (v) values ('a') returning id") == [(301,)]
    one.ask("commit")
    assert other.ask("select id from t") == [(301,)]


def test_prepared_statements_and_copy(one: SqlClient) -> None:
    one.ask("create table u (id int generated always as identity, v text)")
    (statement,) = one.session.statements("insert into u (v) values ($1) returning id")
    prepared = one.session.prepare(statement, ())
    assert [one.run(prepared, ["x"]) for _ in range(3)] == [[(1,)], [(2,)], [(3,)]]
    one.session.end_batch()


# ------------------------------------------------------------------ while the schema changes


def test_numbers_go_on_while_their_columns_change(
    database: DevDatabase, one: SqlClient, other: SqlClient
) -> None:
    """Writers in SQL and without it, of every version on the way: nobody is refused."""
    one.ask(
        "create table u (k serial primary key, id serial,"
        " n bigint generated always as identity, v text)"
    )
    begun, ended, failed = Event(), Event(), list[BaseException]()

    def write() -> None:
        try:
            while not ended.is_set():
                other.ask("insert into u (v) values ('sql')")
                asked = database.ask({"table": "u", "op": "insert", "values": {"v": "asked"}})
                assert asked.outcome.lsn, asked
                begun.set()
        except BaseException as error:  # noqa: BLE001 - the test tells
            failed.append(error)
            begun.set()

    writer = Thread(target=write)
    writer.start()
    try:
        assert begun.wait(30)
        one.ask("alter table u alter id type bigint")
        shown = "select count(*) > 0, count(*) = count(distinct id) from u"
        assert one.ask(shown) == [(1, 1)]
        one.ask("alter table u drop column id")
        one.ask("alter table u add column o bigserial, add p int generated always as identity")
        one.ask("alter table u rename n to m")
        one.ask("alter table u drop constraint u_pkey, add primary key (m)")
    finally:
        ended.set()
        writer.join()
    assert not failed
    same = ", ".join(f"count(distinct {column}) = count(*)" for column in "kmop")
    assert one.ask(f"select {same} from u") == [(1, 1, 1, 1)]
    named = "select sequencename from pg_sequences where sequencename ~ '^u' order by 1"
    assert one.ask(named) == [("u_k_seq",), ("u_n_seq",), ("u_o_seq",), ("u_p_seq",)]
    one.ask("drop table u")
    assert one.ask("select count(*) from pg_sequences where sequencename ~ '^u'") == [(0,)]


def test_a_column_that_numbers_itself_comes_to_a_table_with_rows(
    one: SqlClient, other: SqlClient
) -> None:
    one.ask("create table u (k int primary key, v text)")
    one.ask("insert into u select n, 'old' from generate_series(1, 500) as g (n)")
    one.ask("alter table u add id serial, add n smallint generated always as identity (start 11)")
    counted = "select count(*), count(distinct {0}), min({0}), max({0}) from u"
    assert one.ask(counted.format("id")) == [(500, 500, 1, 500)]
    assert one.ask(counted.format("n")) == [(500, 500, 11, 510)]
    assert one.ask("insert into u (k) values (501) returning id, n") == [(501, 511)]
    (drawn,) = other.ask("insert into u (k) values (502) returning id, n")
    assert drawn > (501, 511)
    assert one.code("update u set n = 1 where k = 1") == "428C9"
    assert one.ask("select pg_get_serial_sequence('u', 'id')") == [("public.u_id_seq",)]
    assert one.ask("select last_value >= 501, is_called from u_id_seq") == [(1, 1)]
    assert one.code("drop sequence u_id_seq") == "2BP01"
    one.ask("alter table u drop id")
    named = "select sequencename from pg_sequences where sequencename ~ '^u' order by 1"
    assert one.ask(named) == [("u_n_seq",)]
    one.ask("drop table u")
    assert one.ask(named) == []


def test_it_comes_to_an_empty_table_and_shows_where_it_begins(one: SqlClient) -> None:
    one.ask("create table u (k int primary key); alter table u add id bigserial unique")
    assert one.ask("select last_value, is_called from u_id_seq") == [(1, 0)]
    assert one.ask("insert into u values (5) returning id") == [(1,)]


def test_every_row_draws_from_the_sequence_that_a_new_column_names(one: SqlClient) -> None:
    one.ask("create sequence s start 7; create table u (k int primary key)")
    one.ask("insert into u values (1), (2), (3)")
    one.ask("alter table u add n int default nextval('s')")
    assert one.ask("select count(*), count(distinct n), min(n), max(n) from u") == [(3, 3, 7, 9)]
    assert one.ask("update u set n = null where k = 1 returning n") == [(None,)]
    assert one.ask("insert into u (k) values (4) returning n") == [(10,)]
    assert one.code("drop sequence s") == "2BP01"


def test_too_few_numbers_for_the_rows_there_are(database: DevDatabase, one: SqlClient) -> None:
    one.ask("create table u (k int primary key)")
    one.ask("insert into u select n from generate_series(1, 9) as g (n)")
    assert one.code("alter table u add id int generated always as identity (maxvalue 5)") == "2200H"
    job = max(one.node.jobs().values(), key=lambda job: job.job_id)
    assert "column id" in job.error or "'id'" in job.error, job.error
    assert len(job.findings) == 4, job.findings
    assert one.ask("select count(*) from pg_sequences where sequencename ~ '^u'") == [(0,)]
    one.ask("alter table u add id int generated always as identity (maxvalue 9)")
    assert one.ask("select min(id), max(id) from u") == [(1, 9)]
    assert one.code("insert into u values (10)") == "2200H"


def test_it_comes_to_a_table_of_the_same_block(one: SqlClient) -> None:
    one.ask("begin; create table u (k int primary key); alter table u add id serial")
    assert one.ask("insert into u values (7) returning id") == [(1,)]
    one.ask("commit")
    assert one.ask("insert into u values (8) returning id > 1") == [(1,)]
    assert one.ask("select pg_get_serial_sequence('u', 'id')") == [("public.u_id_seq",)]


# ------------------------------------------------------------------ the catalog


def test_the_catalog_shows_sequences(one: SqlClient) -> None:
    one.ask("create table u (a bigint generated always as identity (start 7), b int)")
    kinds = one.ask(
        "select relname, relkind from pg_class where relnamespace = 2200 and relkind <> 'i'"
        " order by relname"
    )
    assert kinds == [("t", "r"), ("t_id_seq", "S"), ("u", "r"), ("u_a_seq", "S")]
    assert one.ask(
        "select seqstart, seqincrement, seqmax, seqcycle from pg_sequence"
        " where seqrelid = 'u_a_seq'::regclass"
    ) == [(7, 1, 2**63 - 1, 0)]
    one.ask("select nextval('u_a_seq')")
    found = one.ask("select start_value, last_value is not null from pg_sequences where"
                    " sequencename = 'u_a_seq'")  # fmt: skip
    assert found == [(7, 1)]
    assert one.ask(
        "select column_name, column_default, is_identity, identity_generation, identity_start"
        " from information_schema.columns where table_name in ('t', 'u') order by table_name,"
        " ordinal_position"
    ) == [
        ("id", "nextval('t_id_seq'::regclass)", "NO", None, None),
        ("v", None, "NO", None, None),
        ("a", None, "YES", "ALWAYS", "7"),
        ("b", None, "NO", None, None),
    ]
    assert one.ask("select sequence_name from information_schema.sequences") == [("t_id_seq",)]
    assert one.ask(
        "select d.deptype, a.attname from pg_depend d join pg_attribute a"
        " on a.attrelid = d.refobjid and a.attnum = d.refobjsubid"
        " where d.objid = 't_id_seq'::regclass"
    ) == [("a", "id")]
    assert one.ask("select attname, attidentity, atthasdef from pg_attribute"
                   " where attrelid = 'u'::regclass") == [("a", "a", 0), ("b", "", 0)]  # fmt: skip
    tables = one.ask("select table_name from information_schema.tables where table_schema='public'")
    assert sorted(tables) == [("t",), ("u",)]


# ------------------------------------------------------------------ identity, later


def test_a_column_becomes_an_identity_column_and_stops_being_one(
    one: SqlClient, other: SqlClient
) -> None:
    one.ask("create table u (k int not null, v text); insert into u values (1, 'a'), (2, 'b')")
    one.ask("alter table u alter k add generated always as identity (start 3)")
    assert one.ask("insert into u (v) values ('c') returning k") == [(3,)]
    assert one.code("insert into u (k) values (9)") == "428C9"
    assert one.ask("select pg_get_serial_sequence('u', 'k')") == [("public.u_k_seq",)]
    other.ask("alter table u alter k set generated by default")
    assert one.ask("insert into u (k) values (9) returning k") == [(9,)]
    one.ask("alter table u alter k restart with 20")
    assert one.ask("insert into u (v) values ('d') returning k") == [(20,)]
    assert one.code("alter table u alter k restart with 0") == "22023"
    one.ask("alter table u alter k restart")
    assert one.ask("insert into u (v) values ('e') returning k") == [(3,)]
    one.ask("alter table u alter k drop identity")
    assert one.code("insert into u (v) values ('f')") == "23502"
    assert one.code("select nextval('u_k_seq')") == "42P01"
    one.ask("alter table u alter column k drop identity if exists")
    one.ask("alter table u alter k add generated by default as identity, add n int")
    assert one.ask("insert into u (v) values ('g') returning k") == [(1,)]


@pytest.mark.parametrize(
    ("action", "code"),
    [
        ("alter id add generated always as identity", "55000"),
        ("alter v add generated always as identity", "22023"),
        ("alter n add generated always as identity", "55000"),
        ("alter no add generated always as identity", "42703"),
        ("alter id set generated always", "55000"),
        ("alter id restart", "55000"),
        ("alter id drop identity", "55000"),
        ("alter id drop identity if exists", "00000"),
        ("alter k add generated always as identity", "55000"),
        ("alter k set generated always", "00000"),
        ("alter k set start 5", "00000"),
        ("alter k set start 5 start 6", "42601"),
        ("alter k set minvalue 7", "22023"),
        ("alter k restart, alter k drop not null", "0A000"),
        ("alter k add int", "42601"),
        ("alter k drop not null", "42601"),
    ],
)
def test_identities_that_there_are_not(one: SqlClient, action: str, code: str) -> None:
    one.ask("create table u (id serial, n int, v text, k int generated always as identity)")
    assert one.code(f"alter table u {action}") == code


def test_an_identity_whose_sequence_others_draw_from_stays(one: SqlClient) -> None:
    one.ask("create table u (k int generated always as identity)")
    one.ask("alter table t add w int default nextval('u_k_seq')")
    assert one.code("alter table u alter k drop identity") == "2BP01"
    one.ask("alter table t drop w; alter table u alter k drop identity")


def test_lastval_of_a_sequence_that_the_block_drops(one: SqlClient) -> None:
    """As in PostgreSQL; what is taken back is there again."""
    one.ask("create sequence gone; create table with_own (id serial); select nextval('gone')")
    one.ask("begin; savepoint s; drop sequence gone")
    assert one.code("select lastval()") == "55000"
    one.ask("rollback to s")
    assert one.ask("select lastval()") == [(1,)]
    (number,) = one.ask("insert into with_own default values returning id")
    one.ask("drop table with_own")
    assert one.code("select lastval()") == "55000"
    one.ask("rollback")
    assert one.ask("select lastval()") == [number]
    one.ask("drop sequence gone; drop table with_own")
