"""Queries whose rows are claimed (FOR UPDATE SKIP LOCKED, NOWAIT), so that other sessions pass over
them. One is a part of its statement, run once before the rest of it: which rows it gives is found
row by row, by whether they can be claimed, so it has no limit of its own in SQLite's text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from leasehold.model.errors import FeatureNotSupported
from leasehold.sql.binding.bound_tree import (
    Bound,
    BoundQuery,
    BoundSelect,
    Column,
    CteSource,
    Field,
    Value,
)
from leasehold.sql.binding.needed_privileges import Needs
from leasehold.sql.binding.select_for_verify import Visits, add_visits, lock_tables
from leasehold.sql.functions.function import BIGINT
from leasehold.sql.syntax import tree

_SHARED: Final = frozenset({"FOR SHARE", "FOR KEY SHARE"})


@dataclass(frozen=True, slots=True)
class BoundClaim:
    """A query of rows that are claimed, in its order and without its limit: its columns, then keys
    and genids as `visits` says. `bounds` gives LIMIT and OFFSET, NULL for none; `skips`: rows that
    others have claimed are passed over, else they are an error; `exclusive`: nobody else may claim
    them, else FOR SHARE may."""

    query: BoundQuery
    visits: Visits
    bounds: BoundQuery
    skips: bool
    exclusive: bool
    words: str


def bind_claim(query: BoundQuery, asked: tree.Visits, needs: Needs) -> BoundClaim:
    """Return a query as one whose rows are claimed. Raises FeatureNotSupported where a row of its
    result is not one row of each table, UnknownTable for a name after OF."""
    if query.correlated:
        raise FeatureNotSupported(
            f"{asked.words} with SKIP LOCKED or NOWAIT in a query that names columns of the one"
            " around it is not supported",
            position=asked.at,
        )
    lock_tables(needs, query, asked)
    limits: tuple[Bound, ...] = (
        query.limit or Value(BIGINT, None),
        query.offset or Value(BIGINT, None),
    )
    bounds = BoundQuery((Column("limit", BIGINT), Column("offset", BIGINT)), BoundSelect(limits))
    found, visits = add_visits(replace(query, limit=None, offset=None), asked)
    skips, exclusive = asked.claims == "skip", asked.words not in _SHARED
    return BoundClaim(found, visits, bounds, skips, exclusive, asked.words)


def rows_of_claim(relation: int, number: int, columns: tuple[Column, ...]) -> BoundQuery:
    """Return what stands for the query: the rows that were claimed, as those of the query `number`
    of WITH."""
    fields = tuple(Field(relation, f"o{n}", c.kind, c.nullable) for n, c in enumerate(columns))
    source = CteSource(relation, number, len(columns))
    return BoundQuery(columns, BoundSelect(fields, source))
