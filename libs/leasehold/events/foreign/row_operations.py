"""What happened to a row elsewhere → operations of a change request, by a version of the table.

Unless it is to be verified, an event says how a row is from now on, so one that comes again changes
nothing: an insert and an update are an upsert. Verified, each event holds for the row that its
source has seen and for no other: an insert finds none, and the row of an update or a delete is as
`before` says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.events.foreign.row_events import RowEvent, Values, What
from leasehold.events.foreign.source_types import UNKNOWN, Fields
from leasehold.events.foreign.source_values import Units, converter, is_left_out
from leasehold.model.errors import (
    FeatureNotSupported,
    MalformedRequest,
    Refused,
    UnknownColumn,
)
from leasehold.model.records.requests import ANY_GENID, Operation, OperationKind
from leasehold.values.storage import to_storage

_OF_THE_PIPELINE: Final = "__"
"""How names begin that Debezium's transforms add to a row, unless a column has them."""


class Rules(NamedTuple):
    """How the events of a topic are taken. `verify`: each holds only for the row that its source
    has seen. `ignore_unknown`: fields that the table has no column for are left out; else such an
    event is refused."""

    verify: bool = False
    ignore_unknown: bool = False
    units: Units = Units.MICROS


class _Row(NamedTuple):
    """A row as an event has it. `whole`: no value was left out."""

    key: dict[str, Any]
    values: dict[str, Any]
    whole: bool


def operations_of(event: RowEvent, table: Descriptor, rules: Rules) -> tuple[Operation, ...]:
    """Return the operations of an event on a row. Raises a leaf of Refused, which says what is
    wrong with it."""
    assert event.what is not What.TRUNCATE, "that is a statement"
    if event.what is What.DELETE:
        return (_delete(event, table, rules),)
    if event.after is None:
        raise MalformedRequest(f"an event of kind {event.what.value} without `after`")
    after = _row_of(event.after, event.after_fields, table, rules)
    if table.hidden_key:
        return (_insert_alone(event, table, after),)
    _check_key(after.key, table)
    if event.what is What.UPDATE:
        return tuple(_update(event, after, table, rules))
    kind = OperationKind.UPSERT
    if rules.verify and event.what is What.CREATE:
        kind = OperationKind.INSERT
    return (Operation(kind, table.name, after.key, after.values),)


def _insert_alone(event: RowEvent, table: Descriptor, after: _Row) -> Operation:
    """Return the insert of a row that nothing names."""
    if event.what is What.UPDATE:
        raise _nameless(table)
    return Operation(OperationKind.INSERT, table.name, {}, after.values)


def _update(event: RowEvent, after: _Row, table: Descriptor, rules: Rules) -> Iterator[Operation]:
    before = None
    if event.before is not None:
        before = _row_of(
            event.before, event.before_fields, table, rules, key_alone=not rules.verify
        )
    moved = before is not None and _names_a_row(before, table) and before.key != after.key
    if rules.verify:
        key = before.key if before is not None and moved else after.key
        values = after.values | (after.key if moved else {})
        seen = None if before is None else before.values
        yield _verified(OperationKind.UPDATE, table, key, values, seen)
        return
    if before is not None and moved:
        if not after.whole:
            values = after.values | after.key
            yield Operation(OperationKind.UPDATE, table.name, before.key, values, ANY_GENID)
            return
        yield Operation(OperationKind.DELETE, table.name, before.key, {})
    if after.whole:
        yield Operation(OperationKind.UPSERT, table.name, after.key, after.values)
    else:  # of a row that is not there its source would have sent everything
        yield Operation(OperationKind.UPDATE, table.name, after.key, after.values, ANY_GENID)


def _delete(event: RowEvent, table: Descriptor, rules: Rules) -> Operation:
    if table.hidden_key:
        raise _nameless(table)
    row: _Row | None = None
    if event.before is not None:
        row = _row_of(event.before, event.before_fields, table, rules, key_alone=not rules.verify)
    if row is None or not _names_a_row(row, table):
        if event.key is None:
            raise MalformedRequest("a delete without `before`, and without a key that names a row")
        named = _row_of(event.key, event.key_fields, table, rules, key_alone=True)
        row = _Row(named.key, {} if row is None else row.values, True)
    _check_key(row.key, table)
    if not rules.verify:
        return Operation(OperationKind.DELETE, table.name, row.key, {})
    return _verified(OperationKind.DELETE, table, row.key, {}, row.values)


def _verified(
    kind: OperationKind,
    table: Descriptor,
    key: dict[str, Any],
    values: dict[str, Any],
    before: dict[str, Any] | None,
) -> Operation:
    """Return an operation on a row that has to be there; with all the values that it had, where its
    source says them (REPLICA IDENTITY FULL)."""
    return Operation(kind, table.name, key, values, ANY_GENID, before=before or None)


def _row_of(
    values: Values,
    fields: Fields,
    table: Descriptor,
    rules: Rules,
    *,
    key_alone: bool = False,
) -> _Row:
    """Return the values of a row's columns as a change request has them, or those of its key
    alone."""
    key: dict[str, Any] = {}
    made: dict[str, Any] = {}
    whole = True
    keys = frozenset(table.primary_key)
    for name, value in values.items():
        column = table.by_name.get(name) or table.by_alias.get(name)
        if column is None:
            if key_alone or rules.ignore_unknown or name.startswith(_OF_THE_PIPELINE):
                continue
            raise UnknownColumn(
                f"table {table.name!r} has no column {name!r:.80}, which the event has", column=name
            )
        if key_alone and column.element_id not in keys:
            continue
        if is_left_out(value):
            whole = False
            continue
        if column.generated:
            continue  # it follows from the others, here as there
        converted = None if value is None else _converted(column, value, fields, name, rules)
        (key if column.element_id in keys else made)[name] = converted
    return _Row(key, made, whole)


def _converted(column: Column, value: Any, fields: Fields, name: str, rules: Rules) -> Any:
    source = fields.get(name, UNKNOWN)
    try:
        converted = converter(source, column.type, rules.units)(value)
        # As the master will: what can't be stored is refused here, by its place in its topic.
        to_storage(column.written_type)(converted)
    except Refused as error:
        raise type(error)(f"column {name!r}: {error.message}", column=name) from error
    return converted


def _names_a_row(row: _Row, table: Descriptor) -> bool:
    return len(row.key) == len(table.primary_key) and None not in row.key.values()


def _check_key(key: Mapping[str, Any], table: Descriptor) -> None:
    missing = [column.name for column in table.key_columns if key.get(column.name) is None]
    if missing:
        raise MalformedRequest(
            f"the event has no value for {', '.join(missing)}, of the primary key of table"
            f" {table.name!r}"
        )


def _nameless(table: Descriptor) -> FeatureNotSupported:
    return FeatureNotSupported(
        f"table {table.name!r} has no primary key, so an event can't name one of its rows: it takes"
        " inserts alone"
    )
