"""Goal: a candidate finds in a real broker's topic who has read the log before it began."""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.kafka.ack_history import AckHistoryReader
from leasehold.adapters.kafka.admin import TopicAdmin
from leasehold.adapters.kafka.writer import TopicWriter
from leasehold.model.records.acks import Ack
from leasehold.replication.effects import ReadersFound
from leasehold.settings.environment import KafkaSettings
from tests.support.cluster.broker_talk import DEADLINE_S, told
from tests.support.cluster.system_cluster import until

CODEC = MessagePackCodec()
MINUTE_NS = 60_000_000_000
NODES = 5
MINUTES = 300
DELETED = 250


def test_l11_readers_are_found_up_to_an_offset_and_from_the_first_that_is_left(
    settings: KafkaSettings,
    writer: TopicWriter,
    admin: TopicAdmin,
    new_topic: Callable[..., str],
) -> None:
    topic = new_topic()
    for minute in range(MINUTES):
        for node in range(NODES):
            asked_ns = 1 + minute * MINUTE_NS
            ack = Ack(f"r{node}", b"i", "replicant", minute, 1, 1, asked_ns, True, "", 0)
            writer.send(topic, 0, b"", CODEC.encode(ack), token=minute)
    told(writer, MINUTES * NODES)
    admin.delete_below_soon(topic, 0, DELETED).result()
    found: SimpleQueue[ReadersFound] = SimpleQueue()
    history = AckHistoryReader(settings, topic, "test-history", 0, found.put)
    end = NODES * (MINUTES - 10)
    history.begin(end)
    until(lambda: not found.empty(), "what stands in the topic", DEADLINE_S)
    history.close()
    readers, span_ns = found.get()
    assert {ack.node: ack.offset for ack in readers} == {
        f"r{node}": MINUTES - 11 for node in range(NODES)
    }
    minutes = MINUTES - 11 - DELETED // NODES
    assert span_ns == minutes * MINUTE_NS * 98 // 100
