"""What a query says, as its text does: names not resolved, types unknown. `at`: characters from 1.

Made by `syntax/` from PostgreSQL's tree; read by the binder and, of expressions, by the compiler.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from leasehold.catalog.schema_names import PUBLIC


@dataclass(frozen=True, slots=True)
class Located:
    """A part of a text; `at` counts its characters from 1."""

    at: int


@dataclass(frozen=True, slots=True)
class Constant(Located):
    """A constant. `kind` is string, number, null, true or false."""

    kind: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Parameter(Located):
    number: int


@dataclass(frozen=True, slots=True)
class Name(Located):
    """A column, behind its table, or the schema of that and the table, or alone. `in_public`: the
    schema said is public, which is left out."""

    parts: tuple[str, ...]
    in_public: bool = False

    @property
    def said(self) -> tuple[str, ...]:
        """Return all parts of the name."""
        return (PUBLIC, *self.parts) if self.in_public else self.parts


@dataclass(frozen=True, slots=True)
class Star(Located):
    """All columns, or those of a table, which stands behind its schema or alone. `in_public`: as of
    `Name`."""

    table: tuple[str, ...] = ()
    in_public: bool = False


@dataclass(frozen=True, slots=True)
class DefaultWord(Located):
    """DEFAULT in the place of a value."""


@dataclass(frozen=True, slots=True)
class SortKey:
    """A key of ORDER BY. `nulls_first` None: first when descending."""

    node: Node
    descending: bool = False
    nulls_first: bool | None = None

    @property
    def first(self) -> bool:
        return self.descending if self.nulls_first is None else self.nulls_first


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound of a frame. `kind` is unbounded preceding, preceding, current row, following or
    unbounded following."""

    kind: str
    offset: Node | None = None


@dataclass(frozen=True, slots=True)
class Window(Located):
    """A window. `frame` is (ROWS, RANGE or GROUPS, start, end, exclusion); `base` names a
    WINDOW."""

    base: str = ""
    partition: tuple[Node, ...] = ()
    order: tuple[SortKey, ...] = ()
    frame: tuple[str, Bound, Bound, str] | None = None


EXPAND_ARRAY: Final = "_pg_expandarray"
"""The function of information_schema whose rows are records: an element, and its number."""
RECORD_FIELDS: Final = ("x", "n")
FIELD_OF: Final = "field of record."
"""(record).x is read as a call of this with the field's name behind it, which no text can name."""


@dataclass(frozen=True, slots=True)
class Call(Located):
    name: str
    arguments: tuple[Node, ...] = ()
    star: bool = False
    distinct: bool = False
    order: tuple[SortKey, ...] = ()
    filter: Node | None = None
    over: Window | None = None


@dataclass(frozen=True, slots=True)
class Unary(Located):
    sign: str
    operand: Node


@dataclass(frozen=True, slots=True)
class Binary(Located):
    sign: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Logic(Located):
    """A condition of AND, OR or NOT, as `word` says in lower case."""

    word: str
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Test(Located):
    """The test `operand` IS [NOT] `what`: null, true, false or unknown."""

    operand: Node
    what: str
    negated: bool


@dataclass(frozen=True, slots=True)
class Distinct(Located):
    left: Node
    right: Node
    negated: bool


@dataclass(frozen=True, slots=True)
class Between(Located):
    operand: Node
    low: Node
    high: Node
    negated: bool
    symmetric: bool


@dataclass(frozen=True, slots=True)
class InList(Located):
    operand: Node
    items: tuple[Node, ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class Quantified(Located):
    """The test `operand` `sign` ANY|ALL (query); IN is = ANY, NOT IN is <> ALL."""

    operand: Node
    sign: str
    every: bool
    query: Query


@dataclass(frozen=True, slots=True)
class OverArray(Located):
    """The test `operand` `sign` ANY|ALL (array)."""

    operand: Node
    sign: str
    every: bool
    array: Node


@dataclass(frozen=True, slots=True)
class ArrayOf(Located):
    """ARRAY[items]."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ArrayQuery(Located):
    """ARRAY(query)."""

    query: Query


@dataclass(frozen=True, slots=True)
class Subscript(Located):
    """array[index], or array[low:high] where it `is_slice`; None where a bound is left out."""

    array: Node
    low: Node | None
    high: Node | None
    is_slice: bool


@dataclass(frozen=True, slots=True)
class Like(Located):
    operand: Node
    pattern: Node
    escape: Node | None
    negated: bool
    insensitive: bool


@dataclass(frozen=True, slots=True)
class Case(Located):
    subject: Node | None
    branches: tuple[tuple[Node, Node], ...]
    default: Node | None


@dataclass(frozen=True, slots=True)
class TypeName(Located):
    name: str
    modifiers: tuple[int, ...] = ()
    array: bool = False


@dataclass(frozen=True, slots=True)
class Cast(Located):
    operand: Node
    target: TypeName


@dataclass(frozen=True, slots=True)
class Collated(Located):
    """COLLATE by the only collation there is."""

    operand: Node


@dataclass(frozen=True, slots=True)
class RowOf(Located):
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class SubQuery(Located):
    """A query as an operand: EXISTS (…) where it `exists`, else its one value."""

    query: Query
    exists: bool = False


@dataclass(frozen=True, slots=True)
class RowPart(Located):
    """A value of the only row of SET (a, b) = (query), by number from 0."""

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
    """A part of what is selected; `label` is "" where the text gives none."""

    node: Node
    label: str = ""


@dataclass(frozen=True, slots=True)
class TableName(Located):
    """A table in FROM; `schema` "" is by the search path. `renamed`: its alias is of the text, and
    no name with a schema means it."""

    name: str
    alias: str = ""
    columns: tuple[str, ...] = ()
    schema: str = ""
    renamed: bool = False

    @property
    def said(self) -> str:
        """Return what names with a schema call it, "" if none may."""
        return "" if self.renamed else self.name


@dataclass(frozen=True, slots=True)
class QuerySource(Located):
    query: Query
    alias: str
    columns: tuple[str, ...] = ()
    lateral: bool = False


@dataclass(frozen=True, slots=True)
class CallSource(Located):
    call: Call
    alias: str = ""
    columns: tuple[str, ...] = ()
    ordinality: bool = False


@dataclass(frozen=True, slots=True)
class Join(Located):
    """A join. `kind` is inner, left, right, full or cross; `listed`: it is said by a comma."""

    kind: str
    left: Source
    right: Source
    condition: Node | None = None
    using: tuple[str, ...] | None = None
    natural: bool = False
    alias: str = ""
    listed: bool = False


Source: TypeAlias = TableName | QuerySource | CallSource | Join


@dataclass(frozen=True, slots=True)
class Cte(Located):
    """A query of WITH, or a statement that writes, whose RETURNING is read by that name."""

    name: str
    columns: tuple[str, ...]
    query: Query | Write
    materialized: bool | None = None


@dataclass(frozen=True, slots=True)
class With(Located):
    recursive: bool
    ctes: tuple[Cte, ...]


@dataclass(frozen=True, slots=True)
class GroupingSets(Located):
    """Grouping sets. `kind` is rollup, cube, or sets (without items: the set of nothing)."""

    kind: str
    items: tuple[Node | GroupingSets, ...] = ()


@dataclass(frozen=True, slots=True)
class Select(Located):
    """SELECT. `distinct` is None, () for whole rows, else the expressions of DISTINCT ON.
    `sets_once`: of grouping sets that are equal one is meant."""

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
class Values(Located):
    rows: tuple[tuple[Node, ...], ...]


@dataclass(frozen=True, slots=True)
class SetOperation(Located):
    """A union, intersect or except, as `word` says; `every` is ALL."""

    word: str
    every: bool
    left: Query
    right: Query


SELECTV: Final = "SELECTV"


@dataclass(frozen=True, slots=True)
class Visits(Located):
    """SELECTV, or FOR UPDATE and its like: `words` of it; `of`: names in FROM, () = all. `claims`:
    rows are claimed, and of those that others have claimed it is said: skip (SKIP LOCKED) or nowait
    (an error); "" = nothing is claimed."""

    words: str
    of: tuple[str, ...] = ()
    claims: str = ""


@dataclass(frozen=True, slots=True)
class Query(Located):
    body: Select | Values | SetOperation
    order: tuple[SortKey, ...] = ()
    limit: Node | None = None
    offset: Node | None = None
    ctes: With | None = None
    visits: Visits | None = None


@dataclass(frozen=True, slots=True)
class Assignment(Located):
    column: str
    node: Node


@dataclass(frozen=True, slots=True)
class Conflict(Located):
    """The clause ON CONFLICT (`columns`) or ON CONSTRAINT `constraint`; `updates` () is DO
    NOTHING."""

    columns: tuple[str, ...]
    constraint: str
    updates: tuple[Assignment, ...]
    where: Node | None


@dataclass(frozen=True, slots=True)
class Insert(Located):
    """INSERT. `source` None is DEFAULT VALUES; `columns` None is all, in order. `overriding` is
    system, user, or "" for neither."""

    table: TableName
    columns: tuple[tuple[str, int], ...] | None
    source: Query | None
    conflict: Conflict | None = None
    returning: tuple[Target, ...] = ()
    ctes: With | None = None
    overriding: str = ""


@dataclass(frozen=True, slots=True)
class Update(Located):
    table: TableName
    assignments: tuple[Assignment, ...]
    source: Source | None
    where: Node | None
    returning: tuple[Target, ...] = ()
    ctes: With | None = None


@dataclass(frozen=True, slots=True)
class Delete(Located):
    table: TableName
    source: Source | None
    where: Node | None
    returning: tuple[Target, ...] = ()
    ctes: With | None = None


@dataclass(frozen=True, slots=True)
class MergeAction:
    """A WHEN of MERGE. `kind` is INSERT, UPDATE, DELETE or NOTHING; `matched`: for rows that have a
    match. `columns` and `overriding` are as of `Insert`; `values` None is DEFAULT VALUES."""

    kind: str
    matched: bool
    condition: Node | None
    assignments: tuple[Assignment, ...] = ()
    columns: tuple[tuple[str, int], ...] | None = None
    values: tuple[Node, ...] | None = None
    overriding: str = ""


@dataclass(frozen=True, slots=True)
class Merge(Located):
    table: TableName
    source: Source
    condition: Node
    actions: tuple[MergeAction, ...]
    ctes: With | None = None


@dataclass(frozen=True, slots=True)
class Explain(Located):
    """EXPLAIN. `reads`: not how rows are found, but which of them are verified where reads are.
    `as_json`: as one document."""

    statement: Statement
    reads: bool = False
    as_json: bool = False


Write: TypeAlias = Insert | Update | Delete | Merge
Statement: TypeAlias = Query | Write | Explain
