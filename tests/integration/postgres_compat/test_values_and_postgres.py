"""Every function, operator and cast of the catalogue against a real PostgreSQL: the same value as
text, the same type, the same SQLSTATE.

Method: random arguments, NULLs and open constants among them, from pools of edge cases. Where the
two differ on purpose a rule below says why.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.support.postgres.postgres_server import postgres_server
from tests.support.postgres.value_oracle import Oracle
from tests.support.sql import zone_expressions
from tests.support.sql.value_expressions import (
    POOLS,
    Case,
    functions,
    ours,
    random_aggregate,
    random_case,
    random_cast,
)

TIMESTAMPS = ("date", "timestamp", "timestamptz", "interval")
SEED = int(os.environ.get("SEED", "20261121"))
CASES_PER_FUNCTION = int(os.environ.get("CASES", "12"))
RECORD = "RECORD" in os.environ
RECORDED = Path(__file__).parents[2] / "unit" / "sql" / "functions" / "value_cases.jsonl"
RECORDED_CHARACTERS_MAX = 200
IN_ZONES = Path(__file__).parents[2] / "unit" / "sql" / "queries" / "zone_cases.jsonl"


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with postgres_server() as port:
        yield Oracle("-h", "127.0.0.1", "-p", str(port))


def on_purpose(case: Case, theirs: str, mine: str) -> str:
    """Why the two may differ here, "" where they may not."""
    if mine.startswith("error:0A000:"):
        return "what is not built is refused"
    if mine.startswith("error:22008:") and theirs.startswith("value:"):
        return "the years are 1 to 9999"
    if case.name == "timezone" and mine.startswith("error:22023:"):
        return "a zone is one of the zone database's names"
    if theirs.startswith("error:42725:"):
        return "PostgreSQL has more functions of that name, for types that are not here"
    if case.name in ("upper", "lower") and not case.sql.isascii():
        return "letters beyond ASCII: by Unicode, not by the server's locale"
    known = {text for name in TIMESTAMPS for text in POOLS[name]}
    guessed = theirs.startswith("error:220") or not known & {a.text for a in case.arguments}
    if mine.startswith("error:22007:") and guessed:
        return "text that is no date: PostgreSQL guesses further what was meant"
    if case.name == "-" and "inet" in case.sql and "-9223372036854775808" in case.sql:
        return "PostgreSQL turns the sign of a number that has no opposite"
    if case.name == "right" and any(a.text == "-2147483648" for a in case.arguments):
        return "PostgreSQL's count overflows"
    if case.name in ("like", "notlike", "~~", "!~~", "~~*", "!~~*") and "22025" in mine:
        return "the pattern's end is looked at once, not when a text reaches it"
    if case.name in ("to_date", "to_timestamp"):
        return "a template reads what it says, and no more"
    return ""


def compared(oracle: Oracle, cases: list[Case]) -> Counter[str]:
    """Raises AssertionError with every case that differs without a reason."""
    differing, reasons = [], Counter[str]()
    answers = oracle.answers([case.sql for case in cases])
    for case, theirs in zip(cases, answers, strict=True):
        mine = ours(case)
        both_refuse = mine.startswith("error:") and mine[:11] == theirs[:11]
        if mine == theirs or both_refuse:
            continue
        reason = on_purpose(case, theirs, mine)
        reasons[reason] += 1
        if not reason:
            differing.append(
                f"{case.sql}\n   PostgreSQL {theirs[:200]}\n   ours       {mine[:200]}"
            )
    if RECORD:
        _record(cases, answers)
    print(f"seed {SEED}: {len(cases)} expressions, {sum(reasons.values())} differ on purpose")
    assert not differing, "\n".join([f"{len(differing)} of {len(cases)} differ", *differing[:20]])
    return reasons


def _record(cases: list[Case], answers: list[str]) -> None:
    """Appends what both agree upon to the table of the unit tests."""
    with RECORDED.open("a") as table:
        for case, theirs in zip(cases, answers, strict=True):
            mine = ours(case)
            refused = mine.startswith("error:") and mine[:11] == theirs[:11]
            if (mine == theirs and len(theirs) < RECORDED_CHARACTERS_MAX) or refused:
                answer = theirs[:11] if refused else theirs
                table.write(json.dumps([case.to_json(), answer], ensure_ascii=False) + "\n")


def test_functions_and_operators(oracle: Oracle) -> None:
    random = Random(SEED)
    cases = [
        random_case(random, function, is_operator=is_operator)
        for function, is_operator in functions()
        for _ in range(CASES_PER_FUNCTION)
    ]
    compared(oracle, cases)


def test_casts(oracle: Oracle) -> None:
    random = Random(SEED)
    compared(oracle, [random_cast(random) for _ in range(150 * CASES_PER_FUNCTION)])


def test_aggregates(oracle: Oracle) -> None:
    random = Random(SEED)
    compared(oracle, [random_aggregate(random) for _ in range(60 * CASES_PER_FUNCTION)])


def test_the_sessions_time_zone(oracle: Oracle) -> None:
    """Literals, casts, functions and operators that depend on it, as whole queries."""
    random = Random(SEED)
    recorded, differing, refused = [], [], 0
    for zone in zone_expressions.ZONES:
        given = [zone_expressions.random_expression(random) for _ in range(5 * CASES_PER_FUNCTION)]
        for expression, theirs in zip(given, oracle.answers(given, zone), strict=True):
            mine = zone_expressions.ours(zone, expression)
            both_refuse = mine.startswith("error:") and mine[:11] == theirs[:11]
            if mine.startswith("error:0A000:"):
                refused += 1
            elif mine == theirs or both_refuse:
                answer = theirs[:11] if both_refuse else theirs
                recorded.append(json.dumps([zone, expression, answer], ensure_ascii=False) + "\n")
            else:
                differing.append(f"{zone}: {expression}\n   {theirs[:200]}\n   {mine[:200]}")
    if RECORD:
        IN_ZONES.write_text("".join(recorded))
    print(f"seed {SEED}: {len(recorded)} expressions in time zones agree, {refused} not built")
    assert not differing, "\n".join([f"{len(differing)} differ", *differing[:20]])
    assert refused * 20 < len(recorded)
