"""What a row must satisfy: NOT NULL, checks; what is enforced only is asked when it changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Check, Column
from leasehold.catalog.states import State
from leasehold.model.errors import CheckViolation, NotNullViolation, UnknownColumn
from leasehold.model.records.events import Image
from leasehold.transaction.binding import Binding
from leasehold.values.types import Type
from tests.support.transaction.written_table import (
    STORES,
    WrittenTable,
    insert,
    opened,
    update,
    upsert,
)

INT = Type("integer")
ID, A, B, C = 1, 2, 3, 4
TABLE = Descriptor(
    1,
    "t",
    1,
    (
        Column(ID, "id", Type("bigint"), False),
        Column(A, "a", INT),
        Column(B, "b", INT),
        Column(C, "c", INT),
    ),
    (ID,),
    checks=(Check(5, "order", "a < b", (A, B)),),
)


def table(column: Column | None = None, check: Check | None = None) -> Descriptor:
    columns = tuple(
        column if column is not None and c.element_id == column.element_id else c
        for c in TABLE.columns
    )
    return replace(TABLE, columns=columns, checks=TABLE.checks if check is None else (check,))


def check(descriptor: Descriptor, before: Image | None, image: Image) -> None:
    Binding(descriptor).check(before, {ID: 1, **image})


WRONG = {ID: 1, A: 5, B: 5}


# ------------------------------------------------------------------ checks


def test_a_false_check_refuses_naming_itself() -> None:
    with pytest.raises(CheckViolation) as caught:
        check(TABLE, None, {A: 5, B: 5})
    assert caught.value.sqlstate == "23514"
    assert caught.value.detail == {"table": "t", "constraint": "order"}


@pytest.mark.parametrize(
    ("before", "image", "refused"),
    [
        (None, {A: 4, B: 5}, False),
        (None, {A: 5}, False),
        (WRONG, {A: 5, B: 5}, False),
        (WRONG, {A: 5, B: 5, C: 9}, False),
        (WRONG, {A: 6, B: 5}, True),
        (WRONG, {A: 5, B: 4}, True),
        (WRONG, {A: 5, B: 6}, False),
        (WRONG, {A: 5}, False),
        ({ID: 1, A: 5}, {A: 5, B: 5}, True),
        ({ID: 1, A: 4, B: 5}, {A: 5, B: 5}, True),
    ],
)
def test_a_check_is_asked_on_change_of_its_columns_only(
    before: Image | None, image: Image, refused: bool
) -> None:
    """A row that broke it before it was enforced may still be written in its other columns."""
    if refused:
        with pytest.raises(CheckViolation):
            check(TABLE, before, image)
    else:
        check(TABLE, before, image)


@pytest.mark.parametrize(
    ("state", "enforced"),
    [(State.DELETE_ONLY, False), (State.WRITE_ONLY, True), (State.PUBLIC, True)],
)
def test_a_check_is_enforced_from_write_only_on(state: State, enforced: bool) -> None:
    descriptor = table(check=replace(TABLE.checks[0], state=state))
    if enforced:
        with pytest.raises(CheckViolation):
            check(descriptor, None, {A: 5, B: 5})
    else:
        check(descriptor, None, {A: 5, B: 5})


def test_a_check_sees_the_pair_of_a_column_that_is_hidden() -> None:
    hidden = replace(TABLE.columns[1], state=State.WRITE_ONLY)
    with pytest.raises(CheckViolation):
        check(table(hidden), None, {A: 5, B: 5})


# ------------------------------------------------------------------ NOT NULL


@pytest.mark.parametrize(
    ("column", "refused"),
    [
        (TABLE.columns[1], False),
        (replace(TABLE.columns[1], nullable=False), True),
        (replace(TABLE.columns[1], not_null_enforced=True), True),
        (replace(TABLE.columns[1], nullable=False, state=State.WRITE_ONLY), True),
        (replace(TABLE.columns[1], nullable=False, state=State.DELETE_ONLY), False),
    ],
)
def test_null_is_refused_while_not_null_is_public_or_enforced(
    column: Column, refused: bool
) -> None:
    descriptor = table(column)
    if refused:
        with pytest.raises(NotNullViolation) as caught:
            check(descriptor, None, {B: 5})
        assert caught.value.detail == {"table": "t", "column": "a"}
        with pytest.raises(NotNullViolation):
            check(descriptor, {ID: 1, A: 4, B: 5}, {B: 5})
    else:
        check(descriptor, None, {B: 5})
    check(descriptor, None, {A: 4, B: 5})


def test_a_null_from_before_is_left_alone_until_not_null_is_relied_on() -> None:
    """The job that finds it fails; meanwhile other columns of that row can be written."""
    before = {ID: 1, B: 5}
    check(table(replace(TABLE.columns[1], not_null_enforced=True)), before, {B: 6})
    with pytest.raises(NotNullViolation):
        check(table(replace(TABLE.columns[1], nullable=False)), before, {B: 6})


# ------------------------------------------------------------------ names


def test_both_names_of_a_renamed_column_are_written() -> None:
    renamed = replace(TABLE.columns[1], name="z", alias="a")
    plain = replace(TABLE, columns=(TABLE.columns[0], renamed), checks=())
    bound = Binding(plain)
    assert bound.values({"z": 4}, None) == bound.values({"a": 4}, None) == {A: 4}
    over = replace(plain, columns=(*plain.columns, replace(renamed, alias="")))
    with pytest.raises(UnknownColumn):
        Binding(replace(over, columns=(over.columns[0], over.columns[2]))).values({"a": 4}, None)


# ------------------------------------------------------------------ through the store


@pytest.mark.parametrize("kind", STORES)
def test_an_operation_is_judged_on_the_row_it_makes(kind: str, tmp_path: Path) -> None:
    """Also where a request names half of the check's columns, or changes a row twice."""
    with opened(kind, tmp_path) as store:
        written = WrittenTable(store, TABLE)
        written.send(insert("t", 1, a=1, b=2))
        for operation in (update("t", 1, a=2), upsert("t", 1, b=1), insert("t", 2, a=1, b=1)):
            with pytest.raises(CheckViolation):
                written.send(operation)
        with pytest.raises(CheckViolation):
            written.send(update("t", 1, b=9), update("t", 1, a=8), update("t", 1, b=3))
        assert written.row(1, 1) == {ID: 1, A: 1, B: 2}
        written.send(update("t", 1, b=9), update("t", 1, a=8))
        assert written.row(1, 1) == {ID: 1, A: 8, B: 9}
