"""What a DDL statement asks for, names not yet resolved; made by `ddl/schema_statements.py`,
read by plans.

Expressions stay text here (the source's own words): `expression.py` compiles them against a
descriptor. `position` counts characters from 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from leasehold.catalog.elements import OnChange
from leasehold.catalog.sequence import Options, Owner
from leasehold.sql.syntax.object_statements import (
    EnumStatement,
    NamespaceStatement,
    OtherStatement,
    ViewStatement,
)
from leasehold.sql.syntax.roles.grant_statements import RoleStatement
from leasehold.values.enums import Enumeration
from leasehold.values.types import Type

# ------------------------------------------------------------------ parts


@dataclass(frozen=True, slots=True)
class UniqueDefinition:
    """UNIQUE [NULLS NOT DISTINCT] (a, b) [INCLUDE (c)]; `name` None: derived (`t_a_b_c_key`).
    `deferrable`: INITIALLY "immediate" or "deferred", "" = it is not."""

    columns: tuple[str, ...]
    name: str | None = None
    position: int = 1
    equal_nulls: bool = False
    included: tuple[str, ...] = ()
    deferrable: str = ""


@dataclass(frozen=True, slots=True)
class CheckDefinition:
    """CHECK (expression); `name` None: derived (`t_a_check`, `t_check`).

    `not_valid`: enforced on new writes only, until VALIDATE CONSTRAINT. `zone`, here and elsewhere:
    the time zone of the session that says it, "" = UTC.
    """

    expression: str
    name: str | None = None
    not_valid: bool = False
    position: int = 1
    zone: str = ""


@dataclass(frozen=True, slots=True)
class ForeignKeyDefinition:
    """FOREIGN KEY (columns) REFERENCES table [(parent_columns)]; () = its primary key. `full`:
    MATCH FULL. `delete_sets`: ON DELETE SET … (columns), () = all. `deferrable`: INITIALLY
    "immediate" or "deferred", "" = it is not."""

    columns: tuple[str, ...]
    table: str
    parent_columns: tuple[str, ...] = ()
    name: str | None = None
    not_valid: bool = False
    position: int = 1
    on_delete: OnChange = OnChange.NO_ACTION
    on_update: OnChange = OnChange.NO_ACTION
    full: bool = False
    delete_sets: tuple[str, ...] = ()
    deferrable: str = ""


@dataclass(frozen=True, slots=True)
class GeneratedDefinition:
    """GENERATED ALWAYS AS (expression) STORED; `position` is the expression's."""

    expression: str
    position: int = 1
    zone: str = ""


@dataclass(frozen=True, slots=True)
class NumberingDefinition:
    """A column that draws from a sequence: of its own (SERIAL, or GENERATED … AS IDENTITY, whose
    `identity` is "a" for ALWAYS and "d" for BY DEFAULT), or of that which is `named`."""

    identity: str = ""
    options: Options = Options()
    named: str = ""
    position: int = 1


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """A column of a table. `default` is a storage value, None = no constant default (DEFAULT NULL
    is no default), `default_text` how it was written (`Column`); `default_expression` is one that
    changes from call to call, "" = none.

    `unique` and `checks` are the column's own constraints, not yet those of its table.
    """

    name: str
    type: Type
    nullable: bool = True
    default: Any = None
    position: int = 1
    unique: UniqueDefinition | None = None
    checks: tuple[CheckDefinition, ...] = ()
    references: ForeignKeyDefinition | None = None
    default_expression: str = ""
    generated: GeneratedDefinition | None = None
    numbering: NumberingDefinition | None = None
    zone: str = ""
    default_text: str = ""


# ------------------------------------------------------------------ tables


@dataclass(frozen=True, slots=True)
class TableLike:
    """A clause LIKE `table`, behind `place` of the new table's own columns. `includes`: what is
    copied beside names, types and NOT NULL, in PostgreSQL's words: defaults, constraints, …."""

    table: str
    includes: frozenset[str]
    place: int
    position: int = 1


@dataclass(frozen=True, slots=True)
class CreateTable:
    """CREATE TABLE. `primary_key` has column names in key order, () = none; those columns are NOT
    NULL; `key_name` is what it is called, if that is said, `key_included` what it includes.
    `uniques` and `checks` hold those of the columns too, in the order in which they stand.
    `temporary`: it is the session's own;
    `on_commit`: what becomes of it then, drop, delete (its rows) or "" = nothing. `likes`: tables
    whose columns come beside its own."""

    name: str
    columns: tuple[ColumnDefinition, ...]
    primary_key: tuple[str, ...]
    if_not_exists: bool = False
    uniques: tuple[UniqueDefinition, ...] = ()
    checks: tuple[CheckDefinition, ...] = ()
    foreign_keys: tuple[ForeignKeyDefinition, ...] = ()
    key_name: str | None = None
    key_included: tuple[str, ...] = ()
    schema: str = ""
    temporary: bool = False
    on_commit: str = ""
    likes: tuple[TableLike, ...] = ()


@dataclass(frozen=True, slots=True)
class DropTable:
    """DROP TABLE. `cascade`: with the foreign keys of others that refer to it. `beside` are the
    tables that the same statement drops."""

    name: str
    if_exists: bool = False
    position: int = 1
    cascade: bool = False
    beside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TableNamed:
    name: str
    position: int = 1


@dataclass(frozen=True, slots=True)
class Truncate:
    """TRUNCATE. `restart`: RESTART IDENTITY. `cascade`: with all tables that refer to them."""

    tables: tuple[TableNamed, ...]
    restart: bool = False
    cascade: bool = False


# ------------------------------------------------------------------ indexes


@dataclass(frozen=True, slots=True)
class IndexExpression:
    """An expression of an index's key, with the parentheses that it was written in, or its
    predicate."""

    text: str
    position: int = field(default=1, compare=False)


class IndexOrder(NamedTuple):
    """What stands behind a key column of an index; `operators`: the operator class, "" = none."""

    operators: str = ""
    descending: bool = False
    nulls_first: bool | None = None
    position: int = 1


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """CREATE INDEX. `named` False: `name` was derived and may be numbered to make it free, as
    PostgreSQL does.

    `columns` are names, or expressions over the row; `included` is INCLUDE (…), `predicate` WHERE
    …. `positions` say where each of the columns, then each included one, stands. `parts_of_name` is
    what a derived name says of each of them. `orders`: of each of the columns, () = nothing.
    """

    name: str
    table: str
    columns: tuple[str | IndexExpression, ...]
    if_not_exists: bool = False
    named: bool = True
    unique: bool = False
    included: tuple[str, ...] = ()
    predicate: IndexExpression | None = None
    positions: tuple[int, ...] = field(default=(), compare=False)
    parts_of_name: tuple[str, ...] = field(default=(), compare=False)
    zone: str = ""
    orders: tuple[IndexOrder, ...] = ()
    equal_nulls: bool = False


@dataclass(frozen=True, slots=True)
class DropIndex:
    """DROP INDEX. `cascade`: with the foreign keys that refer to what it keeps unique."""

    name: str
    if_exists: bool = False
    position: int = 1
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class RenameIndex:
    """ALTER INDEX name RENAME TO to."""

    name: str
    to: str
    if_exists: bool = False
    position: int = 1


# ------------------------------------------------------------------ ALTER TABLE


@dataclass(frozen=True, slots=True)
class AddColumn:
    """ADD COLUMN. `key`: ADD COLUMN … PRIMARY KEY, None = it is not the key."""

    column: ColumnDefinition
    if_not_exists: bool = False
    key: AddPrimaryKey | None = None


@dataclass(frozen=True, slots=True)
class DropColumn:
    """DROP COLUMN. `cascade`: with the foreign keys that refer to it, and the columns that are
    computed from it."""

    name: str
    if_exists: bool = False
    position: int = 1
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class RenameColumn:
    name: str
    to: str
    position: int = 1


@dataclass(frozen=True, slots=True)
class RenameConstraint:
    name: str
    to: str
    position: int = 1


@dataclass(frozen=True, slots=True)
class RenameTable:
    to: str
    position: int = 1


@dataclass(frozen=True, slots=True)
class SetDefault:
    """ALTER COLUMN c SET DEFAULT. `value` is the expression's SQL text, converted to the column's
    type by the plan; None is DROP DEFAULT (SET DEFAULT NULL is the same). `lost`: it goes with the
    sequence that it draws from, of which the column keeps nothing. `keeps_text`: how a number is
    written is kept, too."""

    column: str
    value: str | None
    position: int = 1
    zone: str = ""
    lost: bool = False
    keeps_text: bool = True


@dataclass(frozen=True, slots=True)
class DropExpression:
    """ALTER COLUMN c DROP EXPRESSION: a generated column becomes a plain one."""

    column: str
    if_exists: bool = False
    position: int = 1


@dataclass(frozen=True, slots=True)
class AddIdentity:
    """ALTER COLUMN c ADD GENERATED … AS IDENTITY."""

    column: str
    numbering: NumberingDefinition
    position: int = 1


@dataclass(frozen=True, slots=True)
class SetIdentity:
    """ALTER COLUMN c SET GENERATED …; `identity`: "a" for ALWAYS, "d" for BY DEFAULT."""

    column: str
    identity: str
    position: int = 1


@dataclass(frozen=True, slots=True)
class RestartIdentity:
    """ALTER COLUMN c RESTART [WITH n]; `start` None: where it began."""

    column: str
    start: int | None = None
    position: int = 1


@dataclass(frozen=True, slots=True)
class AlterIdentity:
    """ALTER COLUMN c SET option …, RESTART among them: of its sequence. `identity`: as in
    `SetIdentity`; "": as it is."""

    column: str
    options: Options
    identity: str = ""
    position: int = 1


@dataclass(frozen=True, slots=True)
class DropIdentity:
    """ALTER COLUMN c DROP IDENTITY: a plain column, without a default; its sequence goes."""

    column: str
    if_exists: bool = False
    position: int = 1


@dataclass(frozen=True, slots=True)
class AlterType:
    """ALTER COLUMN c TYPE type [USING expression]; without USING the value is cast. `keeps_text`:
    how a number is shown that is its default is kept."""

    column: str
    type: Type
    using: str | None = None
    position: int = 1
    zone: str = ""
    keeps_text: bool = True


@dataclass(frozen=True, slots=True)
class SetEnum:
    """What ALTER TYPE of an enum type does to a column of it: no text says it of a table."""

    column: str
    enum: Enumeration


@dataclass(frozen=True, slots=True)
class SetNotNull:
    column: str
    position: int = 1


@dataclass(frozen=True, slots=True)
class DropNotNull:
    column: str
    position: int = 1


@dataclass(frozen=True, slots=True)
class AddUnique:
    unique: UniqueDefinition


@dataclass(frozen=True, slots=True)
class AddUniqueByIndex:
    """ADD [CONSTRAINT name] UNIQUE USING INDEX i: an index that is there becomes the constraint's,
    and has its name then. `deferrable`: INITIALLY "immediate" or "deferred", "" = it is not."""

    index: str
    name: str | None = None
    position: int = 1
    deferrable: str = ""


@dataclass(frozen=True, slots=True)
class AddCheck:
    check: CheckDefinition


@dataclass(frozen=True, slots=True)
class AddForeignKey:
    key: ForeignKeyDefinition


@dataclass(frozen=True, slots=True)
class AddPrimaryKey:
    """ADD [CONSTRAINT name] PRIMARY KEY (a, b) [INCLUDE (c)], beside DROP CONSTRAINT of the one
    there is. `index`: USING INDEX, in the place of columns."""

    columns: tuple[str, ...]
    position: int = 1
    name: str | None = None
    index: str = ""
    included: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ValidateConstraint:
    name: str
    position: int = 1


@dataclass(frozen=True, slots=True)
class AlterConstraint:
    """ALTER CONSTRAINT: when a foreign key is looked at. `deferrable`: INITIALLY "immediate" or
    "deferred", "" = it is not."""

    name: str
    deferrable: str = ""
    position: int = 1


@dataclass(frozen=True, slots=True)
class DropConstraint:
    """DROP CONSTRAINT. `cascade`: with the foreign keys that refer to what it keeps unique."""

    name: str
    if_exists: bool = False
    position: int = 1
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class AddLock:
    """ADD LOCK name COVERING (a, b): those columns get a lock of their own (Claim 8)."""

    name: str
    columns: tuple[str, ...]
    position: int = 1


@dataclass(frozen=True, slots=True)
class DropLock:
    """DROP LOCK name: its columns go back to the table's default lock."""

    name: str
    if_exists: bool = False
    position: int = 1


@dataclass(frozen=True, slots=True)
class HasNoEffect:
    """What has no work here, as `words` say. `column`, `index`: what it names, which has to be
    there; "" = nothing."""

    words: str
    column: str
    index: str
    position: int = 1


Action: TypeAlias = (
    AddColumn
    | HasNoEffect
    | DropColumn
    | RenameColumn
    | RenameConstraint
    | RenameTable
    | SetDefault
    | DropExpression
    | AddIdentity
    | SetIdentity
    | RestartIdentity
    | AlterIdentity
    | DropIdentity
    | AlterType
    | SetEnum
    | SetNotNull
    | DropNotNull
    | AddUnique
    | AddUniqueByIndex
    | AddCheck
    | AddForeignKey
    | AddPrimaryKey
    | ValidateConstraint
    | AlterConstraint
    | DropConstraint
    | AddLock
    | DropLock
)


@dataclass(frozen=True, slots=True)
class AlterTable:
    """ALTER TABLE with one or several actions, which share steps where the states allow it."""

    table: str
    actions: tuple[Action, ...]
    if_exists: bool = False
    position: int = 1


# ------------------------------------------------------------------ sequences


@dataclass(frozen=True, slots=True)
class CreateSequence:
    name: str
    options: Options
    if_not_exists: bool = False
    position: int = 1
    schema: str = ""


@dataclass(frozen=True, slots=True)
class DropSequence:
    """DROP SEQUENCE. `owned`: with the table that has it for its own. `cascade`: with the defaults
    that draw from it."""

    name: str
    if_exists: bool = False
    position: int = 1
    owned: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class RestartSequence:
    """ALTER SEQUENCE s RESTART [WITH n]; `start` None: where it began."""

    name: str
    start: int | None = None
    if_exists: bool = False
    position: int = 1


@dataclass(frozen=True, slots=True)
class OwnSequence:
    """ALTER SEQUENCE s OWNED BY …, also what CREATE SEQUENCE … OWNED BY says beside making it."""

    name: str
    owner: Owner
    if_exists: bool = False
    position: int = 1


@dataclass(frozen=True, slots=True)
class RenameSequence:
    """ALTER SEQUENCE name RENAME TO to."""

    name: str
    to: str
    if_exists: bool = False
    position: int = 1


@dataclass(frozen=True, slots=True)
class AlterSequence:
    """ALTER SEQUENCE s option …; RESTART alone: `RestartSequence`, OWNED BY: `OwnSequence`."""

    name: str
    options: Options
    if_exists: bool = False
    position: int = 1


@dataclass(frozen=True, slots=True)
class SetSchema:
    """ALTER TABLE or SEQUENCE name SET SCHEMA `to`, "" = public."""

    kind: Literal["table", "sequence"]
    name: str
    to: str
    if_exists: bool = False
    position: int = 1

    @property
    def tag(self) -> str:
        return f"ALTER {self.kind.upper()}"


SequenceStatement: TypeAlias = (
    CreateSequence | DropSequence | RestartSequence | OwnSequence | RenameSequence | AlterSequence
)


# ------------------------------------------------------------------ statements

Change: TypeAlias = (
    CreateTable
    | DropTable
    | Truncate
    | AlterTable
    | CreateIndex
    | DropIndex
    | RenameIndex
    | SetSchema
    | SequenceStatement
    | OtherStatement
    | ViewStatement
    | EnumStatement
    | NamespaceStatement
    | RoleStatement
)


@dataclass(frozen=True, slots=True)
class Explain:
    """EXPLAIN <change>: show the plan, change nothing."""

    change: Change


Statement: TypeAlias = Change | Explain
