"""The reads of a statement: places in tables and indexes, keys that rows name, all in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.part import KeyRange, next_value
from leasehold.model.errors import Refused
from leasehold.model.keys import Key
from leasehold.sql.binding.bound_tree import (
    Apply,
    Bound,
    BoundQuery,
    Native,
    Slot,
    Value,
)
from leasehold.sql.planning.emit import emit
from leasehold.sql.planning.emitted import Beside, Emitted
from leasehold.values.arrays import elements_of
from leasehold.values.numeric import with_scale
from leasehold.values.types import Type, sort_key_of, words_of

READS_NOTHING: Final = "Reads no table"
LISTED_MAX: Final = 100
"""Values of an IN or an array that are places of their own; of more the list tells nothing."""


class Read(NamedTuple):
    """Keys of table `table_id` that begin with `prefix` and, in the part behind it, lie in
    low … high (None: no bound; both ends belong to it): of the primary key (`index_id` 0) or of an
    index. () without bounds: the whole table. Values are storage values; of an index over numeric
    what its entries hold."""

    table_id: int
    index_id: int
    prefix: Key
    low: Any = None
    high: Any = None


Scales: TypeAlias = tuple[int | None, ...]
"""Of the parts of a primary key that are numeric(p, s): what is compared is a key there, behind
which the scale stands in the store (`values/numeric.py`)."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place that is read: a prefix of a key with bounds behind it. Each element of `array` stands
    behind `prefix`; `keyed`: their
    type, where entries hold a key of each."""

    table_id: int
    index_id: int
    prefix: tuple[Bound, ...]
    low: Bound | None = None
    high: Bound | None = None
    array: Bound | None = None
    keyed: Type | None = None
    scales: Scales = ()

    def reads(self, parameters: Sequence[Any]) -> Iterator[Read]:
        """Raises what its expressions raise."""
        scales = self.scales
        before = as_stored(tuple(_computed(part, parameters) for part in self.prefix), scales)
        behind = scales[len(before) :]
        if self.array is None:
            low, high = (
                None if b is None else as_stored((_computed(b, parameters),), behind)[0]
                for b in (self.low, self.high)
            )
            yield Read(self.table_id, self.index_id, before, low, high)
            return
        stored = _computed(self.array, parameters)
        elements = [] if stored is None else elements_of(stored)
        if len(elements) > LISTED_MAX:
            yield Read(self.table_id, self.index_id, before)
            return
        for element in elements:
            if element is not None:
                value = element if self.keyed is None else _key(self.keyed, element)
                last = as_stored((value,), behind)
                yield Read(self.table_id, self.index_id, before + last)


@dataclass(frozen=True, slots=True)
class KeyPlace:
    """What conditions say of the first column of a table's primary key: that it is one of `values`,
    or lies between bounds, each with whether it belongs there itself. Nothing: the whole table.
    `equal`: what they say that other columns are equal to, by element id."""

    table_id: int
    values: tuple[Bound, ...] = ()
    low: tuple[Bound, bool] | None = None
    high: tuple[Bound, bool] | None = None
    equal: tuple[tuple[int, Bound], ...] = ()

    def parts(self) -> Iterator[Bound]:
        """Yield the expressions in it."""
        yield from self.values
        yield from (bound[0] for bound in (self.low, self.high) if bound is not None)
        yield from (value for _, value in self.equal)

    def column_values(self, parameters: Sequence[Any]) -> dict[int, Any]:
        """Return by element id what rows have that it is about. Raises what its expressions
        raise."""
        return {element: _computed(value, parameters) for element, value in self.equal}

    def ranges(self, parameters: Sequence[Any]) -> Iterator[KeyRange]:
        """Yield the ranges in which all rows are that it is about; a NULL is in none. Raises what
        its expressions raise."""
        for part in self.values:
            value = _computed(part, parameters)
            if value is not None:
                yield KeyRange(value, next_value(value))
        if self.values:
            return
        low, high = None, None
        if self.low is not None:
            low = _computed(self.low[0], parameters)
            if low is None:
                return  # nothing compares with NULL
            low = low if self.low[1] else next_value(low)
        if self.high is not None:
            high = _computed(self.high[0], parameters)
            if high is None:
                return
            high = next_value(high) if self.high[1] else high
        yield KeyRange(low, high)


def as_stored(key: Key, scales: Scales) -> Key:
    """Values as they are compared → as the store has them."""
    return tuple(
        value
        if value is None or position >= len(scales) or scales[position] is None
        else with_scale(value, scales[position] or 0)
        for position, value in enumerate(key)
    )


class Lookup:
    """Keys of a table that `query` gives: of the primary key (`index_id` 0), or beginnings of an
    index's."""

    def __init__(
        self, table_id: int, index_id: int, query: BoundQuery, by: str, scales: Scales
    ) -> None:
        """Take the keys that `query` gives; `by` names the tables whose rows say them."""
        self.table_id = table_id
        self.index_id = index_id
        self.by = by
        self.scales = scales
        self.query = query
        self._emitted: Emitted | None = None

    def emit(self, parameters: int, beside: Beside) -> Emitted:
        """Return the query's text with the statement's parameters and rows: made when a level asks
        for it."""
        if self._emitted is None:
            self._emitted = emit(self.query, parameters, beside)
        return self._emitted


@dataclass(frozen=True, slots=True)
class Reads:
    """What a statement reads. `keyed` says of each mention of a table where in its primary key the
    rows are that count, by whatever they are found: for who has not all of them."""

    places: tuple[Place, ...]
    lookups: tuple[Lookup, ...] = ()
    keyed: tuple[KeyPlace, ...] = ()

    def of(self, parameters: Sequence[Any]) -> frozenset[Read]:
        """Return what is read with the statement's parameters, storage values; without what is
        looked up."""
        found: set[Read] = set()
        for position in self.places:
            try:
                found.update(position.reads(parameters))
            except Refused:  # the statement itself will say so, or does not come to it
                found.add(Read(position.table_id, 0, ()))
        return frozenset(found)

    @property
    def table_ids(self) -> frozenset[int]:
        looked_up = frozenset(lookup.table_id for lookup in self.lookups)
        return looked_up.union(position.table_id for position in self.places)

    def is_row(self, table_id: int, key_columns: int) -> bool:
        """Return whether a row of that table, by its whole primary key, is all that is read."""
        return not self.lookups and [
            (p.table_id, p.index_id, len(p.prefix), p.low, p.high, p.array) for p in self.places
        ] == [(table_id, 0, key_columns, None, None, None)]


def _key(kind: Type, value: Any) -> Any:
    key = sort_key_of(kind)
    return value if key is None else key(value)


def _computed(part: Bound, parameters: Sequence[Any]) -> Any:
    """Return the value of what is constant. Raises what functions raise."""
    match part:
        case Value():
            return part.value
        case Slot():
            return parameters[part.number - 1]
        case Native():
            value = _computed(part.arguments[0], parameters)
            keyed = part.word == "key" and value is not None
            return _key(part.kind, value) if keyed else value
        case Apply():
            values = [_computed(argument, parameters) for argument in part.arguments]
            if part.function.strict and None in values:
                return None
            return part.function.in_queries(*values)
    raise AssertionError(part)


def describe_reads(
    reads: Reads, tables: Iterable[Descriptor], parameters: Sequence[Any]
) -> list[str]:
    """Return what is read as EXPLAIN (READS) shows it: one line for each place."""
    by_id = {descriptor.table_id: descriptor for descriptor in tables}
    lines = [_words(read, by_id) for read in reads.of(parameters)]
    for lookup in reads.lookups:
        descriptor = by_id[lookup.table_id]
        by = _by(descriptor, lookup.index_id)
        lines.append(f"Reads {descriptor.name} by {by}: the keys that rows of {lookup.by} say")
    return sorted(lines) or [READS_NOTHING]


def _by(descriptor: Descriptor, index_id: int) -> str:
    found = next((i for i in descriptor.indexes if i.element_id == index_id), None)
    return "primary key" if found is None else f"index {found.name}"


def _words(read: Read, tables: Mapping[int, Descriptor]) -> str:
    descriptor = tables[read.table_id]
    if read == Read(read.table_id, read.index_id, ()):
        return f"Reads {descriptor.name} whole"
    index = next((i for i in descriptor.indexes if i.element_id == read.index_id), None)
    elements = descriptor.primary_key if index is None else index.columns

    def shown(position: int, value: Any) -> str:
        column = descriptor.by_id.get(elements[position])
        return repr(value)[:80] if column is None else words_of(column.type, value)

    at = len(read.prefix)
    parts = [f"= ({', '.join(shown(n, v) for n, v in enumerate(read.prefix))})"] if at else []
    parts += [f">= {shown(at, read.low)}"] if read.low is not None else []
    parts += [f"<= {shown(at, read.high)}"] if read.high is not None else []
    return f"Reads {descriptor.name} by {_by(descriptor, read.index_id)}: {', '.join(parts)}"
