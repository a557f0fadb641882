"""Messages of a feed in JSON: keys and values in Debezium's envelope, with Connect's schema or
without.

A message that no broker takes would hold up everything behind it. So what doesn't fit is told with
NOT_THERE for its longest values, first of the row before, then of the row after.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final

from leasehold.catalog.elements import Column
from leasehold.events.debezium.column_types import ColumnForm, Style, form_of
from leasehold.events.debezium.table_form import (
    CONNECTOR,
    LONG_CHARACTERS,
    MESSAGE_BYTES_MAX,
    Block,
    Image,
    Source,
    TableForm,
)
from leasehold.model.ids import format_request_id
from leasehold.model.keys import Key

REQUEST_ID_BYTES: Final = 16
_ENCODER: Final = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":")
)
encode_json: Final = _ENCODER.encode


@dataclass(frozen=True)
class JsonForm(TableForm):
    """The form of a table's events in JSON. `schemas`: each message has its schema with it."""

    schemas: bool = False

    def form_of(self, column: Column) -> ColumnForm:
        style = Style.JSON_WITH_SCHEMA if self.schemas else Style.PLAIN_JSON
        return form_of(column.type, self.decimals, style)

    def schema_form(self, column: Column) -> ColumnForm:
        return form_of(column.type, self.decimals, Style.JSON_WITH_SCHEMA)

    @cached_property
    def _forms(self) -> tuple[tuple[str, ColumnForm], ...]:
        return tuple((column.name, self.form_of(column)) for column in self.columns)

    @cached_property
    def _key_forms(self) -> tuple[tuple[int, str, Any], ...]:
        columns = self.key_columns
        return tuple((self.place_in_key(c), c.name, self.form_of(c).convert) for c in columns)

    def row(self, key: Key, image: Image | None) -> dict[str, Any] | None:
        if image is None:
            return None
        return {
            name: value if value is None or form.convert is None else form.convert(value)
            for value, (name, form) in zip(self.values_of(key, image), self._forms, strict=True)
        }

    def key(self, key: Key) -> bytes | None:
        if not self.key_columns:
            return None
        row = {
            name: key[place] if convert is None else convert(key[place])
            for place, name, convert in self._key_forms
        }
        return self._with_schema(self.key_schema, encode_json(row))

    def value(
        self,
        op: str,
        before: dict[str, Any] | None,
        after: dict[str, Any] | None,
        source: Source,
        block: Block | None,
        now_us: int,
        room: int = MESSAGE_BYTES_MAX,
    ) -> bytes:
        for cut_before, cut_after in cuts():
            shown = self._cut(before, cut_before), self._cut(after, cut_after)
            payload = self._payload(op, *shown, source, block, now_us)
            value = self._with_schema(self.value_schema, payload)
            if len(value) <= room:
                break
        return value

    def _cut(self, row: dict[str, Any] | None, characters: int) -> dict[str, Any] | None:
        if row is None or not characters:
            return row
        return {
            name: form.left_out if form.long and _length(row[name]) > characters else row[name]
            for name, form in self._forms
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
        return encode_json(self.key_struct)

    @cached_property
    def value_schema(self) -> str:
        return encode_json(self.value_struct)


def cuts() -> Iterator[tuple[int, int]]:
    """Yield how long values of the row before, and of that after, may be at most (0: as long as
    they are): the first at which a message has room counts."""
    yield 0, 0
    for characters in LONG_CHARACTERS:
        yield characters, 0
        yield characters, characters


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
