"""A primary key that goes with CASCADE while a foreign key refers to it: no order of writes, chunks
and turns of the job does harm, and every unsafe order is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import pytest

from leasehold.catalog.elements import ForeignKey
from leasehold.catalog.names import find_references
from leasehold.catalog.states import State
from leasehold.schema_change.plan.primary_key import KeyChange, plan_key_paths, plan_referring_paths
from leasehold.schema_change.steps.element_paths import GONE, UNCHANGED, ElementPath, Stage
from leasehold.schema_change.steps.steps import steps_of
from tests.models.explorer import Report, explore
from tests.models.mutants.transaction import VerifyRules, broken
from tests.models.summary import AddLine, ModelLine
from tests.schema_change.mirrors import Rules, World, key_change
from tests.schema_change.referred_mirrors import CHANGED, DROPPED, ReferredChanged, ReferredDropped

STATES_MAX: Final = 400_000
Model = ReferredChanged | ReferredDropped


def explored(model: Model) -> Report[World]:
    return explore(tuple(model.starts()), model.successors, model.invariant, states_max=STATES_MAX)


def told(report: Report[World], model: Model) -> str:
    if report.violation is None:
        return "no harm"
    return report.violation.words(lambda w: f"{w.held} | {model.all[w.at].words}")


def dropped() -> Model:
    return ReferredDropped(*key_change(*DROPPED))


def changed() -> Model:
    return ReferredChanged(*key_change(*CHANGED))


@pytest.mark.parametrize(
    "make",
    [
        dropped,
        pytest.param(
            changed,
            marks=pytest.mark.long("ten seconds; a dropped key goes through most of these steps"),
        ),
    ],
)
def test_no_order_does_harm(make: type[Model], model_line: AddLine) -> None:
    model = make()  # type: ignore[call-arg]
    report = explored(model)
    model_line(ModelLine.of(f"a key that is referred to, {make.__name__}", "-", report))
    assert report.violation is None, told(report, model)
    assert report.exhausted
    assert {words.split(", ")[0] for words in model.reached} >= {
        "running",
        "rolling back",
        "succeeded",
        "cancelled",
    }


# ------------------------------------------------------------------ unsafe orders


def by(goes: Callable[[ElementPath, int], ElementPath]) -> Model:
    """`goes`: the way of the foreign key instead of the plan's, over so many steps of a rise."""
    catalog, job = key_change(*DROPPED)
    table = catalog.resolve("t")
    asked = KeyChange(None, None, 1, cascade=True)
    own = plan_key_paths(table, (), 3, set(), asked)
    along, _ = plan_referring_paths(find_references(catalog, 1), table, own, asked)
    steps = max(len(path.before_commit) for path in own)
    others = (goes(t, steps) if isinstance(t.element, ForeignKey) else t for t in along)
    made, point = steps_of((*own, *others))
    return ReferredDropped(catalog, replace(job, steps=made, point=point), cancel=False)


def relied_on_until_it_goes(path: ElementPath, _: int) -> ElementPath:
    return replace(path, before_commit=(), after_commit=(GONE,))


def gone_a_step_later(path: ElementPath, _: int) -> ElementPath:
    return replace(path, before_commit=(), after_commit=(Stage({"state": State.WRITE_ONLY}), GONE))


def never_gone(path: ElementPath, _: int) -> ElementPath:
    return replace(path, before_commit=(), after_commit=(UNCHANGED,))


UNSAFE: Final = {
    "a foreign key is relied on until it goes": relied_on_until_it_goes,
    "a foreign key goes a step after its parent's name": gone_a_step_later,
    "a foreign key stays at what goes": never_gone,
}


def demand_harm(name: str, model: Model, add: AddLine) -> None:
    report = explored(model)
    add(ModelLine.of("a key that is referred to", name, report))
    assert report.violation is not None, f"{name}: {report.states} states and no harm"
    print(told(report, model))


@pytest.mark.parametrize("name", UNSAFE)
def test_an_unsafe_order_is_found(name: str, model_line: AddLine) -> None:
    demand_harm(name, by(UNSAFE[name]), model_line)


RULES: Final = {
    "a write goes to one table alone": Rules(verify=VerifyRules(mirror_follows=False)),
    "nobody waits for older versions": Rules(drain=False),
}


@pytest.mark.parametrize("name", RULES)
def test_a_broken_rule_is_found(name: str, model_line: AddLine) -> None:
    catalog, job = key_change(*DROPPED)
    with broken(RULES[name].verify):
        demand_harm(name, ReferredDropped(catalog, job, RULES[name], cancel=False), model_line)
