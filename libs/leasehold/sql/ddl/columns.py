"""A column's definition: its name, its type, its constraints."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final

from leasehold.catalog.namespaces import qualified
from leasehold.catalog.schema_names import PUBLIC
from leasehold.catalog.sequence import Options
from leasehold.model.errors import FeatureNotSupported, InvalidArgument, Refused, SyntaxInvalid
from leasehold.sql.ddl.column_types import SERIALS, check_collation, read_column_type, serial_of
from leasehold.sql.ddl.constraints import (
    ATTRIBUTES,
    KeyDefinition,
    find_constraint,
    keep_text,
    read_check,
    read_references,
)
from leasehold.sql.ddl.sequence_options import read_sequence_options
from leasehold.sql.expressions.default import Default, default_of_text, refuse_changing
from leasehold.sql.syntax.accounting import Body, Sentence, handles
from leasehold.sql.syntax.names import name_beside
from leasehold.sql.syntax.positions import position_of, refused_at, with_position
from leasehold.sql.syntax.statement import Expression, Reading, Span
from leasehold.sql.syntax.statements import (
    CheckDefinition,
    ColumnDefinition,
    ForeignKeyDefinition,
    GeneratedDefinition,
    NumberingDefinition,
    UniqueDefinition,
)
from leasehold.values.types import Type, parse_type

handles(
    "ColumnDef",
    *("colname", "typeName", "constraints", "location", "is_local", "raw_default", "collClause"),
    compression=Sentence("compression", "COMPRESSION can't be chosen for a column"),
    storage_name=Sentence("storage", "STORAGE can't be chosen for a column"),
    fdwoptions="OPTIONS",
    later=[
        *("inhcount", "is_not_null", "is_from_type", "storage", "cooked_default", "identity"),
        *("identitySequence", "generated", "collOid"),
    ],
)
_DRAWN: Final = re.compile(
    r"""(?:nextval|"nextval")\s*\(\s*'((?:[^']|'')+)'"""
    r"""\s*(?:::\s*(?:regclass|text|"regclass"|"text")\s*)*\)"""
)
_NAME: Final = re.compile(
    r"""(?:(?:"(?P<quoted_schema>(?:[^"]|"")++)"|(?P<schema>[^".]++))\.)?+"""
    r"""(?:"(?P<quoted>(?:[^"]|"")++)"|(?P<bare>[^"]++))"""
)
_ATTRIBUTE: Final = "CONSTR_ATTR_"
_IMMEDIATE: Final = frozenset({"CONSTR_ATTR_NOT_DEFERRABLE", "CONSTR_ATTR_IMMEDIATE"})
_DEFERRABLE: Final = frozenset(
    {"CONSTR_ATTR_DEFERRABLE", "CONSTR_ATTR_DEFERRED", "CONSTR_ATTR_IMMEDIATE"}
)
_WITH_ATTRIBUTES: Final = frozenset({"CONSTR_PRIMARY", "CONSTR_UNIQUE", "CONSTR_FOREIGN"})
GENERATED_KEY: Final = (
    "a generated column can't be in the PRIMARY KEY: a row is found by the key that was given"
)
_VIRTUAL: Final = "VIRTUAL generated columns are not supported: say STORED"


def read_column_definition(
    reading: Reading, body: Body, table: str, span: Span
) -> tuple[ColumnDefinition, KeyDefinition | None]:
    """A column, and the primary key that it says it is; `span`: its words."""
    position = reading.source.position(body["location"])
    name = body["colname"]
    try:
        return _Column(reading, body, table, span).read()
    except Refused as error:
        said = dict(error.detail)
        word_index = int(str(said.get("position", position)))
        raise with_position(error, word_index, f"column {name!r}: ", column=name) from error


class _Column:
    """What has been read of one column so far."""

    def __init__(self, reading: Reading, body: Body, table: str, span: Span) -> None:
        self._reading = reading
        self._body = body
        self._table = table
        self._span = span
        self._name: str = body["colname"]
        self._position = reading.source.position(body["location"])
        self._null: bool | None = None
        self._default = Default()
        self._generated: GeneratedDefinition | None = None
        self._key: KeyDefinition | None = None
        self._unique: UniqueDefinition | None = None
        self._checks: list[CheckDefinition] = []
        self._references: ForeignKeyDefinition | None = None
        self._seen: set[str] = set()
        self._numbering: NumberingDefinition | None = None

    def read(self) -> tuple[ColumnDefinition, KeyDefinition | None]:
        self._reading.read("ColumnDef", self._body)
        if "collClause" in self._body:
            names = self._body["collClause"]["collname"]
            check_collation(self._reading, names, self._span.first)
        kind = self._type()
        constraints = [node["Constraint"] for node in self._body.get("constraints", [])]
        starts = [self._reading.at(one.get("location", 0)) for one in constraints]
        kinds = [one["contype"] for one in constraints]
        ends = [*starts[1:], self._span.end]
        for number, constraint in enumerate(constraints):
            if kinds[number].startswith(_ATTRIBUTE):
                self._attribute(kinds, number, starts[number])
                continue
            self._constraint(constraint, kind, ends[number])
        if self._numbering is not None and not self._numbering.named:
            self._check_numbered(kind, self._numbering)
        if self._key is not None and self._null:
            raise SyntaxInvalid("a primary key can't be NULL", position=self._position)
        if self._generated is not None:
            self._refuse_beside_generated(self._generated)
        column = ColumnDefinition(
            self._name,
            kind,
            self._null is not False and self._key is None,
            self._default.value,
            self._position,
            self._unique,
            tuple(self._checks),
            self._references,
            self._default.expression,
            self._generated,
            self._numbering,
            self._reading.zone if self._default.expression else "",
            self._default.text,
        )
        return column, self._key

    def _type(self) -> Type:
        body = self._body.get("typeName")
        if body is None:
            raise SyntaxInvalid("a type is expected", position=self._position)
        serial = serial_of(body)
        if serial is None:
            return read_column_type(self._reading, body)
        position = self._reading.source.position(body["location"])
        self._numbering = NumberingDefinition(position=position)
        return parse_type(serial)

    def _check_numbered(self, kind: Type, numbering: NumberingDefinition) -> None:
        """Check a column that draws from its own sequence: its numbers are its default, and it has
        always one. Raises InvalidArgument, SyntaxInvalid."""
        position = numbering.position
        check_identity(kind, position)
        if "default" in self._seen or self._generated is not None:
            raise SyntaxInvalid(
                f"both default and {'identity' if numbering.identity else 'serial'} specified for"
                f" column {self._name!r} of table {self._table!r}",
                position=position,
            )
        if self._null:
            raise SyntaxInvalid(
                f"conflicting NULL/NOT NULL declarations for column {self._name!r} of table"
                f" {self._table!r}",
                position=position,
            )
        self._null = False

    def _constraint(self, body: Body, kind: Type, end: int) -> None:
        """Read one constraint; what follows it begins at `end`."""
        reading, word_index = self._reading, find_constraint(self._reading, body)
        match body["contype"]:
            case "CONSTR_CHECK":
                self._checks.append(read_check(reading, body, self._table))
                return
            case "CONSTR_UNIQUE":
                self._once("unique", word_index)
                reading.read("Constraint", body)
                position = reading.position(word_index)
                nulls = bool(body.get("nulls_not_distinct"))
                name = name_beside(reading, body)
                self._unique = UniqueDefinition((self._name,), name, position, nulls)
                return
            case "CONSTR_FOREIGN":
                self._once("references", word_index)
                position = reading.position(word_index)
                self._references = read_references(reading, body, (self._name,), position)
                return
        # NOT NULL, DEFAULT and the like have no name in PostgreSQL 15, which forgets what is said.
        self._plain(body, kind, Span(word_index, end))

    def _attribute(self, kinds: list[str], number: int, word_index: int) -> None:
        """A foreign key and UNIQUE may be DEFERRABLE, and NOT DEFERRABLE is what all others are;
        else an attribute is refused."""
        first, end = number, number
        while first and kinds[first].startswith(_ATTRIBUTE):
            first -= 1
        while end < len(kinds) and kinds[end].startswith(_ATTRIBUTE):
            end += 1
        if kinds[first] in _WITH_ATTRIBUTES and {*kinds[first + 1 : end]} <= _IMMEDIATE:
            return
        late = "CONSTR_ATTR_DEFERRED" in kinds[first + 1 : end]
        deferrable = "deferred" if late else "immediate"
        if kinds[first] == "CONSTR_FOREIGN" and kinds[number] in _DEFERRABLE:
            assert self._references is not None, "it stands behind its key"
            self._references = replace(self._references, deferrable=deferrable)
            return
        if kinds[first] == "CONSTR_UNIQUE" and kinds[number] in _DEFERRABLE:
            assert self._unique is not None, "it stands behind its constraint"
            self._unique = replace(self._unique, deferrable=deferrable)
            return
        self._reading.refuse_listed(ATTRIBUTES, word_index)
        said = kinds[number].removeprefix(_ATTRIBUTE).replace("_", " ")
        self._reading.refuse(f"{said} is not supported here", word_index)

    def _plain(self, body: Body, kind: Type, span: Span) -> None:
        reading = self._reading
        match body["contype"]:
            case "CONSTR_NOTNULL" | "CONSTR_NULL" as said:
                self._once("null", span.first)
                reading.read("Constraint", body)
                self._null = said == "CONSTR_NULL"
            case "CONSTR_DEFAULT":
                self._once("default", span.first)
                self._default_of(kind, Span(span.first + 1, span.end))
            case "CONSTR_IDENTITY":
                self._identity(body, span.first)
            case "CONSTR_GENERATED":
                self._once("generated", span.first)
                self._generated = _generated(reading, body, self._table, span.first)
            case "CONSTR_PRIMARY":
                self._once("primary key", span.first)
                reading.read("Constraint", body)
                name, position = name_beside(reading, body), reading.position(span.first)
                self._key = KeyDefinition((self._name,), position, name)
            case said:
                reading.refuse(f"{said} is not supported", span.first)

    def _default_of(self, kind: Type, span: Span) -> None:
        reading, position = self._reading, self._reading.position(span.first)
        said = reading.kept(span)
        name = find_drawn_sequence(said.text)
        if name is None:
            self._default = _default(said, kind, reading)
            return
        if self._numbering is not None:
            raise SyntaxInvalid(
                f"multiple default values specified for column {self._name!r} of table"
                f" {self._table!r}",
                position=position,
            )
        check_drawing(kind, position)
        self._numbering = NumberingDefinition(named=name, position=position)

    def _identity(self, body: Body, word_index: int) -> None:
        if self._numbering is not None:
            raise SyntaxInvalid(
                f"both default and identity specified for column {self._name!r} of table"
                f" {self._table!r}",
                position=self._reading.position(word_index),
            )
        self._numbering = read_identity(self._reading, body)

    def _refuse_beside_generated(self, generated: GeneratedDefinition) -> None:
        if "default" in self._seen:
            raise SyntaxInvalid(
                "a column has a DEFAULT or is GENERATED, not both", position=generated.position
            )
        if self._key is not None:
            raise FeatureNotSupported(GENERATED_KEY, position=self._key.position)

    def _once(self, what: str, word_index: int) -> None:
        if what in self._seen:
            position = self._reading.position(word_index)
            raise SyntaxInvalid(f"{what.upper()} is said twice", position=position)
        self._seen.add(what)


def read_identity(reading: Reading, body: Body) -> NumberingDefinition:
    """GENERATED {ALWAYS | BY DEFAULT} AS IDENTITY [(options)]"""
    options: list[Any] = body.get("options", [])
    reading.read("Constraint", {key: body[key] for key in body if key != "options"})
    word_index = find_constraint(reading, body)
    found = Options()
    if options:
        found = read_sequence_options(reading, options, reading.opening(word_index) + 1, named=True)
    return NumberingDefinition(body["generated_when"], found, position=reading.position(word_index))


def check_identity(kind: Type, position: int) -> None:
    """Raises InvalidArgument."""
    if kind.name not in SERIALS.values():
        raise InvalidArgument(
            "identity column type must be smallint, integer, or bigint", position=position
        )


def _generated(reading: Reading, body: Body, table: str, word_index: int) -> GeneratedDefinition:
    """GENERATED ALWAYS AS (expression) STORED"""
    reading.read("Constraint", body)
    opening = reading.opening(word_index)
    said = reading.enclosed(opening)
    try:
        refuse_changing(said.text)
    except Refused as error:
        raise with_position(error, said.position + position_of(error) - 1) from error
    text = keep_text(said, table, reading)
    if body.get("generated_kind") != "s":
        reading.refuse(_VIRTUAL, reading.closed(opening))
    return GeneratedDefinition(text, said.position, reading.zone)


def check_drawing(kind: Type, position: int) -> None:
    """Raises FeatureNotSupported."""
    if kind.name not in SERIALS.values():
        raise FeatureNotSupported(
            f"numbers of a sequence go into smallint, integer and bigint, not into {kind}",
            position=position,
        )


def find_drawn_sequence(text: str) -> str | None:
    """The sequence of a default that is `nextval('s')`; None: it is something else."""
    found = _DRAWN.fullmatch(text)
    if found is None:
        return None
    name = _NAME.fullmatch(found[1].replace("''", "'").strip())
    if name is None:
        return None
    schema = (name["quoted_schema"] or (name["schema"] or "").lower()).replace('""', '"')
    bare = (name["quoted"] or name["bare"].lower()).replace('""', '"')
    return qualified("" if schema == PUBLIC else schema, bare)


def _default(said: Expression, kind: Type, reading: Reading) -> Default:
    with refused_at(said.position):
        return default_of_text(said.text, kind, reading.zone, reading.enums.find)
