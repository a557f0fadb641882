"""What model runs say at the end of a test run: one line per run, in a section "models"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.models.explorer import Report


class ModelLine(NamedTuple):
    """`subject`: rule, claim or invariant; `mutation`: what was broken on purpose, "-" for none."""

    subject: str
    mutation: str
    states: int
    transitions: int
    exhausted: bool
    result: str

    @classmethod
    def of(cls, subject: str, mutation: str, report: Report[Any], bounds: str = "") -> ModelLine:
        found = report.violation
        result = "no harm" if found is None else f"harm found in {len(found.steps) - 1} steps"
        words = f"{result}; {bounds}" if bounds else result
        done = report.exhausted
        return cls(subject, mutation, report.states, report.transitions, done, words)


AddLine = Callable[[ModelLine], None]
Tell = Callable[[str], None]
HEADERS = ("rule or claim", "mutation", "states", "transitions", "exhausted", "result")


def table(lines: list[ModelLine]) -> list[str]:
    """The lines of the section, columns aligned. A run that found its harm stops there, so it is
    not exhausted and need not be."""
    rows = [HEADERS] + [
        (
            line.subject,
            line.mutation,
            f"{line.states:,}",
            f"{line.transitions:,}",
            "yes" if line.exhausted else "no",
            line.result,
        )
        for line in lines
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADERS))]
    numbers = (2, 3)
    return [
        "  ".join(
            cell.rjust(width) if column in numbers else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
