"""Watches what grows beside stores: the log, the queues, the memory of Redis. One process of a
database does, the dashboard: each look reads some records, and asks Redis once."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from leasehold.adapters.kafka.topic_span import TopicSpan, read_spans
from leasehold.adapters.redis.server_look import RedisSeen, look_at_redis
from leasehold.model import metrics
from leasehold.model.closing import Closing
from leasehold.model.errors import LeaseholdError
from leasehold.model.measures import Sample
from leasehold.model.metrics import NO_LABELS
from leasehold.settings.client import ClientSettings

LOOK_EVERY_S: Final = 30.0
LOOK_S: Final = 10.0
CLOSE_S: Final = 12.0
US_PER_S: Final = 1_000_000
LOG: Final = logging.getLogger("leasehold.watch")


class BudgetWatch(Closing):
    """A thread that looks now and then. What it can't see is absent from its samples."""

    def __init__(
        self,
        settings: ClientSettings,
        read: Callable[..., Mapping[str, TopicSpan]] = read_spans,
        ask_redis: Callable[..., RedisSeen] = look_at_redis,
    ) -> None:
        """Begin to look. `read` and `ask_redis`: what it looks with."""
        self._settings = settings
        self._read = read
        self._ask_redis = ask_redis
        topics = settings.topics
        self._labels = {
            topics.log.name: "log",
            topics.requests.name: "requests",
            topics.backfill.name: "backfill",
        }
        self._spans: Mapping[str, TopicSpan] = {}
        self._redis: RedisSeen | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="leasehold-budgets", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stopping.set()
        self._thread.join(CLOSE_S)

    def samples(self) -> Iterator[Sample]:
        """Yield what was seen last."""
        budget = self._settings.cluster.log_budget_bytes
        for name, span in self._spans.items():
            labels = (self._labels[name],)
            yield Sample(metrics.TOPIC_BYTES, labels, span.bytes_about)
            if span.first_us:
                yield Sample(metrics.TOPIC_FIRST, labels, span.first_us / US_PER_S)
            if budget:
                yield Sample(metrics.TOPIC_BUDGET, labels, span.bytes_about / budget)
        redis = self._redis
        if redis is not None:
            yield Sample(metrics.REDIS_BYTES, NO_LABELS, redis.memory)
            if redis.memory_max:
                yield Sample(metrics.REDIS_BUDGET, NO_LABELS, redis.memory / redis.memory_max)

    def look(self) -> None:
        """Look at all once; a part that is away is known no more."""
        spans: dict[str, TopicSpan] = {}
        for name in self._labels:  # each alone: of one it may not be allowed to read
            try:
                spans |= self._read(self._settings.kafka, [name], LOOK_S)
            except LeaseholdError as error:
                LOG.debug("the size of %s is not known: %s", name, error.message)
        self._spans = spans
        try:
            self._redis = self._ask_redis(self._settings.redis)
        except LeaseholdError as error:
            self._redis = None
            LOG.debug("the memory of Redis is not known: %s", error.message)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self.look()
            except Exception:  # a defect: the next look may be without it, and others go on
                LOG.exception("the sizes of topics are not known")
            self._stopping.wait(LOOK_EVERY_S)
