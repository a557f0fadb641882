"""Removing what is dead from a store's file: columns, entries and tables that no version in use
names, and what was truncated, in small pieces beside the log, each in a transaction of its own.

Dropping is so cheap that it can happen at one log position on every node; the work of it must not:
SQLite's own DROP COLUMN rewrites a table and DROP TABLE frees all its pages at once, which would
stop every node at the same LSN. A dead column's values are set to NULL and the empty column stays.
"""

# ruff: noqa: S608 - statement text comes from integer ids alone, values are bound

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import apsw

from leasehold.adapters.sqlite.catalog import StoredTables
from leasehold.adapters.sqlite.counts import forget_rows
from leasehold.adapters.sqlite.layout import (
    column_name,
    element_ids,
    entries_name,
    entries_tables,
    history_name,
    physical_columns,
    primary_key_of,
    table_name,
    tables_aside,
)

_ASIDE: Final = -1
"""Stands for what was set aside, among tables to look at."""
LOOKED_AT_MAX: Final = 32
"""Tables that a step looks at where it finds nothing to do."""


class Removal:
    """The removal as the writer drives it: it is told which tables to `look` at, then `step`s until
    that says no. Tables in which something is dead that can still be read as of an earlier LSN
    wait; when the floor of what is kept has risen, `look_again`."""

    def __init__(
        self,
        connection: apsw.Connection,
        tables: StoredTables,
        lose_past: Callable[[int], None],
    ) -> None:
        """Begin with nothing to look at. `lose_past` is told of each table whose place for old
        images goes."""
        self._connection = connection
        self._tables = tables
        self._lose_past = lose_past
        self._todo: dict[int, None] = {}  # tables, in order
        self._table_id = 0  # at work
        self._work: Iterator[None] | None = None
        self._waiting: set[int] = set()
        self._rows_max = 0

    def look_at_all(self) -> None:
        """Look at every table that there may be something in, and at what was set aside."""
        self.look((_ASIDE, *self._tables.may_have_leftovers()))

    def look_aside(self) -> None:
        """Look at what was set aside."""
        self.look((_ASIDE,))

    def look(self, table_ids: Iterable[int]) -> None:
        """Look at those tables, anew, since what is dead may have changed, once all that is to be
        read is committed."""
        for table_id in table_ids:
            self._todo[table_id] = None
            if table_id == self._table_id:
                self._work = None

    def look_again(self) -> None:
        """Look at the tables that wait."""
        self.look(self._waiting)
        self._waiting = set()

    def step(self, rows_max: int) -> bool:
        """Touch at most about `rows_max` rows in one transaction, and return whether there is more
        to do."""
        if self._work is None and not self._todo:
            return False
        self._rows_max = rows_max
        with self._connection:
            for _ in range(LOOKED_AT_MAX):
                if self._work is None:
                    if not self._todo:
                        return False
                    self._table_id = next(iter(self._todo))
                    del self._todo[self._table_id]
                    self._work = self._look_at(self._table_id)
                if next(self._work, self) is not self:
                    return True
                self._work = None
        return bool(self._todo)

    # ------------------------------------------------------------ each piece ends with a yield

    def _look_at(self, table_id: int) -> Iterator[None]:
        self._waiting.discard(table_id)
        if table_id == _ASIDE:
            for name in tables_aside(self._connection):
                yield from self._emptied(name)
            return
        absent, readable = self._tables.leftover(table_id)
        if absent and readable:
            self._waiting.add(table_id)
        elif absent:
            yield from self._table(table_id)
        else:
            yield from self._elements(table_id)

    def _elements(self, table_id: int) -> Iterator[None]:
        dead = self._tables.removable_elements(table_id)
        if dead != self._tables.dead_elements(table_id):
            self._waiting.add(table_id)
        if not dead:
            return
        for index_id in set(entries_tables(self._connection, table_id)) & dead:
            yield from self._emptied(entries_name(table_id, index_id))
        columns = set(element_ids(physical_columns(self._connection, table_name(table_id))))
        for element_id in sorted((columns & dead) - self._removed(table_id)):
            yield from self._column(table_id, element_id)

    def _table(self, table_id: int) -> Iterator[None]:
        for index_id in entries_tables(self._connection, table_id):
            yield from self._emptied(entries_name(table_id, index_id))
        if physical_columns(self._connection, table_name(table_id)):
            forget_rows(self._connection, table_id)
            yield from self._emptied(table_name(table_id))
        self._lose_past(table_id)
        if physical_columns(self._connection, history_name(table_id)):
            yield from self._emptied(history_name(table_id))

    def _emptied(self, name: str) -> Iterator[None]:
        """Delete a table's rows first, so that dropping it frees next to nothing."""
        keys = ", ".join(primary_key_of(self._connection, name))
        some = f"SELECT {keys} FROM {name} ORDER BY {keys} LIMIT ?"
        while True:
            self._connection.execute(
                f"DELETE FROM {name} WHERE ({keys}) IN ({some})", (self._rows_max,)
            )
            if self._connection.changes() == 0:
                break
            yield
        self._connection.execute(f"DROP TABLE {name}")
        yield

    def _column(self, table_id: int, element_id: int) -> Iterator[None]:
        name, column = table_name(table_id), column_name(element_id)
        keys = primary_key_of(self._connection, name)
        order, holes = ", ".join(keys), ", ".join("?" * len(keys))
        last: tuple[Any, ...] = ()
        while True:
            after = f" WHERE ({order}) > ({holes})" if last else ""
            found = self._connection.execute(
                f"SELECT {order} FROM {name}{after} ORDER BY {order} LIMIT 1 OFFSET ?",
                (*last, self._rows_max - 1),
            ).fetchall()
            until = f"{' AND' if last else ' WHERE'} ({order}) <= ({holes})" if found else ""
            bound: tuple[Any, ...] = tuple(found[0]) if found else ()
            where = f"{after}{until}"
            where += f"{' AND' if where else ' WHERE'} {column} IS NOT NULL"
            self._connection.execute(f"UPDATE {name} SET {column} = NULL{where}", (*last, *bound))
            if not found:
                break
            last = bound
            yield
        self._connection.execute("INSERT INTO removed VALUES (?, ?)", (table_id, element_id))
        yield

    def _removed(self, table_id: int) -> set[int]:
        """Return the columns that are empty already: they are not looked through again after a
        restart."""
        found = self._connection.execute(
            "SELECT element_id FROM removed WHERE table_id = ?", (table_id,)
        )
        return {element_id for (element_id,) in found}
