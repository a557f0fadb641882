"""What a store still knows of the past: from which LSN on, and the ids of what is collected."""

from __future__ import annotations

from typing import Final

import apsw
import msgpack

_MAKE: Final = """
CREATE TABLE IF NOT EXISTS history (one INTEGER PRIMARY KEY CHECK (one = 1), floor_lsn INTEGER);
CREATE TABLE IF NOT EXISTS collected (
    table_id INTEGER NOT NULL, element_id INTEGER NOT NULL,
    PRIMARY KEY (table_id, element_id)) WITHOUT ROWID;
"""


def make_history(connection: apsw.Connection) -> None:
    """An earlier program does not say when a version begins: where it has written one, before or
    in between, history starts now, with that version as its oldest."""
    with connection:
        connection.execute(_MAKE)
        connection.execute("INSERT OR IGNORE INTO history VALUES (1, 0)")
        found = connection.execute("SELECT table_id, version, body FROM descriptors").fetchall()
        lsn = connection.execute("SELECT lsn FROM position").get
        assert isinstance(lsn, int), "made with the file"
        for table_id, version, packed in found:
            body = msgpack.unpackb(packed, strict_map_key=False)
            if "since_lsn" not in body:
                body["since_lsn"] = lsn
                connection.execute(
                    "UPDATE descriptors SET body = ? WHERE table_id = ? AND version = ?",
                    (msgpack.packb(body), table_id, version),
                )
                raise_floor(connection, lsn)


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
