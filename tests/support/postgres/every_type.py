"""A table with a column of every type, and what clients read of its two rows."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from ipaddress import ip_address
from typing import Final

from psycopg.types.json import Jsonb

DDL: Final = """
    CREATE TABLE every (
        id integer PRIMARY KEY, small smallint, big bigint, exact numeric(10,2), open numeric,
        double double precision, words text, short varchar(20), padded char(4), truth boolean,
        bytes bytea, day date, moment timestamp, zoned timestamptz, name uuid, doc jsonb,
        single real, clock time, zoned_clock timetz, span interval, host inet, numbers int[]
    )
"""
COLUMNS: Final = (
    *("id", "small", "big", "exact", "open", "double", "words", "short", "padded", "truth"),
    *("bytes", "day", "moment", "zoned", "name", "doc"),
    *("single", "clock", "zoned_clock", "span", "host", "numbers"),
)
INSERT: Final = f"INSERT INTO every VALUES ({', '.join(['%s'] * len(COLUMNS))})"
ZONED: Final = dt.datetime(2024, 2, 29, 12, 34, 56, 789000, tzinfo=dt.UTC)
VALUES: Final = (
    *(1, -7, 1 << 40, Decimal("12.50"), Decimal("1.5000"), -1.5e-300, "ö 'x' \\ \t", "short"),
    *("ab", True, b"\x00\xff", dt.date(2024, 2, 29), dt.datetime(1999, 12, 31, 23, 59, 59, 1)),  # noqa: DTZ001
    *(ZONED, uuid.UUID(int=5), {"a": [1, None, "x"]}),
    *(0.25, dt.time(10, 20, 30, 5), dt.time(1, 2, 3, tzinfo=dt.UTC), dt.timedelta(3, 7, 9)),
    *(ip_address("10.1.2.3"), [1, None, -3]),
)
ROW: Final = tuple(Jsonb(value) if isinstance(value, dict) else value for value in VALUES)
READ: Final = tuple("ab  " if value == "ab" else value for value in VALUES)
NULLS: Final = (2, *[None] * (len(COLUMNS) - 1))
