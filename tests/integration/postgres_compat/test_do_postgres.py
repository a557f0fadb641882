"""Goal: DO of what migrations write does what it does in PostgreSQL.

Method: the same statements in both, in a block and outside of one, each with the same answer,
notices and SQLSTATE, and the same tables in the end.
"""

from __future__ import annotations

from typing import Any, Final

import pytest
from psycopg.errors import Diagnostic

from tests.support.postgres.both_servers import told
from tests.support.postgres.client_server import Server

pytestmark = pytest.mark.integration


def caught(statements: str, conditions: str = "duplicate_object", handler: str = "null;") -> str:
    return f"do $$ begin {statements} exception when {conditions} then {handler} end $$"


MOOD: Final = "create type mood as enum ('sad', 'ok');"
IF_NOT: Final = (
    "do $$ begin if not exists (select 1 from pg_type where typname = 'mood') then"
    " create type mood as enum ('sad', 'ok'); raise notice 'made'; else"
    " raise warning 'there'; end if; end $$"
)
WITHIN: Final = (
    "do $$ begin insert into ship values (3, 'c'); begin insert into ship values (1, 'd');"
    " exception when unique_violation then update ship set name = 'd' where id = 1; end; end $$"
)
STORIES: Final[dict[str, tuple[str, ...]]] = {
    "an enum type": (
        caught(MOOD),
        caught(MOOD),
        f"DO '{MOOD.replace(chr(39), chr(39) * 2)}'",
        f"do 'begin {MOOD.replace(chr(39), chr(39) * 2)} end'",
        "create table note (m mood)",
        "insert into note values ('ok') returning m",
    ),
    "a foreign key, as drizzle-kit writes it": (
        "create table note (id int primary key, ship int)",
        *(caught("alter table note add constraint ship_fk foreign key (ship) references ship;"),)
        * 2,
        "insert into note values (1, 99)",
    ),
    "only if it is not there": (
        IF_NOT,
        IF_NOT,
        "do $$ begin if null then perform 1 / 0; elsif 1 > 0 then null; end if; end $$",
    ),
    "several statements are undone together": (
        caught("insert into ship values (2, 'b'); insert into ship values (1, 'c');", "others"),
        "select * from ship order by id",
        WITHIN,
        "select * from ship order by id",
        caught("create table note (id int); create table ship (id int);", "duplicate_table"),
        "select * from note",
    ),
    "several statements are undone without a handler": (
        "do $$ begin insert into ship values (4, 'x'); insert into ship values (1, 'x'); end $$",
        "select * from ship order by id",
    ),
    "what is not caught": (
        caught("insert into ship values (1, 'b');", "check_violation or undefined_table"),
        caught("insert into ship values (1, 'b');", "integrity_constraint_violation"),
        caught("insert into ship values (1, 'b');", "sqlstate '23505'", "raise;"),
        caught("drop table nobody;", "undefined_table", "raise exception 'there is none';"),
        caught("perform 1 / 0;", "division_by_zero", "raise notice 'zero';"),
        "do $$ begin raise exception 'a %% b'; end $$",
        "do $$ begin raise; end $$",
        "do $$ begin select 1; end $$",
        "do $$ begin insert into ship values (9, 'i') returning id; end $$",
        "do $$ begin insert into ship values (8, 'i'); end $$",
        "select * from ship order by id",
    ),
    "beside other statements": (
        f"create table note (id int); {caught(MOOD)}; insert into note values (1); select 2",
        f"insert into note values (2); {caught(MOOD)}; insert into note values (3)",
        f"{caught(MOOD, 'undefined_table')}; insert into note values (4)",
        "select * from note order by id",
    ),
}


def answers_of(server: Server, story: tuple[str, ...], *, block: bool) -> list[Any]:
    found: list[Any] = []
    notices: list[tuple[str | None, str | None, str | None]] = []

    def take(notice: Diagnostic) -> None:
        notices.append((notice.severity, notice.sqlstate, notice.message_primary))

    with server.psycopg(autocommit=True) as one:
        one.add_notice_handler(take)
        one.execute("create table ship (id int primary key, name text)")
        one.execute("insert into ship values (1, 'a')")
        for text in story:
            if block:
                one.execute("begin; savepoint s")
            found.append((text, told(one, text), list(notices)))
            notices.clear()
            if block:
                failed = isinstance(found[-1][1], str) and len(found[-1][1]) == 5
                one.execute("rollback to s" if failed else "release s")
                one.execute("commit")
        one.execute("drop table if exists ship, note cascade")
        one.execute("drop type if exists mood")
    return found


@pytest.mark.parametrize("block", [False, True], ids=["alone", "in a block"])
@pytest.mark.parametrize("name", STORIES)
def test_do(servers: tuple[Server, Server], name: str, block: bool) -> None:
    ours, theirs = (answers_of(server, STORIES[name], block=block) for server in servers)
    for mine, other in zip(ours, theirs, strict=True):
        assert mine == other
