"""jsonb @>, ? and trims: answers of long arguments, without comparing each with each."""

from __future__ import annotations

import json

import pytest

from leasehold.model.errors import TooComplex
from leasehold.sql.functions.registry import operator_for
from leasehold.sql.functions.texts.text import FUNCTIONS
from leasehold.values import jsonb_containment
from leasehold.values.jsonb import NESTING_MAX, value_of
from leasehold.values.jsonb_containment import contains
from leasehold.values.types import Type, array_of

JSONB = Type("jsonb")
LONG = 80_000


def _asked(sign: str, left: object, right: object) -> int:
    given = json.dumps(left), json.dumps(right)
    other = JSONB if sign == "@>" else array_of(Type("text"))
    found: int = operator_for(sign, JSONB, other).compute(*given)
    return found


@pytest.mark.parametrize(
    ("value", "wanted", "held"),
    [
        ([1, 2, 3], [3, 1, 1], True),
        ([1], [True], False),
        ([True], [1], False),
        ([1, [2, {"a": [3, 4]}]], [[{"a": [4]}]], True),
        ([[1, 2], [3]], [[1, 3]], False),
        ([1], 1, True),
        ([[1]], [1], False),
        ({"a": 1, "b": {"c": [1]}}, {"b": {"c": []}}, True),
        ({"a": [1]}, {"a": 1}, False),
        ([], [], True),
        ([{}], [{}], True),
        ([None], [None], True),
    ],
)
def test_contains(value: object, wanted: object, held: bool) -> None:
    """Goal: as PostgreSQL 15 answers."""
    assert contains(value, wanted) == held


def test_long_arrays_are_not_compared_element_by_element() -> None:
    """Goal: 80,000 × 80,000 comparisons (minutes) are not made: each array is read once."""
    assert _asked("@>", [1] * LONG + [2], [2] * LONG) == 1
    assert _asked("@>", ["a"] * 50_000, ["b"] * 50_000) == 0
    names = [str(n) for n in range(20_000)]
    assert _asked("?&", names, [*names, "x"]) == 0
    assert _asked("?|", names, [*(f"y{n}" for n in range(20_000)), "7"]) == 1


def test_equal_nested_arrays_are_found_at_once() -> None:
    """Goal: a long array of arrays holds itself, in any order."""
    value = value_of(json.dumps([[n, 1] for n in range(8_000)]))
    assert contains(value, value[::-1])


@pytest.mark.parametrize(
    ("around", "levels"), [("[%s]", 1), ('{"a": %s}', 1), ('[1, {"a": [%s]}]', 3)]
)
def test_the_deepest_nesting_that_jsonb_has_can_be_asked(around: str, levels: int) -> None:
    """Goal: no RecursionError: each level is one call, and Python has room for a thousand."""
    text = "1"
    for _ in range(NESTING_MAX // levels):
        text = around.replace("%s", text)
    contains = operator_for("@>", JSONB, JSONB).compute
    assert contains(text, text) == 1
    assert contains(text, "2".join(text.rsplit("1", 1))) == 0


def test_nested_arrays_that_must_be_compared_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: what is left takes a bounded number of comparisons."""
    value = value_of(json.dumps([[n, 1] for n in range(2_000)]))
    wanted = value_of(json.dumps([[n] for n in range(1_999, 0, -1)]))
    with pytest.raises(TooComplex):
        contains(value, wanted)
    monkeypatch.setattr(jsonb_containment, "STEPS_MAX", 100_000_000)
    assert contains(value[:200], wanted[-100:])


def test_trims_look_up_each_character_once() -> None:
    """Goal: btrim of n characters by m others is not n × m comparisons."""
    others = "".join(chr(0x4E00 + n) for n in range(20_000)) * 13 + "z"
    trim = next(f for f in FUNCTIONS if f.name == "btrim" and len(f.arguments) == 2)
    assert trim.compute("z" * 200_000 + "-" + "z" * 62_000, others) == "-"
