"""What a store still knows of the past: from which LSN on, and the ids of what is collected."""

from __future__ import annotations

from typing import Final

import apsw

_MAKE: Final = """
CREATE TABLE IF NOT EXISTS history (one INTEGER PRIMARY KEY CHECK (one = 1), floor_lsn INTEGER);
CREATE TABLE IF NOT EXISTS collected (
    table_id INTEGER NOT NULL, element_id INTEGER NOT NULL,
    PRIMARY KEY (table_id, element_id)) WITHOUT ROWID;
"""
# An earlier program's store does not know when its versions began: its history starts now.
_BEGIN: Final = """
INSERT OR IGNORE INTO history
SELECT 1, iif(EXISTS (SELECT 1 FROM descriptors), lsn, 0) FROM position
"""


def make_history(connection: apsw.Connection) -> None:
    with connection:
        connection.execute(_MAKE)
        connection.execute(_BEGIN)


def history_floor(connection: apsw.Connection) -> int:
    """The LSN from which on everything that was current is kept."""
    floor = connection.execute("SELECT floor_lsn FROM history").get
    assert isinstance(floor, int), "made with the file"
    return floor


def raise_floor(connection: apsw.Connection, lsn: int) -> None:
    connection.execute("UPDATE history SET floor_lsn = max(floor_lsn, ?)", (lsn,))


def collected_elements(connection: apsw.Connection, table_id: int) -> frozenset[int]:
    """Columns and indexes that collected versions named: what is left of them is known to be so."""
    found = connection.execute("SELECT element_id FROM collected WHERE table_id = ?", (table_id,))
    return frozenset(int(element_id) for (element_id,) in found)


def keep_elements(connection: apsw.Connection, table_id: int, elements: frozenset[int]) -> None:
    connection.executemany(
        "INSERT OR IGNORE INTO collected VALUES (?, ?)", [(table_id, e) for e in sorted(elements)]
    )
