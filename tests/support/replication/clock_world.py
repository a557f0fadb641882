"""Candidates on hosts with clocks of their own, stepped by hand over one log in memory.

Days pass in one step, so that what clocks and idle times of weeks do can be tried out by the
hundred. All nodes apply the whole log; who is master is said from outside.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from typing import Any, Final

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.model.ids import format_request_id, request_id
from leasehold.model.ports import Now
from leasehold.model.records.log import Commit, Decisions, LogPosition, Refusal
from leasehold.model.records.requests import Outcome, Queue
from leasehold.replication.effects import (
    Append,
    AskLogEnd,
    AskQueue,
    ClockNotice,
    Effect,
    LogEnd,
    LogRead,
    QueueFound,
    QueueRead,
    ReadQueue,
    Tick,
)
from leasehold.replication.master.queue_topics import Found
from leasehold.replication.master.settings import MasterSettings
from leasehold.replication.node import Node
from leasehold.replication.node_settings import NodeSettings
from leasehold.replication.outcomes import OutcomeSettings
from tests.support.memory_store.store import MemoryStore

CODEC: Final = MessagePackCodec()
WALL_MS: Final = 1_700_000_000_000
MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS
HEARTBEAT_MS: Final = 200


class Hosts:
    """`ms` is the time that has passed, by which every monotonic clock goes; `off_ms`: by how much
    a host's clock is wrong."""

    def __init__(
        self, names: tuple[str, ...] = ("m1", "m2"), log: tuple[bytes, ...] = (), ms: int = 10_000
    ) -> None:
        self.ms = ms
        self.off_ms = dict.fromkeys(names, 0)
        self.log = [*log]
        self.queue: list[bytes] = []
        self.master = ""
        self.notices: list[ClockNotice] = []
        self.decided: dict[bytes, list[Commit | Refusal]] = {}
        self.records: list[Decisions] = []
        self._random = itertools.count(1)
        self._noted = 0  # offset up to which records were looked at
        self.stores = {name: MemoryStore() for name in names}
        for store in self.stores.values():
            store.keep_rows(True)
        self.nodes = {name: self._started(name, candidate=False) for name in names}
        self.pump()
        self.take_over(names[0])

    # ------------------------------------------------------------ clocks

    def now(self, name: str) -> Now:
        return Now(self.ms * 1_000_000, self.clock_ms(name) * 1_000)

    def clock_ms(self, name: str = "") -> int:
        """Without a name the right one."""
        return WALL_MS + self.ms + (self.off_ms[name] if name else 0)

    def set_clocks(self, off_ms: int) -> None:
        self.off_ms = dict.fromkeys(self.off_ms, off_ms)

    def passes(self, ms: int, records: int = 1) -> None:
        """Nobody asks for anything; of the heartbeats of that time there are so many."""
        for _ in range(records):
            self.ms += max(HEARTBEAT_MS, ms // records)
            self.tick()

    # ------------------------------------------------------------ the nodes

    def _started(self, name: str, *, candidate: bool) -> Node:
        outcomes = MasterSettings(outcomes=OutcomeSettings())
        settings = NodeSettings(name, candidate=candidate, serving=False, master=outcomes)
        incarnation = next(self._random).to_bytes(8, "big")
        store = self.stores[name]
        return Node(settings, store, CODEC, incarnation, itertools.count(1), self.now(name))

    def take_over(self, name: str) -> None:
        """The old master starts again as a follower; the new one has followed until now."""
        for restarted in {self.master, name} - {""}:
            self.stores[restarted] = self.stores[restarted].crash()
            candidate = restarted == name
            self.nodes[restarted] = self._started(restarted, candidate=candidate)
        self.master = name
        self.ms += 3_000
        self.tick()
        assert self.nodes[name].role == "master", self.nodes[name].stopped
        self.passes(HEARTBEAT_MS)

    def tick(self) -> None:
        self.perform(self.nodes[self.master].step(Tick(), self.now(self.master)))
        self.pump()

    def perform(self, effects: list[Effect]) -> None:
        node = self.nodes[self.master]
        for effect in effects:
            match effect:
                case Append(data):
                    self.log.append(data)
                case AskLogEnd():
                    self.perform(node.step(LogEnd(len(self.log)), self.now(self.master)))
                case AskQueue(queue):
                    end = len(self.queue) if queue is Queue.REQUESTS else 0
                    found = Found(f"demo.{queue.value}", "first", 0, end)
                    self.perform(node.step(QueueFound(queue, found), self.now(self.master)))
                case ReadQueue(Queue.REQUESTS, offset):
                    for at in range(offset, len(self.queue)):
                        self._hand_over(at)
                case ClockNotice():
                    self.notices.append(effect)

    def _hand_over(self, at: int) -> None:
        said = QueueRead(Queue.REQUESTS, at, "application/json", self.queue[at])
        self.perform(self.nodes[self.master].step(said, self.now(self.master)))

    def pump(self) -> None:
        """Everybody reads the log to its end."""
        for name, node in self.nodes.items():
            while node.position.offset < len(self.log):
                offset = node.position.offset
                record = CODEC.decode_log(self.log[offset])
                if isinstance(record, Decisions):
                    self._note(offset, record)
                read = LogRead(offset, record, CODEC.digest(self.log[offset]))
                effects = node.step(read, self.now(name))
                assert node.stopped is None, node.stopped
                if name == self.master:
                    self.perform(effects)
            if name != self.master:
                node.step(Tick(), self.now(name))

    def _note(self, offset: int, record: Decisions) -> None:
        if offset < self._noted:
            return
        self._noted = offset + 1
        self.records.append(record)
        decided: list[Commit | Refusal] = [*record.commits, *record.refusals]
        for each in decided:
            if each.request_id:
                self.decided.setdefault(each.request_id, []).append(each)

    @property
    def position(self) -> LogPosition:
        return self.nodes[self.master].position

    # ------------------------------------------------------------ asking

    def made_id(self, clock_ms: int) -> bytes:
        return request_id(clock_ms, next(self._random).to_bytes(10, "big"))

    def ask(self, fields: Mapping[str, Any], number: bytes | None = None) -> bytes:
        """Decided when this returns; a fresh id is of the right time."""
        number = number or self.made_id(self.clock_ms())
        self.queue.append(self.body(number, fields))
        self._hand_over(len(self.queue) - 1)
        self.ms += 1
        self.tick()
        self.tick()
        return number

    def body(self, number: bytes, fields: Mapping[str, Any]) -> bytes:
        return json.dumps({"id": format_request_id(number), **fields}).encode()

    def last(self, number: bytes) -> Commit | Refusal:
        return self.decided[number][-1]

    def outcome(self, number: bytes) -> Outcome | None:
        found = {repr(store.outcome(number)) for store in self.stores.values()}
        assert len(found) == 1, f"L5: nodes remember {found}"
        return self.stores[self.master].outcome(number)

    def check_nodes(self) -> None:
        """L6: all of them are in the same state."""
        one, *others = self.stores.values()
        for other in others:
            assert one.key() == other.key()
            assert one.contents.times == other.contents.times
            assert one.contents.rows_lsn == other.contents.rows_lsn


def taken(decided: Commit | Refusal) -> bool:
    return isinstance(decided, Commit)
