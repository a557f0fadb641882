"""TransactionWriter: several records on several topics, all or none (the changefeed's producer).

The states and their errors as confluent documents them: a retriable error is tried again, one that
requires an abort is answered by `TransactionAborted` (the caller sends the same again), any other
is fatal and the process has to start anew, most often because a newer one has taken its place.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Producer

from leasehold.adapters.kafka.client import (
    ANSWER_MS_SEVERAL,
    ASK_SLICE_S,
    ClientWatch,
    client_options,
    error_of,
    make_client,
    prepare_producer,
)
from leasehold.adapters.kafka.writer import Headers
from leasehold.adapters.os.clock import boottime_ns
from leasehold.model.errors import BusUnavailable
from leasehold.model.topics import MESSAGE_BYTES_MAX
from leasehold.settings.environment import KafkaSettings

TRANSACTION_TIMEOUT_MS: Final = 30_000
"""After this the coordinator aborts what a dead process left open. Until then `read_committed`
readers see nothing behind it, unless the process starts again, which aborts it at once."""
GIVE_UP_AFTER_S: Final = 1.0  # what a broker that works would have done by then
SAY_AFTER_S: Final = 5.0
"""A large transaction may take seconds; after this long the broker is said to be away."""
FIRST_DELIVERY_TIMEOUT_S: Final = 5.0
QUEUED_MAX: Final = 200_000
QUEUED_KBYTES_MAX: Final = 256 * 1024

_FENCED: Final = frozenset(
    {KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED}
)


class TransactionAborted(Exception):
    """Raised where nothing of the transaction will be seen; sending the same again is right."""


class Fenced(BusUnavailable):
    """Raised where another process with the same transactional id has started since: this one must
    end.

    Kafka says the same where it ended a transaction that was open for too long, such as one that
    the broker's own outage held up (librdkafka #3297). A transaction that old is therefore no sign
    of another process: it is BusUnavailable, and who starts anew takes over from what there may be.
    Of two that do so, the one that is left has a young transaction, and that one is fenced.
    """


class TransactionWriter:
    """A producer of one transaction at a time, for one thread::

        writer.open()
        writer.begin(); writer.send(…); writer.commit()

    Raises TransactionAborted (already aborted), Fenced, or BusUnavailable (fatal: make a new one).
    """

    def __init__(
        self,
        settings: KafkaSettings,
        client_id: str,
        transactional_id: str,
        *,
        linger_ms: float = 0,
        timeout_ms: int = TRANSACTION_TIMEOUT_MS,
        give_up: Callable[[], bool] = lambda: False,
        topic: str | None = None,
    ) -> None:
        """Connect; `open` comes next. `give_up` is asked twice a second while a broker is waited
        for; then BusUnavailable is raised, and what became of the open transaction is for the next
        `open` to settle. `topic` is any that is there; `open` then need not wait half a second for
        the producer's id (`prepare_producer`)."""
        self._give_up = give_up
        self._topic = topic
        self._transactional_id = transactional_id
        self._watch = ClientWatch(settings, client_id)
        self._timeout_ms = timeout_ms
        self._began_ns: int | None = None
        self._topics: set[str] = set()  # with records of the open transaction
        self._delivered = 0
        self._failed: str | None = None
        options = client_options(settings, client_id, self._watch)
        if settings.names_several:
            # librdkafka waits for no answer longer than a transaction may take.
            options["socket.timeout.ms"] = min(ANSWER_MS_SEVERAL, timeout_ms)
        self._producer = make_client(
            Producer,
            {
                **options,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "delivery.timeout.ms": timeout_ms,
                "linger.ms": linger_ms,
                "message.max.bytes": MESSAGE_BYTES_MAX,
                "queue.buffering.max.messages": QUEUED_MAX,
                "queue.buffering.max.kbytes": QUEUED_KBYTES_MAX,
                "partitioner": "murmur2_random",
                "compression.type": "lz4",
                "retry.backoff.ms": 20,
                "retry.backoff.max.ms": 200,
            },
        )

    def open(self) -> None:
        """Fence older processes and finish what they left; waits for a broker, told in the log."""
        doing = "opening transactions"
        if self._topic is not None:
            prepare_producer(self._producer, self._topic)
        try:
            self._patiently(doing, self._producer.init_transactions)
        except KafkaException as error:
            raise self._fatal(doing, error) from error

    def begin(self) -> None:
        self._topics.clear()
        self._delivered = 0
        self._failed = None
        self._began_ns = boottime_ns()
        try:
            self._producer.begin_transaction()
        except KafkaException as error:
            raise self._fatal("beginning a transaction", error) from error

    def send(
        self,
        topic: str,
        partition: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers = (),
    ) -> None:
        """Queue one record of the open transaction; waits while the queue is full."""
        # Of the first record of each topic alone: a report of each costs as much as the record.
        told = None if topic in self._topics else self._on_delivery
        while True:
            try:
                if headers or told is not None:
                    self._producer.produce(
                        topic, value, key, partition, told, headers=list(headers) or None
                    )
                else:
                    self._producer.produce(topic, value, key, partition)
            except BufferError:
                # The bound is on memory; that room comes is bounded by the delivery time-out.
                self._poll(0.05)
                continue
            except KafkaException as error:
                self._answer(f"queueing a record for {topic}", error)
            self._topics.add(topic)
            return

    def commit(self) -> None:
        """Commit: all records and the end of the transaction are on the brokers when this
        returns."""
        doing = "committing a transaction"
        try:
            self._patiently(doing, self._producer.commit_transaction)
        except KafkaException as error:
            self._answer(doing, error)

    def abort(self) -> None:
        # librdkafka #4849: EndTxn may overtake the first AddPartitionsToTxn and is then refused
        # for good. One delivery proves that the coordinator knows of the transaction.
        self._wait_for_first_delivery()
        doing = "aborting a transaction"
        try:
            self._patiently(doing, self._producer.abort_transaction)
        except KafkaException as error:
            raise self._fatal(doing, error) from error

    def close(self) -> None:
        """End without waiting: an open transaction is aborted by the next `open` or in time."""
        self._producer.purge()
        with suppress(BusUnavailable):  # it is left behind because of just that
            self._poll(0)

    def _poll(self, timeout_s: float) -> None:
        """Run callbacks. confluent_kafka raises a fatal error here instead of calling error_cb."""
        try:
            self._producer.poll(timeout_s)
        except KafkaException as error:
            raise self._fatal("publishing", error) from error

    def _patiently(self, doing: str, call: Callable[[float], object]) -> None:
        """Repeat `call(seconds)`, which goes on where it stopped, until it is done. Raises
        BusUnavailable when told to give up or when access is denied, and KafkaException as `call`
        does."""
        began_ns = boottime_ns()
        while True:
            try:
                call(ASK_SLICE_S)
                self._watch.works()
                return
            except KafkaException as error:
                if not error_of(error).retriable():
                    raise
                waited_s = (boottime_ns() - began_ns) / 1e9
                self._poll(0)
                if waited_s >= GIVE_UP_AFTER_S and (self._give_up() or self._is_lost()):
                    raise self._fatal(doing, error) from error
                if waited_s >= SAY_AFTER_S:
                    self._watch.error(error_of(error))
                    if self._watch.denied is not None:
                        raise self._fatal(doing, error) from error

    def _is_lost(self) -> bool:
        """Whether nothing will come of waiting: what is open is for the next `open` to settle."""
        return self._topic is not None and self._watch.is_lost(self._producer, self._topic)

    def _wait_for_first_delivery(self) -> None:
        waited_s = 0.0
        while self._topics and not self._delivered and self._failed is None:
            if waited_s >= FIRST_DELIVERY_TIMEOUT_S:
                return
            self._poll(0.1)
            waited_s += 0.1

    def _answer(self, doing: str, exception: KafkaException) -> None:
        """Abort where that is the answer to `exception`; always raises."""
        error = error_of(exception)
        if not error.txn_requires_abort():
            raise self._fatal(doing, exception) from exception
        self._watch.note("abort", f"{doing}: {error.str()}; the transaction is sent again")
        self.abort()
        raise TransactionAborted(f"{doing}: {error.str()}") from exception

    def _fatal(self, doing: str, exception: KafkaException) -> BusUnavailable:
        if error_of(exception).code() in _FENCED:
            if self._has_timed_out():
                return BusUnavailable(
                    f"{doing}: Kafka has ended a transaction that was open for longer than "
                    f"{self._timeout_ms} ms; it has to be recreated"
                )
            return Fenced(
                f"Another process has taken over the transactional id {self._transactional_id!r} "
                "at Kafka: this one ends. Run only one of it.",
                transactional_id=self._transactional_id,
            )
        return self._watch.unavailable(doing, exception)

    def _has_timed_out(self) -> bool:
        """Kafka counts from later than here, so what it ended by its time-out is older than it."""
        if self._began_ns is None:
            return False
        return boottime_ns() - self._began_ns >= self._timeout_ms * 1_000_000

    def _on_delivery(self, error: KafkaError | None, _message: Any) -> None:
        """librdkafka's callback: never raises. A failed record makes the commit fail by itself."""
        if error is None:
            self._delivered += 1
        else:
            self._failed = error.str()
