"""Goal: a job's verification finds what keeps an element from becoming public, on every store.

Method: rows are written under version 1; then a version comes whose element they don't satisfy, as
in a job that has not filled yet, or never can. Nothing is damaged behind the store's back, so the
reference in memory and SQLite hold the same, and must say the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Check, Column, Element, Index
from leasehold.catalog.states import State
from leasehold.model.keys import Key
from leasehold.model.records.acks import CheckReport
from leasehold.model.records.log import Backfill
from leasehold.values.types import Type, parse_type
from tests.support.sqlite.lockstep import reports_of
from tests.support.transaction.written_table import STORES, WrittenTable, insert, opened

ID, A, B, NEW, INDEX, CHECK = 1, 2, 3, 4, 5, 6
INT = Type("integer")
ONE = Descriptor(
    1,
    "t",
    1,
    (Column(ID, "id", Type("bigint"), False), Column(A, "a", INT), Column(B, "b", INT)),
    (ID,),
    next_element_id=7,
)
WRITE_ONLY = State.WRITE_ONLY
PLAIN = Index(INDEX, "i", (A,), state=WRITE_ONLY)
ENFORCED = replace(PLAIN, unique_enforced=True)
ORDER = Check(CHECK, "k", "a < b", (A, B), WRITE_ONLY)
Findings = set[tuple[int, int, Key]]


@pytest.fixture(params=STORES)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WrittenTable]:
    with opened(request.param, tmp_path) as store:
        made = WrittenTable(store, ONE)
        made.send(
            insert("t", 1, a=5, b=6),
            insert("t", 2, a=5, b=5),
            insert("t", 3, b=1),
            insert("t", 4, a=9),
        )
        yield made


def with_element(element: Element) -> Descriptor:
    match element:
        case Column():
            others = tuple(c for c in ONE.columns if c.element_id != element.element_id)
            made = sorted((*others, element), key=lambda c: c.element_id)
            return replace(ONE, version=2, columns=tuple(made))
        case Index():
            return replace(ONE, version=2, indexes=(element,))
        case Check():
            return replace(ONE, version=2, checks=(element,))
    raise AssertionError(element)


def backfill(table: WrittenTable, *keys: int) -> None:
    version = table.catalog.newest(1)
    rows = tuple((key,) for key in keys)
    table.store.begin()
    table.store.backfill(version, Backfill(1, version.version, INDEX, rows))
    table._commit()


def report(table: WrittenTable, *elements: int) -> CheckReport:
    (made,) = reports_of(table.store, (1,), *elements)
    assert made.findings_total == len(made.findings)
    return made


def found(table: WrittenTable, *elements: int) -> Findings:
    return {finding[:3] for finding in report(table, *elements).findings}


# ------------------------------------------------------------------ columns

A_COLUMN = ONE.columns[1]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (replace(A_COLUMN, not_null_enforced=True), {(2, A, (3,))}),
        (replace(A_COLUMN, nullable=False), {(2, A, (3,))}),
        (A_COLUMN, set()),
        (replace(A_COLUMN, default=1), set()),
        (
            Column(NEW, "n", INT, False, 7, WRITE_ONLY),
            {(2, NEW, (key,)) for key in (1, 2, 3, 4)},
        ),
        (
            Column(NEW, "n", INT, True, 7, WRITE_ONLY),
            {(2, NEW, (key,)) for key in (1, 2, 3, 4)},
        ),
        (Column(NEW, "n", INT, True, None, WRITE_ONLY), set()),
        (replace(A_COLUMN, narrow=Type("smallint")), set()),
    ],
)
def test_rows_that_lack_what_a_column_requires(
    table: WrittenTable, column: Column, expected: Findings
) -> None:
    table.publish(with_element(column))
    assert found(table, column.element_id) == expected


@pytest.mark.parametrize(
    ("wide", "narrow", "values", "unfit", "code"),
    [
        ("bigint", "integer", (5, 1 << 31, None, -(1 << 31)), (2,), "22003"),
        ("integer", "smallint", (32_767, 32_768, -32_769, -32_768), (2, 3), "22003"),
        ("text", "varchar(3)", ("abc", "abcd", "ab ", "a   "), (2, 4), "22001"),
        ("numeric(7,2)", "numeric(4,2)", ("99.99", "-100.00", "0", None), (2,), "22003"),
    ],
)
def test_values_that_a_narrower_type_lacks_are_named(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    wide: str,
    narrow: str,
    values: tuple[Any, ...],
    unfit: tuple[int, ...],
    code: str,
) -> None:
    before = with_element(Column(A, "a", parse_type(wide)))
    for kind in STORES:
        with opened(kind, tmp_path / kind) as store:
            made = WrittenTable(store, replace(before, version=1))
            for key, value in enumerate(values, 1):
                made.send(insert("t", key, a=value))
            made.publish(with_element(Column(A, "a", parse_type(wide), narrow=parse_type(narrow))))
            assert found(made, A) == {(6, A, (key,)) for key in unfit}
            assert found(made, B) == set()
            if kind == "sqlite":
                told = report(made, A)
                assert told.code == code
                assert f"is no {parse_type(narrow)}" in told.findings[0][3]


# ------------------------------------------------------------------ indexes


def test_an_index_lacks_the_entries_that_are_not_filled_yet(table: WrittenTable) -> None:
    table.publish(with_element(PLAIN))
    assert found(table, INDEX) == {(4, INDEX, (key,)) for key in (1, 2, 3, 4)}
    backfill(table, 1, 3)
    assert found(table, INDEX) == {(4, INDEX, (2,)), (4, INDEX, (4,))}
    assert report(table, INDEX).entries == {INDEX: 2}
    table.send(insert("t", 5, a=1))
    backfill(table, 2, 4)
    assert found(table, INDEX) == set()
    assert report(table, INDEX).entries == {INDEX: 5}


def test_duplicates_are_found_once_the_index_is_to_be_unique(table: WrittenTable) -> None:
    """In its first verification its entries alone count; in the second, equal keys do."""
    table.publish(with_element(PLAIN))
    backfill(table, 1, 2, 3, 4)
    assert found(table, INDEX) == set()
    table.publish(replace(with_element(ENFORCED), version=3))
    duplicates = found(table, INDEX)
    assert {(condition, element) for condition, element, _ in duplicates} == {(6, INDEX)}
    assert (6, INDEX, (2,)) in duplicates
    assert duplicates <= {(6, INDEX, (1,)), (6, INDEX, (2,))}, "NULL equals nothing"


# ------------------------------------------------------------------ checks


def test_rows_that_make_a_check_false_are_found(table: WrittenTable) -> None:
    table.publish(with_element(ORDER))
    assert found(table, CHECK) == {(6, CHECK, (2,))}
    words = report(table, CHECK).findings[0][3]
    assert words == "check 'k': the row makes it false"


def test_a_row_on_which_a_check_can_not_be_computed_is_found(table: WrittenTable) -> None:
    table.publish(with_element(replace(ORDER, expression="10 / (a - b) < 5")))
    assert found(table, CHECK) == {(6, CHECK, (2,))}


def test_a_check_over_the_primary_key_and_a_hidden_column(table: WrittenTable) -> None:
    hidden = replace(ONE.columns[2], state=WRITE_ONLY)
    check = replace(ORDER, expression="id <> b", columns=(ID, B))
    version = replace(with_element(check), columns=(*ONE.columns[:2], hidden))
    table.publish(version)
    assert found(table, CHECK) == set()
    table.publish(replace(version, version=3, checks=(replace(check, expression="id + 2 > b"),)))
    assert found(table, CHECK) == {(6, CHECK, (1,)), (6, CHECK, (2,))}


# ------------------------------------------------------------------ several, none, unknown


def test_only_what_was_asked_for_is_looked_at(table: WrittenTable) -> None:
    column = replace(A_COLUMN, not_null_enforced=True)
    columns = (ONE.columns[0], column, ONE.columns[2])
    both = replace(ONE, version=2, columns=columns, indexes=(PLAIN,), checks=(ORDER,))
    table.publish(both)
    alone: list[Findings] = [found(table, element) for element in (A, INDEX, CHECK)]
    assert [len(findings) for findings in alone] == [1, 4, 1]
    assert found(table, A, INDEX, CHECK) == set().union(*alone)
    assert found(table, CHECK, A) == alone[0] | alone[2]
    assert report(table, CHECK, A).entries == {}
    assert found(table) == set(), "nothing of it is public"


def test_what_is_wrong_with_a_public_element_is_no_fault_of_the_one_that_is_asked_for(
    table: WrittenTable,
) -> None:
    broken = replace(with_element(PLAIN), checks=(replace(ORDER, state=State.PUBLIC),))
    table.publish(broken)
    backfill(table, 1, 2, 3, 4)
    assert found(table, INDEX) == set()
    assert found(table) == {(6, CHECK, (2,))}


@pytest.mark.parametrize("kind", STORES)
def test_an_element_that_is_not_there_is_an_error_and_not_clean(kind: str, tmp_path: Path) -> None:
    with opened(kind, tmp_path) as store:
        WrittenTable(store, ONE)
        with pytest.raises(AssertionError, match="has no element 77"):
            reports_of(store, (1,), 77)
