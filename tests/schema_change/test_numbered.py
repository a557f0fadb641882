"""Sequences: no order of draws, blocks, settings and turns of a job does harm, and every unsafe
order is found."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from leasehold.client import numbers
from leasehold.client.numbers import NumberRules
from leasehold.schema.catalog import Catalog
from leasehold.schema.descriptor import Descriptor, from_wire
from leasehold.schema.edits import Kind
from leasehold.schema.elements import Column, column_from_wire
from leasehold.schema.job import Job, Phase
from leasehold.schema.states import State
from leasehold.schema.steps import steps_of
from leasehold.schema.tracks import (
    UNCHANGED,
    Stage,
    Track,
    add_column,
    add_sequence,
    drop_column,
    drop_numbering,
    drop_sequence,
)
from leasehold.transaction.verify import RULES as VERIFY_RULES
from tests.models.explorer import Report, explore
from tests.models.summary import AddLine, ModelLine
from tests.schema_change.numbered import Numbered
from tests.schema_change.numbered_world import BLOCK, Rules, World

STATES_MAX: Final = 200_000
PLAIN: Final = "create table t (id int primary key, v int)"
SERIAL: Final = "create table t (id int primary key, v int, n serial)"
DRAWN: Final = (
    "create sequence s; create table t (id int primary key, v int, n int default nextval('s'))"
)
BESIDE: Final = "create sequence s; create table t (id int primary key, v int, n int)"


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers, "BLOCK_NUMBERS", BLOCK)


def explored(model: Numbered) -> Report[World]:
    return explore(tuple(model.starts()), model.successors, model.invariant, states_max=STATES_MAX)


def told(report: Report[World], model: Numbered) -> str:
    if report.violation is None:
        return "no harm"
    return report.violation.words(lambda w: f"{w.held.rows} {w.nodes} | {model.all[w.at].words}")


MENU: Final = {
    "created, dropped, made anew": (
        PLAIN,
        "create sequence s",
        "drop sequence s",
        "create sequence s",
    ),
    "renamed": (DRAWN, "alter sequence s rename to r"),
    "restarted": (SERIAL, "alter sequence t_n_seq restart"),
    "its owner's column dropped": (SERIAL, "alter table t drop column n"),
    "its table dropped": (SERIAL, "drop table t"),
    "dropped with CASCADE": (DRAWN, "drop sequence s cascade"),
    "SET DEFAULT nextval": (BESIDE, "alter table t alter n set default nextval('s')"),
    "DROP DEFAULT": (SERIAL, "alter table t alter n drop default"),
    "ADD COLUMN SERIAL": (PLAIN, "alter table t add n serial"),
    "ADD COLUMN IDENTITY": (PLAIN, "alter table t add n int generated always as identity"),
}


AT_ONCE: Final = {"restarted"}


@pytest.mark.parametrize("name", MENU)
def test_no_order_does_harm(name: str, model_line: AddLine) -> None:
    given, *asked = MENU[name]
    model = Numbered(given, tuple(asked))
    report = explored(model)
    model_line(ModelLine.of(f"sequences: {name}", "-", report))
    assert report.violation is None, told(report, model)
    assert report.exhausted
    ends = {words for words in model.reached if words.endswith("statements")}
    assert f"{len(asked)} statements" in ends
    places = {Phase.DRAINING, *((Phase.BACKFILLING,) if name.startswith("ADD") else ())}
    reached = {words.split()[-1] for words in model.reached}
    assert name in AT_ONCE or places <= reached


# ------------------------------------------------------------------ unsafe orders


def by(job: Job, *made: Track) -> Job:
    steps, point = steps_of(made)
    return replace(job, steps=steps, point=point)


def parts(catalog: Catalog) -> tuple[Column, Descriptor]:
    """The column that draws, and what it draws from."""
    column = catalog.resolve("t").column("n")
    return column, catalog.newest(column.draws_from)


def with_its_default(job: Job, catalog: Catalog) -> Job:
    column, sequence = parts(catalog)
    return by(job, drop_numbering(column), drop_sequence(sequence, 0))


def before_its_column(job: Job, catalog: Catalog) -> Job:
    column, sequence = parts(catalog)
    gone = drop_column(column)
    return by(job, gone, drop_sequence(sequence, len(gone.fall) - 2))


def made(job: Job) -> tuple[Track, Track]:
    """Of a column that is added: its track, and its sequence's."""
    column = next(e for e in job.steps[0].edits if e.kind is Kind.COLUMN)
    sequence = next(e for e in job.steps[0].edits if e.kind is Kind.TABLE)
    assert column.after is not None
    assert sequence.after is not None
    new = replace(column_from_wire(column.after), state=State.ABSENT)
    return add_column(new), add_sequence(from_wire(dict(sequence.after)))


def after_its_column(job: Job, _: Catalog) -> Job:
    column, sequence = made(job)
    return by(job, column, replace(sequence, rise=(UNCHANGED, UNCHANGED, *sequence.rise)))


def unfilled(job: Job, _: Catalog) -> Job:
    column, sequence = made(job)
    written = Stage({"state": State.WRITE_ONLY})
    return by(job, replace(column, rise=(column.rise[0], written)), sequence)


def public_at_once(job: Job, _: Catalog) -> Job:
    column, sequence = made(job)
    return by(job, replace(column, rise=(UNCHANGED, *column.rise[1:])), sequence)


UNSAFE: Final = {
    "a sequence goes with the default": ("dropped with CASCADE", with_its_default),
    "a sequence goes before the column": ("its owner's column dropped", before_its_column),
    "a sequence comes after the column": ("ADD COLUMN SERIAL", after_its_column),
    "no row is numbered": ("ADD COLUMN SERIAL", unfilled),
    "a column that draws is absent, then written": ("ADD COLUMN SERIAL", public_at_once),
}


def demand_harm(name: str, model: Numbered, add: AddLine) -> None:
    report = explored(model)
    add(ModelLine.of("sequences", name, report))
    assert report.violation is not None, f"{name}: {report.states} states and no harm"
    print(told(report, model))


@pytest.mark.parametrize("name", UNSAFE)
def test_an_unsafe_order_is_found(name: str, model_line: AddLine) -> None:
    said, way = UNSAFE[name]
    given, *asked = MENU[said]
    demand_harm(name, Numbered(given, tuple(asked), by=way, cancel=False), model_line)


RULES: Final = {
    "blocks from before a setval are used": (
        "restarted",
        Rules(node=NumberRules(epochs_are_looked_at=False)),
    ),
    "a setval begins no epoch": (
        "restarted",
        Rules(verify=replace(VERIFY_RULES, setting_begins_an_epoch=False)),
    ),
    "nobody waits for older versions": ("dropped with CASCADE", Rules(drain=False)),
    "rows are numbered before the fence": ("ADD COLUMN SERIAL", Rules(fence_before_fill=False)),
    "a block is told before the log has it": ("renamed", Rules(answered_from_log=False)),
    "rows and their sequence go by two commits": (
        "ADD COLUMN SERIAL",
        Rules(moved_with_rows=False),
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_a_broken_rule_is_found(name: str, model_line: AddLine) -> None:
    said, rules = RULES[name]
    given, *asked = MENU[said]
    demand_harm(name, Numbered(given, tuple(asked), rules, cancel=False), model_line)
