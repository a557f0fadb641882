"""Families of cases that are alike, of which `make test` takes every third one, always the same.

Two runs of a state then do the same, and one that fails can be run again. The others are marked
long: `make test-all` takes all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

import pytest

CaseT = TypeVar("CaseT")

STEP: Final = 3
OTHERS: Final = pytest.mark.long("of a family of cases that are alike: every third is in make test")


def every_third(cases: Iterable[CaseT], name_of: Callable[[CaseT], str] = str) -> list[Any]:
    """Return the cases as parameters of a test, with their names; two of three are marked long."""
    return every_third_row(((case,) for case in cases), lambda row: name_of(row[0]))


def every_third_seed(first: int, count: int) -> list[Any]:
    """Return `count` seeds from `first` on as parameters of a test that takes several in a row: in
    each of three parameters every third one."""
    parts = [range(first + part, first + count, STEP) for part in range(min(STEP, count))]
    return every_third(parts, lambda seeds: f"seeds {seeds.start} to {seeds[-1]}")


def every_third_row(
    rows: Iterable[tuple[Any, ...]], name_of: Callable[[Any], str | None] = lambda _: None
) -> list[Any]:
    """Return the same for a test of several parameters. No name: pytest makes one."""
    return [
        pytest.param(*row, id=name_of(row), marks=OTHERS if number % STEP else ())
        for number, row in enumerate(rows)
    ]
