"""Interleavings that once did harm, or that a rule without a switch is there for."""

from __future__ import annotations

import pytest

from leasehold.adapters.codec.request_bytes import pack_fields
from leasehold.catalog.job import Phase, Status
from leasehold.in_process.node import MemoryNode
from leasehold.model.records.log import Barrier, Decisions
from leasehold.model.records.requests import ResultBatch
from leasehold.replication.effects import RequestsReceived, Stop, Warn
from leasehold.replication.election import ElectionSettings
from leasehold.replication.fast_path.requests import FastRequestSettings
from leasehold.replication.log.foreign import WAIT_MS
from tests.simulation.harm import demand
from tests.simulation.interleavings import arrive, validating
from tests.simulation.plan import SHAPE
from tests.simulation.simulation import MS
from tests.simulation.stage import Stage


def test_l4_a_record_passed_over_is_not_answered_after_a_restart() -> None:
    """m1's append is late: its epoch is over when it lands, so everybody skips it. m1 restarts
    and reads again from `answered_through` on, where that record stands among those that count."""
    stage = Stage()
    stage.scripted["m1"].fates = ["unknown"]
    stage.scripted["m1"].late_ms = 20
    stage.node("r1").isolate(stage.scheduler.now_ns + 3_000 * MS)  # so that nothing is answered
    first = stage.ask(stage.update(1, 11))
    stage.until(lambda: stage.reference.skipped > 0, "the late record")
    stage.until(lambda: stage.row(1)[2] == 11, "the same request, decided anew")
    stage.passing(250)  # a heartbeat behind it is committed, so it is read again
    assert first not in stage.results, "C1: r1 has not applied it"
    stage.node("m1").crash()
    stage.node("m2").crash()
    stage.node("m1").start()
    # A wrong answer is a Harm (L4); the right one comes when r1's lease is over.
    assert stage.answer(first).lsn == stage.reference.commits[first][0]


def test_t1_of_two_who_send_constants_for_one_row_as_they_saw_it_one_commits() -> None:
    """Goal: no sale is lost. Both have read the row, each sends what it has made of that, and
    neither says what is to become of a conflict: nothing brings the second one back, over the
    first one's value."""
    stage = Stage()
    seen = stage.genid(1)
    one, two = (stage.ask(stage.update(1, value, expect=seen)) for value in (11, 12))
    assert stage.answer(one).lsn
    refused = stage.answer(two)
    assert (refused.lsn, refused.code, refused.attempt) == (0, "40001", 1)
    assert refused.detail["genid"] == stage.genid(1)
    stage.passing(2_000)
    assert stage.row(1)[2] == 11
    assert stage.settle(stage.update(1, 12, expect=stage.genid(1))).lsn
    added = {**stage.update(1, 0, expect=seen), "values": {"a": {"expr": "a + 1"}}}
    assert stage.settle(added).attempt == 2, "what is computed of the newest row is retried"
    assert stage.row(1)[2] == 13


def test_l7_answers_are_given_again_after_both_candidates_died() -> None:
    stage = Stage()
    stage.node("r1").isolate(stage.scheduler.now_ns + 2_000 * MS)
    asked = [stage.ask(stage.update(key, 20 + key)) for key in (1, 2)]
    stage.until(lambda: stage.row(2)[2] == 22, "the decision")
    assert not stage.results.keys() & set(asked), "C1"
    for name in ("m1", "m2"):
        stage.node(name).crash()
    stage.passing(100)
    stage.node("m2").start()
    for request_id in asked:
        assert stage.answer(request_id).lsn


@pytest.mark.parametrize(
    "how", ["told to stop", "killed", "killed beside a silent node", "killed without Redis"]
)
def test_c6_a_term_goes_over_as_fast_as_can_be(how: str) -> None:
    """Whoever is told to stop hands it over, in a few rounds. Who is killed is found out by its
    connection, which nobody listens on any longer, and by time where that can't be told; then
    nobody is waited for but nodes that may answer reads and have not got what they would have
    to see (C1), and nobody waits twice."""
    stage = Stage()
    stage.passing(1_000)
    asked, m1 = [], stage.node("m1")
    for value in range(20):
        asked.append(stage.ask(stage.update(1, value)))
        stage.passing(3)
        if value == 10:
            if how == "told to stop":
                m1.stop()
            else:
                m1.crash()
            if "without Redis" in how:
                stage.cluster.pubsub.away = True
            if "silent" in how:
                stage.node("r2").crash()
            begun_ns = stage.scheduler.now_ns
    assert all(stage.answer(request_id).lsn for request_id in asked)
    took_ms = (stage.scheduler.now_ns - begun_ns) // MS
    assert not m1.up
    assert stage.reference.position.epoch == 2
    seen = ElectionSettings()
    detected_ms = seen.silent_ms + seen.gone_ms + 3 * seen.look_ms
    if "without Redis" in how:
        detected_ms = SHAPE.election_timeout_ms + 300
    elif how == "told to stop":
        detected_ms = 0
    assert took_ms < detected_ms + 80, took_ms


def test_a_change_that_touches_no_row_is_none_that_fills_them_because_a_term_is_new() -> None:
    """A new master waits with it until it knows what all nodes know: what it is asked at once is
    planned as what it is asked later."""
    stage = Stage()
    stage.passing(1_000)
    stage.node("m1").stop()
    stage.until(lambda: stage.reference.position.epoch == 2, "the next master")
    stage.settle({"sql": "ALTER TABLE t ADD COLUMN c integer DEFAULT 5"})
    assert not any(step.backfills for step in stage.job(1).steps)


def test_l7_what_was_told_to_a_master_that_stops_is_answered_by_it() -> None:
    """No other master knows who waits for it."""
    stage = Stage(fast_requests=FastRequestSettings())
    stage.passing(100)
    master = stage.master
    assert master is not None
    assert master.node is not None
    told: list[ResultBatch] = []
    stage.cluster.pubsub.subscribe_to_answers(b"requester", told.append)
    number = stage.cluster.fresh_id()
    body = pack_fields({"id": number, **stage.update(1, 77)})
    said = RequestsReceived(b"requester", 1, 0, (body,))
    assert stage.cluster.pubsub.publish_requests(master.node.term, said)
    term = master.node.term
    master.stop()
    assert not stage.cluster.pubsub.publish_requests(term, said), "nobody is promised more"
    stage.until(lambda: bool(told), "the answer")
    stage.until(lambda: not master.up, "its end")
    assert told[0].results[0].outcome.lsn == stage.reference.commits[number][0]


def test_a_master_does_not_spin_while_its_record_is_overdue() -> None:
    """It once ticked without a pause until the record was read back."""
    stage = Stage()
    stage.scripted["m1"].deliver_ms = 2_000  # it reads its own records back late
    steps = 0

    def counted(_: MemoryNode) -> None:
        nonlocal steps
        steps += 1
        demand(steps < 300, "liveness", f"{steps} steps in less than 1.5 s")

    stage.node("m1").on_step = counted
    stage.ask(stage.update(1, 11))
    stage.passing(1_500)
    assert steps > 0


def test_l2_a_broker_that_lost_an_acknowledged_tail_is_noticed() -> None:
    """races 24: r1 has not read what was lost, and reads what was written in its place."""
    stage = Stage()
    bus, log = stage.cluster.bus, stage.cluster.topics.log.name
    stage.node("r1").isolate(stage.scheduler.now_ns + 60_000 * MS)
    stage.settle(stage.update(1, 11))
    end = bus.end(log)
    lost = bus._messages[log, 0].pop()
    r1 = stage.node("r1")
    r1.crash()
    # The master goes on where it believes the log to end: its next record follows a lost one.
    bus.on_append = lambda *_: None  # the observer has read what the others have not
    for name in ("m1", "m2", "r1", "r2"):
        stage.node(name).on_step = lambda _: None
    stage.ask(stage.update(2, 22))
    stage.passing(400)
    assert bus.end(log) >= end
    assert lost.value is not None
    replaced = bus.read(log, 0, lost.offset)[0]
    assert replaced.value is not None
    assert isinstance(stage.codec.decode_log(replaced.value), Decisions)
    r1.heal()
    r1.start()
    stage.passing(WAIT_MS + 5_000)
    (why,) = (str(event.error) for event in r1.history if isinstance(event, Stop))
    assert "has lost" in why
    kept, missing = stage.stores.get("r1").contents.position, stage.codec.decode_log(lost.value)
    assert isinstance(missing, Decisions)
    assert kept.sequence == missing.sequence - 1, "nothing behind it was applied"


@pytest.mark.parametrize("grown", [False, True], ids=["empty", "grown beyond"])
@pytest.mark.parametrize("writes", [False, True], ids=["idle", "under writes"])
def test_l2_a_log_made_anew_ends_whoever_has_read_the_old_one(grown: bool, writes: bool) -> None:
    """Their reads tell nobody: nothing comes, or nothing that contradicts what was read. In an
    empty log nothing is answered and reads end with the leases; in one that has grown beyond, a
    term may go on for a moment, on all nodes alike, until Kafka is asked which log it is."""
    stage = Stage()
    bus, log = stage.cluster.bus, stage.cluster.topics.log.name
    nodes = [stage.node(name) for name in ("m1", "m2", "r1", "r2")]
    for node in nodes:
        node.on_step = lambda _: None  # the observer's log is the old one
    bus.on_append = lambda *_: None
    end = bus.end(log)
    bus.recreate(log)
    if grown:
        for number in range(end + 100):
            bus.append(log, 0, b"", stage.codec.encode(Barrier(b"%d" % number)))
    asked = stage.ask(stage.update(1, 11)) if writes else b""
    stage.passing(1_000)
    assert grown or not stage.coherent()
    stage.passing(3_000)
    assert [node.up for node in nodes] == [False] * 4
    for node in nodes:
        (why,) = (str(event.error) for event in node.history if isinstance(event, Stop))
        assert "recover-a-lost-log" in why, why
    if asked in stage.results:
        assert grown
        stores = [stage.stores.get(node.settings.name).contents for node in nodes]
        rows = [store.row(1, (1,)) for store in stores]
        assert all(row is not None and row.values[2] == 11 for row in rows), "C1"


def unwatched_stage() -> Stage:
    """The observer counts what is appended to the queues, and knows of one topic each."""
    stage = Stage()
    stage.cluster.bus.on_append = lambda *_: None
    for node in stage.cluster.nodes.values():
        node.on_step = lambda _: None
    return stage


def warnings(stage: Stage) -> list[str]:
    nodes = stage.cluster.nodes.values()
    return [event.words for node in nodes for event in node.history if isinstance(event, Warn)]


@pytest.mark.parametrize("office", ["in office", "next"])
def test_l3_a_queue_made_anew_is_read_from_its_begin(office: str) -> None:
    """Every request below the old topic's offset would count as decided: passed over in silence, by
    this master and all to come."""
    stage = unwatched_stage()
    for value in range(20):
        stage.settle(stage.update(1, value))
    if office == "next":
        assert stage.master is not None
        stage.master.crash()
    stage.cluster.bus.recreate(stage.cluster.topics.requests.name)
    asked = [stage.ask(stage.update(2, value)) for value in range(5)]
    stage.passing(20_000)
    assert all(stage.results.get(request) for request in asked)
    (said,) = {words for words in warnings(stage) if "first offset" in words}
    assert "deleted and recreated" in said
    assert "08007" in said
    # The next one goes on behind what is decided of the new topic.
    if office == "next":
        stage.node("m1").start()
        stage.passing(1_000)
    assert stage.master is not None
    stage.master.crash()
    stage.until(lambda: stage.master is not None, "another master")
    stage.settle(stage.update(2, 99))
    assert stage.master.node is not None
    assert stage.master.node.position.decided_through["requests"] == 6
    assert not any(isinstance(e, Stop) for n in stage.cluster.nodes.values() for e in n.history)


def test_l3_requests_that_were_deleted_undecided_are_counted_aloud() -> None:
    stage = unwatched_stage()
    for name in ("m1", "m2"):
        stage.node(name).crash()
    asked = [stage.ask(stage.update(1, value)) for value in range(5)]
    requests = stage.cluster.topics.requests.name
    bus = stage.cluster.bus
    bus.delete_below(requests, 0, bus.end(requests) - 2)
    for name in ("m1", "m2"):
        stage.node(name).start()
    stage.passing(20_000)
    assert [bool(stage.results.get(request)) for request in asked] == [False] * 3 + [True] * 2
    (said,) = warnings(stage)
    assert "3 offsets in between were deleted before they were decided" in said


def test_findings_of_a_cancelled_job_blame_nobody() -> None:
    """⚠ late findings: the job is cancelled while they travel; the next one of that name stands at
    the same place, over rows that are mended, when they arrive. Its own arrive twice."""
    stage = Stage()
    stage.settle(stage.update(2, 1))
    stage.settle(stage.update(1, 1))
    late = validating(stage)
    stage.settle({"job": 1, "action": "cancel"})
    stage.until(lambda: stage.job(1).status.ended, "the cancelled job's end")
    assert stage.job(1).status is Status.CANCELLED
    stage.cluster.backfill.start()
    own = validating(stage, 2)
    arrive(stage, late)
    stage.passing(500)
    assert stage.job(2).phase is Phase.VALIDATING, "they end nothing"
    for _ in range(2):
        arrive(stage, own)
    stage.until(lambda: stage.job(2).status.ended, "the job's end")
    job = stage.job(2)
    assert job.status is Status.FAILED
    assert [key for _, _, key, _ in job.findings] == [(1,), (2,)]
    assert "2 rows break constraint k: row (1,): check 'k': " in job.error
    assert stage.job(1).findings == ()
