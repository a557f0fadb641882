"""DROP … CASCADE inside a transaction block takes the defaults of others along; the block sees its
tables without them, and nobody else does before it commits."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from leasehold.dev.database import DevDatabase
from leasehold.pgwire.session import Notice
from tests.support.sql_session.sql_client import SqlClient, client_of_tables
from tests.support.sql_session.writers import writing

DEFAULT = (
    "select column_default from information_schema.columns"
    " where table_name = '{}' and column_name = 'n'"
)


@pytest.fixture
def one(database: DevDatabase) -> Iterator[SqlClient]:
    with client_of_tables(
        database,
        "create sequence s; create table o (id serial primary key)",
        "create table u (id int primary key, n int default nextval('s'))",
        "create table v (id int primary key, n int default nextval('o_id_seq'),"
        " o int references o)",
        "insert into o values (default); insert into u values (1); insert into v values (1)",
        dropped_by="drop table if exists o, u, v, w cascade; drop sequence if exists s",
    ) as made:
        made.reports.clear()
        yield made


def told(one: SqlClient) -> list[str]:
    return [each.message for each in one.reports if isinstance(each, Notice)]


def default_of(client: SqlClient, table: str) -> object:
    ((found,),) = client.ask(DEFAULT.format(table))
    return found


def test_a_sequence_goes_with_defaults(one: SqlClient, database: DevDatabase) -> None:
    other = SqlClient(database, "r2")
    one.ask("begin; insert into u values (2); drop sequence s cascade")
    assert told(one) == ["drop cascades to default value for column n of table u"]
    assert default_of(one, "u") is None
    assert one.ask("insert into u values (3) returning n") == [(None,)]
    assert default_of(other, "u") == "nextval('s'::regclass)"
    ((drawn,),) = other.ask("insert into u values (4) returning n")
    assert drawn is not None
    one.ask("savepoint a")
    assert one.code("select nextval('s')") == "42P01"
    one.ask("rollback to a; alter table u alter n set default 7; insert into u values (5); commit")
    rows = [(1, 1), (2, 2), (3, None), (4, drawn), (5, 7)]
    assert one.ask("select id, n from u order by id") == rows
    assert other.code("select nextval('s')") == "42P01"
    other.session.close()


def test_a_table_goes_with_defaults_and_foreign_keys(one: SqlClient) -> None:
    one.ask("begin; drop table o cascade")
    assert sorted(told(one)) == [
        "drop cascades to constraint v_o_fkey on table v",
        "drop cascades to default value for column n of table v",
    ]
    assert one.ask("insert into v values (2) returning n, o") == [(None, None)]
    one.ask("alter table v add column w int default 3; commit")
    assert one.ask("select id, n, w from v order by id") == [(1, 2, 3), (2, None, 3)]
    assert one.ask("insert into v values (3, default, 9) returning *") == [(3, None, 9, 3)]
    assert one.code("select nextval('o_id_seq')") == "42P01"


def test_a_rollback_brings_all_of_it_back(one: SqlClient) -> None:
    one.ask("begin; savepoint a; drop sequence s cascade; drop table o cascade; rollback to a")
    assert one.ask("insert into u values (2) returning n") == [(2,)]
    assert one.ask("insert into v values (2) returning n") == [(3,)]
    one.ask("commit")
    assert default_of(one, "v") == "nextval('o_id_seq'::regclass)"


def test_a_default_is_dropped_then_its_sequence(one: SqlClient) -> None:
    one.ask("begin; alter table u alter n drop default; drop sequence s")
    one.ask("alter table v alter n set default 4; drop table o cascade")
    one.ask("insert into u values (2); insert into v values (2); commit")
    assert one.ask("select n from u order by id") == [(1,), (None,)]
    assert one.ask("select n from v order by id") == [(2,), (4,)]
    assert one.code("select nextval('s')") == one.code("select nextval('o_id_seq')") == "42P01"


def test_tables_of_the_block_lose_theirs(one: SqlClient) -> None:
    one.ask("begin; create table w (id int primary key, n int default nextval('s'))")
    one.ask("insert into w values (1); drop sequence s cascade; insert into w values (2); commit")
    assert one.ask("select n from w order by id") == [(2,), (None,)]
    one.ask("create sequence s; drop table w")
    one.ask("begin; create table w (id int primary key, n int default nextval('s'))")
    one.ask("create sequence r; alter table u alter n set default nextval('r')")
    one.ask("drop sequence s cascade; insert into w values (1); insert into u values (2)")
    one.ask("drop sequence r cascade; insert into u values (3); commit")
    assert one.ask("select n from w") == [(None,)]
    assert one.ask("select n from u where id > 1 order by id") == [(1,), (None,)]


def test_a_table_that_has_lost_its_default_goes_as_well(one: SqlClient) -> None:
    one.ask("begin; drop sequence s cascade; drop table u; commit")
    assert one.code("select * from u") == one.code("select nextval('s')") == "42P01"
    one.ask("begin; drop table o cascade; alter table v add column w int; drop table v; commit")
    assert one.code("select * from v") == one.code("select * from o") == "42P01"


def test_a_name_that_is_drawn_from_is_not_given_anew(one: SqlClient) -> None:
    one.ask("begin; drop table o cascade; savepoint a")
    assert one.code("create table o (id serial primary key)") == "0A000"
    one.ask("rollback to a; create table o (id int primary key); commit")
    one.ask("create sequence o_id_seq")


def test_the_sequence_of_an_identity_column_stays(one: SqlClient) -> None:
    one.ask("create table w (n int generated always as identity)")
    assert one.code("begin; drop sequence w_n_seq cascade") == "2BP01"
    one.ask("rollback")
    assert one.code("begin; drop sequence s") == "2BP01"
    one.ask("rollback")


def test_writers_draw_until_they_know(one: SqlClient, database: DevDatabase) -> None:
    """⚠ A sequence outlasts the version that draws from it, or a writer would find none."""
    made = [0, 0]

    def insert(place: int, client: SqlClient) -> None:
        key = 1_000 * (place + 1) + made[place]
        client.ask(f"begin; insert into u values ({key}); insert into v values ({key}); commit")
        made[place] += 1

    with writing(database, [partial(insert, 0), partial(insert, 1)]):
        one.ask("begin; drop sequence s cascade; drop table o cascade; commit")
    assert all(made), "writers went on"
    drawn, rows = one.ask("select count(n), count(*) from u")[0]
    assert 1 <= drawn <= rows == sum(made) + 1
    assert one.ask("select count(distinct n) from u") == [(drawn,)]
    assert one.ask("insert into u values (9) returning n") == [(None,)]
