"""Goal: a regular expression finds here what it finds in PostgreSQL, or is refused.

Method: the recorded cases, and random patterns over a small alphabet (`SEED`, `CASES`), asked of a
real PostgreSQL: whether they match, what regexp_match and regexp_replace make of them, where they
divide a text; and the SQLSTATE of what is no pattern.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any, Final

import pytest

from leasehold.model.errors import Refused
from leasehold.sql.functions.registry import function_for
from leasehold.values.storage import from_storage
from leasehold.values.types import Type
from tests.support.every_third import every_third_seed
from tests.support.postgres.postgres_server import postgres_server
from tests.support.postgres.recorded_answers import hold_to
from tests.support.sql.recorded_cases import REGULAR, REGULAR_REFUSED

psycopg = pytest.importorskip("psycopg", reason="NOT TESTED against PostgreSQL: no psycopg")

SEED: Final = int(os.environ.get("SEED", "1"))
CASES: Final = int(os.environ.get("CASES", "3000"))
ROUNDS: Final = 3
TEXT: Final = Type("text")
CALLS: Final = (
    ("regexp_like", ()),
    ("regexp_match", ()),
    ("regexp_replace", (r"[\1|\&]", "g")),
    ("regexp_replace", ("-", "g")),
    ("regexp_split_to_array", ()),
)
REFUSED_MAX: Final = 0.5
"""Of calls: random patterns have far more parts and alternatives than people's."""


def pattern(random: Random, depth: int = 3) -> str:
    pieces = []
    for _ in range(random.randint(1, 3)):
        kind = random.random()
        if kind < 0.2 and depth:
            inner = "|".join(pattern(random, depth - 1) for _ in range(random.randint(1, 2)))
            piece = f"({random.choice(('', '?:'))}{inner})"
        elif kind < 0.4:
            piece = random.choice((".", "[ab]", "[^a]", r"\w", r"\d", "[[:alpha:]1]", r"\s"))
        elif kind < 0.47:
            pieces.append(random.choice(("^", "$", r"\y", r"\A", r"\Z")))
            continue
        else:
            piece = random.choice("aabbc1 é")
        if random.random() < 0.35:
            piece += random.choice(("*", "+", "?", "{2}", "{1,2}", "*?", "+?", "??", "{0,1}"))
        pieces.append(piece)
    return "".join(pieces)


def ours(name: str, arguments: tuple[str, ...]) -> Any:
    try:
        function = function_for(name, (TEXT,) * len(arguments))
        value = function.compute(*arguments)
    except Refused as error:
        return error.sqlstate
    return from_storage(function.result, value)


def theirs(pg: Any, name: str, arguments: tuple[str, ...]) -> Any:
    holes = ", ".join(["%s::text"] * len(arguments))
    try:
        return pg.execute(f"SELECT {name}({holes})", arguments).fetchone()[0]
    except psycopg.Error as error:
        return error.sqlstate


def rounds(seeds: range) -> Iterator[Random]:
    """Yield for each case where to draw it from."""
    for seed in seeds:
        random = Random(seed)
        for _ in range(CASES // ROUNDS):
            yield random


@pytest.mark.integration
@pytest.mark.parametrize("seeds", every_third_seed(SEED, ROUNDS))
def test_patterns_find_what_they_find_in_postgresql(seeds: range) -> None:
    counts: Counter[str] = Counter()
    differ: list[str] = []
    with postgres_server() as port:  # noqa: SIM117
        with psycopg.connect(f"host=127.0.0.1 port={port} user=postgres", autocommit=True) as pg:
            for random in rounds(seeds):
                text = "".join(random.choice("aabbc1 é") for _ in range(random.randint(0, 7)))
                made = pattern(random)
                for name, more in CALLS:
                    mine = ours(name, (text, made, *more))
                    if mine == "0A000":
                        counts["refused"] += 1
                        continue
                    counts[name] += 1
                    wanted = theirs(pg, name, (text, made, *more))
                    if mine != wanted:
                        differ.append(f"{name}{(text, made, *more)}: {mine!r}, theirs {wanted!r}")
    print(f"\n{seeds}, {sum(counts.values())} calls: {dict(counts)}, {len(differ)} differ")
    assert not differ, "\n".join(differ[:20])
    assert counts["refused"] <= REFUSED_MAX * sum(counts.values())


@pytest.mark.integration
def test_the_recorded_cases_are_those_of_postgresql() -> None:
    hold_to(REGULAR, REGULAR_REFUSED)
