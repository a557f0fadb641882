"""Goal: a node counts what happens in it, at the station where it happens.

Method: a master and a follower stepped by hand; what they have counted behind some requests.
"""

from __future__ import annotations

import itertools

from leasehold.model import metrics
from leasehold.model.measures import Measures, Sample
from leasehold.model.ports import Now
from leasehold.model.records.log import Grant
from leasehold.node.node_samples import NodeLook
from leasehold.node.tables_shown import TablesShown
from leasehold.replication.effects import AppendFailed, Tick
from leasehold.replication.fast_path.path_samples import path_samples
from leasehold.replication.fast_path.state_machine import FastPath, Pause
from leasehold.replication.node import Node
from leasehold.replication.node_measures import NodeMeasures
from leasehold.replication.node_settings import NodeSettings
from tests.support.memory_store.store import MemoryStore
from tests.support.replication.world import CODEC, TABLE, World, insert, update

S = 1_000_000_000


def values(samples: list[Sample]) -> dict[tuple[str, ...], object]:
    return {(sample.metric.name, *sample.labels): sample.value for sample in samples}


def test_commits_and_refusals_are_counted_where_they_are_decided(world: World) -> None:
    measures = world.node.measures
    before = measures.value(metrics.COMMITS)
    world.ask(insert(1, a=1))
    world.ask(insert(1, a=1))
    world.ask(update(1, {"version": 77}, a=2))
    assert measures.value(metrics.COMMITS) == before + 1
    refused = {s.labels: s.value for s in measures.samples() if s.metric is metrics.REFUSALS}
    assert refused[("23505", "dead letter")] == 1
    assert sum(value for value in refused.values() if isinstance(value, int)) == 2
    assert world.follower.measures.value(metrics.COMMITS) == 0
    applied = world.follower.measures.value(metrics.TRANSACTIONS_APPLIED)
    assert applied == measures.value(metrics.TRANSACTIONS_APPLIED) > 0


def test_a_request_asked_again_counts_as_repeated(world: World) -> None:
    number = world.fresh_id()
    world.ask(insert(1, a=1), number)
    world.ask(insert(1, a=1), number)
    assert world.node.measures.value(metrics.REPEATS) == 1


def test_each_station_of_a_request_is_timed(world: World) -> None:
    measures = world.node.measures
    stations = (metrics.QUEUE_S, metrics.DECIDE_S, metrics.APPEND_S, metrics.NODES_S)
    before = [sum(measures.distribution(each).counts) for each in stations]
    world.put(insert(1, a=1))
    world.ms += 6  # it waits for the master
    world.tick()
    world.ms += 20  # its record travels
    world.pump()
    world.tick()
    after = [measures.distribution(each) for each in stations]
    assert [sum(each.counts) for each in after] > before
    queue_s, append_s = after[0], after[2]
    slow = [bound for bound, n in zip(queue_s.bounds, queue_s.counts, strict=False) if n][-1]
    assert slow == 0.01, "7 ms lie in the bucket up to 10 ms"
    slow = [bound for bound, n in zip(append_s.bounds, append_s.counts, strict=False) if n][-1]
    assert slow == 0.025
    assert sum(after[3].counts) == before[3] + 1
    world.ms += 1_000
    world.tick()
    world.pump()
    assert sum(after[2].counts) > before[2] + 1, "a heartbeat is a record"
    assert sum(after[3].counts) == before[3] + 1, "and has no answers to give"


def test_each_request_counts_by_how_long_it_has_waited(world: World) -> None:
    measures = world.node.measures
    before = list(measures.distribution(metrics.QUEUE_S).counts)
    for key in (1, 2):
        world.put(insert(key, a=1))
    world.ms += 40
    for key in (3, 4, 5):
        world.put(insert(key, a=1))
    world.tick()  # after a millisecond
    found = measures.distribution(metrics.QUEUE_S)
    new = [after - was for after, was in zip(found.counts, before, strict=True)]
    assert {b: n for b, n in zip(found.bounds, new, strict=False) if n} == {0.001: 3, 0.05: 2}


def test_a_job_that_ends_tells_what_its_phases_took(world: World) -> None:
    world.ask({"sql": "create index i on t (a)"})
    measures = world.node.measures
    running = world.node.catalog.running
    samples = values(list(NodeLook(world.node).samples(world.now())))
    (job,) = running.values()
    assert samples["leasehold_jobs", job.phase.value, "running"] == 1
    assert ("leasehold_job_age_seconds", str(job.job_id), "t") in samples
    world.ask({"job": job.job_id, "action": "cancel"})
    for _ in range(20):
        if not running:
            break
        world.ms += 100
        world.tick()
        world.pump()
    assert measures.value(metrics.JOBS_ENDED, ("cancelled",)) == 1
    phases = {s.labels for s in measures.samples() if s.metric is metrics.PHASE_S}
    assert ("publishing",) in phases
    assert world.follower.measures.value(metrics.JOBS_ENDED, ("cancelled",)) == 0


def test_a_term_that_begins_and_one_that_ends_are_counted(world: World) -> None:
    measures = world.node.measures
    assert measures.value(metrics.TAKEOVERS) == 1
    world.perform(world.node.step(AppendFailed("the broker is gone"), world.now()))
    assert measures.value(metrics.TERMS_LOST) == 1


def test_a_lease_that_is_lost_is_counted_with_the_seconds_without_it() -> None:
    measures = Measures()
    counts = NodeMeasures(measures, 0)
    counts.note_coherency(2 * S, holds=True)
    counts.note_coherency(5 * S, holds=True)
    counts.note_coherency(6 * S, holds=False)
    counts.note_coherency(9 * S, holds=False)
    counts.note_coherency(10 * S, holds=True)
    assert measures.value(metrics.INCOHERENT_S) == 2 + 4
    assert measures.value(metrics.COHERENCY_LOST) == 1
    assert measures.value(metrics.COHERENCY_GAINED) == 2


def test_a_node_that_serves_notes_its_lease_at_each_tick() -> None:
    settings = NodeSettings("r1", candidate=False, serving=True)
    node = Node(settings, MemoryStore(), CODEC, b"r1", itertools.count(1), Now(0, 0))
    node.step(Tick(), Now(3 * S, 0))
    assert node.measures.value(metrics.INCOHERENT_S) == 3
    asked = node.lease.ask(3 * S)
    node.lease.granted(Grant("r1", b"r1", asked, 500))
    node.step(Tick(), Now(3 * S, 0))
    assert node.measures.value(metrics.COHERENCY_GAINED) == 1
    assert values(list(NodeLook(node).samples(Now(3 * S, 0))))[("leasehold_coherent",)] == 1
    assert values(list(NodeLook(node).samples(Now(4 * S, 0))))[("leasehold_coherent",)] == 0


def test_a_master_tells_what_waits_on_it(world: World) -> None:
    world.ask({"sql": TABLE.replace(" t ", " u ")})
    world.put(insert(1, a=1))
    told = values(list(NodeLook(world.node).samples(world.now())))
    assert told["leasehold_master",] == 1
    assert told["leasehold_node_role", "master"] == 1
    assert told["leasehold_queue_messages", "requests"] == 1
    size = told["leasehold_queue_bytes", "requests"]
    assert isinstance(size, int)
    assert size > 50
    assert told["leasehold_applied_lsn",] == world.node.position.lsn
    follower = values(list(NodeLook(world.follower).samples(world.now())))
    assert follower["leasehold_master",] == 0
    assert ("leasehold_queue_messages", "requests") not in follower


def test_changes_are_told_by_the_name_of_the_table(world: World) -> None:
    look = NodeLook(world.follower)
    world.ask(insert(1, a=1))
    world.ask(insert(2, a=1))
    told = values(list(look.samples(world.now())))
    assert told["leasehold_table_row_changes_total", "t"] == 2
    assert told["leasehold_table_row_changes_total", "(others)"] == 0


def test_few_tables_are_shown_and_no_counter_falls() -> None:
    """One that is dropped takes nothing with it, and one that is shown late brings nothing."""
    shown = TablesShown(tables_max=2)
    counts, names = {1: 5, 2: 50, 3: 20}, {1: "a", 2: "b", 3: "c"}
    assert dict(shown.series(counts, names)) == {"b": 50, "c": 20, "(others)": 5}
    counts = {1: 1_000, 2: 51, 3: 20}
    assert dict(shown.series(counts, names)) == {"b": 51, "c": 20, "(others)": 1_000}
    del names[2]
    counts[1] = 1_010
    told = dict(shown.series(counts, names))
    assert told == {"c": 20, "a": 0, "(others)": 1_010}
    counts[1] = 1_012
    assert dict(shown.series(counts, names)) == {"c": 20, "a": 2, "(others)": 1_010}


def test_a_fast_path_tells_whether_it_is_taken_and_why_it_was_left() -> None:
    path = FastPath(pause_ms=100, pause_ms_max=1_000)
    path.enter(0)
    told = values(list(path_samples("log", path, 0)))
    assert told["leasehold_fast_path_in_use", "log"] == 1
    path.leave(0, Pause.FAULT)
    path.leave(0, Pause.FAULT)
    told = values(list(path_samples("log", path, 50_000_000)))
    assert told["leasehold_fast_path_in_use", "log"] == 0
    assert told["leasehold_fast_path_exits_total", "log", "fault"] == 1, "it was taken once"
    assert told["leasehold_fast_path_entries_total", "log"] == 1
    pause_s = told["leasehold_fast_path_pause_seconds", "log"]
    assert isinstance(pause_s, float)
    assert 0 < pause_s <= 0.2
