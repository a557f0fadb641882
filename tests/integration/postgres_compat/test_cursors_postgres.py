"""Goal: a cursor here goes where one of PostgreSQL goes, and is refused what that is refused.

Method: random scripts of DECLARE, FETCH, MOVE, CLOSE, savepoints and ends of transactions, over
queries of few rows, some of which end with an error: run in a session here and on a real
PostgreSQL, statement by statement: same tags, rows, SQLSTATEs, and the same in pg_cursors.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, Final

import psycopg
import pytest

from leasehold.dev.database import DevDatabase
from leasehold.model.errors import LeaseholdError
from leasehold.pgwire.session import Status
from tests.support.postgres.postgres_server import postgres_server
from tests.support.sql_session.sql_client import SqlClient

pytestmark = pytest.mark.integration

SEEDS: Final = int(os.environ.get("CURSOR_SEEDS", "60"))
STATEMENTS: Final = 60
TABLE: Final = (
    "drop table if exists t",
    "create table t (id int primary key, a int)",
    "insert into t select n, n * 10 from generate_series(1, 9) as n",
)
QUERIES: Final = (
    *("select id, a from t order by id", "select id from t where id > 3 order by id desc"),
    *(
        "select id from t where id < 0",
        "values (1), (2), (3)",
        "select id from t order by a limit 1",
    ),
    "select * from (select id, 10 / (5 - id) as d from t where id < 8) as s order by id",
)
ASKED: Final = "select name, is_holdable, is_binary from pg_cursors order by name"


class StatementBatch:
    def __init__(self, random: Random) -> None:
        self._random = random

    def statement(self, *, failed: bool) -> str:
        """`failed`: the transaction has, and most of what is said is to be heard again."""
        random = self._random
        if failed and random.random() < 0.8:
            return random.choice(["rollback to s", "rollback to s", "commit", "rollback"])
        kind = random.choices(
            ["fetch", "move", "declare", "close", "end", "savepoint", "back", "write", "ask"],
            [40, 15, 14, 4, 6, 4, 6, 3, 2],
        )[0]
        name = random.choice("abc")
        match kind:
            case "fetch" | "move":
                return f"{kind} {self._movement()} {random.choice(['in ', 'from ', ''])}{name}"
            case "declare":
                return self._declare(name)
            case "close":
                return random.choice([f"close {name}", f"close {name}", "close all"])
            case "end":
                return random.choice(["commit", "rollback", "begin", "begin", "begin"])
            case "savepoint":
                return "savepoint s"
            case "back":
                return random.choice(["rollback to s", "rollback to s", "release s"])
            case "write":
                return "update t set a = a + 1 where id = 2"
        return ASKED

    def _declare(self, name: str) -> str:
        random = self._random
        options = random.choice(["", "scroll ", "no scroll ", "insensitive ", "scroll no scroll "])
        hold = random.choice(["", "", "", "with hold ", "without hold "])
        return f"declare {name} {options}cursor {hold}for {random.choice(QUERIES)}"

    def _movement(self) -> str:
        random = self._random
        number = random.choice([0, 1, 1, 2, 3, 5, 20, -1, -2, -9])
        return random.choice(
            [
                *("", "next", "prior", "first", "last", "all", f"{number}", f"forward {number}"),
                *(f"backward {number}", "forward", "backward", "forward all", "backward all"),
                *(f"absolute {number}", f"relative {number}", f"absolute {number}"),
            ]
        )


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevDatabase]:
    dev = DevDatabase(Path(tmp_path_factory.mktemp("cursors")))
    dev.wait_ready()
    yield dev
    dev.close()


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with postgres_server() as port:
        yield port


def theirs(connection: psycopg.Connection[Any], text: str) -> tuple[str, list[Any]]:
    try:
        cursor = connection.execute(text)
    except psycopg.Error as error:
        return error.sqlstate or "?", []
    tag = cursor.statusmessage or ""
    return tag, cursor.fetchall() if cursor.description is not None else []


def ours(client: SqlClient, text: str) -> tuple[str, list[Any]]:
    try:
        rows = client.ask(text)
    except LeaseholdError as error:
        return error.sqlstate, []
    (tag,) = client.tags
    return f"SELECT {len(rows)}" if tag == "SELECT" else tag, rows


def test_cursors_go_where_postgresqls_go(database: DevDatabase, port: int) -> None:
    seen: Counter[str] = Counter()
    dsn = f"host=127.0.0.1 port={port} user=postgres dbname=postgres"
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as connection:
        client = SqlClient(database)
        for text in TABLE:
            connection.execute(text)
            client.ask(text)
        for seed in range(SEEDS):
            script = StatementBatch(Random(seed))
            told: list[str] = []
            for _ in range(STATEMENTS):
                text = script.statement(failed=client.status() is Status.FAILED)
                expected, found = theirs(connection, text), ours(client, text)
                told.append(f"{text} → {expected}")
                assert found == expected, f"seed {seed}: {told}"
                seen[found[0].split()[0]] += 1
            for text in ("rollback", "close all", "update t set a = id * 10"):
                connection.execute(text)
                client.ask(text)
        client.session.close()
    print(f"\n{SEEDS} scripts, {seen.total()} statements: {dict(seen.most_common())}")
    for needed in ("FETCH", "MOVE", "55000", "34000", "42P03", "22012", "25P01", "25P02", "42P11"):
        assert seen[needed] > 3, needed
