"""Messages of a feed: keys and values in Debezium's envelope, with Connect's schema or without.

A message that no broker takes would hold up everything behind it. So what doesn't fit is told with
NOT_THERE for its longest values, first of the row before, then of the row after.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.events.debezium.column_types import Decimals, form_of
from leasehold.model import byte_limits
from leasehold.model.ids import format_request_id
from leasehold.model.keys import Key
from leasehold.model.records.events import RowImage, RowLeftOut
from leasehold.rows.filled_by_key import complete_image

MESSAGE_BYTES_MAX: Final = byte_limits.PUBLISHED
LONG_CHARACTERS: Final = (16_384, 128)
"""Values as JSON that are longer than this give way, the longest first: of 1,000 columns with 128
each there is room for both rows."""
CONNECTOR: Final = "leasehold"
REQUEST_ID_BYTES: Final = 16
_NO_VALUES: Final[Mapping[int, Any]] = {}
_ENCODER: Final = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":")
)
encode_json: Final = _ENCODER.encode
_SNAPSHOT: Final = (
    "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"
)

Image = RowImage | RowLeftOut


class Source(NamedTuple):
    """The place that an event comes from. `number`: the event's among those of its commit, from 1,
    or the row's in a snapshot. `position`: the offset of the commit's record in the log."""

    lsn: int
    number: int
    position: int
    commit_us: int
    request_id: bytes
    version: int
    snapshot: str = "false"


class Block(NamedTuple):
    """The place of an event in its transaction, from 1: among all events of it in feeds that take
    part, and among those of its own table."""

    transaction: str
    total_order: int
    data_collection_order: int


class _Field(NamedTuple):
    element_id: int
    name: str
    convert: Any
    long: bool
    left_out: Any


@dataclass(frozen=True)
class TableForm:
    """The form of a table's events under one version. `columns`: the public ones that are told, in
    their order, with those of the primary key. `topic`: `<prefix>.<schema>.<table>`."""

    database: str
    topic: str
    table: str
    descriptor: Descriptor
    columns: tuple[Column, ...]
    decimals: Decimals
    schemas: bool
    release: str

    @cached_property
    def _fields(self) -> tuple[_Field, ...]:
        found = []
        for column in self.columns:
            form = form_of(column.type, self.decimals, schemas=self.schemas)
            found.append(_Field(column.element_id, column.name, *form[1:4]))
        return tuple(found)

    @cached_property
    def key_columns(self) -> tuple[Column, ...]:
        """The columns of the messages' keys; none where the table has no primary key."""
        return () if self.descriptor.hidden_key else self.descriptor.key_columns

    @cached_property
    def name(self) -> tuple[str, str]:
        """The table's schema and its name, as of this version."""
        schema, _, _ = self.table.partition(".")
        return schema, self.descriptor.name

    def row(self, key: Key, image: Image | None) -> dict[str, Any] | None:
        """Return a row as its values by name; of one whose image was left out only the key's."""
        if image is None:
            return None
        pairs = complete_image(self.descriptor, image.version, getattr(image, "values", _NO_VALUES))
        keyed = dict(zip(self.descriptor.primary_key, key, strict=True))
        row: dict[str, Any] = {}
        for element_id, name, convert, *_ in self._fields:
            value = keyed[element_id] if element_id in keyed else pairs.get(element_id)
            row[name] = value if value is None or convert is None else convert(value)
        return row

    def key(self, key: Key) -> bytes | None:
        """Return a message's key; None for a table without a primary key."""
        if not self.key_columns:
            return None
        values = dict(zip(self.descriptor.primary_key, key, strict=True))
        row = {}
        for column in self.key_columns:
            convert = form_of(column.type, self.decimals, schemas=self.schemas).convert
            value = values[column.element_id]
            row[column.name] = value if convert is None else convert(value)
        return self._with_schema(self.key_schema, encode_json(row))

    def value(
        self,
        op: str,
        before: dict[str, Any] | None,
        after: dict[str, Any] | None,
        source: Source,
        block: Block | None,
        now_us: int,
        key_bytes: int = 0,
    ) -> bytes:
        """Return a message's value, of at most MESSAGE_BYTES_MAX with a key of `key_bytes`."""
        for cut_before, cut_after in self._cuts():
            shown = self._cut(before, cut_before), self._cut(after, cut_after)
            payload = self._payload(op, *shown, source, block, now_us)
            value = self._with_schema(self.value_schema, payload)
            if len(value) + key_bytes <= MESSAGE_BYTES_MAX:
                break
        return value

    def _cuts(self) -> Iterator[tuple[int, int]]:
        yield 0, 0
        for characters in LONG_CHARACTERS:
            yield characters, 0
            yield characters, characters

    def _cut(self, row: dict[str, Any] | None, characters: int) -> dict[str, Any] | None:
        if row is None or not characters:
            return row
        return {
            field.name: field.left_out
            if field.long and _length(row[field.name]) > characters
            else row[field.name]
            for field in self._fields
        }

    def _payload(
        self,
        op: str,
        before: dict[str, Any] | None,
        after: dict[str, Any] | None,
        source: Source,
        block: Block | None,
        now_us: int,
    ) -> str:
        told = "null" if block is None else encode_json(block_of(block))
        return (
            f'{{"before":{_row_text(before)},"after":{_row_text(after)},'
            f'"source":{self._source(source)},"transaction":{told},"op":"{op}",'
            f'"ts_ms":{now_us // 1_000},"ts_us":{now_us},"ts_ns":{now_us}000}}'
        )

    @cached_property
    def _source_texts(self) -> tuple[str, str, str]:
        """The members of `source` that are the same in every event, as JSON without braces."""
        schema, table = self.name
        first = {"version": self.release, "connector": CONNECTOR, "name": f"{self.database}.feed"}
        parts = first, {"db": self.database}, {"schema": schema, "table": table}
        one, two, three = (encode_json(part)[1:-1] for part in parts)
        return one, two, three

    def _source(self, source: Source) -> str:
        # Written out: as a dictionary it takes a third of all that an event takes.
        first, database, table = self._source_texts
        lsn, number, position, us, request_id, version, snapshot = source
        return (
            f'{{{first},"ts_ms":{us // 1_000},"snapshot":"{snapshot}",{database},'
            f'"sequence":"[\\"{lsn}\\",\\"{number}\\"]","ts_us":{us},"ts_ns":{us}000,{table},'
            f'"txId":{lsn},"lsn":{lsn},"xmin":null,"position":{position},'
            f'"request_id":{_request_text(request_id)},"schema_version":{version}}}'
        )

    def _with_schema(self, schema: str, payload: str) -> bytes:
        if not self.schemas:
            return payload.encode()
        return f'{{"schema":{schema},"payload":{payload}}}'.encode()

    @cached_property
    def key_schema(self) -> str:
        """The schema of keys, as JSON."""
        fields = [_field(column, self.decimals, key=True) for column in self.key_columns]
        return encode_json(_struct(fields, f"{self.topic}.Key"))

    @cached_property
    def value_schema(self) -> str:
        """The schema of values, as JSON."""
        fields = [_field(column, self.decimals) for column in self.columns]
        row = f"{self.topic}.Value"
        envelope = [
            _struct(fields, row, optional=True, field="before"),
            _struct(fields, row, optional=True, field="after"),
            {**_SOURCE, "field": "source"},
            {**_BLOCK, "field": "transaction"},
            _plain("string", "op"),
            *(_plain("int64", name, optional=True) for name in ("ts_ms", "ts_us", "ts_ns")),
        ]
        return encode_json({**_struct(envelope, f"{self.topic}.Envelope"), "version": 2})


def block_of(block: Block) -> dict[str, Any]:
    """Return the `transaction` of an event."""
    return {
        "id": block.transaction,
        "total_order": block.total_order,
        "data_collection_order": block.data_collection_order,
    }


def begin_message(transaction: str, commit_us: int) -> tuple[bytes, bytes]:
    """Return key and value of what says that a transaction begins."""
    return _transaction_message("BEGIN", transaction, commit_us, None)


def end_message(transaction: str, commit_us: int, counts: Mapping[str, int]) -> tuple[bytes, bytes]:
    """Return key and value of what says that a transaction has ended, with how many events there
    were of each table."""
    return _transaction_message("END", transaction, commit_us, counts)


def _transaction_message(
    status: str, transaction: str, commit_us: int, counts: Mapping[str, int] | None
) -> tuple[bytes, bytes]:
    tables = None
    if counts is not None:
        tables = [{"data_collection": t, "event_count": n} for t, n in counts.items()]
    value = {
        "status": status,
        "id": transaction,
        "event_count": None if counts is None else sum(counts.values()),
        "data_collections": tables,
        "ts_ms": commit_us // 1_000,
    }
    return encode_json({"id": transaction}).encode(), encode_json(value).encode()


def _row_text(row: dict[str, Any] | None) -> str:
    return "null" if row is None else encode_json(row)


@lru_cache(maxsize=64)
def _request_text(request_id: bytes) -> str:
    """Return the id of a request as JSON; jobs' own commits have none."""
    if len(request_id) != REQUEST_ID_BYTES:
        return "null"
    return f'"{format_request_id(request_id)}"'


def _length(value: Any) -> int:
    if isinstance(value, str):
        return len(value) if value.isascii() else 6 * len(value)
    return len(encode_json(value)) if isinstance(value, list | dict) else 0


def _field(column: Column, decimals: Decimals, *, key: bool = False) -> dict[str, Any]:
    form = form_of(column.type, decimals, schemas=True)
    optional = form.may_lack or (column.nullable and not key)
    return {**form.schema, "optional": optional, "field": column.name}


def _struct(
    fields: list[dict[str, Any]], name: str, *, optional: bool = False, field: str = ""
) -> dict[str, Any]:
    made = {"type": "struct", "fields": fields, "optional": optional, "name": name}
    return {**made, "field": field} if field else made


def _plain(kind: str, field: str, *, optional: bool = False) -> dict[str, Any]:
    return {"type": kind, "optional": optional, "field": field}


_SOURCE: Final[Mapping[str, Any]] = _struct(
    [
        _plain("string", "version"),
        _plain("string", "connector"),
        _plain("string", "name"),
        _plain("int64", "ts_ms"),
        {
            "type": "string",
            "optional": True,
            "name": "io.debezium.data.Enum",
            "version": 1,
            "parameters": {"allowed": _SNAPSHOT},
            "default": "false",
            "field": "snapshot",
        },
        _plain("string", "db"),
        _plain("string", "sequence", optional=True),
        _plain("int64", "ts_us", optional=True),
        _plain("int64", "ts_ns", optional=True),
        _plain("string", "schema"),
        _plain("string", "table"),
        *(_plain("int64", name, optional=True) for name in ("txId", "lsn", "xmin")),
        _plain("int64", "position", optional=True),
        _plain("string", "request_id", optional=True),
        _plain("int64", "schema_version", optional=True),
    ],
    "leasehold.feed.Source",
)
_BLOCK: Final[Mapping[str, Any]] = {
    **_struct(
        [
            _plain("string", "id"),
            _plain("int64", "total_order"),
            _plain("int64", "data_collection_order"),
        ],
        "event.block",
        optional=True,
    ),
    "version": 1,
}
