"""Goal: each process tells how its clients of Kafka and Redis are, with no wiring of its own.

Method: watches and connections that no server stands behind, told what librdkafka would tell.
"""

from __future__ import annotations

import gc

from confluent_kafka import KafkaError

from leasehold.adapters.kafka.client import ClientWatch
from leasehold.adapters.metrics.process_samples import process_samples
from leasehold.adapters.os.live_objects import FORGOTTEN_EVERY, LiveObjects
from leasehold.adapters.redis.connection import RedisLine
from leasehold.settings.environment import KafkaSettings, RedisSettings


def told() -> dict[tuple[str, ...], object]:
    return {(s.metric.name, *s.labels): s.value for s in process_samples()}


def test_a_client_whose_broker_is_away_is_down_and_counts_its_errors() -> None:
    watch = ClientWatch(KafkaSettings(), "test-away")
    well = ClientWatch(KafkaSettings(), "test-well")
    watch.error(KafkaError(KafkaError._ALL_BROKERS_DOWN))
    watch.error(KafkaError(KafkaError._TRANSPORT))
    found = told()
    assert found["leasehold_kafka_client_up", "test-away"] == 0
    assert found["leasehold_kafka_client_errors_total", "test-away"] == 2
    assert found["leasehold_kafka_client_up", "test-well"] == 1
    assert well.client_id == "test-well"


def test_of_several_clients_of_one_name_one_that_is_troubled_counts() -> None:
    clients = [ClientWatch(KafkaSettings(), "test-two") for _ in range(2)]
    clients[0].error(KafkaError(KafkaError._TRANSPORT))
    assert told()["leasehold_kafka_client_up", "test-two"] == 0


def test_a_connection_to_redis_that_does_not_carry_what_it_is_to_is_down() -> None:
    line = RedisLine(RedisSettings(), "test letters")
    assert ("leasehold_redis_connection_up", "test letters") not in told(), "nobody wants it yet"
    line.say("refused")
    assert told()["leasehold_redis_connection_up", "test letters"] == 0


def test_what_is_gone_is_forgotten() -> None:
    class Made:
        pass

    live: LiveObjects[Made] = LiveObjects()
    kept = Made()
    live.add(kept)
    for _ in range(3 * FORGOTTEN_EVERY):
        live.add(Made())
    gc.collect()
    assert live.list() == [kept]
    assert len(live._all) <= FORGOTTEN_EVERY + 1
