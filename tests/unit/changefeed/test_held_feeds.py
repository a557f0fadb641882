"""Goal: what is kept of a feed that is held is told once and in its order, whatever ends the
process, and its topic goes when nobody needs it any more.

Method: transactions over a topic in memory, in a random order of events, of answers of the registry
and of ends before and after a transaction; what is told is compared with what a feed tells that was
never held.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest

from leasehold.adapters.http.schema_registry import SchemaRegistry
from leasehold.adapters.kafka.admin import TopicAdmin
from leasehold.catalog.elements import Column
from leasehold.changefeed import held_feeds
from leasehold.changefeed.feed_messages import FeedMessage, messages_of, prepare_row
from leasehold.changefeed.feed_schemas import NO_HEADS, Heads
from leasehold.changefeed.held_feeds import HeldEvent, HeldFeeds, LateMessages
from leasehold.events.debezium.binary_form import BinaryForm
from leasehold.events.debezium.definition import Encoding
from leasehold.events.debezium.table_form import Source
from leasehold.model.errors import IncompatibleSchema, RegistryUnavailable
from leasehold.model.records.events import RowImage
from leasehold.model.topics import Topics
from leasehold.replication.feed_state import Feed
from leasehold.replication.table_feeds import RowTold
from leasehold.settings.changefeed import ChangefeedSettings
from leasehold.settings.environment import KafkaSettings
from leasehold.values.types import Type
from tests.support.changefeed.fed_table import NOW_US, TABLE, make_feed

TOPICS: Final = Topics("demo")
HELD: Final = TOPICS.held("demo.feed.public.t").name
PARTITIONS: Final = {"demo.feed.public.t": 2}
NEXT: Final = replace(TABLE, version=2, columns=(*TABLE.columns, Column(4, "more", Type("text"))))
AWAY: Final = RegistryUnavailable("not now")


class World:
    """Topics by name, and a registry that answers or does not."""

    def __init__(self) -> None:
        self.topics: dict[str, list[bytes]] = {}
        self.numbers: dict[tuple[str, str], int] = {}
        self.away = True
        self.refuses = False

    def create(self, topics: list[Any], factor: int) -> None:
        for topic in topics:
            self.topics.setdefault(topic.name, [])

    def list_names(self, one: str) -> set[str]:
        return set(self.topics)

    def delete(self, name: str) -> None:
        self.topics.pop(name, None)

    def number_of(self, subject: str, kind: str, text: str) -> int:
        if self.away:
            raise AWAY
        if self.refuses:
            raise IncompatibleSchema("no")
        return self.numbers.setdefault((subject, text), len(self.numbers) + 1)


class Reader:
    """What a reader of committed records finds."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._topic, self._next = "", 0

    def first_offset(self, topic: str, partition: int) -> int:
        return 0

    def start(self, topic: str, partition: int, offset: int) -> None:
        self._topic, self._next = topic, offset

    def read(self, records_max: int, timeout_s: float) -> list[Any]:
        found = self._world.topics[self._topic][self._next :][:3]
        first, self._next = self._next, self._next + len(found)
        return [
            SimpleNamespace(topic=self._topic, offset=first + number, value=value)
            for number, value in enumerate(found)
        ]

    def close(self) -> None:
        """Nothing is open."""


class AtOnce:
    """Runs questions when they are asked."""

    def __init__(self, name: str, threads_max: int) -> None:
        """Have none."""

    def submit(self, work: Callable[[], None]) -> None:
        work()

    def stop(self, timeout_s: float) -> bool:
        return True


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()
    monkeypatch.setattr(held_feeds, "TopicReader", lambda *_, **__: Reader(made))
    monkeypatch.setattr(held_feeds, "WorkerThreads", AtOnce)
    monkeypatch.setattr(held_feeds, "AGAIN_NS", 0)
    return made


class Process:
    """A changefeed's feed: `stored` is its state, `told` the messages on its topic."""

    def __init__(self, world: World, settings: ChangefeedSettings | None = None) -> None:
        self.world = world
        self._settings = settings or ChangefeedSettings()
        self.stored = make_feed(TABLE, encoding=Encoding.AVRO, partitions=2).to_json()
        self.told: list[FeedMessage] = []
        self.begin(1)

    def begin(self, version: int) -> None:
        """Start, with what is stored."""
        self.feed = Feed.restore("demo", "1.2.3", self.stored)
        self.feed.adapt(TABLE if version == 1 else NEXT)
        self.waiting: list[Any] = []
        self.held = HeldFeeds(
            KafkaSettings(),
            TOPICS,
            self._settings,
            cast(TopicAdmin, self.world),
            lambda: False,
            cast(SchemaRegistry, self.world),
        )
        self.held.sweep([self.feed])

    def hold(self) -> None:
        self.held.begin(self.feed, AWAY)

    def take(self, event: RowTold) -> None:
        if self.feed.hold is None:
            self.waiting += direct(event, self.world)
            return
        prepared = prepare_row(event, NO_HEADS)
        assert prepared is not None
        rows = prepared.before, prepared.after
        self.waiting += self.held.keep(event, prepared.key, rows, PARTITIONS)

    def tend(self) -> None:
        self.waiting += self.held.tend([self.feed])

    def publish(self) -> None:
        for each in self.waiting:
            if isinstance(each, HeldEvent):
                self.world.topics[each.topic].append(each.record)
            elif isinstance(each, LateMessages):
                self.told += each.messages
            else:
                self.told.append(each)
        self.waiting.clear()
        self.stored = self.feed.to_json()
        self.held.published()


def direct(event: RowTold, world: World) -> Iterator[FeedMessage]:
    """The messages of an event whose schemas have numbers."""
    form = event.form
    assert isinstance(form, BinaryForm)
    number = world.numbers.setdefault
    key = number((f"{form.topic}-key", form.key_schema), len(world.numbers) + 1)
    value = number((f"{form.topic}-value", form.value_schema), len(world.numbers) + 1)
    prepared = prepare_row(event, Heads(form.head(key), form.head(value)))
    assert prepared is not None
    yield from messages_of(prepared, PARTITIONS, "", NOW_US)


def event_of(feed: Feed, number: int, op: str) -> RowTold:
    version = feed.form.descriptor.version
    key = () if op == "t" else (number % 5,)
    image = None if op == "t" else RowImage(1, key, {}, number, version, 9, {2: number})
    before = image if op in "ud" else None
    after = image if op in "cu" else None
    return RowTold(feed, feed.form, op, key, before, after, Source(number, 1, 7, 9, b"", version))


@pytest.fixture(autouse=True)
def one_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time at which an event is told stands in it."""
    monkeypatch.setattr(held_feeds, "unix_us", lambda: NOW_US)


def test_what_was_kept_is_told_once_and_in_its_order(world: World) -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    source = random.Random(seed)
    for _ in range(30):
        world.__init__()  # type: ignore[misc]
        process = Process(world)
        version, number, wanted = 1, 0, []
        process.hold()
        process.publish()
        for _ in range(60):
            number += 1
            world.away = source.random() < 0.7
            kept_version, events = version, []
            if source.random() < 0.05:
                version = 2
                process.feed.adapt(NEXT)
            for _ in range(source.randrange(4)):
                number += 1
                events.append((number, source.choice("cudt")))
                process.take(event_of(process.feed, *events[-1]))
            if process.feed.hold is None and source.random() < 0.3:
                process.hold()
            process.tend()
            if source.random() < 0.2:  # killed: nothing of the transaction is there
                version = kept_version
                process.begin(version)
                continue
            process.publish()
            wanted += [event_of(process.feed, *each) for each in events]
            if source.random() < 0.2:
                process.begin(version)
        world.away = False
        for _ in range(100):
            process.tend()
            process.publish()
        assert process.feed.hold is None
        assert HELD not in world.topics, "nobody needs it any more"
        assert process.told == [m for event in wanted for m in direct(event, world)]


def test_a_registry_that_says_no_ends_the_feed(world: World) -> None:
    process = Process(world)
    process.hold()
    process.take(event_of(process.feed, 1, "c"))
    process.publish()
    world.away, world.refuses = False, True
    for _ in range(3):  # it is asked, and has answered when it is looked at again
        process.tend()
    assert (process.feed.status, process.feed.words) == ("failed", "no")
    process.tend()
    process.publish()
    assert HELD not in world.topics


def test_what_is_kept_has_a_limit_in_bytes_and_in_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = Process(world, ChangefeedSettings(held_mb=1))
    process.hold()
    for number in range(10_000):
        if process.feed.is_on:
            process.take(event_of(process.feed, number, "u"))
    assert process.feed.status == "failed"
    assert "LEASEHOLD_FEED_HELD_MB" in process.feed.words
    late = Process(world, ChangefeedSettings(held_hours=1))
    late.hold()
    late.tend()
    assert late.feed.is_on
    monkeypatch.setattr(held_feeds, "unix_us", lambda: NOW_US + 3_601_000_000)
    late.tend()
    assert late.feed.status == "failed"
    assert "LEASEHOLD_FEED_HELD_HOURS" in late.feed.words


def test_a_topic_of_before_is_not_taken_from_a_feed_that_is_held_anew(world: World) -> None:
    world.topics[HELD] = [b"of a hold that is over"]
    process = Process(world)  # has found it, and deletes it with its next transaction
    process.hold()
    process.take(event_of(process.feed, 1, "c"))
    process.publish()
    assert len(world.topics[HELD]) == 3
    world.away = False
    for _ in range(6):
        process.tend()
        process.publish()
    assert len(process.told) == 1
    assert HELD not in world.topics
