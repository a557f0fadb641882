"""A verification in slices: who is asked for what and when, what a pause, a rate, a new master and
a node that comes back do to it, and the harm of each rule that is turned off.

The stories go through a table of five rows in slices of two; the random schedules through one of
six at most, with writes, damage, new masters and controls between any two things that happen.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from leasehold.catalog.job import Phase, Status
from leasehold.model.records.log import CheckSlice
from leasehold.schema_change.coordinator.effects import CoherentNodes
from leasehold.schema_change.coordinator.sliced_verification import Step, WalkSettings
from leasehold.schema_change.coordinator.verification import SLICE_ROWS_MIN, slice_rows
from tests.models.mutants.schema import JobRules, broken
from tests.models.summary import AddLine, ModelLine
from tests.support.every_third import every_third_row
from tests.support.schema_change.check_walk_world import CheckWalkWorld
from tests.support.schema_change.job_harm import Harm
from tests.support.schema_change.job_story import TABLE, UNIQUE, reach
from tests.support.schema_change.walk_world import WALK, WalkWorld

STEP = 2  # of the job: the index is filled, and its uniqueness enforced and verified


def verifying(
    rows: int = 5,
    nodes: tuple[str, ...] = ("m", "r1"),
    walk: WalkSettings = WALK,
    *,
    users: bool = False,
) -> WalkWorld:
    """At the first slice of the first verification; nobody has reported yet. Key and value of a
    row are the same, and nothing is damaged."""
    world = WalkWorld(0, nodes=nodes, walk=walk)
    world.users = users
    world.damaged = True
    world.ddl(TABLE)
    world.until_ready()
    for copy in world.copies.values():
        copy.rows = {key: key for key in range(rows)}
    world.ddl(UNIQUE)
    reach(world, STEP, Phase.VERIFYING)
    for copy in world.copies.values():
        copy.entries = {(key, key) for key in range(rows)}
    world.reports.clear()
    world._verify(world.job(), len(world.log))  # said anew, of what they hold now
    return world


def slices(world: WalkWorld) -> list[tuple[int, tuple[int, ...]]]:
    """(part, after) of each that was asked for, up to the end of the step."""
    asked: list[tuple[int, tuple[int, ...]]] = []
    while (world.job().step, world.job().phase) == (STEP, Phase.VERIFYING):
        look = world.job().look
        assert look is not None
        if [(look.part, tuple(look.after))] != asked[-1:]:
            asked.append((look.part, tuple(look.after)))
        if not world.calm():
            world.pass_time(5)
    return asked


def next_slice(world: WalkWorld) -> None:
    before = world.job().look
    while world.job().look == before:
        if not world.calm():
            world.pass_time(5)


INDEX_ID = 3
WAY = [(0, ()), (0, (1,)), (0, (3,)), (INDEX_ID, ()), (INDEX_ID, (1, 1)), (INDEX_ID, (3, 3))]


def test_rows_then_entries_each_slice_from_where_the_one_before_ended() -> None:
    world = verifying()
    marks = len(world.job().marks)
    assert slices(world) == WAY
    assert world.job().status is Status.RUNNING
    assert world.job().looked == 9, "of five rows and five entries all but the last slice"
    assert len(world.job().marks) == marks + 1, "slices make no marks: the job stays small"
    world.settle()
    assert world.job().status is Status.SUCCEEDED
    assert world.job().look is None


def test_a_table_of_one_slice_is_looked_at_in_one_pass() -> None:
    world = WalkWorld(0)
    world.damaged = True
    world.ddl(TABLE)
    world.until_ready()
    for copy in world.copies.values():
        copy.rows = {1: 1, 2: 2}
    world.ddl(UNIQUE)
    reach(world, STEP, Phase.VERIFYING)
    assert world.job().look is None


def test_a_slice_that_is_wrong_fails_the_job_at_once() -> None:
    world = verifying()
    next_slice(world)
    for copy in world.copies.values():
        copy.entries.discard((3, 3))
    world.reports.clear()
    world._verify(world.job(), len(world.log))
    while world.job().status is Status.RUNNING:
        assert world.calm()
    assert "found 1 differences on node m" in world.job().error
    assert world.job().look is None


def test_a_resumed_job_goes_on_at_its_slice() -> None:
    world = verifying()
    next_slice(world)
    at = world.job().look
    world.control("pause")
    while world.calm():
        pass
    assert (world.job().status, world.job().look) == (Status.PAUSED, at)
    world.control("resume")
    assert slices(world) == WAY[1:]


def test_a_job_is_cancelled_between_two_slices() -> None:
    world = verifying()
    next_slice(world)
    world.control("cancel")
    assert (world.job().status, world.job().look) == (Status.ROLLING_BACK, None)
    world.settle()
    assert world.job().status is Status.CANCELLED


def test_a_new_master_begins_anew() -> None:
    world = verifying()
    next_slice(world)
    next_slice(world)
    world.takeover()
    world.until(lambda: world.job().looked == 0)
    assert slices(world) == WAY


def test_a_new_master_waits_until_it_knows_who_serves_reads() -> None:
    """C4: until the leases of its predecessor are over, nodes serve that it has not heard of."""
    world = verifying()
    world.coherent, known = frozenset(), world.coherent
    give, world.give = world.give, lambda event: None  # type: ignore[method-assign]
    world.takeover()
    world.give = give  # type: ignore[method-assign]
    for _ in range(50):
        if not world.calm():
            world.pass_time(5)
    assert not world.job().looked
    assert world.coordinator.waiting_for(1) == "the coherent nodes to be known"
    world.coherent = known
    world.give(CoherentNodes(known))
    assert slices(world) == WAY


def test_a_node_that_missed_a_slice_has_all_of_them_looked_at_again() -> None:
    world = verifying()
    world.coherent = frozenset({"m"})
    world.give(CoherentNodes(world.coherent))
    next_slice(world)
    world.coherent = frozenset({"m", "r1"})
    world.give(CoherentNodes(world.coherent))
    assert slices(world) == [*WAY[1:], *WAY]


def test_a_node_that_leaves_is_not_waited_for() -> None:
    world = verifying()
    next_slice(world)
    world.coherent = frozenset({"m"})
    world.give(CoherentNodes(world.coherent))
    assert slices(world) == WAY[1:]


def test_a_rate_holds_for_slices_too_and_makes_them_smaller() -> None:
    world = verifying()
    world.control("set", rows_per_second=1)
    began_ns = world.now_ns
    way = slices(world)
    assert (0, (2,)) in way, "one row to a slice"
    looked = 9  # the last slice is waited for by nobody
    assert world.now_ns - began_ns >= looked * 1_000_000_000 * 0.9


def test_what_was_set_and_set_back_leaves_an_older_write_harmless() -> None:
    """A job that is as it was makes a write count that was given up: the master starts over."""
    world = verifying()
    while not world.writes:
        assert world.calm()
    world.control("set", rows_per_second=50)
    world.control("set", rows_per_second=0)
    world.settle()
    assert world.job().status is Status.SUCCEEDED


@pytest.mark.parametrize("users", [False, True])
def test_beside_users_a_smaller_table_is_looked_at_in_slices_too(users: bool) -> None:
    walk = WalkSettings(whole_max=10, whole_beside_max=1, sums_beside_max=2, rows_max=2)
    world = verifying(walk=walk, users=users)
    assert (world.job().look is not None) == users
    world.settle()
    assert world.job().status is Status.SUCCEEDED


def test_an_index_whose_sums_tell_is_looked_at_in_one_pass_beside_users_too() -> None:
    walk = WalkSettings(whole_max=10, whole_beside_max=1, sums_beside_max=5, rows_max=2)
    world = verifying(walk=walk, users=True)
    assert world.job().look is None
    world.settle()
    assert world.job().status is Status.SUCCEEDED


@pytest.mark.parametrize(("users", "rows"), [(False, 100), (True, 3)])
def test_beside_users_the_first_slice_whose_time_nobody_knows_is_small(
    users: bool, rows: int
) -> None:
    walk = WalkSettings(whole_max=2, sums_beside_max=2, rows_max=100, first_beside_max=3)
    world = verifying(walk=walk, users=users)
    look = world.job().look
    assert look is not None
    assert look.rows_max == rows
    world.settle()
    assert world.job().status is Status.SUCCEEDED


@pytest.mark.parametrize(("users", "rests"), [(False, 0), (True, len(WAY) - 1)])
def test_beside_users_there_is_a_rest_behind_each_slice(users: bool, rests: int) -> None:
    """In which no snapshot keeps the WAL."""
    took_ms, rest_ms = 1_500, 500
    world = verifying(walk=replace(WALK, rest_ms=rest_ms, slice_ms=took_ms), users=users)
    world.took_ms = took_ms
    world.reports.clear()
    world._verify(world.job(), len(world.log))
    began_ns = world.now_ns
    while world.calm():
        pass
    assert ("users write" in world.coordinator.waiting_for(1)) == users
    if users:
        assert slices(world) == WAY
    assert (world.now_ns - began_ns) // ((took_ms + rest_ms) * 1_000_000) == rests


def test_beside_users_slices_of_a_gentle_job_are_half_as_long_and_rests_twice() -> None:
    took_ms, rest_ms = 1_000, 500
    world = verifying(walk=replace(WALK, rest_ms=rest_ms), users=True)
    walk, job = world.coordinator._walk, world.job()
    step = Step(None, 3, took_ms, frozenset(), frozenset())
    gentle = replace(job, settings={**job.settings, "gentle": 1})
    assert walk.pause_ns(gentle, step) == 2 * walk.pause_ns(job, step) == 3_000 * 1_000_000


@pytest.mark.parametrize(
    ("took_ms", "rows"),
    [(0, 20_000), (100, 15_000), (150, 10_000), (300, 5_000), (100_000, SLICE_ROWS_MIN)],
)
def test_slices_are_as_large_as_their_time_allows(took_ms: int, rows: int) -> None:
    assert slice_rows(CheckSlice(0, (), 10_000), took_ms, 150, 20_000) == rows
    assert slice_rows(CheckSlice(0, (), 10_000), took_ms, 150, 100) == 100, "a rate was set"


# ------------------------------------------------------------------ random schedules

SEEDS = range(400)


def harm_found(rules: JobRules, seeds: range = SEEDS, made: type[WalkWorld] = WalkWorld) -> str:
    for seed in seeds:
        world = made(seed, ("m", "r1") if seed % 3 else ("m",))
        try:
            with broken(rules):
                world.run(0.004 if seed % 2 else 0.0)
        except Harm as found:
            return f"{found}"
        except AssertionError as found:
            return f"D9: {found}"
    return ""


@pytest.mark.parametrize("made", [WalkWorld, CheckWalkWorld])
@pytest.mark.parametrize("first", range(0, 100, 25))
def test_all_rules_on_no_harm(first: int, made: type[WalkWorld]) -> None:
    assert harm_found(JobRules(), range(first, first + 25), made) == ""


OFF: Final[list[tuple[str, str, type[WalkWorld]]]] = [
    ("slices_at_one_position", "it failed though every copy was right", WalkWorld),
    ("reports_of_this_slice", "a slice is followed by another one", WalkWorld),
    ("every_slice_by_all", "d ⊨ S", WalkWorld),
    ("slices_join", "d ⊨ S", WalkWorld),
    ("rows_before_entries", "d ⊨ S", WalkWorld),
    ("every_node_is_asked", "d ⊨ S|L6", WalkWorld),
    ("reports_of_this_slice", "a slice is followed by another one", CheckWalkWorld),
    ("every_slice_by_all", "d ⊨ S", CheckWalkWorld),
    ("slices_join", "d ⊨ S", CheckWalkWorld),
    ("every_node_is_asked", "d ⊨ S", CheckWalkWorld),
]


@pytest.mark.parametrize(("rule", "harm", "made"), every_third_row(OFF))
def test_rule_turned_off_does_harm(
    rule: str, harm: str, made: type[WalkWorld], model_line: AddLine
) -> None:
    found = harm_found(replace(JobRules(), **{rule: False}), made=made)
    assert any(each in found for each in harm.split("|")), found
    of = "a CHECK" if made is CheckWalkWorld else "an index"
    words = f"random schedules: harm shown, {found[:60]}"
    model_line(ModelLine(f"slices of {of}", f"{rule} off", 1, 1, False, words))


def test_a_row_that_moves_unchecked_into_what_was_looked_at_does_harm() -> None:
    """It takes along what was wrong in a slice to come: so one that moves is checked whole."""

    class Unchecked(CheckWalkWorld):
        moved_whole = False

    assert "d ⊨ S" in harm_found(JobRules(), made=Unchecked)
