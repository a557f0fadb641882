"""The rows of tables that have feeds, as the changefeed has published them, in a file of SQLite.

Each row is kept as its record on the table's rows topic. All of it can be made again from there, so
the file is one that may be lost: it says which place of the log it is of, and who finds it at
another one loads it anew. Its transaction ends behind that of Kafka.

What is put stays in memory until then, and goes to the file in one statement: of a row that changes
often only the last image is written, and none of them is read back.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

import apsw

from leasehold.adapters.codec.published import restore_image
from leasehold.adapters.codec.records import MessagePackCodec, restore_row_key, row_key
from leasehold.model import byte_limits
from leasehold.model.errors import MalformedRequest, StoreUnwritable
from leasehold.model.keys import Key
from leasehold.model.records.events import RowImage, RowLeftOut, RowsTruncated

FORMAT: Final = 1
CHUNK_BYTES_MAX: Final = byte_limits.RESULTS
"""Read at once of rows in their order, where they are large."""
CACHE_KB: Final = 16 * 1024
"""Of the file's pages in memory."""
LOOKED_AT_MAX: Final = 10_000
LOG: Final = logging.getLogger("leasehold.changefeed")
_CODEC: Final = MessagePackCodec()
_MAKE: Final = """
CREATE TABLE IF NOT EXISTS rows (
    table_id INTEGER, key BLOB, image BLOB NOT NULL, PRIMARY KEY (table_id, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS place (one INTEGER PRIMARY KEY CHECK (one = 1), stored BLOB NOT NULL);
"""
_PUT: Final = "INSERT OR REPLACE INTO rows VALUES (?, ?, ?)"
_REMOVE: Final = "DELETE FROM rows WHERE table_id = ? AND key = ?"
Image = RowImage | RowLeftOut


class FedRows:
    """The rows by table and key. Every method raises StoreUnwritable where the file can't be
    read or written. `bytes_moved` only grows: what was read and written of rows; whoever commits
    by it bounds what is kept in memory."""

    def __init__(self, path: Path | None) -> None:
        """Open the file at `path`, made anew where it is none of ours; None: one that is gone with
        this process."""
        self.bytes_moved = 0
        self._changed: dict[tuple[int, bytes], tuple[bytes, Image] | None] = {}
        """Not in the file yet: a row's record and its image, None where it was removed."""
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        if path is None:
            self._folder = tempfile.TemporaryDirectory(prefix="leasehold-feeds-")
            path = Path(self._folder.name) / "rows"
        self._path = path
        try:
            self._connection = _open(path)
        except (apsw.Error, OSError):
            self._connection = self._make_anew()

    def _make_anew(self) -> apsw.Connection:
        try:
            for suffix in ("", "-wal", "-shm"):
                Path(f"{self._path}{suffix}").unlink(missing_ok=True)
            self._path.parent.mkdir(parents=True, exist_ok=True)
            return _open(self._path)
        except (apsw.Error, OSError) as error:
            raise _unavailable(self._path, error) from error

    def __enter__(self) -> Self:  # not `Closing`, from which nothing compiled may inherit
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; what was not committed is undone."""
        with suppress(apsw.Error):
            self._connection.close(True)
        if self._folder is not None:
            self._folder.cleanup()

    def place(self) -> bytes:
        """Return what `commit` was given last, "" where nothing is known of the rows."""
        found = self._run("SELECT stored FROM place", ())
        return bytes(found[0][0]) if found else b""

    def commit(self, place: bytes) -> None:
        """End the transaction, with the place of the log that the rows are of."""
        self._write()
        self._run("INSERT OR REPLACE INTO place VALUES (1, ?)", (place,))
        self._run("COMMIT", ())

    def get(self, table_id: int, key: Key) -> Image | None:
        """Return a row's image, None where there is no such row."""
        packed = row_key(key)
        name = (table_id, packed)
        if name in self._changed:
            changed = self._changed[name]
            if changed is None:
                return None
            self.bytes_moved += len(changed[0])
            return changed[1]
        self._begin()  # outside a transaction each look takes and leaves the file's locks
        found = self._run(
            "SELECT image FROM rows WHERE table_id = ? AND key = ?", (table_id, packed)
        )
        if not found:
            return None
        return self._image(found[0][0])

    def put(self, image: RowImage) -> None:
        """Keep a row's image."""
        value = _CODEC.encode(image)
        self.bytes_moved += len(value)
        self._changed[image.table_id, row_key(image.key)] = (value, image)

    def remove(self, table_id: int, key: Key) -> None:
        """Remove a row."""
        self._changed[table_id, row_key(key)] = None

    def put_stored(self, table_id: int, key: bytes, value: bytes) -> None:
        """Keep a record of a rows topic."""
        self._write()
        self._run(_PUT, (table_id, key, value))

    def remove_stored(self, table_id: int, key: bytes) -> None:
        """Remove the row of a record's key."""
        self._write()
        self._run(_REMOVE, (table_id, key))

    def clear(self, table_id: int) -> None:
        """Remove all rows of a table."""
        self._write()
        self._run("DELETE FROM rows WHERE table_id = ?", (table_id,))

    def keep_only(self, table_ids: Sequence[int]) -> None:
        """Remove the rows of all tables but these."""
        self._write()
        for (table_id,) in self._run("SELECT DISTINCT table_id FROM rows", ()):
            if table_id not in table_ids:
                self.clear(table_id)

    def load(self, table_id: int, records: Iterable[tuple[bytes | None, bytes | None]]) -> int:
        """Keep the rows that the records of a rows topic leave, and return how many records there
        were. What is no image of a row is left out."""
        load = RowsLoad(self, table_id)
        load.take(records)
        return load.end()

    def after(self, table_id: int, place: bytes, rows_max: int) -> list[tuple[bytes, Image]]:
        """Return the next rows behind a place, "" = from the first on, each with its own; few where
        they are large, none where there is none."""
        found: list[tuple[bytes, Image]] = []
        size = 0
        self._write()
        try:
            for key, image in self._connection.execute(
                "SELECT key, image FROM rows WHERE table_id = ? AND key > ? ORDER BY key LIMIT ?",
                (table_id, place, rows_max),
            ):
                found.append((bytes(key), self._image(image)))
                size += len(image)
                if size >= CHUNK_BYTES_MAX:
                    break
        except apsw.Error as error:
            raise _unavailable(self._path, error) from error
        return found

    def _image(self, value: bytes) -> Image:
        self.bytes_moved += len(value)
        try:
            image = _CODEC.decode(value)
        except MalformedRequest as error:
            raise _unavailable(self._path, error) from error
        assert isinstance(image, RowImage | RowLeftOut), type(image).__name__
        return image

    def _begin(self) -> None:
        """Begin a transaction of the file where none is under way."""
        if not self._connection.in_transaction:
            self._run("BEGIN IMMEDIATE", ())

    def _write(self) -> None:
        """Write what has changed, in the order in which the file has it."""
        self._begin()
        if not self._changed:
            return
        put: list[tuple[int, bytes, bytes]] = []
        removed: list[tuple[int, bytes]] = []
        for (table_id, key), changed in sorted(self._changed.items(), key=_name_of):
            if changed is None:
                removed.append((table_id, key))
            else:
                put.append((table_id, key, changed[0]))
        try:
            self._connection.executemany(_REMOVE, removed)
            self._connection.executemany(_PUT, put)
        except apsw.Error as error:
            raise _unavailable(self._path, error) from error
        self._changed.clear()

    def _run(self, statement: str, values: tuple[int | bytes, ...]) -> list[Any]:
        try:
            return self._connection.execute(statement, values).fetchall()
        except apsw.Error as error:
            raise _unavailable(self._path, error) from error


class RowsLoad:
    """The rows of one table, from the records of its rows topic: `take` those of each partition in
    their order, then `end`. Raises StoreUnwritable."""

    def __init__(self, rows: FedRows, table_id: int) -> None:
        """Begin with no row."""
        self.table_id = table_id
        self._rows = rows
        self._count = 0
        self._gone_lsn = 0
        rows.clear(table_id)

    def take(self, records: Iterable[tuple[bytes | None, bytes | None]]) -> None:
        """Keep what the next records leave. What is no image of a row is left out."""
        empty, table_id = row_key(()), self.table_id
        for key, value in records:
            self._count += 1
            if key is None:
                continue
            if key != empty and value is None:
                self._rows.remove_stored(table_id, key)
                continue
            try:
                image = restore_image(restore_row_key(key), value or b"")
            except MalformedRequest as error:
                LOG.error("a record of table %d is left out of its feed: %s", table_id, error)
                continue
            if isinstance(image, RowsTruncated):
                # Each partition has one, and they are read side by side: what is older is gone,
                # on whichever it is.
                self._gone_lsn = max(self._gone_lsn, image.lsn)
            elif image.table_id == table_id and row_key(image.key) == key:
                self._rows.put_stored(table_id, key, value or b"")

    def end(self) -> int:
        """Remove what was truncated, and return how many records there were."""
        place = b""
        while self._gone_lsn and (found := self._rows.after(self.table_id, place, LOOKED_AT_MAX)):
            place = found[-1][0]
            for key, image in found:
                if image.lsn < self._gone_lsn:
                    self._rows.remove_stored(self.table_id, key)
        return self._count


def _name_of(changed: tuple[tuple[int, bytes], Any]) -> tuple[int, bytes]:
    return changed[0]


def _open(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;")
    connection.execute(f"PRAGMA cache_size = -{CACHE_KB}")
    connection.execute(_MAKE)
    if connection.pragma("user_version") not in (0, FORMAT):
        connection.close()
        raise apsw.Error("the file is of another release")
    connection.pragma("user_version", FORMAT)
    return connection


def _unavailable(path: Path, error: Exception) -> StoreUnwritable:
    return StoreUnwritable(
        f"The changefeed can't keep the rows of tables with feeds in {path}: {error}. Make room"
        " there, or name another file by LEASEHOLD_CHANGEFEED_ROWS; it is filled again from the"
        " rows topics."
    )
