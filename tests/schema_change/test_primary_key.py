"""Another primary key: no order of writes, chunks and turns of the job does harm, and every unsafe
order is found."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from leasehold.catalog.elements import Index
from leasehold.catalog.job import Job, Phase
from leasehold.catalog.states import State
from leasehold.schema_change.plan.primary_key import plan_key_paths
from leasehold.schema_change.steps.element_paths import UNCHANGED, ElementPath, Stage
from leasehold.schema_change.steps.steps import steps_of
from tests.models.explorer import Report, explore
from tests.models.mutants.transaction import VerifyRules, broken
from tests.models.summary import AddLine, ModelLine
from tests.schema_change.mirrors import Mirrors, Rules, World, key_change
from tests.support.by_turns import by_turns

STATES_MAX: Final = 2_000_000


def explored(mirrors: Mirrors) -> Report[World]:
    return explore(
        tuple(mirrors.starts()), mirrors.successors, mirrors.invariant, states_max=STATES_MAX
    )


def told(report: Report[World], mirrors: Mirrors) -> str:
    if report.violation is None:
        return "no harm"
    return report.violation.words(lambda w: f"{w.held.rows} | {mirrors.all[w.at].words}")


def test_no_order_does_harm(model_line: AddLine) -> None:
    mirrors = Mirrors(*key_change())
    report = explored(mirrors)
    line = ModelLine(
        "primary key", "-", report.states, report.transitions, report.exhausted, "no harm"
    )
    model_line(line)
    assert report.violation is None, told(report, mirrors)
    assert report.exhausted
    places = {words.split(", ", 1)[1] for words in mirrors.reached}
    assert {f"step 4 {Phase.DRAINING.value}", f"step 3 {Phase.BACKFILLING.value}"} <= places
    assert {words.split(", ")[0] for words in mirrors.reached} >= {
        "running",
        "rolling back",
        "succeeded",
        "failed",
        "cancelled",
    }


# ------------------------------------------------------------------ unsafe orders


def paths() -> tuple[ElementPath, list[ElementPath], ElementPath, ElementPath]:
    """Of the plan: the key's index, NOT NULL, the table, the one that takes its place."""
    catalog, _ = key_change()
    table = catalog.resolve("t")
    key, *columns, own, other = plan_key_paths(table, (table.column("k"),), 2, set())
    assert isinstance(key.element, Index)
    return key, columns, own, other


def by(*made: ElementPath) -> Job:
    steps, point = steps_of(made)
    return replace(key_change()[1], steps=steps, point=point)


def at_once() -> Job:
    key, columns, own, other = paths()
    backfilling = other.before_commit[-1]
    later = replace(own, before_commit=(*own.before_commit[:-1], UNCHANGED, own.before_commit[-1]))
    return by(
        key,
        *columns,
        later,
        replace(other, before_commit=(*other.before_commit[:-2], UNCHANGED, backfilling)),
    )


def without_unique() -> Job:
    _, columns, own, other = paths()
    enforced = [replace(c, before_commit=c.before_commit[-1:]) for c in columns]
    return by(
        *enforced,
        replace(own, before_commit=own.before_commit[-1:]),
        replace(other, before_commit=other.before_commit[-2:]),
    )


def without_not_null() -> Job:
    key, _, own, other = paths()
    return by(key, own, other)


def unread_at_once() -> Job:
    key, columns, own, other = paths()
    gone = (Stage({"state": State.DELETE_ONLY}), UNCHANGED, own.after_commit[-1])
    return by(key, *columns, replace(own, after_commit=gone), other)


def left_at_once() -> Job:
    key, columns, own, other = paths()
    parted = (other.after_commit[0], other.after_commit[-1])
    return by(
        key,
        *columns,
        replace(own, after_commit=(own.after_commit[0], own.after_commit[-1])),
        replace(other, after_commit=parted),
    )


def unfilled() -> Job:
    key, columns, own, other = paths()
    written = Stage({"state": State.WRITE_ONLY})
    return by(
        key, *columns, own, replace(other, before_commit=(*other.before_commit[:-1], written))
    )


UNSAFE = {
    "absent, then written": at_once,
    "the key is not unique first": without_unique,
    "the key may be NULL": without_not_null,
    "the old table is not written for its last readers": unread_at_once,
    "the old table keeps rows when its writers leave it": left_at_once,
    "no row is filled": unfilled,
}


@pytest.mark.parametrize("name", by_turns(UNSAFE))
def test_an_unsafe_order_is_found(name: str, model_line: AddLine) -> None:
    mirrors = Mirrors(key_change()[0], UNSAFE[name](), cancel=False)
    report = explored(mirrors)
    assert report.violation is not None, f"{name}: {report.states} states and no harm"
    harm = report.violation.harm
    told_of = (report.states, report.transitions, False, harm)
    model_line(ModelLine(f"primary key: {name}", "-", *told_of))


RULES = {
    "a write goes to one table alone": Rules(verify=VerifyRules(mirror_follows=False)),
    "filled rows get new genids": Rules(verify=VerifyRules(backfill_leaves_genids=False)),
    "nobody waits for older versions": Rules(drain=False),
    "filled before the fence": Rules(fence_before_backfill=False),
}


@pytest.mark.parametrize("name", by_turns(RULES))
def test_a_broken_rule_is_found(name: str, model_line: AddLine) -> None:
    mirrors = Mirrors(*key_change(), rules=RULES[name], cancel=False)
    with broken(RULES[name].verify):
        report = explored(mirrors)
    assert report.violation is not None, f"{name}: {report.states} states and no harm"
    harm = report.violation.harm
    told_of = (report.states, report.transitions, False, harm)
    model_line(ModelLine(f"primary key: {name}", "-", *told_of))
