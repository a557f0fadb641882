"""SELECTV and FOR UPDATE: which rows a query has shown, so that COMMIT can verify that they are
still the same, and write those that were locked. A row of the result is made of one row of each
table in FROM: their keys and genids stand behind the columns that the client gets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.physical_names import lock_name
from leasehold.catalog.privileges import Privilege
from leasehold.model.errors import FeatureNotSupported, UnknownTable
from leasehold.model.keys import Key
from leasehold.model.records.events import Genids
from leasehold.sql.binding.bound_tree import (
    Bound,
    BoundQuery,
    BoundSelect,
    BoundSet,
    BoundSource,
    Column,
    CteSource,
    Field,
    JoinSource,
    SubSource,
    TableSource,
    join_parts,
)
from leasehold.sql.binding.lateral import join_sources, relations_of_source
from leasehold.sql.binding.needed_privileges import Needs
from leasehold.sql.binding.walk import conjuncts, has_window, leaves, relations_in, walk
from leasehold.sql.functions.function import BIGINT
from leasehold.sql.syntax.tree import SELECTV
from leasehold.sql.syntax.tree import Visits as Asked

Rows = list[tuple[Any, ...]]
Visit = Callable[[Descriptor, Key, Genids, bool], None]
"""Is told of a row of a table, its genids, and whether it is locked."""


class ShownRow(NamedTuple):
    table: Descriptor
    key: Key
    genids: Genids


@dataclass(frozen=True, slots=True)
class Visits:
    """The rows of tables that a result shows. `width` counts the client's columns, behind which
    stand a key and genids for each of `tables`. Where a row of the result is made of many, or of
    one of several queries, the rows that FROM and WHERE leave are found by queries of their own,
    `apart`. `locks`: they are locked (FOR UPDATE), and not only verified (SELECTV)."""

    width: int
    tables: tuple[Descriptor, ...]
    apart: tuple[Apart, ...] | None = None
    locks: bool = False

    def shown(self, visit: Visit | None) -> Callable[[Rows], Rows]:
        """Rows as they are found → as clients get them, with `visit` told of each row of a table
        that is committed (not those of the transaction itself, nor what an outer join lacks)."""

        def cut(rows: Rows) -> Rows:
            for row in rows if visit is not None else ():
                for shown in self.find_shown(row):
                    assert visit is not None
                    if shown.genids:
                        visit(*shown, self.locks)
            return [row[: self.width] for row in rows]

        return cut

    def find_shown(self, row: tuple[Any, ...]) -> Iterator[ShownRow]:
        """Yield the rows of tables that a row of the result is made of; of one of the transaction
        itself, and of one that an outer join lacks, there are no genids."""
        at = self.width
        for table in self.tables:
            keyed = at + len(table.primary_key)
            end = keyed + len(table.locks)
            values = zip(table.locks, row[keyed:end], strict=True)
            genids = {lock: value for lock, value in values if value is not None}
            yield ShownRow(table, row[at:keyed], genids)
            at = end


@dataclass(frozen=True, slots=True)
class Apart:
    """A query of keys and genids alone (`width` 0)."""

    query: BoundQuery
    visits: Visits


def add_visits(query: BoundQuery, asked: Asked) -> tuple[BoundQuery, Visits]:
    """The query that shows them. Raises FeatureNotSupported, UnknownTable for a name after OF."""
    body = query.body
    own = asked.words == SELECTV
    if own and not isinstance(body, BoundSelect):
        return query, Visits(0, (), tuple(_each_apart(query, asked)))
    many = isinstance(body, BoundSelect) and (body.aggregated or body.distinct is not None)
    if not isinstance(body, BoundSelect) or (many and not own):
        _refuse(asked, "UNION, GROUP BY, DISTINCT, VALUES or aggregates: its rows are of no table")
    assert isinstance(body, BoundSelect)
    if any(map(has_window, body.outputs)):
        if not own:
            _refuse(asked, "window functions")
        many = True
    sources = list(leaves(body.source))
    if own and (many or any(isinstance(one, SubSource) for one in sources)):
        return query, Visits(0, (), tuple(_each_apart(query, asked)))
    found: list[TableSource] = []
    for source in sources:
        if isinstance(source, TableSource) and (not asked.of or source.alias in asked.of):
            found.append(source)
        elif isinstance(source, SubSource | CteSource) and not asked.of:
            _refuse(asked, "a query in FROM or WITH: name its tables themselves")
    unknown = set(asked.of) - {source.alias for source in found}
    if unknown:
        name = min(unknown)
        raise UnknownTable(
            f"relation {name!r} in {asked.words} clause not found in FROM clause",
            position=asked.at,
            table=name,
        )
    more, tables = _marks(found)
    visits = Visits(len(body.outputs), tables, locks=not own)
    return replace(query, body=replace(body, outputs=(*body.outputs, *more))), visits


def lock_tables(needs: Needs, query: BoundQuery, asked: Asked) -> None:
    """Note that FOR UPDATE needs UPDATE on a table of which it locks rows, on any column of it.
    SELECTV locks none: what it has shown is verified."""
    if asked.words == SELECTV or not isinstance(query.body, BoundSelect):
        return
    for source in leaves(query.body.source):
        if isinstance(source, TableSource) and (not asked.of or source.alias in asked.of):
            needs.add(source.relation, Privilege.UPDATE)


def _each_apart(query: BoundQuery, asked: Asked) -> Iterator[Apart]:
    """Give a query for the rows that FROM and WHERE leave, for each SELECT that the query is made
    of by UNION and its like, and by queries in FROM."""
    body = query.body
    if isinstance(body, BoundSet):
        for side in (body.left, body.right):
            yield from _each_apart(replace(side, ctes=(*query.ctes, *side.ctes)), asked)
    if not isinstance(body, BoundSelect):
        return
    found: list[TableSource] = []
    for source in leaves(body.source):
        if isinstance(source, TableSource):
            found.append(source)
        elif isinstance(source, CteSource):
            _refuse(asked, "a query of WITH: name its tables themselves")
        elif isinstance(source, SubSource):
            inner = source.query
            if source.lateral and body.source is not None:
                inner = _joined_before(inner, body.source, conjuncts(body.where), source)
            yield from _each_apart(replace(inner, ctes=(*query.ctes, *inner.ctes)), asked)
    if found:
        more, tables = _marks(found)
        columns = tuple(Column(f"v{n}", part.kind) for n, part in enumerate(more))
        rows = BoundSelect(tuple(more), body.source, body.where)
        yield Apart(BoundQuery(columns, rows, ctes=query.ctes), Visits(0, tables))


def _joined_before(
    query: BoundQuery, source: BoundSource, where: tuple[Bound, ...], lateral: SubSource
) -> BoundQuery:
    """Return the rows that a LATERAL query of FROM looks at, as a query by itself: joined with the
    tables before it, as far as these meet what is said of them alone."""
    join = next(n for n in walk(source) if isinstance(n, JoinSource) and n.right is lateral)
    known = relations_of_source(join.left)
    others = relations_of_source(source) - known
    met = tuple(part for part in where if not relations_in(part) & others)
    return _behind(query, join.left, met)


def _behind(query: BoundQuery, before: BoundSource, met: tuple[Bound, ...]) -> BoundQuery:
    body = query.body
    if isinstance(body, BoundSet):
        left, right = (_behind(side, before, met) for side in (body.left, body.right))
        return replace(query, body=replace(body, left=left, right=right))
    if not isinstance(body, BoundSelect) or body.source is None:
        return query
    source = join_sources("cross", before, body.source, None, 0)
    both = (*met, *conjuncts(body.where))
    where = join_parts("and", both) if both else None
    return replace(query, body=replace(body, source=source, where=where))


def _marks(found: list[TableSource]) -> tuple[list[Bound], tuple[Descriptor, ...]]:
    """Keys and genids of these tables' rows."""
    more: list[Bound] = []
    for source in found:
        descriptor = source.descriptor
        more += source.key
        more += (Field(source.relation, lock_name(lock), BIGINT) for lock in descriptor.locks)
    return more, tuple(source.descriptor for source in found)


def _refuse(asked: Asked, what: str) -> None:
    raise FeatureNotSupported(f"{asked.words} is not supported with {what}", position=asked.at)
