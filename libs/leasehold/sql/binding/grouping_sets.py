"""GROUPING SETS, ROLLUP and CUBE: a SELECT that groups its rows in several ways.

What FROM and WHERE leave is found once (a query of WITH, kept); one SELECT for each set groups it,
with NULL in the place of what the set has not; HAVING, window functions, DISTINCT, ORDER BY and the
result are over the rows of all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from leasehold.model.errors import FeatureNotSupported, GroupingError, TooComplex
from leasehold.sql.binding.bound_tree import (
    Aggregate,
    Bound,
    BoundCte,
    BoundQuery,
    BoundSelect,
    BoundSet,
    BoundSource,
    Column,
    CteSource,
    Field,
    Grouping,
    SubSource,
    Value,
)
from leasehold.sql.binding.walk import leaves, replaced, walk
from leasehold.sql.functions.function import BIGINT, INTEGER
from leasehold.sql.syntax import tree

if TYPE_CHECKING:
    from leasehold.sql.binding.expressions import Expressions
    from leasehold.sql.binding.queries import Binder

NAME: Final = "grouping"
SETS_MAX: Final = 128
ARGUMENTS_MAX: Final = 31

Set: TypeAlias = tuple[Bound, ...]


def bind_grouping(self: Expressions, node: tree.Call) -> Bound:
    """GROUPING(…), whose arguments are looked at with GROUP BY."""
    at = node.at
    if self.inside:
        raise GroupingError("aggregate function calls cannot be nested", position=at)
    if self.clause not in ("", "ORDER BY", "HAVING"):
        raise GroupingError(f"grouping operations are not allowed in {self.clause}", position=at)
    if len(node.arguments) > ARGUMENTS_MAX:
        raise TooComplex("GROUPING must have fewer than 32 arguments", position=at)
    parts = tuple(self.settle(argument) for argument in node.arguments)
    made = Grouping(parts, INTEGER)
    self.scope.groupings.append((made, tuple(argument.at for argument in node.arguments)))
    return made


# -------------------------------------------------------------- which sets there are


def expand_sets(
    items: Sequence[tree.Node | tree.GroupingSets],
    bind: Callable[[tree.Node], Set],
    *,
    once: bool,
    at: int,
) -> list[Set]:
    """Return the grouping sets of GROUP BY, of whose items each adds to each set of the others.
    `once`: equal sets count as one. Raises TooComplex above SETS_MAX."""
    made: list[Set] = [()]
    for item in items:
        found = _expanded(item, bind)
        if len(made) * len(found) > SETS_MAX:
            raise _too_many(at)
        made = [(*a, *b) for a, b in product(made, found)]
    made = [without_repeats(one) for one in made]
    if once:
        made = [one for n, one in enumerate(made) if not any(_same(one, o) for o in made[:n])]
    return made


def without_repeats(parts: Iterable[Bound]) -> Set:
    """Return the parts without those that are equal to one before. They may hold what has no
    hash."""
    found: list[Bound] = []
    for part in parts:
        if part not in found:
            found.append(part)
    return tuple(found)


def _same(one: Set, other: Set) -> bool:
    return len(one) == len(other) and all(part in other for part in one)


def _expanded(item: tree.Node | tree.GroupingSets, bind: Callable[[tree.Node], Set]) -> list[Set]:
    if not isinstance(item, tree.GroupingSets):
        return [bind(item)]
    if item.kind == "sets":
        if not item.items:
            return [()]
        made = [each for inner in item.items for each in _expanded(inner, bind)]
        if len(made) > SETS_MAX:
            raise _too_many(item.at)
        return made
    parts = [bind(part) for part in item.items if not isinstance(part, tree.GroupingSets)]
    if item.kind == "rollup":
        taken = (parts[:count] for count in range(len(parts), -1, -1))
        return [_together(each) for each in taken]
    if 1 << len(parts) > SETS_MAX:
        raise _too_many(item.at)
    sizes = range(len(parts), -1, -1)
    return [_together(each) for size in sizes for each in combinations(parts, size)]


def _together(parts: Sequence[Set]) -> Set:
    return tuple(one for part in parts for one in part)


def _too_many(at: int) -> TooComplex:
    return TooComplex(f"too many grouping sets present (maximum {SETS_MAX})", position=at)


# -------------------------------------------------------------- the query


class Regrouped:
    """A SELECT over the groups of several sets. `above` is asked for each part of it that is over
    groups, then `found`."""

    def __init__(
        self,
        binder: Binder,
        source: BoundSource | None,
        where: Bound | None,
        sets: Sequence[Set],
        at: int,
    ) -> None:
        self._source, self._where, self._sets, self._at = source, where, sets, at
        self._own = frozenset(leaf.relation for leaf in leaves(source))
        self._cte = binder.ctes.new_number()
        self._row, self._group = binder.new_relation(), binder.new_relation()
        self._grouped = list(without_repeats(part for each in sets for part in each))
        # What is kept of each row and of each group, as o0, o1 …
        self._of_rows: list[Bound] = list(self._grouped)
        self._of_groups: list[Bound] = list(self._grouped)

    def above(self, part: Bound) -> Bound:
        """What a part of the result is over the groups of all sets."""
        made: Bound = replaced(part, self._over_groups)
        return made

    def _over_groups(self, node: Any, inside: bool) -> Bound | None:
        """Return what stands for a node over the groups, None where it is gone through. `inside`
        says that it is in a query of the part."""
        if isinstance(node, Aggregate) and node.over is None:
            if not inside:
                return self._kept_of_group(node)
            if any(isinstance(n, Field) and n.relation in self._own for n in walk(node)):
                raise FeatureNotSupported(
                    "a query inside another one with grouping sets that aggregates its columns is"
                    " not supported",
                    position=self._at,
                )
        own = isinstance(node, Field) and node.relation in self._own
        if own or isinstance(node, Grouping) or node in self._grouped:
            return self._kept_of_group(node)
        return None

    def _kept_of_group(self, node: Bound) -> Bound:
        ordinal = _place_in(self._of_groups, node)
        if not isinstance(node, Field):
            return Field(self._group, f"o{ordinal}", node.kind)
        nullable = node.nullable or not all(node in each for each in self._sets)
        return Field(self._group, f"o{ordinal}", node.kind, nullable, node.origin)

    def _over_rows(self, node: Any, inside: bool) -> Bound | None:
        own = isinstance(node, Field) and node.relation in self._own
        if own or (node in self._grouped and not isinstance(node, Value)):
            return Field(self._row, f"o{_place_in(self._of_rows, node)}", node.kind)
        return None

    def found(self) -> tuple[BoundCte, SubSource]:
        """The rows, and the groups of all sets."""
        aggregates = any(isinstance(part, Aggregate) for part in self._of_groups)
        if () in self._sets and not aggregates:
            self._of_groups.append(Aggregate("count", (), BIGINT))  # which makes it one group
        each = [self._of_set(one) for one in self._sets]
        kept = tuple(self._of_rows) or (Value(INTEGER, 1),)
        rows = BoundSelect(kept, self._source, self._where)
        width = len(kept)

        def grouped(outputs: tuple[Bound, ...], by: tuple[Bound, ...]) -> BoundQuery:
            source = CteSource(self._row, self._cte, width)
            return _query(BoundSelect(outputs, source, None, by, True))

        united = _united([grouped(outputs, by) for outputs, by in each])
        return BoundCte(self._cte, _query(rows), False, True), SubSource(self._group, united)

    def _of_set(self, one: Set) -> tuple[tuple[Bound, ...], tuple[Bound, ...]]:
        """What is computed of each of its groups, and by what they are told apart."""
        made: list[Bound] = []
        for part in self._of_groups:
            if isinstance(part, Grouping):
                made.append(Value(INTEGER, _bits(part, one)))
            elif part in self._grouped and part not in one:
                made.append(Value(part.kind, None))
            else:
                made.append(replaced(part, self._over_rows))
        return tuple(made), tuple(replaced(part, self._row_only) for part in one)

    def _row_only(self, node: Any, inside: bool) -> Bound:
        return Field(self._row, f"o{self._of_rows.index(node)}", node.kind)


def without_sets(part: Bound) -> Bound:
    """Return a part of the result where there is one grouping set alone, which has them all."""

    def change(node: Any, inside: bool) -> Bound | None:
        return Value(INTEGER, 0) if isinstance(node, Grouping) else None

    made: Bound = replaced(part, change)
    return made


def _bits(part: Grouping, one: Set) -> int:
    bits = 0
    for argument in part.arguments:
        bits = 2 * bits + (argument not in one)
    return bits


def _place_in(parts: list[Bound], part: Bound) -> int:
    if part not in parts:
        parts.append(part)
    return parts.index(part)


def _query(body: BoundSelect) -> BoundQuery:
    columns = (Column(f"o{n}", part.kind) for n, part in enumerate(body.outputs))
    return BoundQuery(tuple(columns), body)


def _united(queries: list[BoundQuery]) -> BoundQuery:
    """Join the queries by UNION ALL, in halves: SQLite nests no more than so deep."""
    if len(queries) == 1:
        return queries[0]
    half = len(queries) // 2
    left, right = _united(queries[:half]), _united(queries[half:])
    return BoundQuery(left.columns, BoundSet("union", True, left, right))
