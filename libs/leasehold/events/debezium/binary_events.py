"""The bytes of a feed's events in a binary form, under one version of a table.

What is the same in all events is made once, what is the same in those of a commit once for it. A
row is made of its columns in one go: this is what a feed takes longest for, and it is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from leasehold.events.debezium.envelope import REQUEST_ID_BYTES, block_of, cuts
from leasehold.events.debezium.table_form import NOT_IN_KEY, Block, Source
from leasehold.model.ids import format_request_id
from leasehold.model.keys import Key

SHORT_ROW_BYTES: Final = 4_096
"""A row of so many bytes has no value that would give way: every message has room for two."""
Encoder = Callable[[Any], bytes]
Row = bytes | list[bytes]
"""The bytes of a row; those of each of its fields where it is long."""
_SEQUENCE: Final = "sequence"
_NOTHING: Final[tuple[int, int, int, bytes, int, str]] = (-1, 0, 0, b"", 0, "")


class FieldBytes:
    """What makes the field of a column. `place`: of its value in the row's key, or NOT_IN_KEY.
    `encode`: a storage value → the field's bytes. `long`: a value may give way to `left_out`."""

    def __init__(
        self, place: int, element_id: int, encode: Encoder, *, long: bool, left_out: bytes
    ) -> None:
        self.place = place
        self.element_id = element_id
        self.encode = encode
        self.long = long
        self.left_out = left_out


class SourceBytes:
    """The bytes of `source`, of those that stay and those that change with each commit."""

    def __init__(
        self,
        encoders: Mapping[str, Encoder],
        nested: Callable[[bytes | None], bytes],
        constants: Mapping[str, Any],
    ) -> None:
        """Begin without a commit. `encoders`: of its fields, in their order. `constants`: the
        values of those that are the same in every event."""
        self._encode_sequence = encoders[_SEQUENCE]
        self._nested = nested
        names = list(encoders)
        at = names.index(_SEQUENCE)
        self._before = _parts(names[:at], encoders, constants)
        self._behind = _parts(names[at + 1 :], encoders, constants)
        self._known = _NOTHING
        self._known_before = b""
        self._known_behind = b""
        self._known_sequence = ""

    def of(self, source: Source) -> bytes:
        """Return the field `source` of an event."""
        lsn, number, position, us, request_id, version, snapshot = source
        known = (lsn, position, us, request_id, version, snapshot)
        if known != self._known:
            self._take(lsn, position, us, request_id, version, snapshot)
            self._known = known
        sequence = self._encode_sequence(f'{self._known_sequence}{number}"]')
        return self._nested(self._known_before + sequence + self._known_behind)

    def _take(
        self, lsn: int, position: int, us: int, request_id: bytes, version: int, snapshot: str
    ) -> None:
        is_request = len(request_id) == REQUEST_ID_BYTES
        values: dict[str, Any] = {
            "ts_ms": us // 1_000,
            "snapshot": snapshot,
            "ts_us": us,
            "ts_ns": us * 1_000,
            "txId": lsn,
            "lsn": lsn,
            "position": position,
            "request_id": format_request_id(request_id) if is_request else None,
            "schema_version": version,
        }
        self._known_before = _joined(self._before, values)
        self._known_behind = _joined(self._behind, values)
        self._known_sequence = f'["{lsn}","'


_Part = tuple[str, bytes, Encoder | None]
"""A field that changes by its name, or bytes that stay."""


def _parts(
    names: list[str], encoders: Mapping[str, Encoder], constants: Mapping[str, Any]
) -> list[_Part]:
    made: list[_Part] = []
    constant = b""
    for name in names:
        if name in constants:
            constant += encoders[name](constants[name])
            continue
        made += [("", constant, None), (name, b"", encoders[name])]
        constant = b""
    return [*made, ("", constant, None)]


def _joined(parts: list[_Part], values: dict[str, Any]) -> bytes:
    made: list[bytes] = []
    for name, constant, encode in parts:
        made.append(constant if encode is None else encode(values[name]))
    return b"".join(made)


class EnvelopeBytes:
    """What makes the fields of an event that hold its rows (of their bytes) and all others (of
    their values). `stamps`: those of the time at which it is told, in ms, µs and ns."""

    def __init__(
        self,
        nested_before: Callable[[bytes | None], bytes],
        nested_after: Callable[[bytes | None], bytes],
        encode_block: Encoder,
        encode_op: Encoder,
        stamps: list[Encoder],
    ) -> None:
        self.nested_before = nested_before
        self.nested_after = nested_after
        self.encode_block = encode_block
        self.encode_op = encode_op
        self.stamps = stamps


class BinaryEvents:
    """The bytes of rows, keys and values of one version of a table. For one thread."""

    def __init__(
        self,
        fields: list[FieldBytes],
        key_fields: list[FieldBytes],
        envelope: EnvelopeBytes,
        source: SourceBytes,
    ) -> None:
        self._fields = fields
        self._key_fields = key_fields
        self._envelope = envelope
        self._source = source
        self._no_before = envelope.nested_before(None)
        self._no_after = envelope.nested_after(None)
        self._no_block = envelope.encode_block(None)
        self._told_us = -1
        self._stamps = b""
        self._ops: dict[str, bytes] = {}

    def row(self, key: Key, values: Mapping[int, Any]) -> Row:
        """Return a row, of storage values by element id."""
        made: list[bytes] = []
        size = 0
        for field in self._fields:
            if field.place == NOT_IN_KEY:
                data = field.encode(values.get(field.element_id))
            else:
                data = field.encode(key[field.place])
            size += len(data)
            made.append(data)
        return b"".join(made) if size <= SHORT_ROW_BYTES else made

    def key(self, key: Key) -> bytes:
        """Return a message's key."""
        return b"".join([field.encode(key[field.place]) for field in self._key_fields])

    def value(
        self,
        op: str,
        before: Row | None,
        after: Row | None,
        source: Source,
        block: Block | None,
        now_us: int,
        room: int,
    ) -> bytes:
        """Return a message's value; of at most `room` bytes where long values can give way."""
        end = self._source.of(source) + self._end(op, block, now_us)
        if not isinstance(before, list) and not isinstance(after, list):
            return self._rows(before, after) + end
        value = b""
        for cut_before, cut_after in cuts():
            value = self._rows(self._cut(before, cut_before), self._cut(after, cut_after)) + end
            if len(value) <= room:
                break
        return value

    def _rows(self, before: bytes | None, after: bytes | None) -> bytes:
        envelope = self._envelope
        first = self._no_before if before is None else envelope.nested_before(before)
        return first + (self._no_after if after is None else envelope.nested_after(after))

    def _end(self, op: str, block: Block | None, now_us: int) -> bytes:
        """Return the fields behind `source`."""
        envelope = self._envelope
        if now_us != self._told_us:
            times = (now_us // 1_000, now_us, now_us * 1_000)
            parts = [encode(at) for encode, at in zip(envelope.stamps, times, strict=True)]
            self._told_us, self._stamps = now_us, b"".join(parts)
            self._ops = {}
        end = self._ops.get(op)
        if end is None:
            end = self._ops[op] = envelope.encode_op(op) + self._stamps
        return (self._no_block if block is None else envelope.encode_block(block_of(block))) + end

    def _cut(self, row: Row | None, size: int) -> bytes | None:
        if row is None or isinstance(row, bytes):
            return row
        if not size:
            return b"".join(row)
        return b"".join(
            [
                field.left_out if field.long and len(data) > size else data
                for data, field in zip(row, self._fields, strict=True)
            ]
        )
