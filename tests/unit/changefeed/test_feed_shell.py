"""Goal: what a changefeed finds stored of feeds is gone on from, or told why not; no feed stops it.

Method: the shell without a broker, with rights from before there were feeds, so that it reads no
orders.
"""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from leasehold.adapters.kafka.access import AccessDenied
from leasehold.adapters.kafka.admin import TopicAdmin
from leasehold.catalog.descriptor import Descriptor
from leasehold.changefeed.table_feeds import FOLLOWED_KEY, STATE_PREFIX, FeedShell
from leasehold.events.debezium.definition import (
    CreateFeed,
    Definition,
    Encoding,
    decode_order,
    encode_order,
)
from leasehold.model.errors import BusUnavailable
from leasehold.model.records.log import LogPosition
from leasehold.model.topics import Topics
from leasehold.settings.changefeed import ChangefeedSettings
from leasehold.settings.environment import KafkaSettings
from tests.support.changefeed.fed_table import TABLE, make_feed

PLACE = LogPosition(offset=40, lsn=9)


class Refusing:
    """An admin who may make no topic."""

    def __init__(self, error: BusUnavailable) -> None:
        self._error = error

    def create(self, *_: Any) -> None:
        raise self._error

    def list_names(self, *_: Any) -> set[str]:
        return set()


def shell(error: BusUnavailable) -> FeedShell:
    admin = cast(TopicAdmin, Refusing(error))
    return FeedShell(KafkaSettings(), Topics("demo"), ChangefeedSettings(), admin, lambda: True)


def stored(followed: int, **state: Any) -> dict[bytes, bytes | None]:
    body = {**json.loads(make_feed(TABLE).to_json()), **state}
    return {
        STATE_PREFIX + b"public.t": json.dumps(body).encode(),
        STATE_PREFIX + b"broken": b"{",
        FOLLOWED_KEY: b"%d" % followed,
    }


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Tables of which rows were loaded; all there are is TABLE, without a topic."""
    found: list[int] = []

    def read(_: FeedShell) -> list[Descriptor]:
        return [TABLE]

    monkeypatch.setattr(FeedShell, "_read_tables", read)
    monkeypatch.setattr(FeedShell, "_make_topics", lambda _self, _feeds: None)
    monkeypatch.setattr(FeedShell, "_load", lambda _self, table_id: found.append(table_id))
    return found


def test_without_the_right_to_read_orders_feeds_go_on(loaded: list[int]) -> None:
    with shell(AccessDenied("no")) as feeds:
        feeds.open(stored(40), PLACE, b"place")
        assert feeds.report == (("public.t", "on", ""),)
        assert loaded == [1], "the file is of no place yet"
        assert not feeds.has_orders()
        assert not feeds.is_changed
        assert dict(feeds.list_changes(PLACE)) == {FOLLOWED_KEY: b"40"}


def test_a_broker_that_is_away_is_no_reason_to_go_on_without_feeds() -> None:
    with pytest.raises(BusUnavailable), shell(BusUnavailable("away")) as feeds:
        feeds.open(stored(40), PLACE, b"place")


def test_what_an_earlier_release_has_published_meanwhile_ends_a_feed(loaded: list[int]) -> None:
    """It knows of no feeds: their events from there on are nowhere."""
    with shell(AccessDenied("no")) as feeds:
        feeds.open(stored(30), PLACE, b"place")
        ((name, status, words),) = feeds.report
        assert (name, status) == ("public.t", "failed")
        assert "from offset 30 to 40" in words
        assert loaded == []
        (state, *_) = [value for key, value in feeds.list_changes(PLACE) if value]
        assert json.loads(state)["status"] == "failed"
        feeds.published(b"place")
        assert not feeds.is_changed


def test_an_ended_feed_needs_no_rows(loaded: list[int]) -> None:
    with shell(AccessDenied("no")) as feeds:
        feeds.open(stored(30, status="ended", words="gone"), PLACE, b"place")
        assert feeds.report == (("public.t", "ended", "gone"),)
        assert dict(feeds.list_changes(PLACE)) == {}
    assert loaded == []


def test_feeds_of_other_forms_have_a_place_of_their_own(loaded: list[int]) -> None:
    """A release that knows JSON alone goes on with its feeds, and writes their place: what it has
    left out of the others must be seen."""
    avro = make_feed(TABLE, encoding=Encoding.AVRO).to_json()
    key = STATE_PREFIX + b"public.t"
    for place, status in ((b"40", "on"), (b"30", "failed"), (None, "failed")):
        state = {key: avro, FOLLOWED_KEY: b"40", b"feed-place/2": place}
        with shell(AccessDenied("no")) as feeds:
            feeds.open(state, PLACE, b"place")
            ((_, found, _),) = feeds.report
            assert found == status
            told = dict(feeds.list_changes(PLACE))
            assert (told.get(b"feed-place/2"), FOLLOWED_KEY in told) == (
                b"40" if status == "on" else None,
                False,
            )


def test_an_earlier_release_leaves_a_feed_of_another_form_out() -> None:
    state = json.loads(make_feed(TABLE, encoding=Encoding.AVRO).to_json())
    assert state["format"] == 2, "it knows 1"
    assert json.loads(make_feed(TABLE).to_json())["format"] == 1
    order = json.loads(encode_order(CreateFeed("1", Definition(table="a.b"))))
    assert order["type"] == "create-feed"
    assert order["data"].keys().isdisjoint({"encoding", "compatibility"})
    other = CreateFeed("1", Definition(table="a.b", encoding=Encoding.PROTOBUF))
    assert json.loads(encode_order(other))["type"] == "create-encoded-feed"
    assert decode_order(encode_order(other)) == other
