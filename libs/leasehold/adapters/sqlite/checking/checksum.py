"""A checksum of rows and entries in key order: equal contents, equal sum, on any node (L6).

SQLite makes the text of thousands of rows in one step, without the interpreter's lock, so a check
beside the apply loop does not slow it. `quote` shows every storage value exactly and by its type.

On the way lines may be added up, too, whatever their order: an index has the entries of its rows
where the sums of both are equal. Two scans tell that in half the time of looking up each entry's
row, and in the same time for rows that no cache holds.
"""

# ruff: noqa: S608 - statement text comes from integer ids alone, values are bound

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import apsw

CHECKSUM_BYTES: Final = 16
CHUNK_ROWS: Final = 5_000


class LineSum(NamedTuple):
    """How many lines there are, and the sum of what each is hashed to: by SipHash, of 64 bits, with
    a key that is the process's own. `exact`: no line has a line break in it, so that none is taken
    for several."""

    lines: int = 0
    total: int = 0
    exact: bool = True

    def with_lines(self, count: int, text: str) -> LineSum:
        lines = text.split("\n")
        exact = self.exact and len(lines) == count
        return LineSum(self.lines + count, self.total + sum(map(hash, lines)), exact)


class Checksum:
    """Feed it tables in an agreed order, then take `digest()`."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._hash = blake2b(digest_size=CHECKSUM_BYTES)

    def add(self, table: str, keys: Sequence[str], columns: Sequence[str]) -> None:
        """Add `columns` of every row of `table`, in order of its primary key `keys`."""
        for _ in self._added(table, keys, columns):
            pass

    def add_summed(self, table: str, keys: Sequence[str], columns: Sequence[str]) -> LineSum:
        """Add them as `add` does, and return the sum of their lines."""
        found = LineSum()
        for count, lines in self._added(table, keys, columns):
            found = found.with_lines(count, lines)
        return found

    def _added(
        self, table: str, keys: Sequence[str], columns: Sequence[str]
    ) -> Iterator[tuple[int, str]]:
        self._hash.update(f"{table}({','.join(columns)})\n".encode())
        for count, lines in _lines(self._connection, table, keys, columns):
            self._hash.update(lines.encode())
            self._hash.update(b"\n")
            yield count, lines

    def digest(self) -> bytes:
        return self._hash.digest()


def sum_lines(
    connection: apsw.Connection,
    table: str,
    keys: Sequence[str],
    shown: Sequence[str],
    condition: str,
) -> LineSum:
    """Return the sum of lines of what is `shown` of each row of `table` that meets a condition."""
    found = LineSum()
    for count, lines in _lines(connection, table, keys, shown, condition):
        found = found.with_lines(count, lines)
    return found


def _lines(
    connection: apsw.Connection,
    table: str,
    keys: Sequence[str],
    shown: Sequence[str],
    condition: str = "1",
) -> Iterator[tuple[int, str]]:
    """Yield lines of some thousand rows at a time, with how many they are, in order of `keys`."""
    order = ", ".join(keys)
    holes = ", ".join("?" * len(keys))
    row = ", ".join(f"quote({column})" for column in shown)
    # The LIMIT keeps the ordered inner query from being merged into the outer one.
    text = (
        f"SELECT count(*), group_concat(line, char(10)) FROM (SELECT concat_ws(',', {row})"
        f" AS line FROM {table} WHERE {condition}{{}} ORDER BY {order} LIMIT {CHUNK_ROWS})"
    )
    boundary = (
        f"SELECT {order} FROM {table} WHERE {condition}{{}} ORDER BY {order} LIMIT 1 OFFSET ?"
    )
    after = f" AND ({order}) > ({holes})"
    last: tuple[Any, ...] = ()
    while True:
        where = after if last else ""
        count, lines = _one(connection, text.format(where), last)
        if count:
            yield count, lines
        if count < CHUNK_ROWS:
            return
        last = _one(connection, boundary.format(where), (*last, CHUNK_ROWS - 1))


def _one(connection: apsw.Connection, text: str, bindings: tuple[Any, ...]) -> Any:
    return connection.execute(text, bindings).fetchall()[0]
