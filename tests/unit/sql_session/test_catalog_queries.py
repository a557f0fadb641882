"""Goal: clients ask the system catalog in SQL, and are told of the tables that their snapshot has.

Method: sessions on a replicant of a whole database in this process.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from leasehold.dev.database import DevDatabase
from leasehold.pgwire.session import Status
from leasehold.values.types import Type
from tests.support.sql.described_tables import DDL
from tests.support.sql_session.sql_client import SqlClient, database_with


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevDatabase]:
    with database_with(
        tmp_path_factory,
        DDL,
    ) as made:
        yield made


# ------------------------------------------------------------ names


@pytest.mark.parametrize("name", ["pg_class", "pg_catalog.pg_class"])
def test_a_system_relation_is_joined_grouped_and_ordered_as_a_table_is(
    client: SqlClient, name: str
) -> None:
    text = (
        f"select n.nspname, count(*), min(c.relname) from {name} c"
        " join pg_namespace n on n.oid = c.relnamespace"
        " where c.relkind in ('r', 'p') and n.nspname = 'public' group by n.nspname"
    )
    assert client.ask(text) == [("public", 2, "flights")]


def test_columns_are_named_with_the_schema_or_without(client: SqlClient) -> None:
    text = (
        "select pg_catalog.pg_class.relname from pg_catalog.pg_class"
        " where pg_catalog.pg_class.relname = 'legs' and pg_class.relkind = 'r'"
    )
    assert client.ask(text) == [("legs",)]
    columns = "select column_name from information_schema.columns where table_name = 'legs'"
    assert client.ask(columns) == [("id",), ("flight",), ("note",)]


def test_pg_catalog_is_searched_first_and_public_is_still_there(client: SqlClient) -> None:
    client.ask("create table pg_am (id int primary key)")
    try:
        assert client.ask("select amname from pg_am order by 1") == [("btree",), ("heap",)]
        client.ask("insert into public.pg_am values (7)")
        assert client.ask("select public.pg_am.id from public.pg_am") == [(7,)]
        assert client.ask("with pg_am as (select 1 as a) select a from pg_am") == [(1,)]
        assert client.ask("with pg_am as (select 1 as a) select id from public.pg_am") == [(7,)]
        assert client.code("insert into pg_am values (8)") == "42501"
        assert client.ask("select 'pg_am'::regclass::oid") == [(2601,)]
        assert client.ask("select 'public.pg_am'::regclass::oid > 16384") == [(1,)]
    finally:
        client.ask("drop table pg_am")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("insert into pg_class (relname) values ('x')", "42501"),
        ("update pg_catalog.pg_class set relname = 'x'", "42501"),
        ("delete from information_schema.tables", "42501"),
        ("select * from pg_catalog.pg_unheard_of", "0A000"),
        ("select * from elsewhere.pg_class", "42P01"),
        ("select * from pg_unheard_of", "42P01"),
        ("select relnam from pg_class", "42703"),
        ("select * from public.pg_class", "42P01"),
    ],
)
def test_what_cannot_be_done_with_them_is_said(client: SqlClient, text: str, code: str) -> None:
    assert client.code(text) == code


# ------------------------------------------------------------ one set of descriptors


def test_a_block_of_one_moment_keeps_seeing_its_tables(
    database: DevDatabase, client: SqlClient
) -> None:
    named = "select relname from pg_class where relname = 'made_later'"
    client.ask("begin isolation level repeatable read")
    assert client.ask(named) == []
    other = SqlClient(database)
    try:
        other.ask("create table made_later (id int primary key)")
        assert other.ask(named) == [("made_later",)]
        assert client.ask(named) == []
        client.ask("commit")
        assert client.ask(named) == [("made_later",)]
    finally:
        other.ask("drop table made_later")
        other.session.close()
    assert client.ask(named) == []
    assert client.status() is Status.IDLE


def test_a_join_finds_by_number_and_not_by_going_through(client: SqlClient) -> None:
    text = "select count(*) from pg_class c join pg_attribute a on a.attrelid = c.oid"
    found = client.ask(f"explain {text}")
    assert [line for (line,) in found] == ["Seq Scan on pg_class", "Seq Scan on pg_attribute"]


# ------------------------------------------------------------ functions


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("format_type(1043, 9)", "character varying(5)"),
        ("format_type(23, null)", "integer"),
        ("format_type(null, 1)", None),
        ("pg_catalog.pg_get_indexdef('legs_pkey'::regclass, 1, true)", "id"),
        (
            "pg_get_indexdef('flights_gate'::regclass)",
            (
                "CREATE INDEX flights_gate ON public.flights USING btree (gate,"
                " lower((gate)::text)) INCLUDE (seats) WHERE (seats > 0)"
            ),
        ),
        ("pg_get_indexdef('legs'::regclass)", None),
        (
            "(select pg_get_constraintdef(oid) from pg_constraint where conname = 'positive')",
            "CHECK ((seats >= 0))",
        ),
        ("pg_table_is_visible('legs'::regclass)", 1),
        ("pg_table_is_visible('information_schema.columns'::regclass)", 0),
        ("pg_table_is_visible(99)", None),
        ("pg_get_userbyid(10)", "me"),
        ("current_schemas(true)::text", "{pg_catalog,public}"),
        ("current_schemas(false)::text", "{public}"),
        ("(select count(*) > 5 from pg_attribute where attrelid = 'leasehold.jobs'::regclass)", 1),
        ("pg_encoding_to_char(6)", "UTF8"),
        ("obj_description('legs'::regclass, 'pg_class')", None),
        ("to_regclass('nobody')", None),
        ("to_regclass('legs')", "legs"),
        ("to_regtype('nobody')", None),
        ("has_table_privilege('legs', 'select, insert')", 1),
        ("has_table_privilege('me', 'legs'::regclass, 'SELECT WITH GRANT OPTION')", 1),
        ("has_schema_privilege('public', 'usage')", 1),
        ("pg_size_pretty(10240::bigint)", "10 kB"),
        ("pg_size_pretty(-20000::numeric) || pg_size_pretty(1.5)", "-20 kB1.5 bytes"),
        ("pg_size_pretty('-inf'::numeric) || pg_size_pretty('nan'::numeric)", "-Infinity PBNaN PB"),
        ("pg_size_pretty(pg_table_size('legs'))", None),
        ("pg_get_expr('a > 1', 0)", "(a > 1)"),
        ("pg_get_expr('a > 1', 0, true)", "a > 1"),
        ("pg_get_expr('lower(a)', 0)", "lower(a)"),
        ("pg_get_expr('''x''::text', 0)", "'x'::text"),
        ("current_setting('nobody.s', true)", None),
        ("json_build_object('a', 1, 'b', null)", '{"a" : 1, "b" : null}'),
    ],
)
def test_functions_tell_of_the_catalog(client: SqlClient, expression: str, value: object) -> None:
    assert client.ask(f"select {expression}") == [(value,)]


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ("has_table_privilege('nobody', 'select')", "42P01"),
        ("has_table_privilege('nobody', 'legs', 'select')", "42704"),
        ("has_table_privilege('legs', 'dance')", "22023"),
        ("pg_table_size('nobody')", "42P01"),
        ("json_build_object('a')", "22023"),
        ("json_build_object(null, 1)", "22023"),
    ],
)
def test_functions_refuse_what_is_not_there(client: SqlClient, expression: str, code: str) -> None:
    assert client.code(f"select {expression}") == code


def test_a_setting_is_changed_by_a_query(client: SqlClient) -> None:
    assert client.ask("select set_config('application_name', 'a', false)") == [("a",)]
    assert client.ask("show application_name") == [("a",)]
    client.ask("begin")
    assert client.ask("select set_config('application_name', 'b', true)") == [("b",)]
    client.ask("rollback")
    assert client.ask("select current_setting('application_name')") == [("a",)]
    assert client.code("select set_config('nobody', 'b', true)") == "42704"
    assert client.code("select set_config('transaction_isolation', 'x', true)") == "0A000"


def test_columns_of_indexes_are_found_by_their_place(client: SqlClient) -> None:
    text = (
        "select c.relname, a.attname, k.ord from (select indexrelid, indrelid, unnest(indkey) as n,"
        " generate_subscripts(indkey, 1) as ord from pg_index) k"
        " join pg_attribute a on a.attrelid = k.indrelid and a.attnum = k.n"
        " join pg_class c on c.oid = k.indexrelid where c.relname = 'one_price' order by k.ord"
    )
    assert client.ask(text) == [("one_price", "price", 0), ("one_price", "gate", 1)]
    text = "select indkey[0], indoption::text from pg_index where indrelid = 'legs'::regclass"
    assert client.ask(text) == [(1, "0")], "what a foreign key needs is not shown"


@pytest.mark.parametrize(
    ("source", "rows"),
    [
        ("v(a), lateral (select a + 1, 'x' as c) w(b)", [(1, 2, "x"), (2, 3, "x")]),
        ("v(a) join lateral (select a * 2 as b) w on b > 2", [(2, 4)]),
        (
            "v(a), lateral (select array(select g from generate_series(1, a) g)::text) w",
            [(1, "{1}"), (2, "{1,2}")],
        ),
    ],
)
def test_a_lateral_query_of_expressions_computes_beside_each_row(
    client: SqlClient, source: str, rows: list[object]
) -> None:
    assert client.ask(f"select * from (values (1), (2)) {source}") == rows


def test_what_pgbench_asks_of_partitions(client: SqlClient) -> None:
    text = (
        "select o.n, p.partstrat, pg_catalog.count(i.inhparent) from pg_catalog.pg_class as c"
        " join pg_catalog.pg_namespace as n on (n.oid = c.relnamespace) cross join lateral"
        " (select pg_catalog.array_position(pg_catalog.current_schemas(true), n.nspname)) as o(n)"
        " left join pg_catalog.pg_partitioned_table as p on (p.partrelid = c.oid)"
        " left join pg_catalog.pg_inherits as i on (c.oid = i.inhparent)"
        " where c.relname = 'legs' and o.n is not null group by 1, 2 order by 1 asc limit 1"
    )
    assert client.ask(text) == [(2, None, 0)]


def test_an_aggregate_inside_a_query_of_a_recursive_term(client: SqlClient) -> None:
    text = (
        "with recursive w(n, m) as (select 1, 0::bigint union all select n + 1, (select count(*)"
        " from pg_am) from w where n < 3) select * from w"
    )
    assert client.ask(text) == [(1, 0), (2, 2), (3, 2)]


def test_a_parameter_of_a_registered_type_comes_as_its_name(client: SqlClient) -> None:
    session = client.session
    (statement,) = session.statements("select cast($1 as regclass)::oid = 1259")
    prepared = session.prepare(statement, ())
    assert prepared.parameters == (Type("text"),)
    assert client.run(prepared, ["pg_catalog.pg_class"]) == [(1,)]
    session.end_batch()


# ------------------------------------------------------------ clients

CLIENT_QUERIES: dict[str, list[str]] = json.loads(
    (Path(__file__).parents[1] / "sql" / "system_catalog" / "client_queries.json").read_text()
)


@pytest.mark.parametrize("name", CLIENT_QUERIES)
def test_what_clients_ask_when_they_look_at_tables_is_answered(
    client: SqlClient, name: str
) -> None:
    """As recorded; parameters are NULL."""
    for text in CLIENT_QUERIES[name]:
        if text.startswith(("CREATE", "DROP", "COMMIT", "ROLLBACK", "RELEASE")):
            continue  # what is looked at here is made elsewhere
        for statement in client.session.statements(text):
            prepared = client.session.prepare(statement, ())
            client.run(prepared, [None] * len(prepared.parameters))
    client.session.end_batch()
    client.ask("rollback")


# ------------------------------------------------------------ types


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("'flights'::regclass", "flights"),
        ("'public.flights'::regclass::text", "flights"),
        ("'FLIGHTS'::regclass", "flights"),
        ("'pg_class'::regclass::oid", 1259),
        ("1259::regclass", "pg_class"),
        ("'information_schema.columns'::regclass", "information_schema.columns"),
        ("99::regclass", "99"),
        ("0::regclass", "-"),
        ("23::regtype", "integer"),
        ("'character varying'::regtype::oid", 1043),
        ("'int4'::regtype", "integer"),
        ("(select name from pg_settings where lower(name) = 'timezone')", "TimeZone"),
        ("to_regtype('int4[]')::oid", 1007),
        ("'pg_catalog.numeric(8, 2)[]'::regtype", "numeric[]"),
        ("'timestamp(3) with time zone'::regtype", "timestamp with time zone"),
        ("'int'::regtype", "integer"),
        ("'char'::regtype::oid", 1042),
        ("'\"char\"'::regtype::oid", 18),
        ("'public'::regnamespace::oid", 2200),
        ("11::regnamespace", "pg_catalog"),
        ("10::regrole", "me"),
        ("'5'::oid", 5),
        ("(-1)::oid", 4294967295),
        ("4294967295::oid::int", -1),
        ("'r'::\"char\"", "r"),
        ("'3 1'::int2vector::text", "3 1"),
        ("('3 1'::int2vector)[0]", 3),
        ("array_to_string('3 1'::int2vector, ',')", "3,1"),
        ("array_upper('3 1'::int2vector, 1)", 1),
        ("1 = any('3 1'::int2vector)", 1),
        ("'3 1'::int2vector::int2[]::text", "{3,1}"),
        ("array(select generate_subscripts('3 1'::int2vector, 1))::text", "{0,1}"),
        ("'relname'::\"char\"", "r"),
        ("repeat('x', 70)::name", "x" * 63),
        ("'a'::name = 'a'::text", 1),
        ("'a'::\"char\" = 'a'::varchar", 1),
        ("'a' COLLATE \"C\" < 'b' COLLATE pg_catalog.default", 1),
        ("1 OPERATOR(pg_catalog.+) 2", 3),
    ],
)
def test_types_of_the_catalog(client: SqlClient, expression: str, value: object) -> None:
    assert client.ask(f"select {expression}") == [(value,)]


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ("'nobody'::regclass", "42P01"),
        ("'nobody'::regtype", "42704"),
        ("'nobody'::regnamespace", "3F000"),
        ("'nobody'::regrole", "42704"),
        ("'now'::regproc", "0A000"),
        ("'pg_catalog.lower(text)'::regprocedure", "0A000"),
        ("'nope'::regproc", "42883"),
        ("'='::regoper", "0A000"),
        ("'a b'::regclass", "22P02"),
        ("'x'::oid", "22P02"),
        ("'4294967296'::oid", "22003"),
        ("4294967296::oid", "22003"),
        ("'a' COLLATE \"de_DE\"", "0A000"),
        ('1 COLLATE "C"', "42804"),
    ],
)
def test_what_no_type_of_the_catalog_takes(client: SqlClient, expression: str, code: str) -> None:
    assert client.code(f"select {expression}") == code
