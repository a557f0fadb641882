"""Aggregates and window functions of a query → bound ones: SQLite's own where they are
PostgreSQL's, else the catalogue's, run by the adapter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from leasehold.model.errors import (
    FeatureNotSupported,
    GroupingError,
    InvalidColumnReference,
    WindowingError,
    WrongType,
)
from leasehold.sql.binding import window
from leasehold.sql.binding.bound_tree import OPEN, Aggregate, Bound, Key
from leasehold.sql.binding.order import as_sort_key
from leasehold.sql.binding.typing import KEYED, PLAIN, as_key, known_or_none, sentence_of
from leasehold.sql.binding.walk import has_aggregate, has_window
from leasehold.sql.functions.aggregates import aggregates
from leasehold.sql.functions.aggregates.aggregates import AGGREGATE_NAMES
from leasehold.sql.functions.aggregates.distinct_aggregates import Sorted, distinct
from leasehold.sql.functions.function import BIGINT, DOUBLE, INTEGER, TEXT
from leasehold.sql.functions.registry import aggregate_for
from leasehold.sql.syntax import tree
from leasehold.sql.syntax.positions import refused_at, with_position
from leasehold.values.text_io import shows_zone
from leasehold.values.types import FLOATS, Type, element_of, sort_key_of

if TYPE_CHECKING:
    from leasehold.sql.binding.expressions import Expressions


class Shape(NamedTuple):
    """An aggregate or window function as a query calls it. `emitted` is its name in SQLite, ""
    where `function` computes it; `arguments` are the types that its arguments are brought to;
    `found` is the catalogue's aggregate, None for what is only a window function."""

    emitted: str
    arguments: tuple[Type, ...]
    result: Type
    function: aggregates.Aggregate | None = None
    found: aggregates.Aggregate | None = None


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
    """Return the shape of an aggregate over values of these types, open ones among them; `over`
    says that it runs in a window. Raises UnknownFunction, AmbiguousFunction,
    FeatureNotSupported."""
    found = aggregate_for(name, tuple(known_or_none(kind) for kind in kinds))
    native = _native(name, found)
    if over and native == "group_concat":
        native = ""  # SQLite's loses a separator when an empty text leaves the frame
    return Shape(native, found.arguments, found.result, None if native else found, found)


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
    """Return the shape of a function that is only a window function, None where there is none for
    these types, which are known by now."""
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


# -------------------------------------------------------------- binding


def bind_aggregate(self: Expressions, node: tree.Call) -> Bound:
    name, at = node.name, node.at
    _check_clause(self, node)
    if node.over is None and name in WINDOWS:
        raise WindowingError(f"window function {name} requires an OVER clause", position=at)
    if node.over is not None and name not in AGGREGATES | WINDOWS:
        raise WrongType(f"{name} is not a window function nor an aggregate", position=at)
    self.inside += node.over is None
    try:
        arguments = [] if node.star else [self.bind(a) for a in node.arguments]
        order = self.bind_sort_keys(node.order)
        condition = None if node.filter is None else self.bind_condition(node.filter, "FILTER")
    finally:
        self.inside -= node.over is None
    if node.over is None and any(map(has_aggregate, arguments)):
        raise GroupingError("aggregate function calls cannot be nested", position=at)
    if any(map(has_window, arguments)):
        kind = WindowingError if node.over is not None else GroupingError
        raise kind("aggregate function calls cannot contain window function calls", position=at)
    if node.star:
        if name != "count":
            raise sentence_of(name, [])
        return Aggregate(
            "count", (), BIGINT, condition=condition, over=window.bind_over(self, node)
        )
    if name in ("jsonb_agg", "jsonb_object_agg", "json_agg", "json_object_agg"):
        arguments = _shown_in_zone(self, name, arguments, at)
    shape = _shape(self, name, arguments, at, over=node.over is not None)
    parts = tuple(
        self.typing.convert(a, k, at) for a, k in zip(arguments, shape.arguments, strict=True)
    )
    _check_aggregate(node, order)
    if node.distinct and _told_apart_here(name, parts, order):
        function = distinct(shape.found, _sorted(self, node, arguments, parts, order))
        return Aggregate("", parts, shape.result, condition=condition, function=function)
    if node.distinct and name == "array_agg":
        order = (Key(as_sort_key(parts[0], at), False, False),)  # as PostgreSQL finds equal ones
    if node.distinct and name == "count":
        parts = (as_sort_key(parts[0], at),)
    return Aggregate(
        shape.emitted,
        parts,
        shape.result,
        node.distinct,
        order,
        condition,
        window.bind_over(self, node),
        shape.function,
    )


def _told_apart_here(name: str, parts: tuple[Bound, ...], order: tuple[Key, ...]) -> bool:
    """Return whether the adapter tells which rows differ. SQLite does for one argument, in its own
    order, whose equal values look the same or are known by a key."""
    if len(parts) != 1 or order:
        return True
    kind = parts[0].kind
    if kind.name in FLOATS and name not in ("count", "min", "max", "array_agg"):
        return True  # a sum depends on the order of what is added
    if kind.name in KEYED:
        return name not in ("count", "min", "max")
    return sort_key_of(kind) is not None and element_of(kind) is None


def _sorted(
    self: Expressions,
    node: tree.Call,
    arguments: list[Bound],
    parts: tuple[Bound, ...],
    order: tuple[Key, ...],
) -> tuple[Sorted, ...]:
    """Return the order of the rows that differ: by what ORDER BY asks for, then by the other
    arguments, as PostgreSQL finds equal rows. `parts` are the `arguments` as the aggregate takes
    them."""
    if not order and node.name == "count":
        return ()
    shown = [{as_key(a), as_key(p)} for a, p in zip(arguments, parts, strict=True)]
    made: list[Sorted] = []
    for key, said in zip(order, node.order, strict=True):
        places = [n for n, forms in enumerate(shown) if key.value in forms]
        if not places:
            raise InvalidColumnReference(
                "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list",
                position=said.node.at,
            )
        made.append(Sorted(places[0], key.descending, key.nulls_first))
    asked = {key.argument for key in made}
    made += (Sorted(n) for n in range(len(parts)) if n not in asked)
    for ordinal in made:
        as_sort_key(parts[ordinal.argument], node.at)
    return tuple(made)


def _shown_in_zone(self: Expressions, name: str, arguments: list[Bound], at: int) -> list[Bound]:
    """Return the arguments of a JSON aggregate with those that the session's time zone shows made
    names or JSON already: aggregates know no session."""
    made = []
    for ordinal, argument in enumerate(arguments):
        if not shows_zone(self.typing.kind_of(argument)):
            made.append(argument)
        elif ordinal == 0 and name.endswith("_object_agg"):
            made.append(self.typing.cast(argument, TEXT, at))
        else:
            to_json = "to_jsonb" if name.startswith("jsonb") else "to_json"
            made.append(self.call(to_json, [argument], at))
    return made


def _shape(self: Expressions, name: str, arguments: list[Bound], at: int, *, over: bool) -> Shape:
    if name not in WINDOWS:
        with refused_at(at):
            kinds = [self.typing.kind_of(a) for a in arguments]
            return aggregate_shape(name, kinds, over=over)
    for ordinal, part in enumerate(arguments):
        counts = ordinal == (0 if name == "ntile" else 1)
        like = arguments[0].kind if ordinal == 2 else TEXT
        if self.typing.kind_of(part) == OPEN:
            arguments[ordinal] = self.typing.convert(part, INTEGER if counts else like, at)
    kinds = [a.kind for a in arguments]
    shape = window_shape(name, kinds)
    if shape is None:
        raise with_position(sentence_of(name, kinds), at)
    return shape


def _check_clause(self: Expressions, node: tree.Call) -> None:
    if node.over is not None:
        if self.clause not in ("", "ORDER BY"):
            raise WindowingError(
                f"window functions are not allowed in {self.clause}", position=node.at
            )
    elif self.clause not in ("", "ORDER BY", "HAVING"):
        raise GroupingError(
            f"aggregate functions are not allowed in {self.clause}", position=node.at
        )


def _check_aggregate(node: tree.Call, order: tuple[Key, ...]) -> None:
    at = node.at
    if node.over is not None and (node.distinct or order):
        raise FeatureNotSupported(
            "DISTINCT and ORDER BY inside a window function are not supported", position=at
        )
    if node.name in WINDOWS and (node.filter is not None or node.distinct or order):
        raise FeatureNotSupported(
            "FILTER is not implemented for non-aggregate window functions", position=at
        )
