"""Aggregates over rows that differ: DISTINCT where SQLite's own can't tell which do, since equal
values look different, several arguments count together, or an order is asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from leasehold.sql.functions.aggregates.aggregates import Aggregate
from leasehold.values.types import order_key_of

Rows = dict[tuple[Any, ...], tuple[Any, ...]]
"""Arguments by what stands for them in comparisons."""


class Sorted(NamedTuple):
    """A key of an order: the argument of that number, from 0."""

    argument: int
    descending: bool = False
    nulls_first: bool = False


@lru_cache(maxsize=512)
def distinct(aggregate: Aggregate, order: tuple[Sorted, ...]) -> Aggregate:
    """The same aggregate over rows of arguments that differ, in that order; of equal ones the
    first counts."""
    keys: list[Callable[[Any], Any] | None] = [order_key_of(kind) for kind in aggregate.arguments]

    def step(state: Rows, *values: Any) -> Rows:
        name = tuple(
            value if value is None or key is None else key(value)
            for key, value in zip(keys, values, strict=True)
        )
        state.setdefault(name, values)
        return state

    def finish(state: Rows) -> Any:
        made = aggregate.start()
        for name in _in_order(list(state), order):
            made = aggregate.step(made, *state[name])
        return aggregate.finish(made)

    return Aggregate(
        f"distinct_{aggregate.name}",
        aggregate.arguments,
        aggregate.result,
        dict,
        step,
        finish,
        aggregate.strict,
        keeps_rows=True,
    )


def _in_order(names: list[tuple[Any, ...]], order: tuple[Sorted, ...]) -> list[tuple[Any, ...]]:
    for position, descending, nulls_first in reversed(order):
        nulls = [name for name in names if name[position] is None]
        there = [name for name in names if name[position] is not None]
        there.sort(key=lambda name, n=position: name[n], reverse=descending)  # type: ignore[misc]
        names = nulls + there if nulls_first else there + nulls
    return names
