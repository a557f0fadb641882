"""ALTER TABLE [IF EXISTS] [ONLY] t action, …"""

from __future__ import annotations

from typing import Final

from leasehold.catalog.descriptor import COLUMNS_MAX
from leasehold.model.errors import FeatureNotSupported, OutOfRange, Refused, SyntaxInvalid
from leasehold.sql.ddl_column import (
    TYPE_WORDS,
    column_definition,
    column_type,
    drawn_from,
    identity,
)
from leasehold.sql.ddl_constraint import (
    KeyDefinition,
    at_constraint,
    distinct_columns,
    kept_text,
    table_constraint,
)
from leasehold.sql.ddl_sequence import identity_options
from leasehold.sql.expressions.default import check_default
from leasehold.sql.parse import placed
from leasehold.sql.reader import Kind, Reader
from leasehold.sql.syntax.statements import (
    Action,
    AddCheck,
    AddColumn,
    AddForeignKey,
    AddIdentity,
    AddLock,
    AddPrimaryKey,
    AddUnique,
    AlterTable,
    AlterType,
    CheckDefinition,
    DropColumn,
    DropConstraint,
    DropExpression,
    DropIdentity,
    DropLock,
    DropNotNull,
    ForeignKeyDefinition,
    RenameColumn,
    RenameConstraint,
    RenameTable,
    SetDefault,
    SetNotNull,
    UniqueDefinition,
    ValidateConstraint,
)

ACTIONS_MAX: Final = COLUMNS_MAX

_KEY_OF_NEW: Final = (
    "a new column can't be the PRIMARY KEY at once: add it, fill it, then change the key"
)
_OTHER_ACTIONS: Final = {
    word: f"ALTER TABLE … {word.upper()} is not supported"
    for word in (
        *("attach", "cluster", "detach", "disable", "enable", "force", "inherit", "no", "not of"),
        *("of", "options", "owner", "replica", "reset", "set", "add generated", "alter constraint"),
        *("merge", "split"),
    )
}
_OTHER_COLUMN_ACTIONS: Final = {
    "set expression": "SET EXPRESSION is not supported: drop the column and add it again",
    "set statistics": "SET STATISTICS is not supported",
    "set storage": "STORAGE can't be chosen for a column",
    "set compression": "COMPRESSION can't be chosen for a column",
    "set (": "a column has no storage parameters",
    "reset": "a column has no storage parameters",
}


def alter_table(reader: Reader) -> AlterTable:
    reader.expect("alter table")
    exists = reader.take("if exists")
    reader.take("only")  # tables do not inherit: every table is meant alone
    position = reader.position
    table = reader.qualified_name("the table's name")
    reader.take("*")
    actions = [_action(reader, table)]
    while reader.at(","):
        if isinstance(actions[0], RenameColumn | RenameConstraint | RenameTable):
            raise _rename_stands_alone(reader)
        reader.expect(",")
        if reader.at("rename"):
            raise _rename_stands_alone(reader)
        if len(actions) == ACTIONS_MAX:
            raise OutOfRange(f"at most {ACTIONS_MAX} actions in a row", position=reader.position)
        actions.append(_action(reader, table))
    return AlterTable(table, tuple(actions), exists, position)


def _rename_stands_alone(reader: Reader) -> SyntaxInvalid:
    return reader.unexpected("RENAME is the only action of its ALTER TABLE")


def _action(reader: Reader, table: str) -> Action:
    reader.refuse(_OTHER_ACTIONS)
    position = reader.position
    if reader.take("rename"):
        return _rename(reader, position)
    if reader.take("add"):
        return _add(reader, table, position)
    if reader.take("drop"):
        return _drop(reader, position)
    if reader.take("alter"):
        return _alter_column(reader, table, position)
    if reader.take("validate"):
        reader.expect("constraint")
        return ValidateConstraint(reader.name("the constraint's name"), position)
    raise reader.unexpected("ADD, DROP, ALTER, RENAME or VALIDATE is expected")


def _rename(reader: Reader, position: int) -> RenameColumn | RenameConstraint | RenameTable:
    if reader.take("to"):
        return RenameTable(reader.name("the table's new name"), position)
    if reader.take("constraint"):
        name = reader.name("the constraint's name")
        reader.expect("to")
        return RenameConstraint(name, reader.name("the constraint's new name"), position)
    reader.take("column")
    name = reader.name("a column's name")
    reader.expect("to")
    return RenameColumn(name, reader.name("the column's new name"), position)


# ------------------------------------------------------------------ ADD


def _add(reader: Reader, table: str, position: int) -> Action:
    if _at_lock(reader):
        return _add_lock(reader, position)
    if at_constraint(reader):
        return _add_constraint(reader, table)
    reader.take("column")
    exists = reader.take("if not exists")
    column, key = column_definition(reader, table)
    if key is not None:
        raise FeatureNotSupported(
            f"column {column.name!r}: {_KEY_OF_NEW}", column=column.name, position=key.position
        )
    return AddColumn(column, exists)


def _add_constraint(
    reader: Reader, table: str
) -> AddUnique | AddCheck | AddForeignKey | AddPrimaryKey:
    match table_constraint(reader, table):
        case UniqueDefinition() as unique:
            return AddUnique(unique)
        case CheckDefinition() as check:
            return AddCheck(check)
        case ForeignKeyDefinition() as key:
            return AddForeignKey(key)
        case KeyDefinition(columns=columns, position=position):
            return AddPrimaryKey(columns, position)


def _at_lock(reader: Reader) -> bool:
    """ADD LOCK l COVERING …; a column that is called lock has a type behind it instead."""
    following = reader.peek(1)
    if not reader.at("lock") or following is None:
        return False
    if reader.word(2) == "covering" or following.kind is Kind.NAME:
        return True
    return following.kind is Kind.WORD and following.text not in TYPE_WORDS


def _add_lock(reader: Reader, position: int) -> AddLock:
    reader.expect("lock")
    name = reader.name("the lock's name")
    reader.expect("covering")
    columns = distinct_columns(reader, "the lock", COLUMNS_MAX)
    return AddLock(name, columns, position)


# ------------------------------------------------------------------ DROP


def _drop(reader: Reader, position: int) -> DropColumn | DropConstraint | DropLock:
    if reader.at("constraint"):
        reader.expect("constraint")
        exists = reader.take("if exists")
        name = reader.name("the constraint's name")
        return DropConstraint(name, exists, position, reader.cascades())
    if _at_dropped_lock(reader):
        reader.expect("lock")
        exists = reader.take("if exists")
        name = reader.name("the lock's name")
        reader.cascades()  # nothing rests on a lock
        return DropLock(name, exists, position)
    reader.take("column")
    exists = reader.take("if exists")
    name = reader.name("a column's name")
    return DropColumn(name, exists, position, reader.cascades())


def _at_dropped_lock(reader: Reader) -> bool:
    """DROP LOCK l; DROP lock [RESTRICT] is the column of that name."""
    following = reader.peek(1)
    if not reader.at("lock") or following is None:
        return False
    return following.kind is Kind.NAME or (
        following.kind is Kind.WORD and following.text not in ("restrict", "cascade")
    )


# ------------------------------------------------------------------ ALTER COLUMN


def _alter_column(reader: Reader, table: str, position: int) -> Action:
    reader.take("column")
    column = reader.name("a column's name")
    reader.refuse(_OTHER_COLUMN_ACTIONS)
    if reader.at("type") or reader.at("set data"):
        reader.take("set data")
        reader.expect("type")
        return _alter_type(reader, table, column, position)
    if reader.take("set default"):
        return SetDefault(column, _default(reader), position, reader.zone)
    if reader.take("drop default"):
        return SetDefault(column, None, position)
    if reader.take("drop expression"):
        return DropExpression(column, reader.take("if exists"), position)
    if reader.take("add"):
        return AddIdentity(column, identity(reader), position)
    if reader.take("drop identity"):
        return DropIdentity(column, reader.take("if exists"), position)
    if reader.take("set not null"):
        return SetNotNull(column, position)
    if reader.at("set") or reader.at("restart"):
        return identity_options(reader, column, position)
    if reader.take("drop not null"):
        return DropNotNull(column, position)
    raise reader.unexpected("TYPE, or SET or DROP of DEFAULT, NOT NULL or EXPRESSION is expected")


def _alter_type(reader: Reader, table: str, column: str, position: int) -> AlterType:
    kind = column_type(reader)
    reader.refuse({"collate": "COLLATE is not supported: text is compared by code point"})
    using = kept_text(reader.expression(), table) if reader.take("using") else None
    return AlterType(column, kind, using, position, reader.zone)


def _default(reader: Reader) -> str | None:
    said = reader.expression()
    if drawn_from(said.text) is not None:
        return said.text
    try:
        check_default(said.text)
    except Refused as error:
        raise placed(error, said.position) from error
    return None if said.text == "null" else said.text
