"""A producer's two transports: change requests go through Redis or Kafka's topic, and answers
by either. Which of the two is decided in `replication/fast_path/requests.py`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from leasehold.adapters.kafka.request_transport import KafkaRequestTransport
from leasehold.adapters.os.clock import boottime_ns
from leasehold.adapters.redis.requests import AnswerSubscriber, RequestPublisher
from leasehold.model.errors import LeaseholdError
from leasehold.model.records.requests import Result
from leasehold.replication.fast_path.requests import (
    Asking,
    FastRequestSettings,
    RequestPath,
)
from leasehold.replication.fast_path.state_machine import NOT_PUBLISHED, FastPath
from leasehold.settings.environment import RedisSettings

LISTEN_SLICE_S: Final = 0.01
"""How long what comes by the other transport may lie there while answers come; and how often one
looks whether they are late."""
BOTH_SLICE_S: Final = 0.002
BODIES_MAX: Final = 20_000
LOG: Final = logging.getLogger("leasehold.requests")


class Sent(NamedTuple):
    key: bytes
    content_type: str
    body: bytes


class FastRequestTransport:
    """Threads as with `KafkaRequestTransport`, which it closes."""

    def __init__(
        self,
        settings: FastRequestSettings,
        kafka: KafkaRequestTransport,
        redis: RedisSettings,
        database: str,
        requester: bytes,
    ) -> None:
        """Make a transport. `requester` is 16 fresh random bytes, of this object alone."""
        self._kafka = kafka
        self._ways = RequestPath(settings)
        self._publisher = RequestPublisher(redis, database, requester)
        self._subscriber = AnswerSubscriber(redis, database, requester)
        self._lock = threading.Lock()  # of the paths, the publisher, and what follows
        self._bodies: dict[bytes, Sent] = {}  # told, and not answered; bounded by the ways
        self._held: list[Sent] = []  # back by the ways, which bound it
        self._failures: list[tuple[bytes, str]] = []
        self._gathered: list[Sent] = []  # of the thread that gathers

    # ------------------------------------------------------------ requests

    def send(self, key: bytes, content_type: str, body: bytes) -> None:
        """Send a request as `KafkaRequestTransport.send` does, through Redis where that works."""
        asked = self._asked((Sent(key, content_type, body),))
        if not asked.by_kafka:
            return
        try:
            self._kafka.send(key, content_type, body)
        except LeaseholdError:
            # ⚠ What was told as well may be decided by that: it is not nowhere. It is asked on.
            with self._lock:
                self._ways.failed(key)
            if asked.number == NOT_PUBLISHED:
                raise

    def gather(self, key: bytes, content_type: str, body: bytes) -> None:
        """Keep a request for `send_gathered`."""
        self._gathered.append(Sent(key, content_type, body))

    def send_gathered(self) -> None:
        """All together; `failures` tells of those that did not go."""
        group, self._gathered = self._gathered, []
        if not group or not self._asked(group).by_kafka:
            return
        for sent in group:
            try:
                self._kafka.gather(*sent)
            except LeaseholdError as error:
                self._failed(sent.key, error.message)
        self._kafka.send_gathered()

    def publish(self, requests: Sequence[tuple[bytes, str, bytes]]) -> bool:
        """Publish requests through Redis alone, which holds nobody up. Return False where Kafka has
        a part in it, or another thread is at it."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            group = [Sent(*request) for request in requests]
            may = self._ways.may_publish(len(group), _size(group), connected=self._connected)
            if may:
                self._ask(group)
            return may
        finally:
            self._lock.release()

    def _asked(self, group: Sequence[Sent]) -> Asking:
        with self._lock:
            older = self._held
            asked = self._ask(group)
            self._put_behind(asked, older)
            return asked

    @property
    def _connected(self) -> bool:
        return self._publisher.up and self._subscriber.up

    def _ask(self, group: Sequence[Sent]) -> Asking:
        """Number a group and publish it, or hold it back. The lock is held."""
        ids = [sent.key for sent in group]
        asked = self._ways.ask(ids, _size(group), boottime_ns(), connected=self._connected)
        self._held = [*self._held, *group]
        if not asked.held:
            self._let_go(asked)
        return asked

    def _let_go(self, asked: Asking) -> None:
        """Publish what was held back, if it is to be published. The lock is held."""
        group, self._held = self._held, []
        if asked.number != NOT_PUBLISHED:
            self._bodies.update((sent.key, sent) for sent in group)
            told = [(sent.content_type, sent.body) for sent in group]
            if not self._publisher.publish_requests(self._ways.term, asked.run, asked.number, told):
                self._ways.lost(boottime_ns())

    def _put_behind(self, asked: Asking, older: Iterable[Sent]) -> None:
        """Put what was held back on the topic, behind what is to be asked again. The lock is
        held."""
        self._ask_again()
        if asked.by_kafka:
            self._put(older, told=asked.number != NOT_PUBLISHED)

    def _go_on(self) -> None:
        """Ask again what is to be asked again, then release what was held back. The lock is
        held."""
        self._ask_again()
        older = self._held
        if not older:
            return
        asked = self._ways.release(boottime_ns(), connected=self._connected)
        if asked is not None:
            self._let_go(asked)
            self._put_behind(asked, older)

    def _ask_again(self) -> None:
        """Put on the topic what is to be asked again. The lock is held, so that nothing overtakes
        it."""
        again, self._ways.again = self._ways.again, []
        self._put([self._bodies[key] for key in again if key in self._bodies])

    def _put(self, group: Iterable[Sent], *, told: bool = False) -> None:
        """Put requests on the topic. The lock is held. One that was `told`, too, and is not taken
        is no failure, as with `send`."""
        for sent in group:
            try:
                self._kafka.send(*sent)
            except LeaseholdError as error:
                if told:
                    self._ways.failed(sent.key)
                else:
                    self._failures.append((sent.key, error.message))

    # ------------------------------------------------------------ answers

    def results(self, timeout_s: float) -> list[Result]:
        """What has come since, by either transport. Raises what `KafkaRequestTransport.results`
        raises."""
        self._keep()
        if not self._ways.listens:
            return self._answered(self._kafka.results(timeout_s), self._subscriber.results())
        told = self._subscriber.results()
        by_kafka: list[Result] = []
        end_ns = boottime_ns() + int(timeout_s * 1e9)
        while not told and self._hears_alone():
            left_s = (end_ns - boottime_ns()) / 1e9
            self._subscriber.wait(max(0.0, min(left_s, LISTEN_SLICE_S)))
            told = self._subscriber.results()
            if not told:
                self._keep()
                # The next attempt of one that was refused once comes that way (R1).
                by_kafka = self._kafka.results(0.0)
                if by_kafka or left_s <= LISTEN_SLICE_S:
                    break
        if not by_kafka:
            wait_s = BOTH_SLICE_S if self._ways.awaits_kafka and not told else 0.0
            by_kafka = self._kafka.results(wait_s)
        return self._answered(by_kafka, told or self._subscriber.results())

    def _hears_alone(self) -> bool:
        """Whether answers are told, and none is to come through Kafka."""
        return self._ways.listens and not self._ways.awaits_kafka

    def _answered(self, by_kafka: list[Result], told: list[Result]) -> list[Result]:
        if not by_kafka and not told:
            return by_kafka
        ways = self._ways
        found: list[Result] = []
        with self._lock:
            now_ns = boottime_ns()
            # What was told first: a trial counts as in time if both are there.
            for results, by_telling in ((told, True), (by_kafka, False)):
                found += [
                    result
                    for result in results
                    if ways.answered(
                        result.request_id, result.outcome, now_ns, published=by_telling
                    )
                ]
            if by_kafka:
                ways.follow(self._kafka.term, now_ns)
            self._go_on()
            if self._bodies:
                self._forget(result.request_id for result in (*told, *by_kafka))
        return found

    def _forget(self, ids: Iterable[bytes]) -> None:
        """Forget the bodies of those requests that need not be asked again. The lock is held."""
        for request_id in ids:
            if not self._ways.needs(request_id):
                self._bodies.pop(request_id, None)

    def _keep(self) -> None:
        ways = self._ways
        with self._lock:
            if ways.wants:
                self._subscriber.open()
                self._publisher.open()
            now_ns = boottime_ns()
            for (run, number), heard in self._publisher.outcomes():
                ways.confirm(run, number, now_ns, received=heard)
            if ways.listens and not (self._publisher.up and self._subscriber.up):
                ways.lost(now_ns)
            ways.tick(now_ns)
            self._go_on()
            if len(self._bodies) > BODIES_MAX:
                self._forget(list(self._bodies))

    @property
    def path(self) -> FastPath:
        """Return the state machine of the fast path, for whoever looks at it."""
        return self._ways.path

    def failures(self) -> list[tuple[bytes, str]]:
        """Return what failed as `KafkaRequestTransport.failures` does."""
        with self._lock:
            found, self._failures = [*self._failures, *self._kafka.failures()], []
            for key, _ in found:
                self._ways.failed(key)
        return found

    def _failed(self, key: bytes, why: str) -> None:
        with self._lock:
            self._failures.append((key, why))

    def close(self, timeout_s: float) -> None:
        with self._lock:
            held, self._held = self._held, []
            self._put(held)
        self._kafka.close(timeout_s)
        self._publisher.close()
        self._subscriber.close()


def _size(group: Sequence[Sent]) -> int:
    return sum(len(sent.body) for sent in group)
