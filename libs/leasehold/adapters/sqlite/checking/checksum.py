"""A checksum of rows and entries in key order: equal contents, equal sum, on any node (L6).

SQLite makes the text of thousands of rows in one step, without the interpreter's lock, so a check
beside the apply loop does not slow it. `quote` shows every storage value exactly and by its type.
"""

# ruff: noqa: S608 - statement text comes from integer ids alone, values are bound

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Final

import apsw

CHECKSUM_BYTES: Final = 16
CHUNK_ROWS: Final = 5_000


class Checksum:
    """Feed it tables in an agreed order, then take `digest()`."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._hash = blake2b(digest_size=CHECKSUM_BYTES)

    def add(self, table: str, keys: Sequence[str], columns: Sequence[str]) -> None:
        """Add `columns` of every row of `table`, in order of its primary key `keys`."""
        self._hash.update(f"{table}({','.join(columns)})\n".encode())
        order = ", ".join(keys)
        holes = ", ".join("?" * len(keys))
        row = ", ".join(f"quote({column})" for column in columns)
        # The LIMIT keeps the ordered inner query from being merged into the outer one.
        text = (
            f"SELECT count(*), group_concat(line, char(10)) FROM (SELECT concat_ws(',', {row})"
            f" AS line FROM {table}{{}} ORDER BY {order} LIMIT {CHUNK_ROWS})"
        )
        boundary = f"SELECT {order} FROM {table}{{}} ORDER BY {order} LIMIT 1 OFFSET ?"
        after = f" WHERE ({order}) > ({holes})"
        last: tuple[Any, ...] = ()
        while True:
            where = after if last else ""
            count, lines = _one(self._connection, text.format(where), last)
            if count:
                self._hash.update(lines.encode())
                self._hash.update(b"\n")
            if count < CHUNK_ROWS:
                return
            last = _one(self._connection, boundary.format(where), (*last, CHUNK_ROWS - 1))

    def digest(self) -> bytes:
        return self._hash.digest()


def _one(connection: apsw.Connection, text: str, bindings: tuple[Any, ...]) -> Any:
    return connection.execute(text, bindings).fetchall()[0]
