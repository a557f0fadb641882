"""Statements about schemas, views, enum types and comments, and about kinds of objects of which
there are none here; names not yet resolved.

`position` counts characters from 1; `tag` is what a client is told of the statement at its end.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, NamedTuple, TypeAlias

from leasehold.sql.syntax.roles.role_statements import RoleNamed


class ObjectKind(StrEnum):
    """Kinds of objects, in PostgreSQL's words."""

    VIEW = "view"
    MATERIALIZED_VIEW = "materialized view"
    FOREIGN_TABLE = "foreign table"
    TYPE = "type"
    COLLATION = "collation"
    STATISTICS = "statistics object"
    FUNCTION = "function"
    PROCEDURE = "procedure"
    ROUTINE = "routine"
    AGGREGATE = "aggregate"
    TRIGGER = "trigger"
    RULE = "rule"
    POLICY = "policy"
    EXTENSION = "extension"
    SCHEMA = "schema"
    TABLE = "table"
    COLUMN = "column"
    INDEX = "index"
    SEQUENCE = "sequence"
    CONSTRAINT = "constraint"
    DATABASE = "database"
    ROLE = "role"


class ObjectName(NamedTuple):
    """The name of an object. `relation`: the one that a column, a constraint or a trigger belongs
    to. `schema`: one that is said, other than public."""

    name: str
    relation: str = ""
    schema: str = ""


@dataclass(frozen=True, slots=True)
class DropAbsent:
    """DROP of an object of a kind of which there is none. `tag`: the command's."""

    kind: ObjectKind
    named: ObjectName
    if_exists: bool
    position: int
    tag: str


@dataclass(frozen=True, slots=True)
class Comment:
    """COMMENT ON an object. `text` None: IS NULL."""

    kind: ObjectKind
    named: ObjectName
    position: int = 1
    text: str | None = None


@dataclass(frozen=True, slots=True)
class CreateNamespace:
    """CREATE SCHEMA. `owner`: AUTHORIZATION, None = the one who says it."""

    name: str
    if_not_exists: bool = False
    position: int = 1
    owner: RoleNamed | None = None

    tag: ClassVar[str] = "CREATE SCHEMA"


@dataclass(frozen=True, slots=True)
class DropNamespace:
    """DROP SCHEMA."""

    name: str
    if_exists: bool = False
    position: int = 1
    cascade: bool = False

    tag: ClassVar[str] = "DROP SCHEMA"


@dataclass(frozen=True, slots=True)
class RenameNamespace:
    """ALTER SCHEMA … RENAME TO."""

    name: str
    to: str
    position: int = 1

    tag: ClassVar[str] = "ALTER SCHEMA"


NamespaceStatement: TypeAlias = CreateNamespace | DropNamespace | RenameNamespace


@dataclass(frozen=True, slots=True)
class MakeBuiltIn:
    """CREATE EXTENSION, which there is or is not, whatever is said."""

    kind: ObjectKind
    name: str
    if_not_exists: bool = False
    position: int = 1


@dataclass(frozen=True, slots=True)
class CreateView:
    """CREATE [OR REPLACE] VIEW name [(columns)] AS `text`, which begins behind `before` characters
    of the statement's own text. `schema`: in which it lies, "" = public; `options`: what WITH (…)
    says."""

    name: str
    columns: tuple[str, ...]
    text: str
    replace: bool = False
    position: int = 1
    before: int = 0
    schema: str = ""
    options: tuple[str, ...] = ()

    tag: ClassVar[str] = "CREATE VIEW"


@dataclass(frozen=True, slots=True)
class DropView:
    """DROP VIEW. `beside`: the others of the same statement."""

    name: str
    if_exists: bool = False
    position: int = 1
    cascade: bool = False
    beside: tuple[str, ...] = ()

    tag: ClassVar[str] = "DROP VIEW"


@dataclass(frozen=True, slots=True)
class RenameView:
    """ALTER VIEW … RENAME TO."""

    name: str
    to: str
    if_exists: bool = False
    position: int = 1

    tag: ClassVar[str] = "ALTER VIEW"


@dataclass(frozen=True, slots=True)
class RenameViewColumn:
    """ALTER VIEW … RENAME COLUMN `column` TO `to`."""

    name: str
    column: str
    to: str
    if_exists: bool = False
    position: int = 1

    tag: ClassVar[str] = "ALTER VIEW"


@dataclass(frozen=True, slots=True)
class SetViewOptions:
    """ALTER VIEW … SET (…), or RESET (…) of the `reset` ones."""

    name: str
    options: tuple[str, ...]
    reset: tuple[str, ...] = ()
    if_exists: bool = False
    position: int = 1

    tag: ClassVar[str] = "ALTER VIEW"


ViewStatement: TypeAlias = CreateView | DropView | RenameView | RenameViewColumn | SetViewOptions


@dataclass(frozen=True, slots=True)
class CreateEnum:
    """CREATE TYPE … AS ENUM. `type_id`: what it gets; 0 where nobody has looked. `schema`: in which
    it lies, "" = public."""

    name: str
    labels: tuple[str, ...]
    type_id: int = 0
    position: int = 1
    schema: str = ""

    tag: ClassVar[str] = "CREATE TYPE"


@dataclass(frozen=True, slots=True)
class AddLabel:
    """ALTER TYPE … ADD VALUE. `beside`: behind that label, or `before` it; "" = at the end."""

    name: str
    label: str
    beside: str = ""
    before: bool = False
    if_not_exists: bool = False
    position: int = 1

    tag: ClassVar[str] = "ALTER TYPE"


@dataclass(frozen=True, slots=True)
class RenameLabel:
    """ALTER TYPE … RENAME VALUE."""

    name: str
    label: str
    to: str
    position: int = 1

    tag: ClassVar[str] = "ALTER TYPE"


@dataclass(frozen=True, slots=True)
class RenameEnum:
    """ALTER TYPE … RENAME TO, and SET SCHEMA. `schema`: in which it lies then, "" = public."""

    name: str
    to: str
    position: int = 1
    schema: str = ""

    tag: ClassVar[str] = "ALTER TYPE"


@dataclass(frozen=True, slots=True)
class DropEnum:
    """DROP TYPE. `cascade`: with the columns of the type."""

    name: str
    if_exists: bool = False
    position: int = 1
    cascade: bool = False

    tag: ClassVar[str] = "DROP TYPE"


EnumStatement: TypeAlias = CreateEnum | AddLabel | RenameLabel | RenameEnum | DropEnum
OtherStatement: TypeAlias = DropAbsent | Comment | MakeBuiltIn
