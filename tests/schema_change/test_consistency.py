"""d ⊨ S: each of the seven conditions is broken once, alone, and named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column, Index
from leasehold.catalog.states import State
from leasehold.values.types import Type
from tests.support.descriptors import with_state
from tests.support.memory_store.consistency import KeyValueData, violations

ID, A, C, X, U = 1, 2, 3, 4, 5
TABLE = Descriptor(
    7,
    "t",
    3,
    (
        Column(ID, "id", Type("integer"), nullable=False),
        Column(A, "a", Type("integer")),
        Column(C, "c", Type("integer"), nullable=False, default=7),
    ),
    (ID,),
    (Index(X, "i", (A, ID)), Index(U, "u", (A,), unique=True)),
    next_element_id=6,
)
GOOD = KeyValueData(
    exists={(1,), (2,)},
    columns={((1,), A): 5, ((1,), C): 7, ((2,), C): 8},
    entries={(X, (5, 1), (1,)), (X, (None, 2), (2,)), (U, (5,), (1,)), (U, (None,), (2,))},
    physical={ID, A, C, X, U},
)


def broken(data: KeyValueData, descriptor: Descriptor = TABLE, dead: set[int] | None = None) -> Any:
    return [(v.condition, v.element_id, v.key) for v in violations(data, descriptor, dead or set())]


def test_consistent_data_breaks_nothing() -> None:
    assert broken(GOOD) == []


def test_a_stored_key_column_agrees_with_the_key() -> None:
    columns = {**GOOD.columns, ((1,), ID): 1}
    assert broken(GOOD._replace(columns=columns)) == []
    columns[(1,), ID] = 2
    assert broken(GOOD._replace(columns=columns)) == [(7, ID, (1,))]


def test_1_pair_of_an_unknown_column() -> None:
    assert broken(GOOD._replace(columns={**GOOD.columns, ((1,), 9): 1})) == [(1, 9, (1,))]


def test_1_pair_without_its_row() -> None:
    assert broken(GOOD._replace(columns={**GOOD.columns, ((3,), A): 1})) == [(1, A, (3,))]


def test_2_required_pair_missing() -> None:
    columns = {k: v for k, v in GOOD.columns.items() if k != ((1,), C)}
    data = GOOD._replace(columns=columns)
    assert broken(data) == [(2, C, (1,))]
    for state in (State.DELETE_ONLY, State.WRITE_ONLY):
        assert broken(data, with_state(TABLE, C, state)) == []


def test_3_entry_of_an_unknown_index() -> None:
    assert broken(GOOD._replace(entries={*GOOD.entries, (9, (5,), (1,))})) == [(3, 9, (1,))]


@pytest.mark.parametrize("entry", [(X, (5, 1), (1,)), (X, (None, 2), (2,))])
def test_4_entry_missing(entry: tuple[int, Any, Any]) -> None:
    data = GOOD._replace(entries=set(GOOD.entries) - {entry})
    assert broken(data) == [(4, X, entry[2])]
    assert broken(data, with_state(TABLE, X, State.WRITE_ONLY)) == []


@pytest.mark.parametrize("state", [State.DELETE_ONLY, State.WRITE_ONLY, State.PUBLIC])
def test_5_entry_that_no_row_implies(state: State) -> None:
    table = TABLE if state is State.PUBLIC else with_state(TABLE, X, state)
    stale = GOOD._replace(entries={*GOOD.entries, (X, (6, 1), (1,))})
    assert broken(stale, table) == [(5, X, (1,))]
    orphan = GOOD._replace(entries={*GOOD.entries, (X, (6, 3), (3,))})
    assert broken(orphan, table) == [(5, X, (3,))]


def test_6_unique_index_with_equal_keys() -> None:
    data = GOOD._replace(
        columns={**GOOD.columns, ((2,), A): 5},
        entries={(X, (5, 1), (1,)), (X, (5, 2), (2,)), (U, (5,), (1,)), (U, (5,), (2,))},
    )
    assert broken(data) == [(6, U, (2,))]
    assert broken(data, with_state(TABLE, U, State.WRITE_ONLY)) == []


def test_6_nulls_are_distinct() -> None:
    columns = {k: v for k, v in GOOD.columns.items() if k[1] != A}
    entries = {(i, (None, *((k[0],) * (i == X))), k) for i in (X, U) for k in GOOD.exists}
    assert broken(GOOD._replace(columns=columns, entries=entries)) == []


def test_7_storage_of_an_element_that_is_in_no_version() -> None:
    assert broken(GOOD._replace(physical={*GOOD.physical, 9})) == [(7, 9, ())]
    assert broken(GOOD._replace(physical={*GOOD.physical, 9}), dead={9}) == []


def test_7_pair_that_holds_null() -> None:
    assert broken(GOOD._replace(columns={**GOOD.columns, ((2,), A): None})) == [(7, A, (2,))]


def test_7_rows_of_an_absent_table() -> None:
    absent = replace(TABLE, state=State.ABSENT)
    assert {v[0] for v in broken(GOOD, absent)} == {1, 3, 7}
    assert broken(KeyValueData(set(), {}, set()), absent) == []


def test_dead_elements_are_skipped_by_id_only() -> None:
    data = GOOD._replace(
        columns={**GOOD.columns, ((3,), 9): 1, ((3,), 8): 1},
        entries={*GOOD.entries, (9, (1,), (3,)), (8, (1,), (3,))},
    )
    assert broken(data, dead={9}) == [(1, 8, (3,)), (1, 8, (3,)), (3, 8, (3,))]


def test_dead_says_nothing_to_a_version_that_uses_the_element() -> None:
    data = GOOD._replace(columns={**GOOD.columns, ((3,), A): 1})
    assert broken(data, dead={A}) == [(1, A, (3,))]


def test_anomalies() -> None:
    missing = GOOD._replace(entries=set(GOOD.entries) - {(X, (5, 1), (1,))})
    assert violations(missing, TABLE)[0].anomaly == "integrity"
    extra = GOOD._replace(entries={*GOOD.entries, (9, (5,), (1,))})
    found = violations(extra, TABLE)[0]
    assert found.anomaly == "orphan"
    assert "index 9" in found.words
