"""What `leasehold status` shows beside the state of a database: how acknowledged writes could be
lost, and what the log still has. Asked while it reads the topics, and left out where it takes too
long."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final, NamedTuple

from leasehold.adapters.kafka.cluster_look import TopicLooker
from leasehold.adapters.kafka.topic_span import TopicSpan, read_spans
from leasehold.adapters.redis.server_look import look_at_redis
from leasehold.cli.doctor.finding import Problem
from leasehold.cli.doctor.kafka_checks import durability_of
from leasehold.cli.doctor.redis_checks import durability_of_redis
from leasehold.model.errors import LeaseholdError
from leasehold.settings.client import ClientSettings

LOOK_S: Final = 3.0


class Beside(NamedTuple):
    """What `leasehold status` says beside the view. `warnings`: sentences. `kept`: what the log
    has, None where that is not known."""

    warnings: tuple[str, ...] = ()
    kept: TopicSpan | None = None

    def kept_report(self) -> dict[str, Any] | None:
        """Return what the log has as plain data."""
        if self.kept is None:
            return None
        return {
            "first_offset": self.kept.first,
            "first_us": self.kept.first_us,
            "records": self.kept.records,
            "bytes_about": self.kept.bytes_about,
        }


class BesideLook:
    """A look that begins at once, on threads of its own."""

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._warnings: list[str] = []
        self._kept: TopicSpan | None = None
        self._threads = [
            threading.Thread(target=look, name="leasehold-status", daemon=True)
            for look in (self._look_at_kafka, self._look_at_redis, self._look_at_log)
        ]
        for thread in self._threads:
            thread.start()

    def result(self) -> Beside:
        """Return what was found out. Parts that are away are told by whoever needs them."""
        for thread in self._threads:
            thread.join(LOOK_S)
        with self._lock:
            return Beside(tuple(sorted(self._warnings)), self._kept)

    def _look_at_kafka(self) -> None:
        topics = self._settings.topics
        names = [topics.log.name, topics.requests.name]
        try:
            with closing(TopicLooker(self._settings.kafka, LOOK_S)) as looker:
                brokers = looker.brokers(names[0])
                found = looker.topics(names)
        except LeaseholdError:
            return
        self._warn(
            problem
            for name, seen in found.items()
            if seen.partitions
            for problem in durability_of(name, seen, brokers)
        )

    def _look_at_redis(self) -> None:
        try:
            seen = look_at_redis(self._settings.redis, LOOK_S)
        except LeaseholdError:
            return
        self._warn(durability_of_redis(seen, len(self._settings.redis.sentinels)))

    def _look_at_log(self) -> None:
        log = self._settings.topics.log.name
        try:
            kept = read_spans(self._settings.kafka, [log], LOOK_S)[log]
        except LeaseholdError:
            return
        with self._lock:
            self._kept = kept

    def _warn(self, problems: Iterator[Problem]) -> None:
        words = [problem.words for problem in problems]
        with self._lock:
            self._warnings += words
