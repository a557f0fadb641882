"""All rows of a query as one text, and the rows of such a text: how a LATERAL query stands beside
each row of the tables before it, since SQLite lets functions alone see those."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from leasehold.sql.functions.aggregates.aggregates import Aggregate
from leasehold.sql.functions.function import TEXT
from leasehold.values.arrays import elements_of, stored_form
from leasehold.values.types import Type

COLUMNS_MAX: Final = 100
"""SQLite's functions take 127 arguments at most."""


@lru_cache(maxsize=256)
def gathered(kinds: tuple[Type, ...]) -> Aggregate:
    """Return the aggregate that makes the text of rows of these types; of none it is that of no
    rows. Its result raises RequestTooLarge above the limits of arrays."""
    return Aggregate("gathered", kinds, TEXT, list, _keep, _text_of, strict=False, keeps_rows=True)


def rows_of(text: str) -> list[Any]:
    """Return the rows of a text: a tuple of storage values each."""
    return list(map(tuple, elements_of(text)))


def _keep(state: list[Any], *values: Any) -> list[Any]:
    state.append(values)
    return state


def _text_of(state: list[Any]) -> str:
    return stored_form(state)
