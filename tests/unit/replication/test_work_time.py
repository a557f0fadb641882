"""How long a master's turn may take: what it decides is bounded by time and by operations, so that
heartbeats and grants go out between. Time is that of a clock which each piece of work moves."""

from __future__ import annotations

import json
from typing import Any

import pytest

from leasehold.model.ids import format_request_id
from leasehold.model.records.jobs import ChunksEnd
from leasehold.model.records.log import Decisions
from leasehold.model.records.requests import Queue
from leasehold.model.time_units import NS_PER_MS
from leasehold.replication.effects import AppendFailed, QueueRead
from leasehold.replication.master.attempts import BUSY_MS_MAX, Attempts
from leasehold.replication.master.backfill_queue import BACKFILL_MS_MAX
from leasehold.replication.master.batch import Batch
from leasehold.replication.master.batch_limits import OPERATIONS_MAX, BatchSettings
from leasehold.replication.master.chunk_decider import ChunkDecider
from leasehold.replication.master.large_request import WORK_MS_MAX
from leasehold.transaction.decide import decide
from tests.support.replication.world import TABLE, World, insert, update
from tests.unit.replication import test_backfill_queue
from tests.unit.replication.test_backfill_queue import CHUNK, ROWS, backfill, filled

SLOW_MS = 20
queue = test_backfill_queue.queue


def works(world: World, monkeypatch: pytest.MonkeyPatch, method: str, each_ms: int) -> None:
    real = getattr(Batch, method)

    def working(*arguments: Any) -> Any:
        world.worked_ns += each_ms * NS_PER_MS
        return real(*arguments)

    monkeypatch.setattr(Batch, method, working)


def turns(world: World, count: int) -> None:
    for _ in range(count):
        world.tick()
        world.pump()


def sizes(records: list[Decisions]) -> list[int]:
    decided = (len(record.commits) + len(record.refusals) for record in records)
    return [count for count in decided if count]


def request_at(world: World, offset: int) -> QueueRead:
    body = {"id": format_request_id(world.fresh_id()), "reply_to": 1, **update(1, a=1)}
    return QueueRead(Queue.REQUESTS, offset, "application/json", json.dumps(body).encode())


@pytest.mark.parametrize("refused", [False, True])
def test_a_batch_is_closed_when_a_moment_is_over(
    monkeypatch: pytest.MonkeyPatch, refused: bool
) -> None:
    """Refusals count: they take no bytes of the record."""
    world = World()
    world.ask({"sql": TABLE})
    works(world, monkeypatch, "decide", SLOW_MS)
    request = {**insert(1), "on_conflict": "fail"}
    asked = [world.put(request if refused else insert(n)) for n in range(10)]
    turns(world, 6)
    in_turn = -(-WORK_MS_MAX // SLOW_MS)
    assert sizes(world.decided())[1:] == [in_turn] * 3 + [1]
    codes = [world.answers(number)[0].code for number in asked]
    assert codes == (["", *["23505"] * 9] if refused else [""] * 10)


def test_a_batch_is_closed_by_operations_where_the_clock_stands_still() -> None:
    """Requests of nearly as many operations as a large one's, all refused at their end."""
    size = 1_500
    world = World()
    world.ask({"sql": TABLE})
    world.ask(insert(0))
    rows = [insert(n) for n in range(size - 1, -1, -1)]
    for _ in range(7):
        world.put({"transaction": rows, "on_conflict": "fail"})
    turns(world, 5)
    assert sizes(world.decided())[2:] == [-(-OPERATIONS_MAX // size)] * 2 + [1]


def test_the_slices_of_a_large_request_end_when_a_moment_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However few operations were verified by then."""
    world = World(BatchSettings(large_operations=100))
    world.ask({"sql": TABLE})

    def working(*arguments: Any, **named: Any) -> Any:
        world.worked_ns += 10 * NS_PER_MS
        return decide(*arguments, **named)

    monkeypatch.setattr("leasehold.transaction.verify.decide", working)
    asked = world.put({"transaction": [insert(n) for n in range(500)]})
    before = world.worked_ns
    longest = 0
    while not world.answers(asked):
        world.tick()
        longest, before = max(longest, world.worked_ns - before), world.worked_ns
        world.pump()
    assert longest < BUSY_MS_MAX * NS_PER_MS + 60 * 10 * NS_PER_MS
    assert world.answers(asked)[0].lsn


def test_rows_of_a_backfill_are_taken_by_time(
    queue: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a row costs is measured, and it may cost much: fewer go into a record then."""
    real = ChunkDecider.decide

    def working(chunks: ChunkDecider, draft: Any, chunk: Any, done: int, rows_max: int) -> int:
        after = real(chunks, draft, chunk, done, rows_max)
        queue.worked_ns += (after - done) * 70 * NS_PER_MS
        return after

    monkeypatch.setattr(ChunkDecider, "decide", working)
    backfill(queue, CHUNK, ChunksEnd(1, 1, ROWS, 1))
    turns(queue, 20)
    parts = filled(queue)
    assert sum(parts) == ROWS
    assert parts[0] == 8, "as many as there may be: nothing is known yet"
    assert all(part * 70 <= BACKFILL_MS_MAX for part in parts[1:]), parts


def test_l10_a_busy_master_does_not_spare_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """One whose append fails after a moment takes back what it said of a request; one that was
    busy with it for as long as an election takes does not."""
    for each_ms, lost in ((1, 1), (5_000, 2)):
        world = World()
        world.ask({"sql": TABLE})
        with monkeypatch.context() as patched:
            assert world.node.master is not None
            fresh = Attempts(world.node.position)
            vars(world.node.master.attempts).update(vars(fresh))
            works(world, patched, "decide", each_ms)
            message = request_at(world, 1)
            world.perform(world.node.step(message, world.now()))
            turns(world, 1)
            world.lost = True
            world.tick()
            world.lost = False
            world.perform(world.node.step(AppendFailed("time-out"), world.now()))
            turns(world, 2)
            world.perform(world.node.step(message, world.now()))
            turns(world, 1)
            said = [a.lost for record in world.decided() for a in record.attempts]
            assert said == [1, lost]
