"""Reads of a store's rows as of an earlier LSN: what has been there since, and old images.

The versions of a row are valid one after the other, so of the row now and of its old images at
most one was valid at any LSN: a read of the past is the same read of both tables, with each
version's LSNs in its WHERE.
"""

# ruff: noqa: S608 - statement text comes from integer ids alone, values are bound

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import apsw

from leasehold.adapters.sqlite.layout import column_name
from leasehold.adapters.sqlite.plan import EntriesPlan, ReadPlan
from leasehold.adapters.sqlite.row_history import last_write, lsn_at, table_kept_from
from leasehold.catalog.access import Access
from leasehold.catalog.descriptor import TEMPORARY_FROM, Descriptor
from leasehold.catalog.history import check_kept, tables_at
from leasehold.catalog.part import KeyRange, Part, scanned
from leasehold.catalog.states import READABLE
from leasehold.model.closing import Closing
from leasehold.model.ids import genid
from leasehold.model.keys import Key
from leasehold.model.ports import Row
from leasehold.model.records.log import LogPosition

if TYPE_CHECKING:
    from leasehold.adapters.sqlite.snapshot import SqliteSnapshot

FEW_CHANGES: Final = 1_000
"""Up to so many old images since an LSN are looked through; beyond, they are found by key."""


class SqlitePast(Closing):
    """StoreSnapshot of an earlier LSN, inside a snapshot that stays open as long as this is used.

    A column that was filled by key since is no exception although a backfill has no image: in the
    version of then it was not public, and every image that is valid later was copied later.
    """

    def __init__(self, snapshot: SqliteSnapshot, lsn: int) -> None:
        self._snapshot = snapshot
        self.lsn = lsn
        self._later = genid(lsn + 1, 0)  # images replaced after that LSN
        self._checked: set[int] = set()
        self._changed: dict[int, bool] = {}
        self._since: dict[tuple[int, str], str] = {}

    @property
    def connection(self) -> apsw.Connection:
        """The snapshot's."""
        return self._snapshot.connection

    @property
    def now(self) -> SqliteSnapshot:
        """The snapshot that this one is in."""
        return self._snapshot

    @property
    def part(self) -> Part:
        """What is in the store."""
        return self._snapshot.part

    @property
    def access(self) -> Access:
        """Return who may do what now: who may read is not asked of the past."""
        return self._snapshot.access

    def has_changed(self, table_id: int) -> bool:
        """Whether a row of the table was written since, so that its rows of now are not those of
        then. Raises SnapshotTooOld where the table was truncated since."""
        if table_id >= TEMPORARY_FROM:
            return False
        found = self._changed.get(table_id)
        if found is None:
            check_kept(table_kept_from(self.connection, table_id), self.lsn)
            found = self._changed[table_id] = last_write(self.connection, table_id) > self.lsn
        return found

    def position(self) -> LogPosition:
        """The snapshot's; `lsn` is what is read as of."""
        return self._snapshot.position()

    def min_version(self, table_id: int) -> int:
        return self._snapshot.min_version(table_id)

    def newest(self, table: str) -> Descriptor:
        """The version that was current then. Raises what `History.table_at` raises, and NotHeldHere
        as the snapshot does."""
        found = self._snapshot.descriptor_at(table, self.lsn)
        self._snapshot.part.check_table(found)
        return found

    def descriptor_at(self, table: str, lsn: int) -> Descriptor:
        return self._snapshot.descriptor_at(table, lsn)

    def tables(self) -> tuple[Descriptor, ...]:
        return tables_at(self._snapshot.all_versions(), self.lsn)

    def versions(self, table_id: int) -> tuple[Descriptor, ...]:
        return self._snapshot.versions(table_id)

    def as_of(self, lsn: int) -> SqlitePast | SqliteSnapshot:
        return self._snapshot.as_of(lsn)

    def keeps_rows(self) -> bool:
        return True

    def lsn_at(self, time_us: int) -> int:
        return lsn_at(self._snapshot.connection, time_us, self._snapshot.lsn)

    def close(self) -> None:
        self._snapshot.close()

    # ------------------------------------------------------------ rows

    def get(self, descriptor: Descriptor, key: Key) -> Row | None:
        """Raises SnapshotTooOld where the table was truncated since."""
        plan = self._checked_plan(descriptor)
        part = self._snapshot.part
        part.check_key(descriptor, key)
        row = self._snapshot.find(descriptor, key)
        if row is not None and row.lsn <= self.lsn:
            return row
        text = (
            f"SELECT {', '.join(plan.all_names)} FROM {plan.past}"
            f" WHERE {plan.where_key} AND id >= ? ORDER BY id LIMIT 1"
        )
        found = self._snapshot.connection.execute(text, (*key, self._later)).fetchall()
        old = plan.row(found[0]) if found else None
        then = old if old is not None and old.lsn <= self.lsn else None
        part.check_found(descriptor, then)
        return then

    def scan(
        self, descriptor: Descriptor, low: Key | None, high: Key | None, *, rows_max: int
    ) -> Iterator[tuple[Key, Row]]:
        """Yield (key, row) of a key range as of that LSN, as the port says. Raises SnapshotTooOld
        as `get` does."""
        self._snapshot.part.check_range(descriptor, scanned(low, high))
        plan = self._checked_plan(descriptor)
        names = ", ".join(plan.all_names)
        where = range_of(plan.key_names, low, high)
        order = ", ".join(str(n + 1) for n in range(plan.key_width))
        text = (
            f"SELECT {names} FROM {plan.name} WHERE lsn <= ?{where}"
            f" UNION ALL SELECT {names} FROM {self._old(plan)} AND lsn <= ?{where}"
            f" ORDER BY {order} LIMIT ?"
        )
        bounds = (*(low or ()), *(high or ()))
        bindings = (self.lsn, *bounds, self._later, self.lsn, *bounds, rows_max)
        return self._snapshot.rows(plan, text, bindings)

    def get_by(
        self, descriptor: Descriptor, index_id: int, values: Key, *, rows_max: int
    ) -> Iterator[tuple[Key, Row]]:
        """Yield rows by an index of then: by entries of what has not changed since, and else by the
        entries that the old images had."""
        self._snapshot.part.check_range(descriptor, KeyRange())
        index = next(i for i in descriptor.indexes if i.element_id == index_id)
        assert index.state in READABLE, f"index {index.name!r} was not public then"
        plan, entries = self._checked_plan(descriptor), EntriesPlan(descriptor, index)
        entries.install(self._snapshot.connection)
        shown = ", ".join(f"t.{name}" for name in plan.all_names)
        parts = ", ".join(f"x.{name}" for name in entries.columns)
        keys = tuple(f"x.{name}" for name in entries.keys)
        where = "".join(f" AND {name} = ?" for name in keys[: len(values)])
        then = entries_then(plan, entries, self._old(plan, " AS t"))
        first = len(plan.all_names) + 1
        order = ", ".join(str(first + n) for n in range(len(entries.columns)))
        text = (
            f"SELECT {shown}, {parts} FROM {entries.name} AS x CROSS JOIN {plan.name} AS t"
            f" ON {match_of(plan)} WHERE t.lsn <= ?{where}"
            f" UNION ALL SELECT * FROM ({then}) AS x WHERE 1{where}"
            f" ORDER BY {order} LIMIT ?"
        )
        bounds = entries.key(values)
        bindings = (self.lsn, *bounds, self._later, self.lsn, *bounds, rows_max)
        return self._snapshot.rows(plan, text, bindings)

    # ------------------------------------------------------------ inside

    def _checked_plan(self, descriptor: Descriptor) -> ReadPlan:
        """Looked at once: how far back this table is known."""
        if descriptor.table_id not in self._checked:
            check_kept(table_kept_from(self._snapshot.connection, descriptor.table_id), self.lsn)
            self._checked.add(descriptor.table_id)
        return self._snapshot.plan(descriptor)

    def _old(self, plan: ReadPlan, alias: str = "") -> str:
        """Return FROM … WHERE of the images replaced since, made once for each table and alias."""
        table = plan.descriptor.table_id
        found = self._since.get((table, alias))
        if found is None:
            found = old_images(self._snapshot.connection, plan, self._later, alias)
            self._since[table, alias] = found
        return found


def old_images(connection: apsw.Connection, plan: ReadPlan, later: int, alias: str) -> str:
    """Return FROM … WHERE of a table's images replaced since; `later` is to be bound for it. They
    come in the order in which they were replaced or, if they are many, as their keys are asked for.
    """
    counted = f"SELECT count(*) FROM (SELECT 1 FROM {plan.past} WHERE id >= ? LIMIT ?)"
    many = connection.execute(counted, (later, FEW_CHANGES + 1)).get == FEW_CHANGES + 1
    return f"{plan.past}{alias} " + ("WHERE +id >= ?" if many else "NOT INDEXED WHERE id >= ?")


def entries_then(plan: ReadPlan, entries: EntriesPlan, since: str) -> str:
    """Old images `since` (as `t`) that were there at an LSN, each with the entry it had."""
    shown = ", ".join(f"t.{name} AS {name}" for name in plan.all_names)
    made = zip(
        (*entries.from_row, *entries.primary_of_row),
        (*entries.keys, *entries.primary),
        strict=True,
    )
    parts = ", ".join(f"{part} AS {name}" for part, name in made)
    held = f" AND {entries.held}" if entries.held else ""
    return f"SELECT {shown}, {parts} FROM {since} AND t.lsn <= ?{held}"


def range_of(names: tuple[str, ...], low: Key | None, high: Key | None) -> str:
    """Return AND … of a half-open range over key columns, by row values so that the key's order
    serves."""
    terms: list[str] = []
    for bound, sign in ((low, ">="), (high, "<")):
        if bound:
            columns = ", ".join(names[: len(bound)])
            terms.append(f" AND ({columns}) {sign} ({', '.join('?' * len(bound))})")
    return "".join(terms)


def match_of(plan: ReadPlan) -> str:
    """Return the condition that joins entries `x` with their rows `t`."""
    primary = enumerate(plan.descriptor.primary_key)
    return " AND ".join(f"t.{column_name(e)} = x.p{n}" for n, e in primary)
