"""Copies the rows of a range into the table that has them under another key, with their entries, by
statements for all of them at once.

They are read in the order of the unique index that the old table has over the new key, so they are
put in that of the new table. Rows that are there stay as they are: see `rows/row_copies.py`.
"""

# ruff: noqa: S608 - statement text comes from integer ids alone, values are bound

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import apsw

from leasehold.adapters.sqlite.layout import column_name, lock_name
from leasehold.adapters.sqlite.plan import EntriesPlan, WritePlan
from leasehold.catalog.states import WRITTEN
from leasehold.model.keys import Key
from leasehold.model.ports import CopyRange
from leasehold.model.records.log import CopiedRows, KeySpan
from leasehold.rows.row_copies import digest_expression, digest_genids


class Copied(NamedTuple):
    """How many rows a statement has put, and their digest."""

    rows: int
    digest: int


class RowCopying:
    """The statements that copy rows of `source` into `target`, by the index `by` of the first."""

    def __init__(self, source: WritePlan, target: WritePlan, by: EntriesPlan) -> None:
        self._source = source
        self._target = target
        self._keys = tuple(f"e.{key}" for key in by.keys)
        joined = (f"t.{k} = e.{p}" for k, p in zip(source.key_names, by.primary, strict=True))
        self._from = f" FROM {by.name} AS e CROSS JOIN {source.name} AS t ON {' AND '.join(joined)}"
        # What is NULL there has no key here. None is: it is enforced before.
        self._has_key = [f"t.{name} IS NOT NULL" for name in target.key_names]
        self._columns = tuple(e for e in target.ids if e in source.ids)
        locks = (
            f"ifnull(t.{lock_name(lock)}, 0)" if lock in source.locks else "0"
            for lock in target.locks
        )
        self._shown = (*(f"t.{column_name(e)}" for e in self._columns), *locks)
        self._edges = f"SELECT {', '.join(self._keys)} FROM {by.name} AS e"

    def read(self, connection: apsw.Connection, after: Key, rows_max: int) -> CopyRange:
        """Return the range behind `after` that has `rows_max` rows, those that are there included,
        and what it would add; the last one ends nowhere."""
        order = ", ".join(self._keys)
        where, bound = _between(self._keys, KeySpan(after, ()))
        edge = f"{self._edges}{_where(where)} ORDER BY {order} LIMIT 1 OFFSET ?"
        found: list[Key] = connection.execute(edge, (*bound, rows_max - 1)).fetchall()
        span = KeySpan(after, found[0] if found else ())
        where, bound = _between(self._keys, span)
        same = zip(self._target.key_names, self._keys, strict=True)
        there = " AND ".join(f"u.{name} = {key}" for name, key in same)
        missing = f"NOT EXISTS (SELECT 1 FROM {self._target.name} AS u WHERE {there})"
        rows: list[tuple[Any, ...]] = connection.execute(
            f"SELECT {', '.join(self._shown)}{self._from}"
            f"{_where([*where, *self._has_key, missing])} ORDER BY {order}",
            bound,
        ).fetchall()
        width = len(self._columns)
        digest = digest_genids(row[width:] for row in rows)
        copied = CopiedRows(
            self._columns, self._target.key_width, self._target.locks, tuple(rows), digest
        )
        return CopyRange(span, copied)

    def put(self, connection: apsw.Connection, span: KeySpan, lsn: int) -> Copied:
        """Copy the rows of a range that are not there, as of the commit `lsn`, and put their
        entries."""
        target = self._target
        names = (
            *map(column_name, self._columns),
            *map(lock_name, target.locks),
            "lsn",
            *(column_name(e) for e in sorted(target.known.difference(self._columns))),
        )
        # ⚠ A dead column may have a default of the file's own, which nobody is to keep.
        nothing = ["NULL"] * len(target.known.difference(self._columns))
        where, bound = _between(self._keys, span)
        connection.execute(
            f"INSERT OR IGNORE INTO {target.name} ({', '.join(names)})"
            f" SELECT {', '.join([*self._shown, '?', *nothing])}{self._from}"
            f"{_where([*where, *self._has_key])} ORDER BY {', '.join(self._keys)}",
            (lsn, *bound),
        )
        where, bound = _between([f"t.{name}" for name in target.key_names], span)
        these, bound = _where([*where, "t.lsn = ?"]), (*bound, lsn)
        digest = digest_expression(f"t.{lock_name(lock)}" for lock in target.locks)
        counted: list[Any] = connection.execute(
            f"SELECT count(*), ifnull(sum({digest}), 0) FROM {target.name} AS t{these}", bound
        ).fetchall()
        for entries in self._written_entries():
            shown = (*entries.from_row, *entries.primary_of_row, *entries.included_of_row)
            order = ", ".join(str(n + 1) for n in range(len(entries.columns)))
            connection.execute(
                f"INSERT OR IGNORE INTO {entries.name} SELECT {', '.join(shown)}"
                f" FROM {target.name} AS t{these} ORDER BY {order}",
                bound,
            )
        return Copied(*counted[0])

    def _written_entries(self) -> Iterable[EntriesPlan]:
        for entries in self._target.entries.values():
            if entries.index.state in WRITTEN:
                assert not entries.held, "where an entry is computed rows are filled by images"
                yield entries


def _between(columns: Sequence[str], span: KeySpan) -> tuple[list[str], Key]:
    """Return the conditions on a key in the range, and what they are bound."""
    key, holes = ", ".join(columns), ", ".join("?" * len(columns))
    parts = []
    if span.after:
        parts.append(f"({key}) > ({holes})")
    if span.through:
        parts.append(f"({key}) <= ({holes})")
    return parts, (*span.after, *span.through)


def _where(parts: Sequence[str]) -> str:
    return f" WHERE {' AND '.join(parts)}" if parts else ""
