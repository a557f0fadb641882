"""asyncpg, which speaks the binary forms of all values, on our listener and on PostgreSQL.

Goal and method: conftest.py.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import uuid
from collections.abc import Awaitable, Callable
from decimal import Decimal
from io import BytesIO
from ipaddress import ip_interface, ip_network
from typing import Any, Final

import asyncpg
import pytest

from tests.support.postgres.client_server import Server
from tests.support.postgres.every_type import COLUMNS, NULLS, READ, ZONED

pytestmark = pytest.mark.integration

Work = Callable[[Any], Awaitable[None]]


def with_asyncpg(server: Server, work: Work) -> None:
    async def run() -> None:
        connection = await asyncpg.connect(**server.asyncpg())
        try:
            await work(connection)
        finally:
            await connection.close()

    asyncio.run(run())


PYTHON: Final[dict[str, Any]] = {
    "smallint": -3,
    "integer": 1 << 30,
    "bigint": -(1 << 60),
    "numeric": Decimal("-12345.67890"),
    "double precision": 1e-300,
    "text": "ö\t",
    "varchar": "v",
    "boolean": False,
    "bytea": b"\x00\xff",
    "date": dt.date(2024, 2, 29),
    "timestamp": dt.datetime(2024, 2, 29, 1, 2, 3, 4),  # noqa: DTZ001
    "timestamptz": ZONED,
    "interval": dt.timedelta(days=3, seconds=7, microseconds=9),
    "real": 0.25,
    "time": dt.time(10, 20, 30, 5),
    "timetz": dt.time(1, 2, 3, tzinfo=dt.timezone(dt.timedelta(hours=-3, minutes=-30))),
    "inet": ip_interface("10.1.2.3/8"),
    "cidr": ip_network("2001:db8::/32"),
    "json": '{"b" :1, "a": 2}',
    "uuid": uuid.UUID(int=99),
    "jsonb": '{"a": [1, 2.50]}',
}


@pytest.mark.parametrize("kind", PYTHON)
def test_asyncpg_sends_and_gets_every_type(server: Server, kind: str) -> None:
    """All of them in their binary forms, and lists of them."""

    async def work(connection: Any) -> None:
        value = PYTHON[kind]
        assert await connection.fetchval(f"SELECT $1::{kind}", value) == value
        assert await connection.fetchval(f"SELECT $1::{kind}", None) is None
        many = [value, None, value]
        assert await connection.fetchval(f"SELECT $1::{kind}[]", many) == many
        assert await connection.fetchval(f"SELECT $1::{kind}[]", []) == []
        if kind not in ("json", "jsonb"):
            text = f"SELECT $1::{kind} = ANY($2::{kind}[])"
            assert await connection.fetchval(text, value, many) is True

    with_asyncpg(server, work)


def test_asyncpg_reads_every_type(server: Server, table: str) -> None:
    async def work(connection: Any) -> None:
        rows = await connection.fetch(f"SELECT * FROM {table} ORDER BY id")
        doc = '{"a": [1, null, "x"]}'
        assert tuple(rows[0]) == tuple(doc if type(value) is dict else value for value in READ)
        assert tuple(rows[1]) == NULLS
        found = await connection.fetch(f"SELECT id FROM {table} WHERE id = ANY($1)", [1, 2, 3])
        assert len(found) == 2

    with_asyncpg(server, work)


def test_asyncpg_writes(server: Server, table: str) -> None:
    async def work(connection: Any) -> None:
        assert await connection.execute(f"UPDATE {table} SET small = 2") == "UPDATE 2"
        await connection.executemany(
            f"INSERT INTO {table} (id, words, zoned) VALUES ($1, $2, $3)",
            [(n, f"w{n}", ZONED) for n in range(10, 60)],
        )
        made = await connection.fetch(
            f"INSERT INTO {table} (id, words) SELECT * FROM unnest($1::integer[], $2::text[])"
            " RETURNING id",
            [100, 101],
            ["a", None],
        )
        assert [row["id"] for row in made] == [100, 101]
        assert await connection.execute(f"DELETE FROM {table} WHERE id >= 10") == "DELETE 52"

    with_asyncpg(server, work)


def test_asyncpg_in_transactions(server: Server, table: str) -> None:
    async def work(connection: Any) -> None:
        async with connection.transaction():
            await connection.execute(f"INSERT INTO {table} (id) VALUES (10)")
            with pytest.raises(asyncpg.NumericValueOutOfRangeError):
                async with connection.transaction():
                    await connection.execute("SELECT 2147483647 + 1")
            await connection.execute(f"INSERT INTO {table} (id) VALUES (11)")
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            assert await connection.fetchval(f"SELECT count(*) FROM {table}") == 4
        async with connection.transaction():
            found = [
                row["id"] async for row in connection.cursor(f"SELECT id FROM {table} ORDER BY 1")
            ]
            assert found == [1, 2, 10, 11]
            cursor = await connection.cursor(f"SELECT id FROM {table} ORDER BY 1")
            assert [row["id"] for row in await cursor.fetch(3)] == [1, 2, 10]
            assert [row["id"] for row in await cursor.fetch(3)] == [11]

    with_asyncpg(server, work)


def test_asyncpg_with_a_pool(server: Server, table: str) -> None:
    async def work() -> None:
        async with asyncpg.create_pool(**server.asyncpg(), min_size=2, max_size=4) as pool:

            async def one(n: int) -> int:
                async with pool.acquire() as connection:
                    return int(
                        await connection.fetchval(f"SELECT $1 + id FROM {table} WHERE id = 1", n)
                    )

            assert await asyncio.gather(*(one(n) for n in range(20))) == [n + 1 for n in range(20)]

    asyncio.run(work())


def test_asyncpg_prepares_again_after_a_schema_change(server: Server, table: str) -> None:
    async def work(connection: Any) -> None:
        text = f"SELECT * FROM {table} WHERE id = $1"
        statement = await connection.prepare(text)
        assert [a.name for a in statement.get_attributes()] == list(COLUMNS)
        assert [p.name for p in statement.get_parameters()] == ["int4"]
        assert len(await connection.fetchrow(text, 2)) == len(COLUMNS)
        with server.psycopg(autocommit=True) as other:
            other.execute(f"ALTER TABLE {table} ADD COLUMN more integer")
        assert tuple(await connection.fetchrow(text, 2)) == (*NULLS, None)

    with_asyncpg(server, work)


def test_asyncpg_copies_in_binary_and_out(server: Server, table: str) -> None:
    async def work(connection: Any) -> None:
        records = [(n, None if n % 3 else f"{n}\tö", Decimal(n) / 4) for n in range(100, 800)]
        columns = ["id", "words", "exact"]
        copied = connection.copy_records_to_table(table, records=records, columns=columns)
        assert await copied == "COPY 700"
        out = BytesIO()
        query = f"SELECT id, words, exact FROM {table} WHERE id >= $1 ORDER BY id"
        assert (
            await connection.copy_from_query(query, 100, output=out, format="binary") == "COPY 700"
        )
        back = BytesIO(out.getvalue())
        await connection.execute(f"DELETE FROM {table} WHERE id >= 100")
        done = await connection.copy_to_table(table, source=back, columns=columns, format="binary")
        assert done == "COPY 700"
        assert list(map(tuple, await connection.fetch(query, 100))) == records
        out = BytesIO()
        done = await connection.copy_from_table(
            table, columns=["words", "id"], output=out, format="csv", header=True, force_quote=True
        )
        assert (out.getvalue()[:9], done) == (b"words,id\n", "COPY 702")
        with pytest.raises(asyncpg.BadCopyFileFormatError):
            await connection.copy_to_table(table, source=BytesIO(b"nonsense"), format="binary")
        assert await connection.fetchval("SELECT 1") == 1

    with_asyncpg(server, work)


def test_asyncpg_errors_have_their_class(server: Server, table: str) -> None:
    async def work(connection: Any) -> None:
        with pytest.raises(asyncpg.UniqueViolationError):
            await connection.execute(f"INSERT INTO {table} (id) VALUES (1)")
        with pytest.raises(asyncpg.UndefinedTableError):
            await connection.execute("SELECT * FROM nowhere")
        with pytest.raises(asyncpg.InvalidTextRepresentationError):
            await connection.execute("SELECT 'x'::integer")
        with pytest.raises(asyncpg.PostgresSyntaxError):
            await connection.execute("SELEC 1")

    with_asyncpg(server, work)


def test_asyncpgs_cursors(server: Server, many: str) -> None:
    async def work() -> None:
        connection = await asyncpg.connect(**server.asyncpg())
        try:
            async with connection.transaction():
                asked = f"SELECT id FROM {many} WHERE id > $1 ORDER BY id"
                found = [row[0] async for row in connection.cursor(asked, 10, prefetch=300)]
                assert found == [*range(11, 5001)]
                cursor = await connection.cursor(asked, 10)
                assert await cursor.forward(3) == 3
                assert [row[0] for row in await cursor.fetch(2)] == [14, 15]
                await connection.execute(f"DELETE FROM {many} WHERE id = 16")
                assert (await cursor.fetchrow())[0] == 16
            with pytest.raises(asyncpg.NoActiveSQLTransactionError):
                await connection.cursor(asked, 10)
        finally:
            await connection.close()

    asyncio.run(work())
