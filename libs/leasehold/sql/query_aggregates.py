"""Which aggregates and window functions there are for a query: SQLite's own where they are
PostgreSQL's, else the catalogue's, run by the adapter."""

from __future__ import annotations

from typing import Final, NamedTuple

from leasehold.schema.types import Type
from leasehold.sql import aggregates
from leasehold.sql.aggregates import AGGREGATE_NAMES
from leasehold.sql.catalogue import aggregate_for
from leasehold.sql.function import BIGINT, DOUBLE, INTEGER, TEXT
from leasehold.sql.query_typing import PLAIN, opened


class Shape(NamedTuple):
    """`emitted`: its name in SQLite, "" where `function` computes it; `arguments`: what these are
    brought to."""

    emitted: str
    arguments: tuple[Type, ...]
    result: Type
    function: aggregates.Aggregate | None = None


AGGREGATES: Final = AGGREGATE_NAMES | {"json_agg", "json_object_agg"}
"""Those too that the catalogue refuses with a sentence of its own."""
WINDOWS: Final = frozenset(
    {
        *("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile"),
        *("lag", "lead", "first_value", "last_value", "nth_value"),
    }
)
_BOOLEANS: Final = {"bool_and": "min", "every": "min", "bool_or": "max"}


def aggregate_shape(name: str, kinds: list[Type], *, over: bool) -> Shape:
    """Of an aggregate over values of these types, open ones among them; `over`: of a window. Raises
    UnknownFunction, AmbiguousFunction, FeatureNotSupported."""
    found = aggregate_for(name, tuple(opened(kind) for kind in kinds))
    native = _native(name, found)
    if over and native == "group_concat":
        native = ""  # SQLite's loses a separator when an empty text leaves the frame
    return Shape(native, found.arguments, found.result, None if native else found)


def _native(name: str, found: aggregates.Aggregate) -> str:
    """What SQLite computes as PostgreSQL does: 0 and 1 have the least and the greatest, sums of
    integers are whole or refused."""
    first = found.arguments[0] if found.arguments else None
    if name == "count":
        return "count"
    if name in _BOOLEANS:
        return _BOOLEANS[name]
    if first is None:
        return ""
    if name in ("min", "max") and first.name in PLAIN:
        return name
    if name == "sum" and first.name in ("smallint", "integer"):
        return "sum"
    return "group_concat" if name == "string_agg" and first == TEXT else ""


def window_shape(name: str, kinds: list[Type]) -> Shape | None:
    """Of a function that is only a window function; its types are known by now."""
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
