"""How many rows each table of a store has: kept with every commit, so that nobody has to count.

What is kept lies in the transaction that changes the rows (L6), so it is right after a crash too.
It is for estimates; nothing is decided by it.
"""

# ruff: noqa: S608 - statement text comes from integer ids alone, values are bound

from __future__ import annotations

from typing import Final

import apsw

from leasehold.adapters.sqlite.layout import table_name

_MAKE: Final = """
CREATE TABLE IF NOT EXISTS row_counts (table_id INTEGER PRIMARY KEY, rows INTEGER NOT NULL)
"""
_ADD: Final = """
INSERT INTO row_counts VALUES (?1, ?2) ON CONFLICT (table_id) DO UPDATE SET rows = rows + ?2
"""


class RowCounts:
    """The counts as the writer keeps them. `changed`: table id → rows more or less than at the last
    commit."""

    def __init__(self, connection: apsw.Connection) -> None:
        """Tables of an earlier program's store are counted here, once, before the node runs."""
        self._connection = connection
        self._saved: list[dict[int, int]] = []
        self.changed: dict[int, int] = {}
        with connection:
            connection.execute(_MAKE)
            for table_id in self._uncounted():
                rows = connection.execute(f"SELECT count(*) FROM {table_name(table_id)}").get
                connection.execute(_ADD, (table_id, rows))

    def _uncounted(self) -> list[int]:
        found = self._connection.execute(
            "SELECT CAST(substr(name, 2) AS INTEGER) AS id FROM sqlite_schema"
            " WHERE type = 'table' AND name GLOB 't[0-9]*'"
            " AND id NOT IN (SELECT table_id FROM row_counts)"
        )
        return sorted(int(table_id) for (table_id,) in found)

    def rows(self, table_id: int) -> int:
        """Return a table's rows as the writer sees them, uncommitted changes included."""
        kept = self._connection.execute(
            "SELECT rows FROM row_counts WHERE table_id = ?", (table_id,)
        ).get
        return (kept or 0) + self.changed.get(table_id, 0)

    def add(self, table_id: int, rows: int) -> None:
        self.changed[table_id] = self.changed.get(table_id, 0) + rows

    def commit(self) -> None:
        """Write the changed counts, inside the transaction that is about to end."""
        self._connection.executemany(_ADD, self.changed.items())
        self.changed = {}

    def rollback(self) -> None:
        self.changed = {}
        self._saved.clear()

    def savepoint(self) -> None:
        self._saved.append(dict(self.changed))

    def release(self) -> None:
        self._saved.pop()

    def rollback_to(self) -> None:
        self.changed = self._saved.pop()


def read_counts(connection: apsw.Connection) -> dict[int, int]:
    """Return the rows of all tables by id, as of the snapshot that the connection has open."""
    return dict(connection.execute("SELECT table_id, rows FROM row_counts"))


def forget_rows(connection: apsw.Connection, table_id: int) -> None:
    """Delete the count of a table that is gone from the file."""
    connection.execute("DELETE FROM row_counts WHERE table_id = ?", (table_id,))
