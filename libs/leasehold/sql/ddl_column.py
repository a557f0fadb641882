"""A column's definition: its name, its type, its constraints."""

from __future__ import annotations

from typing import Any, Final

from leasehold.model.errors import FeatureNotSupported, Refused, SyntaxInvalid
from leasehold.schema.types import Type, parse_type
from leasehold.sql.ddl_constraint import (
    KeyDefinition,
    check,
    constraint_name,
    references,
    refuse_attributes,
    refuse_name,
    unique_column,
)
from leasehold.sql.literal import default_value
from leasehold.sql.parse import TYPE_NAMES, placed
from leasehold.sql.reader import Kind, Reader
from leasehold.sql.statements import (
    CheckDefinition,
    ColumnDefinition,
    ForeignKeyDefinition,
    UniqueDefinition,
)
from leasehold.sql.words import RESERVED

_PLAIN_TYPES: Final = {
    *("smallint", "int2", "integer", "int", "int4", "bigint", "int8", "float", "float8"),
    *("text", "boolean", "bool", "bytea", "date", "timestamptz", "uuid"),
}
TYPE_WORDS: Final = _PLAIN_TYPES | {"double", "varchar", "character", "timestamp"}
_NOT_BUILT: Final = {
    "generated": "GENERATED columns are not supported yet",
    "collate": "COLLATE is not supported: text is compared by code point",
    "storage": "STORAGE can't be chosen for a column",
    "compression": "COMPRESSION can't be chosen for a column",
}
AFTER_DEFAULT: Final = frozenset(
    {
        *("not", "null", "default", "constraint", "primary", "unique", "check", "references"),
        *("generated", "collate", "deferrable", "initially", "storage", "compression"),
    }
)
"""Words that end DEFAULT's expression, as in PostgreSQL's b_expr; in parentheses they don't."""


def column_definition(reader: Reader, table: str) -> tuple[ColumnDefinition, KeyDefinition | None]:
    """A column, and the primary key that it says it is."""
    position = reader.position
    name = reader.name("a column's name")
    try:
        return _Column(reader, table, name, position).read()
    except Refused as error:
        said = dict(error.detail)
        place = int(str(said.get("position", position)))
        raise placed(error, place, f"column {name!r}: ", column=name) from error


class _Column:
    """What has been read of one column so far."""

    def __init__(self, reader: Reader, table: str, name: str, position: int) -> None:
        self._reader = reader
        self._table = table
        self._name = name
        self._position = position
        self._null: bool | None = None
        self._default: Any = None
        self._key: KeyDefinition | None = None
        self._unique: UniqueDefinition | None = None
        self._checks: list[CheckDefinition] = []
        self._references: ForeignKeyDefinition | None = None
        self._seen: set[str] = set()

    def read(self) -> tuple[ColumnDefinition, KeyDefinition | None]:
        kind = column_type(self._reader)
        while self._constraint(kind):
            pass
        if self._key is not None and self._null:
            raise SyntaxInvalid("a primary key can't be NULL", position=self._position)
        column = ColumnDefinition(
            self._name,
            kind,
            self._null is not False and self._key is None,
            self._default,
            self._position,
            self._unique,
            tuple(self._checks),
            self._references,
        )
        return column, self._key

    def _constraint(self, kind: Type) -> bool:
        """Reads one constraint; False where none comes."""
        reader = self._reader
        reader.refuse(_NOT_BUILT)
        refuse_attributes(reader)
        name = constraint_name(reader)
        reader.refuse(_NOT_BUILT)
        if reader.at("check"):
            self._checks.append(check(reader, self._table, name))
        elif reader.at("unique"):
            self._once("unique")
            self._unique = unique_column(reader, self._name, name)
        elif reader.at("references"):
            self._once("references")
            self._references = references(reader, (self._name,), name, reader.position)
        elif any(reader.at(w) for w in ("not null", "null", "default", "primary key")):
            refuse_name(reader, name)
            self._plain(kind)
        elif name is not None:
            raise reader.unexpected("UNIQUE, CHECK or REFERENCES is expected")
        else:
            return False
        return True

    def _plain(self, kind: Type) -> None:
        reader, position = self._reader, self._reader.position
        if reader.at("not null") or reader.at("null"):
            self._once("null")
            self._null = not reader.take("not")
            reader.expect("null")
        elif reader.at("default"):
            self._once("default")
            reader.expect("default")
            self._default = _default(reader, kind)
        else:
            self._once("primary key")
            reader.expect("primary key")
            self._key = KeyDefinition((self._name,), position)

    def _once(self, what: str) -> None:
        if what in self._seen:
            raise SyntaxInvalid(f"{what.upper()} is said twice", position=self._reader.position)
        self._seen.add(what)


def _default(reader: Reader, kind: Type) -> Any:
    said = reader.expression(AFTER_DEFAULT)
    try:
        return default_value(said.text, kind)
    except Refused as error:
        raise placed(error, said.position) from error


# ------------------------------------------------------------------ types


def column_type(reader: Reader) -> Type:
    """A type's name and length. Raises SyntaxInvalid where none stands, FeatureNotSupported."""
    found = reader.peek()
    position = reader.position
    no_name = found is None or found.kind in (Kind.SIGN, Kind.CONSTANT)
    if found is None or no_name or (found.kind is Kind.WORD and found.text in RESERVED):
        raise reader.unexpected("a type is expected")
    written = _type_words(reader)
    if reader.at("(") or reader.at("[") or reader.at("array"):
        if written != "varchar" or not reader.at("("):
            raise FeatureNotSupported(
                f"type {written!r} takes no length, precision or array here", position=position
            )
        written += _length(reader)
        reader.refuse({"[": "arrays are not supported", "array": "arrays are not supported"})
    try:
        return parse_type(written)
    except Refused as error:
        raise placed(error, position) from error


def _type_words(reader: Reader) -> str:
    for phrase in ("double precision", "varchar"):
        if reader.take(phrase):
            return phrase
    if reader.take("character varying"):
        return "varchar"
    if reader.take("timestamp"):
        if reader.take("with time zone"):
            return "timestamptz"
        reader.take("without time zone")
        return "timestamp"
    word = reader.word()
    if word not in _PLAIN_TYPES:
        found = reader.peek()
        raise FeatureNotSupported(
            f"type {found.text if found else word!r:.80} is not known; known are: {TYPE_NAMES}",
            position=reader.position,
        )
    reader.expect(word)
    return word


def _length(reader: Reader) -> str:
    reader.expect("(")
    found = reader.peek()
    if found is None or found.kind is not Kind.CONSTANT or not found.text.isdecimal():
        raise reader.unexpected("a length is expected")
    reader.advance()
    reader.expect(")")
    return f"({found.text})"
