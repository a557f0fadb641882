"""Goal: feeds in Avro and Protobuf are read by the registry's numbers with Confluent's own
deserializers, through a change of the table, a killed changefeed and a registry that is gone.

Method: a real registry, a real broker, a synthetic log; a `read_committed` consumer folds the feed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from infra.local_cluster import LocalCluster
from leasehold.adapters.kafka.topic_creation import ensure_topics
from leasehold.adapters.kafka.whole_topic import read_compacted
from leasehold.adapters.kafka.writer import TopicWriter
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.events.debezium.definition import (
    Compatibility,
    CreateFeed,
    Definition,
    Encoding,
    Order,
    encode_order,
)
from leasehold.model.records.log import DescriptorWrite
from leasehold.model.topics import Topics
from leasehold.settings.environment import KafkaSettings
from leasehold.values.types import Type
from tests.support.changefeed.changefeed_process import (
    append,
    changefeed,
    has_stored,
    published,
    wait_until,
)
from tests.support.changefeed.feed_readers import as_record, protobuf_class
from tests.support.changefeed.made_log import MadeLog
from tests.support.cluster.secure_suite import access_of
from tests.support.registry.apicurio import apicurio

pytestmark = pytest.mark.long("a schema registry is a JVM of its own; `make feed-tools`")
ID = Column(1, "id", Type("bigint"), False)
N = Column(2, "n", Type("bigint"))
NOTE = Column(3, "note", Type("text"))
AVRO, PROTOBUF = "public.table_1", "public.table_2"
FEEDS = ((1, AVRO, Encoding.AVRO), (2, PROTOBUF, Encoding.PROTOBUF))


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with apicurio(tmp_path_factory.mktemp("registry")) as url:
        yield url


def order(settings: KafkaSettings, topics: Topics, *orders: Order) -> None:
    ensure_topics(settings, [topics.feeds])
    writer = TopicWriter(settings, "test-orders")
    for each in orders:
        writer.send(topics.feeds.name, 0, b"", encode_order(each))
    assert writer.close(30) == 0


def states(settings: KafkaSettings, topics: Topics) -> dict[str, Any]:
    stored = read_compacted(settings, "test", topics.changefeed.name)
    found = [json.loads(value) for key, value in stored.items() if key.startswith(b"feed/")]
    return {state["definition"]["table"]: state for state in found}


def are_begun(settings: KafkaSettings, topics: Topics, *names: str) -> bool:
    found = states(settings, topics)
    return all(name in found and found[name]["snapshot"] is None for name in names)


def expected_rows(log: MadeLog, table_id: int) -> dict[int, int]:
    rows: dict[int, int] = {}
    for table, (key,), _, image in log.rows:
        if table == table_id:
            rows.pop(key, None)
            if image is not None:
                rows[key] = image[2]
    return rows


def values_of(row: dict[str, Any] | None) -> list[Any]:
    """A row's values without their names, which may be others by now, and what came since."""
    return [] if row is None else list(row.values())[:2]


class StockReader:
    """A consumer with Confluent's deserializers."""

    def __init__(self, client: SchemaRegistryClient, topic: str, encoding: Encoding) -> None:
        self._client = client
        self._topic, self._encoding = topic, encoding

    def record(self, data: bytes, field: MessageField) -> Any:
        context = SerializationContext(self._topic, field)
        if self._encoding is Encoding.AVRO:
            return AvroDeserializer(self._client)(data, context)
        text = self._client.get_schema(int.from_bytes(data[1:5], "big")).schema_str or ""
        made = protobuf_class(text)
        message = ProtobufDeserializer(made, {"use.deprecated.format": False})(data, context)
        assert message is not None
        return as_record(message)

    def fold(self, records: list[Any]) -> dict[int, Any]:
        table: dict[int, Any] = {}
        places = set()
        for each in records:
            key = self.record(each.key, MessageField.KEY)["id"]
            if each.value is None:
                assert key not in table
                continue
            event = self.record(each.value, MessageField.VALUE)
            if event["op"] in "cud":
                assert values_of(event["before"]) == values_of(table.get(key))
                place = event["source"]["sequence"]
                assert place not in places, "each change is told once"
                places.add(place)
            if event["after"] is None:
                table.pop(key)
            else:
                table[key] = event["after"]
        return table


def test_confluents_own_readers_come_to_the_table(
    kafka: KafkaSettings,
    servers: LocalCluster,
    database: str,
    topics: Topics,
    registry: str,
    tmp_path: Path,
) -> None:
    log = MadeLog(5)
    log.claim()
    log.create_table(1)
    log.create_table(2)
    for _ in range(20):
        log.write_rows(log.random.choice((1, 2)), commits=4, keys=20)
    append(kafka, topics, log)
    order(
        kafka,
        topics,
        CreateFeed("1", Definition(table=AVRO, encoding=Encoding.AVRO)),
        CreateFeed(
            "2",
            Definition(
                table=PROTOBUF, encoding=Encoding.PROTOBUF, compatibility=Compatibility.FULL
            ),
        ),
    )
    access = access_of(servers, "changefeed", database)
    with_registry = {**access, "LEASEHOLD_REGISTRY": registry}
    with changefeed(with_registry, topics, tmp_path) as process:
        wait_until(partial(are_begun, kafka, topics, AVRO, PROTOBUF), process, tmp_path)
        more = len(log.records)
        renamed = replace(N, name="number of")
        for table_id, columns in ((1, (ID, renamed)), (2, (ID, N, NOTE))):
            table = Descriptor(table_id, f"table_{table_id}", 2, columns, (1,))
            write = DescriptorWrite(table_id, 2, table.to_wire())
            log.decide((log.commit(catalog=(write,)),))
        for table_id in (1, 2):
            log.write_rows(table_id, commits=10, keys=20)
        append(kafka, topics, log, more)
        wait_until(partial(has_stored, kafka, topics, log), process, tmp_path)
    # The numbers of schemas are in the feeds' states: nobody is asked any more.
    without = {**access, "LEASEHOLD_REGISTRY": "http://127.0.0.1:1"}
    with changefeed(without, topics, tmp_path) as process:
        more = len(log.records)
        for table_id in (1, 2):
            log.write_rows(table_id, commits=10, keys=20)
        append(kafka, topics, log, more)
        wait_until(partial(has_stored, kafka, topics, log), process, tmp_path)
    assert {state["status"] for state in states(kafka, topics).values()} == {"on"}
    with SchemaRegistryClient({"url": registry}) as client:
        for table_id, name, encoding in FEEDS:
            topic = f"{database}.feed.{name}"
            folded = StockReader(client, topic, encoding).fold(published(kafka, topic))
            shown = {key: row.get("n", row.get("number_x20_of")) for key, row in folded.items()}
            assert shown == expected_rows(log, table_id)
            assert client.get_versions(f"{topic}-key") == [1]
            assert client.get_versions(f"{topic}-value") == [1, 2]
        rule = client.get_compatibility(f"{database}.feed.{PROTOBUF}-value")
        assert rule == "FULL"


def test_without_a_registry_a_feed_says_what_it_lacks(
    kafka: KafkaSettings, servers: LocalCluster, database: str, topics: Topics, tmp_path: Path
) -> None:
    log = MadeLog(6)
    log.claim()
    log.create_table(1)
    log.create_table(2)
    log.write_rows(1, commits=4, keys=20)
    append(kafka, topics, log)
    order(
        kafka,
        topics,
        CreateFeed("1", Definition(table=AVRO, encoding=Encoding.AVRO)),
        CreateFeed("2", Definition(table=PROTOBUF)),
    )
    access = access_of(servers, "changefeed", database)
    with changefeed(access, topics, tmp_path) as process:
        wait_until(partial(are_begun, kafka, topics, AVRO, PROTOBUF), process, tmp_path)
    found = states(kafka, topics)
    assert found[AVRO]["status"] == "refused"
    assert "LEASEHOLD_REGISTRY" in found[AVRO]["words"]
    assert found[PROTOBUF]["status"] == "on", "all else goes on"
