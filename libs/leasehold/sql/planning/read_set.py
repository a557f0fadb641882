"""What a statement reads, as far as its text tells: for a level that must know whether somebody has
written there since.

A superset: rows that were looked at and did not fit are in it too. A table is read

1. by keys, or a range of the primary key or of an index, where constants, parameters and what
   follows from them say so (a list or an array: one place for each of its values);
2. by keys that other tables' rows name (`Lookup`), where those are read like that themselves: only
   rows with such a key can be in what comes out;
3. else whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import takewhile
from typing import Any, Final, TypeAlias

from leasehold.catalog.elements import Index
from leasehold.catalog.states import READABLE
from leasehold.sql.binding.bound_tree import (
    Access,
    Aggregate,
    Apply,
    Bound,
    BoundQuery,
    BoundSelect,
    BoundSource,
    Column,
    ElementsSource,
    Field,
    JoinSource,
    Member,
    Native,
    Slot,
    SubSource,
    TableSource,
    Value,
)
from leasehold.sql.binding.lateral import relations_of_source
from leasehold.sql.binding.typing import KEYED
from leasehold.sql.binding.walk import children, conjuncts, has_window, relations_in, walk
from leasehold.sql.functions.function import BIGINT, BOOLEAN
from leasehold.sql.planning.indexes import (
    WITHOUT_ENTRIES,
    Sought,
    SoughtParts,
    find_prefix,
    relations_of,
    strip_plain,
)
from leasehold.sql.planning.outer_joins import Seat, has_outer_join, join_inputs_of
from leasehold.sql.planning.reads import LISTED_MAX, KeyPlace, Lookup, Place, Reads, Scales
from leasehold.values.types import Type

LOOKED_UP_MAX: Final = 1_000
"""Keys that other tables' rows name; more of them are the whole table."""


def reads_of(*queries: BoundQuery, parameters: int) -> Reads:
    """Return what all queries of a statement read, as `Indexes` has left them. Slots above its
    `parameters` hold a row that it writes (of RETURNING, of DO UPDATE): what is found by one is
    read whole."""
    found: dict[int, _Found] = {}
    by_key: dict[int, KeyPlace] = {}
    for query in queries:
        _go_through(query, None, (), found, by_key)
    for relation, each in found.items():
        if any(slot.number > parameters for slot in _slots(each)):
            table_id = each.table_id if isinstance(each, Lookup) else each[0].table_id
            found[relation] = (Place(table_id, 0, ()),)
    ranges = [p for f in found.values() if not isinstance(f, Lookup) for p in f]
    lookups = tuple(f for f in found.values() if isinstance(f, Lookup))
    keyed = tuple(
        KeyPlace(place.table_id) if any(s.number > parameters for s in _slots_of(place)) else place
        for place in by_key.values()
    )
    return Reads(tuple(dict.fromkeys(ranges)), lookups, tuple(dict.fromkeys(keyed)))


_Found: TypeAlias = tuple[Place, ...] | Lookup


def _slots_of(place: KeyPlace) -> Iterator[Slot]:
    for part in place.parts():
        yield from (node for node in walk(part) if isinstance(node, Slot))


def _slots(found: _Found) -> Iterator[Slot]:
    parts: list[Any] = [found.query] if isinstance(found, Lookup) else []
    for index_range in () if isinstance(found, Lookup) else found:
        parts += [*index_range.prefix, index_range.low, index_range.high, index_range.array]
    for part in parts:
        if part is not None:
            yield from (node for node in walk(part) if isinstance(node, Slot))


def _go_through(
    node: Any,
    around: _Select | None,
    wanted: tuple[Bound, ...],
    found: dict[int, _Found],
    by_key: dict[int, KeyPlace],
) -> None:
    """Add to `found` what a node reads, and to `by_key` what its conditions say of primary keys.
    `around` is the SELECT whose rows it is computed for; of its own rows only those are asked for
    that meet `wanted`."""
    if isinstance(node, TableSource):
        found.setdefault(node.relation, (Place(node.descriptor.table_id, 0, ()),))
        by_key.setdefault(node.relation, KeyPlace(node.descriptor.table_id))
    if not isinstance(node, BoundQuery) or not isinstance(node.body, BoundSelect):
        for child in children(node):
            _go_through(child, around, (), found, by_key)
        return
    body, source = node.body, node.body.source
    here = around
    if source is not None:
        here = _Select(source, (*conjuncts(body.where), *wanted), around)
        found |= here.found()
        by_key |= here.by_key
        if has_outer_join(source):
            _go_through_joins(source, (*conjuncts(body.where), *wanted), around, found, by_key)
        else:
            _go_through(source, here, (), found, by_key)
    for part in (node.limit, node.offset, *node.ctes):
        if part is not None:
            _go_through(part, around, (), found, by_key)
    for part in conjuncts(body.where):
        asked = _asked_of(part)
        if asked is None:
            _go_through(part, here, (), found, by_key)
        else:
            _go_through(part.query, here, asked, found, by_key)  # type: ignore[union-attr]
    more = (*body.outputs, *body.group, body.having, *(body.distinct or ()), *node.order)
    for each in more:
        if each is not None:
            _go_through(each, here, (), found, by_key)


def _go_through_joins(
    source: BoundSource,
    where: tuple[Bound, ...],
    around: _Select | None,
    found: dict[int, _Found],
    by_key: dict[int, KeyPlace],
) -> None:
    """Go through a FROM with outer joins. A query in the condition of one is computed for rows that
    count otherwise, too; a LATERAL query behind LEFT JOIN for those of the tables before it that
    meet what `where` says of them alone."""
    if not isinstance(source, JoinSource) or source.kind not in ("inner", "cross", "left"):
        _go_through(source, None, (), found, by_key)
        return
    right = source.right
    optional = relations_of_source(right)
    met = tuple(part for part in where if not relations_of(part) & optional)
    _go_through_joins(source.left, met, around, found, by_key)
    before: _Select | None = None
    if isinstance(right, SubSource) and right.lateral:
        before = _Select(source.left, met, around)
        before.found()  # so that it knows which of them are read by keys
    _go_through(right, before, (), found, by_key)
    if source.condition is not None:
        _go_through(source.condition, None, (), found, by_key)


def _asked_of(condition: Bound) -> tuple[Bound, ...] | None:
    """Return what the query's rows must be equal to where `operands IN (query)` is a whole
    condition: no others are asked for. ⚠ Of NOT IN as well, but only where there is no NULL on
    either side: one among the query's rows, or the query's having any row, would change the
    answer."""
    if not isinstance(condition, Member):
        return None
    query, body = condition.query, condition.query.body
    if not isinstance(body, BoundSelect) or not isinstance(body.source, TableSource | JoinSource):
        return None
    if query.limit is not None or query.offset is not None or body.aggregated:
        return None
    if any(map(has_window, body.outputs)) or not all(map(_known, condition.operands)):
        return None
    if condition.negated and not all(map(_never_null, (*condition.operands, *body.outputs))):
        return None
    return tuple(
        Native("=", (output, operand), BOOLEAN)
        for output, operand in zip(body.outputs, condition.operands, strict=False)
    )


def _never_null(part: Bound) -> bool:
    if isinstance(part, Native) and part.word == "same":
        return all(map(_never_null, part.arguments))
    if isinstance(part, Field):
        return not part.nullable
    return isinstance(part, Value) and part.value is not None


class _Select:
    """The tables of one FROM, inside of another query (`around`) perhaps, for each of whose rows it
    is computed."""

    def __init__(
        self, source: BoundSource, where: tuple[Bound, ...], around: _Select | None
    ) -> None:
        seats = join_inputs_of(source, where)
        self._own = seats.all
        self.seats: dict[int, Seat] = {} if around is None else dict(around.seats)
        self.seats |= {seat.source.relation: seat for seat in seats.all}
        self.holds: tuple[Bound, ...] = (*(() if around is None else around.holds), *seats.holds)
        self._around = () if around is None else around.holds
        self._sought: dict[int, SoughtParts] = {}  # by the identity of the conditions of seats
        self.by_key: dict[int, KeyPlace] = {}
        # Of each table that is found, here or around: its relation, and those it is found by.
        self.tables: dict[int, frozenset[int]] = {} if around is None else dict(around.tables)

    def found(self) -> dict[int, _Found]:
        """Return by relation what is read of its own tables that are not read whole."""
        found: dict[int, _Found] = {}
        for seat in self._own:
            ranges = _by_constants(seat.source, self._sought_of(seat))
            self.by_key[seat.source.relation] = _key_place(seat.source, self._sought_of(seat))
            if ranges is not None:
                found[seat.source.relation] = ranges
                self.tables[seat.source.relation] = frozenset({seat.source.relation})
        before = -1
        while before < len(found):  # what one table says of another may be the last that was wanted
            before = len(found)
            for seat in self._own:
                if seat.source.relation not in found:
                    lookup = self._looked_up(seat)
                    if lookup is not None:
                        found[seat.source.relation] = lookup
        return found

    def _sought_of(self, seat: Seat) -> list[Sought]:
        """Return what its conditions, which seats share, say of its table."""
        parts = self._sought.get(id(seat.conditions))
        if parts is None:
            parts = self._sought[id(seat.conditions)] = SoughtParts(seat.conditions)
        return parts.of(seat.source.relation)

    def _looked_up(self, seat: Seat) -> Lookup | None:
        """Return the keys that rows of tables say that are found already; None where those do not
        say enough."""
        source = seat.source
        known = frozenset(self.tables)

        def serves(sought: Sought) -> bool:
            value = sought.values[0]
            if sought.sign != "=" or value == Value(value.kind, None):
                return False
            if _constant(value):
                return True
            # Where NULLs are shown in the place of a row, they are to say nothing.
            plain = not any(self.seats[r].extended for r in sought.relations & known)
            return sought.relations <= known and _simple(value) and (plain or _strict(value))

        sought = list(filter(serves, self._sought_of(seat)))
        best = _best(source, sought)
        if best is None:
            return None
        index_id, equal = best
        needed = frozenset().union(*map(relations_in, equal))
        if not needed:
            return None
        tables = frozenset().union(*(self.tables[relation] for relation in needed))
        by = ", ".join(sorted({self.seats[r].source.descriptor.name for r in tables}))
        query = self._query(equal, tables, seat.conditions)
        self.tables[source.relation] = tables | {source.relation}
        scales = () if index_id else _scales(source)
        return Lookup(source.descriptor.table_id, index_id, query, by, scales)

    def _query(
        self, values: tuple[Bound, ...], tables: frozenset[int], conditions: tuple[Bound, ...]
    ) -> BoundQuery:
        """What the rows of `tables` that meet the conditions on them alone say."""
        source: BoundSource | None = None
        for relation in sorted(tables):
            each = self.seats[relation].source
            part = replace(each, access=_within(each, tables))
            source = part if source is None else JoinSource("cross", source, part, None)
        met = (*self._around, *conditions)
        met += tuple(c for relation in tables for c in self.seats[relation].joined)
        own = [c for c in dict.fromkeys(met) if relations_of(c) <= tables and _simple(c)]
        where: Bound | None = None
        for condition in own:
            where = condition if where is None else Native("and", (where, condition), BOOLEAN)
        columns = tuple(Column(f"k{n}", value.kind) for n, value in enumerate(values))
        once = None if any(value.kind.name in KEYED for value in values) else ()
        body = BoundSelect(values, source, where, (), False, None, once)
        return BoundQuery(columns, body, limit=Value(BIGINT, LOOKED_UP_MAX + 1))


def _by_constants(source: TableSource, told: list[Sought]) -> tuple[Place, ...] | None:
    """Return the places that constants among what is `told` of it say, None where they say
    nothing."""
    table_id, key = source.descriptor.table_id, _key(source)
    sought = list(filter(_says, told))
    rank, equal, last = find_prefix(list(key), sought)
    access = source.access
    if access is not None and rank < len(source.descriptor.primary_key):
        by_index = _by_index(table_id, access)
        if by_index:
            return by_index
    index_range = Place(table_id, 0, (), scales=_scales(source))
    if access is None:
        for index, parts in _plain_indexes(source):
            found = find_prefix(list(parts), sought)
            if found[0] > rank:
                rank, equal, last = found
                index_range = Place(table_id, index.element_id, ())
    if not equal and not last:
        return None
    index_range = replace(index_range, prefix=equal)
    for said in last:
        if said.sign == "in":
            return tuple(replace(index_range, prefix=(*equal, item)) for item in said.values)
        if said.sign == "members":
            assert said.query is not None
            keyed = _keyed_type(said.query)
            return (replace(index_range, array=said.values[0], keyed=keyed),)
        if said.sign in (">", ">="):
            index_range = replace(index_range, low=said.values[0])
        else:
            index_range = replace(index_range, high=said.values[0])
    return (index_range,)


def _key_place(source: TableSource, told: list[Sought]) -> KeyPlace:
    """Return what constants among what is `told` of a table say of the first column of its primary
    key, whatever it is found by."""
    table_id, key = source.descriptor.table_id, _key(source)[:1]
    says = list(filter(_says, told))
    _, equal, last = find_prefix(list(key), says)
    place = KeyPlace(table_id, equal=_values(says))
    if equal:
        return replace(place, values=equal)
    for said in last:
        if said.sign == "in":
            return replace(place, values=said.values)
        if said.sign in (">", ">="):
            place = replace(place, low=(said.values[0], said.sign == ">="))
        elif said.sign in ("<", "<="):
            place = replace(place, high=(said.values[0], said.sign == "<="))
    return place


def _values(says: list[Sought]) -> tuple[tuple[int, Bound], ...]:
    """Return what columns of a table are equal to, by element id; of one the first that is said."""
    told: dict[int, Bound] = {}
    for said in says:
        part = said.part
        if said.sign == "=" and isinstance(part, Field) and part.kind.name not in KEYED:
            told.setdefault(int(part.name.removeprefix("c")), said.values[0])
    return tuple(told.items())


def _by_index(table_id: int, access: Access) -> tuple[Place, ...]:
    equal = tuple(takewhile(_constant, access.equal))
    index_range = Place(table_id, access.index.element_id, equal)
    if len(equal) == len(access.equal):
        if access.items and len(access.items) <= LISTED_MAX and all(map(_constant, access.items)):
            return tuple(replace(index_range, prefix=(*equal, item)) for item in access.items)
        array = None if access.members is None else _array_of(access.members)
        if array is not None and access.members is not None:
            keyed = _keyed_type(access.members)
            return (replace(index_range, array=array, keyed=keyed),)
        low, high = (
            None if bound is None or not _constant(bound[0]) else bound[0]
            for bound in (access.low, access.high)
        )
        index_range = replace(index_range, low=low, high=high)
    return (index_range,) if index_range != Place(table_id, index_range.index_id, ()) else ()


def _keyed_type(query: BoundQuery) -> Type | None:
    kind = query.columns[0].kind
    return kind if kind.name in KEYED else None


def _best(source: TableSource, sought: list[Sought]) -> tuple[int, tuple[Bound, ...]] | None:
    """Return the id of the index, and the values of the first parts of its key, where those are all
    equal to something."""
    _, equal, _ = find_prefix(list(_key(source)), sought)
    access = source.access
    if access is not None and len(equal) < len(source.descriptor.primary_key):
        values = [s.values[0] for s in sought]
        by_index = tuple(takewhile(values.__contains__, access.equal))
        if by_index:
            return access.index.element_id, by_index
    best = 0, equal
    if access is None:
        for index, parts in _plain_indexes(source):
            _, said, _ = find_prefix(list(parts), sought)
            if len(said) > len(best[1]):
                best = index.element_id, said
    return best if best[1] else None


def _plain_indexes(source: TableSource) -> Iterator[tuple[Index, tuple[Field, ...]]]:
    """Give the indexes of all rows, over columns: what is sought in them is read there, whether or
    not the statement finds its rows so."""
    descriptor = source.descriptor
    for index in descriptor.indexes:
        if index.state in READABLE and not index.predicate and not index.expressions:
            parts = tuple(source.fields(index.columns))
            if not any(part.kind.name in WITHOUT_ENTRIES for part in parts):
                yield index, parts


def _key(source: TableSource) -> tuple[Field, ...]:
    """The first columns of its primary key, as far as what is compared tells what is stored."""
    told = takewhile(lambda f: f.kind.name not in KEYED or f.kind.scale is not None, source.key)
    return tuple(told)


def _scales(source: TableSource) -> Scales:
    kinds = [field.kind for field in _key(source)]
    return tuple(kind.scale if kind.name in KEYED else None for kind in kinds)


def _says(sought: Sought) -> bool:
    """Do constants alone say it?"""
    if sought.sign == "members":
        return sought.query is not None and _array_of(sought.query) is not None
    return len(sought.values) <= LISTED_MAX and all(map(_constant, sought.values))


def _array_of(query: BoundQuery) -> Bound | None:
    """The array whose elements the query of = ANY gives as they are."""
    body = query.body
    if not isinstance(body, BoundSelect) or not isinstance(body.source, ElementsSource):
        return None
    part = strip_plain(body.outputs[0])
    (array,) = body.source.arguments
    return array if isinstance(part, Field) and _constant(array) else None


def _constant(part: Bound) -> bool:
    """Return whether the value follows from constants and parameters."""
    if isinstance(part, Native):
        return part.word in ("same", "key") and _constant(part.arguments[0])
    if isinstance(part, Apply):
        return part.function.volatility == "immutable" and all(map(_constant, part.arguments))
    return isinstance(part, Value | Slot)


def _simple(part: Bound) -> bool:
    """Return whether it is computed of columns alone, the same whenever it is; a condition on an
    array is, too."""
    for node in walk(part):
        if isinstance(node, BoundQuery) and not (
            isinstance(part, Member) and node is part.query and _array_of(node) is not None
        ):
            return False
        if isinstance(node, Apply) and node.function.volatility == "volatile":
            return False
        if isinstance(node, Aggregate):  # of the query around
            return False
    return True


def _strict(part: Bound) -> bool:
    """Return whether it is NULL where a column in it is."""
    if isinstance(part, Native):
        return part.word in ("same", "key") and _strict(part.arguments[0])
    if isinstance(part, Apply):
        return part.function.strict and all(map(_strict, part.arguments))
    return isinstance(part, Field | Value | Slot)


def _known(part: Bound) -> bool:
    """Return whether it is a value of a row, and not of many."""
    return not any(isinstance(node, BoundQuery | Aggregate) for node in walk(part))


def _within(source: TableSource, tables: frozenset[int]) -> Access | None:
    """Return the access of a table, where that needs no other tables."""
    access = source.access
    arrays = {n.relation for n in walk(access) if isinstance(n, ElementsSource)} if access else ()
    return access if access and relations_in(access) <= tables | set(arrays) else None
