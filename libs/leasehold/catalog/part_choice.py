"""Makes a part of one catalog of what a replica is to hold, as its owner says it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.part import (
    TABLES_MAX,
    WHOLE,
    HeldTable,
    Part,
    PartWish,
    RowsWanted,
    sequences_of,
)
from leasehold.model.errors import ConfigurationError

ReadCondition = Callable[[Descriptor, str], RowsWanted]
TablesOfView = Callable[[str], Collection[int] | None]


def choose_part(
    wish: PartWish,
    newest: Mapping[str, Descriptor],
    tables_of_view: TablesOfView,
    read_condition: ReadCondition,
) -> Part:
    """Return the part that is wished for. `newest`: tables by name. `tables_of_view`: the tables
    under a view, None: there is no such view. `read_condition`: see `sql.planning.part_condition`.

    With a table come the sequences that it draws from; others are named as tables are. Raises
    ConfigurationError, with names: for what does not exist, for a view, and for a table
    whose foreign keys refer to one that is not held, or not whole: whoever writes such a row is
    told at its statement whether the other row is there.
    """
    if wish.is_everything:
        return WHOLE
    if len(wish.tables) > TABLES_MAX:
        raise ConfigurationError(
            f"a partial replica holds {TABLES_MAX:,} tables at most; {len(wish.tables):,} are named"
        )
    by_id = {table.table_id: table for table in newest.values()}
    where, columns = dict(wish.where), dict(wish.columns)
    held: dict[int, HeldTable] = {}
    for name in wish.tables:
        table = newest.get(name)
        if table is None:
            raise ConfigurationError(_why_none(name, tables_of_view(name), by_id))
        text = where.get(name, "")
        rows = read_condition(table, text) if text else RowsWanted()
        chosen = columns.get(name, ())
        elements = _elements_of(table, chosen) if chosen else frozenset()
        if chosen and rows.equal is not None and rows.equal.element_id not in elements:
            raise ConfigurationError(
                f"a replica is to hold rows of table {name!r} with {text}: name that column among"
                " those that it holds, too"
            )
        held[table.table_id] = HeldTable(
            table.table_id, name, text, rows.keys, chosen, elements, rows.equal
        )
        for each in sequences_of(table):
            if each in by_id:
                held.setdefault(each, HeldTable(each, by_id[each].name))
    part = Part.of(held.values())
    missing = sorted(set(_lacking(part, by_id)))
    if missing:
        raise ConfigurationError(
            f"this replica can't hold {', '.join(wish.tables)} alone: {'; '.join(missing)}. Name"
            " those tables, too, each whole; or none of both"
        )
    return part


def _elements_of(table: Descriptor, names: Collection[str]) -> frozenset[int]:
    """Return the ids of the columns, and of those of the primary key. Raises ConfigurationError."""
    unknown = sorted(set(names) - table.by_name.keys())
    if unknown:
        raise ConfigurationError(
            f"a replica is to hold column {unknown[0]!r} of table {table.name!r}, which has none"
            " of that name"
        )
    elements = frozenset((*(table.by_name[name].element_id for name in names), *table.primary_key))
    for index in table.indexes:
        if index.computed and index.over - elements:
            lacking = sorted(table.by_id[each].name for each in index.over - elements)
            raise ConfigurationError(
                f"index {index.name!r} of table {table.name!r} computes with {', '.join(lacking)}:"
                " hold those columns, too"
            )
    return elements


def _why_none(
    name: str, under_view: Collection[int] | None, by_id: Mapping[int, Descriptor]
) -> str:
    if under_view is None:
        return f"a replica is to hold table {name!r}, which does not exist"
    names = sorted(by_id[table_id].name for table_id in under_view if table_id in by_id)
    return (
        f"{name!r} is a view: name the tables that it needs ({', '.join(names)}), and the view can"
        " be read"
    )


def _lacking(part: Part, by_id: Mapping[int, Descriptor]) -> Iterable[str]:
    """Yield which foreign keys of held tables refer to what is not held whole."""
    for table_id in part.table_ids():
        table = by_id[table_id]
        for key in table.foreign_keys:
            parent = by_id.get(key.parent)
            if parent is not None and not part.holds_whole(key.parent):
                yield f"{table.name}'s foreign key {key.name} refers to {parent.name}"
