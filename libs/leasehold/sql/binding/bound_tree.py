"""A query whose names are resolved and whose types are known: what is rewritten and emitted.

Expressions are compared by what they mean: two mentions of `t.a + 1` are equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Index
from leasehold.catalog.physical_names import column_name
from leasehold.sql.functions.aggregates import aggregates
from leasehold.sql.functions.function import BOOLEAN, Function
from leasehold.sql.system_catalog.relations import Relation
from leasehold.values.types import Type

OPEN: Final = Type("unknown")
"""Of a quoted constant, NULL or a parameter, until something says its type."""


@dataclass(frozen=True, slots=True)
class Value:
    """A constant. Of kind OPEN: a quoted one (`value` its text) or NULL."""

    kind: Type
    value: Any


@dataclass(frozen=True, slots=True)
class Slot:
    """A parameter of the statement, from 1."""

    number: int
    kind: Type


@dataclass(frozen=True, slots=True)
class Origin:
    """The plain column that a result is."""

    table_id: int
    element_id: int


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a relation: `c<element id>` of a table, `o<n>` of a query."""

    relation: int
    name: str
    kind: Type
    nullable: bool = field(default=True, compare=False)
    origin: Origin | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Apply:
    """A function of the catalogue over arguments that have its types."""

    function: Function
    arguments: tuple[Bound, ...]
    kind: Type


@dataclass(frozen=True, slots=True)
class Native:
    """What SQLite does as PostgreSQL would. `word`: one of those that `emit.py` knows."""

    word: str
    arguments: tuple[Bound, ...]
    kind: Type


@dataclass(frozen=True, slots=True)
class Output:
    """A key of an order that is the result's column of that number, from 0."""

    number: int
    kind: Type


@dataclass(frozen=True, slots=True)
class CurrentTime:
    """now() and its like, in µs: the same through a whole transaction."""

    kind: Type


@dataclass(frozen=True, slots=True)
class Key:
    """A key of an order. `nulls_first` is always said."""

    value: Bound
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class Frame:
    unit: str
    start: str
    start_offset: Bound | None
    end: str
    end_offset: Bound | None
    exclusion: str


@dataclass(frozen=True, slots=True)
class Over:
    partition: tuple[Bound, ...]
    order: tuple[Key, ...]
    frame: Frame | None


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A call of an aggregate or a window function. `name` is SQLite's, "" where `function` computes
    it."""

    name: str
    arguments: tuple[Bound, ...]
    kind: Type
    distinct: bool = False
    order: tuple[Key, ...] = ()
    condition: Bound | None = None
    over: Over | None = None
    function: aggregates.Aggregate | None = None


@dataclass(frozen=True, slots=True)
class Grouping:
    """GROUPING(…): which of these the row's grouping set has not, a bit for each, the last one's is
    1. It stands in no query that is emitted: `grouping_sets.py` knows it of each set."""

    arguments: tuple[Bound, ...]
    kind: Type


@dataclass(frozen=True, slots=True)
class Scalar:
    """The one value of a query; more than one row is 21000. `single`: it can't have more."""

    query: BoundQuery
    kind: Type
    single: bool


@dataclass(frozen=True, slots=True)
class Exists:
    query: BoundQuery
    kind: Type


@dataclass(frozen=True, slots=True)
class Member:
    """A test by IN: whether the `operands` are equal to those of a row of `query`; `negated` is NOT
    IN."""

    operands: tuple[Bound, ...]
    query: BoundQuery
    negated: bool
    kind: Type


@dataclass(frozen=True, slots=True)
class Compared:
    """A test by ANY or ALL (`every`): whether `test` is true for some row of `query`, or for every
    one, with NULL's logic. `test` is over the fields of relation `relation`, which the query is."""

    test: Bound
    query: BoundQuery
    relation: int
    every: bool
    kind: Type


Bound: TypeAlias = (
    Value
    | Slot
    | Field
    | Apply
    | Native
    | CurrentTime
    | Aggregate
    | Grouping
    | Scalar
    | Exists
    | Member
    | Compared
    | Output
)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a result."""

    name: str
    kind: Type
    origin: Origin | None = None
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Access:
    """How the rows of a table are found by an index.

    `equal`: values of the first parts of its key; `low` and `high` (value, inclusive) bound the
    next part; `items`: the next part is one of these, `members`: one of an array's elements, which
    the query gives. `order`: it is walked in the order that is
    asked for. `covering`: the table's rows themselves aren't needed.
    `equal_nulls`: one of `equal` may be NULL, and finds the entries of NULLs then.
    """

    index: Index
    equal: tuple[Bound, ...] = ()
    low: tuple[Bound, bool] | None = None
    high: tuple[Bound, bool] | None = None
    items: tuple[Bound, ...] = ()
    members: BoundQuery | None = None
    order: bool = False
    covering: bool = False
    equal_nulls: bool = False


@dataclass(frozen=True, slots=True)
class TableSource:
    relation: int
    descriptor: Descriptor
    alias: str
    access: Access | None = None

    def fields(self, elements: Iterable[int]) -> list[Field]:
        """Return the columns of these element ids."""
        by_id = self.descriptor.by_id
        return [Field(self.relation, column_name(e), by_id[e].type) for e in elements]

    @property
    def key(self) -> list[Field]:
        """Return the columns of the primary key."""
        return self.fields(self.descriptor.primary_key)


@dataclass(frozen=True, slots=True)
class SystemSource:
    """A system relation, whose fields are c0, c1 …."""

    relation: int
    system: Relation


@dataclass(frozen=True, slots=True)
class SubSource:
    """A query in FROM. `lateral`: it uses columns of the tables before it. `barrier`: conditions
    beside it are computed of the rows that it gives alone."""

    relation: int
    query: BoundQuery
    lateral: bool = False
    barrier: bool = False


@dataclass(frozen=True, slots=True)
class CteSource:
    relation: int
    cte: int
    width: int


@dataclass(frozen=True, slots=True)
class SeriesSource:
    """generate_series(start, stop, step) over integers: `value` and `ordinality`."""

    relation: int
    arguments: tuple[Bound, ...]


@dataclass(frozen=True, slots=True)
class ElementsSource:
    """The elements of arrays side by side, `v0`, `v1` …, NULL where one has ended; `ordinality`
    counts from 1. `members`: of one array, and for a NULL one the single element NULL."""

    relation: int
    arguments: tuple[Bound, ...]
    members: bool = False


@dataclass(frozen=True, slots=True)
class JoinSource:
    kind: str
    left: BoundSource
    right: BoundSource
    condition: Bound | None


BoundSource: TypeAlias = (
    TableSource | SystemSource | SubSource | CteSource | SeriesSource | ElementsSource | JoinSource
)


@dataclass(frozen=True, slots=True)
class BoundSelect:
    """A SELECT whose `outputs` are o0, o1 …. `aggregated` says that there is one row per group,
    without `group` one row at all."""

    outputs: tuple[Bound, ...]
    source: BoundSource | None = None
    where: Bound | None = None
    group: tuple[Bound, ...] = ()
    aggregated: bool = False
    having: Bound | None = None
    distinct: tuple[Bound, ...] | None = None


@dataclass(frozen=True, slots=True)
class BoundValues:
    rows: tuple[tuple[Bound, ...], ...]


@dataclass(frozen=True, slots=True)
class BoundSet:
    word: str
    every: bool
    left: BoundQuery
    right: BoundQuery


@dataclass(frozen=True, slots=True)
class BoundCte:
    number: int
    query: BoundQuery
    recursive: bool
    materialized: bool | None


@dataclass(frozen=True, slots=True)
class BoundQuery:
    columns: tuple[Column, ...]
    body: BoundSelect | BoundValues | BoundSet
    order: tuple[Key, ...] = ()
    limit: Bound | None = None
    offset: Bound | None = None
    ctes: tuple[BoundCte, ...] = ()
    correlated: bool = False


def join_parts(word: str, parts: Sequence[Bound]) -> Bound:
    """Return the parts joined by `word`, and or or; a single part as it is."""
    return parts[0] if len(parts) == 1 else Native(word, tuple(parts), BOOLEAN)
