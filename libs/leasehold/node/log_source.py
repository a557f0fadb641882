"""How the log comes to a node: from Kafka, told by the master through Redis (`LogSource`), or a
master's own records by their acknowledgements (`OwnLog`); and how a master tells it on. Which way
is taken when is decided in `replication/fast_path/log.py` and
`replication/fast_path/own_appends.py`.

A candidate for mastership is told nothing: whether there is a master it judges by Kafka alone.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.kafka.reader import Record, TopicReader
from leasehold.adapters.kafka.writer import TopicWriter
from leasehold.adapters.os.clock import boottime_ns
from leasehold.adapters.redis.log import LogChannelPublisher, LogSubscriber
from leasehold.model.errors import LogStopped
from leasehold.replication.effects import LogReceived
from leasehold.replication.fast_path.log import (
    NOBODY,
    FastLogSettings,
    LogPath,
    LogPublisher,
    Term,
)
from leasehold.replication.fast_path.own_appends import OwnAppends, OwnAppendsSettings
from leasehold.replication.fast_path.state_machine import NOT_PUBLISHED
from leasehold.replication.node import Node
from leasehold.settings.environment import RedisSettings

CODEC: Final = MessagePackCodec()
RECORDS_PER_READ_MAX: Final = 2_000
LANDED_POLL_S: Final = 0.001
"""Longest that other records wait while the acknowledgement of an append is waited for."""
LOG: Final = logging.getLogger("leasehold.node")


class _Fetching:
    """The log among what `reader` reads: fetched, from wherever its owner has begun, or not."""

    def __init__(self, reader: TopicReader, log: str) -> None:
        self._reader = reader
        self._log = log
        self.on = True

    def turn(self, *, on: bool, next_offset: int) -> bool:
        """Whether that is a change."""
        if on == self.on:
            return False
        self.on = on
        if on:
            self._reader.start(self._log, 0, next_offset)
        else:
            self._reader.stop(self._log, 0)
        return True


class LogSource:
    """A node's. `reader` may read other topics, too; this object starts and stops the log alone."""

    def __init__(
        self,
        settings: FastLogSettings,
        redis: RedisSettings,
        database: str,
        reader: TopicReader,
        log: str,
        next_offset: int,
    ) -> None:
        self._reader = reader
        self._log = log
        self._subscriber = LogSubscriber(redis, database)
        self._ways = LogPath(settings, next_offset)
        self._fetching = _Fetching(reader, log)

    @property
    def fast(self) -> bool:
        """Whether the log is told, and not read."""
        return self._ways.fast

    def read(self, wait_s: float) -> list[Record]:
        """Records of Kafka's; waits until there is one, or something was told."""
        ways, now_ns = self._ways, boottime_ns()
        until_ns = ways.due_ns() if ways.fast else ways.awaited_until_ns(now_ns)
        if until_ns:
            self._subscriber.wait(max(0.0, min(wait_s, (until_ns - now_ns) / 1e9)))
            return []
        records = self._reader.read(RECORDS_PER_READ_MAX, wait_s)
        now_ns = boottime_ns()
        return [r for r in records if r.topic != self._log or ways.read(r.offset, now_ns)]

    def heard(self) -> Iterator[LogReceived]:
        """What was told since and is to be applied. Whoever takes one of these steps his node by it
        before he asks for the next."""
        ways = self._ways
        for offset, data in self._subscriber.records():
            whole, record = bool(data), None
            if whole and offset == ways.next_offset:
                try:
                    record = CODEC.decode_log(data)
                except LogStopped:
                    self.doubted(offset)
                    continue
            if ways.receive(offset, boottime_ns(), whole=whole):
                assert record is not None, "told records are taken in order"
                yield LogReceived(offset, record, CODEC.digest(data))

    def doubted(self, next_offset: int) -> None:
        """What was told contradicts what this node has; Kafka is to be read from there."""
        LOG.warning(
            "a record published through Redis as offset %d of the log does not follow this node's"
            " log; Kafka is read instead (who else may publish on that channel?)",
            next_offset,
        )
        self._ways.doubted(next_offset, boottime_ns())

    def keep(self, node: Node) -> None:
        """After each turn: listen to the master of the node's term; read from Kafka, or don't."""
        ways, now_ns = self._ways, boottime_ns()
        ways.follow(node.term, node.granted_in, now_ns)
        self._subscriber.listen(ways.term)
        if ways.term != NOBODY and not self._subscriber.up:
            ways.lost(now_ns)
        ways.tick(now_ns)
        if self._fetching.turn(on=not ways.fast, next_offset=ways.next_offset):
            way = "told by the master" if ways.fast else "read from Kafka"
            LOG.debug("the log is %s from offset %d on", way, ways.next_offset)

    def close(self) -> None:
        self._subscriber.close()


class OwnLog:
    """Of a node that is told nothing. Records of a topic come once, by whichever way.

    `reader` may read other topics, too; this object starts and stops the log alone, once somebody
    has started it. `writer` appends to the log."""

    def __init__(
        self, settings: OwnAppendsSettings, reader: TopicReader, writer: TopicWriter, log: str
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._log = log
        self._own = OwnAppends(settings)
        self._fetching = _Fetching(reader, log)

    def read(self, wait_s: float) -> list[Record]:
        """Records of Kafka's; waits until there is one, or, while the log is not fetched, one that
        was appended has landed."""
        if self._fetching.on:
            return self.fetched(wait_s)
        end_ns = boottime_ns() + int(wait_s * 1e9)
        while True:
            left_s = max(0.0, (end_ns - boottime_ns()) / 1e9)
            if not len(self._writer):
                return self.fetched(left_s)
            records = self.fetched(0)
            if records or self._writer.wait(min(left_s, LANDED_POLL_S)) or not left_s:
                return records

    def fetched(self, wait_s: float) -> list[Record]:
        """Records of Kafka's, without those that were taken when they landed."""
        records = self._reader.read(RECORDS_PER_READ_MAX, wait_s)
        return [r for r in records if r.topic != self._log or self._own.is_new(r.offset)]

    def heard(self) -> Iterator[LogReceived]:
        return iter(())

    def landed(self, offset: int, node: Node) -> bool:
        """Whether the record that the broker has put there for this master counts as read."""
        return self._own.landed(offset, node.position.offset, boottime_ns())

    def due_ns(self) -> int | None:
        """When `keep` has to be called next at the latest."""
        return self._own.due_ns()

    def keep(self, node: Node) -> None:
        """After each turn: fetch the log, or don't."""
        self._own.tick(boottime_ns(), master=node.master is not None)
        self._fetching.turn(on=self._own.fetches, next_offset=node.position.offset)

    def close(self) -> None:
        """Reader and writer are their maker's."""


class LogAnnouncer:
    """A master's: what it has read of the log is told to whoever listens."""

    def __init__(self, settings: FastLogSettings, redis: RedisSettings, database: str) -> None:
        self._publisher = LogChannelPublisher(redis, database)
        self._telling = LogPublisher(settings)
        self._term = NOBODY

    def tell(self, term: Term, offset: int, record: bytes) -> None:
        """⚠ Of a record that was read from the log: what was merely sent may never be there."""
        now_ns = boottime_ns()
        if term != self._term:
            self._term = term
            self._telling.begin(now_ns)
        for number, heard in self._publisher.outcomes():
            self._telling.confirm(number, now_ns, received=heard)
        number = self._telling.choose(now_ns)
        if number == NOT_PUBLISHED:
            return
        if not self._publisher.publish_record(number, term, offset, record):
            self._telling.confirm(number, now_ns, received=False)

    def close(self) -> None:
        self._publisher.close()
