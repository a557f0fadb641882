"""Goal: a subscriber's stream has the rows of a table from its first one on, whenever the table's
topic is made. Against a real broker, which knows of a new topic a moment before it serves it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from leasehold.adapters.codec.published import row_message
from leasehold.adapters.kafka.admin import TopicAdmin
from leasehold.adapters.kafka.row_stream import KafkaRowStream
from leasehold.adapters.kafka.transaction import TransactionWriter
from leasehold.adapters.kafka.writer import BY_KEY
from leasehold.adapters.os.clock import boottime_ns
from leasehold.model.records.events import RowImage
from leasehold.model.topics import Topics
from leasehold.settings.environment import KafkaSettings
from tests.support.cluster.broker_talk import DEADLINE_S

KEYS = range(5)
LATE = range(2, 6)
"""Tables that have their first row while others' rows are being read."""


@pytest.fixture
def topics() -> Topics:
    return Topics(f"d{uuid.uuid4().hex[:12]}")


@pytest.fixture
def changefeed(settings: KafkaSettings, topics: Topics) -> Iterator[TransactionWriter]:
    made = TransactionWriter(settings, "test-changefeed", f"test-{topics.database}")
    made.open()
    yield made
    made.close()


def publish(changefeed: TransactionWriter, topics: Topics, *table_ids: int) -> None:
    changefeed.begin()
    for table_id in table_ids:
        for key in KEYS:
            image = RowImage(table_id, (key,), {0: 1}, 1, 1, 1, {1: key})
            message = row_message((key,), image)
            assert message is not None
            changefeed.send(topics.rows(table_id).name, BY_KEY, *message)
    changefeed.commit()


def test_tables_whose_topics_are_made_one_by_one_are_followed_beside_others(
    settings: KafkaSettings, admin: TopicAdmin, topics: Topics, changefeed: TransactionWriter
) -> None:
    came: dict[int, set[int]] = {}
    stream = KafkaRowStream(settings, topics)

    def read() -> None:
        for row in stream.rows(0.05, 100):
            came.setdefault(row.table_id, set()).add(row.key[0])

    try:
        for table_id in (1, *LATE):
            stream.follow(table_id)
        for table_id in (1, *LATE):
            read()
            assert table_id not in came, "its topic is not there"
            admin.create([topics.rows(table_id)], 1)
            publish(changefeed, topics, *range(1, table_id + 1))
            give_up_ns = boottime_ns() + int(DEADLINE_S * 1e9)
            while came.get(table_id) != set(KEYS):
                assert boottime_ns() < give_up_ns, came
                read()
    finally:
        stream.close()
