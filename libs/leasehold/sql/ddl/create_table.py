"""CREATE TABLE."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from leasehold.catalog.descriptor import COLUMNS_MAX
from leasehold.model.errors import (
    FeatureNotSupported,
    InvalidDefinition,
    OutOfRange,
    SyntaxInvalid,
    UnknownColumn,
)
from leasehold.sql.ddl.columns import GENERATED_KEY, read_column_definition
from leasehold.sql.ddl.constraints import ByIndex, KeyDefinition, read_table_constraint
from leasehold.sql.ddl.storage_parameters import read_storage_parameter
from leasehold.sql.syntax.accounting import Body, Sentence, handles
from leasehold.sql.syntax.left_out import PAGE, PARTITIONS
from leasehold.sql.syntax.names import ON_COMMIT, is_temporary, relation_name, schema_of
from leasehold.sql.syntax.statement import Reading, Span, only
from leasehold.sql.syntax.statements import (
    CheckDefinition,
    ColumnDefinition,
    CreateTable,
    ForeignKeyDefinition,
    UniqueDefinition,
)
from leasehold.values.types import why_no_key

_PARTITIONS: Final = f"{PARTITIONS.words}: {PAGE} says what to do instead"
_ON_COMMIT: Final = "ON COMMIT can only be used on temporary tables"

handles(
    "CreateStmt",
    *("relation", "tableElts", "options", "if_not_exists", "oncommit"),
    partbound=Sentence("partition", _PARTITIONS),
    partspec=Sentence("partition", _PARTITIONS),
    inhRelations=Sentence("inherits", "INHERITS is not supported"),
    ofTypename=Sentence("of", "CREATE TABLE … OF a type is not supported"),
    tablespacename=Sentence("tablespace", "tablespaces are not supported"),
    accessMethod=Sentence("using", "a table access method can't be chosen"),
    later=["constraints", "nnconstraints"],
)


def read_create_table(reading: Reading, body: Body) -> CreateTable:
    """CREATE TABLE [IF NOT EXISTS] t (column … | constraint, …)"""
    if "partbound" in body:
        body = {name: body[name] for name in body if name != "inhRelations"}
    name = relation_name(reading, body["relation"], temporary=True)
    reading.schema = schema_of(reading, body["relation"])
    reading.read("CreateStmt", body)
    temporary = is_temporary(body["relation"])
    if body["oncommit"] != "ONCOMMIT_NOOP" and not temporary:
        place = reading.position(reading.next(reading.span.first, "on", "commit"))
        raise InvalidDefinition(_ON_COMMIT, position=place)
    word_index = reading.at(body["relation"]["location"])
    elements: list[Any] = body.get("tableElts", [])
    opening = reading.opening(word_index)
    if not elements:
        reading.refuse(f"table {name!r} has no columns, which is not supported", opening)
    parts = _Parts(name, reading.position(word_index))
    for node, span in zip(elements, reading.listed(reading.within(opening)), strict=True):
        parts.read(reading, node, span)
    for option in body.get("options", []):
        read_storage_parameter(reading, option["DefElem"])
    made = parts.table(bool(body.get("if_not_exists")), reading.schema)
    return replace(made, temporary=temporary, on_commit=ON_COMMIT[body["oncommit"]])


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

    def read(self, reading: Reading, node: Any, span: Span) -> None:
        """Read one column or constraint."""
        kind, body = only(node)
        if kind == "Constraint":
            self._constraint(reading, body, span)
            return
        if kind != "ColumnDef":
            said = "LIKE" if kind == "TableLikeClause" else kind
            reading.refuse(f"{said} is not supported: name the columns", span.first)
        column, key = read_column_definition(reading, body, self._table, span)
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

    def _constraint(self, reading: Reading, body: Body, span: Span) -> None:
        match read_table_constraint(reading, body, self._table, span.end):
            case KeyDefinition() as key:
                self._keys.append(key)
            case UniqueDefinition() as unique:
                self._uniques.append(unique)
            case ByIndex() as other:
                raise FeatureNotSupported(
                    "cannot use an existing index in CREATE TABLE", position=other.position
                )
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

    def table(self, if_not_exists: bool, schema: str) -> CreateTable:
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
            key.name,
            schema,
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
