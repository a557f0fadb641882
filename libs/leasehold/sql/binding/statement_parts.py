"""A statement of several parts: statements that write inside WITH, queries whose rows are claimed,
and queries of WITH whose rows more than one part reads.

Each part is run once, in the order of the text and on the same snapshot, before the one that the
statement's answer comes of. What it gives is kept for those behind it. All other queries of WITH
stay in the part that names them, so that SQLite computes of them what is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from leasehold.model.errors import FeatureNotSupported
from leasehold.sql.binding.bound_tree import (
    BoundCte,
    BoundQuery,
    BoundSelect,
    CteSource,
    Field,
)
from leasehold.sql.binding.bound_write import BoundWrite
from leasehold.sql.binding.claims import BoundClaim
from leasehold.sql.binding.merge import MergeBinder
from leasehold.sql.binding.queries import Binder
from leasehold.sql.binding.scope import Scope
from leasehold.sql.binding.walk import walk
from leasehold.sql.binding.writes import WriteBinder
from leasehold.sql.syntax import tree

Whole: TypeAlias = BoundQuery | BoundWrite | BoundClaim


@dataclass(frozen=True, slots=True)
class BoundPart:
    """A part that runs before the main one. What it gives is kept as the rows of the query `number`
    of WITH, () where nothing comes back."""

    number: int
    whole: Whole


def bind_statement(
    binder: Binder, statement: tree.Query | tree.Write, numbered: int
) -> tuple[tuple[BoundPart, ...], BoundQuery | BoundWrite]:
    """Return a statement's parts and its main one. `numbered` is the highest number of its
    parameters."""
    if isinstance(statement, tree.Query) and not _writes_in(statement.ctes):
        query = binder.bind_query(statement, None)
        return _distribute(binder, _take_claims(binder), query)
    scope = Scope()
    named: list[BoundCte | BoundPart] = []

    def bind_write(write: tree.Write) -> BoundWrite:
        own = Scope(scope)
        named.extend(binder.ctes.bind(write.ctes, own))
        named.extend(_take_claims(binder))
        assert not isinstance(write, tree.Merge), "refused by the syntax"
        return WriteBinder(binder, numbered, Scope(ctes=scope.ctes | own.ctes)).bind(write)

    for cte in statement.ctes.ctes if statement.ctes is not None else ():
        number, made = binder.ctes.bind_one(cte, scope, statement.ctes, bind_write)
        named.extend(_take_claims(binder))
        named.append(BoundPart(number, made) if isinstance(made, BoundWrite) else made)
    main: BoundQuery | BoundWrite
    if isinstance(statement, tree.Query):
        main = binder.bind_query(replace(statement, ctes=None), scope)
    elif isinstance(statement, tree.Merge):
        main = MergeBinder(binder, numbered, scope).bind_merge(statement)
    else:
        main = WriteBinder(binder, numbered, scope).bind(statement)
    return _distribute(binder, [*named, *_take_claims(binder)], main)


def _take_claims(binder: Binder) -> list[BoundPart]:
    """Return the claims that stand in what was just bound, each behind those inside it."""
    claims, binder.claims = binder.claims, []
    return [BoundPart(*each) for each in claims]


def _writes_in(ctes: tree.With | None) -> bool:
    return ctes is not None and any(not isinstance(c.query, tree.Query) for c in ctes.ctes)


def _distribute(
    binder: Binder, named: Sequence[BoundCte | BoundPart], main: BoundQuery | BoundWrite
) -> tuple[tuple[BoundPart, ...], BoundQuery | BoundWrite]:
    """Say of each query of WITH to which part it belongs: to the only one that names it, or to none
    and is a part itself. One that nobody names is not run."""
    if not named:
        return (), main
    last = len(named)
    users: dict[int, set[tuple[int, int]]] = {}

    def note(place: int, nodes: Iterator[tuple[int, Any]]) -> None:
        for nth, node in nodes:
            for number in _mentioned(node):
                users.setdefault(number, set()).add((place, nth))

    note(last, _queries_of(main))
    inside: dict[int, list[BoundCte]] = {}
    kept: set[int] = set()
    for place in range(last - 1, -1, -1):
        each = named[place]
        if isinstance(each, BoundPart):
            kept.add(place)
            note(place, _queries_of(each.whole))
            continue
        by = users.get(each.number)
        if not by:
            continue
        first = min(by)
        if len(by) > 1 or first[1]:
            kept.add(place)
            note(place, iter([(0, each.query)]))
            continue
        inside.setdefault(first[0], []).insert(0, each)
        note(first[0], iter([(0, each.query)]))
    parts: list[BoundPart] = []
    for place in sorted(kept):
        each = named[place]
        whole = each.whole if isinstance(each, BoundPart) else _query_of(binder, each)
        parts.append(BoundPart(each.number, _with_ctes(whole, inside.get(place, ()))))
    _refuse_outside(parts)
    found = _with_ctes(main, inside.get(last, ()))
    assert not isinstance(found, BoundClaim), "that stands in another one"
    return tuple(parts), found


def _queries_of(whole: Whole) -> Iterator[tuple[int, Any]]:
    """Yield what is run of a part, from 0: what finds its rows, and what is run for each row, which
    can't have a WITH of its own."""
    if isinstance(whole, BoundQuery):
        yield 0, whole
        return
    if isinstance(whole, BoundClaim):
        yield 0, whole.query
        yield 1, whole.bounds
        return
    yield 0, whole.find
    for query in whole.later:
        yield 1, query


def _mentioned(node: Any) -> set[int]:
    return {found.cte for found in walk(node) if isinstance(found, CteSource)}


def _refuse_outside(parts: Sequence[BoundPart]) -> None:
    """Refuse a claim that names a query of a WITH around it, which is not there when it runs."""
    known = {part.number for part in parts}
    for part in parts:
        if isinstance(part.whole, BoundClaim):
            query = part.whole.query
            inside = {found.number for found in walk(query) if isinstance(found, BoundCte)}
            if not _mentioned(query) <= inside | known:
                raise FeatureNotSupported(
                    f"{part.whole.words} with SKIP LOCKED or NOWAIT in a query that names one of"
                    " WITH around it is not supported"
                )


def _query_of(binder: Binder, cte: BoundCte) -> BoundQuery:
    """Return a query of WITH as one that stands for itself."""
    if not cte.recursive:
        return cte.query
    relation, columns = binder.new_relation(), cte.query.columns
    fields = tuple(Field(relation, f"o{n}", c.kind, c.nullable) for n, c in enumerate(columns))
    source = CteSource(relation, cte.number, len(columns))
    return BoundQuery(columns, BoundSelect(fields, source), ctes=(cte,))


def _with_ctes(whole: Whole, ctes: Sequence[BoundCte]) -> Whole:
    if isinstance(whole, BoundQuery):
        return replace(whole, ctes=(*ctes, *whole.ctes))
    if isinstance(whole, BoundWrite):
        return replace(whole, find=replace(whole.find, ctes=(*ctes, *whole.find.ctes)))
    return replace(whole, query=replace(whole.query, ctes=(*ctes, *whole.query.ctes)))
