"""Tells operators of a node's conditions, in its log: what they would be called for, and when it is
over. The same is in the metrics; this is for who reads the log alone."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Final

from leasehold.adapters.kafka import client as kafka_client
from leasehold.model.time_units import NS_PER_MS, NS_PER_S
from leasehold.node.conditions import Condition
from leasehold.node.log_intake import LogIntake
from leasehold.replication.fast_path.state_machine import FastPath
from leasehold.replication.node import Node

LOOK_EVERY_NS: Final = 200 * NS_PER_MS
SLOW_APPEND_NS: Final = NS_PER_S
PATH_LEFT_NS: Final = 30 * NS_PER_S
"""How long a fast path is left alone, again and again, before that is told."""
DISK_FREE_PERCENT_MIN: Final = 5
DISK_FREE_BYTES_MIN: Final = 1 << 30
LOG: Final = logging.getLogger("leasehold.node")


class OperatorWatch:
    """The conditions of one node, looked at on its thread."""

    def __init__(
        self,
        node: Node,
        intake: LogIntake,
        ledger_is_away: Callable[[], bool] = lambda: False,
    ) -> None:
        self._ledger_is_away = ledger_is_away
        self._node = node
        self._intake = intake
        self._look_ns = 0
        self._was_coherent = False
        self._incoherent = Condition(
            "this node is no longer coherent and answers no reads", "this node is coherent again"
        )
        self._slow_append = Condition(
            "a record has been on its way to the log for more than 1 s, and every write waits",
            "the log takes records again",
        )
        self._kafka = Condition("Kafka can't be reached", "Kafka is reached again")
        self._ledger = Condition(
            "the lease ledger in Redis does not answer: schema changes wait, nothing else",
            "the lease ledger answers again",
        )
        self._full = Condition(
            "a queue of the master's is full, and its topic is not read",
            "the master's queues have room again",
        )
        self._paths = Condition(
            "a fast path through Redis has not worked for a while, Kafka carries all",
            "the fast path is tried as ever",
            after_ns=PATH_LEFT_NS,
        )
        self._disk = Condition(
            "the disk of the store is nearly full", "the disk of the store has room again"
        )
        self._reserve = Condition(
            "a master on this disk refuses what adds or changes rows (53100)",
            "a master on this disk takes all writes again",
        )

    def look(self, now_ns: int) -> None:
        """Say what has begun or ended since, now and then; to be called after each turn."""
        if now_ns < self._look_ns:
            return
        self._look_ns = now_ns + LOOK_EVERY_NS
        for words in self._news(now_ns):
            if words:
                LOG.warning("%s", words)

    def _news(self, now_ns: int) -> Iterator[str]:
        node = self._node
        if node.agent is not None:
            holds = node.lease.holds(now_ns)
            self._was_coherent = self._was_coherent or holds  # at the start nobody is
            yield self._incoherent.note(now_ns, holds=self._was_coherent and not holds)
        master = node.master
        slow = master is not None and master.on_its_way_ns(now_ns) > SLOW_APPEND_NS
        yield self._slow_append.note(now_ns, holds=slow)
        paused = () if master is None else sorted(queue.value for queue in master.intake.paused)
        yield self._full.note(now_ns, holds=bool(paused), detail=", ".join(paused))
        troubled = sorted(
            watch.client_id for watch in kafka_client.LIVE.list() if watch.is_troubled
        )
        yield self._kafka.note(now_ns, holds=bool(troubled), detail=", ".join(troubled))
        yield self._ledger.note(now_ns, holds=self._ledger_is_away())
        left = [name for name, path in self._fast_paths() if path.pause_left_ns(now_ns)]
        yield self._paths.note(now_ns, holds=bool(left), detail=", ".join(left))
        yield self._look_at_disk(now_ns)
        disk = node.disk
        yield self._reserve.note(now_ns, holds=disk.is_short, detail=disk.words())

    def _fast_paths(self) -> Iterator[tuple[str, FastPath]]:
        if self._node.agent is not None:
            yield "acknowledgements", self._node.acknowledger.path
        if self._intake.path is not None:
            yield "log", self._intake.path.path

    def _look_at_disk(self, now_ns: int) -> str:
        seen = self._node.disk.seen
        least = min(DISK_FREE_BYTES_MIN, seen.whole * DISK_FREE_PERCENT_MIN // 100)
        detail = f"{seen.free // (1 << 20):,} MiB are free"
        return self._disk.note(now_ns, holds=seen.free < least, detail=detail)
