"""Statements of one table, made once per descriptor version and then only looked up.

The order of values is the same everywhere: key columns, other columns, genids, image LSN.
"""

# ruff: noqa: S608 - statement text comes from integer ids alone, values are bound

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import apsw

from leasehold.adapters.sqlite.functions import EntryFunctions
from leasehold.adapters.sqlite.layout import (
    column_name,
    entries_name,
    history_name,
    lock_name,
    table_name,
)
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import EXPRESSION, Index
from leasehold.catalog.states import DELETED, State
from leasehold.model.keys import Key
from leasehold.model.ports import Row
from leasehold.rows.index_entries import Entry
from leasehold.sql.expressions.expression import type_of_expression
from leasehold.values.types import null_in_entries


def find_nulls(descriptor: Descriptor, index: Index) -> tuple[str | bytes, ...]:
    """Return what stands for NULL in each part of an index's key: a PRIMARY KEY WITHOUT ROWID
    allows none."""
    there, texts = descriptor.by_id, iter(index.expressions)
    seen = descriptor.showing(index.mentioned) if index.expressions else descriptor
    return tuple(
        null_in_entries(
            type_of_expression(next(texts), seen)
            if column == EXPRESSION
            else there[column].type
            if column in there
            else None
        )
        for column in index.columns
    )


class EntriesPlan:
    """Statements for the entries of one index. `keys`, `primary` and `included` are columns of its
    table; the first two are its primary key.

    `from_row` and `held` are SQL over a row `t`: each column's value, and whether the row has an
    entry ("": each row has). Of a computed index they call functions, made by `install`.
    """

    def __init__(self, descriptor: Descriptor, index: Index) -> None:
        self.index = index
        self.name = entries_name(descriptor.table_id, index.element_id)
        self.keys = tuple(f"k{n}" for n in range(len(index.columns)))
        self.primary = tuple(f"p{n}" for n in range(len(descriptor.primary_key)))
        self.included = tuple(f"i{n}" for n in range(len(index.included)))
        self.columns = self.keys + self.primary
        holes = ", ".join("?" * (len(self.columns) + len(self.included)))
        # OR IGNORE: a backfill may have put the entry already.
        self.put = f"INSERT OR IGNORE INTO {self.name} VALUES ({holes})"
        self.remove = f"DELETE FROM {self.name} WHERE " + " AND ".join(
            f"{column} = ?" for column in self.columns
        )
        self.holders = (
            f"SELECT {', '.join(self.primary)} FROM {self.name} WHERE "
            + " AND ".join(f"{key} = ?" for key in self.keys)
            + f" ORDER BY {', '.join(self.primary)} LIMIT ?"
        )
        self._functions = EntryFunctions(descriptor, index)
        self.held = self._functions.held
        self.nulls = find_nulls(descriptor, index)
        self.null_texts = tuple("''" if null == "" else "x''" for null in self.nulls)
        self.from_row = tuple(
            f"ifnull({self._functions.part(number, column)}, {self.null_texts[number]})"
            for number, column in enumerate(index.columns)
        )
        self.primary_of_row = tuple(f"t.{column_name(e)}" for e in descriptor.primary_key)
        self.included_of_row = tuple(f"t.{column_name(e)}" for e in index.included)

    def install(self, connection: apsw.Connection) -> None:
        """Give the connection what `from_row` and `held` call."""
        self._functions.install(connection)

    def key(self, values: Key, first: int = 0) -> Key:
        """Return values of the key's parts from `first` on as they stand in the entries."""
        if None not in values:
            return values
        nulls = self.nulls[first : first + len(values)]
        pairs = zip(values, nulls, strict=True)
        return tuple(null if value is None else value for value, null in pairs)

    def put_bindings(self, entry: Entry, primary: Key) -> tuple[Any, ...]:
        width = len(self.keys)
        return (*self.key(entry[:width]), *primary, *entry[width:])

    def remove_bindings(self, entry: Entry, primary: Key) -> tuple[Any, ...]:
        return (*self.key(entry[: len(self.keys)]), *primary)


class ReadPlan:
    """Reads of one table. `columns` are element ids, key columns first. ⚠ The file has no
    column yet of those that the reader's own transaction adds: `ahead` says what rows have."""

    def __init__(self, descriptor: Descriptor, columns: Sequence[int]) -> None:
        self.descriptor = descriptor
        self.key_ids = descriptor.primary_key
        ahead = descriptor.ahead
        self._ahead = {e: value for e, value in ahead.items() if value is not None}
        self.other_ids = tuple(e for e in columns if e not in self.key_ids and e not in ahead)
        self.ids = self.key_ids + self.other_ids
        self.locks = descriptor.locks
        self.width = len(self.ids)
        self.key_width = len(self.key_ids)
        self.name = table_name(descriptor.table_id)
        self.past = history_name(descriptor.table_id)
        self.key_names = tuple(column_name(e) for e in self.key_ids)
        self.all_names = (
            *(column_name(e) for e in self.ids),
            *(lock_name(lock) for lock in self.locks),
            "lsn",
        )
        self.where_key = " AND ".join(f"{name} = ?" for name in self.key_names)
        wanted = f"({', '.join(self.key_names)})"
        holes = f"({', '.join('?' * len(self.key_names))})"
        self.any_between = (
            f"SELECT 1 FROM {self.name} WHERE {wanted} >= {holes} AND {wanted} <= {holes} LIMIT 1"
        )
        self.get = f"SELECT {', '.join(self.all_names)} FROM {self.name} WHERE {self.where_key}"
        # One statement is one snapshot, without BEGIN and COMMIT: the row, if it is there, and one
        # of NULLs, each with the count of catalog changes. A join takes twice as long.
        public = [column_name(column.element_id) for column in descriptor.by_name.values()]
        count = "(SELECT catalog FROM position)"
        self.get_public = (
            f"SELECT {', '.join([*public, 'lsn', count])} FROM {self.name} WHERE {self.where_key}"
            f" UNION ALL SELECT {'NULL, ' * (len(public) + 1)}{count}"
        )
        self._one_lock = self.locks[0] if len(self.locks) == 1 else None

    def row(self, found: tuple[Any, ...]) -> Row:
        """A selected row as Row; an absent pair is simply not in the image."""
        width = self.width
        if None in found:
            values = {e: v for e, v in zip(self.ids, found, strict=False) if v is not None}
        else:
            values = dict(zip(self.ids, found, strict=False))
        if self._ahead:
            values |= self._ahead
        if self._one_lock is not None:
            genids: Mapping[int, int] = {self._one_lock: found[width]}
        else:
            genids = {
                lock: value
                for lock, value in zip(self.locks, found[width:-1], strict=True)
                if value is not None
            }
        return Row(values, genids, found[-1])


class WritePlan(ReadPlan):
    """Reads and writes of one table under one descriptor version.

    `columns` are all live physical columns, not only those the version knows: an image carries
    every pair of its row (T0). `known` are the element ids that the file has a column for, and
    `physical` all its columns, dead ones too.

    `keep` copies a row as it is, if an earlier LSN wrote it, to the images of the past.
    """

    def __init__(
        self,
        descriptor: Descriptor,
        columns: Sequence[int],
        known: frozenset[int],
        physical: Sequence[str],
    ):
        super().__init__(descriptor, columns)
        self.known = known
        shown = ", ".join(physical)
        self.keep = (
            f"INSERT INTO {self.past} (id, {shown})"
            f" SELECT ?, {shown} FROM {self.name} WHERE {self.where_key} AND lsn < ?"
        )
        # ⚠ A dead column may have a default of the file's own, which nobody is to keep.
        dead = tuple(map(column_name, sorted(known.difference(self.ids))))
        names = (*self.all_names, *dead)
        values = (*"?" * len(self.all_names), *("NULL",) * len(dead))
        self.insert = f"INSERT INTO {self.name} ({', '.join(names)}) VALUES ({', '.join(values)})"
        self.entries = {
            index.element_id: EntriesPlan(descriptor, index)
            for index in descriptor.indexes
            if index.state in DELETED
        }
        indexed = {e for plan in self.entries.values() for e in plan.index.over}
        self.indexed_ids = tuple(e for e in self.ids if e in indexed)
        shown = ", ".join(column_name(e) for e in self.indexed_ids) or "1"
        self.get_indexed = f"SELECT {shown} FROM {self.name} WHERE {self.where_key}"
        self._updates: dict[tuple[tuple[int, ...], tuple[int, ...]], str] = {}
        self._deletes: dict[tuple[int, ...], str] = {}
        # Columns that a backfill by images may put, and whether an index has to be told of it.
        filled = {c.element_id for c in descriptor.columns if c.state is State.WRITE_ONLY}
        self.backfill_moves_entries = any(
            plan.index.state is not State.PUBLIC or not filled.isdisjoint(plan.index.over)
            for plan in self.entries.values()
        )

    def update(self, written: tuple[int, ...], verified: tuple[int, ...]) -> str:
        """UPDATE of every pair, setting the genids of `written` where those of `verified` agree."""
        text = self._updates.get((written, verified))
        if text is None:
            names = [column_name(e) for e in self.other_ids]
            names += [lock_name(lock) for lock in written]
            sets = ", ".join(f"{name} = ?" for name in [*names, "lsn"])
            text = f"UPDATE {self.name} SET {sets} WHERE {self.where_key}{_verify(verified)}"
            self._updates[written, verified] = text
        return text

    def backfill(self, verified: tuple[int, ...]) -> str:
        """UPDATE of every pair and of nothing else, where the genids of `verified` agree."""
        sets = ", ".join(f"{column_name(e)} = ?" for e in self.other_ids)
        return f"UPDATE {self.name} SET {sets} WHERE {self.where_key}{_verify(verified)}"

    def delete(self, verified: tuple[int, ...]) -> str:
        text = self._deletes.get(verified)
        if text is None:
            text = f"DELETE FROM {self.name} WHERE {self.where_key}{_verify(verified)}"
            self._deletes[verified] = text
        return text


def _verify(locks: tuple[int, ...]) -> str:
    return "".join(f" AND {lock_name(lock)} = ?" for lock in locks)
