"""Goal: no answer of a broker comes into an interpreter that ends, which would crash the process;
and nothing waits for a controller that need not.
Method: a connection to a port where nobody listens, with a question that is never answered; closed,
or held to the end of a process of its own, which says whether the client was gone before that. A
broker of librdkafka's own, which takes no order to make a topic.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref

import pytest
from confluent_kafka import TopicCollection

from leasehold.adapters.kafka.admin import AdminConnection, TopicAdmin
from leasehold.model.errors import BusUnavailable
from leasehold.model.topics import Topic
from leasehold.settings.environment import KafkaSettings
from tests.support.cluster.mock_broker import MockBroker

HELD_TO_THE_END = """
import atexit

@atexit.register  # what was registered first runs last
def at_the_end():
    print("gone" if asked() is None else "there")

from tests.unit.adapters.kafka.test_admin import ask, connection
held = connection()
held.itself = held
asked = ask(held)
"""


def connection() -> AdminConnection:
    return AdminConnection(KafkaSettings(bootstrap="127.0.0.1:1"), "test")


def ask(connection: AdminConnection) -> weakref.ref[object]:
    """Ask what nobody answers, and return a look at the client."""
    client = connection.client_for("log")
    client.describe_topics(TopicCollection(["log"]), request_timeout=60)
    return weakref.ref(client)


def test_with_what_is_closed_the_client_is_gone() -> None:
    gc.disable()
    try:
        held = connection()
        client = ask(held)
        assert client() is not None
        held.close()
        assert client() is None
        held.close()
        held.poll()
    finally:
        gc.enable()


def test_the_client_is_gone_before_the_interpreter() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", HELD_TO_THE_END], capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode, ended.stdout.strip()) == (0, "gone"), ended.stderr


def test_a_topic_that_is_there_takes_no_controller() -> None:
    """A service that starts while Kafka has none goes on."""
    broker = MockBroker()
    broker.producer.produce("there", b"record")
    broker.flush()
    with TopicAdmin(broker.settings, "test") as admin:
        assert admin.create([Topic("there", 1, {})], 1) == ()
        with pytest.raises(BusUnavailable, match="creating topic missing failed"):
            admin.create([Topic("there", 1, {}), Topic("missing", 1, {})], 1, timeout_s=1.0)
