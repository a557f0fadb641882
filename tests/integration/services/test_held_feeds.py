"""Goal: a feed whose schema registry is away is held, all else goes on, and when the registry
answers it tells each change exactly once, in its order, whatever ended the changefeed meanwhile.

Method: a synthetic log on a real broker; a registry in this process that goes away when the table
gets another column; the changefeed is killed while the feed is held, and while it tells what was
kept.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from infra.local_cluster import LocalCluster
from leasehold.adapters.kafka.reader import TopicReader
from leasehold.adapters.kafka.topic_creation import ensure_topics
from leasehold.adapters.kafka.whole_topic import read_compacted
from leasehold.adapters.kafka.writer import TopicWriter
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.events.debezium.definition import CreateFeed, Definition, Encoding, encode_order
from leasehold.model.errors import BusUnavailable
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
from tests.support.changefeed.fed_table import payload
from tests.support.changefeed.feed_readers import read_avro
from tests.support.changefeed.made_log import MadeLog
from tests.support.cluster.secure_suite import access_of
from tests.support.registry.double import RegistryDouble, registry_double

AVRO, JSON = "public.table_1", "public.table_2"
COLUMNS: Final = (Column(1, "id", Type("bigint"), False), Column(2, "n", Type("bigint")))
NOTE: Final = Column(3, "note", Type("text"))
AWAY: Final = (503, {"message": "not now"})
KILLS: Final = 3


@pytest.fixture
def registry() -> Iterator[RegistryDouble]:
    with registry_double() as made:
        yield made


def states(kafka: KafkaSettings, topics: Topics) -> dict[str, Any]:
    stored = read_compacted(kafka, "test", topics.changefeed.name)
    found = [json.loads(value) for key, value in stored.items() if key.startswith(b"feed/")]
    return {state["definition"]["table"]: state for state in found}


def are_begun(kafka: KafkaSettings, topics: Topics) -> bool:
    found = states(kafka, topics)
    return all(name in found and found[name]["snapshot"] is None for name in (AVRO, JSON))


def held(kafka: KafkaSettings, topics: Topics) -> Any:
    return states(kafka, topics)[AVRO].get("held")


def has_kept(kafka: KafkaSettings, topics: Topics, more: int) -> bool:
    found = held(kafka, topics)
    return found is not None and found["written"] > more


def has_told(kafka: KafkaSettings, topics: Topics, more: int) -> bool:
    found = held(kafka, topics)
    return found is None or found["told"] > more


def goes_on(kafka: KafkaSettings, topics: Topics) -> bool:
    return held(kafka, topics) is None


def expected_rows(log: MadeLog, table_id: int) -> dict[int, int]:
    rows: dict[int, int] = {}
    for table, (key,), _, image in log.rows:
        if table == table_id:
            rows.pop(key, None)
            if image is not None:
                rows[key] = image[2]
    return rows


def read(registry: RegistryDouble, data: bytes) -> Any:
    """What a stock consumer makes of a message in Confluent's wire format."""
    assert data[0] == 0
    _, text = registry.schemas[int.from_bytes(data[1:5], "big") - 1]
    return read_avro(text, data[5:])


def folded(events: list[tuple[int, Any]]) -> dict[int, int]:
    """The table that a consumer comes to, who finds each change once and in its order."""
    table: dict[int, int] = {}
    places: list[tuple[int, int]] = []
    for key, event in events:
        if event is None:
            assert key not in table
            continue
        if event["op"] in "cud":
            before = event["before"]
            assert (None if before is None else before["n"]) == table.get(key)
            lsn, number = json.loads(event["source"]["sequence"])
            places.append((int(lsn), int(number)))
        if event["after"] is None:
            del table[key]
        else:
            table[key] = event["after"]["n"]
    assert places == sorted(set(places)), "each change once, in its order"
    return table


def test_a_feed_is_held_and_goes_on_by_itself(
    kafka: KafkaSettings,
    servers: LocalCluster,
    database: str,
    topics: Topics,
    registry: RegistryDouble,
    tmp_path: Path,
) -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    log = MadeLog(seed)
    log.claim()
    for table_id in (1, 2):
        log.create_table(table_id)
        log.write_rows(table_id, commits=10, keys=20)
    append(kafka, topics, log)
    ensure_topics(kafka, [topics.feeds])
    writer = TopicWriter(kafka, "test-orders")
    definitions = (
        Definition(table=AVRO, encoding=Encoding.AVRO, partitions=2),
        Definition(table=JSON),
    )
    for number, definition in enumerate(definitions):
        writer.send(topics.feeds.name, 0, b"", encode_order(CreateFeed(str(number), definition)))
    assert writer.close(30) == 0
    access = {
        **access_of(servers, "changefeed", database),
        "LEASEHOLD_REGISTRY": registry.url,
        "LEASEHOLD_REGISTRY_WAIT_MS": "200",
        "LEASEHOLD_CHANGEFEED_ROWS": str(tmp_path / "feeds" / "rows"),
    }

    def write(commits: int) -> None:
        more = len(log.records)
        for table_id in (1, 2):
            log.write_rows(table_id, commits=commits, keys=20)
        append(kafka, topics, log, more)

    kept = 0
    with changefeed(access, topics, tmp_path) as process:
        wait_until(partial(are_begun, kafka, topics), process, tmp_path)
        registry.always = AWAY
        more = len(log.records)
        table = Descriptor(1, "table_1", 2, (*COLUMNS, NOTE), (1,))
        write_of = DescriptorWrite(1, 2, table.to_wire())
        log.decide((log.commit(catalog=(write_of,)),))
        append(kafka, topics, log, more)
        write(20)
        wait_until(partial(has_stored, kafka, topics, log), process, tmp_path)
        kept = held(kafka, topics)["written"]
        assert kept > 1
        told = published(kafka, f"{database}.feed.{JSON}")
        events = [(json.loads(each.key or b"")["id"], payload(each.value)) for each in told]
        assert folded(events) == expected_rows(log, 2), "the others go on"
    for _ in range(KILLS):
        with changefeed(access, topics, tmp_path) as process:
            write(5)
            wait_until(partial(has_kept, kafka, topics, kept), process, tmp_path)
            kept = held(kafka, topics)["written"]
    registry.always = None
    with changefeed(access, topics, tmp_path) as process:
        wait_until(partial(has_told, kafka, topics, 3), process, tmp_path)
    with changefeed(access, topics, tmp_path) as process:
        wait_until(partial(goes_on, kafka, topics), process, tmp_path)
        write(10)
        wait_until(partial(has_stored, kafka, topics, log), process, tmp_path)
        wait_until(partial(is_gone, kafka, topics, database), process, tmp_path)
    assert {state["status"] for state in states(kafka, topics).values()} == {"on"}
    found = published(kafka, f"{database}.feed.{AVRO}")
    by_place: list[tuple[int, Any]] = [
        (
            read(registry, each.key or b"")["id"],
            None if each.value is None else read(registry, each.value),
        )
        for each in found
    ]
    rows: dict[int, int] = {}
    for partition in (0, 1):
        of_it = [
            event
            for event, each in zip(by_place, found, strict=True)
            if each.partition == partition
        ]
        rows |= folded(of_it)
    assert rows == expected_rows(log, 1)
    words = (tmp_path / "log").read_text()
    assert words.count(f"the feed {AVRO} is held") == 1
    assert words.count(f"the feed {AVRO} goes on") == 1


def is_gone(kafka: KafkaSettings, topics: Topics, database: str) -> bool:
    """Whether the topic of what was kept is deleted."""
    reader = TopicReader(kafka, "test")
    try:
        reader.partitions(topics.held(f"{database}.feed.{AVRO}").name)
    except BusUnavailable:
        return True
    finally:
        reader.close()
    return False
