"""Claims 1 to 7 of the F1 paper, over every store of one row that there can be.

A pair of versions S1, S2 is tested from the definition: whatever the start with d ⊨ S1 and d ⊨ S2
(after at most one reorganisation), no operation made under either breaks either. Rows are
independent of each other as long as no constraint spans them, so one row says it for all.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations, product
from typing import Any

import pytest

from leasehold.schema.consistency import INTEGRITY_CONDITIONS, ORPHAN_CONDITIONS
from leasehold.schema.descriptor import Index
from leasehold.schema.states import State
from tests.models.explorer import Report, explore
from tests.models.summary import AddLine, ModelLine
from tests.schema_change.model_f1 import Model
from tests.schema_change.planned_change import (
    ADD_NULLABLE,
    ADD_REQUIRED,
    CREATE_INDEX,
    ID,
    A,
    B,
    Change,
    E,
)
from tests.schema_change.world import Row, make_row

ABSENT, DELETE_ONLY, WRITE_ONLY, PUBLIC = State
KINDS = [CREATE_INDEX, ADD_REQUIRED, ADD_NULLABLE]
REQUIRED = [CREATE_INDEX, ADD_REQUIRED]
MODELS = {change.name: Model(change, rows=1, values=(0, 1, None)) for change in KINDS}


@cache
def every_row(name: str) -> tuple[Row, ...]:
    """All that one row's pairs and entries can be, sensible or not."""
    values = (None, 0, 1)
    extra: list[tuple[dict[int, Any], set[tuple[Any, ...]]]]
    if isinstance(MODELS[name].change.element, Index):
        subsets = [set(s) for n in range(4) for s in combinations([(v,) for v in values], n)]
        extra = [({}, entries) for entries in subsets]
    else:
        extra = [({} if value is None else {E: value}, set()) for value in (None, 7, 8)]
    there = [
        make_row(True, {ID: 0, A: value, B: 0, **pairs}, entries)
        for value, (pairs, entries) in product(values, extra)
    ]
    gone = [make_row(False, pairs, entries) for pairs, entries in extra]
    return (*there, *gone)


def holds(model: Model, row: Row, state: State) -> bool:
    return not model.check(((0, row),), state, dead=False)


def reorganised(model: Model, row: Row, state: State) -> Row:
    """What one reorganisation makes of a row before E may be in `state`."""
    if state is PUBLIC and model.change.fills(WRITE_ONLY):
        return model.fill(row, 0, None)
    if state is ABSENT:
        return make_row(row.exists, {e: v for e, v in row.pairs if e != E}, set())
    return row


def preserving(change: Change, first: State, second: State) -> Report[Row]:
    """S1 → S2 from every d ⊨ S1, reorganised once if d ⊭ S2, under operations of both."""
    model = MODELS[change.name]
    starts = {
        row if holds(model, row, second) else reorganised(model, row, second)
        for row in every_row(change.name)
        if holds(model, row, first)
    }
    usable = [r for r in starts if holds(model, r, first) and holds(model, r, second)]
    assert usable

    def successors(row: Row) -> list[tuple[str, Row]]:
        return [*model.effects(row, 0, first), *model.effects(row, 0, second)]

    def invariant(row: Row) -> str | None:
        for state in (first, second):
            if harm := model.verdict(row, 0, state, False):
                return harm
        return None

    named = [("some d ⊨ both", row) for row in sorted(usable, key=repr)]
    return explore(named, successors, invariant, states_max=10_000)


def safe(change: Change, first: State, second: State) -> bool:
    report = preserving(change, first, second)
    assert report.exhausted or report.violation is not None
    return report.violation is None


def claim(number: int, change: Change, first: State, second: State, add: AddLine) -> bool:
    report = preserving(change, first, second)
    words = f"{first.label} → {second.label}"
    add(ModelLine.of(f"Claim {number}: {change.name}", words, report, "every d of one row"))
    return report.violation is None


@pytest.mark.parametrize("change", KINDS, ids=lambda c: c.name)
def test_claim_1_a_change_is_safe_exactly_if_its_reverse_is(change: Change) -> None:
    table = {(a, b): safe(change, a, b) for a in State for b in State}
    assert all(table[a, b] == table[b, a] for a in State for b in State)
    assert all(table[a, a] for a in State)
    assert not all(table.values()), "nothing was unsafe: the test could not fail"


@pytest.mark.parametrize("change", KINDS, ids=lambda c: c.name)
def test_claim_2_public_never_comes_or_goes_in_one_step(
    change: Change, model_line: AddLine
) -> None:
    assert not claim(2, change, ABSENT, PUBLIC, model_line)
    assert not claim(2, change, PUBLIC, ABSENT, model_line)


@pytest.mark.parametrize("change", KINDS, ids=lambda c: c.name)
def test_claim_3_broken_means_orphan_or_integrity_anomaly(change: Change) -> None:
    assert set(range(1, 8)) == ORPHAN_CONDITIONS | INTEGRITY_CONDITIONS
    assert not ORPHAN_CONDITIONS & INTEGRITY_CONDITIONS
    model = MODELS[change.name]
    seen = {
        found.anomaly
        for row in every_row(change.name)
        for state in State
        for found in model.check(((0, row),), state, dead=False)
    }
    assert seen == ({"orphan"} if change is ADD_NULLABLE else {"orphan", "integrity"})


@pytest.mark.parametrize("change", KINDS, ids=lambda c: c.name)
def test_claim_4_absent_to_delete_only(change: Change, model_line: AddLine) -> None:
    """Whatever the element, optional or not; d ⊨ S1 is enough for d ⊨ S2."""
    model = MODELS[change.name]
    for row in every_row(change.name):
        assert not holds(model, row, ABSENT) or holds(model, row, DELETE_ONLY), row
    assert claim(4, change, ABSENT, DELETE_ONLY, model_line)


def test_claim_5_optional_goes_from_delete_only_to_public(model_line: AddLine) -> None:
    model = MODELS[ADD_NULLABLE.name]
    for row in every_row(ADD_NULLABLE.name):
        assert not holds(model, row, DELETE_ONLY) or holds(model, row, PUBLIC), row
    assert claim(5, ADD_NULLABLE, DELETE_ONLY, PUBLIC, model_line)


@pytest.mark.parametrize("change", REQUIRED, ids=lambda c: c.name)
def test_claim_5_does_not_hold_for_what_every_row_needs(
    change: Change, model_line: AddLine
) -> None:
    assert not claim(5, change, DELETE_ONLY, PUBLIC, model_line)


@pytest.mark.parametrize("change", REQUIRED, ids=lambda c: c.name)
def test_claim_6_delete_only_to_write_only(change: Change, model_line: AddLine) -> None:
    model = MODELS[change.name]
    for row in every_row(change.name):
        assert not holds(model, row, DELETE_ONLY) or holds(model, row, WRITE_ONLY), row
    assert claim(6, change, DELETE_ONLY, WRITE_ONLY, model_line)


@pytest.mark.parametrize("change", REQUIRED, ids=lambda c: c.name)
def test_claim_7_write_only_to_public_once_filled(change: Change, model_line: AddLine) -> None:
    """Needs d ⊨ both, hence the one reorganisation: without it some d ⊨ write-only lacks pairs."""
    model = MODELS[change.name]
    rows = [row for row in every_row(change.name) if holds(model, row, WRITE_ONLY)]
    assert any(not holds(model, row, PUBLIC) for row in rows)
    assert all(holds(model, reorganised(model, row, PUBLIC), PUBLIC) for row in rows)
    assert claim(7, change, WRITE_ONLY, PUBLIC, model_line)
