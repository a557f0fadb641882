"""Goal: a number that is a default is shown as PostgreSQL shows it, so that a tool which compares
texts of defaults sees no difference; whatever becomes of its column.

Method: the same statements in both, and the same rows, tags and SQLSTATEs asked of both.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.support.postgres.both_servers import told
from tests.support.postgres.client_server import Server

pytestmark = pytest.mark.integration

SHOWN: Final = (
    "select a.attname, pg_get_expr(d.adbin, d.adrelid), c.column_default from pg_attrdef d"
    " join pg_attribute a on (a.attrelid, a.attnum) = (d.adrelid, d.adnum)"
    " join information_schema.columns c on (c.table_name, c.column_name) = ('t', a.attname)"
    " where d.adrelid = 't'::regclass order by d.adnum"
)
TYPES: Final = (
    *("numeric(10,2)", "numeric(3,1)", "numeric", "integer", "bigint", "smallint"),
    *("double precision", "real"),
)
SAID: Final = (
    *("0.5", "1", "'0.50'", "0.50", "-0.5", "'0.5'::numeric", "0.5::numeric", "25e-1", "0.555"),
    *("(0.5)", "0", "'5'", "5::bigint", "'-5'", "-1", "- 0.50", "99", "-(-0.5)", "' 0.5 '"),
    *("numeric '0.50'", "00.50", ".5", "5.", "1e-3", "5::int", "'5'::int", "2::smallint"),
    *("0.1::double precision", "'0.1'::float8", "-0.0", "'2e1'", "(-5)::int", "int '7'"),
    *("1.10::real", "1::real"),
)
"""What each of the types takes."""
BEYOND: Final = {
    "integer": ("'0.50'", "' 0.5 '", "'2e1'"),
    "bigint": ("'0.50'", "' 0.5 '", "'2e1'"),
    "smallint": ("'0.50'", "' 0.5 '", "'2e1'"),
}
"""What is no text of a type."""
STORIES: Final = {
    "of a table": f"""
        create table t (id int, a numeric(10,2) default 0.5, b numeric(10,2) default 0.00, c numeric(10,2) default 0.555)
        alter table t add d numeric(10,2) default 7, add e double precision not null default 0.10
        {SHOWN}
        insert into t values (1) returning *
        alter table t alter a set default 1.5, alter b set default 00.250
        {SHOWN}
        alter table t alter a set default 1.50
        {SHOWN}
        insert into t (id) values (2) returning *
        alter table t rename a to f
        alter table t rename to u
        alter table u rename to t
        {SHOWN}
        create table w (like t including defaults)
        select column_name, column_default from information_schema.columns where table_name = 'w' order by 1
        drop table w
        alter table t alter f drop default, alter b drop default
        {SHOWN}
        alter table t alter d set default '7.10'::numeric
        {SHOWN}
    """,
    "of columns that get another type": f"""
        create table t (id int, a numeric(10,2) default 0.5, b numeric(10,2) default 0.555, c numeric(10,4) default 0.5, d int default 3, e numeric(10,2) default 2.5, f numeric(10,2) default 0.125, g real default 0.1, h numeric(10,2) default 0.125)
        alter table t alter g type double precision, alter h type numeric(12,2)
        alter table t alter a type numeric(10,4), alter b type numeric(10,4)
        insert into t values (1) returning a, b, g, h
        {SHOWN}
        alter table t alter c type numeric(10,2), alter d type bigint
        alter table t alter e type double precision, alter f type text
        {SHOWN}
        insert into t (id) values (2) returning *
        alter table t alter d type numeric(10,2), alter a type int
        {SHOWN}
        insert into t (id) values (3) returning *
    """,
    "in a block": f"""
        create table t (id int, a numeric(10,2) default 0.5)
        begin
        alter table t alter a set default 0.75
        alter table t add b numeric(10,3) default 1.5
        {SHOWN}
        alter table t alter a set default 0.7500
        alter table t alter b set default 1.5
        commit
        {SHOWN}
    """,
}
# ruff: noqa: E501 - a statement stands in one line


def answers_of(server: Server, texts: list[str]) -> list[tuple[str, Any]]:
    with server.psycopg(autocommit=True) as one:
        try:
            return [(text, told(one, text)) for text in texts]
        finally:
            one.execute("rollback")
            one.execute("drop table if exists t, u, w")


def compare(servers: tuple[Server, Server], texts: list[str]) -> None:
    ours, theirs = (answers_of(server, texts) for server in servers)
    unlike = [(a, b[1]) for a, b in zip(ours, theirs, strict=True) if a != b]
    assert not unlike, "\n".join(f"{text}\n  ours   {a}\n  theirs {b}" for (text, a), b in unlike)


@pytest.mark.parametrize("kind", TYPES)
def test_what_is_said(servers: tuple[Server, Server], kind: str) -> None:
    fit = [said for said in SAID if said not in BEYOND.get(kind, ())]
    columns = ", ".join(f"c{number} {kind} default {said}" for number, said in enumerate(fit))
    made = f"create table t (id int, {columns})"
    compare(servers, [made, SHOWN, "insert into t values (1) returning *"])


@pytest.mark.parametrize("story", STORIES)
def test_what_becomes_of_it(servers: tuple[Server, Server], story: str) -> None:
    compare(servers, [line.strip() for line in STORIES[story].strip().splitlines()])
