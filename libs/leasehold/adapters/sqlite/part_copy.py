"""Copies of a part of a store: the catalog, and the rows, entries and old images of what is held.

Everything is read at one commit, while the store is written to, so the log position in the copy
(L6) is that of its rows. What nobody but a master needs, outcomes of requests, stays away.
"""

# ruff: noqa: S608 - statement text comes from a store's own schema and from integers, values are bound

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import apsw

from leasehold.adapters.sqlite.layout import (
    ASIDE,
    PARTIAL_LAYOUT,
    column_name,
    connect,
    element_ids,
    physical_columns,
    table_name,
    write_part,
)
from leasehold.adapters.sqlite.read_catalog import CatalogReader, ReadCatalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.part import HeldTable, Part, PartWish, RowsWanted
from leasehold.catalog.part_choice import choose_part
from leasehold.catalog.states import READABLE, State
from leasehold.model.errors import ConfigurationError
from leasehold.sql.planning.key_text import null_text
from leasehold.sql.planning.part_condition import read_condition

CACHE_MB: Final = 16
_OF_TABLE: Final = re.compile(r"[txh](\d+)(?:_\d+)?\Z")
"""Rows, entries and old images of a table, as `physical_names` calls them."""
_LEFT_OUT: Final = frozenset({"outcomes", "untimely", "attempts", "part", "sqlite_sequence"})
"""Tables of which no row is copied."""
_BY_TABLE: Final = frozenset({"range_backfills", "row_history"})
"""Tables of whose rows only those about a held table are copied."""
_COUNTS: Final = "row_counts"
"""Of which only those of whole tables are: others are counted when the copy is opened."""
_SCHEMA: Final = (
    "SELECT name, sql FROM source.sqlite_schema WHERE type = ? AND sql IS NOT NULL ORDER BY name"
)


class PartCopy(NamedTuple):
    """What was copied: the part, and rows by table id."""

    part: Part
    rows: dict[int, int]


def copy_part(source: Path, target: Path, wish: PartWish) -> PartCopy:
    """Copy what is wished for of the store `source` at one commit into the new file `target`.

    Raises ConfigurationError for what can't be held, with names, and for a store that is a part
    itself.
    """
    connect(source, cache_mb=CACHE_MB, read_only=True).close()  # whether it is a store at all
    copy = apsw.Connection(str(target))
    try:
        copy.execute(f"PRAGMA cache_size = -{CACHE_MB * 1024}")
        copy.execute("PRAGMA journal_mode = OFF")
        copy.execute("PRAGMA synchronous = OFF")
        copy.execute("ATTACH ? AS source", (str(source),))
        application = copy.pragma("application_id", schema="source")
        copy.execute(f"PRAGMA main.application_id = {int(application)}")
        with copy:
            copied = _copy(copy, wish)
        copy.execute("DETACH source")
    finally:
        copy.close()
    return copied


def _copy(copy: apsw.Connection, wish: PartWish) -> PartCopy:
    tables: list[Any] = list(copy.execute(_SCHEMA, ("table",)))
    small = [(name, sql) for name, sql in tables if not _is_of_rows(name)]
    for name, sql in small:
        if name != "sqlite_sequence":  # SQLite's own
            copy.execute(sql)
        if name not in _LEFT_OUT | _BY_TABLE | {_COUNTS}:
            copy.execute(f"INSERT INTO main.{name} SELECT * FROM source.{name}")
    if any(name == "part" for name, _ in tables):
        raise ConfigurationError("the node that was asked for a copy is a partial replica itself")
    catalog = CatalogReader().at(0, copy)
    part = _chosen(catalog, wish)
    held = part.table_ids()
    for name, _ in small:
        if name in _BY_TABLE:
            _copy_some(copy, name, held)
        elif name == _COUNTS:
            _copy_some(copy, name, [each for each in held if part.holds_whole(each)])
    for _, sql in list(copy.execute(_SCHEMA, ("index",))):
        copy.execute(sql)
    rows: dict[int, int] = {}
    for name, sql in tables:
        table_id = _table_of(name)
        if table_id and part.stores(table_id):
            copy.execute(sql)
            rows_wanted = RowsWanted(part.keys(table_id), part.equal(table_id))
            where, bindings = _where(name, catalog.versions[table_id][-1].primary_key, rows_wanted)
            shown = (
                _columns_of(copy, name, part.tables[table_id], catalog)
                if (part.tables is not None and part.lists_columns(table_id))
                else "*"
            )
            copy.execute(
                f"INSERT INTO main.{name} SELECT {shown} FROM source.{name}{where}", bindings
            )
            if name[0] == "t":
                rows[table_id] = copy.changes()
    write_part(copy, part)
    assert copy.pragma("user_version") == PARTIAL_LAYOUT
    return PartCopy(part, rows)


def _copy_some(copy: apsw.Connection, name: str, table_ids: Collection[int]) -> None:
    for table_id in table_ids:
        copy.execute(
            f"INSERT INTO main.{name} SELECT * FROM source.{name} WHERE table_id = ?", (table_id,)
        )


def _is_of_rows(name: str) -> bool:
    return bool(_table_of(name)) or name.startswith(ASIDE)


def _table_of(name: str) -> int:
    """Return which table's rows, entries or images a table of the file has, 0: it is another."""
    found = _OF_TABLE.match(name)
    return int(found.group(1)) if found else 0


def _columns_of(copy: apsw.Connection, name: str, held: HeldTable, catalog: ReadCatalog) -> str:
    """Return what is copied of each column of a table of rows, images or entries: nothing of a
    column that is not held. An entry has then the parts that the row has."""
    columns = physical_columns(copy, name)
    if name[0] != "x":
        lacking = {
            column_name(element) for element in element_ids(columns) if element not in held.elements
        }
        return ", ".join("NULL" if column in lacking else column for column in columns)
    index_id = int(name.rpartition("_")[2])
    versions = reversed(catalog.versions[held.table_id])
    found = ((v, i) for v in versions for i in v.indexes if i.element_id == index_id)
    version, index = next(found, (None, None))
    if version is None or index is None:
        return ", ".join(columns)
    shown = list(columns)
    for place, element in enumerate(index.columns):
        if element not in held.elements and f"k{place}" in columns:
            column = version.by_id.get(element)
            shown[columns.index(f"k{place}")] = null_text(getattr(column, "type", None))
    for place, element in enumerate(index.included):
        if element not in held.elements and f"i{place}" in columns:
            shown[columns.index(f"i{place}")] = "NULL"
    return ", ".join(shown)


def _where(name: str, key: Sequence[int], wanted: RowsWanted) -> tuple[str, tuple[Any, ...]]:
    """Return the condition of what is copied of a table of rows, images or entries. `key`: the
    columns of the primary key. An old image is copied by the value that it has itself."""
    of_entries = name[0] == "x"
    columns = [f"p{n}" if of_entries else column_name(each) for n, each in enumerate(key)]
    terms: list[str] = []
    bindings: list[Any] = []
    for sign, bound in ((">=", wanted.keys.low), ("<", wanted.keys.high)):
        if bound is not None:
            terms.append(f"{columns[0]} {sign} ?")
            bindings.append(bound)
    if wanted.equal is not None:
        term = f"{column_name(wanted.equal.element_id)} = ?"
        if of_entries:
            rows = table_name(_table_of(name))
            keys = ", ".join(map(column_name, key))
            term = f"({', '.join(columns)}) IN (SELECT {keys} FROM source.{rows} WHERE {term})"
        terms.append(term)
        bindings.append(wanted.equal.value)
    return (f" WHERE {' AND '.join(terms)}" if terms else ""), tuple(bindings)


def _chosen(catalog: ReadCatalog, wish: PartWish) -> Part:
    there = {
        table_id: versions[-1]
        for table_id, versions in catalog.versions.items()
        if versions[-1].state is not State.ABSENT
    }
    newest = {
        name: _read_under(table, there)
        for name, table in catalog.newest.items()
        if table.table_id in there
    }

    def under(name: str) -> Collection[int] | None:
        views = catalog.access.views
        view = catalog.access.views_by_name.get(name)
        return None if view is None else frozenset(_under(view.table_id, views))

    part = choose_part(wish, newest, under, read_condition)
    for table in there.values():
        if table.former and not part.holds(table.table_id):
            part = part.followed_by(table)  # rows go over to it
    return part


def _read_under(newest: Descriptor, there: Mapping[int, Descriptor]) -> Descriptor:
    """Return the table that is read under the name of `newest`: another one, while rows go over
    from that to this one. It has no rows yet but those that it gets from there."""
    return newest if newest.state in READABLE else there.get(newest.former, newest)


def _under(view_id: int, views: Any) -> Iterator[int]:
    """Yield the tables that a view needs, those of views under it included."""
    seen: set[int] = set()
    waiting = [view_id]
    while waiting:
        view = views.get(waiting.pop())
        if view is None or view.table_id in seen:
            continue
        seen.add(view.table_id)
        yield from (table.table_id for table in view.tables)
        waiting += view.views.values()
