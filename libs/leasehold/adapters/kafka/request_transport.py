"""A producer's transport: requests out, results of one partition in (`client/change_producer`)"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.kafka.leader_wait import ask_once_led
from leasehold.adapters.kafka.reader import STEADY_WAIT_MS, Record, TopicReader
from leasehold.adapters.kafka.writer import Headers, TopicWriter
from leasehold.adapters.os.clock import boottime_ns
from leasehold.model import byte_limits
from leasehold.model.errors import BusUnavailable, MalformedRequest, RequestTooLarge
from leasehold.model.records.requests import Result, ResultBatch
from leasehold.model.traces import TRACEPARENT, split_trace
from leasehold.replication.fast_path.log import NOBODY, Term
from leasehold.settings.environment import KafkaSettings

LOG: Final = logging.getLogger("leasehold.results")
BATCHES_UNDER_WAY: Final = 1
"""What is sent while a batch is on its way gathers for the next one, and a single request never
waits: with a thousand in flight a sixth less of the broker's and of the producer's processor time
than with librdkafka's five, each of which was a request of its own for the broker."""
GATHERED_LINGER_MS: Final = 5
"""Longest that one of several which travel together would wait for the others. They leave as soon
as all are queued: librdkafka sends the first of a queue while the second is put there, and the
master then makes one record of the first and another one of the rest."""
GATHERED_FLUSH_S: Final = 0.02
RESULTS_MAX: Final = 5_000
TERM_HEADER: Final = "term"
"""Of a message of results whose master listens to what is told
(`replication/fast_path/requests.py`)."""
EPOCH_BYTES: Final = 8
INCARNATION_BYTES_MAX: Final = 64
QUEUE_FULL_WAIT_S: Final = 0.02
SEND_TIMEOUT_S: Final = 30.0
FIRST_ASK_S: Final = 30.0
"""Where there are several brokers. If the one that has died was the controller, too, the next
controller gives every broker its whole session (9 s) anew before it names other leaders."""


def pack_term(term: Term) -> bytes:
    epoch, incarnation = term
    return epoch.to_bytes(EPOCH_BYTES, "big") + incarnation


def term_of(record: Record) -> Term:
    """Return the term of the master that gave these results, NOBODY where it does not listen."""
    for name, value in record.headers:
        if name == TERM_HEADER and value is not None:
            if not EPOCH_BYTES < len(value) <= EPOCH_BYTES + INCARNATION_BYTES_MAX:
                return NOBODY
            return int.from_bytes(value[:EPOCH_BYTES], "big"), value[EPOCH_BYTES:]
    return NOBODY


class KafkaRequestTransport:
    """The transport of one producer. `send` may be called from any thread, `gather` and
    `send_gathered` from one of the caller's choice, everything else from one.

    Raises BusUnavailable when Kafka can't be reached at the start.
    """

    def __init__(
        self, settings: KafkaSettings, requests: str, results: str, partition: int
    ) -> None:
        self._settings = settings
        self._requests = requests
        self._codec = MessagePackCodec()
        self._reader = TopicReader(settings, "leasehold-results", fetch_wait_ms=STEADY_WAIT_MS)
        try:
            # The place is fixed before the first request can be sent, so no answer is missed.
            given_s = FIRST_ASK_S if settings.names_several else None
            where = results, partition
            end = ask_once_led(lambda: self._reader.end_offset(*where, timeout_s=given_s))
            self._reader.start(results, partition, end)
        except BaseException:
            self._reader.close()
            raise
        self._writer = self._new_writer("leasehold-requests", 0)
        self._gathering: TopicWriter | None = None  # most producers never gather
        self.term: Term = NOBODY
        """The master that gave the last results, if it listens to what is told."""

    def _new_writer(self, client_id: str, linger_ms: float) -> TopicWriter:
        return TopicWriter(
            self._settings,
            client_id,
            linger_ms=linger_ms,
            batches_under_way=BATCHES_UNDER_WAY,
            tells_all=False,
            topic=self._requests,
        )

    def send(self, key: bytes, content_type: str, body: bytes) -> None:
        """Queue one request; waits while the queue is full.

        Raises RequestTooLarge, or BusUnavailable: it is surely not in the topic then.
        """
        self._queue(self._writer, key, content_type, body)

    def gather(self, key: bytes, content_type: str, body: bytes) -> None:
        """Queue one request as `send` does, to travel with others at `send_gathered`."""
        if self._gathering is None:
            self._gathering = self._new_writer("leasehold-requests-gathered", GATHERED_LINGER_MS)
        self._queue(self._gathering, key, content_type, body)

    def send_gathered(self) -> None:
        """Send what was gathered as one batch, if the broker has taken the one before."""
        if self._gathering is not None:
            self._gathering.flush(GATHERED_FLUSH_S)

    def publish(self, requests: Sequence[tuple[bytes, str, bytes]]) -> bool:
        """Return False, nothing is published: librdkafka takes records with a lock, and may wait
        for room."""
        return False

    def _queue(self, writer: TopicWriter, key: bytes, content_type: str, body: bytes) -> None:
        most = byte_limits.REQUEST_SENT - len(key)
        if len(body) > most:
            raise RequestTooLarge(f"the request has {len(body)} bytes; {most} fit a message")
        media_type, traceparent = split_trace(content_type)
        headers: Headers = (("content-type", media_type.encode()),)
        if traceparent:  # where instrumented clients of Kafka have it
            headers = (*headers, (TRACEPARENT, traceparent.encode()))
        give_up_ns = 0
        while True:
            try:
                writer.send(self._requests, 0, key, body, headers, key)
            except BusUnavailable:
                now_ns = boottime_ns()
                give_up_ns = give_up_ns or now_ns + int(SEND_TIMEOUT_S * 1e9)
                if now_ns >= give_up_ns:
                    raise
                writer.flush(QUEUE_FULL_WAIT_S)
                continue
            return

    def results(self, timeout_s: float) -> list[Result]:
        found: list[Result] = []
        for record in self._reader.read(RESULTS_MAX, timeout_s):
            if record.value is None:
                continue
            try:
                found.extend(self._codec.decode_as(ResultBatch, record.value).results)
                self.term = term_of(record)
            except MalformedRequest as error:
                # Whoever waits for it runs into a time-out, and asks again (T5).
                LOG.warning("a result at offset %d is left out: %s", record.offset, error.message)
        return found

    def failures(self) -> list[tuple[bytes, str]]:
        """Return the keys of requests that may be in the topic or not, each with the reason."""
        return [
            (delivery.token, f"Kafka did not confirm it: {delivery.error}")
            for writer in self._writers()
            for delivery in writer.deliveries()
        ]

    def _writers(self) -> list[TopicWriter]:
        gathering = self._gathering
        return [self._writer] if gathering is None else [self._writer, gathering]

    def close(self, timeout_s: float) -> None:
        for writer in self._writers():
            writer.close(timeout_s)
        self._reader.close()
