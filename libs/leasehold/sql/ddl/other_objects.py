"""DROP of kinds of objects of which there are none here, COMMENT, CREATE EXTENSION and CREATE
SCHEMA."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from leasehold.catalog.schema_names import PUBLIC
from leasehold.sql.syntax.accounting import Body, Sentence, handles
from leasehold.sql.syntax.statement import Reading, Span, names_of, only
from leasehold.sql.syntax.statements import (
    Comment,
    DropAbsent,
    MakeBuiltIn,
    ObjectKind,
    ObjectName,
)

handles("CommentStmt", "objtype", "object", "comment")
handles("CreateExtensionStmt", "extname", "if_not_exists", "options")
handles(
    "CreateSchemaStmt",
    *("schemaname", "if_not_exists"),
    authrole=Sentence("authorization", "AUTHORIZATION is not supported: schema public is there"),
    schemaElts="schema elements",
)

_ABSENT: Final[Mapping[str, ObjectKind]] = {
    "OBJECT_MATVIEW": ObjectKind.MATERIALIZED_VIEW,
    "OBJECT_FOREIGN_TABLE": ObjectKind.FOREIGN_TABLE,
    "OBJECT_TYPE": ObjectKind.TYPE,
    "OBJECT_DOMAIN": ObjectKind.TYPE,
    "OBJECT_COLLATION": ObjectKind.COLLATION,
    "OBJECT_STATISTIC_EXT": ObjectKind.STATISTICS,
    "OBJECT_FUNCTION": ObjectKind.FUNCTION,
    "OBJECT_PROCEDURE": ObjectKind.PROCEDURE,
    "OBJECT_ROUTINE": ObjectKind.ROUTINE,
    "OBJECT_AGGREGATE": ObjectKind.AGGREGATE,
    "OBJECT_TRIGGER": ObjectKind.TRIGGER,
    "OBJECT_RULE": ObjectKind.RULE,
    "OBJECT_POLICY": ObjectKind.POLICY,
    "OBJECT_EXTENSION": ObjectKind.EXTENSION,
    "OBJECT_SCHEMA": ObjectKind.SCHEMA,
}
_COMMENTED: Final[Mapping[str, ObjectKind]] = {
    **_ABSENT,
    "OBJECT_TABLE": ObjectKind.TABLE,
    "OBJECT_VIEW": ObjectKind.VIEW,
    "OBJECT_COLUMN": ObjectKind.COLUMN,
    "OBJECT_INDEX": ObjectKind.INDEX,
    "OBJECT_SEQUENCE": ObjectKind.SEQUENCE,
    "OBJECT_TABCONSTRAINT": ObjectKind.CONSTRAINT,
    "OBJECT_DATABASE": ObjectKind.DATABASE,
    "OBJECT_ROLE": ObjectKind.ROLE,
}
_OF_RELATION: Final = frozenset(
    {
        *(ObjectKind.TRIGGER, ObjectKind.RULE, ObjectKind.POLICY),
        *(ObjectKind.COLUMN, ObjectKind.CONSTRAINT),
    }
)
"""What is named after the relation that it belongs to."""


def drops_absent(body: Body) -> bool:
    """Return whether DROP names a kind of which there is nothing here."""
    return body["removeType"] in _ABSENT and body["removeType"] != "OBJECT_TYPE"


def read_drop_absent(reading: Reading, body: Body) -> tuple[DropAbsent, ...]:
    """DROP kind [IF EXISTS] name, … [CASCADE | RESTRICT]: a statement for each of the names."""
    reading.read("DropStmt", body)
    kind, exists = _ABSENT[body["removeType"]], bool(body.get("missing_ok"))
    second = 3 if kind in (ObjectKind.MATERIALIZED_VIEW, ObjectKind.FOREIGN_TABLE) else 2
    first = reading.behind(reading.verb + second, "if exists")
    spans = reading.listed(Span(first, reading.span.end))
    said = body["removeType"].removeprefix("OBJECT_").lower()
    tag = "DROP " + {"matview": "materialized view", "statistic_ext": "statistics"}.get(
        said, said.replace("_", " ")
    )
    return tuple(
        DropAbsent(
            kind,
            read_object_name(kind, node),
            exists,
            reading.position(span.first),
            tag.upper(),
        )
        for node, span in zip(body["objects"], spans, strict=True)
    )


def read_object_name(kind: ObjectKind, node: Mapping[str, Any]) -> ObjectName:
    """Return the name of an object as a statement says it; no schema where it says public."""
    form, body = only(node)
    match form:
        case "String":
            return ObjectName(body["sval"])
        case "TypeName":
            parts = names_of(body["names"])
        case "ObjectWithArgs":
            parts = names_of(body["objname"])
        case _:
            parts = names_of(body["items"])
    *before, name = parts
    relation = before.pop() if kind in _OF_RELATION and before else ""
    schema = before[-1] if before else PUBLIC
    return ObjectName(name, relation, "" if schema == PUBLIC else schema)


def read_comment(reading: Reading, body: Body) -> Comment:
    """COMMENT ON kind name IS {'…' | NULL}"""
    kind = _COMMENTED.get(body["objtype"])
    # COMMENT ON kind, of which a few have two words.
    word_index = reading.verb + 2
    if kind is None:
        said = reading.word(word_index).upper()
        reading.refuse(f"COMMENT ON {said:.40} is not supported", word_index)
    reading.read("CommentStmt", body)
    two = kind in (ObjectKind.MATERIALIZED_VIEW, ObjectKind.FOREIGN_TABLE)
    first = word_index + 1 + two
    text = body.get("comment") or None  # an empty one is none
    return Comment(kind, read_object_name(kind, body["object"]), reading.position(first), text)


def read_create_extension(reading: Reading, body: Body) -> MakeBuiltIn:
    """CREATE EXTENSION [IF NOT EXISTS] name [WITH …]: what it says of schema and version is as
    little asked for as the extension itself."""
    reading.read("CreateExtensionStmt", body)
    first = reading.behind(reading.verb + 2, "if not exists")
    name, exists = body["extname"], bool(body.get("if_not_exists"))
    return MakeBuiltIn(ObjectKind.EXTENSION, name, exists, reading.position(first))


def read_create_schema(reading: Reading, body: Body) -> MakeBuiltIn:
    """CREATE SCHEMA [IF NOT EXISTS] name"""
    reading.read("CreateSchemaStmt", body)
    first = reading.behind(reading.verb + 2, "if not exists")
    name, exists = body.get("schemaname", PUBLIC), bool(body.get("if_not_exists"))
    return MakeBuiltIn(ObjectKind.SCHEMA, name, exists, reading.position(first))
