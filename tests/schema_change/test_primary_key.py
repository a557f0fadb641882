"""Another primary key: no order of writes, chunks and turns of the job does harm, and every unsafe
order is found."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Index
from leasehold.catalog.job import Job, Phase
from leasehold.catalog.states import State
from leasehold.model.records.log import Backfill
from leasehold.schema_change.plan.primary_key import plan_key_paths
from leasehold.schema_change.steps.element_paths import UNCHANGED, ElementPath, Stage
from leasehold.schema_change.steps.steps import steps_of
from leasehold.transaction.mirror_table import key_in, written
from tests.models.explorer import Report, explore
from tests.models.mutants.transaction import VerifyRules, broken
from tests.models.summary import AddLine, ModelLine
from tests.schema_change.mirrors import LSN, Mirrors, Rules, V, World, key_change
from tests.support.every_third import every_third
from tests.support.memory_store.store import MemoryStore

STATES_MAX: Final = 2_000_000


def explored(mirrors: Mirrors) -> Report[World]:
    return explore(
        tuple(mirrors.starts()), mirrors.successors, mirrors.invariant, states_max=STATES_MAX
    )


def told(report: Report[World], mirrors: Mirrors) -> str:
    if report.violation is None:
        return "no harm"
    return report.violation.words(lambda w: f"{w.held.rows} | {mirrors.all[w.at].words}")


BY_CHUNKS: Final = pytest.mark.long("a minute; rows get a hidden key by chunks in make test, too")
CANCELLED: Final = pytest.mark.long("a minute; a hidden key is cancelled in make test, too")


@pytest.mark.parametrize(
    ("by_range", "cancel"),
    [
        pytest.param(False, True, id="by_chunks", marks=BY_CHUNKS),
        pytest.param(True, True, id="by_range", marks=CANCELLED),
        pytest.param(True, False, id="by_range_to_its_end"),
    ],
)
def test_no_order_does_harm(by_range: bool, cancel: bool, model_line: AddLine) -> None:
    mirrors = Mirrors(*key_change(), by_range=by_range, cancel=cancel)
    report = explored(mirrors)
    words = f"primary key{', by range' * by_range}{', not cancelled' * (not cancel)}"
    model_line(
        ModelLine(words, "-", report.states, report.transitions, report.exhausted, "no harm")
    )
    assert report.violation is None, told(report, mirrors)
    assert report.exhausted
    places = {words.split(", ", 1)[1] for words in mirrors.reached}
    assert {f"step 4 {Phase.DRAINING.value}", f"step 3 {Phase.BACKFILLING.value}"} <= places
    assert {words.split(", ")[0] for words in mirrors.reached} >= {
        "running",
        "rolling back",
        "succeeded",
        "failed",
        *(("cancelled",) if cancel else ()),
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


@pytest.mark.parametrize("name", every_third(UNSAFE))
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


@pytest.mark.parametrize("name", every_third(RULES))
def test_a_broken_rule_is_found(name: str, model_line: AddLine) -> None:
    mirrors = Mirrors(*key_change(), rules=RULES[name], cancel=False)
    with broken(RULES[name].verify):
        report = explored(mirrors)
    assert report.violation is not None, f"{name}: {report.states} states and no harm"
    harm = report.violation.harm
    told_of = (report.states, report.transitions, False, harm)
    model_line(ModelLine(f"primary key: {name}", "-", *told_of))


class WritesWhatIsThere(Mirrors):
    """A range writes rows that are in the copy, too, as they were when it was cut at first."""

    def copy(
        self, store: MemoryStore, source: Descriptor, target: Descriptor, backfill: Backfill
    ) -> None:
        before = store.row(source, (1,))
        key = None if before is None else key_in(target, before.values)
        if before is not None and key is not None and store.row(target, key) is not None:
            change = written(target, key, store.row(target, key), before)
            image = {**before.values, V: 9}
            store.change(target, change._replace(image=image), LSN, 0, None)
        super().copy(store, source, target, backfill)


class SkipsRows(Mirrors):
    """A range is noted, and its rows are brought by nobody."""

    def copy(
        self, store: MemoryStore, source: Descriptor, target: Descriptor, backfill: Backfill
    ) -> None:
        pass


@pytest.mark.parametrize("kind", [WritesWhatIsThere, SkipsRows])
def test_a_broken_copy_is_found(kind: type[Mirrors], model_line: AddLine) -> None:
    mirrors = kind(*key_change(), cancel=False, by_range=True)
    report = explored(mirrors)
    assert report.violation is not None, f"{report.states} states and no harm"
    harm = report.violation.harm
    name = f"primary key, by range: {kind.__name__}"
    model_line(ModelLine(name, "-", report.states, report.transitions, False, harm))
