"""Claims 1 to 7 and Theorem 1 of the F1 paper, over every store of few rows that there can be.

A pair of versions S1, S2 is tested from the definition: whatever the start with d ⊨ S1 and d ⊨ S2
(after at most one reorganisation), no operation made under either breaks either, and none harms
another writer or reader (refused for what it can't see, a column changed that it does not name).
Rows are independent of each other as long as no constraint spans them, so one row says it for all
but UNIQUE.
"""

from __future__ import annotations

from functools import cache

import pytest

from leasehold.catalog.states import State
from tests.models.explorer import Report, explore
from tests.models.summary import AddLine, ModelLine
from tests.schema_change.elements import (
    ABSENT,
    CONSTRAINTS,
    DEFAULTED,
    DELETE_ONLY,
    KINDS,
    NEEDED,
    OPTIONAL,
    PUBLIC,
    WITH_PAIRS,
    WRITE_ONLY,
    Kind,
)
from tests.schema_change.model import Model
from tests.schema_change.verdict import data_of, inconsistent
from tests.schema_change.world import Row
from tests.schema_change.writers import Writers, lost
from tests.support.memory_store.consistency import (
    INTEGRITY_CONDITIONS,
    ORPHAN_CONDITIONS,
    violations,
)

Rows = tuple[Row, ...]
NOBODY = ""


@cache
def writers(kind: Kind) -> Writers:
    return Writers(kind.domain)


@cache
def holds(kind: Kind, rows: Rows, state: State) -> bool:
    return not inconsistent(rows, kind.at[state], frozenset())


@cache
def preserving(kind: Kind, first: State, second: State) -> Report[tuple[Rows, str]]:
    """S1 → S2 from every d ⊨ S1, reorganised once if d ⊭ S2, under operations of both."""
    starts = {
        rows if holds(kind, rows, second) else kind.reorganised(rows, second)
        for rows in kind.stores
        if holds(kind, rows, first)
    }
    usable = [r for r in starts if holds(kind, r, first) and holds(kind, r, second)]
    assert usable
    used = kind.at[first], kind.at[second]

    def successors(world: tuple[Rows, str]) -> list[tuple[str, tuple[Rows, str]]]:
        rows, harm = world
        made = []
        for place, row in enumerate(rows if not harm else ()):
            others = (*rows[:place], *rows[place + 1 :])
            for version in used:
                for outcome in writers(kind).outcomes(row, others, version):
                    after = tuple(sorted((*others, outcome.row), key=repr))
                    hurt = outcome.harm or lost(row, outcome, version, used)
                    made.append((f"{outcome.write.words}, {version.words}", (after, hurt)))
        return made

    def invariant(world: tuple[Rows, str]) -> str | None:
        rows, harm = world
        broken = [kind.at[s].words for s in (first, second) if not holds(kind, rows, s)]
        return f"d ⊭ {broken[0]}" if broken else harm or None

    named = [("some d ⊨ both", (rows, NOBODY)) for rows in sorted(usable, key=repr)]
    return explore(named, successors, invariant, states_max=50_000)


def safe(kind: Kind, first: State, second: State) -> bool:
    report = preserving(kind, first, second)
    assert report.exhausted or report.violation is not None
    return report.violation is None


def claim(number: str, kind: Kind, first: State, second: State, add: AddLine) -> bool:
    report = preserving(kind, first, second)
    rows = f"every d of {kind.rows} row{'s' * (kind.rows > 1)}"
    words = f"{first.label} → {second.label}"
    add(ModelLine.of(f"{number}: {kind}", words, report, rows))
    return safe(kind, first, second)


def implied(kind: Kind, first: State, second: State) -> bool:
    """Is d ⊨ S1 enough for d ⊨ S2?"""
    return all(not holds(kind, r, first) or holds(kind, r, second) for r in kind.stores)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_claim_1_a_change_is_safe_exactly_if_its_reverse_is(kind: Kind) -> None:
    table = {(a, b): safe(kind, a, b) for a in kind.states for b in kind.states}
    assert all(table[a, b] == table[b, a] for a, b in table)
    assert all(table[a, a] for a in kind.states)
    assert not all(table.values()), "nothing was unsafe: the test could not fail"


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_claim_2_public_never_comes_or_goes_in_one_step(kind: Kind, model_line: AddLine) -> None:
    assert not claim("Claim 2", kind, ABSENT, PUBLIC, model_line)
    assert not claim("Claim 2", kind, PUBLIC, ABSENT, model_line)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_claim_3_broken_means_orphan_or_integrity_anomaly(kind: Kind) -> None:
    assert set(range(1, 8)) == ORPHAN_CONDITIONS | INTEGRITY_CONDITIONS
    assert not ORPHAN_CONDITIONS & INTEGRITY_CONDITIONS
    seen = {
        found.anomaly
        for rows in kind.stores
        for version in kind.at.values()
        for found in violations(data_of(rows), version.descriptor)
    }
    # A nullable column can lack nothing: its default is what answers promise, not d ⊨ S.
    whole = {"orphan"} if kind.name in (OPTIONAL.name, DEFAULTED.name) else set()
    assert seen == (whole or {"orphan", "integrity"})


@pytest.mark.parametrize("kind", WITH_PAIRS, ids=str)
def test_claim_4_absent_to_delete_only(kind: Kind, model_line: AddLine) -> None:
    """Whatever the element, optional or not; d ⊨ S1 is enough for d ⊨ S2."""
    assert implied(kind, ABSENT, DELETE_ONLY)
    assert claim("Claim 4", kind, ABSENT, DELETE_ONLY, model_line)


def test_claim_5_optional_goes_from_delete_only_to_public(model_line: AddLine) -> None:
    assert implied(OPTIONAL, DELETE_ONLY, PUBLIC)
    assert claim("Claim 5", OPTIONAL, DELETE_ONLY, PUBLIC, model_line)


@pytest.mark.parametrize("kind", NEEDED, ids=str)
def test_claim_5_does_not_hold_for_what_every_row_needs(kind: Kind, model_line: AddLine) -> None:
    """⚠ A nullable column with a default among them (V6): new rows would lack it."""
    assert not claim("Claim 5", kind, DELETE_ONLY, PUBLIC, model_line)


@pytest.mark.parametrize("kind", NEEDED, ids=str)
def test_claim_6_delete_only_to_write_only(kind: Kind, model_line: AddLine) -> None:
    assert implied(kind, DELETE_ONLY, WRITE_ONLY)
    assert claim("Claim 6", kind, DELETE_ONLY, WRITE_ONLY, model_line)


@pytest.mark.parametrize("kind", NEEDED, ids=str)
def test_claim_7_write_only_to_public_once_filled(kind: Kind, model_line: AddLine) -> None:
    """Needs d ⊨ both, hence the one reorganisation: without it some d ⊨ write-only lacks pairs."""
    rows = [rows for rows in kind.stores if holds(kind, rows, WRITE_ONLY)]
    filled = [kind.reorganised(r, PUBLIC) for r in rows]
    assert filled != rows, "nothing lacked anything"
    assert all(holds(kind, r, PUBLIC) for r in filled)
    assert claim("Claim 7", kind, WRITE_ONLY, PUBLIC, model_line)


@pytest.mark.parametrize("kind", CONSTRAINTS, ids=str)
def test_constraints_go_by_write_only_once_validated(kind: Kind, model_line: AddLine) -> None:
    """The seed's way for constraints, whose proof it leaves out: absent → write-only → public."""
    assert implied(kind, ABSENT, WRITE_ONLY)
    assert not implied(kind, WRITE_ONLY, PUBLIC), "there is something to validate"
    assert claim("constraint", kind, ABSENT, WRITE_ONLY, model_line)
    assert claim("constraint", kind, WRITE_ONLY, PUBLIC, model_line)


@pytest.mark.parametrize("way", ["up", "down"])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_theorem_1_there_is_a_safe_way_with_one_reorganisation(
    kind: Kind, way: str, model_line: AddLine
) -> None:
    """From every d ⊨ S1: the planned steps keep d ⊨ S for all, and S2 is reached with d ⊨ S2.

    One reorganisation at most: filling what is added, or removing what is dropped, which waits for
    the history horizon. (An index that is unique is two elements: the entries and the constraint.)
    """
    change = kind.up if way == "up" else kind.down
    assert sum(len(step.backfills) for step in change.job.steps) <= 1
    model = Model(change, rows=kind.rows, cancel=False)
    base = model.timeline.all[0].used[0]
    stores = [rows for rows in kind.stores if not inconsistent(rows, base, frozenset())]
    starts = [("some d ⊨ S1", model.world(rows)) for rows in stores]
    report = explore(starts, model.successors, model.invariant, states_max=50_000)
    model_line(ModelLine.of(f"Theorem 1: {kind}", way, report, f"from {len(stores)} d ⊨ S1"))
    assert report.violation is None, report.violation.words(model.show)
    assert report.exhausted
    assert model.reached["succeeded"]
    # What one reorganisation can't mend is a constraint that the rows break.
    refuted = bool(model.reached["failed"])
    assert refuted == (way == "up" and kind.constraint)
