"""Random and mutated records for the readers that are no part of a database in one process: agents,
subscribers, producers, watchers, Spark's decoders, tools for people, and the examples.

Method: what each does with a record between its client of Kafka or Redis and its users, called with
good records spoiled. Whatever it raises its caller catches; then the good ones are taken.
"""

from __future__ import annotations

import json
import random
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pytest

from leasehold.adapters.audit.lines import decode_line, encode_line
from leasehold.adapters.codec.records import MessagePackCodec, restore_row_key, row_key
from leasehold.adapters.kafka.reader import Record
from leasehold.adapters.kafka.request_transport import term_of
from leasehold.adapters.kafka.row_stream import take_rows
from leasehold.adapters.kafka.whole_topic import read_events
from leasehold.adapters.redis.log import FORM as LOG_FORM
from leasehold.adapters.redis.log import _record
from leasehold.adapters.redis.requests import pack_requests, read_requests
from leasehold.admin.audit_trail import AuditFilter
from leasehold.admin.dead_letters import letter_report, readable_request
from leasehold.admin.fold import fold
from leasehold.admin.kafka_events import shown_event
from leasehold.admin.report import report
from leasehold.admin.version_history import event_at, history_of
from leasehold.admin.view import ClusterView
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Check, Column, Index
from leasehold.changefeed.read_back import read_jobs, read_position
from leasehold.client.agent import Agent
from leasehold.client.subscriber import Subscriber
from leasehold.events.public_schema import encode_event
from leasehold.events.rows import RowEvent
from leasehold.in_process.ledger import MemoryLedger
from leasehold.lease.commands import Command, MarkReady, RegisterEpoch, Seed, SeedTables
from leasehold.lease.replies import Reply
from leasehold.model.audit import Audited, AuditEvent
from leasehold.model.errors import LeaseholdError, LogStopped, MalformedRequest, Refused
from leasehold.model.ids import request_id
from leasehold.model.records.events import RowImage, VersionEvent
from leasehold.model.records.requests import Conflict, DeadLetter, ResultBatch
from leasehold.model.signatures import NO_KEYS
from leasehold.pipeline.chunks import Chunker, chunk_template
from leasehold.pipeline.facts import FactExtractor, FactSource, make_findings, select_newest
from leasehold.pipeline.retry_state import NextAttempts, arrived_of, pack, step, unpack
from leasehold.settings.client import ClientSettings
from leasehold.settings.environment import ClusterSettings
from leasehold.values.types import Type
from services.examples.decoding import RowRecord, VersionBook, WaitingRows
from spark_streaming.jobs_reader import JobsReader
from spark_streaming.log_users import LogUsers
from tests.isolation.fuzz.fuzzing import SEED, listening
from tests.isolation.fuzz.rogue_records import KEYS, good_records
from tests.isolation.fuzz.spoiling import json_spoiled, spoiled
from tests.support.schema_change.made_job import index_job

CODEC: Final = MessagePackCodec()
RECORDS: Final = 1_000
RECORDS_LONG: Final = 100_000
NOW_US: Final = 1_700_000_000_000_000
SOON_S: Final = 20.0
TABLE: Final = Descriptor(
    1,
    "flights",
    1,
    (
        Column(1, "id", Type("integer"), nullable=False),
        Column(2, "gate", Type("text")),
        Column(3, "n", Type("numeric", None, 5, 2)),
    ),
    (1,),
    indexes=(Index(4, "by_gate", (2,), unique=True),),
    checks=(Check(5, "positive", "n > 0", (3,)),),
)
IMAGE: Final = RowImage(1, (7,), {0: 9}, 5, 1, 6, {1: 7, 2: "B4"})
SIDES: Final = tuple(FactSource(element, False, 1) for element in (4, 5, 2))
ROWS: Final = "db.rows.1"


def event_of(descriptor: Descriptor, version: int = 1) -> bytes:
    wire = {**descriptor.to_wire(), "version": version}
    return encode_event(VersionEvent(1, "flights", version, 9, 9, wire, 0, ""))


GOOD: Final[tuple[bytes, ...]] = (
    *good_records(1, 1, 3),
    event_of(TABLE),
    event_of(TABLE, 2),
    CODEC.encode(VersionEvent(1, "flights", 2, 9, 9, TABLE.to_wire(), 0, "")),
    CODEC.encode(IMAGE),
    CODEC.encode(
        Conflict(request_id(1, bytes(10)), 1, 3, "t", "application/json", b"{}", IMAGE, "")
    ),
    encode_line(AuditEvent(Audited.LOG_IN), "r1", NOW_US),
    b'{"time": "0001-01-01T00:00:00+23:59", "kind": ["x"], "user": {}, "outcome": 5}',
    pack_requests(b"a" * 16, 1, 2, [("application/json", b"{}")]),
    LOG_FORM + bytes(8) + CODEC.encode(IMAGE),
)


def any_record(chance: random.Random) -> tuple[bytes, bytes]:
    """Key and value."""
    data = chance.choice(GOOD)
    for _ in range(chance.choice((0, 1, 1, 1, 2))):
        data = (json_spoiled if data[:1] == b"{" and chance.random() < 0.7 else spoiled)(
            chance, data
        )
    return chance.choice(KEYS), data


def record_of(key: bytes, value: bytes | None, offset: int = 0) -> Record:
    headers = (("term", value), ("content-type", value))
    return Record(ROWS, 0, offset, key, value, headers)


# ---------------------------------------------------------------- readers without a state


def _redis(_key: bytes, data: bytes) -> None:
    _record(data)
    read_requests(data)


def _results(key: bytes, data: bytes) -> None:
    with suppress(MalformedRequest):
        CODEC.decode_as(ResultBatch, data)
    record = record_of(key, data)
    term_of(record)
    assert isinstance(record.content_type, str)


def _audit(_key: bytes, data: bytes) -> None:
    event = decode_line(data)
    if event is not None:
        for wanted in (AuditFilter(frozenset(("login",))), AuditFilter(who="x", since_us=1)):
            wanted.takes(event)
        AuditFilter(subject="x", refused=True, node="n", since_us=1).takes(event)
        AuditFilter(since_us=1).takes(event)


def _dead_letters(_key: bytes, data: bytes) -> None:
    for letter in (_decoded_letter(data), _letter_of(data)):
        if letter is not None:
            told = letter_report(3, letter)
            json.dumps(told, default=str)
            readable_request(letter)


def _decoded_letter(data: bytes) -> DeadLetter | None:
    try:
        return CODEC.decode_as(DeadLetter, data)
    except MalformedRequest:
        return None


def _letter_of(data: bytes) -> DeadLetter:
    kind = "application/json" if data[:1] == b"{" else "application/msgpack"
    return DeadLetter(b"", 1, "40001", "", {}, 1, "requests", 1, kind, data)


def _retries(_key: bytes, data: bytes) -> None:
    try:
        arrived = arrived_of(CODEC, data)
    except MalformedRequest:
        return
    left, ready, _ = step(unpack(pack(())), [arrived], NOW_US // 1_000, 10_000_000)
    unpack(pack(left))
    attempts = NextAttempts(CODEC, NO_KEYS, "db")
    for waiting in ready:
        with suppress(Refused):
            attempts.encode(waiting)
        with suppress(Refused):
            attempts.give_up_unread(waiting, "so")


def _chunks(key: bytes, data: bytes) -> None:
    for columns in ((), (2,), (2, 3)):
        chunker = Chunker(chunk_template(index_job(1, 1)), columns, 10)
        good = row_key((7,)), CODEC.encode(IMAGE)
        found = [
            *chunker.take([key, good[0], key + b"x"], [data, good[1], None]),
            *chunker.rest(),
        ]
        keys = [tuple(each) for chunk in found for each in chunk.keys]
        for chunk in found:
            CODEC.encode(chunk)
        assert (7,) in keys or key == row_key(())


def _facts(key: bytes, data: bytes) -> None:
    extractor = FactExtractor(TABLE, SIDES, 1)
    facts = select_newest(extractor.extract(key, 0, 5, data))
    make_findings(index_job(1, 1), 1, 1, [(fact.element_id, fact.row) for fact in facts.values()])


def _examples(key: bytes, data: bytes) -> None:
    book = VersionBook()
    book.learn(data)
    book.learn(event_of(TABLE))
    rows = WaitingRows(book, 1)
    told = rows.take(RowRecord(key, data), RowRecord(row_key((7,)), CODEC.encode(IMAGE)))
    if not rows:  # else it waits for a version, as it would of any other table
        assert told[-1]["row"]["gate"] == "B4"
    with suppress(MalformedRequest):
        restore_row_key(key)


def _changefeed(key: bytes, data: bytes) -> None:
    with suppress(LogStopped):
        read_position([record_of(key, data), record_of(b"position", data)])
    read_jobs(lambda: [record_of(key, data), record_of(b"job/1", data)])


def _history(_key: bytes, data: bytes) -> None:
    with suppress(LeaseholdError):
        events = read_events([data, event_of(TABLE)])
        history_of(events, "flights")
        event_at(events, "flights", 9)


READERS: Final[dict[str, Callable[[bytes, bytes], None]]] = {
    "channels of Redis": _redis,
    "a producer's results": _results,
    "audit log": _audit,
    "dead letters": _dead_letters,
    "Spark's retry": _retries,
    "Spark's backfill": _chunks,
    "Spark's validation": _facts,
    "the examples": _examples,
    "a changefeed that starts": _changefeed,
    "the history of versions": _history,
}


def read_many(read: Callable[[bytes, bytes], None], name: str, records: int) -> None:
    print(f"{name}: SEED={SEED}, {records} records")
    chance = random.Random(f"{SEED}/{name}")
    with listening() as told:
        for _ in range(records):
            key, data = any_record(chance)
            try:
                read(key, data)
            except Exception as error:
                raise AssertionError(f"SEED={SEED}: {error!r:.300}: {key!r}, {data!r}") from error
    assert not told.defects, told.defects


@pytest.mark.parametrize("name", READERS)
def test_a_reader_takes_any_record(name: str) -> None:
    read_many(READERS[name], name, RECORDS)


@pytest.mark.long("a minute for all readers, the same a hundred times as often")
@pytest.mark.parametrize("name", READERS)
def test_a_reader_takes_100_000_records(name: str) -> None:
    read_many(READERS[name], name, RECORDS_LONG)


# ---------------------------------------------------------------- readers with a state


class Jobs(JobsReader):
    """Spark's reader of the topic of jobs, without its client of Kafka."""

    def __init__(self) -> None:
        self.jobs = {}
        self.users = LogUsers()
        self._codec = CODEC


def test_sparks_reader_of_jobs_takes_any_record() -> None:
    chance, reader = random.Random(f"{SEED}/jobs"), Jobs()
    print(f"SEED={SEED}")
    job = index_job(77, 1)
    for _ in range(RECORDS):
        key, data = any_record(chance)
        reader._take(key, None if chance.random() < 0.1 else data)
        reader._take(b"job/1", data)
    record = CODEC.encode(good_event(job))
    assert reader._take(b"job/77", record)
    assert reader.jobs[77].sql == job.sql


def good_event(job: Any) -> Any:
    from leasehold.model.records.jobs import JobEvent

    return JobEvent(job.job_id, 9, 9, job.to_wire())


def test_a_watchers_view_takes_any_record() -> None:
    """What it shows of the others is shown, and what it can't show it leaves out."""
    chance = random.Random(f"{SEED}/view")
    print(f"SEED={SEED}")
    view = ClusterView()
    for number in range(RECORDS):
        _, data = any_record(chance)
        event = shown_event(CODEC, data, chance.random() < 0.5)
        if event is not None:
            with suppress(Exception):  # as ClusterWatch does, which says so
                view = fold(view, event, NOW_US + number)
        if number % 20 == 0:
            json.dumps(report(view, NOW_US + number), default=str)
    event = shown_event(CODEC, event_of(TABLE, 2**31 - 1), True)
    view = fold(view, event, NOW_US)
    assert view.tables[1].descriptor.name == "flights"


class Stream:
    """Version events, as a stream on Kafka gives them out: what it can't decode it leaves out."""

    def __init__(self) -> None:
        self._given: deque[VersionEvent] = deque()
        self._something = threading.Condition()

    def put(self, data: bytes) -> None:
        with suppress(MalformedRequest), self._something:
            self._given.append(CODEC.decode_as(VersionEvent, data))
            self._something.notify_all()

    def put_of_another(self, data: bytes, table_id: int) -> None:
        """Under no name and no number of the table that is followed: who says that another table
        has taken them is believed."""
        with suppress(MalformedRequest):
            event = CODEC.decode_as(VersionEvent, data)
            body = event.body
            if isinstance(body, dict):
                body = {**body, "name": "other", "alias": ""}
            with self._something:
                self._given.append(event._replace(table_id=table_id, name="other", body=body))
                self._something.notify_all()

    def events(self, timeout_s: float) -> list[VersionEvent]:
        with self._something:
            self._something.wait_for(lambda: bool(self._given), timeout_s)
            found = list(self._given)
            self._given.clear()
            self._something.notify_all()
            return found

    def wait_read(self) -> None:
        with self._something:
            assert self._something.wait_for(lambda: not self._given, SOON_S), "its reader has ended"

    def acknowledge(self, agent: str, record: Any) -> None: ...

    def rewind(self) -> None: ...

    def close(self) -> None: ...


class Rows:
    """Rows, as a stream on Kafka gives them out."""

    def __init__(self) -> None:
        self.records: deque[Record] = deque()

    def follow(self, table_id: int) -> None: ...

    def rows(self, timeout_s: float, rows_max: int) -> list[Any]:
        return take_rows(self.records, {ROWS: 1})

    def close(self) -> None: ...


class Ledger:
    def __init__(self) -> None:
        self.inner, self._lock = MemoryLedger(), threading.Lock()
        self.call(RegisterEpoch(1))
        self.call(SeedTables(1, self.inner.run_id, (Seed(1, 1, 1),)))
        self.call(MarkReady(1, self.inner.run_id))

    def call(self, command: Command) -> Reply:
        with self._lock:
            return self.inner.call(command)

    def close(self) -> None: ...


@contextmanager
def subscribed() -> Iterator[tuple[Stream, Rows, Subscriber]]:
    stream, rows = Stream(), Rows()
    settings = ClientSettings(cluster=ClusterSettings(node="one"))
    with (
        Agent(settings, ledger=Ledger(), source=stream) as agent,
        Subscriber(agent, ["flights"], row_source=rows) as news,
    ):
        yield stream, rows, news


def test_a_subscriber_takes_any_record_and_loses_no_row() -> None:
    """Of other tables events come, too, with any body; of its own those that are events."""
    chance = random.Random(f"{SEED}/subscriber")
    print(f"SEED={SEED}")
    with subscribed() as (stream, rows, news):
        stream.put(event_of(TABLE))
        keys = []
        for number in range(RECORDS):
            key, data = any_record(chance)
            stream.put_of_another(data, chance.randrange(2, 9))
            rows.records.append(record_of(key, data, number))
            rows.records.append(record_of(row_key((number,)), CODEC.encode(IMAGE), number))
            keys.append(number)
        stream.wait_read()
        found: set[int] = set()
        raised = 0
        for _ in range(50 * RECORDS):
            try:
                found |= {e.key["id"] for e in news.poll(0.01) if isinstance(e, RowEvent)}
            except MalformedRequest:
                raised += 1
            if not rows.records and not news.waits_for_lease:
                break
        assert raised
        assert set(keys) <= found


def test_records_that_are_none_leave_a_decoder_of_each_class_in_a_sentence(tmp_path: Path) -> None:
    """Restored records have the types that their readers rely on, by whichever way they came."""
    chance = random.Random(f"{SEED}/types")
    for _ in range(RECORDS):
        _, data = any_record(chance)
        with suppress(MalformedRequest):
            event = CODEC.decode_as(VersionEvent, data)
            assert type(event.table_id) is type(event.version) is int
            assert type(event.name) is str
