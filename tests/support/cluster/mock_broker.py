"""librdkafka's own mock of a broker, in this process: it makes a topic with the first record sent
to it, and knows neither transactions nor compaction."""

from __future__ import annotations

import logging
from typing import Final

from confluent_kafka import Producer

from leasehold.settings.environment import KafkaSettings

DEADLINE_S: Final = 10.0


class MockBroker:
    """One broker. `producer` writes to it; `settings` are for whoever reads it."""

    def __init__(self) -> None:
        quiet = logging.getLogger("tests.mock")
        quiet.setLevel(logging.ERROR)
        options = {"bootstrap.servers": "mock", "test.mock.num.brokers": 1, "logger": quiet}
        self.producer = Producer(options)
        (broker,) = self.producer.list_topics(timeout=DEADLINE_S).brokers.values()
        self.settings = KafkaSettings(bootstrap=f"{broker.host}:{broker.port}")

    def flush(self) -> None:
        """Return when everything has arrived."""
        assert self.producer.flush(DEADLINE_S) == 0
