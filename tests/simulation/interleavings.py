"""Interleavings of the whole system in which one rule decides whether harm is done."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace

from leasehold.catalog.elements import MISSING_BYTES_MAX
from leasehold.catalog.job import Phase, Status
from leasehold.model.features import incarnation_of
from leasehold.model.records.acks import Ack
from leasehold.model.records.jobs import Chunk, ChunksEnd, Findings
from leasehold.replication.effects import Stop
from leasehold.replication.fast_path.own_appends import OwnAppendsSettings
from leasehold.replication.log.truncation import CHANGEFEED_ROLE, TruncationSettings
from leasehold.replication.master.settings import MasterSettings
from leasehold.replication.outcomes import OutcomeSettings
from tests.simulation.hard_messages import BUSY_MS, hard, takes_long, writes
from tests.simulation.harm import demand
from tests.simulation.plan import SHAPE
from tests.simulation.simulation import MS
from tests.simulation.stage import Stage
from tests.support.schema_change.looked_through import planned_by_an_earlier_release

Scenario = Callable[[], None]
DAYS_MS = 11 * 24 * 3_600_000


def cut_off(stage: Stage, name: str, virtual_ms: int) -> None:
    stage.node(name).isolate(stage.scheduler.now_ns + virtual_ms * MS)


# ------------------------------------------------------------------ the queues


def a_request_that_no_master_survives() -> None:
    """L10: each master that decides it is deposed meanwhile."""
    stage = Stage()
    with hard(stage, "decide", writes(12_345), takes_long(stage)):
        stage.ask(stage.update(1, 12_345))
        other = stage.ask(stage.update(2, 7))
        stage.until(lambda: other in stage.results, "the next answer", "L10", 10 * BUSY_MS)


# ------------------------------------------------------------------ coherency


def a_write_while_a_coherent_node_is_cut_off() -> None:
    """C4: its answer waits until the node's last lease is surely over."""
    stage = Stage()
    cut_off(stage, "r1", 3_000)
    stage.settle(stage.update(1, 11))


def a_new_master_while_a_coherent_node_is_cut_off() -> None:
    """C4: it knows nothing of its predecessor's grants but the longest duration."""
    stage = Stage()
    cut_off(stage, "r1", 3_000)
    stage.scripted["m1"].fates = ["lost"]
    stage.settle(stage.update(1, 11))
    assert stage.reference.position.epoch == 2, "m1 gave its epoch up and claimed the next"


def a_grant_of_another_life() -> None:
    """C3 (races 4): the machine reboots, the store is an older snapshot, the grant in the log
    echoes a send time that lies days ahead of the new clock."""
    stage = Stage()
    stage.node("r1").crash()
    stage.node("r1").clock.boot_ns = DAYS_MS * MS
    stage.node("r1").start()
    stage.until(lambda: "r1" in stage.coherent(), "r1")
    snapshot = stage.stores.get("r1").copy()
    stage.passing(1_000)  # grants to r1 stand above the snapshot
    stage.node("r1").crash()
    stage.stores.put("r1", snapshot)
    stage.node("r1").clock.boot_ns = MS - stage.scheduler.now_ns
    stage.passing(1_000)
    stage.node("r1").start()
    stage.passing(20)
    cut_off(stage, "r1", 3_000)
    stage.passing(900)  # whatever lease it has asked for in this life is over
    stage.settle(stage.update(1, 11))


def a_repeat_while_a_coherent_node_is_behind() -> None:
    """C1 (races 6): the first answer waits for r1; asking again must not get it sooner."""
    stage = Stage()
    cut_off(stage, "r1", 3_000)
    fields = {**stage.update(1, 11), "id": stage.cluster.fresh_id()}
    stage.ask(fields)
    stage.passing(30)
    assert fields["id"] not in stage.results, "the first answer waits"
    stage.settle(fields)


# ------------------------------------------------------------------ copies of a store

TRUNCATION = TruncationSettings(
    kept_records=5, away_ms=1_000, copy_away_ms=1_500, every_ms=50, silence_ms=700, ask_late_ms=50
)
"""The log is deleted as soon as it may be, and a copy that has been taken is put in place within
the time that is left for it."""


def a_copy_is_taken_while_the_log_is_deleted() -> None:
    """r2 begins from a copy of r1's store, which takes longer than a node that is away is waited
    for; behind it a copy for somebody else begins, and lasts."""
    stage = Stage(master=replace(SHAPE.master, truncation=TRUNCATION))
    log = stage.cluster.topics.log.name
    acks_for_the_changefeed(stage)
    serve_copies(stage, "m1", "r1", "r2")
    stage.until(lambda: len(stage.coherent()) == 2, "r1 and r2")
    stage.node("r2").crash()
    offset = stage.stores.get("r1").position().offset
    with ExitStack() as other:
        with stage.node("r1").copies.of(offset, "r2"):
            copy = stage.stores.get("r1").copy()
            for value in range(40):
                stage.settle(stage.update(1, value))
                stage.passing(100)
            later = stage.stores.get("r1").position().offset
            other.enter_context(stage.node("r1").copies.of(later, "r3"))
        stage.passing(1_000)  # r2 checks what it has, and opens it
        first, end = stage.cluster.bus.first(log), stage.cluster.bus.end(log)
        demand(first <= offset, "copy", f"the log begins at {first}, the copy was made at {offset}")
        stage.stores.put("r2", copy)
        stage.node("r2").start()
        stage.until(lambda: "r2" in stage.coherent(), "r2")
    stage.until(lambda: stage.cluster.bus.first(log) > end, "the log to be deleted again")


def terms_are_shorter_than_a_reader_may_be_away() -> None:
    """L11: all candidates begin anew, again and again, before one of them has heard for that long
    who reads the log. It is deleted all the same, and nothing of it that r2 needs, which is away in
    each term for less."""
    away_ms = 5_000
    settings = replace(TRUNCATION, away_ms=away_ms)
    stage = Stage(master=replace(SHAPE.master, truncation=settings, delete_every_ms=100))
    log, candidates = stage.cluster.topics.log.name, ("m1", "m2")
    acks_for_the_changefeed(stage)
    serve_copies(stage, *candidates, "r1", "r2")
    for _ in range(8):
        stage.until(lambda: len(stage.coherent()) == 2, "r1 and r2")
        begun_ns = stage.scheduler.now_ns
        for name in (*candidates, "r2"):
            stage.node(name).crash()
        for name in candidates:
            stage.node(name).start()
        for value in range(20):
            stage.settle(stage.update(1, value))
        stage.passing(300)  # what may be deleted is
        stage.node("r2").start()
        assert stage.scheduler.now_ns - begun_ns < away_ms * MS, "the term is too long to tell"
    first = stage.cluster.bus.first(log)
    demand(first > 0, "L11", "nothing of the log was deleted")


def serve_copies(stage: Stage, *names: str) -> None:
    """Start these nodes anew, each saying that copies are had from it."""
    for name in names:
        node = stage.node(name)
        node.crash()
        node.settings = replace(node.settings, serves=f"{name}:1")
        node.start()


def acks_for_the_changefeed(stage: Stage) -> None:
    """It has published all there is."""
    log, acks = stage.cluster.topics.log.name, stage.cluster.topics.acks.name

    def ack() -> None:
        end = stage.cluster.bus.end(log)
        said = Ack("changefeed", incarnation_of(b""), CHANGEFEED_ROLE, end, 0, 0, 0, False, "", 0)
        stage.cluster.bus.append(acks, 0, b"changefeed", stage.codec.encode(said))
        stage.scheduler.later(100 * MS, ack)

    ack()


# ------------------------------------------------------------------ answers, own records


def a_master_dies_before_it_answers() -> None:
    """L7 (races 13): decided and read back; the answer waited for r1 when the master died."""
    stage = Stage()
    cut_off(stage, "r1", 400)
    asked = stage.ask(stage.update(1, 11))
    stage.until(lambda: stage.row(1)[2] == 11, "the decision")
    stage.passing(20)
    assert asked not in stage.results, "C1"
    stage.node("m1").crash()
    stage.answer(asked)


def another_record_for_one_place() -> None:
    """L4 (races 5b): an append's fate is unknown, and it lands after all."""
    stage = Stage()
    stage.scripted["m1"].fates = ["unknown"]
    stage.scripted["m1"].late_ms = 6
    stage.ask(stage.update(1, 11))
    stage.until(lambda: not stage.scripted["m1"].fates, "the append")
    stage.scripted["m1"].produce_ms = 90  # so that the first lands while the next is on its way
    second = stage.ask(stage.update(2, 22))
    stage.passing(3)
    stage.scripted["m1"].produce_ms = 1
    stage.passing(10)  # it has landed and was read
    mine, true = stage.stores.get("m1").contents, stage.reference.store.contents
    same = mine.position != true.position or mine.exists == true.exists
    demand(same, "L6", f"m1 holds {mine.exists}, the log says {true.exists}")
    stage.answer(second)
    stage.passing(1_000)
    demand(stage.node("m1").up and stage.node("r1").up, "L2", "nodes stopped")


def an_own_record_behind_a_claim() -> None:
    """L1, L4: the broker acknowledges a record of a master that another one has deposed."""
    stage = Stage(own_appends=OwnAppendsSettings())
    stage.scripted["m1"].produce_ms = 2_500  # nothing is heard of m1 until m2 has claimed
    number = stage.ask(stage.update(1, 11))
    runner = stage.node("m1").runner
    assert runner is not None, "it is up"
    stage.until(lambda: runner.intake.reads_topic, "the log is fetched again")
    stage.scripted["m1"].deliver_ms = 9_000
    stage.until(lambda: stage.reference.position.epoch == 2, "m2's Claim")
    claim = stage.reference.position.offset - 1
    stage.scripted["m1"].produce_ms = 1
    stage.passing(3_000)  # its record has landed, and it knows where
    deposed = stage.node("m1").node
    assert deposed is not None, "it goes on until it hears of the Claim"
    demand(deposed.position.offset <= claim, "L1", "m1 goes on behind another's Claim")
    stage.answer(number)  # m2 decides it


# ------------------------------------------------------------------ verification


def two_writers_saw_the_same_row() -> None:
    """T1: the second one's genid is no longer the row's."""
    stage = Stage()
    seen = stage.genid(1)
    first = stage.settle(stage.update(1, 11, expect=seen, on_conflict="fail"))
    second = stage.settle(stage.update(1, 12, expect=seen, on_conflict="fail"))
    demand(bool(first.lsn) and not second.lsn, "T1", "a lost update")


def stage_with_old_users() -> Stage:
    """Column b is public in version 3 and not yet drained: somebody on r1 still uses version 2."""
    stage = Stage()
    stage.cluster.backfill.crash()
    reader = stage.node("r1").node
    assert reader is not None, "r1 is up"
    assert reader.agent is not None, "r1 serves"
    leases = reader.agent.leases
    stage.until(lambda: leases.acquire(1) is not None, "a lease")
    lease = leases.newest[1]
    stage.settle({"sql": "alter table t add column b bigint"})
    stage.until(lambda: stage.reference.catalog.newest(1).version == 2, "version 2")
    stage.until(lambda: leases.newest[1].version == 2, "the lease on 2")
    assert leases.acquire(1) is not None, "it is held"
    leases.release(lease)
    stage.until(lambda: stage.reference.catalog.newest(1).version == 3, "version 3")
    stage.passing(200)
    assert stage.reference.catalog.min_version(1) == 2, "version 3 is not drained"
    return stage


def an_older_writer_updates_the_row() -> None:
    """T0 (races 7): it can't see column b, and must not take it away."""
    stage = stage_with_old_users()
    fields = {"table": "t", "op": "update", "key": {"id": 1}}
    stage.settle({**fields, "values": {"b": 5}, "schema_version": 3})
    stage.settle({**fields, "values": {"a": 11}, "schema_version": 2})
    b = stage.reference.catalog.newest(1).by_name["b"].element_id
    demand(stage.row(1).get(b) == 5, "T0", f"b is lost: {stage.row(1)}")


def a_write_from_before_the_fence() -> None:
    """D5 (races 1): version 1 knows nothing of the index that is being filled."""
    stage = Stage()
    stage.cluster.backfill.crash()
    stage.settle({"sql": "create index i on t (a)"})
    stage.until(lambda: stage.job(1).phase is Phase.BACKFILLING, "the backfill")
    row = {"table": "t", "op": "insert", "key": {"id": 3}, "values": {"a": 3}}
    outcome = stage.settle({**row, "schema_version": 1, "on_conflict": "fail"})
    assert not outcome.lsn, "it is refused"


# ------------------------------------------------------------------ mastership


def a_standby_that_lags_behind() -> None:
    """Election, L1: its impression of the log is old (records come late); the master lives."""
    stage = Stage()
    stage.scripted["m2"].deliver_ms = 1_500
    stage.passing(3_000)
    demand(stage.reference.position.epoch == 1, "L1", "a living master was deposed")


# ------------------------------------------------------------------ jobs


def a_backfill_that_skips_rows() -> None:
    """An element goes public only after it was compared with the rows: here an index that is filled
    by key, since ranges leave none out."""
    stage = Stage()
    stage.cluster.backfill.crash()
    stage.settle({"sql": "create index i on t ((a + 1))"})
    stage.until(lambda: stage.job(1).phase is Phase.BACKFILLING, "the backfill")
    backfill = stage.cluster.topics.backfill.name
    chunk = Chunk(1, 1, 1, stage.job(1).versions[1], stage.job(1).element_id, ((1,),))
    for record in (chunk, ChunksEnd(1, 1, 1, 1)):
        stage.cluster.bus.append(backfill, 0, b"", stage.codec.encode(record))
    stage.until(lambda: stage.job(1).status.ended, "the job's end")
    assert stage.job(1).status is Status.FAILED, "row 2 has no entry"


def an_end_marker_of_another_run() -> None:
    """⚠ chunks: it ends nothing, and the job goes on when the backfill does."""
    stage = Stage()
    stage.cluster.backfill.crash()
    stage.settle({"sql": "create index i on t (a)"})
    stage.until(lambda: stage.job(1).phase is Phase.BACKFILLING, "the backfill")
    backfill = stage.cluster.topics.backfill.name
    stage.cluster.bus.append(backfill, 0, b"", stage.codec.encode(ChunksEnd(1, 7, 0, 0)))
    stage.passing(500)
    stage.cluster.backfill.start()
    stage.until(lambda: stage.job(1).status.ended, "the job's end")
    demand(stage.job(1).status is Status.SUCCEEDED, "⚠ chunks", stage.job(1).error)


def a_writer_sees_a_row_before_it_is_filled() -> None:
    """⚠ chunks: the new column's value is written, by an image since it is long, and nobody gets a
    verify error from it."""
    stage = Stage()
    seen, long = stage.genid(1), "b" * (MISSING_BYTES_MAX + 1)
    stage.settle({"sql": f"alter table t add column b text not null default '{long}'"})
    stage.until(lambda: stage.job(1).status.ended, "the job's end")
    b = stage.reference.catalog.newest(1).by_name["b"].element_id
    assert stage.row(1)[b] == long, "it is filled"
    outcome = stage.settle(stage.update(1, 11, expect=seen, on_conflict="fail"))
    demand(bool(outcome.lsn), "⚠ chunks", f"a schema change refuses a writer: {outcome.message}")


def validating(stage: Stage, job_id: int = 1) -> Findings:
    """A CHECK that two rows break, planned by an earlier release, has come to its validation, Spark
    has gone away; → what Spark has seen."""
    with planned_by_an_earlier_release():
        stage.settle({"sql": "alter table t add constraint k check (a > 1)"})
    stage.until(lambda: stage.job(job_id).phase is Phase.VALIDATING, "the validation")
    stage.cluster.backfill.crash()
    job = stage.job(job_id)
    (check,) = job.current.validates
    found = ((check, (1,)), (check, (2,)))
    return Findings(job_id, job.run, job.table_id, job.versions[job.table_id], 2, 2, found)


def arrive(stage: Stage, findings: Findings) -> None:
    backfill = stage.cluster.topics.backfill.name
    stage.cluster.bus.append(backfill, 0, b"", stage.codec.encode(findings))


def rows_are_mended_behind_sparks_back() -> None:
    """⚠ findings: two rows broke it when Spark read them, and do not when the master looks."""
    stage = Stage()
    stage.settle(stage.update(2, 1))
    stage.settle(stage.update(1, 1))
    findings = validating(stage)
    stage.settle(stage.update(1, 11))
    stage.settle(stage.update(2, 22))
    arrive(stage, findings)
    stage.until(lambda: stage.job(1).status.ended, "the job's end")
    demand(stage.job(1).status is Status.SUCCEEDED, "⚠ findings", stage.job(1).error)
    assert stage.job(1).dropped == 2, "each is looked up"


def a_copy_breaks_a_constraint_that_the_others_keep() -> None:
    """A replicant's row is not what the log says; who reads there relies on the constraint, too."""
    stage = Stage()
    for held in (stage.stores.get("r1")._committed, stage.stores.get("r1")._now):
        held.pairs[1, (1,)] = {**held.pairs[1, (1,)], 2: 0}
    stage.settle({"sql": "alter table t add constraint k check (a > 1)"})
    stage.until(lambda: stage.job(1).status.ended, "the job's end")
    job = stage.job(1)
    demand(job.status is Status.FAILED, "d ⊨ S", "r1 serves a row that breaks what it relies on")
    assert "1 row breaks constraint k: row (1,): check 'k': " in job.error
    assert "on node r1; node m1 finds nothing: compare their copies" in job.error


# ------------------------------------------------------------------ a broker that forgets


def a_broker_loses_an_acknowledged_tail() -> None:
    """L2 (races 24): r1 has not read what was lost, and reads what was written in its place. It
    applies nothing of that, so that nobody reads there what is not so."""
    stage = Stage()
    bus, log = stage.cluster.bus, stage.cluster.topics.log.name
    r1 = stage.node("r1")
    cut_off(stage, "r1", 60_000)
    stage.ask(stage.update(1, 11))
    stage.until(lambda: stage.row(1)[2] == 11, "the decision")
    stage.passing(5)  # everybody else has read it
    lost = stage.reference.position.sequence
    del bus._messages[log, 0][stage.reference.position.offset - 1 :]
    r1.crash()
    bus.on_append = lambda *_: None  # the observer has read what the others have not
    stage.ask(stage.update(2, 22))
    stage.passing(400)
    r1.heal()
    r1.start()
    r1.on_step = lambda _: None
    stage.passing(100)
    assert not any(isinstance(event, Stop) for event in r1.history), "one record tells nothing"
    kept = stage.stores.get("r1").contents.position
    demand(kept.sequence < lost, "L2", "r1 reads on behind a record that it never had")
    demand(not r1.reads(), "L2", "r1 serves, and lacks what was answered")


# ------------------------------------------------------------------ memory of requests


def a_request_older_than_its_memory(outcomes: OutcomeSettings) -> None:
    """L5 (P1): its outcome was collected; then its sender, told nothing, sends it once more."""
    stage = Stage(master=MasterSettings(outcomes=outcomes))
    fields = {**stage.update(1, 11), "id": stage.cluster.fresh_id()}
    stage.settle(fields)
    stage.passing(outcomes.horizon_ms + outcomes.ahead_ms_max)
    stage.settle(stage.update(2, 22))  # so that the log's own time goes on

    def collected() -> bool:
        return stage.reference.store.outcome(fields["id"]) is None

    stage.until(collected, "its collection", virtual_ms=60_000)
    stage.ask(fields)
    stage.passing(200)
