"""What the events of a table's feed are made of under one version, whatever their form in bytes.

The schemas are those of Kafka Connect, as data: JSON has them beside each message, and those of
Avro and Protobuf are made from them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.events.debezium.column_types import ColumnForm, Decimals, Style, form_of
from leasehold.events.debezium.definition import Encoding
from leasehold.model import byte_limits
from leasehold.model.keys import Key
from leasehold.model.records.events import RowImage, RowLeftOut
from leasehold.rows.filled_by_key import complete_image

MESSAGE_BYTES_MAX: Final = byte_limits.PUBLISHED
LONG_CHARACTERS: Final = (16_384, 128)
"""Values that are longer than this in a message give way, the longest first: of 1,000 columns with
128 each there is room for both rows."""
CONNECTOR: Final = "leasehold"
NOT_IN_KEY: Final = -1
NO_VALUES: Final[Mapping[int, Any]] = {}
_SNAPSHOT: Final = (
    "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"
)

Image = RowImage | RowLeftOut
Struct: TypeAlias = dict[str, Any]
"""A schema of Kafka Connect, as its JSON converter writes it."""


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


@dataclass(frozen=True)
class TableForm(ABC):
    """The form of a table's events under one version. `columns`: the public ones that are told, in
    their order, with those of the primary key. `topic`: `<prefix>.<schema>.<table>`. What `row`
    returns is for `value` alone."""

    database: str
    topic: str
    table: str
    descriptor: Descriptor
    columns: tuple[Column, ...]
    decimals: Decimals
    release: str

    encoding: ClassVar[Encoding] = Encoding.JSON
    style: ClassVar[Style] = Style.PLAIN_JSON

    @abstractmethod
    def row(self, key: Key, image: Image | None) -> Any:
        """Return a row as it will be told; of one whose image was left out only the key's."""

    @abstractmethod
    def key(self, key: Key) -> bytes | None:
        """Return a message's key; None for a table without a primary key."""

    @abstractmethod
    def value(
        self,
        op: str,
        before: Any,
        after: Any,
        source: Source,
        block: Block | None,
        now_us: int,
        room: int = MESSAGE_BYTES_MAX,
    ) -> bytes:
        """Return a message's value, of at most `room` bytes."""

    @property
    @abstractmethod
    def key_schema(self) -> str:
        """The text of the keys' schema."""

    @property
    @abstractmethod
    def value_schema(self) -> str:
        """The text of the values' schema."""

    @cached_property
    def key_columns(self) -> tuple[Column, ...]:
        """The columns of the messages' keys; none where the table has no primary key."""
        return () if self.descriptor.hidden_key else self.descriptor.key_columns

    @cached_property
    def name(self) -> tuple[str, str]:
        """The table's schema and its name, as of this version."""
        schema, _, _ = self.table.partition(".")
        return schema, self.descriptor.name

    def form_of(self, column: Column) -> ColumnForm:
        """Return the form of a column's values."""
        return form_of(column.type, self.decimals, self.style)

    @cached_property
    def _places(self) -> tuple[tuple[int, int], ...]:
        """The place in a row's key of each of `columns`, and its element id."""
        return tuple((self.place_in_key(each), each.element_id) for each in self.columns)

    def place_in_key(self, column: Column) -> int:
        """Return where a column's value stands in a row's key, NOT_IN_KEY where it does not."""
        keys = self.descriptor.primary_key
        return keys.index(column.element_id) if column.element_id in keys else NOT_IN_KEY

    def pairs_of(self, image: Image) -> Mapping[int, Any]:
        """Return the storage values of a row by element id, those of its key perhaps not."""
        values = image.values if isinstance(image, RowImage) else NO_VALUES
        if self._lacks:
            return complete_image(self.descriptor, image.version, values)
        return values

    @cached_property
    def _lacks(self) -> bool:
        """Whether images may lack what their rows have."""
        return bool(self.descriptor.missing)

    def values_of(self, key: Key, image: Image) -> list[Any]:
        """Return the storage values of `columns` in a row."""
        found = self.pairs_of(image).get
        return [
            found(element_id) if place == NOT_IN_KEY else key[place]
            for place, element_id in self._places
        ]

    @cached_property
    def key_struct(self) -> Struct:
        """The schema of keys."""
        fields = [_field(column, self.schema_form(column), key=True) for column in self.key_columns]
        return struct(fields, f"{self.topic}.Key")

    @cached_property
    def value_struct(self) -> Struct:
        """The schema of values."""
        fields = [_field(column, self.schema_form(column)) for column in self.columns]
        row = f"{self.topic}.Value"
        envelope = [
            struct(fields, row, optional=True, field="before"),
            struct(fields, row, optional=True, field="after"),
            {**SOURCE, "field": "source"},
            {**BLOCK, "field": "transaction"},
            plain("string", "op"),
            *(plain("int64", name, optional=True) for name in ("ts_ms", "ts_us", "ts_ns")),
        ]
        return {**struct(envelope, f"{self.topic}.Envelope"), "version": 2}

    def schema_form(self, column: Column) -> ColumnForm:
        """Return the form of a column's values as the schema has it."""
        return self.form_of(column)


def _field(column: Column, form: ColumnForm, *, key: bool = False) -> Struct:
    optional = form.may_lack or (column.nullable and not key)
    return {**form.schema, "optional": optional, "field": column.name}


def struct(fields: list[Struct], name: str, *, optional: bool = False, field: str = "") -> Struct:
    """Return the schema of a struct; `field`: its name where it stands in another."""
    made = {"type": "struct", "fields": fields, "optional": optional, "name": name}
    return {**made, "field": field} if field else made


def plain(kind: str, field: str, *, optional: bool = False) -> Struct:
    """Return the schema of a field of a plain type."""
    return {"type": kind, "optional": optional, "field": field}


SOURCE: Final[Mapping[str, Any]] = struct(
    [
        plain("string", "version"),
        plain("string", "connector"),
        plain("string", "name"),
        plain("int64", "ts_ms"),
        {
            "type": "string",
            "optional": True,
            "name": "io.debezium.data.Enum",
            "version": 1,
            "parameters": {"allowed": _SNAPSHOT},
            "default": "false",
            "field": "snapshot",
        },
        plain("string", "db"),
        plain("string", "sequence", optional=True),
        plain("int64", "ts_us", optional=True),
        plain("int64", "ts_ns", optional=True),
        plain("string", "schema"),
        plain("string", "table"),
        *(plain("int64", name, optional=True) for name in ("txId", "lsn", "xmin")),
        plain("int64", "position", optional=True),
        plain("string", "request_id", optional=True),
        plain("int64", "schema_version", optional=True),
    ],
    "leasehold.feed.Source",
)
BLOCK: Final[Mapping[str, Any]] = {
    **struct(
        [
            plain("string", "id"),
            plain("int64", "total_order"),
            plain("int64", "data_collection_order"),
        ],
        "event.block",
        optional=True,
    ),
    "version": 1,
}
