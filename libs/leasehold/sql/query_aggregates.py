"""Aggregates and window functions: which there are, their types, and what computes them.

Native are those that SQLite computes as PostgreSQL does; the others are `Fold`s, run by the
adapter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from leasehold.model.errors import OutOfRange
from leasehold.schema.types import Type
from leasehold.sql.catalogue import cast_for, operator_for
from leasehold.sql.function import BIGINT, BOOLEAN, DOUBLE, INTEGER, NUMERIC, TEXT
from leasehold.sql.query_typing import EQUAL_ONLY, bare

_INTEGERS: Final = ("smallint", "integer", "bigint")


class Shape(NamedTuple):
    """`emitted`: its name in SQLite; `arguments`: what these are brought to; `result`."""

    emitted: str
    arguments: tuple[Type, ...]
    result: Type


AGGREGATES: Final = frozenset(
    {"count", "sum", "avg", "min", "max", "bool_and", "bool_or", "every", "string_agg"}
)
WINDOWS: Final = frozenset(
    {
        *("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile"),
        *("lag", "lead", "first_value", "last_value", "nth_value"),
    }
)
NOT_BUILT: Final = frozenset(
    {
        *("array_agg", "json_agg", "jsonb_agg", "json_object_agg", "jsonb_object_agg", "xmlagg"),
        *("stddev", "stddev_pop", "stddev_samp", "variance", "var_pop", "var_samp", "corr"),
        *("covar_pop", "covar_samp", "bit_and", "bit_or", "bit_xor", "mode", "percentile_cont"),
        *("percentile_disc", "regr_slope", "regr_intercept", "range_agg"),
    }
)


def aggregate_shape(name: str, kinds: list[Type]) -> Shape | None:
    """Of an aggregate over values of these types; None: there is none. Constants that are open
    have come as text."""
    if name == "count" and len(kinds) == 1:
        return Shape("count", (kinds[0],), BIGINT)
    if name in ("bool_and", "bool_or", "every") and [k.name for k in kinds] == ["boolean"]:
        return Shape("max" if name == "bool_or" else "min", (BOOLEAN,), BOOLEAN)
    if name == "string_agg" and len(kinds) == 2 and all(_is_text(k) for k in kinds):
        return Shape("group_concat", (TEXT, TEXT), TEXT)
    if len(kinds) != 1:
        return None
    kind = bare(kinds[0])
    if name in ("min", "max"):
        if kind.name in EQUAL_ONLY or kind.name in ("boolean", "uuid", "bytea"):
            return None
        kind = TEXT if kind.name == "varchar" else kind
        return Shape(name, (kind,), kind)
    if name == "sum":
        if kind.name in ("smallint", "integer"):
            return Shape("sum", (kind,), BIGINT)
        if kind.name in ("bigint", "numeric"):
            return Shape("lh_sum_numeric", (NUMERIC,), NUMERIC)
        if kind == DOUBLE:
            return Shape("lh_sum_double", (DOUBLE,), DOUBLE)
    if name == "avg":
        if kind.name in (*_INTEGERS, "numeric"):
            return Shape("lh_avg_numeric", (NUMERIC,), NUMERIC)
        if kind == DOUBLE:
            return Shape("lh_avg_double", (DOUBLE,), DOUBLE)
    return None


def _is_text(kind: Type) -> bool:
    return kind.name in ("text", "varchar")


def window_shape(name: str, kinds: list[Type]) -> Shape | None:
    """Of a function that is only a window function."""
    if not kinds:
        if name in ("row_number", "rank", "dense_rank"):
            return Shape(name, (), BIGINT)
        if name in ("percent_rank", "cume_dist"):
            return Shape(name, (), DOUBLE)
        return None
    first = kinds[0]
    if name == "ntile" and len(kinds) == 1:
        return Shape("ntile", (INTEGER,), INTEGER)
    if name in ("first_value", "last_value") and len(kinds) == 1:
        return Shape(name, (first,), first)
    if name == "nth_value" and len(kinds) == 2:
        return Shape(name, (first, INTEGER), first)
    if name in ("lag", "lead") and 1 <= len(kinds) <= 3:
        return Shape(name, (first, INTEGER, first)[: len(kinds)], first)
    return None


class Fold:
    """One run of an aggregate over values that are not NULL; windows take the oldest away again.

    Doubles are added anew for each window that has lost one, as PostgreSQL does: taking away what
    was added would leave another sum.
    """

    def __init__(self, add: Callable[[Any, Any], Any], finish: Callable[[Any, int], Any]) -> None:
        self._add = add
        self._finish = finish
        self._values: list[Any] = []
        self._gone = 0
        self._sum: Any = None
        self._stale = False

    def step(self, value: Any) -> None:
        if value is None:
            return
        self._values.append(value)
        if not self._stale:
            self._sum = value if self._sum is None else self._add(self._sum, value)

    def inverse(self, value: Any) -> None:
        if value is None:
            return
        self._gone += 1
        self._stale = True

    def value(self) -> Any:
        count = len(self._values) - self._gone
        if count == 0:
            return None
        if self._stale:
            del self._values[: self._gone]
            self._gone = 0
            self._stale = False
            self._sum = self._values[0]
            for one in self._values[1:]:
                self._sum = self._add(self._sum, one)
        return self._finish(self._sum, count)


class Total:
    """As `Fold`, outside of windows, where nothing is taken away: keeps the sum alone."""

    def __init__(self, add: Callable[[Any, Any], Any], finish: Callable[[Any, int], Any]) -> None:
        self._add = add
        self._finish = finish
        self._count = 0
        self._sum: Any = None

    def step(self, value: Any) -> None:
        if value is not None:
            self._count += 1
            self._sum = value if self._count == 1 else self._add(self._sum, value)

    def value(self) -> Any:
        return self._finish(self._sum, self._count) if self._count else None


def _add_doubles(left: float, right: float) -> float:
    value = left + right
    if value in (float("inf"), float("-inf")) and abs(left) != value and abs(right) != abs(value):
        raise OutOfRange("value out of range: overflow")
    return value


def fold_of(emitted: str) -> tuple[Callable[[Any, Any], Any], Callable[[Any, int], Any]]:
    """(add, finish) of an aggregate that the adapter runs."""
    if emitted.endswith("double"):
        add: Callable[[Any, Any], Any] = _add_doubles
        if emitted == "lh_sum_double":
            return add, lambda total, count: total
        return add, lambda total, count: total / count
    add = operator_for("+", NUMERIC, NUMERIC).compute
    if emitted == "lh_sum_numeric":
        return add, lambda total, count: total
    divide = operator_for("/", NUMERIC, NUMERIC).compute
    from_integer = _numeric_of_integer()
    return add, lambda total, count: divide(total, from_integer(count))


def _numeric_of_integer() -> Callable[[int], Any]:
    function = cast_for(BIGINT, NUMERIC, "implicit")
    assert function is not None
    return function.compute


FOLDS: Final = ("lh_sum_numeric", "lh_sum_double", "lh_avg_numeric", "lh_avg_double")
