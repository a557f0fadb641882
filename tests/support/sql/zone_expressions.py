"""Random expressions that depend on the session's time zone, and what they are here."""

from __future__ import annotations

from random import Random
from typing import Final

import apsw

from leasehold.adapters.sqlite.query import run
from leasehold.catalog.descriptor import Descriptor
from leasehold.model.errors import LeaseholdError, UnknownTable
from leasehold.sql.functions.system.session import NOBODY, CallerContext
from leasehold.sql.planning.plan import prepare
from leasehold.values.time_zone import zone_of_setting
from tests.support.sql.value_expressions import NAMES, WORDS

ZONES: Final = (
    *("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "UTC"),
    *("America/St_Johns", "Pacific/Apia", "Europe/Dublin", "Africa/Monrovia", "-7.5", "FOO+3"),
    *("EST5EDT", "CET-1CEST,M3.5.0,M10.5.0/3", "<+0330>-3:30", "+05:30"),
)
_CHANGES: Final = (
    *("2020-03-29 02:30:00", "2020-10-25 02:30:00", "2020-03-08 02:30", "2020-11-01 01:30:00.25"),
    *("2011-12-30 12:00:00", "2021-10-03 02:15:00", "2021-04-04 01:45", "1971-06-01 00:00:00"),
    *("2020-07-01 12:00:00", "2020-01-31 23:59:59.999999", "1945-05-24 02:30", "2038-01-19 03:14"),
    *("1850-01-01 00:00:00", "2100-03-28 02:30", "2020-02-29 00:00:00"),
)


_UNITS: Final = (*WORDS["extract"][:18], "timezone", "timezone_hour", "timezone_minute")


def random_expression(random: Random) -> str:
    """A random expression that depends on the session's time zone, as SQL."""
    change = f"'{random.choice(_CHANGES)}'"
    zone = random.choice(("CET", "EDT", "Asia/Tokyo", "-3"))
    timestamp = random.choice(
        [
            f"CAST({change} AS timestamptz)",
            f"CAST('{random.choice(_CHANGES)}+00' AS timestamptz)",
            f"CAST('{random.choice(_CHANGES)} {zone}' AS timestamptz)",
            f"CAST(CAST({change} AS timestamp) AS timestamptz)",
            f"CAST(CAST({change} AS date) AS timestamptz)",
            f"({change} AT TIME ZONE '{random.choice(WORDS['timezone'])}')",
            f"CAST(CAST({change} AS text) AS timestamptz)",
            f"make_timestamptz(2020, {random.choice((3, 10))}, {random.randint(1, 31)}, 2, 30, 0)",
        ]
    )
    unit = random.choice(_UNITS)
    trunc = random.choice(WORDS["date_trunc"])
    span = random.choice(("1 day", "-1 day", "1 month", "-5 months", "24 hours", "1 mon 1 day 1 h"))
    return random.choice(
        [
            timestamp,
            timestamp,
            f"CAST({timestamp} AS timestamp)",
            f"CAST({timestamp} AS date)",
            f"CAST({timestamp} AS text)",
            f"('at ' || {timestamp})",
            f"concat({timestamp}, 1)",
            f"to_jsonb({timestamp})",
            f"jsonb_build_object('at', {timestamp})",
            f"format('%s', {timestamp})",
            f"array_to_string(ARRAY[{timestamp}], ',')",
            f"CAST(ARRAY[{timestamp}] AS text)",
            f"CAST(CAST('{{{change[1:-1].replace(' ', 'T')}}}' AS timestamptz[]) AS text)",
            f"extract({unit} FROM {timestamp})",
            f"date_part('{unit}', {timestamp})",
            f"date_trunc('{trunc}', {timestamp})",
            f"date_trunc('{trunc}', {timestamp}, '{random.choice(ZONES[:5])}')",
            f"({timestamp} + interval '{span}')",
            f"({timestamp} - interval '{span}')",
            f"(interval '{span}' + {timestamp})",
            f"age({timestamp}, timestamptz '2019-12-31 13:00')",
            f"to_char({timestamp}, '{random.choice(WORDS['to_char'])}')",
            "to_timestamp('2020-03-29 02:30', 'YYYY-MM-DD HH24:MI')",
            f"({timestamp} AT TIME ZONE '{random.choice(WORDS['timezone'])}')",
            f"({timestamp} = timestamp {change})",
            f"({timestamp} >= date '2020-03-29')",
            f"(SELECT jsonb_agg(x) FROM (VALUES ({timestamp})) AS given (x))",
            f"(SELECT min(x) FROM (VALUES ({timestamp})) AS given (x))",
            f"(CASE WHEN {timestamp} > '2020-06-01' THEN 'later' ELSE 'before' END)",
        ]
    )


def ours(zone: str, expression: str) -> str:
    """As `value_oracle.Oracle.answers` says it."""
    text = f"SELECT v, coalesce(v::text, 'NULL') FROM (SELECT {expression} AS v) AS x"
    where = zone_of_setting(zone)
    timestamp = CallerContext.of(0, b"seed", NOBODY._replace(zone=where))
    try:
        prepared = prepare(text, no_table, zone=where)
        ((_, shown),) = run(apsw.Connection(":memory:"), prepared, context=timestamp).all()
    except LeaseholdError as error:
        return f"error:{error.sqlstate}:{error.message}"
    assert prepared.columns is not None
    kind = prepared.columns[0].kind.name
    return f"value:{NAMES.get(kind, kind)}|{shown}"


def no_table(name: str) -> Descriptor:
    raise UnknownTable(f"there is no table {name}")
