"""Changes of the source's rows as operations on the target's, which may come twice.

PURE. A row that was inserted or changed is put there whole, whatever was there; one that was
deleted is taken away if it is there. So what was read from a slot may be applied again, and also to
rows that were copied later than it: once all of it has been applied up to where the last range was
read, each row is as it is in the source. That is also why UNIQUE and foreign keys come when that is
so: on the way there rows of different times stand side by side.

What an update says nothing of (UNCHANGED) is in the row already. Where the row is not, a later
change takes it away or brings it whole; but where the row has changed its key as well, it may have
been copied under neither key, and has to be read from the source (`Reread`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from leasehold.model.errors import Refused
from leasehold.transfer.column_types import find_reader
from leasehold.transfer.pgoutput import (
    UNCHANGED,
    Delete,
    Insert,
    Relation,
    Truncate,
    Update,
    Values,
)
from leasehold.transfer.quoting import quote_names
from leasehold.transfer.schema_plan import PlannedTable

Operation: TypeAlias = dict[str, Any]
Change: TypeAlias = Insert | Update | Delete | Truncate


class Emptied(NamedTuple):
    """A TRUNCATE, which is a schema statement here."""

    sql: str


class Reread(NamedTuple):
    """A row that came under another key without all of its values. `operations`: what can be said
    without them."""

    table: PlannedTable
    key: tuple[str, ...]
    operations: Sequence[Operation]


Applied: TypeAlias = Sequence[Operation] | Emptied | Reread
Reader: TypeAlias = Callable[[str], Any] | None


class SchemaChanged(Refused, sqlstate="55000"):
    """A table of the source is not as the import's plan has it."""


class _Known(NamedTuple):
    """A table of the stream. `places`: of the planned columns in its messages."""

    table: PlannedTable
    names: tuple[str, ...]
    places: tuple[int, ...]
    readers: tuple[Reader, ...]
    keys: tuple[int, ...]


class Changes:
    """Turns messages into operations; hears of tables as the stream tells of them."""

    def __init__(self, tables: Sequence[PlannedTable], schema: str) -> None:
        self._planned: Mapping[str, PlannedTable] = {table.name: table for table in tables}
        self._schema = schema
        self._known: dict[int, _Known] = {}

    def relate(self, relation: Relation) -> None:
        """Take how a table's rows are told from now on. Raises SchemaChanged."""
        table = self._planned.get(relation.name)
        if table is None or relation.schema != self._schema:
            raise SchemaChanged(
                f"the source tells of {relation.schema}.{relation.name}, which is not imported"
            )
        names = [column.name for column in table.copied]
        if set(names) != set(relation.columns):
            differ = ", ".join(sorted(set(names) ^ set(relation.columns)))
            raise SchemaChanged(
                f"table {relation.name!r} of the source has other columns now ({differ}): change"
                " the table here and there in the same way, and begin the import of it anew"
            )
        place = {name: at for at, name in enumerate(relation.columns)}
        self._known[relation.relation_id] = _Known(
            table,
            tuple(names),
            tuple(place[name] for name in names),
            tuple(find_reader(column.type) for column in table.copied),
            tuple(place[name] for name in table.key),
        )

    def apply(self, change: Change) -> Applied:
        """Return what is to be done for a change."""
        match change:
            case Truncate(relation_ids):
                names = quote_names(self._known[each].table.name for each in relation_ids)
                return Emptied(f"TRUNCATE {names}")
            case Insert(relation_id, new):
                return [_put(self._known[relation_id], new)]
            case Delete(relation_id, old):
                return [_take_away(self._known[relation_id], old)]
            case Update():
                return self._update(self._known[change.relation_id], change)

    def _update(self, known: _Known, change: Update) -> Applied:
        old, new = change.old, change.new
        if old is not None and change.full:
            new = [o if n is UNCHANGED else n for o, n in zip(old, new, strict=True)]
        whole = all(new[at] is not UNCHANGED for at in known.places)
        if old is None or all(old[at] == new[at] for at in known.keys):
            return [_put(known, new) if whole else _change(known, new)]
        away = _take_away(known, old)
        if whole:
            return [away, _put(known, new)]
        return Reread(known.table, tuple(str(new[at]) for at in known.keys), [away])


def _put(known: _Known, new: Values) -> Operation:
    return {
        "table": known.table.name,
        "op": "upsert",
        "key": _key(known, new),
        "values": _values(known, new),
    }


def upsert_row(table: PlannedTable, texts: Sequence[str | None]) -> Operation:
    """Return the operation that puts a row, read from the source in the order of the table's copied
    columns."""
    values = {
        column.name: _value(find_reader(column.type), text)
        for column, text in zip(table.copied, texts, strict=True)
    }
    key = [values.pop(name) for name in table.key]
    return {"table": table.name, "op": "upsert", "key": key, "values": values}


def _take_away(known: _Known, old: Values) -> Operation:
    return {"table": known.table.name, "op": "delete", "key": _key(known, old)}


def _change(known: _Known, new: Values) -> Operation:
    return {
        "table": known.table.name,
        "op": "update",
        "key": _key(known, new),
        "values": _values(known, new),
    }


def _key(known: _Known, values: Values) -> list[Any]:
    return [_value(read, values[at]) for read, at in zip(known.readers, known.keys, strict=False)]


def _values(known: _Known, values: Values) -> dict[str, Any]:
    """Return the values beside the key, but for those that are UNCHANGED."""
    first = len(known.keys)
    return {
        name: _value(read, values[at])
        for name, read, at in zip(
            known.names[first:], known.readers[first:], known.places[first:], strict=True
        )
        if values[at] is not UNCHANGED
    }


def _value(read: Reader, value: Any) -> Any:
    return value if value is None or read is None else read(value)
