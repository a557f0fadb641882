"""Which level prevents which anomaly, with sessions on different replicas; the table is printed.

Goal: the rows of the design. Method: each story of Hermitage once per level, and once more with
VERIFYRETRY OFF, where a conflict is told instead of replayed.
"""

from __future__ import annotations

from typing import Final

import pytest

from leasehold.transaction.isolation import Level
from tests.isolation.hermitage import CASES, Scene
from tests.models.summary import Tell

ALLOWED: Final = {
    Level.DEFAULT: {
        "PMP",
        "P4",
        "G-single",
        "G-single predicate",
        "G-single write",
        "G2-item",
        "G2",
        "G2 two edges",
    },
    Level.SNAPSHOT: {"G2-item", "G2", "G2 two edges"},
    Level.SERIALIZABLE: set[str](),
    Level.LINEARIZABLE: set[str](),
}
ALLOWED[Level.READ_COMMITTED] = ALLOWED[Level.DEFAULT]


def test_levels_and_anomalies(tell: Tell) -> None:
    found = {
        level: {name for name, story in CASES.items() if not story(Scene(level.value))}
        for level in Level
    }
    tell("\n".join(table(found)))
    assert found == ALLOWED


def table(allowed: dict[Level, set[str]]) -> list[str]:
    """✓ prevented, — allowed."""
    width = max(map(len, Level)) + 2
    lines = ["level".ljust(width) + "  ".join(CASES)]
    for level, names in allowed.items():
        marks = [("—" if case in names else "✓").ljust(len(case)) for case in CASES]
        lines.append(level.value.ljust(width) + "  ".join(marks).rstrip())
    return [*lines, f"{len(allowed) * len(CASES)} cases, replicas r1 and r2"]


@pytest.mark.parametrize("level", list(Level))
def test_without_replays_no_update_is_lost(level: Level) -> None:
    """Note (1) of the design: what a client computed is lost by a replay, and only by one."""
    prevented = {
        name for name, story in CASES.items() if story(Scene(level.value, verify_retry=False))
    }
    expected = set(CASES) - (ALLOWED[level] - {"P4"})
    assert prevented == expected
