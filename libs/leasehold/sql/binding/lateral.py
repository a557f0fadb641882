"""LATERAL: what in FROM is computed for each row of the tables before it, and joins in an order in
which those rows are known."""

from __future__ import annotations

from leasehold.model.errors import FeatureNotSupported, GroupingError, InvalidColumnReference
from leasehold.sql.binding.bound_tree import (
    Aggregate,
    Bound,
    BoundQuery,
    BoundSource,
    ElementsSource,
    JoinSource,
    SeriesSource,
    SubSource,
    join_parts,
)
from leasehold.sql.binding.walk import leaves, relations_in, walk
from leasehold.sql.functions.aggregates.gathered_rows import COLUMNS_MAX

_INNER = ("inner", "cross")


def check_lateral(query: BoundQuery, before: frozenset[int], at: int) -> bool:
    """Return whether a query of FROM uses columns of the relations `before` it. Raises
    GroupingError for aggregates over those alone, FeatureNotSupported for one that is too wide."""
    if not relations_in(query) & before:
        return False
    for node in walk(query):
        if isinstance(node, Aggregate):
            named = relations_in(node)
            if named and named <= before:
                raise GroupingError(
                    "aggregate functions are not allowed in FROM clause of their own query level",
                    position=at,
                )
    if len(query.columns) > COLUMNS_MAX:
        raise FeatureNotSupported(
            f"a LATERAL query of more than {COLUMNS_MAX} columns is not supported: name those that"
            " are used",
            position=at,
        )
    return True


def relations_of_source(source: BoundSource) -> frozenset[int]:
    """Return the relations that a part of FROM is made of."""
    return frozenset(leaf.relation for leaf in leaves(source))


def join_sources(
    kind: str, left: BoundSource, right: BoundSource, condition: Bound | None, at: int
) -> BoundSource:
    """Return a join in which nothing in parentheses on the right uses columns of what is left of
    these: SQLite would not see them there. Raises InvalidColumnReference (42P10) where the kind of
    join lets nobody see them, FeatureNotSupported where the joins have no such order."""
    if not _uses(right, left):
        return JoinSource(kind, left, right, condition)
    if kind in ("right", "full"):
        raise InvalidColumnReference(
            "the combining JOIN type must be INNER or LEFT for a LATERAL reference", position=at
        )
    if not isinstance(right, JoinSource):
        return JoinSource(kind, left, right, condition)
    if kind in _INNER and right.kind in _INNER:
        first = join_sources("cross", left, right.left, None, at)
        both = [part for part in (right.condition, condition) if part is not None]
        joined = join_parts("and", both) if both else None
        inner = "inner" if both else "cross"
        return join_sources(inner, first, right.right, joined, at)
    optional = relations_of_source(right.right)
    apart = condition is None or not relations_in(condition) & optional
    if kind in _INNER and right.kind == "left" and apart:
        first = join_sources(kind, left, right.left, condition, at)
        return join_sources("left", first, right.right, right.condition, at)
    raise FeatureNotSupported(
        "LATERAL in parentheses over columns of a table outside of these is not supported beside"
        " this outer join: write the LATERAL query behind the joins of the tables that it uses",
        position=at,
    )


def _uses(source: BoundSource, other: BoundSource) -> bool:
    """Return whether a function or a LATERAL query in `source` uses columns of `other`."""
    used: frozenset[int] = frozenset()
    for leaf in leaves(source):
        lateral = isinstance(leaf, SubSource) and leaf.lateral
        if lateral or isinstance(leaf, SeriesSource | ElementsSource):
            used |= relations_in(leaf)
    # Most use none, and there may be many joins.
    return bool(used) and not used.isdisjoint(relations_of_source(other))
