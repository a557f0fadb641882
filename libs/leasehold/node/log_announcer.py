"""Publishes the log as its master has read it, for the nodes that follow it through Redis."""

from __future__ import annotations

from leasehold.adapters.os.clock import boottime_ns
from leasehold.adapters.redis.log import LogChannelPublisher
from leasehold.replication.fast_path.log import NOBODY, FastLogSettings, LogPublisher, Term
from leasehold.replication.fast_path.state_machine import NOT_PUBLISHED
from leasehold.settings.environment import RedisSettings


class LogAnnouncer:
    """The publisher of a master. For one thread, which it never holds up."""

    def __init__(self, settings: FastLogSettings, redis: RedisSettings, database: str) -> None:
        self._publisher = LogChannelPublisher(redis, database)
        self._choice = LogPublisher(settings)
        self._term = NOBODY

    def publish(self, term: Term, offset: int, record: bytes) -> None:
        """Publish a record, if that is worth it now.

        ⚠ Of a record that was read from the log: what was merely sent may never be there."""
        now_ns = boottime_ns()
        if term != self._term:
            self._term = term
            self._choice.begin(now_ns)
        for number, heard in self._publisher.outcomes():
            self._choice.confirm(number, now_ns, received=heard)
        number = self._choice.choose(now_ns)
        if number == NOT_PUBLISHED:
            return
        if not self._publisher.publish_record(number, term, offset, record):
            self._choice.confirm(number, now_ns, received=False)

    def close(self) -> None:
        self._publisher.close()
