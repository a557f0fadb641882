"""Read snapshots of a store, on connections that any thread may use beside the writer."""

# ruff: noqa: S608 - statement text comes from integer ids alone, values are bound

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Final, Self

import apsw

from leasehold.adapters.sqlite.as_of import SqlitePast, match_of, range_of
from leasehold.adapters.sqlite.catalog import read_catalog, read_position, read_running_jobs
from leasehold.adapters.sqlite.history import collected_elements, history_floor
from leasehold.adapters.sqlite.layout import connect
from leasehold.adapters.sqlite.part_check import give_part
from leasehold.adapters.sqlite.plan import EntriesPlan, ReadPlan
from leasehold.adapters.sqlite.read_catalog import CatalogReader, ReadCatalog
from leasehold.adapters.sqlite.row_history import kept_from, lsn_at
from leasehold.adapters.sqlite.statement_memory import StatementMemory, give_memory
from leasehold.catalog.access import Access
from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.history import History, check_kept
from leasehold.catalog.job import Job, job_from_wire
from leasehold.catalog.part import WHOLE, KeyRange, scanned
from leasehold.catalog.states import READABLE, State
from leasehold.model.errors import LeaseholdError, UnknownTable
from leasehold.model.keys import Key
from leasehold.model.ports import Row, StoredCatalog
from leasehold.model.records.log import LogPosition
from leasehold.sql.planning.emitted import Emitted

CONNECTIONS_KEPT_MAX: Final = 16
PLANS_KEPT_MAX: Final = 1_000
INSTALLED_CHARACTERS_MAX: Final = 16 * 1024
STEPS_BETWEEN_LOOKS: Final = 2_000
_POSITION: Final = "SELECT lsn, catalog FROM position"


class Watch:
    """Looks at what runs on a connection every `STEPS_BETWEEN_LOOKS`. `looks_left`: how often it
    may find it still running; None: as often as it likes."""

    __slots__ = ("looks_left",)

    def __init__(self) -> None:
        self.looks_left: int | None = None

    def __call__(self) -> bool:
        """Return True to end the statement that runs."""
        if self.looks_left is None:
            return False
        self.looks_left -= 1
        return self.looks_left < 0


class Reader:
    """A read connection with its plans, for one thread at a time."""

    def __init__(self, path: Path, cache_mb: int, memory: StatementMemory) -> None:
        self.connection = connect(path, cache_mb=cache_mb, read_only=True)
        give_memory(self.connection, memory)
        self.watch = Watch()
        self.connection.set_progress_handler(self.watch, STEPS_BETWEEN_LOOKS, id=self.watch)
        self.execute = self.connection.cursor().execute
        self.holding = self.connection.cursor()
        self.alone = False
        # What was registered here for it, by identity, as the plans below.
        self.installed: dict[int, object] = {}
        # By identity, which is one look-up; a plan holds its descriptor, so no id comes twice.
        self._plans: dict[int, ReadPlan] = {}

    def knows(self, emitted: Emitted) -> None:
        """Note that the connection has the functions that this query calls. One of a long text is
        not kept for that, and noted again each time."""
        if len(emitted.text) > INSTALLED_CHARACTERS_MAX:
            return
        if len(self.installed) >= PLANS_KEPT_MAX:
            self.installed.clear()
        self.installed[id(emitted)] = emitted

    def plan(self, descriptor: Descriptor) -> ReadPlan:
        plan = self._plans.get(id(descriptor))
        if plan is None:
            if len(self._plans) >= PLANS_KEPT_MAX:
                self._plans.clear()
            # Only what this version names: a snapshot may be older than a newer column.
            plan = ReadPlan(descriptor, [c.element_id for c in descriptor.columns])
            self._plans[id(descriptor)] = plan
        return plan


class Readers:
    """A pool of read connections. Thread-safe: deque's ends are atomic."""

    def __init__(self, path: Path, *, cache_mb: int, memory: StatementMemory) -> None:
        self._path = path
        self._cache_mb = cache_mb
        self.memory = memory
        self.part = WHOLE
        """What is in the store; it only grows."""
        self._idle: deque[Reader] = deque()
        self._closed = False
        self._catalogs = CatalogReader()

    def open_snapshot(self, *, alone: bool = False, brief: bool = False) -> SqliteSnapshot:
        """Open a read snapshot of what is committed now; any thread may call this. With `alone` its
        connection is one that nobody else gets before or after; `brief` is as of SqliteSnapshot."""
        reader = self._make() if alone else self._take()
        reader.alone = alone
        return SqliteSnapshot(self, reader, brief=brief)

    def _take(self) -> Reader:
        assert not self._closed, "the store is closed"
        try:
            return self._idle.pop()
        except IndexError:
            return self._make()

    def _make(self) -> Reader:
        reader = Reader(self._path, self._cache_mb, self.memory)
        give_part(reader.connection, self.part)
        return reader

    def row_at_once(
        self, table: str, key_of: Callable[[Descriptor], Key]
    ) -> tuple[Descriptor, tuple[Any, ...] | None] | None:
        """The newest descriptor of a name and the row's public columns in its order, their storage
        values first (None: no row); by one statement, which is a snapshot by itself.

        None: what was read of the catalog before is not what that snapshot has, or `key_of` raises
        with it, or nothing was read yet. Open a snapshot then.
        """
        catalog = self._catalogs.newest
        descriptor = None if catalog is None else catalog.newest.get(table)
        part = self.part
        if catalog is None or descriptor is None or not part.holds(descriptor.table_id):
            return None
        table_id = descriptor.table_id
        if part.lists_columns(table_id) or part.equal(table_id) is not None:
            return None
        try:
            key = key_of(descriptor)
            part.check_key(descriptor, key)
        except LeaseholdError:
            return None
        reader = self._take()
        try:
            found: Any = reader.execute(reader.plan(descriptor).get_public, key).fetchall()
        except apsw.SQLError:  # of a table or a column that is gone by now
            return None
        finally:
            self.give_back(reader)
        if found[0][-1] != catalog.changes:
            return None
        there = [row for row in found if row[-2] is not None] if len(found) > 1 else ()
        return descriptor, there[0] if there else None

    def give_back(self, reader: Reader) -> None:
        if self._closed or reader.alone or len(self._idle) >= CONNECTIONS_KEPT_MAX:
            reader.connection.close()
        else:
            self._idle.append(reader)

    def catalog(self, count: int, connection: apsw.Connection) -> ReadCatalog:
        """The catalog of the snapshot that `connection` has open.

        Cached by the count of catalog changes, which is part of the same snapshot: equal counts
        mean equal catalogs, so nothing is decoded twice.
        """
        return self._catalogs.at(count, connection)

    def close(self) -> None:
        self._closed = True
        while self._idle:
            self._idle.pop().connection.close()


class SqliteSnapshot:
    """StoreSnapshot: everything it answers is of the one commit it was opened at.

    A `brief` one is for statements that surely end soon and make nothing (no tables of their own).
    It has no BEGIN and COMMIT: SQLite keeps a connection's snapshot for as long as a statement of
    it has not ended, and the one that tells the position is kept waiting at its only row.
    """

    __slots__ = ("_count", "_execute", "_holding", "_reader", "_readers", "_scans", "lsn", "part")

    def __init__(self, readers: Readers, reader: Reader, *, brief: bool = False) -> None:
        self._readers = readers
        self.part = readers.part
        self._reader: Reader | None = reader
        self._execute = reader.execute
        self._scans: list[apsw.Cursor] = []
        self._holding: apsw.Cursor | None = None
        # A read transaction begins with its first read, which this is.
        if brief:
            self._holding = reader.holding
            found: Any = next(self._holding.execute(_POSITION))
        else:
            self._execute("BEGIN")
            found = self._execute(_POSITION).fetchall()[0]
        self.lsn: int = found[0]
        self._count: int = found[1]

    @property
    def reader(self) -> Reader:
        assert self._reader is not None, "the snapshot is closed"
        return self._reader

    @property
    def connection(self) -> apsw.Connection:
        """The connection, for set-wise reading of this snapshot (checks, exports)."""
        return self.reader.connection

    def position(self) -> LogPosition:
        return read_position(self.connection)

    @property
    def catalog(self) -> ReadCatalog:
        """The same object as long as nothing of it has changed."""
        return self._readers.catalog(self._count, self.connection)

    @property
    def now(self) -> Self:
        """The same: what is newest."""
        return self

    @property
    def access(self) -> Access:
        """Return who may do what, as of this snapshot."""
        return self.catalog.access

    def stored_catalog(self) -> StoredCatalog:
        """Return the catalog as it is stored, with all jobs."""
        return read_catalog(self.connection)

    def planning_catalog(self) -> Catalog:
        """Return the catalog that schema changes are planned on, with the jobs that have not ended.
        ⚠ Of descriptors that readers have already: to read all of them once more takes 0.25 ms a
        table, and each block's first change needs it."""
        known = self.catalog
        descriptors = chain.from_iterable(known.versions[table] for table in sorted(known.versions))
        return Catalog.of_known(descriptors, known.min_versions, self.running_jobs(), known.access)

    def running_jobs(self) -> tuple[Job, ...]:
        """Return the schema changes that have not ended."""
        return tuple(map(job_from_wire, read_running_jobs(self.connection)))

    def min_version(self, table_id: int) -> int:
        return self.catalog.min_versions.get(table_id, 1)

    def newest(self, table: str) -> Descriptor:
        """The newest descriptor of a name. Raises UnknownTable; NotHeldHere for a table whose rows
        are not in this store."""
        found = self.described(table)
        self.part.check_table(found)
        return found

    def described(self, table: str) -> Descriptor:
        """The same of any table, whose rows need not be here."""
        found = self.catalog.newest.get(table)
        if found is None:
            raise UnknownTable(f"table {table!r} does not exist", table=table)
        return found

    def tables(self) -> tuple[Descriptor, ...]:
        """The newest version of every table that is not absent, by table id."""
        versions = self.catalog.versions
        newest = (versions[table_id][-1] for table_id in sorted(versions))
        return tuple(table for table in newest if table.state is not State.ABSENT)

    def versions(self, table_id: int) -> tuple[Descriptor, ...]:
        """Kept versions of a table, oldest first; () when there is none."""
        return self.catalog.versions.get(table_id, ())

    def collected(self, table_id: int) -> frozenset[int]:
        """Ids of columns and indexes that only versions no longer kept have named."""
        return collected_elements(self.connection, table_id)

    def descriptor_at(self, table: str, lsn: int) -> Descriptor:
        """Return the version that was current at `lsn`. Raises what History.table_at raises."""
        floor = history_floor(self.connection)
        return History(self.all_versions(), floor, self.lsn).table_at(table, lsn)

    def all_versions(self) -> list[tuple[Descriptor, ...]]:
        """Kept ones of each table, oldest first."""
        kept = self.catalog.versions
        return [kept[table_id] for table_id in sorted(kept)]

    def as_of(self, lsn: int) -> SqlitePast | SqliteSnapshot:
        """The same as it was at an earlier LSN; close one of the two. Raises SnapshotTooOld
        (72000) where rows are not kept for so long, NotCoherent (57P03) for an LSN that lies
        ahead."""
        if lsn == self.lsn:
            return self
        check_kept(kept_from(self.connection), lsn, self.lsn)
        return SqlitePast(self, lsn)

    def keeps_rows(self) -> bool:
        return kept_from(self.connection) is not None

    def lsn_at(self, time_us: int) -> int:
        """The LSN of the last commit at or before a time, 0 where that is not known any more."""
        return lsn_at(self.connection, time_us, self.lsn)

    def plan(self, descriptor: Descriptor) -> ReadPlan:
        return self.reader.plan(descriptor)

    def get(self, descriptor: Descriptor, key: Key) -> Row | None:
        self.part.check_key(descriptor, key)
        row = self.find(descriptor, key)
        self.part.check_found(descriptor, row)
        return row

    def find(self, descriptor: Descriptor, key: Key) -> Row | None:
        """Return the row with that key that is here, whatever the store is a part of."""
        plan = self.plan(descriptor)
        found = self._execute(plan.get, key).fetchall()
        return plan.row(found[0]) if found else None

    def held_rows(self, descriptor: Descriptor) -> Iterator[tuple[Key, Row]]:
        """Yield all rows that are here, in key order: of a part whose that is."""
        plan = self.plan(descriptor)
        keys = ", ".join(plan.key_names)
        text = f"SELECT {', '.join(plan.all_names)} FROM {plan.name} ORDER BY {keys}"
        return self.rows(plan, text, ())

    def scan(
        self, descriptor: Descriptor, low: Key | None, high: Key | None, *, rows_max: int
    ) -> Iterator[tuple[Key, Row]]:
        """Rows with low <= key < high, in key order; prefixes compare by the columns they have."""
        self.part.check_range(descriptor, scanned(low, high))
        plan = self.plan(descriptor)
        where = range_of(plan.key_names, low, high)
        text = (
            f"SELECT {', '.join(plan.all_names)} FROM {plan.name} WHERE 1{where}"
            f" ORDER BY {', '.join(plan.key_names)} LIMIT ?"
        )
        return self.rows(plan, text, (*(low or ()), *(high or ()), rows_max))

    def get_by(
        self, descriptor: Descriptor, index_id: int, values: Key, *, rows_max: int
    ) -> Iterator[tuple[Key, Row]]:
        """Rows whose index columns start with `values` (None finds NULLs), in index order."""
        self.part.check_range(descriptor, KeyRange())
        index = next(i for i in descriptor.indexes if i.element_id == index_id)
        self.part.check_columns(descriptor, index.over)
        assert index.state in READABLE, f"index {index.name!r} is not public in this version"
        plan, entries = self.plan(descriptor), EntriesPlan(descriptor, index)
        shown = ", ".join(f"t.{name}" for name in plan.all_names)
        where = "".join(f" AND x.{name} = ?" for name in entries.keys[: len(values)])
        order = ", ".join(f"x.{name}" for name in entries.columns)
        text = (
            f"SELECT {shown} FROM {entries.name} AS x CROSS JOIN {plan.name} AS t"
            f" ON {match_of(plan)} WHERE 1{where} ORDER BY {order} LIMIT ?"
        )
        return self.rows(plan, text, (*entries.key(values), rows_max))

    def rows(
        self, plan: ReadPlan, text: str, bindings: tuple[Any, ...]
    ) -> Iterator[tuple[Key, Row]]:
        """Yield (key, row) of a statement that shows `plan.all_names` first."""
        cursor = self.connection.cursor()
        self._scans.append(cursor)
        width, shown = plan.key_width, len(plan.all_names)
        try:
            for found in cursor.execute(text, bindings):
                yield found[:width], plan.row(found[:shown])
        finally:
            cursor.close(force=True)
            self._scans.remove(cursor)

    def close(self) -> None:
        """End the snapshot; iterators of it that are still open end too. May be called twice."""
        reader, self._reader = self._reader, None
        if reader is None:
            return
        for cursor in tuple(self._scans):
            cursor.close(force=True)
        if self._holding is None:
            self._execute("COMMIT")
        else:
            next(self._holding, None)  # to its end, which is the snapshot's
        self._readers.give_back(reader)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
