"""CREATE TABLE."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from leasehold.catalog.descriptor import COLUMNS_MAX
from leasehold.model.errors import (
    FeatureNotSupported,
    InvalidDefinition,
    OutOfRange,
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
    TableLike,
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
handles("TableLikeClause", "relation", "options", later=["relationOid"])
_INCLUDED: Final = (
    *("comments", "compression", "constraints", "defaults", "generated", "identity", "indexes"),
    *("statistics", "storage"),
)
"""What INCLUDING may say, in the order of the grammar's bits."""


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
        self._likes: list[TableLike] = []

    def read(self, reading: Reading, node: Any, span: Span) -> None:
        """Read one column or constraint."""
        kind, body = only(node)
        if kind == "Constraint":
            self._constraint(reading, body, span)
            return
        if kind == "TableLikeClause":
            self._likes.append(_read_like(reading, body, len(self._columns)))
            return
        if kind != "ColumnDef":
            reading.refuse(f"{kind} is not supported: name the columns", span.first)
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
            raise InvalidDefinition(
                f'multiple primary keys for table "{self._table}" are not allowed',
                position=self._keys[1].position,
            )
        key = self._keys[0] if self._keys else KeyDefinition((), self._position)
        made = CreateTable(
            self._table,
            tuple(self._columns),
            key.columns,
            if_not_exists,
            tuple(self._uniques),
            tuple(self._checks),
            tuple(self._foreign_keys),
            key.name,
            key.included,
            schema,
            likes=tuple(self._likes),
        )
        return made if self._likes else complete_table(made, key.position)


def complete_table(made: CreateTable, key_position: int) -> CreateTable:
    """Return a table all of whose columns are known, with those of the primary key NOT NULL. Raises
    UnknownColumn for a constraint over others, FeatureNotSupported for what can't be in a key."""
    _check_known(made, "PRIMARY KEY", (*made.primary_key, *made.key_included), key_position)
    for column in made.columns:
        if column.name in made.primary_key:
            if column.generated is not None:
                raise FeatureNotSupported(GENERATED_KEY, position=key_position)
            _refuse_in_key(column, key_position)
    for unique in made.uniques:
        named = (*unique.columns, *unique.included)
        _check_known(made, "UNIQUE", named, unique.position)
    for foreign in made.foreign_keys:
        _check_known(made, "FOREIGN KEY", foreign.columns, foreign.position)
    columns = tuple(
        replace(column, nullable=column.nullable and column.name not in made.primary_key)
        for column in made.columns
    )
    return replace(made, columns=columns)


def _check_known(made: CreateTable, what: str, names: tuple[str, ...], position: int) -> None:
    there = {column.name for column in made.columns}
    for name in names:
        if name not in there:
            raise UnknownColumn(
                f"column {name!r} named in {what} does not exist",
                table=made.name,
                column=name,
                position=position,
            )


def _read_like(reading: Reading, body: Body, place: int) -> TableLike:
    """Return what LIKE table [INCLUDING what | EXCLUDING what] … says."""
    reading.read("TableLikeClause", body)
    relation = body["relation"]
    bits = body.get("options", 0)
    includes = frozenset(word for bit, word in enumerate(_INCLUDED) if bits >> bit & 1)
    position = reading.source.position(relation["location"])
    return TableLike(relation_name(reading, relation, temporary=True), includes, place, position)


def _refuse_in_key(column: ColumnDefinition, position: int) -> None:
    words = why_no_key(column.type)
    if not words:
        return
    raise FeatureNotSupported(
        f"column {column.name!r} can't be in the PRIMARY KEY: {words}",
        column=column.name,
        position=position,
    )
