"""Jobs driven from the log: D2, D4, D5, D6, D9 by name, take-over at any point, roll-back.

Method: a world with the pure ledger in which every step is checked for the harm each rule
prevents; then each rule is turned off and the harm must be found.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Final

import pytest

from leasehold.catalog.job import Phase, Status
from leasehold.catalog.namespaces import NAMESPACES_FROM
from leasehold.catalog.view import VIEWS_FROM, View
from leasehold.lease.commands import (
    Lease,
    Publish,
)
from leasehold.lease.ledger.ledger import apply
from leasehold.lease.ledger.state import SessionRow
from leasehold.model.errors import (
    TableBusy,
    WrongJobState,
)
from leasehold.model.records.log import JobWrite, MinVersion, NamespaceWrite, ViewWrite
from leasehold.schema_change.job.chunk_acceptance import accept_chunk
from leasehold.sql.ddl.schema_statements import parse_ddl
from leasehold.sql.syntax.object_statements import RenameNamespace
from leasehold.sql.syntax.statements import (
    Change,
    Explain,
)
from tests.models.mutants.schema import JobRules, broken
from tests.models.summary import AddLine, ModelLine
from tests.support.schema_change.job_harm import Harm
from tests.support.schema_change.job_story import (
    EVERY_CHANGE,
    INDEX,
    OPTIONAL,
    REQUIRED,
    TABLE,
    hold,
    made_of,
    reach,
    ready_world,
    same_but_for_ids,
)
from tests.support.schema_change.job_world import World
from tests.support.schema_change.made_statements import add_column, alter, create_table


def ddl(sql: str) -> Change:
    statement = parse_ddl(sql)
    assert not isinstance(statement, Explain)
    return statement


# ------------------------------------------------------------------ the way forth


@pytest.mark.parametrize("change", EVERY_CHANGE)
def test_job_succeeds_and_the_table_is_as_its_steps_say(change: Change) -> None:
    world = ready_world()
    before = world.table()
    job = world.ddl(change)
    world.settle()
    assert world.job().status is Status.SUCCEEDED
    assert world.job().phase is Phase.DONE
    assert same_but_for_ids(world.table(), made_of(before, job))
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


def test_a_schema_and_all_that_lies_in_it_get_their_names_in_one_record() -> None:
    """And what becomes a part of it meanwhile; the name of before is known until nobody may be at
    the version before."""
    world = World(agents=0)
    number = NAMESPACES_FROM + 1
    world.append(NamespaceWrite(number, {"name": "app"}))
    for name in ("app.t", "app.u"):
        world.ddl(replace(create_table(name), schema="app"))
    world.until_ready()
    before = len(world.log)
    world.ddl(RenameNamespace("app", "new"))
    view = View(VIEWS_FROM + 1, "app.v", "select 1 from app.t", (), (), {}, "app")
    world.append(ViewWrite(view.table_id, view.to_wire()))
    world.settle()
    kinds = [[type(write).__name__ for write in writes] for writes in world.log[before:]]
    assert kinds == [
        ["JobWrite"],
        ["ViewWrite"],
        ["DescriptorWrite", "DescriptorWrite", "JobWrite", "NamespaceWrite", "ViewWrite"],
        ["MinVersion", "MinVersion", "JobWrite"],
        ["DescriptorWrite", "DescriptorWrite", "JobWrite"],
        ["MinVersion", "MinVersion", "JobWrite", "NamespaceWrite"],
    ]
    named = [w.body for writes in world.log for w in writes if isinstance(w, NamespaceWrite)]
    assert named == [{"name": "app"}, {"name": "new", "alias": "app"}, {"name": "new"}]
    assert [table.name for table in world.catalog.tables()] == ["new.t", "new.u"]
    (made,) = world.catalog.access.views.values()
    assert (made.name, made.schema, made.text) == ("new.v", "new", "select 1 from new.t")


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
    world.ddl(create_table("u"))
    world.until_ready()
    hold(world, 1)
    world.ddl(INDEX)
    world.ddl(alter("u", add_column("x")))
    world.until(lambda: world.job(2).status is Status.SUCCEEDED)
    assert world.job(1).phase is Phase.DRAINING


def test_d9_second_job_on_a_table_is_refused_naming_the_first() -> None:
    world = ready_world()
    world.ddl(INDEX)
    with pytest.raises(TableBusy, match=r"job 1 \(create index, running\)"):
        world.ddl(OPTIONAL)
    world.settle()
    world.ddl(OPTIONAL)


# ------------------------------------------------------------------ take-over


@pytest.mark.parametrize("change", EVERY_CHANGE)
def test_takeover_at_every_point(change: Change) -> None:
    """The master ends after n things have happened, for every n until the job is over."""
    for point in range(200):
        world = ready_world()
        job = world.ddl(change)
        for _ in range(point):
            if not (world.calm() or world.perform_backfill()):
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


@pytest.mark.parametrize(
    "sql",
    ["DROP TABLE t CASCADE", "ALTER TABLE t DROP CONSTRAINT t_pkey, ADD UNIQUE (id)"],
)
def test_d2_the_ledger_is_one_ahead_with_one_of_a_jobs_tables(sql: str) -> None:
    """A job on it was turned back between the ledger's publish and the descriptor. Of the others
    the ledger is still asked: who holds a lease on them is waited for."""
    world = ready_world()
    world.ddl(ddl("CREATE TABLE c (id bigint PRIMARY KEY, t bigint REFERENCES t (id))"))
    world.until(lambda: 2 in world.ledger.tables)
    before = world.ddl(ddl("ALTER TABLE c ADD COLUMN x int"))
    while not any(isinstance(call.command, Publish) for call in world.calls):
        world.calm() or world.pass_time(5)
    for call in world.calls:
        apply(world.ledger, call.command, world.run_id)
    world.control("cancel", before.job_id)
    assert (world.ledger.tables[2].current, world.table(2).version) == (2, 1)
    job = world.ddl(ddl(sql))
    world.settle()
    assert world.job(job.job_id).status is Status.SUCCEEDED


def test_takeover_while_verifying_asks_again() -> None:
    world = ready_world()
    world.ddl(INDEX)
    reach(world, 1, Phase.VERIFYING)
    world.reports.clear()  # they went to the master that is gone
    world.takeover()
    world.settle()
    assert world.job().status is Status.SUCCEEDED
    assert [p for _, p, _ in world.job().marks].count("verifying") == 2


def _shaken(world: World, moves: int, *, steered: bool) -> None:
    """So many moves of anybody, crashes, a ledger that is away, people (`steered`); then calm."""
    for _ in range(moves):
        world.one_of_many(crash=0.02)
        if world.random.random() < 0.01:
            world.ledger_up = not world.ledger_up
        if steered and world.random.random() < 0.005:
            _try(world, world.random.choice(("pause", "resume", "cancel")))
    world.ledger_up = True
    _try(world, "resume")
    world.settle(20_000)


@pytest.mark.parametrize("seed", range(60))
def test_any_schedule_with_agents_and_crashes(seed: int) -> None:
    world = World(seed, agents=3)
    world.ddl(TABLE)
    before = world.table()
    change = EVERY_CHANGE[seed % len(EVERY_CHANGE)]
    job = world.ddl(change)
    _shaken(world, 300, steered=seed % 4 == 0)
    if world.job().status is Status.SUCCEEDED:
        assert same_but_for_ids(world.table(), made_of(before, job))
    else:
        assert world.job().status is Status.CANCELLED
        assert same_but_for_ids(before, world.table())
    assert world.catalog.min_version(1) == world.table().version
    for late in world.late_chunks:
        assert not accept_chunk(world.catalog, late)


@pytest.mark.parametrize("seed", range(20))
def test_any_schedule_of_tables_that_join_in_one_step(seed: int) -> None:
    """A key that another table refers to: that one has a version of the step in which the name goes
    over, and of no other, forth or back."""
    world = World(seed, agents=3)
    world.ddl(TABLE)
    world.ddl(ddl("CREATE TABLE c (id bigint PRIMARY KEY, t bigint REFERENCES t (id))"))
    before = world.table(2)
    world.ddl(ddl("ALTER TABLE t DROP CONSTRAINT t_pkey, ADD UNIQUE (id)"))
    _shaken(world, 400, steered=seed % 4 == 0)
    child, named = world.table(2), world.catalog.resolve("t")
    if world.job().status is Status.SUCCEEDED:
        assert (child.version, world.catalog.min_version(2)) == (2, 2)
        assert [key.parent for key in child.foreign_keys] == [named.table_id] == [3]
    else:
        assert world.job().status is Status.CANCELLED
        assert (child, named.table_id) == (before, 1)


def _try(world: World, action: str) -> None:
    with suppress(WrongJobState):
        world.control(action)


# ------------------------------------------------------------------ each rule turned off


def harm_found(rules: JobRules, seeds: range = range(40)) -> str:
    for seed in seeds:
        world = World(seed, agents=3)
        world.ddl(TABLE)
        try:
            with broken(rules):
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


OFF: Final = (
    ("drain_before_fence", "D4"),
    ("fence_before_next", "D5"),
    ("verify_before_public", "unverified"),
    ("intent_before_publish", "D2"),
)


@pytest.mark.parametrize(("rule", "harm"), OFF)
def test_rule_turned_off_does_harm(rule: str, harm: str, model_line: AddLine) -> None:
    found = harm_found(replace(JobRules(), **{rule: False}))
    assert harm in found, found
    words = f"random schedules: harm shown, {found[:60]}"
    model_line(ModelLine(harm, f"{rule} off", 1, 1, False, words))


def test_publish_checks_holders_turned_off_makes_three_versions_live() -> None:
    world = ready_world()
    world.ddl(OPTIONAL)
    reach(world, 1, Phase.PUBLISHING)
    world.ledger.sessions[5] = SessionRow("old", 1, False)
    world.ledger.put(5, {Lease(1, 1)})
    with (
        pytest.raises(Harm, match="three versions"),
        broken(JobRules(publish_checks_holders=False)),
    ):
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
