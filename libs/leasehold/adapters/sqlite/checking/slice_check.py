"""A slice of `CHECK TABLE`: a range of a table's rows, or of an index's entries, in one snapshot.

A temporary view with the table's name stands in front of it on the check's own connection, so each
statement of the whole check serves as it is. Such a connection is never used for anything else.
"""

# ruff: noqa: S608 - statement text comes from integer ids alone, values are bound

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import apsw

from leasehold.adapters.sqlite.checking.checksum import Checksum
from leasehold.adapters.sqlite.checking.findings import TableFindings
from leasehold.adapters.sqlite.checking.table_check import TableCheck
from leasehold.adapters.sqlite.layout import entries_name, physical_columns
from leasehold.adapters.sqlite.plan import EntriesPlan
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Index
from leasehold.catalog.states import DELETED, READABLE
from leasehold.model.keys import Key
from leasehold.model.records.log import CheckSlice


class SliceCheck(TableCheck):
    """The check of one slice, of rows or of an index's entries. Of rows it finds what a row alone,
    and look-ups by it, can tell (1, 2, 4, CHECK, FOREIGN KEY). Of entries it finds what an entry
    and its row tell (5), and whether its key is there twice (6), for which a slice of a unique
    index ends behind the last entry of a key."""

    def __init__(
        self,
        connection: apsw.Connection,
        versions: Sequence[Descriptor],
        min_version: int,
        collected: frozenset[int],
        lsn: int,
        wanted: CheckSlice,
        unmerged: frozenset[int] = frozenset(),
        parents: Mapping[int, str] = MappingProxyType({}),
    ) -> None:
        """Prepare the check on a connection that has its snapshot open and belongs to it alone."""
        about = versions, min_version, collected, lsn
        super().__init__(connection, *about, unmerged=unmerged, parents=parents)
        self._wanted = wanted

    def run_slice(self, elements: Sequence[int] = ()) -> tuple[TableFindings, Key | None]:
        """Return what was found, and the last key of the slice, None when nothing lies behind it.
        With `elements` only those are checked, as if they were public."""
        # What is made on this connection is temporary: nothing in the file is ever changed by it.
        self._connection.execute("PRAGMA query_only = 0")
        wanted = self._as_public(elements) if elements else self._newest
        return self._of_entries(wanted) if self._wanted.part else self._of_rows(wanted, elements)

    # ------------------------------------------------------------ rows

    def _of_rows(
        self, wanted: Descriptor, elements: Sequence[int]
    ) -> tuple[TableFindings, Key | None]:
        if not self._physical:
            return self._found.result(0, self._entries, b""), None
        until = self._until(self._table, self._keys)
        self._stand_before(self._table, self._keys, until)
        rows = self._rows_of(self._table)
        if elements:
            self._columns([c for c in wanted.columns if c.element_id in elements])
        else:
            self._rows()
            self._unknown()
        self._row_by_row(wanted, elements)
        for index in wanted.indexes:
            if index.state in READABLE and (index.element_id in elements or not elements):
                self._look_up_entries(index)
        self._entry_tables = ()
        rows_sum, _ = self._checksum(elements)
        return self._found.result(rows, self._entries, rows_sum), until

    def _look_up_entries(self, index: Index) -> None:
        """Find rows without their entry by look-ups alone: joined, the view would be gone through
        for each entry."""
        plan = EntriesPlan(self._newest, index)
        plan.install(self._connection)
        if plan.held:
            self._computable(index)
        clause = f"FROM {self._table} AS t WHERE {plan.held or '1'}"
        if index.element_id in self._entry_tables:
            clause = self._lacking_clause(plan)
        self._lacking(index, plan, clause)

    # ------------------------------------------------------------ entries

    def _of_entries(self, wanted: Descriptor) -> tuple[TableFindings, Key | None]:
        index = wanted.element(self._wanted.part)
        # Of one that each node fills at its own pace no two have the same slices.
        there = isinstance(index, Index) and (
            index.element_id in self._entry_tables and index.element_id not in self._unmerged
        )
        if not isinstance(index, Index) or not there or index.state not in DELETED:
            return self._found.result(0, self._entries, b""), None
        plan = EntriesPlan(self._newest, index)
        until = self._until(plan.name, plan.columns)
        if until is not None and index.unique:
            until = self._last_of_key(plan, until)
        self._stand_before(plan.name, plan.columns, until)
        self._index(index, 0, complete=False)
        if index.state in READABLE and index.unique:
            self._unique(index, plan)
        total = Checksum(self._connection)
        name = entries_name(self._newest.table_id, index.element_id)
        total.add(name, plan.columns, physical_columns(self._connection, name))
        return self._found.result(0, self._entries, total.digest()), until

    def _last_of_key(self, plan: EntriesPlan, until: Key) -> Key:
        keys = ", ".join(plan.keys)
        holes = ", ".join("?" * len(plan.keys))
        order = ", ".join(f"{name} DESC" for name in plan.primary)
        found: Any = self._connection.execute(
            f"SELECT {', '.join(plan.columns)} FROM main.{plan.name} WHERE ({keys}) = ({holes})"
            f" ORDER BY {order} LIMIT 1",
            until[: len(plan.keys)],
        ).fetchall()
        last: Key = tuple(found[0])
        has_null = any(part == null for part, null in zip(until, plan.nulls, strict=False))
        alone = has_null and not plan.index.equal_nulls
        return until if alone else last

    # ------------------------------------------------------------ ranges

    def _until(self, name: str, columns: Sequence[str]) -> Key | None:
        order, after = ", ".join(columns), tuple(self._wanted.after)
        where = f" WHERE ({order}) > ({', '.join('?' * len(columns))})" if after else ""
        found = self._connection.execute(
            f"SELECT {order} FROM main.{name}{where} ORDER BY {order} LIMIT 1 OFFSET ?",
            (*after, self._wanted.rows_max - 1),
        ).fetchall()
        return tuple(found[0]) if found else None

    def _stand_before(self, name: str, columns: Sequence[str], until: Key | None) -> None:
        """The view: what lies above the slice before and not above `until`."""
        terms = []
        for sign, bound, letter in ((">", tuple(self._wanted.after), "l"), ("<=", until, "h")):
            if not bound:
                continue
            names = ", ".join(f"{letter}{number}" for number in range(len(columns)))
            holes = ", ".join("?" * len(columns))
            self._connection.execute(f"CREATE TEMP TABLE bound_{letter} ({names})")
            self._connection.execute(f"INSERT INTO temp.bound_{letter} VALUES ({holes})", bound)
            terms.append(f"({', '.join(columns)}) {sign} (SELECT {names} FROM temp.bound_{letter})")
        where = f" WHERE {' AND '.join(terms)}" if terms else ""
        self._connection.execute(f"CREATE TEMP VIEW {name} AS SELECT * FROM main.{name}{where}")
