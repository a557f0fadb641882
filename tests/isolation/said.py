"""Conditions and changes of a row of table test, each as SQL says it and as Python does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Said:
    """Called with a row it gives what `sql` gives."""

    sql: str
    meaning: Callable[[Row], Any]

    def __call__(self, row: Row) -> Any:
        return self.meaning(row)


EVERY = Said("true", lambda _: True)


def is_(value: int) -> Said:
    return Said(f"value = {value}", lambda row: row["value"] == value)


def divides(number: int) -> Said:
    return Said(f"value % {number} = 0", lambda row: row["value"] % number == 0)


def id_is(key: int) -> Said:
    return Said(f"id = {key}", lambda row: row["id"] == key)


def within(low: int, high: int) -> Said:
    return Said(f"id >= {low} and id < {high}", lambda row: low <= row["id"] < high)


def added(number: int) -> Said:
    return Said(f"value + {number}", lambda row: row["value"] + number)


def to(value: int) -> Said:
    return Said(str(value), lambda _: value)
