"""A primary key that comes to a table without one, or goes: no order of writes, chunks and turns of
the job does harm, and every unsafe order is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from leasehold.catalog.elements import ALL_ROWS
from leasehold.catalog.job import Job, Phase
from leasehold.catalog.states import State
from leasehold.schema_change.plan.primary_key import plan_key_paths
from leasehold.schema_change.steps.element_paths import UNCHANGED, ElementPath, Stage
from leasehold.schema_change.steps.steps import steps_of
from tests.models.explorer import Report, explore
from tests.models.mutants.transaction import VerifyRules, broken
from tests.models.summary import AddLine, ModelLine
from tests.schema_change.hidden_mirrors import ADDED, DROPPED, HiddenMirrors
from tests.schema_change.mirrors import Rules, World, key_change
from tests.support.every_third import every_third

STATES_MAX = 100_000


def explored(mirrors: HiddenMirrors) -> Report[World]:
    return explore(
        tuple(mirrors.starts()), mirrors.successors, mirrors.invariant, states_max=STATES_MAX
    )


@pytest.mark.parametrize(
    ("said", "ends"),
    [
        (DROPPED, {"succeeded", "cancelled"}),
        (ADDED, {"succeeded", "cancelled", "failed"}),
    ],
    ids=["dropped", "added"],
)
def test_no_order_does_harm(said: tuple[str, str], ends: set[str], model_line: AddLine) -> None:
    mirrors = HiddenMirrors(*key_change(*said))
    report = explored(mirrors)
    name = said[0].removeprefix("ALTER TABLE t ")
    counted = report.states, report.transitions, report.exhausted
    model_line(ModelLine(f"hidden key: {name}", "-", *counted, "no harm"))
    told = report.violation and report.violation.words(lambda w: f"{w} {mirrors.all[w.at].words}")
    assert not told, told
    assert report.exhausted
    at = {words.split(", ")[0] for words in mirrors.reached}
    assert at == {*ends, "running", "rolling back"}
    places = {words.split(", ", 1)[1] for words in mirrors.reached}
    filled = 1 if said is DROPPED else 3
    assert f"step {filled} {Phase.BACKFILLING.value}" in places


# ------------------------------------------------------------------ unsafe orders


def by(said: tuple[str, str], *made: ElementPath) -> Job:
    steps, point = steps_of(made)
    return replace(key_change(*said)[1], steps=steps, point=point)


def dropped() -> tuple[ElementPath, ElementPath, ElementPath]:
    """Of the plan: the hidden column of the table, the table, the one that takes its place."""
    catalog, _ = key_change(*DROPPED)
    hidden, own, other = plan_key_paths(catalog.resolve("t"), (), 2, set())
    return hidden, own, other


def unfilled_column() -> Job:
    hidden, own, other = dropped()
    written = Stage({"state": State.WRITE_ONLY})
    return by(
        DROPPED, replace(hidden, before_commit=(hidden.before_commit[0], written)), own, other
    )


def unfilled_rows() -> Job:
    hidden, own, other = dropped()
    written = Stage({"state": State.WRITE_ONLY})
    return by(DROPPED, hidden, own, replace(other, before_commit=(other.before_commit[0], written)))


def written_at_once() -> Job:
    hidden, own, other = dropped()
    at_once = replace(other, before_commit=(UNCHANGED, other.before_commit[-1]))
    return by(DROPPED, hidden, replace(own, before_commit=(UNCHANGED, *own.before_commit)), at_once)


def unread_at_once() -> Job:
    hidden, own, other = dropped()
    gone = (own.after_commit[1], UNCHANGED, own.after_commit[-1])
    return by(DROPPED, hidden, replace(own, after_commit=gone), other)


def left_at_once() -> Job:
    hidden, own, other = dropped()
    parted = replace(other, after_commit=(other.after_commit[0], other.after_commit[-1]))
    return by(
        DROPPED,
        hidden,
        replace(own, after_commit=(own.after_commit[0], own.after_commit[-1])),
        parted,
    )


def added(goes: Callable[[tuple[Stage, ...]], tuple[Stage, ...]]) -> Job:
    """`goes`: how the hidden column leaves the table that has the key."""
    catalog, _ = key_change(*ADDED)
    table = catalog.resolve("t")
    hidden, *others = plan_key_paths(table, (table.column("id"),), 2, set())
    return by(ADDED, replace(hidden, after_commit=goes(hidden.after_commit)), *others)


def loosened_at_once() -> Job:
    loosened = Stage({"nullable": True, "default_expression": ""})
    return added(lambda after_commit: (after_commit[0], loosened, *after_commit[2:]))


def gone_with_the_table_written() -> Job:
    return added(lambda after_commit: after_commit[1:])


UNSAFE = {
    "the hidden column is not filled": (DROPPED, unfilled_column),
    "no row is filled": (DROPPED, unfilled_rows),
    "absent, then written": (DROPPED, written_at_once),
    "the old table is not written for its last readers": (DROPPED, unread_at_once),
    "the old table keeps rows when its writers leave it": (DROPPED, left_at_once),
    "not written while the version before has it": (ADDED, loosened_at_once),
    "not kept while the old table is found by it": (ADDED, gone_with_the_table_written),
}


def demand_harm(name: str, mirrors: HiddenMirrors, model_line: AddLine) -> None:
    report = explored(mirrors)
    assert report.violation is not None, f"{name}: {report.states} states and no harm"
    harm = report.violation.harm
    told_of = (report.states, report.transitions, False, harm)
    model_line(ModelLine(f"hidden key: {name}", "-", *told_of))


@pytest.mark.parametrize("name", every_third(UNSAFE))
def test_an_unsafe_order_is_found(name: str, model_line: AddLine) -> None:
    said, made = UNSAFE[name]
    demand_harm(name, HiddenMirrors(key_change(*said)[0], made(), cancel=False), model_line)


RULES = {
    "a write goes to one table alone": Rules(verify=VerifyRules(mirror_follows=False)),
    "filled rows get new genids": Rules(verify=VerifyRules(backfill_leaves_genids=False)),
    "nobody waits for older versions": Rules(drain=False),
    "filled before the fence": Rules(fence_before_backfill=False),
}


@pytest.mark.parametrize("name", every_third(RULES))
def test_a_broken_rule_is_found(name: str, model_line: AddLine) -> None:
    mirrors = HiddenMirrors(*key_change(*DROPPED), rules=RULES[name], cancel=False)
    with broken(RULES[name].verify):
        demand_harm(name, mirrors, model_line)


def test_rows_are_filled_after_their_keys() -> None:
    _, job = key_change(*DROPPED)
    (backfilling,) = (step for step in job.steps if step.backfills)
    (hidden, rows) = backfilling.backfills
    assert (rows, backfilling.verifies) == (ALL_ROWS, (hidden, ALL_ROWS))
