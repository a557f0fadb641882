"""A feed as somebody asked for it, and the orders about feeds, as JSON on the topic of orders.

Whoever may write to that topic is not trusted: what can't be read raises MalformedRequest with what
is wrong with it, and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypeAlias, TypeVar

from leasehold.catalog.descriptor import COLUMNS_MAX
from leasehold.events.debezium.column_types import Decimals
from leasehold.model.errors import MalformedRequest

ORDER_BYTES_MAX: Final = 32 * 1024
NAME_CHARACTERS_MAX: Final = 63
WHERE_CHARACTERS_MAX: Final = 8_000
PARTITIONS_MAX: Final = 64
KEPT_HOURS_MAX: Final = 24 * 366 * 100
DAY_HOURS: Final = 24
CHOICE_CHARACTERS_MAX: Final = 20
FEEDS_MAX: Final = 1_000
"""Of one database."""
CREATE: Final = "create-feed"
CREATE_ENCODED: Final = "create-encoded-feed"
"""Of a feed that is not JSON. A changefeed of a release that knows no other form must not take the
order for one of a feed in JSON."""
_SIGNALS: Final = frozenset({"execute-snapshot", "stop-snapshot"})


Word = TypeVar("Word", bound=StrEnum)


class Encoding(StrEnum):
    """The form of a feed's messages in bytes."""

    JSON = "json"
    AVRO = "avro"
    PROTOBUF = "protobuf"

    @property
    def needs_registry(self) -> bool:
        """Whether each message names its schema by the number that a registry gave it."""
        return self is not Encoding.JSON


class Compatibility(StrEnum):
    """What a new schema must keep of those before it, in the words of schema registries: BACKWARD,
    that its readers read what was written; FORWARD, that earlier readers read what is written from
    now on; FULL, both; TRANSITIVE, of all schemas before it and not of the last one alone.
    REGISTRY: what the registry is set to."""

    REGISTRY = "registry"
    NONE = "none"
    BACKWARD = "backward"
    BACKWARD_TRANSITIVE = "backward_transitive"
    FORWARD = "forward"
    FORWARD_TRANSITIVE = "forward_transitive"
    FULL = "full"
    FULL_TRANSITIVE = "full_transitive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A feed that is wanted. `table`: `schema.table`, which names its topic for good. `columns`: by
    name, beside the primary key's; () = all, those that are added later, too. `where`: which rows;
    "" = all. `schemas`: each message has its schema with it. `transactions`: it takes part in the
    topic of transactions. `snapshot`: it begins with every row that there is. `kept_hours`: how
    long its topic keeps a message, 0 = for ever. `encoding`: the form of its messages, of which
    others than JSON need a schema registry; `compatibility`: what their schemas must keep."""

    table: str
    columns: tuple[str, ...] = ()
    where: str = ""
    schemas: bool = False
    decimals: Decimals = Decimals.STRING
    tombstones: bool = True
    transactions: bool = False
    snapshot: bool = True
    partitions: int = 1
    kept_hours: int = 7 * DAY_HOURS
    encoding: Encoding = Encoding.JSON
    compatibility: Compatibility = Compatibility.REGISTRY

    def to_json(self) -> dict[str, Any]:
        """Return the definition for an order or a state."""
        body: dict[str, Any] = {
            "table": self.table,
            "columns": list(self.columns),
            "where": self.where,
            "schemas": self.schemas,
            "decimals": self.decimals.value,
            "tombstones": self.tombstones,
            "transactions": self.transactions,
            "snapshot": self.snapshot,
            "partitions": self.partitions,
            "kept_hours": self.kept_hours,
        }
        if self.encoding is not Encoding.JSON:
            body["encoding"] = self.encoding.value
        if self.compatibility is not Compatibility.REGISTRY:
            body["compatibility"] = self.compatibility.value
        return body


@dataclass(frozen=True, slots=True)
class CreateFeed:
    """A feed is to be made. `order`: by which its state says that it was this one."""

    order: str
    definition: Definition


@dataclass(frozen=True, slots=True)
class DropFeed:
    """A feed is to end; its topic stays."""

    order: str
    table: str


@dataclass(frozen=True, slots=True)
class SnapshotSignal:
    """Debezium's signal: every row of these feeds is to be told, or no more of them (`stop`)."""

    order: str
    tables: tuple[str, ...] = field(default=())
    stop: bool = False


Order: TypeAlias = CreateFeed | DropFeed | SnapshotSignal


def encode_order(order: Order) -> bytes:
    """Return the value of a message on the topic of orders."""
    body: dict[str, Any] = {"id": order.order}
    match order:
        case CreateFeed():
            definition = order.definition
            kind = CREATE_ENCODED if definition.encoding.needs_registry else CREATE
            body |= {"type": kind, "data": definition.to_json()}
        case DropFeed():
            body |= {"type": "drop-feed", "data": {"table": order.table}}
        case SnapshotSignal():
            kind = "stop-snapshot" if order.stop else "execute-snapshot"
            data = {"data-collections": list(order.tables), "type": "INCREMENTAL"}
            body |= {"type": kind, "data": data}
    return json.dumps(body, ensure_ascii=False).encode()


def decode_order(value: bytes) -> Order:
    """Return an order. Raises MalformedRequest."""
    if len(value) > ORDER_BYTES_MAX:
        raise MalformedRequest(f"an order about feeds of {len(value)} bytes")
    try:
        body = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise MalformedRequest(f"an order about feeds that is no JSON: {error!s:.200}") from error
    body = _object(body, "an order about feeds")
    order = _text(body, "id", "", 100)
    data = _object(body.get("data", {}), "`data` of an order about feeds")
    kind = _text(body, "type", "", 100)
    if kind in (CREATE, CREATE_ENCODED):
        return CreateFeed(order, decode_definition(data))
    if kind == "drop-feed":
        return DropFeed(order, _name(data))
    if kind in _SIGNALS:
        tables = _texts(data, "data-collections")
        return SnapshotSignal(order, tables, kind == "stop-snapshot")
    raise MalformedRequest(f"an order about feeds of type {kind!r:.80}: nobody knows it")


def decode_definition(data: Any) -> Definition:
    """Return a definition from its JSON. Raises MalformedRequest."""
    data = _object(data, "a feed")
    encoding = _choice(data, "encoding", Encoding.JSON)
    compatibility = _choice(data, "compatibility", Compatibility.REGISTRY)
    schemas = _flag(data, "schemas", False)
    if encoding.needs_registry and schemas:
        raise MalformedRequest(f"`schemas` of a feed is for JSON: {encoding} has them elsewhere")
    if not encoding.needs_registry and compatibility is not Compatibility.REGISTRY:
        raise MalformedRequest("`compatibility` of a feed is for schemas in a registry, not JSON")
    return Definition(
        table=_name(data),
        columns=_texts(data, "columns"),
        where=_text(data, "where", "", WHERE_CHARACTERS_MAX),
        schemas=schemas,
        decimals=_choice(data, "decimals", Decimals.STRING),
        tombstones=_flag(data, "tombstones", True),
        transactions=_flag(data, "transactions", False),
        snapshot=_flag(data, "snapshot", True),
        partitions=_number(data, "partitions", 1, 1, PARTITIONS_MAX),
        kept_hours=_number(data, "kept_hours", 7 * DAY_HOURS, 0, KEPT_HOURS_MAX),
        encoding=encoding,
        compatibility=compatibility,
    )


def _choice(data: Mapping[str, Any], name: str, default: Word) -> Word:
    value = _text(data, name, default.value, CHOICE_CHARACTERS_MAX)
    try:
        return type(default)(value)
    except ValueError:
        allowed = ", ".join(each.value for each in type(default))
        raise MalformedRequest(f"`{name}` of a feed: {value!r} is none of {allowed}") from None


def _object(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise MalformedRequest(f"{what} is no object of JSON")
    return value


def _name(data: Mapping[str, Any]) -> str:
    name = _text(data, "table", "", 2 * NAME_CHARACTERS_MAX + 1)
    schema, _, table = name.partition(".")
    if not schema or not table:
        raise MalformedRequest(f"a feed is of a table, schema.table, not of {name!r:.80}")
    return name


def _text(data: Mapping[str, Any], name: str, default: str, most: int) -> str:
    value = data.get(name, default)
    if not isinstance(value, str) or len(value) > most or not value.isprintable():
        raise MalformedRequest(f"`{name}` about a feed is no text of at most {most} characters")
    return value


def _texts(data: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = data.get(name, [])
    good = isinstance(value, list) and len(value) <= max(COLUMNS_MAX, FEEDS_MAX)
    if not good or not all(isinstance(each, str) for each in value):
        raise MalformedRequest(f"`{name}` about a feed is no list of names")
    return tuple(value)


def _flag(data: Mapping[str, Any], name: str, default: bool) -> bool:
    value = data.get(name, default)
    if not isinstance(value, bool):
        raise MalformedRequest(f"`{name}` of a feed is neither true nor false")
    return value


def _number(data: Mapping[str, Any], name: str, default: int, least: int, most: int) -> int:
    value = data.get(name, default)
    if type(value) is not int or not least <= value <= most:
        raise MalformedRequest(f"`{name}` of a feed is no whole number of {least} to {most}")
    return value
