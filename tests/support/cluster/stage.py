"""A stage for tests of clients: puts on a database's topics what its services would put there.

It decides nothing and keeps no rows. What a real master, changefeed and node write is tested with
those; here only their readers are looked at.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Any

from leasehold.adapters.codec.records import MessagePackCodec, row_key
from leasehold.adapters.kafka.leader_wait import ask_once_led
from leasehold.adapters.kafka.reader import TopicReader
from leasehold.adapters.kafka.writer import BY_KEY, TopicWriter
from leasehold.adapters.os.clock import boottime_ns, unix_us
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.catalog.states import State
from leasehold.events.public_schema import encode_event
from leasehold.model.records.acks import Ack
from leasehold.model.records.events import RowImage, VersionEvent
from leasehold.model.records.log import Decisions
from leasehold.model.records.requests import ChangeRequest, Outcome, Result, ResultBatch
from leasehold.model.topics import Topics
from leasehold.settings.environment import KafkaSettings
from leasehold.values.types import Type

CODEC = MessagePackCodec()
INCARNATION = b"stage-01"


def flights(version: int = 1, *more: Column) -> Descriptor:
    columns = (
        Column(1, "id", Type("integer"), nullable=False),
        Column(2, "origin", Type("text")),
        *more,
    )
    return Descriptor(1, "flights", version, columns, (1,), next_element_id=10)


GATE = Column(3, "gate", Type("varchar", 8), state=State.DELETE_ONLY)
PUBLIC_GATE = replace(GATE, state=State.PUBLIC)


def version_event(descriptor: Descriptor, lsn: int, job_id: int = 0) -> VersionEvent:
    return VersionEvent(
        descriptor.table_id,
        descriptor.name,
        descriptor.version,
        lsn,
        unix_us(),
        descriptor.to_wire(),
        job_id,
        "",
    )


def ack(node: str, *, role: str = "replicant", offset: int = 0, lsn: int = 0, **more: Any) -> Ack:
    fields: dict[str, Any] = {
        "incarnation": INCARNATION,
        "epoch": 1,
        "asked_ns": 0,
        "coherent": True,
        "serves": "",
        "sent_us": unix_us(),
        **more,
    }
    return Ack(node=node, role=role, offset=offset, lsn=lsn, **fields)


def decisions(sequence: int, first_lsn: int, **more: Any) -> Decisions:
    fields: dict[str, Any] = {
        "commits": (),
        "refusals": (),
        "decided_through": {"requests": 0, "backfill": 0},
        "answered_through": 0,
        "grants": (),
        **more,
    }
    return Decisions(1, INCARNATION, sequence, b"", first_lsn, **fields)


class Stage:
    """Writes records; `answering` puts a result for every request until the block ends."""

    def __init__(self, settings: KafkaSettings, topics: Topics) -> None:
        self.settings = settings
        self.topics = topics
        self._writer = TopicWriter(settings, "stage")

    def put(self, topic: str, record: Any, key: bytes | None = None, partition: int = 0) -> None:
        data = None if record is None else CODEC.encode(record)
        self._writer.send(topic, partition, key, data)

    def version(self, descriptor: Descriptor, lsn: int, job_id: int = 0) -> None:
        key = str(descriptor.table_id).encode()
        data = encode_event(version_event(descriptor, lsn, job_id))
        for topic in (self.topics.versions, self.topics.versions_history):
            self._writer.send(topic.name, 0, key, data)

    def row(self, descriptor: Descriptor, key: tuple[Any, ...], values: Any, lsn: int) -> None:
        image = None
        if values is not None:
            image = RowImage(
                descriptor.table_id, key, {0: lsn << 20}, lsn, descriptor.version, 1, values
            )
        self.put(self.topics.rows(descriptor.table_id).name, image, row_key(key), BY_KEY)

    def flush(self) -> None:
        assert self._writer.flush(10) == 0, "the broker took what was put"

    def answering(self, answer: Callable[[ChangeRequest, int], list[Outcome]]) -> Answering:
        return Answering(self, answer)

    def close(self) -> None:
        self._writer.close(5)


class Answering:
    """Reads requests in a thread and puts the outcomes that `answer(request, number)` gives."""

    def __init__(self, stage: Stage, answer: Callable[[ChangeRequest, int], list[Outcome]]) -> None:
        self._stage = stage
        self._answer = answer
        self._stopping = threading.Event()
        self._reader = TopicReader(stage.settings, "stage")
        self._thread = threading.Thread(target=self._run)
        self.requests: list[ChangeRequest] = []

    def _run(self) -> None:
        topics = self._stage.topics
        while not self._stopping.is_set():
            for record in self._reader.read(1_000, 0.05):
                assert record.value is not None
                request = CODEC.decode_request(record.content_type, record.value)
                self.requests.append(request)
                for outcome in self._answer(request, len(self.requests)):
                    result = ResultBatch((Result(request.id, record.offset, outcome),))
                    self._stage.put(topics.results.name, result, request.id, request.reply_to)

    def __enter__(self) -> Answering:
        requests = self._stage.topics.requests.name
        end = ask_once_led(lambda: self._reader.end_offset(requests, 0))
        self._reader.start(requests, 0, end)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        self._thread.join()
        self._reader.close()


def committed(lsn: int, attempt: int = 1) -> Outcome:
    return Outcome(attempt, lsn, 1, unix_us(), True)


def refused(code: str, *, attempt: int = 1, final: bool = True, dead: bool = False) -> Outcome:
    return Outcome(attempt, 0, 0, unix_us(), final, code, "as told", {}, dead)


def deadline_ns(seconds: float) -> int:
    return boottime_ns() + int(seconds * 1e9)
