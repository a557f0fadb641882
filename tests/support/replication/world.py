"""A master and a follower stepped by hand, records passed between them as bytes.

The log is a list; nothing arrives unless a test hands it over.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from typing import Any

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.codec.request_bytes import JSON
from leasehold.model.ids import format_request_id, request_id
from leasehold.model.ports import Now
from leasehold.model.records.log import Commit, Decisions
from leasehold.model.records.requests import Outcome, Queue
from leasehold.model.traces import NO_SPANS, SpanSink
from leasehold.replication.effects import (
    Append,
    AskLogEnd,
    AskQueue,
    Effect,
    LogEnd,
    LogRead,
    QueueFound,
    QueueRead,
    Send,
    Tick,
    Topic,
)
from leasehold.replication.master.attempts import GROWN_MAX
from leasehold.replication.master.backfill_pacing import BackfillSettings
from leasehold.replication.master.batch_limits import BatchSettings
from leasehold.replication.master.queue_topics import Found
from leasehold.replication.master.settings import MasterSettings
from leasehold.replication.node import Node
from leasehold.replication.node_settings import NodeSettings
from leasehold.replication.outcomes import OutcomeSettings
from tests.support.memory_store.store import MemoryStore

CODEC = MessagePackCodec()


WALL_MS = 1_700_000_000_000


DISK_RESERVE_BYTES = 100 << 20
TABLE = "create table t (id bigint primary key, a integer, b text)"


class World:
    """One candidate and one follower; `pump` hands the log to both."""

    def __init__(
        self,
        batch: BatchSettings | None = None,
        outcomes: OutcomeSettings | None = None,
        backfill: BackfillSettings | None = None,
        spans: SpanSink = NO_SPANS,
    ) -> None:
        self.spans = spans
        self.ms = 1_000
        self.wall_off_ms = 0
        self.worked_ns = 0
        """By which nodes measure how long deciding takes."""
        self.log: list[bytes] = []
        self.offset = itertools.count()
        self.sent: list[Send] = []
        self.effects: list[Effect] = []
        self.lost = False
        self.queues_answer = True
        settings = MasterSettings(
            batch=batch or BatchSettings(),
            outcomes=outcomes or OutcomeSettings(),
            backfill=backfill or BackfillSettings(),
        )
        self.master_settings = settings
        self.node = self.make("m1", candidate=True)
        self.follower = self.make("r1", candidate=False)
        self.tick()
        self.pump()
        assert self.node.master is not None, self.node.role
        attempts = self.node.master.attempts  # as of a master that has decided for long
        attempts._alone.clear()
        attempts._most = GROWN_MAX

    def make(self, name: str, *, candidate: bool) -> Node:
        settings = NodeSettings(
            name,
            candidate=candidate,
            serving=False,
            release="0.9",
            disk_reserve_bytes=DISK_RESERVE_BYTES,
            master=self.master_settings,
        )
        incarnation = f"{name}-{self.ms}".encode()
        return Node(
            settings,
            MemoryStore(),
            CODEC,
            incarnation,
            itertools.count(1),
            self.now(),
            clock_ns=lambda: self.worked_ns,
            spans=self.spans,
        )

    def now(self) -> Now:
        return Now(self.ms * 1_000_000, (WALL_MS + self.ms + self.wall_off_ms) * 1_000)

    def perform(self, effects: list[Effect]) -> None:
        self.effects += effects
        for effect in effects:
            if isinstance(effect, Append) and not self.lost:
                self.log.append(effect.data)
            elif isinstance(effect, AskLogEnd):
                self.perform(self.node.step(LogEnd(len(self.log)), self.now()))
            elif isinstance(effect, AskQueue) and self.queues_answer:
                decided = self.node.position.decided_through.get(effect.queue, 0)
                self.found(effect.queue, end=decided)
            elif isinstance(effect, Send):
                self.sent.append(effect)

    def found(self, queue: Queue, *, topic_id: str = "first", first: int = 0, end: int = 0) -> None:
        """Kafka says which topic a queue is."""
        found = Found(f"demo.{queue.value}", topic_id, first, end)
        self.perform(self.node.step(QueueFound(queue, found), self.now()))

    def tick(self) -> None:
        self.ms += 1
        self.perform(self.node.step(Tick(), self.now()))

    def pump(self) -> None:
        while self.node.position.offset < len(self.log):
            offset = self.node.position.offset
            self.perform(self.node.step(self.read(offset), self.now()))
            if self.node.position.offset == offset:
                break  # it waits for the master's store
        while self.follower.position.offset < len(self.log):
            self.follower.step(self.read(self.follower.position.offset), self.now())
        self.follower.step(Tick(), self.now())

    def read(self, offset: int) -> LogRead:
        data = self.log[offset]
        return LogRead(offset, CODEC.decode_log(data), CODEC.digest(data))

    def fresh_id(self) -> bytes:
        return request_id(WALL_MS + self.ms, next(self.randoms))

    def random_bytes(self) -> bytes:
        return next(self.randoms)

    randoms = (n.to_bytes(10, "big") for n in itertools.count(1))

    def put(
        self, request: Mapping[str, Any], number: bytes | None = None, content_type: str = JSON
    ) -> bytes:
        """Queue a request at the master; → its id."""
        number = number or self.fresh_id()
        body = {"id": format_request_id(number), "reply_to": 1, **request}
        self.raw(json.dumps(body).encode(), content_type)
        return number

    def raw(self, body: bytes, content_type: str = JSON) -> None:
        queue = QueueRead(Queue.REQUESTS, next(self.offset), content_type, body)
        self.perform(self.node.step(queue, self.now()))

    def ask(self, request: Mapping[str, Any], number: bytes | None = None) -> Outcome:
        """Put a request, let it be decided, → its outcome as the requester gets it."""
        number = self.put(request, number)
        for _ in range(2):  # a new master says first that it is about to
            self.tick()
            self.pump()
            self.tick()
            if self.answers(number):
                break
        return self.answers(number)[-1]

    def answers(self, number: bytes) -> list[Outcome]:
        return [
            result.outcome
            for send in self.sent
            if send.topic == Topic.RESULTS
            for result in send.record.results
            if result.request_id == number
        ]

    def decided(self) -> list[Decisions]:
        records = [CODEC.decode_log(data) for data in self.log]
        return [record for record in records if isinstance(record, Decisions)]

    def commits(self) -> list[Commit]:
        return [commit for record in self.decided() for commit in record.commits]

    def row(self, node: Node, key: int) -> dict[int, Any] | None:
        found = node._store.row(node.catalog.newest(1), (key,))
        return None if found is None else dict(found.values)


def insert(key: int, **values: Any) -> dict[str, Any]:
    return {"table": "t", "op": "insert", "key": {"id": key}, "values": values}


def update(key: int, expect: int | dict[str, int] | None = None, **values: Any) -> dict[str, Any]:
    made = {"table": "t", "op": "update", "key": {"id": key}, "values": values}
    return made if expect is None else {**made, "expect": expect}


def taken_over(world: World) -> Node:
    """Another node becomes master by what the log says; nobody tells it which topics the queues
    are."""
    heir = world.make("m2", candidate=True)
    for offset in range(len(world.log)):
        heir.step(world.read(offset), world.now())
    world.node = heir
    world.queues_answer = False
    world.ms += 10_000
    world.tick()
    world.pump()
    return heir
