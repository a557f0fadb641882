"""What waits on a master and on a standby is bounded by bytes; what finds no room waits where it
stands."""

from __future__ import annotations

import json
import zlib
from typing import Any

import msgpack
import pytest

from leasehold.model.ids import format_request_id
from leasehold.model.records.log import Decisions, Disposition, Refusal
from leasehold.model.records.requests import Outcome, Queue
from leasehold.replication.effects import (
    PauseQueue,
    QueueRead,
    RequestsReceived,
    ResumeQueue,
    Sent,
)
from leasehold.replication.log.clock import Reading
from leasehold.replication.master.record_draft import Full, RecordDraft, Repeat
from leasehold.replication.unanswered import UnansweredRecords
from tests.support.replication.world import TABLE, World, insert

KB = 1_024
LIMIT = 64 * KB
REQUESTS = "application/json"


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    for place, name in (
        ("master.intake", "WAITING_BYTES_MAX"),
        ("master.intake", "PUBLISHED_WAITING_BYTES_MAX"),
        ("master.master", "ANSWERS_BYTES_MAX"),
        ("unanswered", "UNANSWERED_BYTES_MAX"),
        ("master.record_draft", "REPEATS_BYTES_MAX"),
    ):
        monkeypatch.setattr(f"leasehold.replication.{place}.{name}", LIMIT)


def body(world: World, key: int, size: int) -> bytes:
    fields = {"id": format_request_id(world.fresh_id()), "reply_to": 1}
    return json.dumps({**fields, **insert(key, b="x" * size)}).encode()


def turns(world: World, count: int) -> list[Any]:
    before = len(world.effects)
    for _ in range(count):
        world.tick()
        world.pump()
    return world.effects[before:]


def test_a_queue_pauses_by_bytes_and_goes_on_when_they_are_decided() -> None:
    world = World()
    world.ask({"sql": TABLE})
    before = len(world.effects)
    for key in range(12):
        world.raw(body(world, key, 8 * KB))
    paused = [e for e in world.effects[before:] if isinstance(e, PauseQueue)]
    assert paused == [PauseQueue(Queue.REQUESTS)], "once"
    assert ResumeQueue(Queue.REQUESTS) in turns(world, 10)
    assert world.row(world.node, 11) is not None


def test_the_backfill_queue_pauses_by_bytes() -> None:
    world = World()
    for offset in range(9):
        message = QueueRead(Queue.BACKFILL, offset, "", bytes(8 * KB))
        world.perform(world.node.step(message, world.now()))
    assert PauseQueue(Queue.BACKFILL) in world.effects
    assert ResumeQueue(Queue.BACKFILL) in turns(world, 10)


def test_what_is_published_and_finds_no_room_is_passed_over() -> None:
    """Its requester asks through Kafka."""
    world = World()
    world.ask({"sql": TABLE})
    for number in range(20):
        published = RequestsReceived(b"r", 1, number, ((REQUESTS, body(world, number, 8 * KB)),))
        world.perform(world.node.step(published, world.now()))
    turns(world, 10)
    there = [key for key in range(20) if world.row(world.node, key) is not None]
    assert there == list(range(8))


def test_nothing_is_decided_while_answers_wait_for_the_broker() -> None:
    """Each tells its request's key again, which is long; heartbeats go on."""
    world = World()
    world.ask({"sql": "create table t (id text primary key)"})
    row = {"table": "t", "op": "insert", "key": {"id": "k" * 20 * KB}, "values": {}}
    assert world.ask(row).lsn
    asked = [world.put({**row, "on_conflict": "fail"}) for _ in range(12)]
    master = world.node.master
    assert master is not None
    turns(world, 1)
    world.put(insert(1))
    for _ in range(30):
        turns(world, 1)
    decided = sum(bool(world.answers(number)) for number in asked)
    records = len(world.decided())
    world.ms += 1_000
    turns(world, 2)
    assert len(world.decided()) > records, "no heartbeat"
    assert master._release.answers.size > LIMIT
    waiting = len(master._queue)
    assert waiting > 0 or decided == len(asked)
    for _ in range(40):
        tokens = [send.token for send in world.sent if send.token]
        for token in tokens:
            world.perform(world.node.step(Sent(token), world.now()))
        turns(world, 1)
    assert len(master._queue) == 0
    assert master._release.answers.size <= LIMIT
    assert all(world.answers(number) for number in asked)


def refused(number: int, size: int) -> Decisions:
    refusal = Refusal(
        request_id=number.to_bytes(16, "big"),
        attempt=1,
        disposition=Disposition.CONFLICT,
        code="40001",
        message="",
        detail={},
        decided_us=1,
        reply_to=1,
        queue="requests",
        offset=number,
        content_type=REQUESTS,
        body=bytes(size),
        image=None,
    )
    return Decisions(1, b"", number, b"", 1, (), (refusal,), {}, 0, ())


def test_a_standby_keeps_the_answers_of_the_newest_records() -> None:
    unanswered = UnansweredRecords()
    for number in range(20):
        unanswered.remember(refused(number, 8 * KB), number)
    kept = unanswered.hand_over(0)
    assert [each.offset for each in kept] == list(range(13, 20))
    unanswered.remember(refused(30, 2 * LIMIT), 30)
    assert [each.offset for each in unanswered.hand_over(0)] == [30], "one in any case"


def test_repeats_of_long_answers_stand_in_several_records() -> None:
    world = World()
    draft = RecordDraft(world.node.position, Reading(1, 1, 0), 900_000, b"")
    outcome = Outcome(1, 0, 0, 1, True, "23505", "x" * 20 * KB)
    for number in range(3):
        draft.repeat(Repeat(bytes([number]) * 16, 1, outcome))
    with pytest.raises(Full):
        draft.repeat(Repeat(bytes(16), 1, outcome))
    assert len(draft.repeats) == 3


def test_one_packed_request_is_read_ahead_at_a_time() -> None:
    """It may have a hundred times its bytes when it is unpacked."""
    world = World()
    world.ask({"sql": TABLE})
    master = world.node.master
    assert master is not None
    for key in range(4):
        fields = {"id": world.fresh_id(), "reply_to": 1, **insert(key)}
        data = zlib.compress(msgpack.packb(fields))
        message = QueueRead(Queue.REQUESTS, next(world.offset), "application/msgpack+zlib", data)
        world.perform(world.node.step(message, world.now()))
    master._queue.read_ahead(10, lambda: False)
    assert len(master._queue._decoded) == 1
    turns(world, 6)
    assert world.row(world.node, 3) is not None
