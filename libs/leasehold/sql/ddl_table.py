"""CREATE TABLE and DROP TABLE."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from leasehold.catalog.descriptor import COLUMNS_MAX
from leasehold.model.errors import FeatureNotSupported, OutOfRange, SyntaxInvalid, UnknownColumn
from leasehold.sql.ddl_column import GENERATED_KEY, column_definition
from leasehold.sql.ddl_constraint import KeyDefinition, at_constraint, table_constraint
from leasehold.sql.reader import Reader
from leasehold.sql.storage_parameters import storage_parameters
from leasehold.sql.syntax.statements import (
    CheckDefinition,
    ColumnDefinition,
    CreateTable,
    DropTable,
    ForeignKeyDefinition,
    UniqueDefinition,
)
from leasehold.values.types import why_no_key

_INSTEAD_OF_COLUMNS: Final = {
    "as": "CREATE TABLE … AS is not supported: create, then insert",
    "of": "CREATE TABLE … OF a type is not supported",
    "partition of": "partitions are not supported",
}
_AFTER_COLUMNS: Final = {
    "as": "CREATE TABLE … AS is not supported: create, then insert",
    "inherits": "INHERITS is not supported",
    "on commit": "ON COMMIT is for temporary tables, which are not supported",
    "partition by": "partitions are not supported",
    "tablespace": "tablespaces are not supported",
    "using": "a table access method can't be chosen",
    "without": "WITHOUT OIDS need not be said: there are none",
}


def create_table(reader: Reader) -> CreateTable:
    """CREATE TABLE [IF NOT EXISTS] t (column … | constraint, …)"""
    reader.expect("create table")
    exists = reader.take("if not exists")
    position = reader.position
    name = reader.qualified_name("the table's name")
    reader.refuse(_INSTEAD_OF_COLUMNS)
    reader.refuse({"( )": f"table {name!r} has no columns, which is not supported"})
    parts = _Parts(name, position)
    reader.listed(lambda: parts.read(reader))
    storage_parameters(reader)
    reader.refuse(_AFTER_COLUMNS)
    return parts.table(exists)


class _Parts:
    """What stands in the parentheses of CREATE TABLE, in its order."""

    def __init__(self, table: str, position: int) -> None:
        self._table = table
        self._position = position
        self._columns: list[ColumnDefinition] = []
        self._keys: list[KeyDefinition] = []
        self._uniques: list[UniqueDefinition] = []
        self._checks: list[CheckDefinition] = []
        self._foreign_keys: list[ForeignKeyDefinition] = []

    def read(self, reader: Reader) -> None:
        """One column or constraint."""
        if at_constraint(reader):
            self._constraint(reader)
            return
        column, key = column_definition(reader, self._table)
        self._columns.append(column)
        if len(self._columns) > COLUMNS_MAX:
            raise OutOfRange(
                f"table {self._table!r}: at most {COLUMNS_MAX} columns are allowed",
                position=column.position,
            )
        if key is not None:
            self._keys.append(key)
        if column.unique is not None:
            self._uniques.append(column.unique)
        self._checks.extend(column.checks)
        if column.references is not None:
            self._foreign_keys.append(column.references)

    def _constraint(self, reader: Reader) -> None:
        match table_constraint(reader, self._table):
            case KeyDefinition() as key:
                self._keys.append(key)
            case UniqueDefinition() as unique:
                self._uniques.append(unique)
            case CheckDefinition() as check:
                if check.not_valid:
                    raise FeatureNotSupported(
                        "NOT VALID is for ALTER TABLE … ADD CHECK: a new table has no rows",
                        position=check.position,
                    )
                self._checks.append(check)
            case ForeignKeyDefinition() as references:
                if references.not_valid:
                    raise FeatureNotSupported(
                        "NOT VALID is for ALTER TABLE … ADD FOREIGN KEY: a new table has no rows",
                        position=references.position,
                    )
                self._foreign_keys.append(references)

    def table(self, if_not_exists: bool) -> CreateTable:
        if len(self._keys) > 1:
            raise SyntaxInvalid(
                f"table {self._table!r} has more than one PRIMARY KEY",
                position=self._keys[1].position,
            )
        key = self._keys[0] if self._keys else KeyDefinition((), self._position)
        self._known("PRIMARY KEY", key.columns, key.position)
        if any(c.generated is not None and c.name in key.columns for c in self._columns):
            raise FeatureNotSupported(GENERATED_KEY, position=key.position)
        for column in self._columns:
            if column.name in key.columns:
                _refuse_in_key(column, key.position)
        for unique in self._uniques:
            self._known("UNIQUE", unique.columns, unique.position)
        for foreign in self._foreign_keys:
            self._known("FOREIGN KEY", foreign.columns, foreign.position)
        columns = tuple(
            replace(column, nullable=column.nullable and column.name not in key.columns)
            for column in self._columns
        )
        return CreateTable(
            self._table,
            columns,
            key.columns,
            if_not_exists,
            tuple(self._uniques),
            tuple(self._checks),
            tuple(self._foreign_keys),
        )

    def _known(self, what: str, names: tuple[str, ...], position: int) -> None:
        there = {column.name for column in self._columns}
        for name in names:
            if name not in there:
                raise UnknownColumn(
                    f"column {name!r} named in {what} does not exist",
                    table=self._table,
                    column=name,
                    position=position,
                )


def _refuse_in_key(column: ColumnDefinition, position: int) -> None:
    words = why_no_key(column.type)
    if not words:
        return
    raise FeatureNotSupported(
        f"column {column.name!r} can't be in the PRIMARY KEY: {words}",
        column=column.name,
        position=position,
    )


# ------------------------------------------------------------------ DROP


def drop_table(reader: Reader) -> tuple[DropTable, ...]:
    """DROP TABLE [IF EXISTS] t, … [RESTRICT | CASCADE]: a statement for each of the tables."""
    reader.expect("drop table")
    exists = reader.take("if exists")
    dropped = [_dropped(reader, exists)]
    while reader.take(","):
        dropped.append(_dropped(reader, exists))
    cascade = reader.cascades()
    names = [each.name for each in dropped]
    return tuple(
        replace(each, cascade=cascade, beside=tuple(n for n in names if n != each.name))
        for each in dropped
    )


def _dropped(reader: Reader, exists: bool) -> DropTable:
    position = reader.position
    return DropTable(reader.qualified_name("the table's name"), exists, position)
