"""Goal: a cursor here goes where one of PostgreSQL goes, and is refused what that is refused.

Method: random scripts of DECLARE, FETCH, MOVE, CLOSE, savepoints and ends of transactions, over
queries of few rows, some of which end with an error: run in a session here and on a real
PostgreSQL, statement by statement: same tags, rows, SQLSTATEs, and the same in pg_cursors. Likewise
scripts that write WHERE CURRENT OF cursors, beside other writes and ways back.
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


class Script:
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
            script = Script(Random(seed))
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


def current_script(random: Random) -> Iterator[str]:
    """One transaction; all cursors stand before it writes, in an order that both have by nature. A
    row that its own transaction has written is skipped by FOR UPDATE in PostgreSQL: such a cursor
    is alone, and goes forward over rows that nobody has written yet."""
    locks = random.random() < 0.4
    if locks:
        yield "declare a cursor for select a from t order by id for update"
        yield "declare b cursor for select t.id from t left join u on t.id = u.id for update of t"
        yield "declare c cursor for select t.id from t join t as s on t.id = s.id + 1 for update"
    else:
        yield f"declare a {random.choice(['', 'scroll ', 'no scroll '])}cursor for select a from t"
        yield "declare b scroll cursor with hold for select id + 1 from t where id > 3 limit 4"
        yield random.choice(
            [
                *("declare c cursor for select count(*) from t", "declare c cursor for values (1)"),
                *(
                    "declare c cursor for select distinct a from t where id = 3",
                    "declare c cursor for table u",
                ),
                *("declare c cursor for table t union all table t", "fetch 1 from a"),
            ]
        )
    yield "savepoint s"
    alone = random.choice("ab")
    for _ in range(40):
        name = random.choice([alone, alone, alone, "c"]) if locks else random.choice("aaabbbc")
        ways = ["", "1", "2"] if name == "c" else ["", "2", "-1", "first", "last", "prior", "all"]
        goes = f"fetch {random.choice(ways)} from {name}"
        if locks:
            goes = f"fetch {random.choice(['', '1', '2'])} from {alone}"
        table = random.choice("ttttu")
        yield random.choice(
            [
                *(goes, goes),
                f"update {table} set a = a + 1 where current of {name} returning *",
                f"update t set id = id + {random.choice([20, 50])} where current of {name}",
                f"update t set a = u.a from u where current of {name} returning t.id",
                f"delete from {table} where current of {name} returning id",
                *("rollback to s", "savepoint s", f"close {random.choice('cd')}"),
                f"delete from t where current of {random.choice('de')}",
                *([] if locks else ["update t set id = id + 40 where id % 7 = 1"]),
                *([] if locks else ["insert into t values (4, 0) on conflict do nothing"]),
            ]
        )


def test_rows_under_cursors_are_written_as_postgresqls_are(
    database: DevDatabase, port: int
) -> None:
    seen: Counter[str] = Counter()
    dsn = f"host=127.0.0.1 port={port} user=postgres dbname=postgres"
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as connection:
        client = SqlClient(database)

        def same(text: str, told: list[str]) -> str:
            expected, found = theirs(connection, text), ours(client, text)
            told.append(f"{text} → {expected}")
            assert (found[0], sorted(found[1])) == (expected[0], sorted(expected[1])), " ; ".join(
                told
            )
            return found[0]

        table_u = "create table u (id int primary key, a int)"
        for text in (*TABLE, table_u, "insert into u values (5, 50)"):
            connection.execute(text)
            client.ask(text)
        for seed in range(SEEDS):
            told: list[str] = [f"seed {seed}"]
            for text in ("truncate t", TABLE[2], "begin", "savepoint s"):
                same(text, told)
            script = current_script(Random(seed))
            for text in script:
                answer = same(text, told)
                failed = client.status() is Status.FAILED
                assert not failed or answer.isalnum()
                if "current" in text:
                    seen[f"{text.split()[0]} {answer}" if " " in answer else answer] += 1
                if failed:
                    same("rollback to s", told)
            same(random_end(seed), told)
            same("table t order by id", told)
            same("table u order by id", told)
            same("close all", told)
        client.session.close()
    print(f"\n{SEEDS} scripts, {seen.total()} of current rows: {dict(seen.most_common())}")
    for needed in ("24000", "34000", "update UPDATE 1", "update UPDATE 0", "delete DELETE 1"):
        assert seen[needed] > 3, needed


def random_end(seed: int) -> str:
    return "rollback" if seed % 3 == 0 else "commit"
