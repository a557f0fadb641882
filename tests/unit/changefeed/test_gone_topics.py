"""Goal: a forgotten table's rows topic is deleted once its keys are gone, whatever ends between."""

from __future__ import annotations

import logging

import pytest

from leasehold.changefeed.gone_topics import AGAIN_NS, GoneTopics
from leasehold.model.errors import BusUnavailable
from leasehold.model.topics import Topics

TOPICS = Topics("db")


class Broker:
    """Deletes topics, unless it is away. `stored`: the changefeed's own compacted topic."""

    def __init__(self) -> None:
        self.deleted: list[str] = []
        self.away = False
        self.stored: dict[bytes, bytes] = {}

    def delete(self, name: str) -> None:
        if self.away:
            raise BusUnavailable("no broker")
        self.deleted.append(name)

    def transaction(self, gone: GoneTopics) -> None:
        for key, value in gone.list_changes():
            if value is None:
                self.stored.pop(key, None)
            else:
                self.stored[key] = value


@pytest.fixture
def broker() -> Broker:
    return Broker()


def test_a_topic_goes_after_its_transaction_and_is_forgotten_then(broker: Broker) -> None:
    gone = GoneTopics(broker, TOPICS)
    gone.add(7)
    gone.delete(1)
    assert broker.deleted == [], "its keys stand yet"
    broker.transaction(gone)
    broker.transaction(gone)  # the first one was aborted
    gone.published()
    assert broker.stored == {b"gone/7": b"1"}
    gone.delete(2)
    gone.delete(3)
    assert broker.deleted == ["db.rows.7"]
    broker.transaction(gone)
    gone.published()
    assert broker.stored == {}


def test_one_that_ended_before_it_had_deleted_does_it_at_its_next_start(broker: Broker) -> None:
    ended = GoneTopics(broker, TOPICS)
    for table_id in (7, 12):
        ended.add(table_id)
    broker.transaction(ended)
    ended.published()
    ended.delete(1)
    for _ in range(2):  # it ends once more before it could say that it has
        gone = GoneTopics(broker, TOPICS)
        gone.restore({b"position": b"", **broker.stored})
        for now_ns in range(3):
            gone.delete(now_ns)
    assert broker.deleted == ["db.rows.7", *("db.rows.12", "db.rows.7") * 2]
    broker.transaction(gone)
    assert broker.stored == {}


def test_a_failure_is_told_and_tried_again_in_a_minute(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    gone = GoneTopics(broker, TOPICS)
    gone.add(7)
    broker.transaction(gone)
    gone.published()
    broker.away = True
    with caplog.at_level(logging.WARNING):
        gone.delete(1)
        gone.delete(2)
    assert caplog.text.count("db.rows.7 of a table that was dropped can't be deleted now") == 1
    broker.away = False
    gone.delete(AGAIN_NS)
    assert broker.deleted == []
    gone.delete(1 + AGAIN_NS)
    assert broker.deleted == ["db.rows.7"]
