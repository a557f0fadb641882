"""The file of a node's store: its layout, how a connection to it is opened, who may write it.

Statement text is made from integer ids alone and values are always bound, so no name or value of
a user ever becomes SQL; but for a column's default, which SQLite takes as a literal alone.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import apsw
import msgpack

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.part import WHOLE, Part, part_from_wire
from leasehold.catalog.physical_names import (
    column_name,
    entries_name,
    history_name,
    lock_name,
    table_name,
)
from leasehold.catalog.states import DELETED
from leasehold.model.errors import ConfigurationError, StoreCorrupted, StoreUnwritable

__all__ = ["column_name", "entries_name", "history_name", "lock_name", "table_name"]

APPLICATION_ID: Final = 0x4C485344  # "LHSD": tells a store from any other SQLite file
LAYOUT_VERSION: Final = 3
"""The newest that this program knows; a file without roles or a feature level has the first."""
FIRST_LAYOUT: Final = 1
ACCESS_LAYOUT: Final = 2
"""From here on a file may have roles, which programs that know none must not pass over."""
LEVEL_LAYOUT: Final = 3
"""From here on the database of a file has a feature level, up to which programs have to read what
is written: one that knows of none must not go on in its log."""
PARTIAL_LAYOUT: Final = 100
"""Of a partial replica's store: a program that knows no parts must not take it for a whole one."""
BUSY_TIMEOUT_MS: Final = 5_000
STATEMENTS_CACHED_MAX: Final = 1_000
WAL_BYTES_KEPT_MAX: Final = 96 << 20
INTEGER_KEYS: Final = frozenset({"smallint", "integer", "bigint"})
SYNCHRONOUS: Final = {"normal": "NORMAL", "full": "FULL"}

# `catalog` counts changes of descriptors, min versions and roles; readers key their caches by it.
TABLES: Final = """
CREATE TABLE position (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    log_offset INTEGER NOT NULL, epoch INTEGER NOT NULL, incarnation BLOB NOT NULL,
    sequence INTEGER NOT NULL, digest BLOB NOT NULL, lsn INTEGER NOT NULL,
    commit_us INTEGER NOT NULL, decided_through BLOB NOT NULL,
    answered_through INTEGER NOT NULL, longest_grant_ms INTEGER NOT NULL,
    catalog INTEGER NOT NULL, ledger_run TEXT NOT NULL, lane_topics BLOB NOT NULL DEFAULT x'80');
INSERT INTO position VALUES (1, 0, 0, x'', 0, x'', 0, 0, x'80', 0, 0, 0, '', x'80');
CREATE TABLE descriptors (
    table_id INTEGER NOT NULL, version INTEGER NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (table_id, version)) WITHOUT ROWID;
CREATE TABLE min_versions (table_id INTEGER PRIMARY KEY, version INTEGER NOT NULL);
CREATE TABLE jobs (job_id INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE outcomes (
    request_id BLOB NOT NULL PRIMARY KEY, decided_us INTEGER NOT NULL, body BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX outcomes_by_age ON outcomes (decided_us);
"""

TIMES: Final = ("closed_us", "id_horizon_us", "reset_us")
"""Further columns of `position`, behind the others; a store of an earlier program gets them when it
is opened."""

LEVEL: Final = "feature_level"
"""A column behind those."""

# Dead columns whose values are gone; a store of an earlier program gets it when it is opened.
REMOVED: Final = """
CREATE TABLE IF NOT EXISTS removed (
    table_id INTEGER NOT NULL, element_id INTEGER NOT NULL,
    PRIMARY KEY (table_id, element_id)) WITHOUT ROWID
"""

QUEUE_TOPICS: Final = "ALTER TABLE position ADD COLUMN lane_topics BLOB NOT NULL DEFAULT x'80'"


# Of messages that masters are about to decide (L10), beside the position; made as the one above.
ATTEMPTS: Final = """
CREATE TABLE IF NOT EXISTS attempts (
    lane TEXT PRIMARY KEY, log_offset INTEGER NOT NULL, rows INTEGER NOT NULL,
    lost INTEGER NOT NULL) WITHOUT ROWID
"""


# Roles, memberships, lists of privileges (`access.py`); made as the one above.
ACCESS: Final = """
CREATE TABLE IF NOT EXISTS access (
    kind INTEGER NOT NULL, first INTEGER NOT NULL, second INTEGER NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (kind, first, second)) WITHOUT ROWID
"""
# Which table each of the newest changes of the catalog was of (0: roles and privileges), so that a
# reader who knows the one before need not read all of it; made as the one above. An earlier program
# counts its changes and writes none of these down: where one is missing, all is read.
CATALOG_CHANGES: Final = """
CREATE TABLE IF NOT EXISTS catalog_changes (
    changes INTEGER PRIMARY KEY, table_id INTEGER NOT NULL)
"""
OF_ACCESS: Final = 0
CHANGES_KEPT: Final = 1_000
_CHANGED: Final = "UPDATE position SET catalog = catalog + 1"
_NOTE_CHANGE: Final = "INSERT INTO catalog_changes SELECT catalog, ? FROM position"
_FORGET_CHANGES: Final = (
    "DELETE FROM catalog_changes WHERE changes <= (SELECT catalog - ? FROM position)"
)


def count_change(connection: apsw.Connection, table_id: int) -> None:
    """Count a change of the catalog, which is of that table."""
    connection.execute(_CHANGED)
    connection.execute(_NOTE_CHANGE, (table_id,))
    connection.execute(_FORGET_CHANGES, (CHANGES_KEPT,))


# What a partial replica's store holds, by MessagePack; others have no such table.
PART: Final = """
CREATE TABLE IF NOT EXISTS part (one INTEGER PRIMARY KEY CHECK (one = 1), body BLOB NOT NULL)
"""


def read_part(connection: apsw.Connection) -> Part:
    """Return what the store holds."""
    if not physical_columns(connection, "part"):
        return WHOLE
    body = connection.execute("SELECT body FROM part").get
    return part_from_wire(msgpack.unpackb(body, use_list=True))


def write_part(connection: apsw.Connection, part: Part) -> None:
    """Keep what the store holds, which is not everything."""
    assert not part.is_whole, "of a whole store nothing is kept"
    connection.execute(PART)
    packed = msgpack.packb(part.to_wire())
    connection.execute("INSERT OR REPLACE INTO part VALUES (1, ?)", (packed,))
    connection.execute(f"PRAGMA user_version = {PARTIAL_LAYOUT}")


ASIDE: Final = "aside"
"""How the names of tables begin that were truncated, and whose pages are given back bit by bit."""


def physical_columns(connection: apsw.Connection, name: str) -> tuple[str, ...]:
    """Column names of a physical table as this connection sees it, () when there is none."""
    return tuple(
        column for (column,) in connection.execute("SELECT name FROM pragma_table_info(?)", (name,))
    )


def element_ids(columns: tuple[str, ...], letter: str = "c") -> tuple[int, ...]:
    """Ids of the physical columns of one kind: `c` elements, `g` locks."""
    return tuple(int(name[1:]) for name in columns if name[0] == letter and name[1:].isdigit())


def entries_tables(connection: apsw.Connection, table_id: int) -> tuple[int, ...]:
    """Index ids that have a physical entries table."""
    prefix = f"x{int(table_id)}_"
    found = connection.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND substr(name, 1, ?) = ?",
        (len(prefix), prefix),
    )
    return tuple(sorted(int(name[len(prefix) :]) for (name,) in found))


def tables_of_rows(connection: apsw.Connection, letter: str = "t") -> tuple[int, ...]:
    """Ids of tables that have a physical table of rows (with `h`: of their past)."""
    found = connection.execute(
        "SELECT CAST(substr(name, 2) AS INTEGER) FROM sqlite_schema"
        " WHERE type = 'table' AND name GLOB ?",
        (f"{letter}[0-9]*",),
    )
    return tuple(sorted(int(table_id) for (table_id,) in found))


def history_tables(connection: apsw.Connection) -> tuple[int, ...]:
    return tables_of_rows(connection, "h")


def make_past(connection: apsw.Connection, table_id: int) -> None:
    """Create what a table's old images need and the file lacks: a place for each of its columns,
    and a way to them by key. That is part of the table: of each statement that makes something
    SQLite looks through all of the file's schema."""
    name, source = history_name(table_id), table_name(table_id)
    there, wanted = physical_columns(connection, name), physical_columns(connection, source)
    if not there:
        key = ", ".join(primary_key_of(connection, source))
        connection.execute(
            f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, {', '.join(wanted)}, UNIQUE ({key}, id))"
        )
        return
    for column in wanted:
        if column not in there:
            connection.execute(f"ALTER TABLE {name} ADD COLUMN {column}")


def primary_key_of(connection: apsw.Connection, name: str) -> tuple[str, ...]:
    """The primary key of a physical table, in its order."""
    found = connection.execute(
        "SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk", (name,)
    )
    return tuple(column for (column,) in found)


def make_physical(connection: apsw.Connection, descriptor: Descriptor) -> None:
    """Create what `descriptor` needs and the file lacks; never takes anything away.

    Columns have no type: SQLite then keeps a value exactly as bound (1.0 stays a float).
    """
    name = table_name(descriptor.table_id)
    there = physical_columns(connection, name)
    columns = [column_name(c.element_id) for c in descriptor.columns]
    at_once = {
        column_name(c.element_id): c.missing.value
        for c in descriptor.columns
        if c.missing is not None and c.missing.at_once
    }
    locks = [f"{lock_name(lock)} INTEGER" for lock in descriptor.locks]
    keys = descriptor.key_columns
    if not there:
        if len(keys) == 1 and keys[0].type.name in INTEGER_KEYS:
            key = column_name(keys[0].element_id)
            shown = [f"{c} INTEGER PRIMARY KEY" if c == key else c for c in columns]
            connection.execute(
                f"CREATE TABLE {name} ({', '.join([*shown, *locks])}, lsn INTEGER NOT NULL)"
            )
        else:
            key = ", ".join(column_name(c.element_id) for c in keys)
            connection.execute(
                f"CREATE TABLE {name} ({', '.join([*columns, *locks])}, lsn INTEGER NOT NULL,"
                f" PRIMARY KEY ({key})) WITHOUT ROWID"
            )
    else:
        for column in [*columns, *locks]:
            if column in at_once and column not in there:
                _add_with_value(connection, name, column, at_once[column])
            elif column.split()[0] not in there:
                connection.execute(f"ALTER TABLE {name} ADD COLUMN {column}")
    for index in descriptor.indexes:
        if index.state in DELETED:
            parts = [f"k{n}" for n in range(len(index.columns))]
            parts += [f"p{n}" for n in range(len(keys))]
            shown = [*parts, *(f"i{n}" for n in range(len(index.included)))]
            connection.execute(
                f"CREATE TABLE IF NOT EXISTS {entries_name(descriptor.table_id, index.element_id)}"
                f" ({', '.join(shown)}, PRIMARY KEY ({', '.join(parts)})) WITHOUT ROWID"
            )


def _add_with_value(connection: apsw.Connection, name: str, column: str, value: Any) -> None:
    """Add a column of which every row that is there has the value: by SQLite's own default, which a
    row that was written before it shows, without touching any. ⚠ Not every float is what its text
    is read as; the rows get such a one one by one."""
    literal = apsw.format_sql_value(value)
    found = connection.execute(f"SELECT {literal}").get
    if type(found) is type(value) and repr(found) == repr(value):
        connection.execute(f"ALTER TABLE {name} ADD COLUMN {column} DEFAULT {literal}")
        return
    connection.execute(f"ALTER TABLE {name} ADD COLUMN {column}")
    connection.execute(f"UPDATE {name} SET {column} = ?", (value,))  # noqa: S608 - integer ids


def set_aside(connection: apsw.Connection, table_id: int, lsn: int) -> None:
    """Give a table's rows and entries other names, by which nobody but the removal knows them: a
    change of the file's schema alone, whatever their number."""
    names = [entries_name(table_id, index_id) for index_id in entries_tables(connection, table_id)]
    if physical_columns(connection, table_name(table_id)):
        names.append(table_name(table_id))
    for name in names:
        _rename_aside(connection, name, lsn)


def set_entries_aside(connection: apsw.Connection, table_id: int, index_id: int, lsn: int) -> None:
    """Do so with the entries of one index."""
    if index_id in entries_tables(connection, table_id):
        _rename_aside(connection, entries_name(table_id, index_id), lsn)


def _rename_aside(connection: apsw.Connection, name: str, lsn: int) -> None:
    connection.execute(f"ALTER TABLE {name} RENAME TO {ASIDE}{int(lsn)}_{name}")


def tables_aside(connection: apsw.Connection) -> tuple[str, ...]:
    found = connection.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND substr(name, 1, ?) = ?",
        (len(ASIDE), ASIDE),
    )
    return tuple(sorted(name for (name,) in found))


VALUE_BYTES_MAX: Final = 256 << 20
"""Of a text or a row on its way through a statement that reads: what SQLite joins by itself."""


def connect(path: Path, *, cache_mb: int, read_only: bool) -> apsw.Connection:
    """A connection with this project's settings. Raises ConfigurationError, StoreCorrupted."""
    flags = apsw.SQLITE_OPEN_READWRITE | (0 if read_only else apsw.SQLITE_OPEN_CREATE)
    try:
        connection = apsw.Connection(
            str(path), flags=flags, statementcachesize=STATEMENTS_CACHED_MAX
        )
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        connection.execute(f"PRAGMA cache_size = -{int(cache_mb) * 1024}")
        if not read_only:
            connection.execute("PRAGMA temp_store = MEMORY")  # it sorts nothing
        else:
            connection.execute("PRAGMA query_only = 1")
            connection.limit(apsw.SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX)
        check_layout(connection, path)
    except (apsw.NotADBError, apsw.CorruptError) as error:
        raise StoreCorrupted(
            f"{path} is not a readable store ({error}); remove it and let the node take a snapshot"
        ) from error
    except apsw.CantOpenError as error:
        raise ConfigurationError(f"the store {path} can't be opened: {error}") from error
    return connection


def check_layout(connection: apsw.Connection, path: Path) -> None:
    """Raises ConfigurationError for another program's file and for a newer layout."""
    version = connection.pragma("user_version")
    application = connection.pragma("application_id")
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").get
    if tables and application != APPLICATION_ID:
        raise ConfigurationError(f"{path} is an SQLite file but not a store of this project")
    if version > LAYOUT_VERSION and version != PARTIAL_LAYOUT:
        raise ConfigurationError(
            f"{path} has layout {version}, this program knows {LAYOUT_VERSION} at most:"
            " start a newer program, or move the file away and let the node take a snapshot"
        )


def has_tables(connection: apsw.Connection) -> bool:
    """Return whether the file is a store: they are all made in one transaction, and before it there
    is nothing in the file."""
    return bool(physical_columns(connection, "position"))


def layout_of(connection: apsw.Connection) -> int:
    """Return the layout of a file for those who are to read it: all who read any read the second,
    and a program of before compares the number with its own."""
    return max(ACCESS_LAYOUT, int(connection.pragma("user_version")))


def stored_layout(path: Path) -> int:
    """Return `layout_of` the file of a store. Raises as `connect`."""
    connection = connect(path, cache_mb=1, read_only=True)
    try:
        return layout_of(connection)
    finally:
        connection.close()


def raise_layout(connection: apsw.Connection, layout: int) -> None:
    """Say in the file, within the transaction, that programs have to know that layout to read
    it."""
    if connection.pragma("user_version") < layout:
        connection.execute(f"PRAGMA user_version = {int(layout)}")


def make_writer(connection: apsw.Connection, synchronous: str) -> None:
    """Turn a connection into the writer's: WAL, durability, layout of an empty file."""
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {SYNCHRONOUS[synchronous]}")
    connection.execute(f"PRAGMA journal_size_limit = {WAL_BYTES_KEPT_MAX}")
    if not has_tables(connection):
        with connection:
            connection.execute(TABLES)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {FIRST_LAYOUT}")
    connection.execute(REMOVED)
    if "lane_topics" not in physical_columns(connection, "position"):  # of an earlier program
        connection.execute(QUEUE_TOPICS)
    for column in (*TIMES, LEVEL):
        if column not in physical_columns(connection, "position"):
            added = f"ALTER TABLE position ADD COLUMN {column} INTEGER NOT NULL DEFAULT 0"
            connection.execute(added)
    connection.execute(ATTEMPTS)
    connection.execute(ACCESS)
    connection.execute(CATALOG_CHANGES)


class WriterLock:
    """Keeps a second writer off the file, in this process and in others, until closed.

    The lock is the kernel's (flock), so a killed writer leaves none behind.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(path.name + ".lock")
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._descriptor)
            raise ConfigurationError(
                f"another writer has the store {path} open; a store has one node,"
                " stop the other process or give this one a folder of its own"
            ) from error

    def close(self) -> None:
        os.close(self._descriptor)


_UNWRITABLE: Final = (apsw.FullError, apsw.IOError, apsw.ReadOnlyError, apsw.CantOpenError)


@contextmanager
def sqlite_errors(path: Path) -> Iterator[None]:
    """What SQLite says of the file and its disk, in this project's words: StoreCorrupted,
    StoreUnwritable. Whatever was under way is not in the file: the log still has it."""
    try:
        yield
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise StoreCorrupted(f"the store {path} is damaged: {error}") from error
    except Exception as error:
        why = _why_unwritable(error)
        if why is None:
            raise
        raise StoreUnwritable(
            f"the store {path} can't be written ({why}): make room on its disk, or see to it, and"
            " start this node again; it goes on from where it is"
        ) from error


def _why_unwritable(error: BaseException | None) -> BaseException | None:
    """Return the error in the chain that says that the disk can't be written, None without one. ⚠
    SQLite may have rolled back what was open, so whoever wants to do that fails once more."""
    while error is not None and not isinstance(error, _UNWRITABLE):
        error = error.__context__
    return error
