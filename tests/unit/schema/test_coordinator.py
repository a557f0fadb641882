"""Jobs driven from the log: D2, D4, D5, D6, D9 by name, take-over at any point, roll-back.

Method: a world with the pure ledger in which every step is checked for the harm each rule
prevents; then each rule is turned off and the harm must be found.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from leasehold.lease import ledger
from leasehold.lease.commands import (
    NEVER_LATE,
    Acquire,
    Holders,
    Lease,
    OpenSession,
    Publish,
    Release,
    SetMinVersion,
)
from leasehold.lease.ledger_state import LedgerState, SessionRow
from leasehold.model.errors import (
    MalformedRequest,
    OutOfRange,
    TableBusy,
    UnknownJob,
    WrongJobState,
)
from leasehold.model.records import DescriptorWrite, JobWrite, LedgerRun, MinVersion
from leasehold.schema.chunk_gate import accept_chunk
from leasehold.schema.coordinator_effects import (
    CoherentNodes,
    LeaseAcked,
    Reported,
)
from leasehold.schema.job import Phase, Status
from leasehold.schema.job_rules import JobRules
from leasehold.schema.states import State
from tests.models.summary import AddLine, ModelLine
from tests.unit.schema.job_world import RUN, Harm, World, same_but_for_numbers

TABLE = "CREATE TABLE t (id bigint PRIMARY KEY, a integer)"
INDEX = "CREATE INDEX i ON t (a)"
OPTIONAL = "ALTER TABLE t ADD COLUMN b text"
REQUIRED = "ALTER TABLE t ADD COLUMN b integer NOT NULL DEFAULT 5"
EVERY_CHANGE = (INDEX, OPTIONAL, REQUIRED)


def ready_world(seed: int = 0, rules: JobRules | None = None, agents: int = 0) -> World:
    world = World(seed, agents=agents, rules=rules or JobRules())
    world.ddl(TABLE)
    world.until_ready()
    return world


def hold(world: World, version: int, session: int = 77, agent: str = "slow") -> None:
    ledger.apply(world.ledger, OpenSession(agent, session), RUN)
    granted = ledger.apply(world.ledger, Acquire(session, NEVER_LATE, 1, version), RUN)
    assert type(granted).__name__ == "Granted", granted


def reach(world: World, step: int, phase: Phase) -> None:
    """Calm work up to a place of job 1; chunks are decided when nothing else is due."""
    for _ in range(1_000):
        if (world.job().step, world.job().phase) == (step, phase):
            return
        if not world.calm() and not world.perform_fill():
            world.pass_time(5)
    raise AssertionError((world.job().step, world.job().phase))


# ------------------------------------------------------------------ the way forth


@pytest.mark.parametrize("sql", EVERY_CHANGE)
def test_job_succeeds_and_the_element_is_public(sql: str) -> None:
    world = ready_world()
    job = world.ddl(sql)
    world.settle()
    assert world.job().status is Status.SUCCEEDED
    assert world.job().phase is Phase.DONE
    element = world.table().element(job.element_id)
    assert element is not None
    assert element.state is State.PUBLIC
    assert world.catalog.min_version(1) == world.table().version == 1 + len(job.steps)


def test_optional_column_takes_five_records() -> None:
    """Intent, descriptor, fence with the next intent, descriptor, fence with the end."""
    world = ready_world()
    before = len(world.log)
    world.ddl(OPTIONAL)
    world.settle()
    kinds = [[type(write).__name__ for write in writes] for writes in world.log[before:]]
    assert kinds == [
        ["JobWrite"],
        ["DescriptorWrite", "JobWrite"],
        ["MinVersion", "JobWrite"],
        ["DescriptorWrite", "JobWrite"],
        ["MinVersion", "JobWrite"],
    ]


def test_d5_fence_is_the_lsn_of_the_commit_that_raises_min_version() -> None:
    world = ready_world()
    world.ddl(INDEX)
    reach(world, 1, Phase.BACKFILLING)
    fence = len(world.log)
    assert any(isinstance(write, MinVersion) for write in world.log[fence - 1])
    assert world.job().fence_lsn == fence


def test_marks_tell_the_time_of_every_phase() -> None:
    world = ready_world()
    world.ddl(REQUIRED)
    world.settle()
    assert [(step, phase) for step, phase, _ in world.job().marks] == [
        (0, "publishing"),
        (0, "draining"),
        (1, "publishing"),
        (1, "draining"),
        (1, "backfilling"),
        (1, "verifying"),
        (2, "publishing"),
        (2, "draining"),
        (2, "done"),
    ]
    times = [at for _, _, at in world.job().marks]
    assert times == sorted(set(times))


def test_two_tables_change_side_by_side() -> None:
    world = ready_world()
    world.ddl("CREATE TABLE u (id bigint PRIMARY KEY)")
    world.until_ready()
    hold(world, 1)
    world.ddl(INDEX)
    world.ddl("ALTER TABLE u ADD COLUMN x integer")
    world.until(lambda: world.job(2).status is Status.SUCCEEDED)
    assert world.job(1).phase is Phase.DRAINING


def test_d9_second_job_on_a_table_is_refused_naming_the_first() -> None:
    world = ready_world()
    world.ddl(INDEX)
    with pytest.raises(TableBusy, match=r"job 1 \(create index, running\)"):
        world.ddl(OPTIONAL)
    world.settle()
    world.ddl(OPTIONAL)


# ------------------------------------------------------------------ D2, D4: who is waited for


def test_d4_drain_waits_for_a_lease_below_and_names_it() -> None:
    world = ready_world()
    hold(world, 1)
    world.ddl(OPTIONAL)
    reach(world, 0, Phase.DRAINING)
    world.until(lambda: bool(world.coordinator.blockers(1)))
    assert [(h.agent, h.version) for h in world.coordinator.blockers(1)] == [("slow", 1)]
    assert "slow" in world.coordinator.waiting_for(1)
    for _ in range(50):
        world.calm() or world.pass_time(50)
    assert world.job().phase is Phase.DRAINING
    ledger.apply(world.ledger, Release(77, NEVER_LATE, 1, 1), RUN)
    world.give(LeaseAcked(1, 2))
    reach(world, 1, Phase.PUBLISHING)
    assert world.coordinator.blockers(1) == ()


def test_d4_acknowledgement_wakes_the_waiter_at_once() -> None:
    world = ready_world()
    hold(world, 1)
    world.ddl(OPTIONAL)
    reach(world, 0, Phase.DRAINING)
    world.until(lambda: bool(world.coordinator.blockers(1)))
    while world.calm():
        pass
    assert not world.calls
    world.give(LeaseAcked(1, 2))
    assert [type(call.command) for call in world.calls] == [Holders]


def test_d4_an_acknowledgement_alone_drains_nothing() -> None:
    world = ready_world()
    hold(world, 1)
    world.ddl(OPTIONAL)
    reach(world, 0, Phase.DRAINING)
    for _ in range(20):
        world.give(LeaseAcked(1, 2))
        world.calm()
    assert world.job().phase is Phase.DRAINING


def test_d4_lease_taken_between_the_look_and_the_fence_is_waited_for() -> None:
    """An agent whose store lags may acquire v until the ledger's own min_version is raised."""
    world = ready_world()
    world.ddl(OPTIONAL)
    reach(world, 0, Phase.DRAINING)
    while not any(isinstance(call.command, SetMinVersion) for call in world.calls):
        assert world.calm()
    hold(world, 1)
    for _ in range(30):
        world.calm() or world.pass_time(20)
    assert world.job().phase is Phase.DRAINING
    assert [h.agent for h in world.coordinator.blockers(1)] == ["slow"]


def test_d7_lease_of_a_session_that_stands_still_for_a_ttl_blocks_no_longer() -> None:
    world = ready_world()
    hold(world, 1)
    world.dead.add(77)
    world.ddl(OPTIONAL)
    reach(world, 0, Phase.DRAINING)
    world.until(lambda: bool(world.coordinator.blockers(1)))
    world.settle()
    assert world.job().status is Status.SUCCEEDED
    assert 77 not in world.ledger.sessions


def test_polls_back_off_and_stay_bounded() -> None:
    world = ready_world()
    hold(world, 1)
    world.ddl(OPTIONAL)
    reach(world, 0, Phase.DRAINING)
    world.until(lambda: bool(world.coordinator.blockers(1)))
    asked = 0
    for _ in range(1_000):  # ten seconds
        world.pass_time(10)
        asked += sum(isinstance(call.command, Holders) for call in world.calls)
        while world.calm():
            pass
    assert 18 <= asked <= 30


def test_d2_publish_is_refused_while_a_lease_below_is_held() -> None:
    """As after a fence that was wrongly early: the ledger itself refuses, and names the holder."""
    world = ready_world()
    world.ddl(OPTIONAL)
    reach(world, 1, Phase.PUBLISHING)
    world.ledger.sessions[5] = world.ledger.sessions.get(5) or SessionRow("old", 1, False)
    world.ledger.put(5, {Lease(1, 1)})
    for _ in range(20):
        world.perform_call() or world.pass_time(50)
    assert world.job().phase is Phase.PUBLISHING
    assert [h.agent for h in world.coordinator.blockers(1)] == ["old"]
    world.ledger.put(5, ())
    world.settle()
    assert world.job().status is Status.SUCCEEDED


# ------------------------------------------------------------------ the ledger (D6)


def test_d6_ledger_away_job_waits_and_says_so() -> None:
    world = ready_world()
    world.ledger_up = False
    world.ddl(OPTIONAL)
    for _ in range(50):
        world.calm() or world.pass_time(50)
    assert world.job().phase is Phase.PUBLISHING
    assert "can't be reached" in world.coordinator.waiting_for(1)
    world.ledger_up = True
    world.settle()
    assert world.job().status is Status.SUCCEEDED


def test_d6_lost_ledger_is_seeded_from_the_log_and_its_run_id_recorded_after_the_grace() -> None:
    world = ready_world()
    assert world.catalog.ledger_run == RUN
    world.ddl(INDEX)
    reach(world, 0, Phase.DRAINING)
    world.ledger, world.run_id = LedgerState(), "run-2"
    began = world.now_ns
    world.until(lambda: world.catalog.ledger_run == "run-2")
    assert world.now_ns - began >= 100 * 1_000_000, "one TTL"
    world.settle()
    assert world.job().status is Status.SUCCEEDED
    assert world.ledger.tables[1].current == world.table().version


def test_d6_record_of_the_run_id_is_a_write_of_no_job() -> None:
    world = World(agents=0)
    world.until(lambda: any(isinstance(w, LedgerRun) for ws in world.log for w in ws))


def test_new_tables_are_made_known_to_the_ledger() -> None:
    world = ready_world()
    for name in "uvw":
        world.ddl(f"CREATE TABLE {name} (id bigint PRIMARY KEY)")
    world.until_ready()
    assert sorted(world.ledger.tables) == [1, 2, 3, 4]
    world.takeover()
    world.until_ready()
    assert sorted(world.ledger.tables) == [1, 2, 3, 4]


def test_deposed_master_drives_nothing() -> None:
    world = ready_world()
    world.ddl(OPTIONAL)
    world.ledger.epoch = 9
    for _ in range(50):
        world.calm() or world.pass_time(50)
    assert world.coordinator.ledger.epoch_lost == 9
    assert world.job().phase is Phase.PUBLISHING
    assert "another node is master" in world.coordinator.waiting_for(1)


# ------------------------------------------------------------------ take-over


@pytest.mark.parametrize("sql", EVERY_CHANGE)
def test_takeover_at_every_point(sql: str) -> None:
    """The master ends after n things have happened, for every n until the job is over."""
    for point in range(200):
        world = ready_world()
        job = world.ddl(sql)
        for _ in range(point):
            if not (world.calm() or world.perform_fill()):
                world.pass_time(5)
        ended = world.job().status.ended
        world.takeover()
        world.settle()
        assert world.job().status is Status.SUCCEEDED, point
        assert world.table().version == 1 + len(job.steps), "no version was published twice"
        if ended:
            return
    raise AssertionError("the job never ended by itself")


def test_d2_takeover_with_the_ledger_one_ahead_of_the_log() -> None:
    world = ready_world()
    world.ddl(OPTIONAL)
    while not any(isinstance(call.command, Publish) for call in world.calls):
        world.calm() or world.pass_time(5)
    world.perform_call()
    assert world.ledger.tables[1].current == 2
    assert world.table().version == 1
    world.takeover()
    world.settle()
    assert world.job().status is Status.SUCCEEDED
    assert world.table().version == 3


def test_takeover_while_verifying_asks_again() -> None:
    world = ready_world()
    world.ddl(INDEX)
    reach(world, 1, Phase.VERIFYING)
    world.reports.clear()  # they went to the master that is gone
    world.takeover()
    world.settle()
    assert world.job().status is Status.SUCCEEDED
    assert [p for _, p, _ in world.job().marks].count("verifying") == 2


@pytest.mark.parametrize("seed", range(60))
def test_any_schedule_with_agents_and_crashes(seed: int) -> None:
    world = World(seed, agents=3)
    world.ddl(TABLE)
    before = world.table()
    sql = EVERY_CHANGE[seed % 3]
    job = world.ddl(sql)
    for _ in range(300):
        world.one_of_many(crash=0.02)
        if world.random.random() < 0.01:
            world.ledger_up = not world.ledger_up
        if seed % 4 == 0 and world.random.random() < 0.005:
            _try(world, world.random.choice(("pause", "resume", "cancel")))
    world.ledger_up = True
    _try(world, "resume")
    world.settle(20_000)
    element = world.table().element(job.element_id)
    if world.job().status is Status.SUCCEEDED:
        assert element is not None
        assert element.state is State.PUBLIC
    else:
        assert world.job().status is Status.CANCELLED
        assert same_but_for_numbers(before, world.table())
    assert world.catalog.min_version(1) == world.table().version
    for late in world.late_chunks:
        assert not accept_chunk(world.catalog, late)


def _try(world: World, action: str) -> None:
    with suppress(WrongJobState):
        world.control(action)


# ------------------------------------------------------------------ verification


def test_findings_on_a_node_roll_the_job_back_and_stay_with_it() -> None:
    world = ready_world()
    before = world.table()
    world.findings["r1"] = 5
    world.ddl(INDEX)
    world.settle()
    job = world.job()
    assert job.status is Status.FAILED
    assert "found 5 differences on node r1" in job.error
    assert [tuple(f)[:2] for f in job.findings] == [(4, job.element_id)] * 2
    assert [step.state for step in job.steps] == [
        State.DELETE_ONLY,
        State.WRITE_ONLY,
        State.DELETE_ONLY,
        State.ABSENT,
    ]
    assert same_but_for_numbers(before, world.table())
    assert world.table().next_element_id == before.next_element_id + 1
    assert world.ddl(INDEX).element_id == job.element_id + 1, "an id is never used again"


def test_node_that_stops_being_coherent_is_no_longer_waited_for() -> None:
    world = ready_world()
    world.ddl(INDEX)
    reach(world, 1, Phase.VERIFYING)
    world.reports = [report for report in world.reports if report.node != "r2"]
    while world.calm():
        pass
    assert world.job().phase is Phase.VERIFYING
    assert world.coordinator.waiting_for(1) == "r2 to verify the element"
    world.coherent = frozenset({"m", "r1"})
    world.give(CoherentNodes(world.coherent))
    while world.calm():
        pass
    assert world.job().status is Status.SUCCEEDED
    assert [p for _, p, _ in world.job().marks].count("verifying") == 1, "waited out, not let go"


def test_without_coherent_nodes_the_masters_own_report_counts() -> None:
    world = ready_world()
    world.coherent = frozenset()
    world.give(CoherentNodes(frozenset()))
    world.ddl(INDEX)
    reach(world, 1, Phase.VERIFYING)
    while world.calm():
        pass
    assert (world.job().step, world.job().phase) != (1, Phase.VERIFYING)


def test_masters_own_report_is_always_waited_for() -> None:
    world = ready_world()
    world.coherent = frozenset({"r1", "r2"})  # a master that serves no reads asks for no lease
    world.give(CoherentNodes(world.coherent))
    world.ddl(INDEX)
    reach(world, 1, Phase.VERIFYING)
    world.reports = [report for report in world.reports if report.node != "m"]
    while world.calm():
        pass
    assert world.job().phase is Phase.VERIFYING


def test_nodes_that_are_clean_but_differ_fail_the_job() -> None:
    world = ready_world()
    world.ddl(INDEX)
    reach(world, 1, Phase.VERIFYING)
    world.reports = [r._replace(checksum=b"other") if r.node == "r1" else r for r in world.reports]
    world.settle()
    assert world.job().status is Status.FAILED
    assert "differ" in world.job().error


def test_report_of_an_earlier_verification_does_not_count() -> None:
    world = ready_world()
    world.ddl(INDEX)
    reach(world, 1, Phase.VERIFYING)
    old = list(world.reports)
    world.reports.clear()
    world.pass_time(1_001)  # nobody reports within the bound: asked again
    world.perform_write()
    world.reports.clear()
    for report in old:
        world.give(Reported(report))
    assert (world.job().step, world.job().phase) == (1, Phase.VERIFYING)
    assert not world.writes


def test_verification_nobody_reports_is_tried_again_then_given_up() -> None:
    world = ready_world()
    before = world.table()
    world.ddl(INDEX)
    reach(world, 1, Phase.VERIFYING)
    for _ in range(2_000):
        world.reports.clear()
        world.perform_call() or world.perform_write() or world.pass_time(50)
        if world.job().status.ended:
            break
    assert world.job().status is Status.FAILED
    assert "5 tries" in world.job().error
    assert same_but_for_numbers(before, world.table())


def test_node_that_could_not_check_is_asked_again() -> None:
    world = ready_world()
    world.node_errors["r1"] = 2
    world.ddl(INDEX)
    reach(world, 2, Phase.DONE)
    assert world.job().status is Status.SUCCEEDED
    assert [p for _, p, _ in world.job().marks].count("verifying") == 3


# ------------------------------------------------------------------ control


@pytest.mark.parametrize(
    ("sql", "step", "phase"),
    [
        (INDEX, 0, Phase.PUBLISHING),
        (INDEX, 0, Phase.DRAINING),
        (INDEX, 1, Phase.PUBLISHING),
        (INDEX, 1, Phase.DRAINING),
        (INDEX, 1, Phase.BACKFILLING),
        (INDEX, 1, Phase.VERIFYING),
        (INDEX, 2, Phase.PUBLISHING),
        (OPTIONAL, 0, Phase.DRAINING),
        (OPTIONAL, 1, Phase.PUBLISHING),
        (REQUIRED, 1, Phase.BACKFILLING),
    ],
)
@pytest.mark.parametrize("crash", [False, True])
def test_cancel_before_the_point_of_no_return(
    sql: str, step: int, phase: Phase, crash: bool
) -> None:
    world = ready_world()
    before = world.table()
    world.ddl(sql)
    reach(world, step, phase)
    world.control("cancel")
    if crash:
        world.takeover()
    world.settle()
    assert world.job().status is Status.CANCELLED
    assert same_but_for_numbers(before, world.table())
    assert world.catalog.min_version(1) == world.table().version
    world.ddl(sql)
    world.settle()
    assert world.job(2).status is Status.SUCCEEDED


def test_cancel_while_the_ledger_has_published_uses_that_version_up() -> None:
    """PUBLISHING, and the ledger is one ahead: the next job takes the very number."""
    world = ready_world()
    world.ddl(INDEX)
    while not any(isinstance(call.command, Publish) for call in world.calls):
        world.calm() or world.pass_time(5)
    world.perform_call()
    world.writes.clear()
    world.control("cancel")
    assert world.job().status is Status.CANCELLED
    assert (world.ledger.tables[1].current, world.table().version) == (2, 1)
    world.ddl(OPTIONAL)
    world.settle()
    assert world.job(2).status is Status.SUCCEEDED
    assert world.table().version == world.ledger.tables[1].current == 3


def test_cancel_after_the_point_of_no_return_is_refused() -> None:
    world = ready_world()
    world.ddl(INDEX)
    reach(world, 2, Phase.DRAINING)
    with pytest.raises(WrongJobState, match="point of no return"):
        world.control("cancel")


def test_paused_job_does_nothing_until_resumed() -> None:
    world = ready_world()
    world.ddl(INDEX)
    reach(world, 1, Phase.PUBLISHING)
    world.control("pause")
    log = len(world.log)
    for _ in range(50):
        world.calm() or world.pass_time(50)
    assert len(world.log) == log
    assert world.coordinator.waiting_for(1) == "somebody to resume it: it is paused"
    world.takeover()
    world.control("resume")
    world.settle()
    assert world.job().status is Status.SUCCEEDED


def test_chunks_of_a_paused_job_are_taken_and_verified_after_resume() -> None:
    world = ready_world()
    world.ddl(INDEX)
    reach(world, 1, Phase.BACKFILLING)
    world.control("pause")
    while not world.job().chunks_ended:
        assert world.perform_fill()
    world.calm()
    assert world.job().phase is Phase.BACKFILLING
    world.control("resume")
    world.settle()
    assert world.job().status is Status.SUCCEEDED


def test_settings_of_a_job_are_changed_while_it_runs() -> None:
    world = ready_world()
    world.ddl(INDEX)
    reach(world, 1, Phase.BACKFILLING)
    world.control("set", rows_per_second=1_000)
    assert world.job().settings == {"rows_per_second": 1_000, "chunk_rows": 5_000}
    world.settle()
    assert world.job().status is Status.SUCCEEDED


def test_control_refused_with_a_sentence() -> None:
    world = ready_world()
    with pytest.raises(UnknownJob):
        world.control("pause")
    world.ddl(INDEX)
    with pytest.raises(WrongJobState, match="only a paused job"):
        world.control("resume")
    with pytest.raises(MalformedRequest, match="known are pause"):
        world.control("stop")
    with pytest.raises(MalformedRequest, match="nothing to set"):
        world.control("set")
    with pytest.raises(MalformedRequest, match="'speed'"):
        world.control("set", speed=1)
    with pytest.raises(OutOfRange):
        world.control("set", chunk_rows=0)
    reach(world, 1, Phase.DRAINING)
    world.control("cancel")
    for action in ("cancel", "pause"):
        with pytest.raises(WrongJobState, match="rolling back"):
            world.control(action)
    world.settle()
    with pytest.raises(WrongJobState, match="has ended: cancelled"):
        world.control("cancel")


def test_a_write_made_stale_by_a_control_is_dropped() -> None:
    """The coordinator's Write was given before the cancel was decided: its job is no more."""
    world = ready_world()
    world.ddl(INDEX)
    while not any(isinstance(w, DescriptorWrite) for write in world.writes for w in write.writes):
        world.calm() or world.pass_time(5)
    (stale,) = world.writes
    world.control("cancel")
    assert not stale.holds(world.catalog)
    world.settle()
    assert world.table().version == 1


def test_counted_chunks_make_a_write_stale_so_that_no_count_is_lost() -> None:
    world = ready_world()
    world.ddl(INDEX)
    reach(world, 1, Phase.BACKFILLING)
    write = world.coordinator._controlled(replace(world.job(), status=Status.PAUSED))
    world.perform_fill()
    assert not write.holds(world.catalog)


# ------------------------------------------------------------------ each rule turned off


def harm_found(rules: JobRules, seeds: range = range(40)) -> str:
    for seed in seeds:
        world = World(seed, agents=3, rules=rules)
        world.ddl(TABLE)
        try:
            world.until_ready()
            for _ in range(60):
                world.perform_agent()
            world.ddl(INDEX)
            world.settle(3_000)
            _judge_marks(world)
        except (Harm, AssertionError) as found:
            return str(found)
    return ""


def _judge_marks(world: World) -> None:
    phases = [phase for _, phase, _ in world.job().marks]
    if world.job().status is Status.SUCCEEDED and "verifying" not in phases:
        raise Harm("an element went public unverified")


def test_all_rules_on_no_harm() -> None:
    assert harm_found(JobRules(), range(20)) == ""


@pytest.mark.parametrize(
    ("rule", "harm"),
    [
        ("drain_before_fence", "D4"),
        ("fence_before_next", "D5"),
        ("verify_before_public", "unverified"),
        ("intent_before_publish", "D2"),
    ],
)
def test_rule_turned_off_does_harm(rule: str, harm: str, model_line: AddLine) -> None:
    found = harm_found(replace(JobRules(), **{rule: False}))
    assert harm in found, found
    words = f"random schedules: harm shown, {found[:60]}"
    model_line(ModelLine(harm, f"{rule} off", 1, 1, False, words))


def test_publish_checks_holders_turned_off_makes_three_versions_live() -> None:
    world = ready_world(rules=JobRules(publish_checks_holders=False))
    world.ddl(OPTIONAL)
    reach(world, 1, Phase.PUBLISHING)
    world.ledger.sessions[5] = SessionRow("old", 1, False)
    world.ledger.put(5, {Lease(1, 1)})
    with pytest.raises(Harm, match="three versions"):
        world.settle()


def test_intent_names_the_version_before_the_ledger_is_asked() -> None:
    world = ready_world()
    world.ddl(INDEX)
    world.settle()
    asked = [change.to_version for _, command in world.published for change in command.changes]
    assert asked == [2, 3, 4]
    intents = [
        write.body["versions"][1]
        for writes in world.log
        for write in writes
        if isinstance(write, JobWrite) and write.body["phase"] == "publishing"
    ]
    assert intents == [2, 3, 4]
