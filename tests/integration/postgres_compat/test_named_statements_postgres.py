"""Goal: PREPARE, EXECUTE and DEALLOCATE as statements, and LOCK TABLE in the mode of a SELECT, do
what they do in PostgreSQL.

Method: the same statements in both, each with the same answer or SQLSTATE; what the protocol's
clients are told of columns, by asyncpg, which asks before it runs.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import asyncpg
import pytest

from tests.support.postgres.both_servers import told
from tests.support.postgres.client_server import Server

pytestmark = pytest.mark.integration

MADE: Final = (
    "create table ship (id int primary key, name text, size numeric(6, 2))",
    "insert into ship values (1, 'a', 1.5), (2, 'b', null), (3, 'it''s', 7)",
    "create type mood as enum ('sad', 'ok')",
)
STORIES: Final[dict[str, tuple[str, ...]]] = {
    "types are named": (
        "prepare of_name (text, numeric) as select id from ship where name = $1 or size > $2",
        "execute of_name ('a', 5)",
        "execute of_name ('it''s', null)",
        "execute of_name (lower('A'), 1 + 2 * 3)",
        "execute of_name ('a')",
        "execute of_name ('a', 1, 2)",
        "execute of_name ('a', 'x')",
        "execute of_name ('a', '1.5')",
    ),
    "types are told by the statement": (
        "prepare one as select $1::date + $2 as day, $3",
        "execute one ('2024-02-28', 2, 'x')",
        "prepare two (unknown, int) as select name from ship where id = $1 and $2 = 3",
        "execute two (1, 3)",
        "prepare three (mood[], numeric(4, 1)) as select $1, $2",
        "execute three ('{ok,sad}', 1.25)",
    ),
    "names": (
        "execute nobody",
        "prepare a as select 1",
        "prepare a as select 2",
        'prepare "A b" as values (1), (2)',
        'execute "A b"',
        "deallocate a",
        "execute a",
        "deallocate a",
        "deallocate all",
        'execute "A b"',
        "prepare a as select 3",
        "execute a",
        "discard all",
        "execute a",
    ),
    "what it takes": (
        "prepare gone as select * from nobody",
        "prepare made as create table x (a int)",
        "prepare ended as commit",
        "prepare bad as select 1 +",
        "execute (select 1)",
    ),
    "writes": (
        "prepare more (int, text) as insert into ship (id, name) values ($1, $2) returning id",
        "execute more (4, 'd')",
        "execute more (4, 'd')",
        "begin",
        "execute more (5, 'e')",
        "prepare less as delete from ship where id > $1",
        "execute less (3)",
        "select count(*) from ship",
        "rollback",
        "execute less (4)",
        "select id, name from ship order by id",
        "prepare renamed as update ship set name = upper(name) where id = $1 returning name",
        "execute renamed (1); execute renamed (2)",
    ),
    "a failed block": (
        "prepare a as select 1",
        "begin",
        "execute a",
        "select 1 / 0",
        "execute a",
        "prepare b as select 1",
        "rollback",
        "execute b",
        "execute a",
    ),
    "in one text": ("prepare q as select 7", "execute q; select 8", "select 7; execute q"),
    "lock table": (
        "lock table ship in access share mode",
        "begin",
        "lock table ship in access share mode",
        "lock ship, public.ship in access share mode nowait",
        "commit",
        "begin",
        "lock table nobody in access share mode",
        "rollback",
    ),
}


@pytest.mark.parametrize("name", STORIES)
def test_a_story_is_told_alike(servers: tuple[Server, Server], name: str) -> None:
    answers = []
    for server in servers:
        with server.psycopg(autocommit=True) as connection:
            for text in MADE:
                connection.execute(text.encode())
            try:
                answers.append([told(connection, text) for text in STORIES[name]])
            finally:
                connection.execute(b"rollback")
                connection.execute(b"drop table ship")
                connection.execute(b"drop type mood")
    ours, theirs = answers
    assert dict(zip(STORIES[name], ours, strict=True)) == dict(
        zip(STORIES[name], theirs, strict=True)
    )


def test_what_is_named_is_looked_up_anew(servers: tuple[Server, Server]) -> None:
    """A table that is made again under the name of one that is gone is the one that is meant."""
    for server in servers:
        with server.psycopg(autocommit=True) as connection:
            connection.execute(b"create table note (a int)")
            connection.execute(b"prepare notes as select a from note")
            connection.execute(b"drop table note")
            assert told(connection, "execute notes") == "42P01"
            connection.execute(b"create table note (a int)")
            connection.execute(b"insert into note values (7)")
            assert told(connection, "execute notes") == [(7,)]
            connection.execute(b"drop table note")


def test_columns_and_parameters_by_the_protocol(servers: tuple[Server, Server]) -> None:
    async def ask(server: Server) -> Any:
        connection = await asyncpg.connect(**server.asyncpg())
        try:
            await connection.execute("prepare pair (int, text) as select $1 + 1 as n, $2 as w")
            row = await connection.fetchrow("execute pair (4, 'x')")
            assert row is not None
            return list(row.items())
        finally:
            await connection.close()

    ours, theirs = (asyncio.run(ask(server)) for server in servers)
    assert ours == theirs == [("n", 5), ("w", "x")]


def test_what_a_session_keeps_has_a_limit(servers: tuple[Server, Server]) -> None:
    ours, _ = servers
    with ours.psycopg(autocommit=True) as connection:
        long = ", ".join([f"'{'x' * 60_000}'"] * 16)
        texts = [f"prepare s{number} as select {long}" for number in range(5)]
        assert [told(connection, text) for text in texts] == ["PREPARE"] * 4 + ["54000"]
        connection.execute(b"deallocate s0")
        connection.execute(b"prepare again as select 1")
        assert told(connection, "execute again") == [(1,)]
