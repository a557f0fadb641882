"""Goal: tables that are made and dropped all the time leave nothing behind for ever.

Method: the stage, with a retention of minutes. Tables and jobs of the past leave every node's
catalog at one log position, with their keys and rows topics; what somebody may name stays.
"""

from __future__ import annotations

from dataclasses import replace

from leasehold.catalog.catalog import Catalog
from leasehold.model.ids import is_sequence_id
from leasehold.replication.log.retention import FORGET_EVERY_MS, HistorySettings
from tests.simulation.plan import SHAPE
from tests.simulation.stage import Stage
from tests.support.memory_store.store import MemoryStore

MINUTE_MS = 60_000
HISTORY = HistorySettings(keep_ms=1_000, rows_ms=1_000, dropped_ms=10 * MINUTE_MS)
ROUNDS = 4


def stage_with(history: HistorySettings) -> Stage:
    return Stage(master=replace(SHAPE.master, history=history))


def churn(stage: Stage, number: int) -> None:
    """As a tool does that replaces a table: made, filled, indexed, dropped; with its sequence."""
    name = f"x{number}"
    stage.settle({"sql": f"create table {name} (id bigint primary key, n serial)"})
    stage.settle({"table": name, "op": "insert", "key": {"id": 1}, "values": {}})
    stage.settle({"sql": f"create index on {name} (n)"})
    stage.passing(3_000)
    stage.settle({"sql": f"drop table {name}"})
    stage.passing(3_000)


def catalogs(stage: Stage) -> list[Catalog]:
    return [node.node.catalog for node in stage.cluster.nodes.values() if node.node is not None]


def later(stage: Stage, virtual_ms: int) -> None:
    """Time passes while nobody is there, and collections of the past come to their turn."""
    for node in list(stage.cluster.nodes.values()):
        node.crash()
    stage.scheduler._wall_us_at_zero += virtual_ms * 1_000
    for node in list(stage.cluster.nodes.values()):
        node.start()
    stage.until(lambda: stage.master is not None and len(stage.coherent()) == 2, "a master")
    for value in range(70):
        stage.settle(stage.update(1, value))
    stage.passing(FORGET_EVERY_MS + 3_000)


def rows_topics(stage: Stage) -> set[str]:
    return {topic for topic in stage.cluster.bus.topics() if ".rows." in topic}


def newest_keys(stage: Stage, topic: str) -> set[bytes]:
    values = {message.key: message.value for message in stage.cluster.bus.read(topic)}
    return {key for key, value in values.items() if value is not None}


def test_what_was_dropped_long_ago_is_forgotten_everywhere() -> None:
    stage = stage_with(HISTORY)
    for number in range(ROUNDS):
        churn(stage, number)
    jobs = max(stage.reference.catalog.jobs)
    ids = stage.reference.catalog.table_ids()
    later(stage, MINUTE_MS)
    assert stage.reference.catalog.table_ids() == ids, "not before its time"
    assert len(rows_topics(stage)) == ROUNDS + 1
    later(stage, 10 * MINUTE_MS)
    later(stage, 1_000)
    # Of tables, sequences and jobs the newest of each stays: ids are counted from there.
    tables = [table_id for table_id in ids if not is_sequence_id(table_id)]
    kept = [tables[0], tables[-1], ids[-1]]
    for catalog in catalogs(stage):
        assert catalog.table_ids() == kept
        assert list(catalog.jobs) == [jobs]
        assert catalog.next_job_id() == jobs + 1
        assert catalog.next_table_id() == tables[-1] + 1
        assert catalog.next_sequence_id() == ids[-1] + 1
    topics = stage.cluster.topics
    assert rows_topics(stage) == {topics.rows(table).name for table in (tables[0], tables[-1])}
    wanted = {b"%d" % tables[0], b"%d" % tables[-1]}
    assert newest_keys(stage, topics.versions.name) == wanted
    told = newest_keys(stage, topics.jobs.name)
    assert {key for key in told if key.startswith(b"job/")} == {b"job/%d" % jobs}
    feed = stage.cluster.changefeed._feed
    assert feed is not None
    assert list(feed._jobs) == [jobs]
    # Every node starts over from what its store has kept, and ids go on.
    for node in list(stage.cluster.nodes.values()):
        node.crash()
        node.start()
    stage.until(lambda: stage.master is not None and len(stage.coherent()) == 2, "a master")
    churn(stage, 99)
    for catalog in catalogs(stage):
        assert catalog.table_ids()[:2] == tables[:1] + tables[-1:]
        assert max(t for t in catalog.table_ids() if not is_sequence_id(t)) == tables[-1] + 1


def test_stores_hold_no_more_than_the_catalog() -> None:
    stage = stage_with(HISTORY)
    for number in range(2):
        churn(stage, number)
    later(stage, 11 * MINUTE_MS)
    later(stage, 1_000)
    for node in stage.cluster.nodes.values():
        store = node.store
        assert isinstance(store, MemoryStore)
        known = set(stage.reference.catalog.table_ids())
        held = store.contents
        assert {table for table, _ in held.descriptors} == known
        assert held.min_versions.keys() <= known
        assert {table for table, _ in held.exists} <= known
        assert held.jobs.keys() == stage.reference.catalog.jobs.keys()


def test_a_table_is_kept_for_as_long_as_its_past_can_be_read() -> None:
    """Whatever is said of dropped ones alone."""
    stage = stage_with(replace(HISTORY, keep_ms=60 * MINUTE_MS, dropped_ms=0))
    for number in range(2):
        churn(stage, number)
    ids = stage.reference.catalog.table_ids()
    later(stage, 10 * MINUTE_MS)
    assert stage.reference.catalog.table_ids() == ids


def test_what_a_running_job_names_is_kept() -> None:
    """It is paused for longer than anything else is kept, beside tables that come and go."""
    stage = stage_with(HISTORY)
    churn(stage, 0)
    job = stage.settle({"sql": "create index paused on t (a)"}).answer["job"]
    stage.settle({"job": job, "action": "pause"})
    churn(stage, 1)
    later(stage, 11 * MINUTE_MS)
    later(stage, 1_000)
    newest = max(stage.reference.catalog.jobs)
    assert set(stage.reference.catalog.jobs) == {job, newest}
    stage.settle({"job": job, "action": "resume"})
    stage.passing(10_000)
    assert stage.job(job).status.value == "succeeded"
