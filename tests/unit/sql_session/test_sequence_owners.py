"""Goal: a sequence goes with who owns it and stays for who draws from it, as PostgreSQL's do, on
every node.

Method: sessions of a database in this process. What PostgreSQL answers to the same statements is
compared in tests/integration/postgres_compat/test_sequences_postgres.py.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from leasehold.catalog.sequence_ownership import OWNED_MAX
from leasehold.dev.database import DevDatabase
from leasehold.pgwire.session import Notice
from tests.support.sql_session.sql_client import SqlClient, client_of_tables


@pytest.fixture
def one(database: DevDatabase) -> Iterator[SqlClient]:
    with client_of_tables(
        database,
        "create table t (id serial primary key, v text)",
        dropped_by="drop table if exists t, u; drop sequence if exists s",
    ) as made:
        yield made


def test_a_sequence_goes_with_the_defaults_that_draw_from_it(one: SqlClient) -> None:
    one.ask("create sequence s; create table u (k int default nextval('s'), l serial, v text)")
    one.ask("alter table t add w bigint default nextval('s')")
    one.ask("insert into u (v) values ('a'); insert into t (v) values ('b')")
    assert one.code("drop sequence s") == one.code("drop sequence s restrict") == "2BP01"
    one.ask("drop sequence s cascade")
    assert one.ask("insert into u (v) values ('c') returning k, l") == [(None, 2)]
    assert one.ask("insert into t (v) values ('c') returning w") == [(None,)]
    assert one.ask("select count(k) from u") == [(1,)]
    assert one.code("select nextval('s')") == "42P01"
    # Of a column's own: it is NOT NULL as before, and has no default.
    one.ask("drop sequence u_l_seq cascade")
    assert one.code("insert into u (v) values ('d')") == "23502"
    assert one.ask("select pg_get_serial_sequence('u', 'l')") == [(None,)]
    one.ask("create sequence u_l_seq; drop table u; drop sequence u_l_seq")
    one.ask("create table u (k int generated always as identity)")
    assert one.code("drop sequence u_k_seq cascade") == "2BP01"


def test_a_table_goes_with_the_defaults_that_draw_from_its_sequences(one: SqlClient) -> None:
    one.ask(
        "create table u (k int default nextval('t_id_seq'), t int references t, v text);"
        " create sequence s"
    )
    assert one.code("drop table t") == "2BP01"
    one.ask("insert into u (v) values ('a')")
    one.reports.clear()
    one.ask("drop table t cascade")
    notices = [each.message for each in one.reports if isinstance(each, Notice)]
    assert notices == [
        "drop cascades to constraint u_t_fkey on table u",
        "drop cascades to default value for column k of table u",
    ]
    assert one.ask("insert into u values (default, 9, 'b') returning k") == [(None,)]
    assert one.ask("select k from u order by k") == [(1,), (None,)]
    assert one.code("select nextval('t_id_seq')") == "42P01"
    one.ask("create table t (id serial primary key, v text)")
    assert one.ask("insert into t (v) values ('c') returning id") == [(1,)]


def test_a_column_goes_with_the_defaults_that_draw_from_its_sequence(one: SqlClient) -> None:
    one.ask("alter table t add n serial; alter table t alter v type int using 0")
    one.ask("create table u (k int default nextval('t_n_seq'), v text); create sequence s")
    one.ask("alter table t alter v set default nextval('t_n_seq')")
    assert one.code("alter table t drop n") == "2BP01"
    assert one.code("alter table t drop n cascade, drop id") == "42P16"
    one.ask("alter table t drop n cascade")
    assert one.ask("insert into u (v) values ('a') returning k") == [(None,)]
    assert one.ask("insert into t default values returning id, v") == [(1, None)]
    assert one.code("select nextval('t_n_seq')") == "42P01"


def test_who_owns_a_sequence(one: SqlClient) -> None:
    """As pg_dump says what was a serial column."""
    one.ask("create table u (k int not null, v text); create sequence s as integer")
    one.ask("alter sequence s owned by u.k")
    assert one.ask("select pg_get_serial_sequence('u', 'k')") == [("public.s",)]
    one.ask("alter table only u alter column k set default nextval('public.s'::regclass)")
    assert one.ask("insert into u (v) values ('a'), ('b') returning k") == [(1,), (2,)]
    assert one.ask("select pg_get_serial_sequence('u', 'k')") == [("public.s",)]
    assert one.code("drop sequence s") == "2BP01"
    one.ask("alter sequence s owned by t.v")
    assert one.ask("select pg_get_serial_sequence('t', 'v')") == [("public.s",)]
    assert one.ask("select pg_get_serial_sequence('u', 'k')") == [(None,)]
    assert one.code("alter table t drop v") == "2BP01", "u draws from it"
    one.ask("alter sequence s owned by none; drop table u; select nextval('s')")
    one.ask("create table u (k int); alter sequence s owned by u.k; drop table u")
    assert one.code("select nextval('s')") == "42P01", "it went with its owner"
    one.ask("create table u (k int); create sequence s start 5 owned by u.k")
    one.ask("alter table u drop k, add l int")
    assert one.code("select nextval('s')") == "42P01"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("alter sequence s owned by no.k", "42P01"),
        ("alter sequence s owned by t.no", "42703"),
        ("alter sequence s owned by s.last_value", "42809"),
        ("alter sequence s owned by t", "42601"),
        ("alter sequence no owned by t.v", "42P01"),
        ("alter sequence if exists no owned by t.v", "00000"),
        ("alter sequence s owned by none", "00000"),
        ("alter sequence u_k_seq owned by t.v", "0A000"),
        ("alter sequence u_k_seq owned by none", "0A000"),
        ("create sequence x owned by t.no", "42703"),
        ("alter table t alter v set default nextval('s')", "0A000"),
        ("alter table t alter id set default nextval('no')", "42P01"),
        ("alter table t alter id set default nextval('t')", "42809"),
        ("alter table u alter k set default nextval('s')", "42601"),
        # With a column that the same statement drops goes what it owns.
        ("alter table w drop k, alter n set default nextval('w_k_seq')", "42P01"),
        ("alter table w drop k, add c int default nextval('w_k_seq')", "42P01"),
        ("alter table u alter k drop identity, add c int default nextval('u_k_seq')", "42P01"),
    ],
)
def test_owners_that_there_are_not(one: SqlClient, text: str, code: str) -> None:
    one.ask("create sequence s; create table u (k int generated always as identity)")
    one.ask("create table w (k serial, n int)")
    assert one.code(text) == code
    assert one.code("select nextval('x')") == "42P01"
    one.ask("drop table w")


def test_a_column_draws_from_one_and_owns_others(one: SqlClient) -> None:
    """As in PostgreSQL: what it draws from and what goes with it need not be the same."""
    one.ask("create table u (k serial, v text); create sequence s start 50; create sequence r")
    one.ask("alter sequence s owned by u.k; alter sequence r owned by u.k")
    assert one.ask("insert into u (v) values ('a') returning k") == [(1,)]
    assert one.ask("select pg_get_serial_sequence('u', 'k')") == [("public.u_k_seq",)]
    one.ask("alter table u alter k set default nextval('s')")
    assert one.ask("insert into u (v) values ('b') returning k") == [(50,)]
    one.ask("alter sequence u_k_seq owned by none")
    assert one.ask("select pg_get_serial_sequence('u', 'k')") == [("public.s",)]
    one.ask("drop sequence s cascade")
    assert one.code("insert into u (v) values ('c')") == "23502", "it is NOT NULL, as it was"
    one.ask("alter table u alter k add generated always as identity (start 7)")
    assert one.ask("insert into u (v) values ('c') returning k") == [(7,)]
    shown = (
        "select c.relname, d.deptype from pg_depend d join pg_class c on c.oid = d.objid"
        " where d.refobjid = 'u'::regclass and c.relkind = 'S' order by 1"
    )
    assert one.ask(shown) == [("r", "a"), ("u_k_seq1", "i")]
    one.ask("alter table u alter k drop identity; select nextval('r')")
    assert one.code("select nextval('u_k_seq1')") == "42P01"
    one.ask("drop table u; select nextval('u_k_seq'); drop sequence u_k_seq")
    assert one.code("select nextval('r')") == "42P01"


def test_truncate_restarts_all_that_a_column_owns(one: SqlClient) -> None:
    one.ask("create table u (k serial); create sequence s owned by u.k; select nextval('s')")
    one.ask("insert into u values (default), (default); truncate u restart identity")
    assert one.ask("insert into u values (default) returning k") == [(1,)]
    assert one.ask("select nextval('s')") == [(1,)]


def test_create_owned_by_is_explained_with_its_owner(one: SqlClient) -> None:
    assert one.code("explain (ddl) create sequence s owned by no.k") == "42P01"
    assert one.code("explain (ddl) create sequence s owned by t.no") == "42703"
    told = [line for (line,) in one.ask("explain (ddl) create sequence s owned by t.v")]
    assert "sequence s" in told[0]
    assert any("column v → has its sequence for its own" in line for line in told), told
    assert one.code("select nextval('s')") == "42P01"


@pytest.mark.parametrize("begin", ["", "begin; "])
def test_truncate_where_what_a_column_owned_has_gone_by_itself(one: SqlClient, begin: str) -> None:
    one.ask("create table u (k serial, n serial); insert into u values (default, 5)")
    one.ask("alter table u alter n drop default; drop sequence u_n_seq")
    one.ask(f"{begin}truncate u restart identity; insert into u values (default, 5)")
    assert one.ask("commit; select * from u" if begin else "select * from u") == [(1, 5)]


def test_one_column_owns_so_many_sequences_and_no_more(one: SqlClient) -> None:
    one.ask("create table u (k int)")
    for number in range(OWNED_MAX):
        one.ask(f"create sequence s{number} owned by u.k")
    assert one.code("create sequence s owned by u.k") == "22003"
    one.ask("drop sequence s3; create sequence s owned by u.k; drop table u")
    assert one.code("select nextval('s')") == "42P01"


def test_a_block_takes_away_what_it_has_made(one: SqlClient) -> None:
    one.ask("begin; create table u (k int generated always as identity, n serial)")
    one.ask("alter table u alter k drop identity; drop sequence u_n_seq cascade")
    one.ask("insert into u values (7, 8); commit")
    assert one.ask("select * from u") == [(7, 8)]
    assert one.code("select nextval('u_k_seq')") == "42P01"
    assert one.code("select nextval('u_n_seq')") == "42P01"


def test_a_table_and_the_owner_of_a_sequence_in_one_block(one: SqlClient) -> None:
    one.ask("begin; create table u (k int); create sequence s owned by u.k")
    one.ask("alter table u alter k set default nextval('s')")
    assert one.ask("insert into u default values returning k") == [(1,)]
    one.ask("commit; drop table u")
    assert one.code("select nextval('s')") == "42P01"
