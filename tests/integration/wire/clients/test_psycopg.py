"""psycopg 3, on our listener and on PostgreSQL: values, lists, blocks, pipelines, COPY, cursors.

Goal and method: conftest.py.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import uuid
from decimal import Decimal
from io import StringIO
from typing import Any
from zoneinfo import ZoneInfo

import pandas as pd
import psycopg
import pytest

from tests.support.postgres.client_server import Server
from tests.support.postgres.every_type import COLUMNS, NULLS, READ, ZONED

pytestmark = pytest.mark.integration


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
