"""TopicWriter: records out, and what became of each (L4: any error or time-out is told)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Producer

from leasehold.adapters.kafka.client import (
    LOST,
    ClientWatch,
    client_options,
    error_of,
    flush,
    make_client,
    prepare_producer,
)
from leasehold.model.errors import BusUnavailable
from leasehold.model.topics import MESSAGE_BYTES_MAX
from leasehold.settings.environment import KafkaSettings

BY_KEY: Final = -1
"""Partition by hash of the key, as the JVM's clients do it (Spark must come to the same one)."""
LOG_DELIVERY_TIMEOUT_MS: Final = 5_000
DELIVERY_TIMEOUT_MS: Final = 30_000
FATAL_WORDS_S: Final = 0.1  # what a fatal error was comes a moment after the first refusal
QUEUED_MAX: Final = 100_000
BATCHES_UNDER_WAY_MAX: Final = 5  # more an idempotent producer may not have
QUEUED_KBYTES_MAX: Final = 64 * 1024

TIMED_OUT: Final = "no broker has taken a record in time"

Headers = Sequence[tuple[str, bytes]]


class Delivery(NamedTuple):
    """What became of a record. `error` None: every in-sync replica has it, at `offset`, -1 where
    the broker no longer knows (a batch sent again); else it may be in the topic or not, and is
    surely not where it is `too_large`."""

    token: Any
    topic: str
    partition: int
    offset: int
    error: str | None
    too_large: bool = False


class TopicWriter:
    """An idempotent producer: acks=all, no repeats and no reordering by its own retries.

    `deliveries` must be called again and again: it is what runs librdkafka's callbacks. Failed
    records are always told, delivered ones where `send` was given a token and `tells_all`.
    `batches_under_way`: how many a broker connection may have; with 1 what is sent meanwhile
    gathers for the next one. `topic`: of its first record, which then need not wait half a second
    for the producer's id (`prepare_producer`); making it takes two questions to a broker then.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        client_id: str,
        *,
        linger_ms: float = 0,
        delivery_timeout_ms: int = DELIVERY_TIMEOUT_MS,
        queued_max: int = QUEUED_MAX,
        compression: str = "none",
        batches_under_way: int = BATCHES_UNDER_WAY_MAX,
        tells_all: bool = True,
        topic: str | None = None,
    ) -> None:
        self._tells_all = tells_all
        self._bootstrap = settings.bootstrap
        self._names_several = settings.names_several
        self._watch = ClientWatch(settings, client_id)
        self._queued_max = queued_max
        self._deliveries: deque[Delivery] = deque()
        self._options = {
            **client_options(settings, client_id, self._watch),
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": linger_ms,
            "delivery.timeout.ms": delivery_timeout_ms,
            "request.timeout.ms": min(delivery_timeout_ms, 30_000),
            "message.max.bytes": MESSAGE_BYTES_MAX,
            "queue.buffering.max.messages": queued_max,
            "queue.buffering.max.kbytes": QUEUED_KBYTES_MAX,
            "partitioner": "murmur2_random",
            "compression.type": compression,
            "max.in.flight.requests.per.connection": batches_under_way,
            "retry.backoff.ms": 20,
            "retry.backoff.max.ms": 200,
        }
        self._producer = make_client(Producer, self._options)
        self._topic = topic
        if topic is not None:
            prepare_producer(self._producer, topic)

    def send(
        self,
        topic: str,
        partition: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers = (),
        token: Any = None,
    ) -> None:
        """Queue one record. Raises BusUnavailable when it was *not* queued: the queue is full, or
        the record too large for any queue (MessageTooLarge); nothing of it will ever be in the
        topic. Anything else that Kafka has
        against it is a failed delivery, whether librdkafka knows that by now (a partition that is
        not there, access denied) or has to ask first."""
        if self._watch.fatal is not None:
            self._renew()
        elif self._watch.is_silent:
            self._serve(0)  # what was heard while nobody asked
            if not len(self._producer):
                self._look()
        self._topic = topic
        try:
            self._producer.produce(
                topic,
                value,
                key,
                partition,
                headers=list(headers) or None,
                on_delivery=partial(self._delivered, token),
            )
        except BufferError as error:
            raise BusUnavailable(
                f"Kafka at {self._bootstrap} does not keep up: the queue of {self._queued_max} "
                "records is full. Send less, or look at the broker.",
            ) from error
        except KafkaException as exception:
            refusal = error_of(exception)
            if refusal.code() == KafkaError.MSG_SIZE_TOO_LARGE:
                doing = f"queueing a record for {topic}"
                raise self._watch.unavailable(doing, exception) from exception
            if refusal.code() == KafkaError._FATAL:
                self._serve(FATAL_WORDS_S)
                self._watch.fatal = self._watch.fatal or refusal.str()
            words = self._watch.words(refusal)
            self._deliveries.append(Delivery(token, topic, partition, -1, words))

    def deliveries(self, timeout_s: float = 0) -> list[Delivery]:
        """Return what became known since the last call; waits up to `timeout_s` for something."""
        if timeout_s or len(self._producer):  # else there is no event, and none to come
            self._serve(0 if self._deliveries else timeout_s)
        if len(self._producer):
            self._look()
        told = []
        while self._deliveries:
            told.append(self._deliveries.popleft())
        return told

    def wait(self, timeout_s: float) -> bool:
        """Wait until `deliveries` has something to tell, or the time is over; returns whether it
        has."""
        if not self._deliveries and len(self._producer):
            self._serve(timeout_s)
        return bool(self._deliveries)

    def flush(self, timeout_s: float) -> int:
        """Wait for all outcomes, and return the number of records still without one. `deliveries`
        tells."""
        return flush(self._producer, timeout_s, self._ended)

    def purge(self) -> None:
        """Give up everything queued or on its way; each is told as failed. What had been sent may
        still arrive in the topic (L4: the epoch is given up, and readers skip it)."""
        self._producer.purge()
        self._serve(0)

    def close(self, timeout_s: float) -> int:
        """Flush, and return the number of records given up."""
        left = self.flush(timeout_s)
        if left:
            self.purge()
        return left

    def __len__(self) -> int:
        """Return how many records are queued or on their way, and news not yet told; 0 = nothing is
        open."""
        return len(self._producer) + len(self._deliveries)

    def _serve(self, timeout_s: float) -> None:
        """Run callbacks. confluent_kafka raises a fatal error here instead of calling error_cb."""
        try:
            self._producer.poll(timeout_s)
        except KafkaException as error:
            self._ended(error)

    def _ended(self, exception: KafkaException) -> None:
        self._watch.error(error_of(exception))

    def _look(self) -> None:
        """Make a producer that has lost all its brokers anew. What waits in it is told as
        failed."""
        if self._topic is not None and self._watch.is_lost(self._producer, self._topic):
            self._watch.fatal = LOST
            self._renew()
            prepare_producer(self._producer, self._topic)

    def _renew(self) -> None:
        # After a fatal error librdkafka refuses every call: outcomes are told, then start over.
        assert self._watch.fatal is not None
        self._watch.starts_anew(self._watch.fatal)
        self._producer.purge()
        self._serve(0)
        self.flush(1.0)
        self._watch.fatal = None
        self._producer = make_client(Producer, self._options)

    def _delivered(self, token: Any, error: KafkaError | None, message: Any) -> None:
        """librdkafka's callback: never raises."""
        if error is None:
            self._watch.works()
            if token is not None and self._tells_all:
                offset = message.offset()
                topic_partition = (
                    message.topic(),
                    message.partition(),
                    -1 if offset is None else offset,
                )
                self._deliveries.append(Delivery(token, *topic_partition, None))
            return
        if error.fatal():
            self._watch.fatal = error.str()
        elif error.code() == KafkaError._MSG_TIMED_OUT and self._names_several:
            # ⚠ It may go to one that does not lead, for ever (`ClientWatch.look_at_statistics`).
            self._watch.fatal = self._watch.fatal or TIMED_OUT
        words = self._watch.words(error)
        too_large = error.code() == KafkaError.MSG_SIZE_TOO_LARGE
        topic_partition = message.topic(), message.partition(), -1
        self._deliveries.append(Delivery(token, *topic_partition, words, too_large))


def log_writer(
    settings: KafkaSettings,
    client_id: str,
    delivery_timeout_ms: int = LOG_DELIVERY_TIMEOUT_MS,
    topic: str | None = None,
) -> TopicWriter:
    """Return a writer for the log: no linger, and a short time-out, since the epoch is given up
    after it (L4)."""
    return TopicWriter(
        settings,
        client_id,
        linger_ms=0,
        delivery_timeout_ms=delivery_timeout_ms,
        queued_max=64,
        topic=topic,
    )
