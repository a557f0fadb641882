"""The driver's way into Kafka: records to one topic partition, in order, acknowledged by flush."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from leasehold.adapters.kafka.client import RECONNECT_BACKOFF_MS, error_of, flush, prepare_producer
from leasehold.model.errors import BusUnavailable
from leasehold.settings.environment import KafkaSettings

FLUSH_MS: Final = 60_000
QUEUED_KBYTES_MAX: Final = 64 * 1024
_FULL_WAIT_S: Final = 0.05


class ChunkProducer:
    """An idempotent producer, so that the broker keeps what is sent in the order of sending.

    Used by one thread. After a BusUnavailable make a new one: what was sent with this one may or
    may not be there.
    """

    def __init__(
        self, kafka: KafkaSettings, topic: str, sign: Callable[[bytes], str] | None = None
    ) -> None:
        """Connect. `sign` returns the content type that proves who sends a record."""
        self._topic = topic
        self._sign = sign
        self._failed: KafkaError | None = None
        self._producer = Producer(
            {
                **kafka.librdkafka(),
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 5,
                "compression.type": "lz4",
                "message.max.bytes": 8 * 1024 * 1024,
                "queue.buffering.max.kbytes": QUEUED_KBYTES_MAX,
                "delivery.timeout.ms": FLUSH_MS,
                "reconnect.backoff.ms": RECONNECT_BACKOFF_MS,
            }
        )
        prepare_producer(self._producer, topic)

    def send(self, value: bytes, key: bytes | None = None) -> None:
        """Queue one record. Raises BusUnavailable if an earlier one was not delivered."""
        headers: list[tuple[str, str | bytes | None]] = []
        if self._sign is not None:
            headers.append(("content-type", self._sign(value).encode()))
        while True:
            self._check()
            try:
                self._producer.produce(
                    self._topic,
                    value,
                    key=key,
                    partition=0,
                    headers=headers or None,
                    on_delivery=self._delivered,
                )
                self._serve(0)
                return
            except BufferError:
                self._serve(_FULL_WAIT_S)
            except KafkaException as error:
                raise BusUnavailable(
                    f"A record of {len(value)} bytes was not taken for {self._topic}: {error}.",
                    topic=self._topic,
                ) from error

    def poll(self) -> None:
        """Serve delivery reports; call it now and then when nothing is sent."""
        self._serve(0)

    def flush(self) -> None:
        """Return when the broker has acknowledged everything sent. Raises BusUnavailable."""
        waiting = flush(self._producer, FLUSH_MS / 1000, self._ended)
        self._check()
        if waiting:
            raise BusUnavailable(
                f"{waiting} records for {self._topic} were not acknowledged within {FLUSH_MS} ms.",
                topic=self._topic,
            )

    def _serve(self, timeout_s: float) -> None:
        try:
            self._producer.poll(timeout_s)
        except KafkaException as error:
            self._ended(error)

    def _ended(self, exception: KafkaException) -> None:
        self._failed = self._failed or error_of(exception)

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None and self._failed is None:
            self._failed = error

    def _check(self) -> None:
        if self._failed is not None:
            raise BusUnavailable(
                f"A record for {self._topic} was not delivered: {self._failed.str()}. "
                "It is sent again once Kafka answers.",
                topic=self._topic,
            )
