"""Messages of a feed in a binary form, Avro or Protobuf, as whoever reads them with the schema that
the registry has: Debezium's envelope with the rows in it.

Here is what a version of a table is told by; `binary_events.py` makes the bytes of its events.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any, ClassVar, Final

from leasehold.catalog.elements import Column
from leasehold.events.debezium import avro_wire, protobuf_wire
from leasehold.events.debezium.binary_events import (
    BinaryEvents,
    Encoder,
    EnvelopeBytes,
    FieldBytes,
    Row,
    SourceBytes,
)
from leasehold.events.debezium.column_types import Style
from leasehold.events.debezium.definition import Encoding
from leasehold.events.debezium.table_form import (
    CONNECTOR,
    MESSAGE_BYTES_MAX,
    Block,
    Image,
    Source,
    Struct,
    TableForm,
)
from leasehold.model.keys import Key
from leasehold.rows.defaults import default_of_old_rows

MAGIC: Final = b"\x00"
"""The first byte of Confluent's wire format; behind it the schema's number, in four bytes."""
SCHEMA_ID_BYTES: Final = 4


@dataclass(frozen=True)
class BinaryForm(TableForm):
    """The form of a table's events in bytes of `wire`: `avro_wire` or `protobuf_wire`."""

    style: ClassVar[Style] = Style.BINARY
    wire: ClassVar[ModuleType]

    @cached_property
    def key_schema(self) -> str:
        return str(self.wire.schema_text(self.key_struct))

    @cached_property
    def value_schema(self) -> str:
        return str(self.wire.schema_text(self.value_struct))

    def head(self, schema_id: int) -> bytes:
        """Return what stands before a message's bytes: the number of their schema."""
        indexes: bytes = self.wire.MESSAGE_INDEXES
        return MAGIC + schema_id.to_bytes(SCHEMA_ID_BYTES, "big") + indexes

    def row(self, key: Key, image: Image | None) -> Row | None:
        if image is None:
            return None
        return self._events.row(key, self.pairs_of(image))

    def key(self, key: Key) -> bytes | None:
        return self._events.key(key) if self.key_columns else None

    def value(
        self,
        op: str,
        before: Row | None,
        after: Row | None,
        source: Source,
        block: Block | None,
        now_us: int,
        room: int = MESSAGE_BYTES_MAX,
    ) -> bytes:
        return self._events.value(op, before, after, source, block, now_us, room)

    @cached_property
    def _events(self) -> BinaryEvents:
        before, after, source, *rest = self.value_struct["fields"]
        encode_block, encode_op, *stamps = (
            self.wire.encoder_of(field, number) for number, field in enumerate(rest, 4)
        )
        nested_before, nested_after, nested_source = (
            self.wire.nested(field, number)
            for number, field in enumerate((before, after, source), 1)
        )
        encoders = {
            field["field"]: self.wire.encoder_of(field, number)
            for number, field in enumerate(source["fields"], 1)
        }
        return BinaryEvents(
            [self._field(*each) for each in zip(after["fields"], self.columns, strict=True)],
            self._key_fields,
            EnvelopeBytes(nested_before, nested_after, encode_block, encode_op, stamps),
            SourceBytes(encoders, nested_source, self._constants),
        )

    @property
    def _constants(self) -> dict[str, str | None]:
        """The values of `source` that are the same in every event."""
        schema, table = self.name
        return {
            "version": self.release,
            "connector": CONNECTOR,
            "name": f"{self.database}.feed",
            "db": self.database,
            "schema": schema,
            "table": table,
            "xmin": None,
        }

    @cached_property
    def value_struct(self) -> Struct:
        made = super().value_struct
        for row in made["fields"][:2]:
            row["fields"] = [
                self._numbered(field, column)
                for field, column in zip(row["fields"], self.columns, strict=True)
            ]
        return made

    @cached_property
    def key_struct(self) -> Struct:
        made = super().key_struct
        numbered = zip(made["fields"], self.key_columns, strict=True)
        made["fields"] = [
            {**field, "number": protobuf_wire.field_number(column.element_id)}
            for field, column in numbered
        ]
        return made

    def _numbered(self, field: Struct, column: Column) -> Struct:
        """Return a field with the number of its column, and the value that rows from before the
        column show: with it who reads by a new schema reads what was written by one before."""
        numbered = {**field, "number": protobuf_wire.field_number(column.element_id)}
        if field["optional"]:
            return numbered
        shown = default_of_old_rows(column) if column.missing is None else column.missing.value
        if shown is None:
            return numbered
        convert = self.form_of(column).convert
        default = shown if convert is None else convert(shown)
        if isinstance(default, bytes):
            default = default.decode("latin-1")
        plain = isinstance(default, str | int) or (
            isinstance(default, float) and abs(default) < float("inf")
        )
        return {**numbered, "default": default} if plain else numbered

    def _field(self, field: Struct, column: Column) -> FieldBytes:
        form, encode = self.form_of(column), self.wire.encoder_of(field, field["number"])
        return FieldBytes(
            self.place_in_key(column),
            column.element_id,
            _joined(form.convert, encode),
            long=form.long,
            left_out=encode(form.left_out) if form.long else b"",
        )

    @property
    def _key_fields(self) -> list[FieldBytes]:
        if not self.key_columns:
            return []
        pairs = zip(self.key_struct["fields"], self.key_columns, strict=True)
        return [self._field(*each) for each in pairs]


def _joined(convert: Callable[[Any], Any] | None, encode: Encoder) -> Encoder:
    if convert is None:
        return encode
    return lambda value: encode(None if value is None else convert(value))


@dataclass(frozen=True)
class AvroForm(BinaryForm):
    """The form of a table's events in Avro."""

    encoding: ClassVar[Encoding] = Encoding.AVRO
    wire: ClassVar[ModuleType] = avro_wire


@dataclass(frozen=True)
class ProtobufForm(BinaryForm):
    """The form of a table's events in Protobuf."""

    encoding: ClassVar[Encoding] = Encoding.PROTOBUF
    wire: ClassVar[ModuleType] = protobuf_wire
