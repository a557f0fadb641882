"""Rows that a part of a statement has given, as temporary tables of a connection, which the parts
behind it read."""

# ruff: noqa: S608 - statement text comes from integer ids alone, values are bound

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final
from weakref import WeakKeyDictionary

import apsw

from leasehold.catalog.physical_names import kept_name
from leasehold.sql.planning.plan import PlannedPart

KEPT_TABLES_MAX: Final = 100
_KEPT_TABLES: Final[WeakKeyDictionary[apsw.Connection, set[str]]] = WeakKeyDictionary()
"""Of each connection: a table that comes or goes would have all that was prepared on the connection
prepared anew, so they stay, empty, for the next statement."""


def keep_rows(
    connection: apsw.Connection, part: PlannedPart, rows: Sequence[Sequence[Any]]
) -> None:
    """Put the rows of a part where those behind it read them, within `kept_tables`."""
    holes = ", ".join("?" * part.width)
    name = kept_name(part.number, part.width)
    values = (row or (1,) for row in rows)  # a row without columns has one for SQLite
    connection.executemany(f"INSERT INTO temp.{name} VALUES ({holes})", values)


@contextmanager
def kept_tables(connection: apsw.Connection, parts: Sequence[PlannedPart]) -> Iterator[None]:
    """Let the tables of these parts be there, empty, for the statement that runs in here."""
    widths = [(part.number, part.width) for part in parts if part.width]
    names = [kept_name(*width) for width in widths]
    if not names:
        yield
        return
    read_only = connection.pragma("query_only")
    connection.execute("PRAGMA query_only = 0")  # what is written is of this connection alone
    known = _KEPT_TABLES.setdefault(connection, set())
    try:
        if len(known) > KEPT_TABLES_MAX:
            for name in known:
                connection.execute(f"DROP TABLE IF EXISTS temp.{name}")
            known.clear()
        for name, (_, width) in zip(names, widths, strict=True):
            if name not in known:
                columns = ", ".join(f"o{n}" for n in range(width))
                connection.execute(f"CREATE TEMP TABLE IF NOT EXISTS {name} ({columns})")
                known.add(name)
        yield
    finally:
        for name in known.intersection(names):
            connection.execute(f"DELETE FROM temp.{name}")
        connection.execute(f"PRAGMA query_only = {int(read_only)}")
