"""A decoded message of another system → what happened to a row.

Two forms are read: Debezium's envelope (`before`, `after`, `op`), as JSON with or without its
schema or as Avro; and plain rows, of which each message is the row as it is now, and a message
without a value a row that is gone. Rows without their envelope, as Debezium's
`ExtractNewRecordState` makes them, say by `__op` and `__deleted` what happened.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple

from leasehold.events.foreign.source_types import (
    NO_FIELDS,
    Fields,
    connect_fields,
    connect_type,
)
from leasehold.model.errors import MalformedRequest

Values = Mapping[str, Any]
_WITH_SCHEMA: Final = frozenset({"schema", "payload"})
_PASSED_OVER: Final = frozenset({"m"})
"""A message that a transaction of the source's has logged is no row."""


class Layout(StrEnum):
    """What the messages of a topic are: changes in Debezium's envelope, or rows."""

    DEBEZIUM = "debezium"
    ROWS = "rows"


class What(StrEnum):
    """What happened to a row: Debezium's `op`."""

    CREATE = "c"
    UPDATE = "u"
    DELETE = "d"
    READ = "r"
    TRUNCATE = "t"


class Decoded(NamedTuple):
    """The value or the key of a message. `fields`: types of a record's fields by name, {} where
    nothing is said of them; `records`: those of the records among its fields."""

    value: Any
    fields: Fields = NO_FIELDS
    records: Mapping[str, Fields] = {}


class RowEvent(NamedTuple):
    """A change of a row. `before` and `after`: its values by the names that the source has, None
    where it does not say them. `key`: the message's own."""

    what: What
    before: Values | None
    after: Values | None
    key: Values | None
    before_fields: Fields = NO_FIELDS
    after_fields: Fields = NO_FIELDS
    key_fields: Fields = NO_FIELDS


def without_schema(value: Any) -> Decoded:
    """Return what JSON says; of a message that has its schema beside it, as Connect's converter
    writes it, the payload with its types."""
    if not isinstance(value, dict) or value.keys() != _WITH_SCHEMA:
        return Decoded(value)
    schema = value["schema"]
    if schema is not None and not isinstance(schema, dict):
        return Decoded(value)  # columns that have these names
    fields = connect_fields(schema)
    records = {
        name: {inner: connect_type(one) for inner, one in connect_fields(each).items()}
        for name, each in fields.items()
        if each.get("type") == "struct"
    }
    types = {name: connect_type(each) for name, each in fields.items()}
    return Decoded(value["payload"], types, records)


def read_event(value: Decoded | None, key: Decoded | None, layout: Layout) -> RowEvent | None:
    """Return what a message says of a row; None where it says nothing of one: a tombstone behind a
    delete of Debezium's. `value` None: the message has none. Raises MalformedRequest."""
    if value is not None and value.value is None:
        value = None  # JSON's null, or Avro's
    if layout is Layout.ROWS:
        return _plain_row(value, key)
    if value is None:
        return None
    envelope = value.value
    if not isinstance(envelope, dict) or not isinstance(envelope.get("op"), str):
        raise MalformedRequest(
            "it is no event in Debezium's envelope: it has no `op` (a topic of plain rows needs"
            " LEASEHOLD_INTAKE_LAYOUT=rows)"
        )
    op = envelope["op"]
    if op in _PASSED_OVER:
        return None
    try:
        what = What(op)
    except ValueError:
        raise MalformedRequest(f"`op` is {op[:20]!r}, none of c, u, d, r, t") from None
    before, after = _row(envelope, "before"), _row(envelope, "after")
    names, fields = _record(key)
    of = value.records
    return RowEvent(
        what,
        before,
        after,
        names,
        of.get("before", NO_FIELDS),
        of.get("after", NO_FIELDS),
        fields,
    )


def _plain_row(value: Decoded | None, key: Decoded | None) -> RowEvent:
    names, fields = _record(key)
    if value is None:
        if names is None:
            raise MalformedRequest("it has no value, and no key that names a row's columns")
        return RowEvent(What.DELETE, None, None, names, key_fields=fields)
    row = value.value
    if not isinstance(row, dict):
        raise MalformedRequest("it is no row: its value is no object with columns")
    if row.get("__deleted") in ("true", True) or row.get("__op") == What.DELETE.value:
        return RowEvent(What.DELETE, row, None, names, value.fields, NO_FIELDS, fields)
    return RowEvent(What.READ, None, row, names, NO_FIELDS, value.fields, fields)


def _row(envelope: Values, name: str) -> Values | None:
    row = envelope.get(name)
    if row is None or isinstance(row, dict):
        return row
    raise MalformedRequest(f"`{name}` is no row: it is no object with columns")


def _record(key: Decoded | None) -> tuple[Values | None, Fields]:
    if key is None or not isinstance(key.value, dict):
        return None, NO_FIELDS
    return key.value, key.fields
