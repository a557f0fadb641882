"""The records of the log that a node takes, each once, whichever way it comes.

At first from the log's topic. A node that only follows may then receive them as the master
publishes them (`replication/fast_path/log.py`); a candidate does not: whether there is a master it
judges by the topic alone. A master may take its own records when the broker acknowledges them
(`replication/fast_path/own_appends.py`). Both leave the topic unread meanwhile.
"""

from __future__ import annotations

import logging
from typing import Final

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.model.errors import LogStopped
from leasehold.node.driver import NodeDriver
from leasehold.replication.effects import LogReceived
from leasehold.replication.fast_path.log import LogPath
from leasehold.replication.fast_path.own_appends import OwnAppends
from leasehold.replication.fast_path.state_machine import FastPath
from leasehold.replication.node import Node
from leasehold.replication.node_settings import NodeSettings

CODEC: Final = MessagePackCodec()
LOG: Final = logging.getLogger("leasehold.node")


class LogIntake:
    """Chooses the way. Times are of the node's monotonic clock, in ns."""

    def __init__(
        self, settings: NodeSettings, log: str, next_offset: int, driver: NodeDriver
    ) -> None:
        self._log = log
        self._driver = driver
        follows_only = settings.serving and not settings.candidate
        self.path = (
            LogPath(settings.fast_log, next_offset)
            if settings.fast_log.on and follows_only
            else None
        )
        """Whether records are received from the master; None: this node never does."""
        self._own = OwnAppends(settings.own_appends)
        self.reads_topic = True

    @property
    def own_path(self) -> FastPath:
        """Return the state machine of taking own appends for read, for whoever looks at it."""
        return self._own.path

    def is_new(self, offset: int, now_ns: int) -> bool:
        """Return whether the record that was just read from the topic at `offset` is to be taken;
        to be asked of each, in order."""
        if self.path is not None:
            return self.path.read(offset, now_ns)
        return self._own.is_new(offset)

    def receive(self, offset: int, data: bytes, now_ns: int) -> LogReceived | None:
        """Return the event for a record that was published as the one at `offset`, by whoever it
        was, or None if it is not to be taken; `data` is b"" for one that was too large."""
        path = self.path
        assert path is not None, "nothing is published to a node that takes none of it"
        whole, record = bool(data), None
        if whole and offset == path.next_offset:
            try:
                record = CODEC.decode_log(data)
            except LogStopped:
                self.doubt(offset, now_ns)
                return None
        if not path.receive(offset, now_ns, whole=whole):
            return None
        assert record is not None, "published records are taken in order"
        return LogReceived(offset, record, CODEC.digest(data))

    def doubt(self, next_offset: int, now_ns: int) -> None:
        """What was received contradicts what this node has: read the topic, from there on."""
        assert self.path is not None, "nobody publishes records to this node"
        LOG.warning(
            "a record published through Redis as offset %d of the log does not follow this node's"
            " log; Kafka is read instead (who else may publish on that channel?)",
            next_offset,
        )
        self.path.doubted(next_offset, now_ns)

    def is_read_back(self, offset: int, next_offset: int, now_ns: int) -> bool:
        """Return whether a record of this master's that stands at `offset`, as the broker says,
        counts as read; the node has the log below `next_offset`."""
        return self._own.landed(offset, next_offset, now_ns)

    def choose(self, node: Node, now_ns: int) -> None:
        """Follow the master of the node's term, and begin or end to read the topic; to be called
        after each turn, and when `due_ns` has come."""
        path = self.path
        if path is None:
            self._own.tick(now_ns, master=node.master is not None)
            reads_topic, next_offset = self._own.fetches, node.position.offset
        else:
            path.follow(node.term, node.granted_in, now_ns)
            if not self._driver.follow_log(path.term):
                path.lost(now_ns)
            path.tick(now_ns)
            reads_topic, next_offset = not path.fast, path.next_offset
        if reads_topic == self.reads_topic:
            return
        self.reads_topic = reads_topic
        if reads_topic:
            self._driver.read(self._log, next_offset)
        else:
            self._driver.stop(self._log)
        if path is not None:
            way = "read from Kafka" if reads_topic else "told by the master"
            LOG.debug("the log is %s from offset %d on", way, next_offset)

    def due_ns(self) -> int | None:
        """Return when `choose` has to be called next at the latest, None: after the next turn."""
        return self._own.due_ns() if self.path is None else self.path.due_ns()
