"""Goal: rows of before that break a new constraint are named as the master names those that are
written: by their keys, in order, with the values that are to blame; in slices as in one pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from leasehold.adapters.sqlite.checking import table_check
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Check, Column, ForeignKey
from leasehold.catalog.states import State
from leasehold.model.records.acks import CheckReport
from leasehold.model.records.log import CheckSlice
from leasehold.model.records.requests import Operation, OperationKind
from leasehold.rows.check_constraints import explain_violation
from leasehold.values.types import Type
from tests.support.sqlite.lockstep import reports_of
from tests.support.transaction.written_table import WrittenTable, insert

ID, A, B, CHECK, KEY = 1, 2, 3, 8, 9
CITIES = Descriptor(
    2,
    "cities",
    1,
    (Column(ID, "id", Type("bigint"), False), Column(A, "no", Type("text"), False)),
    (ID, A),
)
PLACES = Descriptor(
    1,
    "places",
    1,
    (
        Column(ID, "id", Type("bigint"), False),
        Column(A, "a", Type("bigint")),
        Column(B, "b", Type("text")),
    ),
    (ID,),
    next_element_id=10,
)
HIDDEN = State.WRITE_ONLY
REFERS = ForeignKey(KEY, "f", (A, B), 2, (ID, A), state=HIDDEN)


@pytest.fixture
def table(tmp_path: Path) -> Iterator[WrittenTable]:
    store = SqliteStore(tmp_path / "node.db", cache_mb=1)
    made = WrittenTable(store, CITIES, PLACES)
    made.send(Operation(OperationKind.INSERT, "cities", {"id": 1, "no": "x"}, {}))
    for key, a, b in ((4, 1, "x"), (3, 2, "x"), (2, 1, None), (1, 1, "y"), (5, None, None)):
        made.send(insert("places", key, a=a, b=b))
    yield made
    store.close()


def publish(table: WrittenTable, **changed: Any) -> None:
    version = table.catalog.newest(1).version + 1
    table.publish(replace(PLACES, version=version, **changed))


def report(table: WrittenTable, element: int, sliced: bool) -> CheckReport:
    part = CheckSlice(0, (), 100) if sliced else None
    with patch.object(table.store, "check", _in_part(table.store, part)):
        (made,) = reports_of(table.store, (1,), element)
    assert made.findings_total == len(made.findings)
    return made


def _in_part(store: Any, part: CheckSlice | None) -> Any:
    check = store.check
    return lambda *asked: check(*asked, part=part)


def told(made: CheckReport) -> list[tuple[Any, str]]:
    return [(key, words) for _, _, key, words in made.findings]


SLICED = pytest.mark.parametrize("sliced", [False, True], ids=["one_pass", "slice"])


@SLICED
def test_a_table_without_rows_may_refer_by_an_index_that_is_yet_to_come(
    tmp_path: Path, sliced: bool
) -> None:
    """So does one that a transaction makes beside what it refers to."""
    store = SqliteStore(tmp_path / "node.db", cache_mb=1)
    empty = WrittenTable(store, CITIES, PLACES)
    publish(empty, foreign_keys=(replace(REFERS, parent_index=9),))
    assert told(report(empty, KEY, sliced)) == []
    store.close()


@SLICED
def test_who_refers_to_nobody_is_named_with_what_he_refers_to(
    table: WrittenTable, sliced: bool
) -> None:
    publish(table, foreign_keys=(REFERS,))
    made = report(table, KEY, sliced)
    assert told(made) == [
        ((1,), "foreign key 'f': (a, b) = (1, 'y') is not in table 'cities'"),
        ((3,), "foreign key 'f': (a, b) = (2, 'x') is not in table 'cities'"),
    ]
    assert made.code == "23503"
    publish(table, foreign_keys=(replace(REFERS, full=True),))
    assert ((2,), "foreign key 'f': it is NULL in parts") in told(report(table, KEY, sliced))


@SLICED
def test_who_has_no_value_is_named(table: WrittenTable, sliced: bool) -> None:
    strict = replace(PLACES.columns[1], not_null_enforced=True)
    publish(table, columns=(PLACES.columns[0], strict, PLACES.columns[2]))
    made = report(table, A, sliced)
    assert told(made) == [((5,), "column 'a' is NULL")]
    assert made.code == "23502"


@SLICED
@pytest.mark.parametrize(
    ("expression", "by_sqlite"),
    [("a <> 1 OR id IN (2, 5)", True), ("abs(a) <> 1 OR id IN (2, 5)", False)],
)
def test_who_makes_a_check_false_is_named(
    table: WrittenTable, sliced: bool, expression: str, by_sqlite: bool
) -> None:
    publish(table, checks=(Check(CHECK, "k", expression, (ID, A), HIDDEN),))
    explained: list[Any] = []

    def counted(holds: Any, image: Any) -> str:
        explained.append(image)
        return explain_violation(holds, image)

    with patch.object(table_check, "explain_violation", counted):
        made = report(table, CHECK, sliced)
    assert told(made) == [((key,), "check 'k': the row makes it false") for key in (1, 4)]
    assert made.code == "23514"
    asked = 2 if by_sqlite else 5 + 2
    assert len(explained) == asked, "rows that SQLite can tell of are never made here"


@SLICED
def test_what_a_check_raises_is_told(table: WrittenTable, sliced: bool) -> None:
    publish(table, checks=(Check(CHECK, "k", "10 / (a - 2) < 20", (A,), HIDDEN),))
    made = report(table, CHECK, sliced)
    assert told(made) == [((3,), "check 'k': it can't be computed on the row: division by zero")]
    assert made.code == "22012"


def test_a_check_over_more_columns_than_a_function_takes(table: WrittenTable) -> None:
    publish(table, checks=(Check(CHECK, "k", "abs(a) <> 1", (A,), HIDDEN),))
    with patch.object(table_check, "FUNCTION_COLUMNS_MAX", 0):
        made = report(table, CHECK, sliced=False)
    assert [key for key, _ in told(made)] == [(1,), (2,), (4,)]
