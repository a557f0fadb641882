"""Goal: a backfill by range begins only where everybody who reads the log knows it; its ranges
cover every key whatever borders come; its job goes on when all who are waited for have merged.

Method: a master and a follower by hand, and replicants of which only their words are there.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column, Index, Missing
from leasehold.catalog.job import Job, Phase, Status, Step
from leasehold.catalog.states import State
from leasehold.model.features import Feature, incarnation_of
from leasehold.model.ids import INCARNATION_BYTES
from leasehold.model.ports import Merged
from leasehold.model.records.acks import Ack, MergeReport, TableMerged
from leasehold.model.records.jobs import BackfillBorder, ChunksEnd
from leasehold.model.records.log import ChunkDecided, JobWrite, KeySpan
from leasehold.model.records.requests import Queue
from leasehold.replication.effects import AckRead, QueueRead, Send, Tick, TickPerformed
from leasehold.replication.node import PUT_OFF_MS_MAX, Node
from leasehold.replication.range_merging import MergeReports
from leasehold.rows.computed_missing import make_computed
from leasehold.schema_change.coordinator.effects import Write
from leasehold.schema_change.coordinator.job_state import JobMemory, find_place
from leasehold.schema_change.job.transitions import record_filled, turn_back
from leasehold.values.types import Type
from tests.support.replication.world import CODEC, World, insert, update

INDEX = 9
ROWS = 20
JOB = Job(
    job_id=1,
    sql="",
    table_id=1,
    table="t",
    request_id=b"",
    kind="create index",
    subject="index i",
    steps=(Step((), backfills=(INDEX,), verifies=(INDEX,)), Step(())),
    point=1,
    phase=Phase.BACKFILLING,
    versions={1: 1},
    run=1,
    by_range=True,
)


@pytest.fixture
def world() -> World:
    """A table of 20 rows, and a job that fills an index over them by range."""
    made = World()
    made.ask({"sql": "create table t (id bigint primary key, a integer, b text)"})
    for key in range(ROWS):
        made.ask(insert(key, a=key % 3))
    for node in (made.node, made.follower):
        node.catalog.put_job(JOB)
        told = node.catalog.newest(1)
        index = Index(INDEX, "i", (2,), state=State.WRITE_ONLY)
        filled = replace(told, indexes=(index,))
        node.catalog._versions[1] = {told.version: filled}
        node.catalog._newest[1] = filled
    return made


def send(world: World, *messages: BackfillBorder | ChunksEnd) -> None:
    decided = world.node.position.decided_through.get(Queue.BACKFILL, 0)
    for message, offset in zip(messages, itertools.count(decided), strict=False):
        event = QueueRead(Queue.BACKFILL, offset, "", CODEC.encode(message))
        world.perform(world.node.step(event, world.now()))
    for _ in range(2 * len(messages) + 1):
        world.ms += 5_000  # whoever has put the rows has gone
        world.tick()
        world.pump()


def merge_all(world: World) -> None:
    for _ in range(2 * ROWS):
        world.ms += 5
        world.tick()
        world.pump()
    assert not world.node._store.ranges_waiting()


def border(key: int, run: int = 1, version: int = 1) -> BackfillBorder:
    return BackfillBorder(1, run, 1, version, INDEX, (key,), 7)


def spans(world: World) -> list[KeySpan]:
    return [
        backfill.span
        for commit in world.commits()
        for backfill in commit.backfills
        if backfill.span is not None
    ]


def entries(node: Node) -> set[int]:
    return {key[0] for _, _, _, key in node._store.contents.entries}  # type: ignore[attr-defined]


def test_ranges_follow_each_other_and_cover_every_key(world: World) -> None:
    """Borders that come twice, late, out of order, or of no key, change nothing of that."""
    send(world, border(4), border(4), border(2), border(9, run=2), border(9, version=2))
    send(world, border(11), border(0)._replace(through=("x", 1)), border(0)._replace(through=()))
    send(world, border(0)._replace(through=(float("nan"),)), border(0)._replace(through=(b"x",)))
    send(world, ChunksEnd(1, 1, 20, 2), border(15), ChunksEnd(1, 1, 20, 2))
    assert spans(world) == [KeySpan((), (4,)), KeySpan((4,), (11,)), KeySpan((11,), ())]
    assert world.node.catalog.jobs[1].rows_read == 20
    for node in (world.node, world.follower):
        assert node.catalog.jobs[1].chunks_ended
        assert not node._store.ranges_waiting()
        assert entries(node) == set(range(ROWS))


def test_without_a_border_the_end_fills_all_and_of_chunks_it_fills_nothing(world: World) -> None:
    send(world, ChunksEnd(1, 1, 20, 0))
    assert spans(world) == [KeySpan((), ())]
    for node in (world.node, world.follower):
        node.catalog.put_job(replace(JOB, by_range=False))
    send(world, border(3), ChunksEnd(1, 1, 20, 0))
    assert len(spans(world)) == 1


@pytest.mark.parametrize("turned", [False, True])
def test_with_the_record_by_which_a_job_leaves_the_run_nothing_waits(
    world: World, turned: bool
) -> None:
    """A follower that was too busy to merge anything has all entries at that position."""
    store = world.follower._store
    world.follower._upkeep._merging._due_ns = 1 << 62
    send(world, border(4), ChunksEnd(1, 1, 20, 2))
    assert store.ranges_waiting() == 2
    assert entries(world.follower) == set()
    world.ask(update(3, a=1))
    job = world.node.catalog.jobs[1]
    after = turn_back(job, 9, "no") if turned else record_filled(job, 9)
    assert not after.by_range
    assert world.node.master is not None
    write = Write(1, (JobWrite(1, after.to_wire()),), job)
    world.node.master.changes._writes.append(write)
    world.tick()
    world.pump()
    assert store.ranges_waiting() == 0
    expected: set[int] = set() if turned else set(range(ROWS))
    assert entries(world.follower) == entries(world.node) == expected


def test_a_paused_job_merges_nothing_and_a_rate_is_kept(world: World) -> None:
    send(world)
    follower = world.follower
    follower.catalog.put_job(replace(JOB, status=Status.PAUSED))
    world.node.catalog.put_job(replace(JOB, status=Status.PAUSED))
    send(world, ChunksEnd(1, 1, 20, 0))
    assert follower._store.ranges_waiting()
    assert entries(follower) == set()
    merging = follower._upkeep._merging
    follower.catalog.put_job(replace(JOB, settings={"rows_per_second": 2}))
    for _ in range(2):  # the run, and its first rows
        world.ms += 1_000
        merging.work(follower.catalog, world.now())
    assert len(entries(follower)) == 2, "no more than a second's at once"
    world.ms += 900
    merging.work(follower.catalog, world.now())
    assert len(entries(follower)) == 2, "two rows a second"
    world.ms += 200
    merging.work(follower.catalog, world.now())
    assert len(entries(follower)) == 4


# ------------------------------------------------------------------ who knows, who is done


def say(world: World, *records: Ack | MergeReport) -> None:
    for record in records:
        world.perform(world.node.step(AckRead(record), world.now()))


def ack(name: str, incarnation: bytes) -> Ack:
    return Ack(name, incarnation, "replicant", 5, 1, 0, 0, False, "", 0)


def reports_of(world: World) -> MergeReports:
    assert world.node.master is not None
    return world.node.master._merges


def test_it_begins_only_where_everybody_knows(world: World) -> None:
    """A process of the release before, whose incarnation says less, has it filled by key."""

    def ranged() -> frozenset[int]:
        assert world.node.master is not None
        work = world.node.master.changes.coordinator._step_work
        return work.find_ranged(JOB, world.now())

    random = bytes(INCARNATION_BYTES)
    assert ranged() == {INDEX}, "nobody else is there"
    say(world, ack("r8", random + bytes((Feature.RANGE_BACKFILLS - 1,))))
    assert not ranged()
    say(world, ack("r8", incarnation_of(random)))
    assert not ranged(), "that is another process"
    world.ms += 60_000
    assert world.node.master is not None
    world.node.master.watch.sweep(world.now().mono_ns)
    assert ranged(), "the older one has not been heard of for long"


def test_a_column_is_filled_by_range_where_nodes_compute_it_and_no_index_is_over_it(
    world: World,
) -> None:
    """Under one that is made meanwhile each row gets its entry, so rows are named; a column whose
    values images tell is none of a range."""
    told = world.node.catalog.newest(1)
    table = replace(told, indexes=())
    said = make_computed(table, Column(INDEX, "c", Type("text")), "a", (2,), "")
    assert said is not None
    by_key = Missing(1, 7)
    found = []
    for missing, over in [(said, 2), (said, INDEX), (by_key, 2), (None, 2)]:
        column = Column(INDEX, "c", Type("text"), state=State.WRITE_ONLY, missing=missing)
        index = Index(INDEX + 1, "i", (over,), state=State.DELETE_ONLY)
        put_in_place(world.node, replace(told, columns=(*told.columns, column), indexes=(index,)))
        assert world.node.master is not None
        work = world.node.master.changes.coordinator._step_work
        found.append(bool(work.find_ranged(JOB, world.now())))
    assert found == [True, False, False, False]


def put_in_place(node: Node, descriptor: Descriptor) -> None:
    node.catalog._versions[1] = {descriptor.version: descriptor}
    node.catalog._newest[1] = descriptor


def test_a_row_without_a_value_ends_the_job_wherever_the_range_is(world: World) -> None:
    """By the master's own rows: with its key, and the code of what was raised."""
    for node in (world.node, world.follower):
        told = node.catalog.newest(1)
        table = replace(told, indexes=())
        said = make_computed(table, Column(INDEX, "c", Type("integer")), "7 / a", (2,), "")
        assert said is not None
        missing = said._replace(below=told.version)
        column = Column(INDEX, "c", Type("integer"), state=State.WRITE_ONLY, missing=missing)
        put_in_place(node, replace(table, columns=(*table.columns, column)))
    send(world, border(4))
    job = world.node.catalog.jobs[1]
    assert job.status in (Status.ROLLING_BACK, Status.FAILED)
    assert job.code == "22012"
    assert "row (0,): division by zero" in job.error


def test_a_job_waits_for_who_has_not_merged_what_the_log_has(world: World) -> None:
    reports = reports_of(world)
    send(world, border(4), ChunksEnd(1, 1, 20, 1))
    assert reports.still_merging(()) == ("m1",)
    merge_all(world)
    assert world.node.catalog.jobs[1].phase is Phase.VERIFYING, "nobody else was coherent"
    behind = reports._offset
    assert reports.still_merging(["r8", "r9"]) == ("r8", "r9")
    say(world, MergeReport("r8", b"8", behind - 1, 0), MergeReport("r9", b"9", behind, 1))
    assert reports.still_merging(["r8", "r9"]) == ("r8", "r9"), "before the last range; not all"
    say(world, MergeReport("r8", b"8", behind, 0), MergeReport("r9", b"9", behind + 3, 0))
    assert reports.still_merging(["r8", "r9"]) == ()
    say(world, MergeReport("r8", b"anew", behind, 1))
    assert reports.still_merging(["r8", "r9"]) == ("r8",), "its store was begun anew"
    say(world, MergeReport("r8", b"anew", behind, 0))
    assert world.node.master is not None
    work = world.node.master.changes.coordinator._step_work
    job = JOB.counted(20, 20, True)
    memory = JobMemory(find_place(job))
    work.coherent = None
    assert work.next(job, memory, world.now()) is None
    assert memory.waiting == "the coherent nodes to be known", "by a new master"
    work.coherent = frozenset({"r7"})
    assert work.next(job, memory, world.now()) is None
    assert memory.waiting == "r7 to merge what was read"
    work.coherent = frozenset({"r8"})
    after = work.next(job, memory, world.now())
    assert after is not None
    assert after.phase is Phase.VERIFYING


def test_a_node_reports_what_is_news(world: World) -> None:
    def told() -> list[MergeReport]:
        records = [sent.record for sent in world.sent]
        return [r for r in records if isinstance(r, MergeReport) and r.node == "m1"]

    world.tick()
    assert told(), "a job fills by range"
    before = len(told())
    world.tick()
    assert len(told()) == before, "nothing is new"
    send(world, ChunksEnd(1, 1, 20, 0))
    merge_all(world)
    assert [report.waiting for report in told()[before:]][-1] == 0
    assert told()[-1].offset >= reports_of(world)._offset
    before = len(told())
    world.ms += 60_000
    world.tick()
    assert len(told()) == before, "no job does any more"


def test_who_decides_a_range_counts_it_once(world: World) -> None:
    send(world, border(4), ChunksEnd(1, 1, 3, 1))
    writes = [w for c in world.commits() for w in c.catalog if isinstance(w, ChunkDecided)]
    assert [(w.rows, w.end, w.through) for w in writes] == [(7, False, (4,)), (0, True, ())]


def test_a_node_tells_people_how_far_each_table_is(world: World) -> None:
    """Once a second while something waits; of the run under way alone."""
    follower, merging = world.follower, world.follower._upkeep._merging

    def told() -> tuple[TableMerged, ...] | None:
        effects = merging.report(follower.catalog, b"f", follower.position, world.now())
        records = [effect.record for effect in effects if isinstance(effect, Send)]
        assert all(isinstance(record, MergeReport) for record in records)
        return records[0].tables if records else None

    merging._due_ns = 1 << 62
    send(world, border(4), ChunksEnd(1, 1, 20, 2))
    world.ms += 1_000
    assert told() == (TableMerged(1, 2, 0),)
    assert told() is None, "nothing is new"
    merging._due_ns = 0
    for _ in range(2):  # the run, and its first three rows
        world.ms += 500
        merging.work(follower.catalog, world.now())
    assert told() == (TableMerged(1, 2, 3),)
    follower.catalog.put_job(replace(follower.catalog.jobs[1], run=2))
    world.ms += 999
    assert told() is None
    world.ms += 1
    assert told() == (TableMerged(1, 2, 0),), "that run has passed none"
    while follower._store.ranges_waiting():
        world.ms += 500
        merging.work(follower.catalog, world.now())
    assert told() == (TableMerged(1, 0, ROWS - 3),)
    world.ms += 4_999
    assert told() is None, "nothing waits"
    world.ms += 1
    assert told() is not None, "a report may be lost"


# ------------------------------------------------------------------ who waits goes first


def count_merges(node: Node, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    merges: list[int] = []
    merge = node._store.merge_entries

    def counted(descriptor: Descriptor, rows_max: int | None = None) -> Merged:
        merges.append(1)
        return merge(descriptor, rows_max)

    monkeypatch.setattr(node._store, "merge_entries", counted)
    return merges


def with_waiting_ranges(world: World, node: Node) -> None:
    for each in (world.node, world.follower):
        each._upkeep._merging._due_ns = 1 << 62
    send(world, border(4), ChunksEnd(1, 1, 20, 2))
    assert node._store.ranges_waiting()
    node._upkeep._merging._due_ns = 0


def test_a_node_acknowledges_before_it_merges(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers wait for the acknowledgement of what it has applied, and for no merge before it."""
    node = world.follower
    node.acknowledger._settings = replace(node.acknowledger._settings, serving=True)
    with_waiting_ranges(world, node)
    node.step(Tick(), world.now())
    merges = count_merges(node, monkeypatch)
    world.put(update(3, a=1))
    world.tick()
    offset = node.position.offset
    while len(world.log) == offset:
        world.tick()
    node.step(world.read(offset), world.now())
    effects = node.step(Tick(), world.now())
    assert [e for e in effects if isinstance(e, Send) and isinstance(e.record, Ack)]
    assert (merges, node.puts_off) == ([], True)
    node.step(TickPerformed(), world.now())
    assert (merges, node.puts_off) == ([1], False)
    node._upkeep._merging._due_ns = 0
    node.step(Tick(), world.now())
    assert len(merges) == 2, "nobody waits for anything"


def test_a_master_gives_answers_before_it_merges_but_not_for_ever(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = world.node
    with_waiting_ranges(world, node)
    node.step(Tick(), world.now())
    merges = count_merges(node, monkeypatch)
    assert node.master is not None
    monkeypatch.setattr(node.master, "has_due_answers", lambda now: True)
    for _ in range(PUT_OFF_MS_MAX - 1):
        world.ms += 1
        node._upkeep._merging._due_ns = 0
        node.step(Tick(), world.now())
        assert node.puts_off
        assert merges == []
    world.ms += 1
    node.step(Tick(), world.now())
    assert merges == [1]
