"""What the master takes into a record, rows of a backfill above all, and when it waits."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Missing
from leasehold.catalog.job import Job, Phase, Status, Step
from leasehold.catalog.states import State
from leasehold.model.errors import TooComplex
from leasehold.model.keys import IntKeys
from leasehold.model.records.acks import Ack
from leasehold.model.records.jobs import Chunk, ChunksEnd
from leasehold.model.records.log import ChunkDecided, Decisions
from leasehold.model.records.requests import Queue
from leasehold.replication.effects import AckRead, QueueRead, Wake
from leasehold.replication.master.backfill import IMAGE_COST
from leasehold.replication.master.backfill_pacing import BackfillSettings
from leasehold.replication.master.settings import MasterSettings
from tests.support.replication.world import CODEC, World, insert, update

ROWS = 20
COLUMN = 3  # b text, which no row has
CHUNK = Chunk(1, 1, 1, 1, COLUMN, IntKeys(range(ROWS)))
JOB = Job(
    job_id=1,
    sql="",
    table_id=1,
    table="t",
    request_id=b"",
    kind="add column",
    subject="column b",
    steps=(Step((), backfills=(COLUMN,)),),
    point=1,
    phase=Phase.BACKFILLING,
    versions={1: 1},
    run=1,
)


SETTINGS = BackfillSettings(
    rows_max=8 * IMAGE_COST,
    behind_max=2,
    rows_beside_max=3 * IMAGE_COST,
    rows_beside_min=3 * IMAGE_COST,
    rest_percent=1_000,  # a round takes but a few milliseconds here
    look_rounds=0,
)
REST_MS_MAX = SETTINGS.round_ms * 10


def put_in_place(catalog: Catalog, newest: Descriptor) -> None:
    """Have it as if the newest version had been published so."""
    kept = catalog._versions[newest.table_id]
    catalog._versions[newest.table_id] = {**kept, newest.version: newest}
    catalog._newest[newest.table_id] = newest


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> World:
    """A table of 20 rows, and a master that takes the chunks of job 1."""
    world = World(backfill=SETTINGS)
    world.ask({"sql": "create table t (id bigint primary key, a integer, b text)"})
    for key in range(ROWS):
        world.ask(insert(key, a=key))
    for node in (world.node, world.follower):
        node.catalog.jobs[1] = JOB
    assert world.node.master is not None
    monkeypatch.setattr(world.node.master.changes, "accepts", lambda _: True)
    monkeypatch.setattr(world.node.master.changes, "accepts_end", lambda _: True)
    world.ms += 10_000  # the users who put the rows have gone
    return world


def backfill(world: World, *messages: Chunk | ChunksEnd) -> None:
    for message, offset in zip(messages, itertools.count(), strict=False):
        event = QueueRead(Queue.BACKFILL, offset, "", CODEC.encode(message))
        world.perform(world.node.step(event, world.now()))


def filled(world: World) -> list[int]:
    """Rows of each decided part of a chunk."""
    return [
        write.rows
        for commit in world.commits()
        for write in commit.catalog
        if isinstance(write, ChunkDecided) and not write.end
    ]


def turn(world: World) -> None:
    world.tick()
    world.pump()


def test_alone_a_backfill_takes_large_parts(queue: World) -> None:
    backfill(queue, CHUNK, ChunksEnd(1, 1, ROWS, 1))
    for _ in range(5):
        turn(queue)
    assert filled(queue) == [8, 8, 4]
    through = [record.decided_through.get(Queue.BACKFILL, 0) for record in queue.decided()]
    assert max(through) == 2


def test_a_job_fails_for_what_was_found_though_its_run_ends_before_there_is_room(
    queue: World,
) -> None:
    """Where a chunk was refused and the reason did not fit that record: nothing tells it later."""
    assert queue.node.master is not None
    queue.node.master.changes.fail_soon(1, TooComplex("no master survives"), queue.now())
    backfill(queue, CHUNK._replace(keys=IntKeys(range(3))), ChunksEnd(1, 1, 3, 1))
    for _ in range(5):
        turn(queue)
    for node in (queue.node, queue.follower):
        job = node.catalog.jobs[1]
        failed = (job.error, job.code, job.status)
        assert failed == ("no master survives", "54001", Status.ROLLING_BACK)


def test_a_column_filled_by_key_is_keys_in_the_log_and_a_value_in_every_store(queue: World) -> None:
    for node in (queue.node, queue.follower):
        told = node.catalog.newest(1)
        column = replace(told.by_id[COLUMN], default="x", missing=Missing(1, "x"))
        column = replace(column, state=State.WRITE_ONLY)
        put_in_place(node.catalog, replace(told, columns=(*told.columns[:2], column)))
    before = queue.row(queue.node, 7)
    assert before is not None
    genids = queue.node._store.row(queue.node.catalog.newest(1), (7,))
    backfill(queue, CHUNK, ChunksEnd(1, 1, ROWS, 1))
    turn(queue)
    (commit,) = [commit for commit in queue.commits() if commit.backfills]
    assert filled(queue) == [ROWS], "a row costs what an entry does"
    assert commit.changes == ()
    assert commit.backfills[0].keys == tuple((key,) for key in range(ROWS))
    for node in (queue.node, queue.follower):
        assert queue.row(node, 7) == {**before, COLUMN: "x"}
    after = queue.node._store.row(queue.node.catalog.newest(1), (7,))
    assert after is not None
    assert genids is not None
    assert (after.genids, after.lsn) == (genids.genids, genids.lsn)


def test_a_column_filled_by_image_is_one_entry_of_the_log_and_no_write_of_a_row(
    queue: World,
) -> None:
    """Genids and LSN stay in every store: nobody who has read the row meets a verify error."""
    for node in (queue.node, queue.follower):
        told = node.catalog.newest(1)
        column = replace(told.by_id[COLUMN], default="x", state=State.WRITE_ONLY)
        put_in_place(node.catalog, replace(told, columns=(*told.columns[:2], column)))
    newest = queue.node.catalog.newest(1)
    before = queue.node._store.row(newest, (7,))
    assert before is not None
    backfill(queue, CHUNK, CHUNK, ChunksEnd(1, 1, ROWS, 1))
    for _ in range(8):
        turn(queue)
    commits = [commit for commit in queue.commits() if commit.backfills]
    assert sum(filled(queue)) == 2 * ROWS
    assert [key for commit in commits for key in commit.backfills[0].keys] == [
        (key,) for key in range(ROWS)
    ], "each once: the second chunk finds the pairs there"
    assert not any(commit.changes for commit in commits)
    for commit in commits:
        (put,) = commit.backfills
        assert [image[COLUMN] for image in put.images] == ["x"] * len(put.keys)
    for node in (queue.node, queue.follower):
        after = node._store.row(newest, (7,))
        assert after == before._replace(values={**before.values, COLUMN: "x"})


def test_beside_users_it_takes_small_ones_until_they_have_gone(queue: World) -> None:
    backfill(queue, CHUNK)
    queue.put(update(1, a=7))
    turn(queue)
    turn(queue)
    assert filled(queue) == [3]
    rest(queue)
    assert filled(queue) == [3, 3]
    queue.ms += 2_000
    turn(queue)
    assert filled(queue) == [3, 3, 8]


def ack(world: World, offset: int, *, ask: bool = False) -> None:
    """From a coherent replicant r9."""
    asked = world.now().mono_ns if ask else 0
    record = Ack("r9", b"r9", "replicant", offset, 1, 0, asked, False, "", 0)
    world.perform(world.node.step(AckRead(record), world.now()))


def make_coherent(world: World) -> int:
    """→ the log's end behind its grant."""
    ack(world, len(world.log), ask=True)
    world.ms += 200
    turn(world)
    return len(world.log)


def test_none_while_a_coherent_node_is_behind(queue: World) -> None:
    """C1: what the node has not applied yet stands before the next user's answer."""
    stands = make_coherent(queue)
    backfill(queue, CHUNK)
    for _ in range(6):
        turn(queue)
    # It has not applied even its grant: two records later no more rows are taken …
    assert filled(queue) == [8, 8]
    number = queue.put(update(1, a=7))
    turn(queue)
    assert queue.row(queue.node, 1) == {1: 1, 2: 7}, "… while users are served"
    assert not queue.answers(number)
    ack(queue, stands)
    turn(queue)
    assert sum(filled(queue)) == 16
    ack(queue, len(queue.log))
    turn(queue)
    assert sum(filled(queue)) > 16


def test_beside_users_one_part_at_a_time_is_on_its_way(queue: World) -> None:
    """C1: the next part waits until every coherent node has the one before; users do not."""
    stands = make_coherent(queue)
    ack(queue, stands, ask=True)
    queue.put(update(1, a=7))
    backfill(queue, CHUNK)
    for value in range(3):
        turn(queue)
        queue.put(update(1, a=value))
    assert filled(queue) == [3]
    assert queue.row(queue.node, 1) == {1: 1, 2: 1}
    part = next(n for n, data in enumerate(queue.log) if filled_in(data))
    ack(queue, part)
    turn(queue)
    assert filled(queue) == [3], "it has applied what stands before that part"
    ack(queue, part + 1)
    turn(queue)
    assert filled(queue) == [3], "and it takes a rest first"
    rest(queue)
    assert filled(queue) == [3, 3]


def rest(world: World) -> None:
    """Turns only when the node wants to be waked, until the rest is over: rows are taken then, and
    not with the next heartbeat, which is 200 ms later."""
    before, end_ms = len(filled(world)), world.ms + REST_MS_MAX + 2
    while True:
        world.effects.clear()
        turn(world)
        if len(filled(world)) > before:
            return
        wake_ns = min(e.at_ns for e in world.effects if isinstance(e, Wake))
        world.ms = max(world.ms, wake_ns // 1_000_000 - 1)
        assert world.ms <= end_ms


def filled_in(data: bytes) -> bool:
    record = CODEC.decode_log(data)
    return isinstance(record, Decisions) and any(
        isinstance(write, ChunkDecided) for commit in record.commits for write in commit.catalog
    )


def test_requests_gather_while_a_coherent_node_is_behind(queue: World) -> None:
    ack(queue, make_coherent(queue))
    records = len(queue.log)
    for value in range(10):
        queue.put(update(1, a=value))
        turn(queue)
    assert len(queue.log) == records + MasterSettings().ahead_max + 1
    ack(queue, len(queue.log))
    turn(queue)
    assert len(queue.log) == records + MasterSettings().ahead_max + 2, "all of them in one record"
    assert queue.row(queue.node, 1) == {1: 1, 2: 9}


def test_a_silent_node_holds_nobody_up_for_long(queue: World) -> None:
    """C4: until its lease is surely over, and not longer than to the next heartbeat anyway."""
    make_coherent(queue)
    for value in range(10):
        queue.put(update(1, a=value))
        turn(queue)
    queue.ms += MasterSettings().heartbeat_ms
    turn(queue)
    assert queue.row(queue.node, 1) == {1: 1, 2: 9}
