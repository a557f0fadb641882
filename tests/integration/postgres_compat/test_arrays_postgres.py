"""Goal: what the unit tests say that PostgreSQL makes of arrays, of json, of char(n) and of
NaN is what it makes of them.

Method: each expression and each refusal of `recorded_cases.py`, asked of a real PostgreSQL.
"""

from __future__ import annotations

import pytest

from tests.support.postgres.recorded_answers import hold_to
from tests.support.sql.recorded_cases import (
    CASES,
    CHAR,
    JSON,
    JSON_NAMES,
    JSON_REFUSED,
    NAN,
    NAN_REFUSED,
    REFUSED,
)


@pytest.mark.integration
def test_the_recorded_cases_are_those_of_postgresql() -> None:
    hold_to({**CASES, **NAN, **JSON, **CHAR}, {**REFUSED, **NAN_REFUSED, **JSON_REFUSED})


@pytest.mark.integration
def test_the_functions_over_json_are_those_of_postgresql() -> None:
    names = ", ".join(f"'{name}'" for name in JSON_NAMES)
    found = "select count(distinct proname) from pg_proc where proname"
    of_itself = "_(in|out|recv|send|transfn|finalfn|handler)$"
    hold_to(
        {
            f"{found} in ({names})": str(len(JSON_NAMES)),
            f"{found} ~ '^(jsonb?_|to_json|row_to_json|array_to_json)' and proname !~ '{of_itself}'"
            f" and proname not in ({names})": "0",
        },
        {},
    )
