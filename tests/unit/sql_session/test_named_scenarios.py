"""Each scenario of the design that SQL sessions can live has a test of its number with them."""

from __future__ import annotations

import re
from collections import Counter
from math import prod
from typing import Any

from tests.isolation import test_sql_comdb2, test_sql_scenarios
from tests.models.summary import Tell
from tests.support.pgwire.transcripts import TRANSCRIPTS
from tests.unit.sql_session import test_wire_scenarios

MODULES = (test_sql_comdb2, test_sql_scenarios, test_wire_scenarios)
SCENARIOS = {*range(15, 30), *range(81, 88)}


def cases(test: Any) -> int:
    return prod(len(list(mark.args[1])) for mark in getattr(test, "pytestmark", ()))


def test_every_scenario_has_its_sessions(tell: Tell) -> None:
    found = Counter(t.scenario for t in TRANSCRIPTS if t.scenario)
    for module in MODULES:
        for name, test in vars(module).items():
            number = re.match(r"test_(\d+)_", name)
            if number:
                found[int(number[1])] += cases(test)
    tell(
        "scenarios in SQL sessions: "
        + ", ".join(f"{number}: {count}" for number, count in sorted(found.items()))
        + f"; {sum(found.values())} cases"
    )
    assert found.keys() >= SCENARIOS
