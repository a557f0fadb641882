"""CHECK constraints on a row's image: false breaks one, NULL does not, an error does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Check, Column
from leasehold.catalog.states import State
from leasehold.model.errors import DivisionByZero, UnknownColumn, WrongType
from leasehold.rows.check_constraints import condition_of, explain_violation
from leasehold.values.types import Type

ID, A, B, OPEN = 1, 2, 3, 4
TABLE = Descriptor(
    1,
    "t",
    1,
    (
        Column(ID, "id", Type("bigint"), False),
        Column(A, "a", Type("integer")),
        Column(B, "b", Type("text")),
        Column(OPEN, "open", Type("boolean")),
    ),
    (ID,),
)


def broken(expression: str, *columns: int, **pairs: object) -> str:
    ids = {"id": ID, "a": A, "b": B, "open": OPEN}
    image = {ids[name]: value for name, value in pairs.items()}
    return explain_violation(condition_of(TABLE, Check(9, "k", expression, columns)), image)


@pytest.mark.parametrize(
    ("expression", "pairs", "holds"),
    [
        ("a > 0", {"a": 1}, True),
        ("a > 0", {"a": 0}, False),
        ("a > 0", {}, True),
        ("a IS NOT NULL", {}, False),
        ("a > 0 AND b = 'x'", {"b": "y"}, False),
        ("a > 0 OR b = 'x'", {"b": "y"}, True),
        ("open", {"open": 0}, False),
        ("open", {"open": 1}, True),
        ("open", {}, True),
        ("NOT open", {"open": 1}, False),
        ("a < id", {"id": 5, "a": 5}, False),
    ],
)
def test_false_alone_breaks(expression: str, pairs: dict[str, object], holds: bool) -> None:
    why = broken(expression, A, **pairs)
    assert why == ("" if holds else "the row makes it false")


def test_what_can_not_be_computed_breaks_and_says_why() -> None:
    assert "can't be computed" in broken("10 / a > 1", A, a=0)
    holds = condition_of(TABLE, Check(9, "k", "10 / a > 1", (A,)))
    with pytest.raises(DivisionByZero):
        holds({A: 0})


@pytest.mark.parametrize("state", [State.DELETE_ONLY, State.WRITE_ONLY, State.PUBLIC])
def test_its_own_columns_count_whatever_their_state(state: State) -> None:
    """A check comes with a new column, and stays while its column goes."""
    hidden = replace(
        TABLE, columns=tuple(replace(c, state=state) if c.name == "a" else c for c in TABLE.columns)
    )
    holds = condition_of(hidden, Check(9, "k", "a > 0", (A,)))
    assert (holds({A: 1}), holds({A: 0}), holds({})) == (True, False, True)


def test_other_hidden_columns_do_not_exist_for_it() -> None:
    hidden = replace(
        TABLE,
        columns=tuple(
            replace(c, state=State.WRITE_ONLY) if c.name == "a" else c for c in TABLE.columns
        ),
    )
    with pytest.raises(UnknownColumn):
        condition_of(hidden, Check(9, "k", "a > 0", (B,)))


def test_a_check_is_a_condition() -> None:
    with pytest.raises(WrongType):
        condition_of(TABLE, Check(9, "k", "a + 1", (A,)))
