"""Goal: a feed's messages name the schema that they were written with, a registry is asked once for
each, and what goes wrong with it ends the feed and nothing else.

Method: the messages of events over a registry in this process.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from leasehold.adapters.http import schema_registry
from leasehold.adapters.http.schema_registry import SchemaRegistry
from leasehold.changefeed.feed_messages import messages_of, prepare
from leasehold.changefeed.feed_schemas import FeedSchemas
from leasehold.events.debezium.definition import Compatibility, Encoding
from leasehold.events.debezium.table_form import Source
from leasehold.model.errors import BusUnavailable, MalformedRequest, RegistryUnavailable
from leasehold.model.records.events import RowImage
from leasehold.replication.feed_state import (
    ENCODED_FORMAT,
    HELD_FORMAT,
    SCHEMA_IDS_MAX,
    Feed,
    Hold,
)
from leasehold.replication.table_feeds import RowTold
from leasehold.settings.schema_registry import SchemaRegistrySettings
from tests.support.changefeed.fed_table import TABLE, make_feed
from tests.support.changefeed.feed_readers import read_avro
from tests.support.registry.double import RegistryDouble, registry_double

SOURCE = Source(5, 1, 7, 100, b"", 1)


@pytest.fixture
def double(monkeypatch: pytest.MonkeyPatch) -> Iterator[RegistryDouble]:
    monkeypatch.setattr(schema_registry, "PAUSE_S", 0.001)
    with registry_double() as made:
        yield made


def schemas(double: RegistryDouble, wait_s: float = 20.0, *, ends: bool = False) -> FeedSchemas:
    settings = SchemaRegistrySettings(urls=double.url)
    return FeedSchemas(SchemaRegistry(settings, wait_s, lambda: ends), lambda: ends)


def told(feed: Feed, op: str = "c") -> RowTold:
    image = RowImage(1, (7,), {}, 5, 1, 100, {2: 3, 3: "x"})
    return RowTold(feed, feed.form, op, (7,), None if op == "c" else image, image, SOURCE)


def messages(event: RowTold, known: FeedSchemas) -> list[Any]:
    prepared = prepare(event, known)
    assert prepared is not None, event.feed.words
    return list(messages_of(prepared, {event.feed.topic: 1}, "", 5))


def test_messages_begin_with_the_numbers_of_their_schemas(double: RegistryDouble) -> None:
    feed, known = make_feed(TABLE, encoding=Encoding.AVRO), schemas(double)
    (message,) = messages(told(feed), known)
    assert [subject for subject, _ in double.schemas] == [
        "demo.feed.public.t-key",
        "demo.feed.public.t-value",
    ]
    assert message.key[:5] == b"\0\0\0\0\1"
    assert message.value[:5] == b"\0\0\0\0\2"
    assert read_avro(double.schemas[0][1], message.key[5:]) == {"id": 7}
    assert read_avro(double.schemas[1][1], message.value[5:])["after"]["note"] == "x"
    deleted, tombstone = messages(told(feed, "d"), known)
    assert (deleted.key, tombstone.key, tombstone.value) == (message.key, message.key, None)
    assert len(double.seen) == 2, "each schema is asked for once"


def test_a_feed_that_is_restored_asks_no_registry(double: RegistryDouble) -> None:
    feed = make_feed(TABLE, encoding=Encoding.PROTOBUF)
    (first,) = messages(told(feed), schemas(double))
    again = Feed.restore("demo", "1.2.3", feed.to_json())
    again.adapt(TABLE)
    (second,) = messages(told(again), FeedSchemas(None))
    assert (second.key, second.value) == (first.key, first.value)


def test_a_version_that_shows_something_else_has_another_number(double: RegistryDouble) -> None:
    feed, known = make_feed(TABLE, encoding=Encoding.AVRO), schemas(double)
    messages(told(feed), known)
    feed.adapt(replace(TABLE, version=2))
    messages(told(feed), known)
    assert len(double.seen) == 2, "nothing of it is another"
    renamed = (*TABLE.columns[:2], replace(TABLE.columns[2], name="remark"))
    feed.adapt(replace(TABLE, version=3, columns=renamed))
    (message,) = messages(told(feed), known)
    assert message.key[:5] == b"\0\0\0\0\1"
    assert message.value[:5] == b"\0\0\0\0\3"


def test_a_registry_that_is_away_is_said_and_ends_no_feed(double: RegistryDouble) -> None:
    double.always = (503, {"message": "starting"})
    feed = make_feed(TABLE, encoding=Encoding.AVRO)
    with pytest.raises(RegistryUnavailable, match=r"503 starting|no answer within"):
        prepare(told(feed), schemas(double, 0.02))
    assert feed.is_on


def test_of_many_feeds_one_waits_for_a_registry_that_is_away(double: RegistryDouble) -> None:
    double.always = (503, {"message": "starting"})
    known = schemas(double, 0.02)
    feeds = [make_feed(replace(TABLE, name=f"t{n}"), encoding=Encoding.AVRO) for n in range(5)]
    asked: set[int] = set()
    for feed in feeds:
        with pytest.raises(RegistryUnavailable, match=r"503 starting|no answer within"):
            prepare(told(feed), known)
        asked.add(len(double.seen))
    assert len(asked) == 1


def test_that_a_feed_is_held_comes_back_from_its_state_and_is_for_no_earlier_release() -> None:
    feed = make_feed(TABLE, encoding=Encoding.AVRO)
    feed.set_hold(Hold("h", 5, "away", 7, 3, 900))
    body = json.loads(feed.to_json())
    assert body["format"] == HELD_FORMAT
    again = Feed.restore("demo", "1.2.3", feed.to_json())
    assert again.hold == feed.hold
    feed.set_hold(None)
    assert json.loads(feed.to_json())["format"] == ENCODED_FORMAT
    again.fail("over")
    assert again.hold is None
    body["held"] = {"id": "h"}
    with pytest.raises(MalformedRequest):
        Feed.restore("demo", "1.2.3", json.dumps(body).encode())


def test_a_schema_that_is_refused_ends_the_feed_with_the_registrys_words(
    double: RegistryDouble,
) -> None:
    feed, known = make_feed(TABLE, encoding=Encoding.AVRO), schemas(double)
    double.faults = [(409, {"error_code": 409, "message": "n is gone"})]
    assert prepare(told(feed), known) is None
    assert (feed.status, "n is gone" in feed.words) == ("failed", True)


def test_a_changefeed_that_is_to_end_ends_no_feed(double: RegistryDouble) -> None:
    double.always = (503, {"message": "starting"})
    feed = make_feed(TABLE, encoding=Encoding.AVRO)
    with pytest.raises(BusUnavailable):
        prepare(told(feed), schemas(double, 3600.0, ends=True))
    assert feed.is_on


def test_json_needs_no_registry() -> None:
    feed = make_feed(TABLE)
    (message,) = messages(told(feed), FeedSchemas(None))
    assert json.loads(message.key) == {"id": 7}


def test_the_rule_of_a_feed_is_set_for_its_subjects(double: RegistryDouble) -> None:
    rule = Compatibility.FULL_TRANSITIVE
    feed = make_feed(TABLE, encoding=Encoding.AVRO, compatibility=rule)
    schemas(double).begin(feed)
    topic = "demo.feed.public.t"
    assert double.rules == {f"{topic}-key": "FULL_TRANSITIVE", f"{topic}-value": "FULL_TRANSITIVE"}
    assert len(double.schemas) == 2, "and its first schemas are there"
    other = make_feed(TABLE, encoding=Encoding.AVRO)
    double.rules.clear()
    schemas(double).begin(other)
    assert double.rules == {}, "the registry's own rule stays"


def test_numbers_that_a_feed_remembers_have_a_limit() -> None:
    feed = make_feed(TABLE, encoding=Encoding.AVRO)
    for number in range(SCHEMA_IDS_MAX + 5):
        feed.keep_schema_id("s", str(number), number)
    kept = [feed.schema_id("s", str(number)) for number in range(SCHEMA_IDS_MAX + 5)]
    assert kept == [None] * 5 + list(range(5, SCHEMA_IDS_MAX + 5))
