"""Goal: the clients that people use work here as they do with PostgreSQL: psycopg 3, asyncpg,
SQLAlchemy 2 over both, pd.

Method: each test runs twice, on the listener of a whole database in this process and on a real
PostgreSQL, and says what both must come to.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from decimal import Decimal
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

import asyncpg
import pandas as pd
import psycopg
import pytest
import sqlalchemy as sa
from psycopg.types.json import Jsonb
from sqlalchemy import orm
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext import asyncio as sa_asyncio

from leasehold.adapters.pgwire_settings import PgwireSettings
from leasehold.client.dev import DevDatabase
from leasehold.client.sql_listener import SqlListener
from tests.integration.postgres_server import postgres_server

pytestmark = pytest.mark.integration


class Server(NamedTuple):
    kind: str
    port: int
    user: str
    database: str

    @property
    def dsn(self) -> str:
        return f"host=127.0.0.1 port={self.port} user={self.user} dbname={self.database}"

    def url(self, driver: str) -> str:
        return f"postgresql+{driver}://{self.user}@127.0.0.1:{self.port}/{self.database}"

    def psycopg(self, **more: Any) -> psycopg.Connection[Any]:
        return psycopg.connect(self.dsn, **more)

    def asyncpg(self) -> dict[str, Any]:
        return {
            "host": "127.0.0.1",
            "port": self.port,
            "user": self.user,
            "database": self.database,
        }


@pytest.fixture(scope="module", params=["leasehold", "postgresql"])
def server(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Iterator[Server]:
    if request.param == "postgresql":
        with postgres_server() as port:
            yield Server("postgresql", port, "postgres", "postgres")
        return
    folder: Path = tmp_path_factory.mktemp("clients")
    database = DevDatabase(folder)
    database.wait_ready()
    listener = SqlListener(database.sql_node(), PgwireSettings())
    try:
        yield Server("leasehold", listener.port, "leasehold", "dev")
    finally:
        listener.close()
        database.close()


@pytest.fixture
def table(server: Server) -> Iterator[str]:
    """A table with a row of every type and one of NULLs."""
    with server.psycopg(autocommit=True) as connection:
        connection.execute(DDL)
        connection.execute(INSERT, ROW)
        connection.execute("INSERT INTO every (id) VALUES (2)")
        yield "every"
        connection.execute("DROP TABLE every")


DDL: Final = """
    CREATE TABLE every (
        id integer PRIMARY KEY, small smallint, big bigint, exact numeric(10,2), open numeric,
        double double precision, words text, short varchar(20), padded char(4), truth boolean,
        bytes bytea, day date, moment timestamp, zoned timestamptz, name uuid, doc jsonb
    )
"""
COLUMNS: Final = (
    *("id", "small", "big", "exact", "open", "double", "words", "short", "padded", "truth"),
    *("bytes", "day", "moment", "zoned", "name", "doc"),
)
INSERT: Final = f"INSERT INTO every VALUES ({', '.join(['%s'] * len(COLUMNS))})"
ZONED: Final = dt.datetime(2024, 2, 29, 12, 34, 56, 789000, tzinfo=dt.UTC)
VALUES: Final = (
    *(1, -7, 1 << 40, Decimal("12.50"), Decimal("1.5000"), -1.5e-300, "ö 'x' \\ \t", "short"),
    *("ab", True, b"\x00\xff", dt.date(2024, 2, 29), dt.datetime(1999, 12, 31, 23, 59, 59, 1)),  # noqa: DTZ001
    *(ZONED, uuid.UUID(int=5), {"a": [1, None, "x"]}),
)
ROW: Final = (*VALUES[:-1], Jsonb(VALUES[-1]))
READ: Final = tuple("ab  " if value == "ab" else value for value in VALUES)
NULLS: Final = (2, *[None] * (len(COLUMNS) - 1))

Work = Callable[[Any], Awaitable[None]]


# ------------------------------------------------------------------ psycopg


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_psycopg_reads_every_type(server: Server, table: str, binary: bool) -> None:
    with server.psycopg() as connection, connection.cursor(binary=binary) as cursor:
        rows = cursor.execute(f"SELECT * FROM {table} ORDER BY id").fetchall()
        assert rows == [READ, NULLS]
        assert [column.name for column in cursor.description or ()] == list(COLUMNS)


@pytest.mark.parametrize(
    "values",
    [
        [1, 2, None],
        [1 << 40, 5],
        ["a", 'b "c"', None, "NULL", ""],
        [Decimal("1.50"), Decimal(-2)],
        [1.5, -0.25],
        [True, False],
        [dt.date(2024, 2, 29)],
        [ZONED],
        [uuid.UUID(int=7)],
        [b"\x00\x01"],
        [dt.timedelta(days=1, seconds=5)],
    ],
    ids=lambda values: type(values[0]).__name__,
)
@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_psycopg_gives_and_takes_lists(server: Server, values: list[Any], binary: bool) -> None:
    kind = {
        int: "bigint",
        str: "text",
        Decimal: "numeric",
        float: "float8",
        bool: "boolean",
        dt.date: "date",
        dt.datetime: "timestamptz",
        uuid.UUID: "uuid",
        bytes: "bytea",
        dt.timedelta: "interval",
    }[type(values[0])]
    with server.psycopg() as connection, connection.cursor(binary=binary) as cursor:
        assert cursor.execute(f"SELECT %s::{kind}[]", (values,)).fetchone() == (values,)
        found = cursor.execute(
            f"SELECT count(*) FROM unnest(%s::{kind}[]) x WHERE x = ANY(%s::{kind}[])",
            (values, values),
        ).fetchone()
        assert found == (sum(value is not None for value in values),)


def test_psycopg_finds_rows_by_a_list(server: Server, table: str) -> None:
    with server.psycopg() as connection:
        text = f"SELECT id FROM {table} WHERE id = ANY(%s) ORDER BY id"
        assert connection.execute(text, ([2, 1, 99],)).fetchall() == [(1,), (2,)]
        assert connection.execute(text, ([],)).fetchall() == []
        text = f"SELECT id FROM {table} WHERE words = ANY(%s)"
        assert connection.execute(text, (["ö 'x' \\ \t", "y"],)).fetchall() == [(1,)]
        assert connection.execute(
            f"SELECT id FROM {table} WHERE id <> ALL(%s)", ([1],)
        ).fetchall() == [(2,)]


def test_psycopg_counts_rows(server: Server, table: str) -> None:
    with server.psycopg() as connection, connection.cursor() as cursor:
        cursor.execute(f"UPDATE {table} SET small = 1")
        assert cursor.rowcount == 2
        cursor.executemany(f"INSERT INTO {table} (id) VALUES (%s)", [(5,), (6,), (7,)])
        assert cursor.rowcount == 3
        cursor.executemany(
            f"INSERT INTO {table} (id) VALUES (%s) RETURNING id * 2", [(8,), (9,)], returning=True
        )
        assert cursor.fetchall() == [(16,)]
        assert cursor.nextset()
        assert cursor.fetchall() == [(18,)]
        cursor.execute(f"DELETE FROM {table} WHERE id > 4")
        assert cursor.rowcount == 5
        cursor.execute(f"SELECT * FROM {table}")
        assert cursor.rowcount == 2


def fail_after(connection: psycopg.Connection[Any], text: str) -> None:
    with connection.transaction():
        connection.execute(text.encode())
        connection.execute("SELECT 1 / 0")


def test_psycopg_nests_transactions(server: Server, table: str) -> None:
    with server.psycopg(autocommit=True) as connection:
        with connection.transaction():
            connection.execute(f"INSERT INTO {table} (id) VALUES (10)")
            with pytest.raises(psycopg.errors.DivisionByZero):
                fail_after(connection, f"INSERT INTO {table} (id) VALUES (11)")
            with connection.transaction():
                connection.execute(f"INSERT INTO {table} (id) VALUES (12)")
        with connection.transaction(force_rollback=True):
            connection.execute(f"DELETE FROM {table}")
        found = connection.execute(f"SELECT id FROM {table} ORDER BY id").fetchall()
        assert found == [(1,), (2,), (10,), (12,)]


def test_psycopg_meets_a_failed_block(server: Server, table: str) -> None:
    with server.psycopg() as connection:
        connection.execute(f"INSERT INTO {table} (id) VALUES (20)")
        with pytest.raises(psycopg.errors.UndefinedColumn):
            connection.execute(f"SELECT nope FROM {table}")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            connection.execute("SELECT 1")
        connection.rollback()
        assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (2,)


def test_psycopg_pipelines(server: Server, table: str) -> None:
    with server.psycopg(autocommit=True) as connection, connection.pipeline() as pipeline:
        cursors = [
            connection.execute(f"SELECT {n} + id FROM {table} WHERE id = %s", (1,))
            for n in range(20)
        ]
        pipeline.sync()
        assert [cursor.fetchone() for cursor in cursors] == [(n + 1,) for n in range(20)]
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("SELECT * FROM nowhere").fetchone()
        pipeline.sync()
        assert connection.execute("SELECT 5").fetchone() == (5,)


def test_psycopg_prepares(server: Server, table: str) -> None:
    with server.psycopg(prepare_threshold=2) as connection:
        for n in range(8):
            found = connection.execute(f"SELECT %s + id FROM {table} WHERE id = 1", (n,))
            assert found.fetchone() == (n + 1,)
        connection.commit()
        with server.psycopg(autocommit=True) as other:
            other.execute(f"ALTER TABLE {table} ADD COLUMN more text DEFAULT 'new'")
        for _ in range(4):
            row = connection.execute(f"SELECT * FROM {table} WHERE id = %s", (1,), prepare=True)
            assert row.fetchone() == (*READ, "new")


def test_psycopg_copies(server: Server, table: str) -> None:
    with server.psycopg() as connection, connection.cursor() as cursor:
        with cursor.copy(f"COPY {table} (id, words, exact, truth) FROM STDIN") as copy:
            for n in range(100, 400):
                copy.write_row((n, f"row\t{n}\\ ö", Decimal(n) / 4, None if n % 2 else True))
        assert cursor.rowcount == 300
        cursor.execute(f"SELECT sum(exact), count(truth), max(words) FROM {table} WHERE id >= 100")
        assert cursor.fetchone() == (Decimal("18712.50"), 150, "row\t399\\ ö")
        connection.rollback()


def test_psycopg_copies_out(server: Server, table: str) -> None:
    with server.psycopg() as connection, connection.cursor() as cursor:
        with cursor.copy(
            "COPY (SELECT g, NULL, g::text || E'\\t' FROM generate_series(1, 3000) g) TO STDOUT"
        ) as copy:
            rows = list(copy.rows())
        assert rows[:1] + rows[-1:] == [("1", None, "1\t"), ("3000", None, "3000\t")]
        assert (len(rows), cursor.rowcount) == (3000, 3000)
        with cursor.copy(
            f"COPY {table} (id, words) TO STDOUT (FORMAT csv, HEADER, NULL '-')"
        ) as copy:
            text = b"".join(copy).decode()
        frame = pd.read_csv(StringIO(text), na_values="-")
        assert (list(frame.columns), len(frame)) == (["id", "words"], 2)
        kinds = ", ".join(COLUMNS)
        with cursor.copy(
            f"COPY (SELECT {kinds} FROM {table} ORDER BY id) TO STDOUT (FORMAT binary)"
        ) as copy:
            data = b"".join(copy)
        with cursor.copy(
            f"COPY (SELECT {kinds} FROM {table} ORDER BY id LIMIT 0) TO STDOUT BINARY"
        ) as copy:
            assert b"".join(copy) == data[:19] + b"\xff\xff"
        cursor.execute(f"DELETE FROM {table}")
        with cursor.copy(f"COPY {table} ({kinds}) FROM STDIN (FORMAT binary)") as copy:
            for begin in range(0, len(data), 7):
                copy.write(data[begin : begin + 7])
        assert cursor.rowcount == 2
        assert cursor.execute(f"SELECT * FROM {table} WHERE id = 1").fetchone() == READ
        connection.rollback()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("COPY nowhere TO STDOUT", "42P01"),
        ("COPY {table} (nothing) TO STDOUT", "42703"),
        ("COPY (SELECT nothing FROM {table}) TO STDOUT", "42703"),
        ("COPY (SELECT 1/(id - 2) FROM {table}) TO STDOUT", "22012"),
        ("COPY {table} TO STDOUT (FORMAT csv, FORCE_QUOTE (nothing))", "42703"),
        ("COPY {table} TO STDOUT (FORMAT binary, HEADER)", "0A000"),
        ("COPY {table} TO STDOUT (DELIMITER 'ab')", "0A000"),
    ],
)
def test_copies_out_that_fail(server: Server, table: str, text: str, code: str) -> None:
    with server.psycopg(autocommit=True) as connection, connection.cursor() as cursor:
        with pytest.raises(psycopg.Error) as caught, cursor.copy(text.format(table=table)) as copy:
            for _ in copy:
                pass
        assert caught.value.sqlstate == code
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_copy_out_is_cancelled_while_it_streams(server: Server) -> None:
    with server.psycopg(autocommit=True) as connection, connection.cursor() as cursor:
        endless = (
            "COPY (SELECT g, repeat('x', 1000) FROM generate_series(1, 100000000) g) TO STDOUT"
        )

        def cancelled() -> None:
            with cursor.copy(endless) as copy:
                for number, _ in enumerate(copy):
                    if number == 3:
                        connection.cancel_safe()

        with pytest.raises(psycopg.errors.QueryCanceled):
            cancelled()
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_time_zone_is_the_sessions(server: Server, table: str) -> None:
    with server.psycopg(autocommit=True, options="-c timezone=America/New_York") as connection:
        assert connection.info.parameter_status("TimeZone") == "America/New_York"
        noon = dt.datetime(2024, 7, 1, 12, tzinfo=ZoneInfo("Europe/Berlin"))
        text = "SELECT %s, '2024-07-01 06:00'::timestamptz, %s::text, %s = '2024-07-01 06:00'"
        row = connection.execute(text, (noon, noon, noon)).fetchone()
        assert row == (noon, noon, "2024-07-01 06:00:00-04", True)
        assert row[0].utcoffset() == dt.timedelta(hours=-4)
        connection.execute("SET TIME ZONE 'Asia/Tokyo'")
        assert connection.info.parameter_status("TimeZone") == "Asia/Tokyo"
        binary = connection.cursor(binary=True).execute("SELECT %s", (noon,)).fetchone()
        assert binary == (noon,)
        assert binary[0].utcoffset() == dt.timedelta(hours=9)
        with connection.transaction(force_rollback=True):
            connection.execute("SET LOCAL TIME ZONE 'UTC'")
            assert connection.execute("SELECT %s::text", (noon,)).fetchone() == (
                "2024-07-01 10:00:00+00",
            )
        assert connection.execute("SHOW timezone").fetchone() == ("Asia/Tokyo",)


def test_psycopg_leaves_types_open(server: Server, table: str) -> None:
    """Texts have no type until the statement says one; NULL has none at all."""
    with server.psycopg() as connection:
        one = connection.execute(
            f"SELECT id FROM {table} WHERE day = %s AND exact > %s AND name = %s AND small < %s",
            ("2024-02-29", "3", "00000000-0000-0000-0000-000000000005", None),
        )
        assert one.fetchall() == []
        text = "SELECT %s, %s::integer, coalesce(%s, 'x')"
        assert connection.execute(text, ("a", "5", None)).fetchone() == ("a", 5, "x")


def test_psycopg_async(server: Server, table: str) -> None:
    async def work() -> None:
        async with await psycopg.AsyncConnection.connect(server.dsn) as connection:
            cursor = await connection.execute(f"SELECT id FROM {table} WHERE id = ANY(%s)", ([1],))
            assert await cursor.fetchall() == [(1,)]
            async with connection.transaction():
                await connection.execute(f"UPDATE {table} SET small = 3")
            async with connection.cursor() as rows:
                await rows.execute(f"SELECT small FROM {table}")
                assert [row async for row in rows] == [(3,), (3,)]

    asyncio.run(work())


def test_psycopg_streams(server: Server) -> None:
    with server.psycopg() as connection, connection.cursor() as cursor:
        found = [n for (n,) in cursor.stream("SELECT x FROM generate_series(1, 1000) x")]
        assert found == list(range(1, 1001))


def test_psycopg_cancels(server: Server) -> None:
    with server.psycopg(autocommit=True) as connection:
        connection.execute("SET statement_timeout = '50ms'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute(
                "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b"
            )
        connection.execute("SET statement_timeout = 0")
        assert connection.execute("SELECT 1").fetchone() == (1,)


# ------------------------------------------------------------------ cursors


@pytest.fixture
def many(server: Server) -> Iterator[str]:
    with server.psycopg(autocommit=True) as connection:
        connection.execute("CREATE TABLE many (id integer PRIMARY KEY, name text)")
        connection.execute("INSERT INTO many SELECT n, 'n' || n FROM generate_series(1, 5000) AS n")
        yield "many"
        connection.execute("DROP TABLE many")


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_psycopgs_named_cursors(server: Server, many: str, binary: bool) -> None:
    with server.psycopg() as connection, connection.cursor("a b", binary=binary) as cursor:
        cursor.execute(f"SELECT id, name FROM {many} WHERE id > %s ORDER BY id", (10,))
        assert [column.name for column in cursor.description or ()] == ["id", "name"]
        assert cursor.fetchone() == (11, "n11")
        assert cursor.fetchmany(2) == [(12, "n12"), (13, "n13")]
        cursor.itersize = 700
        assert [row[0] for row in cursor] == [*range(14, 5001)]
        assert cursor.fetchone() is None
    with server.psycopg() as connection, connection.cursor("s", scrollable=True) as cursor:
        cursor.execute(f"SELECT id FROM {many} ORDER BY id")
        cursor.scroll(4999)
        assert cursor.fetchone() == (5000,)
        cursor.scroll(0, mode="absolute")
        assert cursor.fetchone() == (1,)
    with (
        server.psycopg(autocommit=True) as connection,
        connection.cursor("h", withhold=True, scrollable=False) as cursor,
    ):
        cursor.execute(f"SELECT id FROM {many} ORDER BY id")
        connection.execute(f"DELETE FROM {many} WHERE id = 2")
        assert cursor.fetchmany(3) == [(1,), (2,), (3,)]
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
            cursor.scroll(-1)


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


def test_sqlalchemy_streams(engine: sa.Engine, many: str) -> None:
    asked = sa.text(f"SELECT id, name FROM {many} ORDER BY id")
    with engine.connect().execution_options(stream_results=True, max_row_buffer=500) as connection:
        assert [row.id for row in connection.execute(asked)] == [*range(1, 5001)]
        parts = connection.execute(asked).partitions(1200)
        assert [len(part) for part in parts] == [1200, 1200, 1200, 1200, 200]


def test_pandas_reads_in_chunks(engine: sa.Engine, many: str) -> None:
    with engine.connect().execution_options(stream_results=True) as connection:
        asked = sa.text(f"SELECT id, name FROM {many} ORDER BY id")
        chunks = list(pd.read_sql(asked, connection, chunksize=2000))
    assert [len(chunk) for chunk in chunks] == [2000, 2000, 1000]
    assert chunks[2]["name"].iloc[-1] == "n5000"


# ------------------------------------------------------------------ asyncpg


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
        if kind != "jsonb":
            text = f"SELECT $1::{kind} = ANY($2::{kind}[])"
            assert await connection.fetchval(text, value, many) is True

    with_asyncpg(server, work)


def test_asyncpg_reads_every_type(server: Server, table: str) -> None:
    async def work(connection: Any) -> None:
        rows = await connection.fetch(f"SELECT * FROM {table} ORDER BY id")
        assert tuple(rows[0])[:-1] == READ[:-1]
        assert rows[0]["doc"] == '{"a": [1, null, "x"]}'
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


# ------------------------------------------------------------------ SQLAlchemy


class Base(orm.DeclarativeBase):
    pass


class Airline(Base):
    __tablename__ = "airline"
    code: orm.Mapped[str] = orm.mapped_column(sa.String(3), primary_key=True)
    name: orm.Mapped[str]
    founded: orm.Mapped[dt.date | None]
    routes: orm.Mapped[list[Route]] = orm.relationship(
        back_populates="airline", order_by="Route.id"
    )


class Route(Base):
    __tablename__ = "route"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True, autoincrement=False)
    code: orm.Mapped[str] = orm.mapped_column(sa.ForeignKey("airline.code"), index=True)
    price: orm.Mapped[Decimal] = orm.mapped_column(sa.Numeric(10, 2))
    seen: orm.Mapped[dt.datetime | None] = orm.mapped_column(sa.DateTime(timezone=True))
    extra: orm.Mapped[dict[str, Any] | None] = orm.mapped_column(postgresql.JSONB)
    active: orm.Mapped[bool] = orm.mapped_column(default=True)
    airline: orm.Mapped[Airline] = orm.relationship(back_populates="routes")


@pytest.fixture
def engine(server: Server) -> Iterator[sa.Engine]:
    engine = sa.create_engine(server.url("psycopg"))
    try:
        Base.metadata.drop_all(engine)
        Base.metadata.create_all(engine)
        yield engine
        Base.metadata.drop_all(engine)
    finally:
        engine.dispose()


def test_schema_changes_in_a_transaction(server: Server) -> None:
    with server.psycopg() as client, server.psycopg(autocommit=True) as other:
        client.execute("CREATE TABLE made (id int PRIMARY KEY, t text)")
        client.execute("CREATE INDEX ON made (t)")
        client.cursor().executemany("INSERT INTO made VALUES (%s, %s)", [(1, "a"), (2, "b")])
        assert client.execute("SELECT t FROM made ORDER BY id DESC").fetchall() == [("b",), ("a",)]
        assert other.execute("SELECT to_regclass('made')").fetchone() == (None,)
        client.rollback()
        client.execute("CREATE TABLE made (id int, x numeric(5, 2))")
        with client.cursor().copy("COPY made FROM STDIN") as copy:
            copy.write_row((7, Decimal("1.5")))
        with pytest.raises(psycopg.errors.DuplicateTable), client.transaction():
            client.execute("CREATE TABLE made (a int)")
        client.commit()
        assert other.execute("SELECT * FROM made").fetchall() == [(7, Decimal("1.50"))]
        client.execute("DROP TABLE made")
        client.commit()
        assert other.execute("SELECT to_regclass('made')").fetchone() == (None,)


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
def test_sqlalchemy_makes_and_drops_tables(server: Server, driver: str) -> None:
    """The two refer to each other, so that both are made and dropped by ALTER TABLE, too."""
    tables = sa.MetaData()
    sa.Table(
        "thing",
        tables,
        sa.Column("id", sa.Uuid, primary_key=True),
        sa.Column("part", sa.ForeignKey("part.n", name="thing_part", use_alter=True)),
    )
    sa.Table(
        "part",
        tables,
        sa.Column("n", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("kind", sa.String(5), index=True),
        sa.Column("thing", sa.ForeignKey("thing.id", name="part_thing")),
    )

    def names(connection: sa.Connection) -> set[str]:
        return set(sa.inspect(connection).get_table_names()) & {"thing", "part"}

    async def work() -> None:
        engine = sa_asyncio.create_async_engine(server.url(driver))
        try:
            async with engine.begin() as connection:
                await connection.run_sync(tables.create_all)
                assert await connection.run_sync(names) == {"thing", "part"}
                await connection.execute(sa.insert(tables.tables["part"]), {"n": 1, "name": "a"})
                await connection.run_sync(tables.create_all)
            async with engine.begin() as connection:
                found = await connection.execute(sa.select(tables.tables["part"]))
                assert found.all() == [(1, "a", None, None)]
                await connection.run_sync(tables.drop_all)
            async with engine.connect() as connection:
                assert await connection.run_sync(names) == set()
        finally:
            await engine.dispose()

    asyncio.run(work())


def fill(session: orm.Session) -> None:
    lh = Airline(code="LH", name="Lufthansa", founded=dt.date(1953, 1, 6))
    lh.routes = [
        Route(id=1, price=Decimal("99.50"), seen=ZONED, extra={"meal": ["a", None]}),
        Route(id=2, price=Decimal("10.00"), active=False),
    ]
    session.add_all([lh, Airline(code="BA", name="British Airways")])
    session.commit()


def test_sqlalchemy_orm(engine: sa.Engine) -> None:
    with orm.Session(engine) as session:
        fill(session)
    with orm.Session(engine) as session:
        lh = session.get_one(Airline, "LH")
        assert [(r.id, r.price, r.active) for r in lh.routes] == [
            (1, Decimal("99.50"), True),
            (2, Decimal("10.00"), False),
        ]
        assert lh.routes[0].seen == ZONED
        assert lh.routes[0].extra == {"meal": ["a", None]}
        lh.routes[1].price += 1
        lh.name = "Deutsche Lufthansa"
        session.flush()
        session.delete(lh.routes[0])
        session.commit()
        counted = sa.select(Airline.code, sa.func.count(Route.id)).join(Route, isouter=True)
        found = session.execute(counted.group_by(Airline.code).order_by(Airline.code)).all()
        assert [tuple(row) for row in found] == [("BA", 0), ("LH", 1)]
        many = session.scalars(
            sa.select(Airline)
            .where(Airline.code.in_(["BA", "LH", "XX"]))
            .order_by(Airline.code)
            .options(orm.selectinload(Airline.routes))
        ).all()
        assert [(a.code, len(a.routes)) for a in many] == [("BA", 0), ("LH", 1)]


def test_sqlalchemy_core(engine: sa.Engine) -> None:
    with orm.Session(engine) as session:
        fill(session)
    with engine.begin() as connection:
        made = connection.execute(
            sa.insert(Route).returning(Route.id, Route.active),
            [{"id": n, "code": "BA", "price": n} for n in range(10, 13)],
        )
        assert sorted(map(tuple, made)) == [(10, True), (11, True), (12, True)]
        insert = postgresql.insert(Airline).values(code="LH", name="x")
        upsert = insert.on_conflict_do_update(
            index_elements=[Airline.code], set_={"name": insert.excluded.name + "!"}
        )
        assert connection.execute(upsert.returning(Airline.name)).scalar_one() == "x!"
        nothing = postgresql.insert(Airline).values(code="LH", name="y").on_conflict_do_nothing()
        assert connection.execute(nothing.returning(Airline.code)).all() == []
        updated = connection.execute(sa.update(Route).values(price=Route.price * 2))
        assert updated.rowcount == 5
        deleted = connection.execute(sa.delete(Route).where(Route.id >= 11).returning(Route.id))
        assert sorted(deleted.scalars()) == [11, 12]
        assert connection.execute(sa.select(sa.func.sum(Route.price))).scalar() == Decimal("239.00")
        some = sa.select(Route.id).where(
            Route.id == sa.any_(sa.literal([1, 10], sa.ARRAY(sa.Integer)))
        )
        assert sorted(connection.execute(some).scalars()) == [1, 10]
        window = sa.select(Route.id, sa.func.rank().over(order_by=Route.price.desc())).order_by(
            Route.id
        )
        assert [tuple(row) for row in connection.execute(window)] == [(1, 1), (2, 2), (10, 2)]
        like = sa.select(Airline.code).where(Airline.name.regexp_match("^Brit"))
        assert connection.execute(like).scalars().all() == ["BA"]
    with pytest.raises(sa.exc.IntegrityError), engine.begin() as connection:
        connection.execute(sa.insert(Airline).values(code="LH", name="again"))
    with pytest.raises(sa.exc.IntegrityError), engine.begin() as connection:
        connection.execute(sa.insert(Route).values(id=77, code="??", price=1))


def add_nested(session: orm.Session, made: Base) -> None:
    with session.begin_nested():
        session.add(made)
        session.flush()


def test_sqlalchemy_nests_transactions(engine: sa.Engine) -> None:
    with orm.Session(engine) as session:
        fill(session)
        with pytest.raises(sa.exc.IntegrityError):
            add_nested(session, Airline(code="BA", name="twice"))
        session.add(Airline(code="AF", name="Air France"))
        session.commit()
        codes = session.scalars(sa.select(Airline.code).order_by(Airline.code)).all()
        assert codes == ["AF", "BA", "LH"]


def test_sqlalchemy_inspects(engine: sa.Engine) -> None:
    inspector = sa.inspect(engine)
    assert sorted(inspector.get_table_names()) == ["airline", "route"]
    assert inspector.has_table("route")
    assert not inspector.has_table("nowhere")
    columns = {c["name"]: c for c in inspector.get_columns("route")}
    assert {name: (str(c["type"]), c["nullable"]) for name, c in columns.items()} == {
        "id": ("INTEGER", False),
        "code": ("VARCHAR(3)", False),
        "price": ("NUMERIC(10, 2)", False),
        "seen": ("TIMESTAMP", True),
        "extra": ("JSONB", True),
        "active": ("BOOLEAN", False),
    }
    assert inspector.get_pk_constraint("route")["constrained_columns"] == ["id"]
    (foreign,) = inspector.get_foreign_keys("route")
    assert (foreign["constrained_columns"], foreign["referred_table"]) == (["code"], "airline")
    assert foreign["referred_columns"] == ["code"]
    assert [(i["name"], i["column_names"]) for i in inspector.get_indexes("route")] == [
        ("ix_route_code", ["code"])
    ]
    assert inspector.get_indexes("airline") == []


def shape(metadata: sa.MetaData, engine: sa.Engine) -> dict[str, Any]:
    """All that a migration tool compares."""
    return {
        table.name: (
            {
                c.name: (c.type.compile(engine.dialect), c.nullable, c.primary_key)
                for c in table.columns
            },
            {(i.name, tuple(i.columns.keys()), i.unique) for i in table.indexes},
            {
                (tuple(k.column_keys), k.referred_table.name, k.ondelete)
                for k in table.foreign_key_constraints
            },
        )
        for table in metadata.sorted_tables
    }


def test_sqlalchemy_reflects(engine: sa.Engine) -> None:
    metadata = sa.MetaData()
    metadata.reflect(engine)
    assert sorted(metadata.tables) == ["airline", "route"]
    route = metadata.tables["route"]
    assert [key.target_fullname for key in route.foreign_keys] == ["airline.code"]
    assert shape(metadata, engine) == shape(Base.metadata, engine), "nothing to migrate"
    metadata.drop_all(engine)
    metadata.create_all(engine)
    again = sa.MetaData()
    again.reflect(engine)
    assert shape(again, engine) == shape(Base.metadata, engine)
    with engine.begin() as connection:
        connection.execute(sa.insert(metadata.tables["airline"]).values(code="X", name="y"))
        assert connection.execute(sa.select(sa.func.count()).select_from(route)).scalar() == 0


@asynccontextmanager
async def over_asyncpg(server: Server) -> AsyncIterator[sa_asyncio.AsyncEngine]:
    """Whatever fails, no connection is left to the collector, which blames another test for it."""
    made = sa_asyncio.create_async_engine(server.url("asyncpg"))
    try:
        yield made
    finally:
        await made.dispose()


def test_sqlalchemy_over_asyncpg(server: Server, engine: sa.Engine) -> None:
    async def work(made: sa_asyncio.AsyncEngine) -> None:
        sessions = sa_asyncio.async_sessionmaker(made, expire_on_commit=False)
        async with sessions() as session:
            await session.run_sync(fill)
        async with sessions() as session:
            chosen = sa.select(Airline).options(orm.selectinload(Airline.routes))
            found = (await session.scalars(chosen.order_by(Airline.code))).all()
            assert [(a.code, [r.price for r in a.routes]) for a in found] == [
                ("BA", []),
                ("LH", [Decimal("99.50"), Decimal("10.00")]),
            ]
            assert found[1].routes[0].seen == ZONED
            assert found[1].routes[0].extra == {"meal": ["a", None]}
            found[0].name = "BA"
            session.add(Route(id=5, code="BA", price=Decimal(1)))
            await session.commit()
        async with made.connect() as connection:
            tables = await connection.run_sync(lambda c: sa.inspect(c).get_table_names())
            assert sorted(tables) == ["airline", "route"]

    async def run() -> None:
        async with over_asyncpg(server) as made:
            await work(made)

    asyncio.run(run())


def test_sqlalchemy_over_asyncpg_meets_a_schema_change(server: Server, engine: sa.Engine) -> None:
    """The first statement afterwards may fail, and says so; the next one is prepared anew."""

    async def work(made: sa_asyncio.AsyncEngine) -> None:
        text = sa.text("SELECT * FROM airline WHERE code = :code")
        async with made.connect() as connection:
            assert (await connection.execute(text, {"code": "LH"})).all() == []
        with server.psycopg(autocommit=True) as other:
            other.execute("ALTER TABLE airline ADD COLUMN more integer")
        for attempt in range(2):
            try:
                async with made.connect() as connection:
                    keys = list((await connection.execute(text, {"code": "LH"})).keys())
                    assert keys == ["code", "name", "founded", "more"]
            except sa.exc.DBAPIError:
                assert attempt == 0

    async def run() -> None:
        async with over_asyncpg(server) as made:
            await work(made)

    asyncio.run(run())


# ------------------------------------------------------------------ pandas


def test_pandas(server: Server) -> None:
    engine = sa.create_engine(server.url("psycopg"))
    frame = pd.DataFrame(
        {
            "n": [1, 2, 3],
            "x": [1.5, float("nan"), -2.25],
            "t": ["a", None, "ö"],
            "b": [True, False, True],
            "d": pd.to_datetime(["2024-02-29 01:02:03", None, "1999-12-31 00:00:00"]),
        }
    )
    try:
        frame.to_sql("frame", engine, index=False, if_exists="replace")
        found = pd.read_sql("SELECT * FROM frame ORDER BY n", engine)
        pd.testing.assert_frame_equal(found, frame, check_dtype=False, check_column_type=False)
        frame.to_sql("frame", engine, index=False, if_exists="replace")  # of one that is there
        pd.testing.assert_frame_equal(
            pd.read_sql("SELECT * FROM frame ORDER BY n", engine),
            *(frame,),
            check_dtype=False,
            check_column_type=False,
        )
        frame.to_sql("frame", engine, index=False, if_exists="append", method="multi")
        assert pd.read_sql("SELECT count(*) AS c FROM frame", engine)["c"].tolist() == [6]
        some = pd.read_sql(
            "SELECT n FROM frame WHERE n = ANY(%(wanted)s) ORDER BY n",
            engine,
            params={"wanted": [1, 3]},
        )
        assert some["n"].tolist() == [1, 1, 3, 3]
        assert len(pd.read_sql_table("frame", engine)) == 6
        with engine.connect() as connection:
            parts = list(pd.read_sql("SELECT n FROM frame", connection, chunksize=4))
            assert [len(part) for part in parts] == [4, 2]
    finally:
        with engine.begin() as connection:
            connection.execute(sa.text("DROP TABLE IF EXISTS frame"))
        assert not sa.inspect(engine).has_table("frame")
        engine.dispose()
