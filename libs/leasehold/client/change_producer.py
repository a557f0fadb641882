"""ChangeProducer: puts change requests on the topic and tells what became of each.

One background thread reads the results partition chosen at start. Requests in flight are bounded:
`submit` waits when `in_flight_max` of them have no outcome, so that a fast producer runs at the
pace of the master instead of filling the broker's disk with work that nobody has decided.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, Self

from leasehold.adapters.os.clock import boottime_ns, new_request_id, random_bytes
from leasehold.adapters.tracing.current_trace import current_traceparent
from leasehold.client.pending import Pending, RequestStatus, status_of
from leasehold.client.request_form import form
from leasehold.client.request_group import RequestGroup
from leasehold.model import metrics
from leasehold.model.errors import BusUnavailable, LeaseholdError
from leasehold.model.measures import Measures, Sample
from leasehold.model.records.requests import ChangeRequest, OnConflict, Result
from leasehold.model.time_units import NS_PER_S
from leasehold.model.topics import RESULT_PARTITIONS
from leasehold.replication.fast_path.path_samples import path_samples
from leasehold.replication.fast_path.requests import FastRequestSettings
from leasehold.replication.fast_path.state_machine import FastPath
from leasehold.settings.client import ClientSettings

POLL_S: Final = 0.1
UNKNOWN_SWEEP_NS: Final = 1_000_000_000
SUBMIT_TIMEOUT_S: Final = 60.0


class RequestTransport(Protocol):
    """Requests out, results in; `client/request_transport.py` in practice."""

    def send(self, key: bytes, content_type: str, body: bytes) -> None:
        """Queue one request. `failures` tells when the broker did not take it."""
        ...

    def gather(self, key: bytes, content_type: str, body: bytes) -> None:
        """Take one of several requests that travel together: it waits for `send_gathered`."""
        ...

    def send_gathered(self) -> None: ...

    def publish(self, requests: Sequence[tuple[bytes, str, bytes]]) -> bool:
        """Send those (key, content type, body) together now, if that waits for nothing and nobody;
        False: nothing was sent."""
        ...

    def results(self, timeout_s: float) -> list[Result]:
        """What has come on the partition since, possibly nothing."""
        ...

    def failures(self) -> list[tuple[bytes, str]]:
        """Keys of requests that the broker may not have, each with the reason."""
        ...

    def close(self, timeout_s: float) -> None: ...


@dataclass(frozen=True, slots=True)
class Statistics:
    """Requests by what became of them; `in_flight` have no outcome yet.

    submitted = committed + refused + dead_lettered + unknown + in_flight, always.
    """

    submitted: int = 0
    committed: int = 0
    refused: int = 0
    dead_lettered: int = 0
    unknown: int = 0
    in_flight: int = 0


_COUNTED: Final = {
    RequestStatus.COMMITTED: "committed",
    RequestStatus.REFUSED: "refused",
    RequestStatus.DEAD_LETTERED: "dead_lettered",
    RequestStatus.UNKNOWN: "unknown",
}


class ChangeProducer:
    """Thread-safe context manager::

        with ChangeProducer(ClientSettings.read()) as changes:
            pending = changes.submit({"table": "flights", "op": "update", "key": [7],
                                      "values": {"seats": {"expr": "seats - 1"}}})
            outcome = pending.result()

    Leaving it waits `close_timeout_ms` for outcomes under way; what is not known then is counted
    unknown. Raises BusUnavailable when Kafka can't be reached at the start.
    """

    def __init__(
        self, settings: ClientSettings | None = None, *, transport: RequestTransport | None = None
    ) -> None:
        self._settings = settings or ClientSettings.read()
        self._sign = self._settings.signer()
        # One of a fixed few partitions: repeats for others that share it are dropped by id.
        self.reply_to = random_bytes(1)[0] % RESULT_PARTITIONS
        self._path: FastPath | None = None
        if transport is None:
            transport, self._path = _default_transport(self._settings, self.reply_to)
        self._transport = transport
        self._lock = threading.Lock()
        self._room = threading.Condition(self._lock)
        self._waiting: dict[bytes, Pending] = {}
        self._submitted = 0
        self._counts = dict.fromkeys(_COUNTED, 0)
        self._measures = Measures()  # under the lock
        self._group = RequestGroup(self._lock, self._send_gathered, self._tell)
        self._stopping = threading.Event()
        self._swept_ns = boottime_ns()
        self._reader = threading.Thread(target=self._read, name="leasehold-results", daemon=True)
        self._reader.start()

    # --- users ---------------------------------------------------------------------------------

    def submit(
        self,
        request: ChangeRequest | Mapping[str, Any],
        *,
        timeout_s: float = SUBMIT_TIMEOUT_S,
        together: bool = False,
    ) -> Pending:
        """Send one request; waits for room while too many are in flight. `together`: with those
        of others who wait for their answers, too (`request_group.py`); one that can't be sent then
        counts as unknown. Where the caller has a span of OpenTelemetry's open, the request belongs
        to its trace.

        Raises MalformedRequest for what has no wire form, and BusUnavailable when there is no
        room in `timeout_s` (nothing was sent then).
        """
        traceparent = request.traceparent if isinstance(request, ChangeRequest) else ""
        traceparent = traceparent or current_traceparent()
        made = form(request, self.reply_to, new_request_id, self._sign, traceparent)
        pending = Pending(*made, self._lock, self._ask)
        with self._lock:
            self._await_room(timeout_s)
            if made.request_id in self._waiting:
                return self._waiting[made.request_id]
            self._submitted += 1
            pending.reopen(boottime_ns())
            self._waiting[made.request_id] = pending
            if together and self._group.joins(pending):
                return pending
        try:
            self._send(pending)
        except LeaseholdError as error:
            with self._lock:
                self._withdraw(pending, error.message)
            raise
        return pending

    def _send_gathered(self, group: Sequence[Pending]) -> None:
        for pending in group:
            try:
                self._transport.gather(pending.request_id, pending.content_type, pending.body)
            except LeaseholdError as error:
                with self._lock:
                    self._settled(pending, RequestStatus.UNKNOWN, None, error.message)
        self._transport.send_gathered()

    def _tell(self, group: Sequence[Pending]) -> bool:
        return self._transport.publish(
            [(one.request_id, one.content_type, one.body) for one in group]
        )

    def submit_many(
        self,
        requests: Iterable[ChangeRequest | Mapping[str, Any]],
        *,
        timeout_s: float = SUBMIT_TIMEOUT_S,
    ) -> list[Pending]:
        """Submit each request for itself, in order; `timeout_s` is the longest wait for room."""
        return [self.submit(request, timeout_s=timeout_s) for request in requests]

    def wait(self, timeout_s: float) -> bool:
        """Wait until nothing is in flight. Return False when that took longer than `timeout_s`."""
        with self._room:
            return self._room.wait_for(lambda: not self._waiting, timeout_s)

    @property
    def statistics(self) -> Statistics:
        with self._lock:
            counts = {_COUNTED[status]: count for status, count in self._counts.items()}
            return replace(
                Statistics(**counts), submitted=self._submitted, in_flight=len(self._waiting)
            )

    def samples(self) -> list[Sample]:
        """Return what a scrape is told; may be called from any thread."""
        in_flight = Sample(metrics.IN_FLIGHT, metrics.NO_LABELS, len(self._waiting))
        found = [*self._measures.samples(), in_flight]
        if self._path is not None:
            found += path_samples("requests", self._path, boottime_ns())
        return found

    def close(self) -> None:
        """Wait for what is under way, then stop; a second call does nothing."""
        if self._stopping.is_set():
            return
        self.wait(self._settings.close_timeout_ms / 1_000)
        self._group.close()
        self._stopping.set()
        self._reader.join()
        with self._lock:
            for pending in list(self._waiting.values()):
                self._settled(pending, RequestStatus.UNKNOWN, None, "its producer was closed")
        self._transport.close(self._settings.close_timeout_ms / 1_000)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- sending -------------------------------------------------------------------------------

    def _await_room(self, timeout_s: float) -> None:
        in_flight_max = self._settings.in_flight_max
        if len(self._waiting) >= in_flight_max and not self._room.wait_for(
            lambda: len(self._waiting) < in_flight_max or self._stopping.is_set(), timeout_s
        ):
            raise BusUnavailable(
                f"{len(self._waiting)} requests have no outcome after {timeout_s:g} s; nothing "
                "was sent. See `leasehold status` for whether there is a master"
            )
        if self._stopping.is_set():
            raise BusUnavailable("this producer is closed; nothing was sent")

    def _ask(self, pending: Pending) -> None:
        """The same bytes under the same id (T5)."""
        with self._lock:
            if pending.outcome is not None:
                return
            if self._stopping.is_set():
                raise BusUnavailable("this producer is closed; ask with another one")
            if pending.status is RequestStatus.UNKNOWN:
                self._counts[RequestStatus.UNKNOWN] -= 1
            pending.reopen(boottime_ns())
            self._waiting[pending.request_id] = pending
        try:
            self._send(pending)
        except LeaseholdError as error:
            # This asking is surely not in the topic, but an earlier one may be.
            with self._lock:
                self._settled(pending, RequestStatus.UNKNOWN, None, error.message)
            raise

    def _send(self, pending: Pending) -> None:
        self._transport.send(pending.request_id, pending.content_type, pending.body)

    def _withdraw(self, pending: Pending, why: str) -> None:
        """Take back a request of which nothing was ever sent, so that it does not count. The lock
        is held."""
        if self._waiting.pop(pending.request_id, None) is not None:
            self._submitted -= 1
            self._group.settled(pending.request_id)
            pending.settle(RequestStatus.UNKNOWN, None, why)
            self._room.notify_all()

    # --- the reading thread --------------------------------------------------------------------

    def _read(self) -> None:
        while not self._stopping.is_set():
            try:
                results = self._transport.results(POLL_S)
            except LeaseholdError as error:
                # A broker that is away answers nothing; those who wait run into their time-outs.
                self._note_trouble(error.message)
                self._stopping.wait(POLL_S)
                continue
            now_ns = boottime_ns()
            with self._lock:
                for result in results:
                    self._take(result)
                if results:  # once for all of them: nobody else has the lock meanwhile
                    self._room.notify_all()
                for key, why in self._transport.failures():
                    self._failed(key, why)
                if now_ns - self._swept_ns >= UNKNOWN_SWEEP_NS:
                    self._swept_ns = now_ns
                    self._sweep(now_ns)

    def _take(self, result: Result) -> None:
        pending = self._waiting.get(result.request_id)
        if pending is None:
            return  # another requester's on this partition, or a repeat (L7)
        outcome = result.outcome
        if not outcome.settles(pending.attempt):
            return  # of an attempt before, given once more (L7)
        if not outcome.final and outcome.lsn == 0 and pending.on_conflict is OnConflict.RETRY:
            return  # refused this once; the verify/retry stream brings the next attempt
        self._leaves(pending, status_of(outcome), outcome, "")

    def _failed(self, key: bytes, why: str) -> None:
        pending = self._waiting.get(key)
        if pending is not None:
            self._settled(pending, RequestStatus.UNKNOWN, None, why)

    def _sweep(self, now_ns: int) -> None:
        oldest_ns = now_ns - self._settings.outcome_timeout_ms * 1_000_000
        for pending in list(self._waiting.values()):
            if pending.asked_ns > oldest_ns:
                continue
            words = pending.trouble or f"no answer in {self._settings.outcome_timeout_ms} ms"
            self._settled(pending, RequestStatus.UNKNOWN, None, words)

    def _note_trouble(self, why: str) -> None:
        with self._lock:
            for pending in self._waiting.values():
                pending.trouble = why
            self._sweep(boottime_ns())

    def _settled(self, pending: Pending, status: RequestStatus, outcome: Any, trouble: str) -> None:
        """Take it off those that wait, and wake who waits for room. The lock is held."""
        self._leaves(pending, status, outcome, trouble)
        self._room.notify_all()

    def _leaves(self, pending: Pending, status: RequestStatus, outcome: Any, trouble: str) -> None:
        if self._waiting.pop(pending.request_id, None) is None:
            return
        self._counts[status] += 1
        self._measures.add(metrics.REQUESTS, 1, (status.value,))
        if outcome is not None:
            waited_ns = boottime_ns() - pending.asked_ns
            self._measures.observe(metrics.REQUEST_S, waited_ns / NS_PER_S)
        self._group.settled(pending.request_id)
        pending.settle(status, outcome, trouble)


def _default_transport(
    settings: ClientSettings, partition: int
) -> tuple[RequestTransport, FastPath | None]:
    """Return what carries requests, and the state machine of its fast path if it has one."""
    # Imported late: librdkafka is loaded only by those who send.
    from leasehold.adapters.kafka.request_transport import KafkaRequestTransport
    from leasehold.adapters.redis.requests import ASKER_BYTES
    from leasehold.client.request_transport import FastRequestTransport

    topics = settings.topics
    kafka = KafkaRequestTransport(
        settings.kafka, topics.requests.name, topics.results.name, partition
    )
    if not settings.redis.publishes_requests(settings.kafka):
        return kafka, None
    requester = random_bytes(ASKER_BYTES)
    fast = FastRequestTransport(
        FastRequestSettings(), kafka, settings.redis, topics.database, requester
    )
    return fast, fast.path
