"""Goal: a foreign key is looked at when the whole request is known (T3), from both sides, on every
store alike.

Method: requests on a parent and its children, one that refers to its primary key and one to a
unique column; each against the reference in memory and against SQLite.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column, ForeignKey, Index
from leasehold.catalog.states import State
from leasehold.model.errors import ForeignKeyViolation
from leasehold.model.records.log import MinVersion
from leasehold.model.records.requests import Operation
from leasehold.values.types import Type
from tests.support.transaction.written_table import (
    STORES,
    WrittenTable,
    delete,
    insert,
    opened,
    update,
)

INTEGER = Type("integer")
ID, A, B = 1, 2, 3
COLUMNS = (Column(ID, "id", INTEGER, False), Column(A, "a", INTEGER), Column(B, "b", INTEGER))
UNIQUE_A = Index(4, "p_a_key", (A,), unique=True, constraint=True)
PARENT = Descriptor(1, "p", 1, COLUMNS, (ID,), (UNIQUE_A,), 5)
BY_KEY = ForeignKey(6, "c_a_fkey", (A,), 1, (ID,), 0, 4)
BY_UNIQUE = ForeignKey(7, "c_b_fkey", (B,), 1, (A,), 4, 5)
CHILD = Descriptor(
    2,
    "c",
    1,
    COLUMNS,
    (ID,),
    (Index(4, "c_a_idx", (A,)), Index(5, "c_b_idx", (B,))),
    8,
    foreign_keys=(BY_KEY, BY_UNIQUE),
)


@pytest.fixture(params=STORES)
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WrittenTable]:
    """Parents 1 (a = 10) and 2 (a = 20); child 1 refers to parent 1 twice."""
    with opened(request.param, tmp_path) as store:
        made = WrittenTable(store, PARENT, CHILD)
        made.send(insert("p", 1, a=10), insert("p", 2, a=20), insert("c", 1, a=1, b=10))
        yield made


ALLOWED = {
    "another_parent": [update("c", 1, a=2, b=20)],
    "to_nothing": [update("c", 1, a=None, b=None)],
    "a_parent_nobody_needs": [delete("p", 2)],
    "child_and_parent_together": [delete("p", 1), delete("c", 1)],
    "child_before_its_parent": [insert("c", 2, a=3), insert("p", 3)],
    "child_leaves_first": [update("c", 1, a=2, b=None), delete("p", 1)],
    "child_leaves_after": [delete("p", 1), update("c", 1, a=2, b=None)],
    "parents_swap": [update("p", 1, a=20), update("p", 2, a=10)],
    "parent_comes_back": [delete("p", 1), insert("p", 1, a=10)],
    "other_column_of_the_parent": [update("p", 1, b=5)],
}


@pytest.mark.parametrize("operations", ALLOWED.values(), ids=ALLOWED)
def test_what_holds_at_the_end_is_allowed(
    tables: WrittenTable, operations: list[Operation]
) -> None:
    tables.send(*operations)


REFUSED = {
    "no_such_key": ([insert("c", 2, a=9)], "c_a_fkey"),
    "no_such_unique_value": ([update("c", 1, b=30)], "c_b_fkey"),
    "parent_with_a_child": ([delete("p", 1)], "c_a_fkey"),
    "unique_column_of_a_parent": ([update("p", 1, a=11)], "c_b_fkey"),
    "unique_column_to_null": ([update("p", 1, a=None)], "c_b_fkey"),
    "child_comes_as_its_parent_goes": ([delete("p", 2), insert("c", 2, a=2)], "c_a_fkey"),
    "another_child_stays": (
        [insert("c", 2, a=1), delete("c", 1), delete("p", 1)],
        "c_a_fkey",
    ),
    "parent_comes_back_as_another": ([delete("p", 1), insert("p", 3, a=10)], "c_a_fkey"),
}


@pytest.mark.parametrize(("operations", "constraint"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_hold_at_the_end_is_refused(
    tables: WrittenTable, operations: list[Operation], constraint: str
) -> None:
    with pytest.raises(ForeignKeyViolation) as refused:
        tables.send(*operations)
    assert refused.value.sqlstate == "23503"
    assert refused.value.detail["constraint"] == constraint


def test_a_reference_from_before_is_left_alone(tables: WrittenTable) -> None:
    """NOT VALID: another column of a row that refers to nothing may still be changed."""
    without = replace(CHILD, table_id=3, name="n", foreign_keys=())
    tables.publish(without)
    tables.send(insert("n", 1, a=99))
    late = replace(BY_KEY, state=State.WRITE_ONLY)
    tables.publish(replace(without, version=2, foreign_keys=(late,)))
    tables.send(update("n", 1, b=1))
    with pytest.raises(ForeignKeyViolation):
        tables.send(update("n", 1, a=98))


def test_a_parent_is_kept_while_any_version_of_its_child_may_be_in_use(
    tables: WrittenTable,
) -> None:
    """A child that is being dropped is still public for who holds the version before (D5)."""
    tables.publish(replace(CHILD, version=2, state=State.DELETE_ONLY))
    with pytest.raises(ForeignKeyViolation):
        tables.send(delete("p", 1))
    tables.catalog.apply(MinVersion(2, 2), 0, 0)
    tables.send(delete("p", 1))


@pytest.mark.parametrize(("state", "enforced"), [(State.DELETE_ONLY, False), (State.PUBLIC, True)])
def test_it_is_enforced_from_write_only_on(
    tables: WrittenTable, state: State, enforced: bool
) -> None:
    tables.publish(replace(CHILD, version=2, foreign_keys=(replace(BY_KEY, state=state),)))
    tables.catalog.apply(MinVersion(2, 2), 0, 0)
    if enforced:
        with pytest.raises(ForeignKeyViolation):
            tables.send(insert("c", 2, a=9))
    else:
        tables.send(insert("c", 2, a=9), delete("p", 1))


def test_a_table_may_refer_to_itself(tables: WrittenTable) -> None:
    boss = ForeignKey(6, "e_a_fkey", (A,), 4, (ID,), 0, 4)
    indexes = (Index(4, "e_a_idx", (A,)),)
    tables.publish(replace(CHILD, table_id=4, name="e", indexes=indexes, foreign_keys=(boss,)))
    tables.send(insert("e", 1, a=1), insert("e", 2, a=1))
    with pytest.raises(ForeignKeyViolation):
        tables.send(delete("e", 1))
    tables.send(delete("e", 1), delete("e", 2))
