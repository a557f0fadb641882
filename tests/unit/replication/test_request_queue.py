"""Requests that wait: decoded before their turn or in it, each says the same, in order."""

from __future__ import annotations

import itertools
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.model.errors import MalformedRequest, Refused
from leasehold.model.ids import format_request_id, request_id
from leasehold.model.records.requests import ChangeRequest, Queue
from leasehold.replication.effects import QueueRead
from leasehold.replication.master.batch_limits import BatchSettings
from leasehold.replication.master.request_queue import READ_AHEAD_BYTES_MAX, RequestQueue
from tests.support.replication.world import TABLE, WALL_MS, World, insert


class CountingCodec(MessagePackCodec):
    def __init__(self) -> None:
        self.decoded = 0

    def decode_request(self, content_type: str, data: bytes) -> ChangeRequest:
        self.decoded += 1
        return super().decode_request(content_type, data)


def id_of(number: int) -> bytes:
    return request_id(WALL_MS, number.to_bytes(10, "big"))


def never() -> bool:
    return False


def message(number: int, body: bytes | None = None) -> QueueRead:
    request = {"id": format_request_id(id_of(number)), **insert(number)}
    data = json.dumps(request).encode() if body is None else body
    return QueueRead(Queue.REQUESTS, number, "application/json", data)


def said(found: tuple[QueueRead, ChangeRequest | Refused]) -> tuple[int, Any]:
    read, what = found
    return read.offset, what.message if isinstance(what, Refused) else what.id


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("append"), st.booleans()),
            st.tuples(st.just("ahead"), st.integers(0, 4)),
            st.just(("pop", 0)),
        )
    )
)
def test_order_and_words_are_those_of_a_queue(steps: list[tuple[str, Any]]) -> None:
    codec = CountingCodec()
    waiting, plain, numbers = RequestQueue(codec), list[QueueRead](), itertools.count()
    for what, how in steps:
        if what == "append":
            read = message(next(numbers), b"no JSON" if how else None)
            waiting.append(read)
            plain.append(read)
        elif what == "ahead":
            waiting.read_ahead(how, never)
            assert not waiting.may_read_ahead(how)
        elif plain:
            alone = RequestQueue(MessagePackCodec())
            alone.append(plain.pop(0))
            assert said(waiting.first()) == said(waiting.first()) == said(alone.first())
            waiting.pop()
        assert len(waiting) == len(plain)
    assert codec.decoded <= next(numbers), "one was decoded twice"


def test_each_has_its_own_words() -> None:
    waiting = RequestQueue(MessagePackCodec())
    for number in range(3):
        waiting.append(message(number))
    waiting.read_ahead(3, never)
    for number in range(3):
        assert said(waiting.first()) == (number, id_of(number))
        waiting.pop()


def test_as_many_are_read_ahead_as_were_asked_for_and_as_their_bytes_allow() -> None:
    codec = CountingCodec()
    waiting = RequestQueue(codec)
    for number in range(9):
        waiting.append(message(number))
    waiting.read_ahead(4, never)
    assert codec.decoded == 4
    waiting.append(message(9, b" " * READ_AHEAD_BYTES_MAX))
    waiting.read_ahead(99, never)
    assert codec.decoded == 9, "the large one waits for its turn"
    for _ in range(9):
        waiting.pop()
    assert isinstance(waiting.first()[1], MalformedRequest)


def test_while_a_record_travels_the_next_ones_are_read_and_what_it_decided_is_put() -> None:
    world = World(BatchSettings(requests_max=2))
    world.ask({"sql": TABLE})
    master = world.node.master
    assert master is not None
    for number in range(6):
        world.put(insert(number))
    waits = []
    for _ in range(2):
        world.tick()
        assert master.in_flight
        waits.append((master._store.waits, master._queue.may_read_ahead(2)))
    assert waits == [(True, True), (False, False)]
    assert len(master._queue) == 4


def test_an_unreadable_request_that_has_to_wait_for_the_next_record_is_answered() -> None:
    """L8 ⚠: what its refusal has taken from the words, it must find there again."""
    world = World(BatchSettings(record_bytes_max=8_000, large_bytes_max=8_000))
    world.ask({"sql": TABLE})
    first = world.put(insert(1, b="x" * 4_500))
    bad = {"table": "t", "op": "no such", "note": "y" * 3_000}
    second = world.put(bad)
    for _ in range(4):
        world.tick()
        world.pump()
    assert world.answers(first)[0].lsn
    assert len(world.decided()) >= 3
    (answer,) = world.answers(second)
    assert answer.code == MalformedRequest.sqlstate
    assert not answer.lsn
