"""Goal: whatever a text says, its plan is made in a few milliseconds on the thread that all clients
share, or left to another one.

Method: Python's calls are counted, not time: some 7,000 of them take a millisecond.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

import pytest

from leasehold.catalog.descriptor import Descriptor
from leasehold.model.budget import UNBOUNDED_BYTES, Budget, spending
from leasehold.model.errors import LeaseholdError
from leasehold.pgwire.session import WouldBlock
from leasehold.sql.planning.plan import prepare
from leasehold.sql.syntax.reading import read_statement
from leasehold.sql_session.running import NON_BLOCKING_CHARACTERS_MAX, PLAN_LOOKS_MAX
from tests.support.sql.asked import FLIGHTS

CALLS_MAX = 100_000


def table(name: str) -> Descriptor:
    return FLIGHTS


def listed(head: str, piece: str, separator: str, tail: str = "") -> Callable[[int], str]:
    return lambda count: head + separator.join([piece] * count) + tail


def joined(between: str, condition: str = "") -> Callable[[int], str]:
    """A join of so many mentions of one table."""

    def text(count: int) -> str:
        more = (f"{between} f a{number}{condition}" for number in range(1, count))
        return " ".join(("select 1 from f a0", *more))

    return text


def chained(mentions: int) -> Callable[[int], str]:
    """A WITH query over the one before it, so often mentioned."""

    def text(count: int) -> str:
        steps = ["a0 as (table f)"]
        for number in range(1, count):
            source = ",".join(f"a{number - 1} b{mention}" for mention in range(mentions))
            steps.append(f"a{number} as (select * from {source})")
        return f"with {','.join(steps)} select 1"

    return text


FAMILIES: dict[str, Callable[[int], str]] = {
    "cross joins": joined(","),
    "natural joins": joined("natural join"),
    "joins using": joined("join", " using(id)"),
    "left joins": joined("left join", " on a0.id=1"),
    "WITH, twice": chained(2),
    "WITH, thrice": chained(3),
    "stars": listed("select ", "*", ",", " from f a,f b,f c,f d"),
    "sum": listed("select ", "1", "+"),
    "not": listed("select ", "not ", "", "true"),
    "and": listed("select 1 from f where ", "id=1", " and "),
    "or": listed("select 1 from f where ", "id=1", " or "),
    "between": listed("select 1 from f where ", "id between 1 and 2", " or "),
    "in": listed("select 1 from f where id in (", "1", ",", ")"),
    "rows in": listed("select 1 from f where (id,seats) in (", "(1,2)", ",", ")"),
    "exists": listed("select 1 from f where ", "exists(select 1 from f b where b.id=1)", " and "),
    "union": listed("", "select 1", " union "),
    "values": listed("values ", "(1)", ","),
    "inside": lambda count: "select * from (" * count + "table f" + ") a" * count,
    "order": listed("select * from f order by ", "1", ","),
    "windows": listed("select ", "sum(id) over(order by id)", ",", " from f"),
    "distinct on": listed("select distinct on (", "id", ",", ") 1 from f"),
    "update": listed("update f set seats=1 where ", "id=1", " or "),
}


def calls_of(text: str, looks_max: int | None = None) -> int:
    """Return how many calls of Python's planning takes, or its refusal, or its end after so many
    looks at the budget."""
    calls = looks = 0

    def count(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    def look() -> None:
        nonlocal looks
        looks += 1
        if looks_max is not None and looks > looks_max:
            raise WouldBlock

    with suppress(LeaseholdError, RecursionError):
        read_statement(text)  # not its own: each text is read before
    with spending(Budget(UNBOUNDED_BYTES, look=look)):
        sys.setprofile(count)
        try:
            prepare(text, table)
        except (LeaseholdError, WouldBlock):
            pass
        finally:
            sys.setprofile(None)
    return calls


@pytest.mark.parametrize("characters", [NON_BLOCKING_CHARACTERS_MAX, 4_000])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_plan_ends_soon_where_others_wait(family: str, characters: int) -> None:
    text = longest(FAMILIES[family], characters)
    calls_of(text, 0)  # what is imported or kept at the first time
    calls = calls_of(text, PLAN_LOOKS_MAX)
    assert calls <= CALLS_MAX, text


def longest(family: Callable[[int], str], characters: int) -> str:
    """The longest text of a family that has not more characters."""
    count = 1
    while len(family(count + 1)) <= characters:
        count += 1
    return family(count)


def test_joins_take_steps_by_the_square_of_the_tables() -> None:
    """Not by their cube: 30 tables that are joined naturally took 0.65 s."""
    few, many = (calls_of(FAMILIES["natural joins"](tables)) for tables in (12, 24))
    assert many < 6 * few
