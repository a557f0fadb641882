"""Goal: the master cuts the ranges in which rows are copied under another key, from where the log
says that the last one ended; every node has the rows of each; Spark has no part in it; and it is
done only where everybody who reads the log knows it.

Method: a master and a follower by hand, with a table that changes its key put into their catalogs.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from leasehold.catalog.elements import ALL_ROWS, Index
from leasehold.catalog.job import Job, Phase, Status, Step
from leasehold.catalog.states import State
from leasehold.model.features import Feature
from leasehold.model.ids import INCARNATION_BYTES
from leasehold.model.ports import CopyRange
from leasehold.model.records.acks import Ack
from leasehold.model.records.jobs import Chunk, ChunksEnd
from leasehold.model.records.log import Backfill, DescriptorWrite, MinVersion
from leasehold.model.records.requests import Queue
from leasehold.model.time_units import NS_PER_MS
from leasehold.pipeline.schedule import wanted_run
from leasehold.replication.effects import AckRead, QueueRead
from leasehold.replication.master.backfill_pacing import BackfillSettings
from leasehold.replication.master.batch_limits import HEADER_BYTES, BatchSettings, CommitLimits
from leasehold.replication.master.row_copying import ROWS_FIRST, ROWS_LEAST, TURN_MS
from leasehold.replication.node import Node
from leasehold.transaction.mirror_table import genids_of, key_in
from tests.support.replication.world import CODEC, World, insert, update

MIRROR = 2
ROWS = 20
ID, A, B, KEY = 1, 2, 3, 9
JOB = Job(
    job_id=1,
    sql="",
    table_id=1,
    table="t",
    request_id=b"",
    kind="change primary key",
    subject="primary key (a)",
    steps=(Step((), backfills=(ALL_ROWS,)), Step(())),
    point=1,
    phase=Phase.BACKFILLING,
    versions={1: 2, MIRROR: 2},
    run=1,
    by_range=True,
)
FEW = BackfillSettings(rows_max=3)


def with_job(made: World, job: Job = JOB) -> World:
    made.ask({"sql": "create table t (id bigint primary key, a integer, b text)"})
    for key in range(ROWS):
        made.ask(insert(key, a=100 - key, b="x"))
    for node in (made.node, made.follower):
        give(node, job)
    return made


def give(node: Node, job: Job) -> None:
    told = node.catalog.newest(1)
    index = Index(KEY, "t_pkey1", (A,), state=State.WRITE_ONLY, unique_enforced=True)
    columns = tuple(replace(c, not_null_enforced=c.element_id == A) for c in told.columns)
    table = replace(told, version=2, columns=columns, indexes=(index,), mirror=MIRROR)
    follower = replace(
        told,
        version=2,
        table_id=MIRROR,
        primary_key=(A,),
        mirror=1,
        former=1,
        state=State.WRITE_ONLY,
    )
    for each in (table, follower):
        node.catalog.apply(DescriptorWrite(each.table_id, each.version, each.to_wire()), 0, 0)
        node.catalog.apply(MinVersion(each.table_id, each.version), 0, 0)
    contents = node._store._committed  # type: ignore[attr-defined]
    contents.entries |= {(1, KEY, (100 - key,), (key,)) for key in range(ROWS)}
    node.catalog.put_job(job)


def turn(world: World, times: int = 12) -> None:
    for _ in range(times):
        world.ms += 5_000  # whoever has put the rows has gone
        world.tick()
        world.pump()


def ranges(world: World) -> list[Backfill]:
    return [b for commit in world.commits() for b in commit.backfills if b.copied is not None]


def is_copied(node: Node) -> bool:
    table, follower = node.catalog.newest(1), node.catalog.newest(MIRROR)
    for key in range(ROWS):
        row = node._store.row(table, (key,))
        other = None if row is None else key_in(follower, row.values)
        if row is None or other is None:
            continue
        copied = node._store.row(follower, other)
        if copied is None or copied.values != row.values:
            return False
        if genids_of(follower, copied) != genids_of(follower, row):
            return False
    return True


@pytest.fixture
def world() -> World:
    return with_job(World(backfill=FEW))


def test_ranges_follow_each_other_to_the_end(world: World) -> None:
    turn(world)
    made = ranges(world)
    spans = [b.span for b in made if b.span is not None]
    assert [len(b.copied.rows) for b in made if b.copied] == [6, 6, 6, 2]
    assert [span.after for span in spans[1:]] == [span.through for span in spans[:-1]]
    assert (spans[0].after, spans[-1].through) == ((), ())
    for node in (world.node, world.follower):
        job = node.catalog.jobs[1]
        assert (job.chunks_ended, job.rows_read, job.rows_applied) == (True, ROWS, ROWS)
        assert is_copied(node)
        assert not node._store.ranges_waiting()
    turn(world)
    assert ranges(world) == made


def test_whoever_is_master_goes_on_where_the_log_says() -> None:
    world = with_job(World(backfill=FEW), replace(JOB, through=(90,)))
    turn(world)
    spans = [b.span for b in ranges(world)]
    assert [span.after for span in spans if span is not None] == [(90,), (96,)]
    assert not is_copied(world.follower)


def test_writes_between_ranges_are_in_both() -> None:
    world = with_job(World(backfill=FEW), replace(JOB, settings={"rows_per_second": 5}))
    while len(ranges(world)) < 2:
        world.ms += 100
        world.tick()
        world.pump()
    assert not world.ask(update(0, a=1)).code  # into a range that is copied
    assert not world.ask(update(19, a=500)).code  # out of one
    assert not world.ask(update(1, b="y")).code  # whose range is to come
    turn(world, 20)
    assert len(ranges(world)) == 5
    for node in (world.node, world.follower):
        assert is_copied(node)


def test_a_record_holds_what_it_has_room_for() -> None:
    batch = BatchSettings(record_bytes_max=2_600)
    world = with_job(World(batch=batch))
    turn(world, 20)
    assert len(ranges(world)) > 2
    assert is_copied(world.follower)


@pytest.mark.parametrize(
    ("in_a_turn", "learned"), [(150, 150), (10, ROWS_LEAST), (1_000_000, 2 * ROWS_FIRST)]
)
def test_a_range_takes_about_as_long_as_a_turn_may(in_a_turn: int, learned: int) -> None:
    """What a row costs is learned from the range before."""
    world = with_job(World())
    master = world.node.master
    assert master is not None
    copying = master._copying
    read = copying._read

    def slow(job: Job, rows: int) -> CopyRange:
        world.worked_ns += rows * TURN_MS * NS_PER_MS // in_a_turn
        return read(job, rows)

    copying._read = slow  # type: ignore[method-assign]
    turn(world, 1)
    assert copying._rows_in_time == learned


def test_a_row_that_no_record_has_room_for_ends_the_job() -> None:
    world = with_job(World(backfill=FEW))
    master = world.node.master
    assert master is not None
    small = BatchSettings(record_bytes_max=HEADER_BYTES + 10, large_bytes_max=20)
    master._settings = replace(master._settings, batch=small)
    master._copying._limits = CommitLimits(small, CODEC)
    turn(world)
    job = world.node.catalog.jobs[1]
    assert job.status is Status.ROLLING_BACK
    assert "bytes" in job.error


@pytest.mark.parametrize("status", [Status.PAUSED, Status.ROLLING_BACK])
def test_of_a_job_that_waits_nothing_is_copied(status: Status) -> None:
    world = with_job(World(backfill=FEW), replace(JOB, status=status))
    turn(world, 3)
    assert ranges(world) == []


def test_a_rate_is_kept(world: World) -> None:
    job = replace(JOB, settings={"rows_per_second": 4})
    for node in (world.node, world.follower):
        node.catalog.put_job(job)
    for _ in range(6):
        world.ms += 300
        world.tick()
        world.pump()
    assert [len(b.copied.rows) for b in ranges(world) if b.copied] == [4, 4]


def test_spark_has_no_part_in_it() -> None:
    """Neither chunks nor an end that somebody sends all the same count."""
    world = with_job(World(backfill=FEW), replace(JOB, status=Status.PAUSED))
    assert wanted_run(JOB) is None
    assert wanted_run(replace(JOB, by_range=False)) is not None
    for offset, message in enumerate(
        (Chunk(1, 1, 1, 1, ALL_ROWS, ((0,),)), ChunksEnd(1, 1, 20, 1))
    ):
        event = QueueRead(Queue.BACKFILL, offset, "", CODEC.encode(message))
        world.perform(world.node.step(event, world.now()))
    world.tick()
    world.pump()
    turn(world)
    job = world.node.catalog.jobs[1]
    assert (job.chunks_ended, job.rows_read) == (False, 0)


@pytest.mark.parametrize("knows", [False, True])
def test_rows_are_copied_where_everybody_knows_it(world: World, knows: bool) -> None:
    master = world.node.master
    assert master is not None
    known = Feature.COPIED_ROWS if knows else Feature.COPIED_ROWS - 1
    incarnation = bytes(INCARNATION_BYTES) + bytes((known,))
    ack = Ack("r8", incarnation, "replicant", 5, 1, 0, 0, False, "", 0)
    world.node.step(AckRead(ack), world.now())
    work = master.changes.coordinator._step_work
    ranged = work.find_ranged(replace(JOB, by_range=False), world.now())
    assert (ALL_ROWS in ranged) is knows
