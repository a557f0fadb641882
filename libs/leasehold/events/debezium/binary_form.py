"""Messages of a feed in a binary form, Avro or Protobuf, as whoever reads them with the schema that
the registry has: Debezium's envelope with the rows in it.

A row is the bytes of its fields, so that long values can give way, and what is the same in many
events is made once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any, ClassVar, Final, NamedTuple

from leasehold.catalog.elements import Column
from leasehold.events.debezium import avro_wire, protobuf_wire
from leasehold.events.debezium.column_types import Style
from leasehold.events.debezium.definition import Encoding
from leasehold.events.debezium.envelope import REQUEST_ID_BYTES, block_of, cuts
from leasehold.events.debezium.table_form import (
    CONNECTOR,
    MESSAGE_BYTES_MAX,
    Block,
    Image,
    Source,
    Struct,
    TableForm,
)
from leasehold.model.ids import format_request_id
from leasehold.model.keys import Key
from leasehold.rows.defaults import default_of_old_rows

MAGIC: Final = b"\x00"
"""The first byte of Confluent's wire format; behind it the schema's number, in four bytes."""
SCHEMA_ID_BYTES: Final = 4
RECENT_MAX: Final = 64
Row = list[bytes]
Encoder = Callable[[Any], bytes]


class _Field(NamedTuple):
    """A column's field. `encode`: a storage value → the field's bytes. `left_out`: those that
    stand for a long value."""

    encode: Encoder
    long: bool
    left_out: bytes


class _SourceFields(NamedTuple):
    before_sequence: bytes
    behind_sequence: bytes


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
        values = self.values_of(key, image)
        return [encode(value) for encode, value in zip(self._encoders, values, strict=True)]

    def key(self, key: Key) -> bytes | None:
        if not self.key_columns:
            return None
        return b"".join([encode(key[place]) for place, encode in self._key_fields])

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
        nested_before, nested_after, _, encode_block, encode_op = self._envelope[:5]
        end = b"".join(
            [
                self._source(source),
                encode_block(None if block is None else block_of(block)),
                encode_op(op),
                self._stamps(now_us),
            ]
        )
        for cut_before, cut_after in cuts():
            rows = self._cut(before, cut_before), self._cut(after, cut_after)
            value: bytes = nested_before(rows[0]) + nested_after(rows[1]) + end
            if len(value) <= room:
                break
        return value

    def _cut(self, row: Row | None, size: int) -> bytes | None:
        if row is None:
            return None
        if not size:
            return b"".join(row)
        return b"".join(
            [
                field.left_out if field.long and len(data) > size else data
                for data, field in zip(row, self._fields, strict=True)
            ]
        )

    def _source(self, source: Source) -> bytes:
        lsn, number, position, us, request_id, version, snapshot = source
        of = lsn, position, us, request_id, version, snapshot
        found = self._recent.get(of)
        if found is None:
            if len(self._recent) >= RECENT_MAX:
                self._recent.clear()
            found = self._recent[of] = self._source_fields(*of)
        sequence = self._source_encoders["sequence"](f'["{lsn}","{number}"]')
        nested: Callable[[bytes], bytes] = self._envelope[2]
        return nested(found.before_sequence + sequence + found.behind_sequence)

    @cached_property
    def _recent(self) -> dict[Any, _SourceFields]:
        return {}

    @cached_property
    def _source_encoders(self) -> dict[str, Encoder]:
        source = self.value_struct["fields"][2]
        return {
            field["field"]: self.wire.encoder_of(field, number)
            for number, field in enumerate(source["fields"], 1)
        }

    def _source_fields(
        self, lsn: int, position: int, us: int, request_id: bytes, version: int, snapshot: str
    ) -> _SourceFields:
        schema, table = self.name
        is_request = len(request_id) == REQUEST_ID_BYTES
        values: dict[str, Any] = {
            "version": self.release,
            "connector": CONNECTOR,
            "name": f"{self.database}.feed",
            "ts_ms": us // 1_000,
            "snapshot": snapshot,
            "db": self.database,
            "ts_us": us,
            "ts_ns": us * 1_000,
            "schema": schema,
            "table": table,
            "txId": lsn,
            "lsn": lsn,
            "xmin": None,
            "position": position,
            "request_id": format_request_id(request_id) if is_request else None,
            "schema_version": version,
        }
        names = list(self._source_encoders)
        at = names.index("sequence")
        before, behind = (
            b"".join([self._source_encoders[name](values[name]) for name in some])
            for some in (names[:at], names[at + 1 :])
        )
        return _SourceFields(before, behind)

    @cached_property
    def _envelope(self) -> tuple[Any, ...]:
        """Encoders of the envelope's fields, in their order; of those of `before`, `after` and
        `source` whose bytes are there."""
        fields = self.value_struct["fields"]
        made = [self.wire.nested(field, number) for number, field in enumerate(fields[:3], 1)]
        rest = enumerate(fields[3:], 4)
        return *made, *(self.wire.encoder_of(field, number) for number, field in rest)

    def _stamps(self, now_us: int) -> bytes:
        """Return the fields of the time at which the event is told."""
        known = self._last_stamps.get(now_us)
        if known is None:
            self._last_stamps.clear()
            times = now_us // 1_000, now_us, now_us * 1_000
            parts = [encode(at) for encode, at in zip(self._envelope[5:], times, strict=True)]
            known = self._last_stamps[now_us] = b"".join(parts)
        return known

    @cached_property
    def _last_stamps(self) -> dict[int, bytes]:
        return {}

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

    @cached_property
    def _fields(self) -> tuple[_Field, ...]:
        return tuple(
            self._field(field, column)
            for field, column in zip(
                self.value_struct["fields"][1]["fields"], self.columns, strict=True
            )
        )

    @cached_property
    def _encoders(self) -> tuple[Encoder, ...]:
        return tuple(field.encode for field in self._fields)

    def _field(self, field: Struct, column: Column) -> _Field:
        form, encode = self.form_of(column), self.wire.encoder_of(field, field["number"])
        left_out = encode(form.left_out) if form.long else b""
        return _Field(_joined(form.convert, encode), form.long, left_out)

    @cached_property
    def _key_fields(self) -> tuple[tuple[int, Encoder], ...]:
        return tuple(
            (
                self.place_in_key(column),
                _joined(self.form_of(column).convert, self.wire.encoder_of(field, field["number"])),
            )
            for field, column in zip(self.key_struct["fields"], self.key_columns, strict=True)
        )


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
