"""Goal: a CHECK is shown as PostgreSQL shows it, so that who compares schemas finds equal what is
equal; over columns that have got another type, too.

Method: the same conditions in both, and both forms of their text.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.support.postgres.both_servers import Connection
from tests.support.postgres.client_server import Server
from tests.support.postgres.stories import drop_tables

pytestmark = pytest.mark.integration

TABLE: Final = """
    create table t (id int primary key, s smallint, a int, b bigint, n numeric(9, 2), r real,
        f double precision, x text, v varchar(9), w varchar, c char(3), d date, ts timestamp,
        u uuid, o boolean, "A b" int, g text[], h int[], vs varchar[], j jsonb, i interval)
"""
CONDITIONS: Final = (
    *("a > 0", "(b > 0)", "n > 0", "n >= 0.5 and n < 100", "f > 0", "r > 0.5", "r <> f", "s < b"),
    *("a > -5", "n > -1.5", "f > -2.5", "b > 5000000000", "f <> 1e3", "n = 1.50", "a > +3"),
    *(
        "x <> 'no'",
        "v <> 'it''s'",
        "v = w",
        "v = x",
        "x <> ''",
        "c <> 'x'",
        "c = 'ab'::bpchar",
        "c in ('ab', 'c')",
        "c = ANY (ARRAY['ab'::bpchar, 'c'::bpchar])",
        "v < w and w < 'z'",
    ),
    *("length(v) < 6 and v <> 'no'", "lower(v) = v", "upper(x) <> x", "btrim(x, 'a') <> 'b'"),
    *("char_length(x) > 2", "octet_length(w) < 9", "coalesce(a, 0) > 0", "coalesce(x, v) > 'a'"),
    *("a between 1 and 5", "a not between 1 and 5", "n between 0 and 99.5", "d between d and d"),
    *("a in (1, 2)", "b in (1, 2)", "s in (1, 2)", "n in (1, 2.5)", "f in (1, 2)", "a in (7)"),
    *("x in ('a', 'b')", "v not in ('a', 'b')", "d in ('2020-01-01', '2021-01-01')", "x in ('a')"),
    *("a not in (-1, 3) and b > 0", "a in (1, 2) or o", "not (a in (1, 2))", "n not in (5)"),
    *("x like 'a%'", "v not like 'a%'", "v ilike 'b_'", "x ~ '^a'", "v !~* 'a'", "x not ilike 'q'"),
    *(
        "d > '2020-1-2'",
        "ts > '2020-01-01'",
        "d < ts",
        "u <> '00000000-0000-0000-0000-00000000000A'",
    ),
    *("o", "not o", "o is true", "o is not false", "(a > 0) is unknown", "o = true", "o <> 'f'"),
    *("a is null or b is not null", "a + 1 is not null", "(a > 0) is not null", '"A b" > 0'),
    *("a + b > 5", "(a + 1) * 2 > b - 1 - a", "a - (b - 1) > 0", "a - b - 1 > 0", "a * b / 2 > 1"),
    *(
        "a * (b / 2) > 1",
        "a % 2 = 0",
        "- a < 3",
        "-(a + b) < 3",
        "n * 2 > f",
        "n + 0.5 > a",
        "s * a > b",
    ),
    *(
        "a is distinct from 3",
        "a is not distinct from 3",
        "x is distinct from 'a'",
        "n is distinct from 1",
    ),
    *("a::bigint > 5", "x::int > 5", "cast(a as text) <> '7'", "(a + b)::text <> x", "n::int > a"),
    *(
        "a::text || x <> 'b'",
        "x || 'a' <> v",
        "v || w || x <> 'abc'",
        "'5' < a",
        "n > '7'",
        "5::bigint < b",
    ),
    *(
        "not (a > 0 and b > 0) or s > 1",
        "(a > 0 or b > 0) and s > 1",
        "a > 0 and (b > 0 and s > 1)",
    ),
    *("a > 0 and b > 0 and s > 1 or o", "not not o", "not (a > 0 or o) and o", "(a = 1) = o"),
    *("'x' = any (g)", "a = any (h)", "5 <> all (h)", "x = any (g)", "v = any (g)", "a < all (h)"),
    *("'x' = any (vs)", "b = any (h)", "a = any (array[s, b])", "x = any (array[v, 'b'])"),
    *("g[1] = 'a'", "h[a] > 1", "array[a, 1] = h", "g <> array[x, 'b']"),
    *("case when a > 0 then b > 1 else o end", "case when o then a else 0 end > 1"),
    *("case when x = 'a' then 'b' when a > 1 then v end = 'c'", "nullif(a, 0) > 1"),
    *("greatest(a, 3) > 1", "least(x, 'b') <> 'a'", "nullif(x, '') is not null", "abs(a) > 1"),
    *("j ->> 'k' = 'a'", "(j -> 'a' ->> 'b') is not null", "j -> 0 is null", "j #>> '{a,b}' = 'c'"),
    *("j ? 'a'", """j @> '{"a": 1}'""", "jsonb_typeof(j) = 'object'", "j = '[1]'"),
    *("left(x, 2) = 'ab'", "substr(x, 1, 2) <> v", "round(n, 1) > 2", "md5(x) <> 'a'"),
    *("replace(v, 'a', 'b') <> ''", "split_part(x, '-', 1) = 'a'", "date_trunc('day', ts) = ts"),
    *("ts + '1 day' > ts", "ts > d", "i > '1 hour'", "ts - i < ts", "starts_with(x, 'a')"),
    *(
        "x is not null",
        "coalesce(v, x) > x",
        "a > case when o then 1 else 2 end",
        "coalesce(o, false)",
        "mod(a, 2) = 0",
        "floor(n) = n",
    ),
)
AT_ONCE: Final = 60
"""A table has at most so many CHECKs, and four more."""
SHOWN: Final = (
    "select conname, pg_get_constraintdef(oid), pg_get_constraintdef(oid, true) from pg_constraint"
    " where conrelid = 't'::regclass and contype = 'c' order by 1"
)


def shown(connection: Connection, *texts: str) -> list[Any]:
    for text in texts:
        connection.execute(text.encode())
    return connection.execute(SHOWN).fetchall()


def test_conditions_are_shown_in_its_form(servers: tuple[Server, Server]) -> None:
    unlike: list[str] = []
    for begin in range(0, len(CONDITIONS), AT_ONCE):
        asked = CONDITIONS[begin : begin + AT_ONCE]
        added = ", ".join(
            f"add constraint c{number:03} check ({said})" for number, said in enumerate(asked)
        )
        found = []
        for server in servers:
            with server.psycopg(autocommit=True) as connection:
                try:
                    found.append(shown(connection, TABLE, f"alter table t {added}"))
                finally:
                    drop_tables(connection)
        unlike += (
            f"{said}\n  ours   {one[1:]}\n  theirs {other[1:]}"
            for said, one, other in zip(asked, *found, strict=True)
            if one != other
        )
    assert not unlike, "\n".join(unlike)


EXPRESSIONS: Final = (
    *("lower(x)", "lower(v)", "(a + 1)", "(a + b * 2)", "(x || 'a')", "(v || x)", "(j ->> 'k')"),
    *("upper(btrim(x))", "coalesce(x, v)", "(a::text)", "(x::int)", "(g[1])", "abs(a)", "(-a)"),
    *("(a > 0)", "(n * 1.5)", "((j -> 'a') ->> 'b')", "date_trunc('day', ts)", "md5(lower(v))"),
    *("(case when a > 0 then x else v end)", "nullif(x, '')", "greatest(a, s)", "left(x, 3)"),
    *("(d + 1)", "(ts::date)", "((a))", "length(x)", '("A b" + 1)', "(a is null)"),
)
PREDICATES: Final = (
    *("a > 0", "x is not null", "o", "not o", "a > 0 and x <> 'b'", "v = 'a'", "x in ('a', 'b')"),
    *(
        "lower(v) = 'a'",
        "'a' = any (g)",
        "(j ->> 'k') = 'a'",
        "n between 1 and 2.5",
        "d > '2020-01-01'",
    ),
)
INDEXES_SHOWN: Final = (
    "select c.relname, pg_get_indexdef(c.oid), pg_get_indexdef(c.oid, 0, true),"
    " pg_get_indexdef(c.oid, 1, false), pg_get_indexdef(c.oid, 1, true),"
    " pg_get_expr(i.indexprs, i.indrelid), pg_get_expr(i.indpred, i.indrelid),"
    " pg_get_expr(i.indexprs, i.indrelid, true), pg_get_expr(i.indpred, i.indrelid, true)"
    " from pg_index i join pg_class c on c.oid = i.indexrelid where c.relname like 'shown%'"
)
GENERATED_SHOWN: Final = (
    "select a.attname, pg_get_expr(d.adbin, d.adrelid), pg_get_expr(d.adbin, d.adrelid, true),"
    " c.generation_expression from pg_attrdef d join pg_attribute a on a.attrelid = d.adrelid"
    " and a.attnum = d.adnum join information_schema.columns c on c.table_name = 't'"
    " and c.column_name = a.attname where d.adrelid = 't'::regclass"
)


def test_indexes_and_generated_columns_are_shown_in_its_form(
    servers: tuple[Server, Server],
) -> None:
    statements = [TABLE]
    said: dict[str, str] = {}
    for number, text in enumerate(EXPRESSIONS):
        said[f"shown{number:03}"] = text
        statements.append(f"create index shown{number:03} on t ({text})")
        kind = GENERATED.get(text, "")
        if kind:
            said[f"gen{number:03}"] = text
            statements.append(
                f"alter table t add gen{number:03} {kind} generated always as ({text}) stored"
            )
    for number, text in enumerate(PREDICATES, len(EXPRESSIONS)):
        said[f"shown{number:03}"] = text
        statements.append(f"create index shown{number:03} on t (id) where {text}")
    found: list[dict[str, Any]] = []
    for server in servers:
        with server.psycopg(autocommit=True) as connection:
            try:
                for each in statements:
                    connection.execute(each.encode())
                rows = connection.execute(INDEXES_SHOWN).fetchall()
                rows += connection.execute(GENERATED_SHOWN).fetchall()
                found.append({row[0]: row[1:] for row in rows})
            finally:
                drop_tables(connection)
    ours, theirs = found
    assert ours.keys() == theirs.keys() == said.keys()
    unlike = [
        f"{said[name]}\n  ours   {ours[name]}\n  theirs {theirs[name]}"
        for name in said
        if ours[name] != theirs[name]
    ]
    assert not unlike, "\n".join(unlike)


GENERATED: Final = {
    "lower(v)": "text",
    "(a + 1)": "int",
    "(a + b * 2)": "bigint",
    "(x || 'a')": "text",
    "(j ->> 'k')": "text",
    "coalesce(x, v)": "text",
    "(g[1])": "text",
    "(a > 0)": "boolean",
    "(case when a > 0 then x else v end)": "text",
    "(n * 1.5)": "numeric",
}


CHANGES: Final = (
    "alter table t alter a type numeric(9, 1)",
    "alter table t alter a type bigint, alter x type varchar(9)",
    "alter table t alter x type text, alter b type numeric",
    "alter table t alter a type int",
    "alter table t alter b type int",
)


def test_conditions_over_columns_of_another_type(servers: tuple[Server, Server]) -> None:
    made = (
        "create table t (id int primary key, a int, b int, x text, check (a > 0), check (b > a),"
        " check (x <> 'no' and length(x) < 9))"
    )
    found: list[list[Any]] = []
    for server in servers:
        with server.psycopg(autocommit=True) as connection:
            try:
                answers = [shown(connection, made)]
                answers += [shown(connection, change) for change in CHANGES]
                found.append(answers)
            finally:
                drop_tables(connection)
    for text, one, other in zip((made, *CHANGES), *found, strict=True):
        assert one == other, text


RESTORED: Final = (
    "a = any (array[1, 2])",
    "(v)::text = any ((array['x'::character varying, 'y'::character varying])::text[])",
    "(x = any (array['x'::text, 'y'::text])) or (a <> all (array[3, -4]))",
    "n <> all (array[1.5, 2])",
)


def test_lists_as_catalogs_and_dumps_write_them(servers: tuple[Server, Server]) -> None:
    """A text that was shown is taken, means the same, and is shown alike again."""
    added = ", ".join(f"add constraint r{n} check ({said})" for n, said in enumerate(RESTORED))
    found: list[list[Any]] = []
    for server in servers:
        with server.psycopg(autocommit=True) as connection:
            try:
                once = shown(connection, TABLE, f"alter table t {added}")
                anew = ", ".join(
                    f"add constraint s{n} {text}" for n, (_, text, _) in enumerate(once)
                )
                twice = shown(connection, f"alter table t {anew}")
                found.append([*once, *twice])
            finally:
                drop_tables(connection)
    assert found[0] == found[1]
