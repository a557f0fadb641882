"""What an expression over a row takes is in proportion to its text, however it is nested."""

from __future__ import annotations

from typing import Any

import pytest

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.model.errors import TooComplex
from leasehold.model.records.events import Image
from leasehold.sql.expressions.compiler import Compiler
from leasehold.sql.planning.plan import prepare
from leasehold.sql.syntax.kept import EXPRESSION_BYTES_MAX, expression_of
from leasehold.values.types import Type

TABLE = Descriptor(
    1,
    "t",
    1,
    (Column(1, "id", Type("integer"), False), Column(2, "b", Type("text"))),
    (1,),
    next_element_id=30,
    since_lsn=1,
)
LEVELS = 45
READS_MAX = 2_000
BOOL = "(b > 'a')"
NESTED = {
    "nullif": ("b", "nullif({}, 'x')"),
    "case": ("b", "case {} when 'p' then 'r' when 'q' then 's' else b end"),
    "case of a condition": ("b", "case when b = 'q' then 's' else {} end"),
    "between": (BOOL, "({}) between false and true"),
    "between symmetric": (BOOL, "({}) between symmetric true and false"),
    "an end of between symmetric": (BOOL, "true between symmetric ({}) and false"),
    "in": (BOOL, "({}) in (false, true)"),
    "is distinct": (BOOL, "({}) is distinct from false"),
    "coalesce": ("b", "coalesce({}, b)"),
    "greatest": ("b", "greatest({}, b)"),
    "not": (BOOL, "not ({})"),
    "is null": ("b", "case when ({}) is null then 'x' else b end"),
    "or": ("b < 'a'", "({} or b > 'x' and b < 'y')"),
    "concatenation": ("b", "left(({}), 5)"),
}


class TooMany(BaseException):
    """So that nothing catches it."""


class Counted(dict[int, Any]):
    """A row that counts how often it is read."""

    reads = 0

    def get(self, element_id: int, default: Any = None) -> Any:
        self.reads += 1
        if self.reads > READS_MAX:
            raise TooMany
        return super().get(element_id, default)

    def __getitem__(self, element_id: int) -> Any:
        return self.get(element_id)


def computed(text: str, row: Image) -> Any:
    def column(name: str) -> Column:
        return Column(2, name, Type("text"))

    return Compiler(column, "t").part(expression_of(text)).compute(row)


@pytest.mark.parametrize("name", NESTED)
def test_takes_steps_in_proportion_to_its_levels(name: str) -> None:
    """Goal: no index on 1,500 bytes of text stops all nodes at the first row."""
    text, around = NESTED[name]
    for _ in range(LEVELS):
        text = around.format(text)
    row = Counted({2: "b"})
    computed(text, row)
    assert 1 <= row.reads <= 5 * LEVELS


@pytest.mark.parametrize(
    ("first", "more", "last", "expected"),
    [
        ("b in ('0'", ",'{}'", ")", 0),
        ("b = '0'", " or b='{}'", "", 0),
        ("b <> '0'", " and b>'{}'", "", 1),
        ("b || '0'", "||'{:.0}'", "", "b0"),
    ],
)
def test_a_list_as_long_as_a_text_may_be_is_computed(
    first: str, more: str, last: str, expected: Any
) -> None:
    """Goal: what may be kept can be computed, whatever of Python's calls it takes."""
    try:
        text = first + more.format(1) * ((EXPRESSION_BYTES_MAX - 100) // len(more)) + last
    except ValueError:
        text = first + "||''" * 90
    assert computed(text, {2: "b"}) == expected


@pytest.mark.parametrize("value", ["p", "q", "b", None])
def test_what_is_computed_once_means_the_same(value: str | None) -> None:
    """Goal: PostgreSQL's answers, for a subject that is a column and for one that is computed."""
    row: Image = {} if value is None else {2: value}
    for text in (
        "nullif({}, 'p')",
        "case {} when 'p' then 'r' when 'q' then b else 's' || b end",
        "{} between 'c' and b",
        "{} not between 'q' and 'c'",
        "{} between symmetric 'q' and coalesce(b, 'c')",
        "{} in ('p', b || '', null)",
        "{} not in ('p', 'q')",
    ):
        assert computed(text.format("(b || '')"), row) == computed(text.format("b"), row), text


@pytest.mark.parametrize("name", NESTED)
def test_a_query_is_planned_in_steps_in_proportion_or_refused(name: str) -> None:
    """Goal: no statement of 600 bytes is written out as gigabytes for SQLite, whose text says some
    parts more than once."""
    text, around = NESTED[name]
    for _ in range(LEVELS):
        text = around.format(text)
    query = f"select {text} from t"
    if name in ("case", "between", "between symmetric", "an end of between symmetric"):
        with pytest.raises(TooComplex, match="asks several times"):
            prepare(query, {"t": TABLE}.__getitem__)
    else:
        prepared = prepare(query, {"t": TABLE}.__getitem__)
        assert len(prepared.emitted.text) <= 100 * LEVELS


def test_a_case_of_many_branches_over_a_long_subject_is_planned() -> None:
    branches = " ".join(f"when '{n}' then {n}" for n in range(200))
    subject = "b" + " || b" * 20
    prepare(f"select case {subject} {branches} end from t", {"t": TABLE}.__getitem__)
