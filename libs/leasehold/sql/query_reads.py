"""What a statement reads, as far as its text tells: for a level that must know whether somebody has
written there since.

A superset: rows that were looked at and did not fit are in it too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from leasehold.model.records import Key
from leasehold.sql.physical import column_name
from leasehold.sql.query_bound import (
    Bound,
    BoundQuery,
    BoundSelect,
    Field,
    Slot,
    TableSource,
    Value,
)
from leasehold.sql.query_emit import inner_sources
from leasehold.sql.query_index import prefix, sought_in
from leasehold.sql.query_walk import conjuncts, walk

LISTED_MAX: Final = 100
"""Values of an IN that are places of their own; of more the list tells nothing."""


class Read(NamedTuple):
    """Keys of table `table_id` that begin with `prefix` and, in the part behind it, lie in
    low … high (None: no bound; both ends belong to it): of the primary key (`index_id` 0) or of an
    index. () without bounds: the whole table. Values are storage values."""

    table_id: int
    index_id: int
    prefix: Key
    low: Any = None
    high: Any = None


@dataclass(frozen=True, slots=True)
class _Place:
    table_id: int
    index_id: int
    prefix: tuple[Bound, ...]
    low: Bound | None = None
    high: Bound | None = None


@dataclass(frozen=True, slots=True)
class Reads:
    places: tuple[_Place, ...]

    def of(self, parameters: Sequence[Any]) -> frozenset[Read]:
        """With the statement's parameters, storage values."""

        def value(part: Bound | None) -> Any:
            if isinstance(part, Slot):
                return parameters[part.number - 1]
            return part.value if isinstance(part, Value) else None

        return frozenset(
            Read(p.table_id, p.index_id, tuple(map(value, p.prefix)), value(p.low), value(p.high))
            for p in self.places
        )


def reads_of(*queries: BoundQuery) -> Reads:
    """Of all queries of a statement, as `Indexes` has left them."""
    places: dict[int, tuple[_Place, ...]] = {}
    for node in (node for query in queries for node in walk(query)):
        if isinstance(node, TableSource):
            places.setdefault(node.relation, (_Place(node.descriptor.table_id, 0, ()),))
        if isinstance(node, BoundSelect) and node.source is not None:
            for source in walk(node.source):
                if isinstance(source, TableSource):
                    places[source.relation] = _places(source, node)
    return Reads(tuple(dict.fromkeys(place for found in places.values() for place in found)))


def _places(source: TableSource, body: BoundSelect) -> tuple[_Place, ...]:
    table_id = source.descriptor.table_id
    assert body.source is not None
    if source not in inner_sources(body.source):
        return (_Place(table_id, 0, ()),)
    sought = [
        s
        for s in sought_in(conjuncts(body.where), source.relation, frozenset())
        if s.sign != "members"
        and len(s.values) <= LISTED_MAX
        and all(isinstance(v, Value | Slot) for v in s.values)
    ]
    key = [
        Field(source.relation, column_name(e), source.descriptor.by_id[e].type)
        for e in source.descriptor.primary_key
    ]
    rank, equal, last = prefix(list(key), sought)
    access = source.access
    if access is not None and rank < len(key):
        constant = [v for v in access.equal if isinstance(v, Value | Slot)]
        bounds = [b for b in (access.low, access.high) if b is not None]
        known = all(isinstance(v, Value | Slot) for v in (*access.items, *(b[0] for b in bounds)))
        few = len(access.items) <= LISTED_MAX
        if len(constant) == len(access.equal) and known and few:
            low = None if access.low is None else access.low[0]
            high = None if access.high is None else access.high[0]
            index_id = access.index.element_id
            if access.items:
                return tuple(
                    _Place(table_id, index_id, (*access.equal, item)) for item in access.items
                )
            if constant or bounds:
                return (_Place(table_id, index_id, access.equal, low, high),)
    listed = next((s.values for s in last if s.sign == "in"), ())
    if listed:
        return tuple(_Place(table_id, 0, (*equal, item)) for item in listed)
    low = next((s.values[0] for s in last if s.sign in (">", ">=")), None)
    high = next((s.values[0] for s in last if s.sign in ("<", "<=")), None)
    return (_Place(table_id, 0, equal, low, high),)
