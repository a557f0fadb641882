"""What a query says, as its text does: names not resolved, types unknown. `at`: characters from 1.

Made by `syntax/` from PostgreSQL's tree; read by the binder and, of expressions, by the compiler.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias


@dataclass(frozen=True, slots=True)
class Constant:
    """`kind`: string, number, null, true, false."""

    at: int
    kind: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Parameter:
    at: int
    number: int


@dataclass(frozen=True, slots=True)
class Name:
    at: int
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Star:
    at: int
    table: str = ""


@dataclass(frozen=True, slots=True)
class DefaultWord:
    at: int


@dataclass(frozen=True, slots=True)
class SortKey:
    """`nulls_first` None: first when descending."""

    node: Node
    descending: bool = False
    nulls_first: bool | None = None

    @property
    def first(self) -> bool:
        return self.descending if self.nulls_first is None else self.nulls_first


@dataclass(frozen=True, slots=True)
class Bound:
    """Of a frame. `kind`: unbounded preceding, preceding, current row, following, unbounded
    following."""

    kind: str
    offset: Node | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """`frame`: (ROWS, RANGE or GROUPS, start, end, exclusion); `base` names a WINDOW."""

    at: int
    base: str = ""
    partition: tuple[Node, ...] = ()
    order: tuple[SortKey, ...] = ()
    frame: tuple[str, Bound, Bound, str] | None = None


@dataclass(frozen=True, slots=True)
class Call:
    at: int
    name: str
    arguments: tuple[Node, ...] = ()
    star: bool = False
    distinct: bool = False
    order: tuple[SortKey, ...] = ()
    filter: Node | None = None
    over: Window | None = None


@dataclass(frozen=True, slots=True)
class Unary:
    at: int
    sign: str
    operand: Node


@dataclass(frozen=True, slots=True)
class Binary:
    at: int
    sign: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Logic:
    """`word`: and, or, not."""

    at: int
    word: str
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Test:
    """`operand` IS [NOT] `what`: null, true, false, unknown."""

    at: int
    operand: Node
    what: str
    negated: bool


@dataclass(frozen=True, slots=True)
class Distinct:
    at: int
    left: Node
    right: Node
    negated: bool


@dataclass(frozen=True, slots=True)
class Between:
    at: int
    operand: Node
    low: Node
    high: Node
    negated: bool
    symmetric: bool


@dataclass(frozen=True, slots=True)
class InList:
    at: int
    operand: Node
    items: tuple[Node, ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class Quantified:
    """`operand` `sign` ANY|ALL (query); IN is = ANY, NOT IN is <> ALL."""

    at: int
    operand: Node
    sign: str
    every: bool
    query: Query


@dataclass(frozen=True, slots=True)
class OverArray:
    """`operand` `sign` ANY|ALL (array)."""

    at: int
    operand: Node
    sign: str
    every: bool
    array: Node


@dataclass(frozen=True, slots=True)
class ArrayOf:
    """ARRAY[items]."""

    at: int
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ArrayQuery:
    """ARRAY(query)."""

    at: int
    query: Query


@dataclass(frozen=True, slots=True)
class Subscript:
    """array[index], or array[low:high] where it `is_slice`; None where a bound is left out."""

    at: int
    array: Node
    low: Node | None
    high: Node | None
    is_slice: bool


@dataclass(frozen=True, slots=True)
class Like:
    at: int
    operand: Node
    pattern: Node
    escape: Node | None
    negated: bool
    insensitive: bool


@dataclass(frozen=True, slots=True)
class Case:
    at: int
    subject: Node | None
    branches: tuple[tuple[Node, Node], ...]
    default: Node | None


@dataclass(frozen=True, slots=True)
class TypeName:
    at: int
    name: str
    modifiers: tuple[int, ...] = ()
    array: bool = False


@dataclass(frozen=True, slots=True)
class Cast:
    at: int
    operand: Node
    target: TypeName


@dataclass(frozen=True, slots=True)
class Collated:
    """COLLATE by the only collation there is."""

    at: int
    operand: Node


@dataclass(frozen=True, slots=True)
class RowOf:
    at: int
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class SubQuery:
    """`exists`: EXISTS (…), else its one value."""

    at: int
    query: Query
    exists: bool = False


@dataclass(frozen=True, slots=True)
class RowPart:
    """Of SET (a, b) = (query): a value of its only row, by number from 0."""

    at: int
    query: Query
    number: int
    width: int


Node: TypeAlias = (
    Constant
    | Parameter
    | Name
    | Star
    | DefaultWord
    | Call
    | Unary
    | Binary
    | Logic
    | Test
    | Distinct
    | Between
    | InList
    | Quantified
    | OverArray
    | ArrayOf
    | ArrayQuery
    | Subscript
    | Like
    | Case
    | Cast
    | Collated
    | RowOf
    | RowPart
    | SubQuery
)


@dataclass(frozen=True, slots=True)
class Target:
    """One of what is selected; `label` "" where the text gives none."""

    node: Node
    label: str = ""


@dataclass(frozen=True, slots=True)
class TableName:
    """`schema` "": by the search path."""

    at: int
    name: str
    alias: str = ""
    columns: tuple[str, ...] = ()
    schema: str = ""


@dataclass(frozen=True, slots=True)
class QuerySource:
    at: int
    query: Query
    alias: str
    columns: tuple[str, ...] = ()
    lateral: bool = False


@dataclass(frozen=True, slots=True)
class CallSource:
    at: int
    call: Call
    alias: str = ""
    columns: tuple[str, ...] = ()
    ordinality: bool = False


@dataclass(frozen=True, slots=True)
class Join:
    """`kind`: inner, left, right, full, cross."""

    at: int
    kind: str
    left: Source
    right: Source
    condition: Node | None = None
    using: tuple[str, ...] | None = None
    natural: bool = False
    alias: str = ""


Source: TypeAlias = TableName | QuerySource | CallSource | Join


@dataclass(frozen=True, slots=True)
class Cte:
    at: int
    name: str
    columns: tuple[str, ...]
    query: Query
    materialized: bool | None = None


@dataclass(frozen=True, slots=True)
class With:
    at: int
    recursive: bool
    ctes: tuple[Cte, ...]


@dataclass(frozen=True, slots=True)
class GroupingSets:
    """`kind`: rollup, cube, or sets (without items: the set of nothing)."""

    at: int
    kind: str
    items: tuple[Node | GroupingSets, ...] = ()


@dataclass(frozen=True, slots=True)
class Select:
    """`distinct`: None, () = whole rows, else the expressions of DISTINCT ON. `sets_once`: of
    grouping sets that are equal one is meant."""

    at: int
    targets: tuple[Target, ...]
    source: Source | None = None
    where: Node | None = None
    group: tuple[Node | GroupingSets, ...] = ()
    grouped: bool = False
    having: Node | None = None
    distinct: tuple[Node, ...] | None = None
    windows: tuple[tuple[str, Window], ...] = ()
    sets_once: bool = False


@dataclass(frozen=True, slots=True)
class Values:
    at: int
    rows: tuple[tuple[Node, ...], ...]


@dataclass(frozen=True, slots=True)
class SetOperation:
    """`word`: union, intersect, except."""

    at: int
    word: str
    every: bool
    left: Query
    right: Query


SELECTV: Final = "SELECTV"


@dataclass(frozen=True, slots=True)
class Visits:
    """SELECTV, or FOR UPDATE and its like: `words` of it; `of`: names in FROM, () = all."""

    at: int
    words: str
    of: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    at: int
    body: Select | Values | SetOperation
    order: tuple[SortKey, ...] = ()
    limit: Node | None = None
    offset: Node | None = None
    ctes: With | None = None
    visits: Visits | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    at: int
    column: str
    node: Node


@dataclass(frozen=True, slots=True)
class Conflict:
    """ON CONFLICT (`columns`) or ON CONSTRAINT `constraint`; `updates` () = DO NOTHING."""

    at: int
    columns: tuple[str, ...]
    constraint: str
    updates: tuple[Assignment, ...]
    where: Node | None


@dataclass(frozen=True, slots=True)
class Insert:
    """`source` None: DEFAULT VALUES. `columns` None: all, in order. `overriding`: system, user, or
    "" for neither."""

    at: int
    table: TableName
    columns: tuple[tuple[str, int], ...] | None
    source: Query | None
    conflict: Conflict | None = None
    returning: tuple[Target, ...] = ()
    ctes: With | None = None
    overriding: str = ""


@dataclass(frozen=True, slots=True)
class Update:
    at: int
    table: TableName
    assignments: tuple[Assignment, ...]
    source: Source | None
    where: Node | None
    returning: tuple[Target, ...] = ()
    ctes: With | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    at: int
    table: TableName
    source: Source | None
    where: Node | None
    returning: tuple[Target, ...] = ()
    ctes: With | None = None


@dataclass(frozen=True, slots=True)
class Explain:
    """`reads`: not how rows are found, but which of them are verified where reads are."""

    at: int
    statement: Statement
    reads: bool = False


Statement: TypeAlias = Query | Insert | Update | Delete | Explain
