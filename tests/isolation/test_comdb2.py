"""What Comdb2 documents of its levels, as far as it concerns the embedded interface (scenarios
15 to 22), on different replicas."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from leasehold.in_process.bus import EPOCH_WALL_US
from leasehold.model.errors import (
    DuplicateKey,
    FeatureNotSupported,
    MalformedRequest,
    NotCoherent,
    Refused,
    SnapshotTooOld,
    Uncommittable,
)
from leasehold.model.records.requests import OnConflict
from leasehold.replication.log.retention import HistorySettings
from leasehold.replication.master.settings import MasterSettings
from leasehold.transaction.isolation import ISOLATION, Level
from leasehold.transaction.replay_comparison import Answer, Told
from tests.isolation.hermitage import Scene, committed
from tests.isolation.session import Session
from tests.simulation.simulation import MS
from tests.simulation.stage import Stage

SEEING_OWN = [level for level in Level if ISOLATION[level].own_writes]


@pytest.mark.parametrize("level", list(Level))
def test_15_own_writes_visible_in_block(level: Level) -> None:
    scene = Scene(level.value)
    one, two = scene.sessions(2)
    one.insert(3, 30)
    one.put(1, 11)
    one.delete(lambda row: row["id"] == 2)
    seen = {1: 11, 3: 30} if ISOLATION[level].own_writes else {1: 10, 2: 20}
    assert one.select() == seen
    assert {key: one.get(key) for key in seen} == seen
    assert two.select() == {1: 10, 2: 20}, "nobody else does"
    one.abort()
    assert scene.rows() == {1: 10, 2: 20}, "and nobody after ROLLBACK"


@pytest.mark.parametrize("level", SEEING_OWN)
def test_15_own_writes_are_found_by_index(level: Level) -> None:
    scene = Scene(level.value)
    scene.stage.settle({"sql": "create index by_value on test (value)"})
    job = scene.stage.reference.catalog.jobs[max(scene.stage.reference.catalog.jobs)].job_id
    scene.stage.until(lambda: scene.stage.job(job).status.ended, "the index", virtual_ms=60_000)
    (one,) = scene.sessions(1)
    one.insert(3, 10)
    one.put(1, 20)

    def by(value: int) -> list[int]:
        found: list[int] = one.run(
            lambda tx: Answer(
                Told.SELECTED, [row["id"] for row in tx.get_by("test.by_value", value)]
            )
        )
        return found

    assert (by(10), by(20)) == ([3], [1, 2])
    assert committed(one)


def test_16_constraint_heals_before_commit() -> None:
    """Two equal keys inside a transaction are fine if they differ at COMMIT (T3); PostgreSQL
    refuses the second INSERT at once, unless its constraint is deferred."""
    stage = Stage()
    stage.settle({"sql": "create table test (id bigint primary key, value bigint unique)"})
    one = Session(stage, "r1", "read committed").begin()
    one.insert(1, 5)
    one.insert(2, 5)
    one.put(2, 6)
    assert committed(one)
    two = Session(stage, "r2", "read committed").begin()
    two.put(1, 6)
    with pytest.raises(DuplicateKey):
        two.commit()


@pytest.mark.parametrize("level", [level for level in Level if ISOLATION[level].replays])
def test_17_replay_recomputes(level: Level) -> None:
    scene = Scene(level.value, answered=False)
    one, two = scene.sessions(2)
    for session in (one, two):
        session.update(lambda row: row["value"] + 100, lambda row: row["id"] == 1)
    assert committed(one)
    assert committed(two)
    assert scene.rows()[1] == 210
    assert (one.replays, two.replays) == (0, 1)


@pytest.mark.parametrize("level", list(Level))
def test_18_replay_off_tells_client(level: Level) -> None:
    scene = Scene(level.value, answered=False, verify_retry=False)
    one, two = scene.sessions(2)
    one.put(1, 11)
    two.put(1, 12)
    two.put(2, 22)
    assert committed(one)
    assert not committed(two)
    assert two.replays == 0
    assert scene.rows() == {1: 11, 2: 20}, "nothing of it was applied"


def test_19_snapshot_never_replayed() -> None:
    scene = Scene("snapshot", answered=False)
    one, two = scene.sessions(2)
    one.put(1, 11)
    two.put(1, 12)
    assert committed(one)
    assert not committed(two)
    assert two.replays == 0


def test_20_uncommitable_not_looped() -> None:
    scene = Scene("default")
    (one,) = scene.sessions(1)
    gone = lambda row: row["id"] == 1  # noqa: E731
    assert one.delete(gone) == 1
    with pytest.raises(Uncommittable, match="can never be committed"):
        one.delete(gone)
    with pytest.raises(Uncommittable):
        one.put(1, 5)
    two = scene.session("r1").begin()
    two.put(1, 5)
    two.put(1, 6)
    assert committed(two), "two changes of a row are no contradiction"
    assert scene.rows()[1] == 6


def test_a_row_that_came_after_it_was_looked_for_can_be_changed() -> None:
    """Each statement sees what is newest, an update too."""
    scene = Scene("read committed")
    one, two = scene.sessions(2)
    assert one.get(3) is None
    two.insert(3, 30)
    assert committed(two)
    assert one.get(3) == 30
    assert one.put(3, 31) == 1
    assert committed(one)
    assert scene.rows()[3] == 31


@pytest.mark.parametrize("level", SEEING_OWN)
def test_20_who_sees_his_own_delete_deletes_nothing_twice(level: Level) -> None:
    scene = Scene(level.value)
    (one,) = scene.sessions(1)
    assert [one.delete(lambda row: row["id"] == 1) for _ in range(2)] == [1, 0]
    assert committed(one)


@pytest.mark.parametrize("level", list(Level))
def test_21_selectv_row_changed(level: Level) -> None:
    scene = Scene(level.value)
    one, two = scene.sessions(2)
    assert one.get(1, selectv=True) == 10
    two.put(1, 11)
    assert committed(two)
    one.put(2, 22)
    assert not committed(one)
    assert scene.rows() == {1: 11, 2: 20}


@pytest.mark.parametrize("level", list(Level))
def test_21_selectv_row_deleted_and_made_again(level: Level) -> None:
    scene = Scene(level.value)
    one, two = scene.sessions(2)
    assert one.select(selectv=True) == {1: 10, 2: 20}
    two.delete(lambda row: row["id"] == 1)
    assert committed(two)
    again = scene.session("r2").begin()
    again.insert(1, 10)
    assert committed(again)
    one.insert(3, 30)
    ended = committed(one)
    assert ended == ISOLATION[level].replays, "whose replay gives the same answers"
    assert one.replays == int(ISOLATION[level].replays), "it was refused once"


@pytest.mark.parametrize("level", [Level.DEFAULT, Level.READ_COMMITTED, Level.SNAPSHOT])
def test_21_selectv_tells_nothing_of_a_phantom(level: Level) -> None:
    scene = Scene(level.value)
    one, two = scene.sessions(2)
    assert one.select(selectv=True) == {1: 10, 2: 20}
    two.insert(3, 30)
    assert committed(two)
    one.insert(4, 40)
    assert committed(one)


@pytest.mark.parametrize("level", list(Level))
def test_22_replica_hop_no_time_travel(level: Level) -> None:
    scene = Scene(level.value)
    for number in range(5):
        writer = scene.session(f"r{1 + number % 2}").begin()
        writer.put(1, number)
        assert committed(writer)
        reader = scene.session(f"r{2 - number % 2}").begin()
        assert reader.get(1) == number


def test_t6_linearizable_misses_nothing_answered_on_a_replica_that_lags_behind() -> None:
    """Cut off, without a lease, and whatever its clock says: the barrier tells."""
    scene = Scene("linearizable")
    stage = scene.stage
    stage.node("r2").isolate(stage.scheduler.now_ns + 3_000 * MS)
    writer = scene.session("r1").begin()
    writer.put(1, 99)
    assert committed(writer)
    assert not stage.node("r2").reads()
    assert stage.stores.get("r2").position().lsn < stage.reference.position.lsn
    with pytest.raises(NotCoherent):
        Session(stage, "r2", "serializable").begin()
    assert scene.session("r2").begin().get(1) == 99, "it waits until it has all before it"


# ------------------------------------------------------------------ AS OF


def at(stage: Stage) -> datetime:
    """Now, by the clock of the system."""
    us = EPOCH_WALL_US + stage.scheduler.now_ns // 1_000
    return datetime.fromtimestamp(us // 1_000_000, UTC) + timedelta(microseconds=us % 1_000_000)


def test_a_snapshot_as_of_a_time_and_as_of_an_lsn() -> None:
    scene = Scene("snapshot")
    stage = scene.stage
    stage.passing(50)
    then, lsn = at(stage), stage.reference.position.lsn
    stage.passing(50)
    (one,) = scene.sessions(1)
    one.put(1, 11)
    assert committed(one)
    for snapshot_lsn in (then, lsn):
        past = scene.session("r2", as_of=snapshot_lsn).begin()
        assert past.select() == {1: 10, 2: 20}
        past.put(2, 21)
        assert committed(past) == (snapshot_lsn is then), "row 2 was changed by the first of them"
    with pytest.raises(FeatureNotSupported, match="AS OF"):
        Session(stage, "r1", "serializable", as_of=lsn)
    with pytest.raises(NotCoherent, match="ahead"):
        scene.session("r1", as_of=at(stage) + timedelta(seconds=5)).begin()
    with pytest.raises(NotCoherent, match="ahead"):
        scene.session("r1", as_of=10_000).begin()


def test_what_is_not_kept_is_refused_at_begin_or_at_the_statement() -> None:
    stage = Stage(master=MasterSettings(history=HistorySettings(rows_ms=2_000)))
    then = at(stage)
    (one,) = [Session(stage, "r1", "snapshot", table="t").begin()]
    assert one.run(lambda tx: Answer(Told.SELECTED, [tx.get("t", 1)]))
    for _ in range(20):
        stage.passing(2_000)
        stage.settle(stage.update(1, 12))
    with pytest.raises(SnapshotTooOld):
        one.run(lambda tx: Answer(Told.SELECTED, [tx.get("t", 1)]))
    with pytest.raises(SnapshotTooOld):
        Session(stage, "r1", "snapshot", as_of=then).begin()
    floors = {stage.stores.get(name).contents.rows_lsn for name in stage.cluster.nodes}
    assert len(floors) == 1, "collected at the same position on every node"
    assert floors.pop()


@pytest.mark.parametrize("level", [level for level in Level if ISOLATION[level].one_snapshot])
def test_without_rows_of_the_past_there_are_no_levels_that_need_them(level: Level) -> None:
    stage = Stage(master=MasterSettings(history=HistorySettings(rows_ms=0)))
    with pytest.raises(FeatureNotSupported, match="LEASEHOLD_ROW_HISTORY_MS"):
        Session(stage, "r1", level).begin()
    one = Session(stage, "r1", "read committed", table="t").begin()
    assert one.run(lambda tx: Answer(Told.SELECTED, [tx.get("t", 1)])) == [{"id": 1, "a": 10}]


def test_a_time_without_a_time_zone_is_refused() -> None:
    with pytest.raises(MalformedRequest, match="time zone"):
        Session(Stage(), "r1", "snapshot", as_of=datetime(2025, 1, 1)).begin()  # noqa: DTZ001


# ------------------------------------------------------------------ and schema changes


def changed(scene: Scene, sql: str) -> None:
    stage = scene.stage
    job = stage.settle({"sql": sql}).answer["job"]
    stage.until(lambda: stage.job(job).status.ended, sql, virtual_ms=60_000)


@pytest.mark.parametrize("sql", ["add column b bigint", "drop column value"])
def test_50_old_txn_reads_old_shape(sql: str) -> None:
    """Begun before a change of the table it reads rows of then as they were then, to the end; and
    one that also writes is refused (40001)."""
    scene = Scene("snapshot")
    one, two = scene.sessions(2)
    changed(scene, f"alter table test {sql}")
    for session in (one, two):
        shown = session.run(lambda tx: Answer(Told.SELECTED, list(tx.scan("test"))))
        assert shown == [{"id": 1, "value": 10}, {"id": 2, "value": 20}]
    assert one.commit() is None
    two.put(1, 11)
    with pytest.raises(Refused) as error:
        two.commit()
    assert error.value.sqlstate == "40001"


def test_74_snapshot_reader_vs_alter() -> None:
    """Never a mixed row: while a column is dropped and another of its name comes, with writes."""
    scene = Scene("snapshot")
    stage = scene.stage
    (one,) = scene.sessions(1)
    shown = one.run(lambda tx: Answer(Told.SELECTED, list(tx.scan("test"))))
    for sql in ("drop column value", "add column value text default 'new'", "rename to other"):
        changed(scene, f"alter table test {sql}")
        table = "other" if sql.startswith("rename") else "test"
        stage.settle({"table": table, "op": "delete", "key": {"id": 2}})
        stage.settle({"table": table, "op": "insert", "key": {"id": 2}, "values": {}})
        again = one.run(lambda tx: Answer(Told.SELECTED, list(tx.scan("test"))))
        assert again == shown == [{"id": 1, "value": 10}, {"id": 2, "value": 20}]
    assert stage.scheduler.now_ns < 60_000 * MS


def test_a_truncated_table_is_refused_to_who_reads_it_as_of_before() -> None:
    scene = Scene("snapshot")
    (one,) = scene.sessions(1)
    scene.stage.settle({"sql": "truncate table test"})
    with pytest.raises(SnapshotTooOld):
        one.select()


def test_a_request_with_a_read_set_of_a_replaced_version_is_fenced() -> None:
    """D5: what was read under a version below min_version proves nothing."""
    scene = Scene("serializable", verify_retry=False)
    (one,) = scene.sessions(1)
    one.select()
    one.put(1, 11)
    changed(scene, "alter table test add column b bigint")
    assert one.tx is not None
    request = one.tx.request(b"0" * 16, 1, OnConflict.FAIL)
    assert request is not None
    assert request.reads is not None
    assert [(t.table, t.version, t.whole) for t in request.reads.tables] == [("test", 1, True)]
    assert not committed(one)
