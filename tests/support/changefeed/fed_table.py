"""Feeds in memory: their rows, and what a consumer makes of their messages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from leasehold.adapters.codec.records import MessagePackCodec, row_key
from leasehold.adapters.kafka.writer import BY_KEY
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.changefeed.feed_messages import FeedMessage, messages_of, prepare
from leasehold.changefeed.feed_schemas import FeedSchemas
from leasehold.events.debezium.definition import Definition
from leasehold.events.debezium.table_form import Image
from leasehold.model.keys import Key
from leasehold.model.records.events import RowImage
from leasehold.replication.changefeed import Changefeed, Step
from leasehold.replication.feed_state import Feed
from leasehold.replication.table_feeds import RowTold, TableFeeds, Told
from leasehold.values.types import Type

CODEC = MessagePackCodec()
RELEASE = "1.2.3"
NOW_US = 1_700_000_000_123_456
TABLE = Descriptor(
    1,
    "t",
    1,
    (
        Column(1, "id", Type("bigint"), False),
        Column(2, "n", Type("bigint")),
        Column(3, "note", Type("text")),
    ),
    (1,),
)


class MemoryRows:
    """FedRows as a dictionary."""

    def __init__(self) -> None:
        self.rows: dict[int, dict[bytes, Image]] = {}

    def get(self, table_id: int, key: Key) -> Image | None:
        return self.rows.get(table_id, {}).get(row_key(key))

    def put(self, image: RowImage) -> None:
        self.rows.setdefault(image.table_id, {})[row_key(image.key)] = image

    def remove(self, table_id: int, key: Key) -> None:
        del self.rows[table_id][row_key(key)]

    def clear(self, table_id: int) -> None:
        self.rows.pop(table_id, None)

    def after(self, table_id: int, place: bytes, rows_max: int) -> list[tuple[bytes, Image]]:
        rows = sorted(self.rows.get(table_id, {}).items())
        return [each for each in rows if each[0] > place][:rows_max]


def make_feed(table: Descriptor, lsn: int = 0, /, **fields: Any) -> Feed:
    """A feed from a commit on; without a snapshot unless `fields` say so."""
    definition = Definition(**{"table": f"public.{table.name}", "snapshot": False, **fields})
    feed = Feed("demo", RELEASE, definition, "an order")
    feed.begin(table, lsn)
    return feed


class FollowedLog:
    """A log, followed from a table's first version on."""

    def __init__(self, rows: MemoryRows | None = None) -> None:
        self.rows = rows or MemoryRows()
        self.feeds = TableFeeds(self.rows)
        self.changefeed = Changefeed()
        self.told: list[Told] = []

    def follow(self, data: bytes, offset: int) -> Step:
        step = self.changefeed.step(CODEC.decode_log(data), offset, CODEC.digest(data))
        if step.applied is not None:
            self.told += self.feeds.follow(step.applied, offset)
        return step

    def snapshot(self) -> None:
        position = self.changefeed.position
        while self.feeds.has_snapshot:
            self.told += self.feeds.snapshot(position.lsn, position.offset)

    def messages(self, partitions: int = 1) -> list[FeedMessage]:
        return list(to_messages(self.told, partitions))


def to_messages(told: list[Told], partitions: int = 1) -> Iterator[FeedMessage]:
    for event in told:
        prepared = prepare(event, FeedSchemas())
        if prepared is not None:
            topics = {event.feed.topic: partitions} if isinstance(event, RowTold) else {}
            yield from messages_of(prepared, topics, "demo.feed.transaction", NOW_US)


def payload(data: bytes | None) -> Any:
    """What a consumer with a converter of JSON has, with a schema or without."""
    if data is None:
        return None
    body = json.loads(data)
    return body["payload"] if set(body) == {"schema", "payload"} else body


def fold(
    messages: Iterable[FeedMessage], *, one_version: bool = True
) -> dict[bytes, Mapping[str, Any]]:
    """The table that a consumer has who knows nothing but Debezium's envelope. Checks that the row
    before is the one that it has, where all messages are of `one_version` of the table."""
    table: dict[bytes, Mapping[str, Any]] = {}
    for message in messages:
        if message.value is None:
            assert message.key is not None
            assert message.key not in table, "a tombstone stands behind its delete"
            continue
        event = payload(message.value)
        key = message.key or json.dumps(event["before"] or event["after"]).encode()
        match event["op"]:
            case "c":
                assert event["before"] is None
                assert key not in table
                table[key] = event["after"]
            case "u":
                assert not one_version or table[key] == event["before"]
                table[key] = event["after"]
            case "r":
                assert event["before"] is None
                table[key] = event["after"]
            case "d":
                assert event["after"] is None
                assert table.pop(key, None) == event["before"] or not one_version
            case "t":
                assert message.key is None
                assert message.partition != BY_KEY
                table.clear()
    return table
