"""DROP of kinds of objects of which there are none here, COMMENT, CREATE EXTENSION, and what is
said of schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from leasehold.catalog.namespaces import qualified
from leasehold.catalog.schema_names import PUBLIC, SCHEMAS
from leasehold.sql.ddl.roles import read_role_named
from leasehold.sql.syntax.accounting import Body, Sentence, handles
from leasehold.sql.syntax.object_statements import (
    Comment,
    CreateNamespace,
    DropAbsent,
    DropNamespace,
    MakeBuiltIn,
    ObjectKind,
    ObjectName,
    RenameNamespace,
)
from leasehold.sql.syntax.roles.grant_statements import ChangeOwner, ObjectNamed
from leasehold.sql.syntax.statement import Reading, Span, names_of, only

handles("CommentStmt", "objtype", "object", "comment")
handles("CreateExtensionStmt", "extname", "if_not_exists", "options")
handles(
    "CreateSchemaStmt",
    *("schemaname", "if_not_exists", "authrole"),
    schemaElts=Sentence("", "CREATE SCHEMA makes no tables: make them behind it"),
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
}
_COMMENTED: Final[Mapping[str, ObjectKind]] = {
    **_ABSENT,
    "OBJECT_SCHEMA": ObjectKind.SCHEMA,
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
_RELATIONS: Final = frozenset(
    {ObjectKind.TABLE, ObjectKind.INDEX, ObjectKind.SEQUENCE, ObjectKind.VIEW}
)
"""What may lie in another schema than public."""


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
    """Return the name of an object as a statement says it; no schema where it says public, and
    where it is a part of the name of a relation, or of what belongs to one."""
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
    schema = before[-1] if before and before[-1] != PUBLIC else ""
    if schema in SCHEMAS:
        return ObjectName(name, relation, schema)
    if kind in _OF_RELATION:
        beside = kind is ObjectKind.CONSTRAINT
        said = qualified(schema, name) if beside else name
        return ObjectName(said, qualified(schema, relation))
    if kind in _RELATIONS:
        return ObjectName(qualified(schema, name))
    return ObjectName(name, relation, schema)


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
    named = read_object_name(kind, body["object"])
    if kind is ObjectKind.TYPE and named.schema not in SCHEMAS:
        named = ObjectName(qualified(named.schema, named.name))
    return Comment(kind, named, reading.position(first), text)


def read_create_extension(reading: Reading, body: Body) -> MakeBuiltIn:
    """CREATE EXTENSION [IF NOT EXISTS] name [WITH …]: what it says of schema and version is as
    little asked for as the extension itself."""
    reading.read("CreateExtensionStmt", body)
    first = reading.behind(reading.verb + 2, "if not exists")
    name, exists = body["extname"], bool(body.get("if_not_exists"))
    return MakeBuiltIn(ObjectKind.EXTENSION, name, exists, reading.position(first))


def read_create_schema(reading: Reading, body: Body) -> CreateNamespace:
    """CREATE SCHEMA [IF NOT EXISTS] {name [AUTHORIZATION role] | AUTHORIZATION role}"""
    reading.read("CreateSchemaStmt", body)
    first = reading.behind(reading.verb + 2, "if not exists")
    owner = read_role_named(reading, body["authrole"]) if "authrole" in body else None
    name = body.get("schemaname", "" if owner is None else owner.name)
    exists = bool(body.get("if_not_exists"))
    return CreateNamespace(name, exists, reading.position(first), owner)


def read_schema_owner(reading: Reading, body: Body) -> ChangeOwner:
    """ALTER SCHEMA name OWNER TO role"""
    reading.read("AlterOwnerStmt", body)
    named = ObjectNamed(body["object"]["String"]["sval"], reading.position(reading.verb + 2))
    return ChangeOwner("schema", named, read_role_named(reading, body["newowner"]))


def read_rename_schema(reading: Reading, body: Body) -> RenameNamespace:
    """ALTER SCHEMA name RENAME TO name"""
    reading.read("RenameStmt", body)
    position = reading.position(reading.verb + 2)
    return RenameNamespace(body["subname"], body["newname"], position)


def read_drop_schema(reading: Reading, body: Body) -> tuple[DropNamespace, ...]:
    """DROP SCHEMA [IF EXISTS] name, … [CASCADE | RESTRICT]: a statement for each of the names."""
    reading.read("DropStmt", body)
    exists, cascade = bool(body.get("missing_ok")), body["behavior"] == "DROP_CASCADE"
    first = reading.behind(reading.verb + 2, "if exists")
    spans = reading.listed(Span(first, reading.span.end))
    return tuple(
        DropNamespace(node["String"]["sval"], exists, reading.position(span.first), cascade)
        for node, span in zip(body["objects"], spans, strict=True)
    )
