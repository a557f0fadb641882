"""Goal: what the unit tests say that PostgreSQL makes of arrays and of NaN is what it makes
of them.

Method: each expression and each refusal of `recorded_cases.py`, asked of a real PostgreSQL.
"""

from __future__ import annotations

import pytest

from tests.support.postgres.recorded_answers import hold_to
from tests.support.sql.recorded_cases import CASES, NAN, NAN_REFUSED, REFUSED


@pytest.mark.integration
def test_the_recorded_cases_are_those_of_postgresql() -> None:
    hold_to({**CASES, **NAN}, {**REFUSED, **NAN_REFUSED})
