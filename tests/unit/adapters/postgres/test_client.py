"""Goal: the clients that people use work, as they are.

Method: psycopg 3 and asyncpg in this process, psql and pgbench beside it (skipped, saying so, where
they are not installed), against the listener over small sessions.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import psycopg
import pytest

from leasehold.adapters.postgres.server import PgwireServer
from tests.support.pgwire.listening import listening
from tests.support.pgwire.small_session import Shared

VALUES: list[tuple[str, Any]] = [
    ("smallint", -5),
    ("integer", 42),
    ("bigint", 1 << 60),
    ("numeric", Decimal("123456.789000")),
    ("double precision", 1.5e300),
    ("text", "é 'quoted' \\"),
    ("varchar", "short"),
    ("boolean", True),
    ("bytea", b"\0\xff\\"),
    ("date", date(2024, 2, 29)),
    ("timestamp", datetime(2024, 2, 29, 12, 30, 0, 120)),  # noqa: DTZ001
    ("timestamptz", datetime(2024, 2, 29, 12, 30, tzinfo=UTC)),
    ("uuid", UUID(int=4711)),
    ("interval", timedelta(days=3, seconds=4, microseconds=5)),
]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PgwireServer]:
    with listening(Shared(path=str(tmp_path / "store"))) as server:
        yield server


def dsn(server: PgwireServer) -> str:
    return f"postgresql://leasehold@127.0.0.1:{server.port}/demo"


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize(("kind", "value"), VALUES, ids=lambda value: str(value)[:20])
def test_psycopg_gets_back_what_it_sent(
    server: PgwireServer, kind: str, value: Any, binary: bool
) -> None:
    with psycopg.connect(dsn(server), autocommit=True) as client:
        cursor = client.cursor(binary=binary)
        for mark in ("%s", "%b", "%t"):
            sql = f"select {mark}::{kind}, {mark}::{kind}"
            assert cursor.execute(sql, (value, None)).fetchone() == (value, None)


def test_psycopg_prepares_runs_pipelines_and_copies(server: PgwireServer) -> None:
    with psycopg.connect(dsn(server)) as client:
        client.execute("create table t (id int primary key, a text)")
        client.commit()
        for number in range(10):  # prepared from the sixth run on
            assert client.execute("select %s::integer", (number,)).fetchone() == (number,)
        with client.pipeline():
            cursors = [client.execute("select %s::integer", (n,)) for n in range(20)]
        assert [cursor.fetchone() for cursor in cursors] == [(n,) for n in range(20)]
        with client.cursor() as cursor, cursor.copy("copy t from stdin") as copy:
            for number in range(500):
                copy.write_row((number, f"row\t{number}\n" if number % 2 else None))
        client.commit()
        with client.cursor("named") as named:  # which is DECLARE, and no part of this session
            assert named.name == "named"
        rows = client.execute("select id, a from t order by id").fetchall()
        assert rows == [(n, f"row\t{n}\n" if n % 2 else None) for n in range(500)]
        assert client.execute("update t set a = 'x' where id < %s::integer", (5,)).rowcount == 5


def test_psycopg_meets_errors_in_blocks(server: PgwireServer) -> None:
    with psycopg.connect(dsn(server), autocommit=True) as client:
        client.execute("create table t (id int primary key)")
        with client.transaction():
            client.execute("insert into t values (1)")
            with pytest.raises(psycopg.errors.DivisionByZero), client.transaction():
                client.execute("select 1/0")
        with pytest.raises(psycopg.errors.UniqueViolation) as caught, client.transaction():
            client.execute("insert into t values (1)")
        assert caught.value.diag.constraint_name == "t_pkey"
        assert caught.value.diag.table_name == "t"
        client.execute("")
        assert client.execute("select id from t").fetchall() == [(1,)]


def test_psycopg_async(server: PgwireServer) -> None:
    async def run() -> Any:
        async with await psycopg.AsyncConnection.connect(dsn(server)) as client:
            found = await client.execute("select %s::text", ("x",))
            return await found.fetchone()

    assert asyncio.run(run()) == ("x",)


def test_asyncpg_with_its_pool(server: PgwireServer) -> None:
    async def run() -> None:
        async with asyncpg.create_pool(dsn(server), min_size=1, max_size=4) as pool:
            async with pool.acquire() as client:
                for kind, value in VALUES:
                    row = await client.fetchrow(f"select $1::{kind}, $2::{kind}", value, None)
                    assert tuple(row) == (value, None), kind
                assert await client.execute("select 1; select 2") == "SELECT 1"
                assert len(await client.fetch("select generate_series(1, 1000)")) == 1000
                async with client.transaction():
                    cursor = await client.cursor("select generate_series(1, 1000)")
                    assert [row[0] for row in await cursor.fetch(3)] == [1, 2, 3]
                    assert (await cursor.fetchrow())[0] == 4
                with pytest.raises(asyncpg.DivisionByZeroError):
                    await client.fetch("select 1/0")
            numbers = [pool.fetchval("select $1::integer", number) for number in range(50)]
            assert await asyncio.gather(*numbers) == list(range(50))

    asyncio.run(run())


def test_asyncpg_prepares_again_after_a_schema_change(tmp_path: Path) -> None:
    """Scenario 84, as a driver lives it."""
    shared = Shared()

    async def run(server: PgwireServer) -> None:
        client = await asyncpg.connect(dsn(server))
        assert len((await client.fetch("select * from changing"))[0]) == 1
        shared.version += 1
        assert len((await client.fetch("select * from changing"))[0]) == 2
        await client.close()

    with listening(shared) as server:
        asyncio.run(run(server))


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"NOT TESTED with {name}: it is not installed (apt install postgresql-client)")
    return found


def test_psql(server: PgwireServer, tmp_path: Path) -> None:
    rows, script = tmp_path / "rows.csv", tmp_path / "script.sql"
    rows.write_text('1,"x,""y"\n2,\n')
    script.write_text(
        f"""\
begin;
create table t (id int primary key, a text);
\\copy t from {rows} csv
commit;
select id, a from t order by id;
select 1/0;
"""
    )
    psql = [program("psql"), dsn(server), "-X", "-A", "-t", "-f", str(script)]
    done = subprocess.run(psql, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [
        *("BEGIN", "CREATE TABLE", "COPY 2", "COMMIT", '1|x,"y', "2|"),
    ], done.stderr
    assert "ERROR:  division by zero" in done.stderr


@pytest.mark.parametrize("mode", ["simple", "extended", "prepared"])
def test_pgbench(server: PgwireServer, mode: str) -> None:
    pgbench = [program("pgbench"), "-h", "127.0.0.1", "-p", str(server.port), "-U", "leasehold"]
    with psycopg.connect(dsn(server), autocommit=True) as client:
        client.execute("create table pgbench_accounts (aid int primary key, abalance int)")
        client.execute("create table pgbench_branches (bid int primary key, bbalance int)")
        client.execute("insert into pgbench_branches values (1, 0)")
        with client.cursor() as cursor, cursor.copy("copy pgbench_accounts from stdin") as copy:
            copy.write("".join(f"{aid}\t0\n" for aid in range(1, 1001)))
    run = ["-n", "-S", "-M", mode, "-c", "4", "-t", "50", "demo"]
    done = subprocess.run([*pgbench, *run], capture_output=True, text=True, check=False)
    assert "transactions actually processed: 200/200" in done.stdout, done.stderr
    assert "ERROR" not in done.stderr
