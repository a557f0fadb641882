"""The master's watches: who is dead (D7), and when publishing may begin (D6)."""

from __future__ import annotations

from leasehold.lease.commands import (
    Change,
    KillSession,
    Liveness,
    MarkReady,
    OpenSession,
    Publish,
    RegisterEpoch,
    Renew,
)
from leasehold.lease.master.ledger_watch import (
    Answered,
    EpochLost,
    LedgerAway,
    LedgerWatch,
    Phase,
    RecordRun,
    RunRecorded,
    SeedFromLog,
    TimePassed,
)
from leasehold.lease.master.session_watch import SessionWatch
from leasehold.lease.replies import (
    LedgerRefused,
    LivenessReport,
    Published,
    RefusalReason,
    Seeded,
    SessionStatus,
)
from tests.support.lease.story import SECOND, TTL, World


def report(*counters: int, run_id: str = "run", seeded: bool = True) -> LivenessReport:
    sessions = tuple(
        SessionStatus(session, "a", counter, 0, False)
        for session, counter in enumerate(counters, start=1)
    )
    return LivenessReport(run_id, 1, seeded, True, sessions)


def test_d7_dead_is_what_this_master_has_seen_unchanged_for_a_ttl() -> None:
    """From the receipt of the first look to the sending of the last one."""
    watch = SessionWatch(1, TTL)
    assert watch.step(report(7, 7), 0, 10) == []
    assert watch.due_ns() == 10 + TTL
    assert watch.step(report(7, 8), TTL - 1, TTL) == []
    assert watch.step(report(7, 8), TTL + 9, TTL + 20) == []
    assert watch.step(report(7, 8), TTL + 10, TTL + 20) == [KillSession(1, 1, 7)]


def test_d7_a_new_master_and_a_new_run_id_start_the_sighting_afresh() -> None:
    watch = SessionWatch(1, TTL)
    watch.step(report(7), 0, 0)
    assert watch.step(report(7, run_id="other"), TTL, TTL) == []
    assert SessionWatch(2, TTL).step(report(7), 10 * TTL, 10 * TTL) == []


def test_d7_no_clock_but_the_masters_own_decides() -> None:
    """Races 10: Redis's wall clock jumps; nothing in the ledger depends on it: keys never expire.
    The story: an agent that renews is alive however often the master looks."""
    world = World()
    master = world.ready_master()
    agent = world.agent("n1")
    agent.use()
    for _ in range(60):
        world.pass_time(SECOND, agent)
        master.look()
    assert world.printed() == "/1/n1"


def test_d6_the_way_to_ready() -> None:
    watch = LedgerWatch(3, "old", TTL)
    closed = LivenessReport("new", 2, False, False, ())
    assert watch.step(Answered(closed), 0) == [RegisterEpoch(3)]
    assert watch.step(Answered(closed), 0) == [], "not asked twice"
    registered = closed._replace(epoch=3)
    assert watch.step(Answered(registered), 0) == [SeedFromLog("new")]
    assert watch.step(Answered(Seeded("new", False, 0)), 5) == []
    assert watch.step(Answered(Seeded("new", True, 0)), 10) == []
    assert watch.due_ns() == 10 + TTL
    assert "register what they hold (15.0 s left)" in watch.describe(10)
    assert watch.step(TimePassed(), 9 + TTL) == []
    assert watch.step(Answered(registered._replace(seeded=True)), 10) == []
    assert watch.step(TimePassed(), 10 + TTL) == [RecordRun("new")]
    assert not watch.may_publish
    assert watch.step(RunRecorded("new"), 11 + TTL) == [MarkReady(3, "new")]
    assert watch.phase is Phase.MARKING


def test_d6_a_ready_ledger_on_record_is_taken_at_once() -> None:
    watch = LedgerWatch(3, "run", TTL)
    assert watch.step(Answered(LivenessReport("run", 3, True, True, ())), 0) == []
    assert watch.may_publish


def test_d6_a_missing_key_means_closed_though_the_run_id_is_on_record() -> None:
    """FLUSHALL keeps the run id: a wait of a full TTL all the same."""
    watch = LedgerWatch(3, "run", TTL)
    watch.step(Answered(LivenessReport("run", 3, True, True, ())), 0)
    emptied = LivenessReport("run", 0, False, False, ())
    assert watch.step(Answered(emptied), 0) == [RegisterEpoch(3)]
    assert watch.step(Answered(emptied._replace(epoch=3)), 0) == [SeedFromLog("run")]
    watch.step(Answered(Seeded("run", True, 0)), 0)
    assert watch.step(TimePassed(), TTL - 1) == []
    assert watch.step(TimePassed(), TTL) == [MarkReady(3, "run")], "already on record"


def test_d6_another_run_id_during_the_wait_starts_again() -> None:
    watch = LedgerWatch(1, "", TTL)
    watch.step(Answered(LivenessReport("one", 1, False, False, ())), 0)
    watch.step(Answered(Seeded("one", True, 0)), 0)
    two = LivenessReport("two", 1, False, False, ())
    assert watch.step(Answered(two), 5) == [SeedFromLog("two")]
    assert watch.step(Answered(Seeded("one", True, 0)), 6) == [Liveness()], "an answer of the old"


def test_d6_a_refusal_or_silence_begins_again_with_a_look() -> None:
    watch = LedgerWatch(1, "run", TTL)
    ready = LivenessReport("run", 1, True, True, ())
    watch.step(Answered(ready), 0)
    assert watch.step(LedgerAway(), 1) == []
    assert not watch.may_publish
    watch.step(Answered(ready), 2)
    refused = LedgerRefused(RefusalReason.NOT_READY, "run")
    assert watch.step(Answered(refused), 3) == [Liveness()]
    assert not watch.may_publish


def test_d2_a_higher_epoch_deposes() -> None:
    watch = LedgerWatch(1, "run", TTL)
    seen = LivenessReport("run", 2, True, True, ())
    assert watch.step(Answered(seen), 0) == [EpochLost(2)]
    assert watch.step(Answered(LivenessReport("run", 1, True, True, ())), 0) == []
    other = LedgerWatch(1, "run", TTL)
    refused = LedgerRefused(RefusalReason.EPOCH, "run", epoch=2)
    assert other.step(Answered(refused), 0) == [EpochLost(2)]


def test_d6_nothing_is_published_for_a_ttl_and_a_new_master_waits_afresh() -> None:
    """Races 3."""
    world = World()
    first = world.ready_master()
    world.ledger.restart(lose_state=True)
    first.look()
    world.pass_time(TTL - SECOND)
    first.tick()
    assert isinstance(first.publish(), LedgerRefused)
    second = world.master(epoch=2)  # the first is dead: the run id is not on record yet
    second.look()
    world.pass_time(TTL - SECOND)
    second.tick()
    assert isinstance(second.publish(), LedgerRefused)
    world.pass_time(SECOND)
    second.tick()
    assert isinstance(second.publish(), Published)
    first.look()
    assert first.lost


def test_d2_the_ledger_one_ahead_of_the_log_is_seen_on_takeover() -> None:
    """Races 15: published, then the master died before the log; the next may repeat the step."""
    world = World()
    master = world.ready_master()
    command = Publish(1, (Change(1, 1, 2),), intent=77)
    assert isinstance(master.call(command), Published)
    second = world.master(epoch=2)
    second.look()
    assert second.watch.may_publish, "the state was not lost: no wait"
    assert world.ledger.state().tables[1].current == world.log[1][0] + 1
    reply = second.call(command._replace(epoch=2))
    assert isinstance(reply, Published)
    assert reply.already


def test_d7_a_killed_session_is_swept() -> None:
    world = World()
    master = world.ready_master()
    master.call(OpenSession("ghost", 1_000))
    master.call(Renew(1_000, 1, 0, 0))
    master.look()
    world.now_ns += TTL
    master.look()
    assert world.ledger.state().sessions == {}


def test_d6_ready_in_redis_but_not_on_record_is_not_believed() -> None:
    """A deposed master may have said so; the log has not."""
    watch = LedgerWatch(3, "old", TTL)
    seen = LivenessReport("new", 3, True, True, ())
    assert watch.step(Answered(seen), 0) == [SeedFromLog("new")]


def test_d6_a_key_that_goes_missing_during_the_wait_starts_it_again() -> None:
    watch = LedgerWatch(1, "", TTL)
    closed = LivenessReport("run", 1, False, False, ())
    watch.step(Answered(closed), 0)
    watch.step(Answered(Seeded("run", True, 0)), 0)
    assert watch.phase is Phase.WAITING
    assert watch.step(Answered(closed), TTL - 1) == [SeedFromLog("run")]
    watch.step(Answered(Seeded("run", True, 0)), TTL - 1)
    assert watch.step(TimePassed(), TTL) == []
