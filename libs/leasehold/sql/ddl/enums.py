"""CREATE TYPE … AS ENUM, ALTER TYPE and DROP TYPE of enum types."""

from __future__ import annotations

from typing import Any, NoReturn

from leasehold.catalog.namespaces import qualified
from leasehold.catalog.schema_names import PUBLIC, SCHEMAS
from leasehold.model.errors import Refused
from leasehold.sql.ddl.drops import CASCADE
from leasehold.sql.ddl.other_objects import read_object_name, read_schema_owner
from leasehold.sql.ddl.roles import read_role_named
from leasehold.sql.syntax.accounting import Body, handles
from leasehold.sql.syntax.enum_names import ANY_NAME, EnumNames
from leasehold.sql.syntax.names import listed_name, listed_schema
from leasehold.sql.syntax.object_statements import (
    AddLabel,
    CreateEnum,
    DropAbsent,
    DropEnum,
    ObjectKind,
    RenameEnum,
    RenameLabel,
)
from leasehold.sql.syntax.roles.grant_statements import ChangeOwner, ObjectNamed
from leasehold.sql.syntax.statement import Reading, Span, names_of
from leasehold.sql.syntax.statements import (
    Change,
)
from leasehold.values.enums import Enumeration, add_label, make_labels, rename_label

handles("CreateEnumStmt", "typeName", "vals")
handles(
    "AlterEnumStmt",
    *("typeName", "oldVal", "newVal", "newValNeighbor", "newValIsAfter", "skipIfNewValExists"),
)
handles("AlterOwnerStmt", "objectType", "object", "newowner", "relation")

_OTHER_KINDS = "the types that can be made are enums: CREATE TYPE … AS ENUM (…)"


def read_create_enum(reading: Reading, body: Body) -> CreateEnum:
    """CREATE TYPE name AS ENUM ('label', …)"""
    reading.read("CreateEnumStmt", body)
    name, position = _named(reading, body["typeName"])
    labels = names_of(body.get("vals", []))
    *before, _ = names_of(body["typeName"])
    schema = "" if before in ([], [PUBLIC]) else before[0]
    return CreateEnum(name, labels, reading.enums.new_id(name), position, schema)


def refuse_other_type(reading: Reading, body: Body) -> NoReturn:
    """Refuse CREATE TYPE and CREATE DOMAIN of what is no enum."""
    reading.refuse(_OTHER_KINDS, reading.verb)


def read_alter_enum(reading: Reading, body: Body) -> AddLabel | RenameLabel:
    """ALTER TYPE name ADD VALUE [IF NOT EXISTS] 'label' [{BEFORE | AFTER} 'other'], and
    ALTER TYPE name RENAME VALUE 'label' TO 'other'"""
    reading.read("AlterEnumStmt", body)
    name, position = _named(reading, body["typeName"])
    if "oldVal" in body:
        return RenameLabel(name, body["oldVal"], body["newVal"], position)
    beside = body.get("newValNeighbor")
    before = beside is not None and not body.get("newValIsAfter")
    exists = bool(body.get("skipIfNewValExists"))
    return AddLabel(name, body.get("newVal", ""), beside or "", before, exists, position)


def read_rename_enum(reading: Reading, body: Body) -> RenameEnum:
    """ALTER TYPE name RENAME TO name"""
    reading.read("RenameStmt", body)
    name, position = _named(reading, body["object"]["List"]["items"])
    *before, _ = names_of(body["object"]["List"]["items"])
    schema = "" if before in ([], [PUBLIC]) else before[0]
    return RenameEnum(name, qualified(schema, body["newname"]), position, schema)


def read_move_enum(reading: Reading, body: Body) -> RenameEnum:
    """ALTER TYPE name SET SCHEMA schema"""
    nodes = body["object"]["List"]["items"]
    name, position = _named(reading, nodes)
    schema = listed_schema(reading, body["newschema"])
    return RenameEnum(name, qualified(schema, names_of(nodes)[-1]), position, schema)


def read_enum_owner(reading: Reading, body: Body) -> ChangeOwner:
    """ALTER TYPE name OWNER TO role, and ALTER SCHEMA name OWNER TO role"""
    if body["objectType"] == "OBJECT_SCHEMA":
        return read_schema_owner(reading, body)
    if body["objectType"] != "OBJECT_TYPE":
        said = body["objectType"].removeprefix("OBJECT_").replace("_", " ")
        reading.refuse(f"ALTER {said} … OWNER TO is not supported", reading.verb)
    reading.read("AlterOwnerStmt", body)
    name, position = _named(reading, body["object"]["List"]["items"])
    return ChangeOwner(
        "type", ObjectNamed(name, position), read_role_named(reading, body["newowner"])
    )


def read_drop_enum(reading: Reading, body: Body) -> tuple[DropEnum | DropAbsent, ...]:
    """DROP TYPE [IF EXISTS] name, … [CASCADE | RESTRICT]: a statement for each. In schemas that
    are built in, but for public, are those alone that are built in."""
    reading.read("DropStmt", body)
    exists, cascade = bool(body.get("missing_ok")), body["behavior"] == CASCADE
    spans = reading.listed(Span(reading.behind(reading.verb + 2, "if exists"), reading.span.end))
    read: list[DropEnum | DropAbsent] = []
    for node, span in zip(body["objects"], spans, strict=True):
        named, position = read_object_name(ObjectKind.TYPE, node), reading.position(span.first)
        if named.schema in SCHEMAS:
            read.append(DropAbsent(ObjectKind.TYPE, named, exists, position, DropEnum.tag))
        else:
            name = qualified(named.schema, named.name)
            read.append(DropEnum(name, exists, position, cascade))
    return tuple(read)


def _named(reading: Reading, nodes: list[Any]) -> tuple[str, int]:
    """Return the name that a list spells, behind its schema unless that is public, and where it
    stands."""
    first = reading.behind(reading.verb + 2)
    return listed_name(reading, names_of(nodes), first), reading.position(first)


def follow_enums(enums: EnumNames, change: Change) -> None:
    """Let names mean what they do behind a statement. What is wrong with it its plan will say."""
    if enums is ANY_NAME:
        return
    try:
        _follow(enums, change)
    except Refused:
        return


def _follow(enums: EnumNames, change: Change) -> None:
    known = enums.find(getattr(change, "name", ""))
    match change:
        case CreateEnum():
            labels = make_labels(change.labels)
            enums.put(Enumeration(change.type_id, change.name, labels, change.schema))
        case DropEnum():
            enums.drop(change.name)
        case AddLabel() if known is not None and not known.has_label(change.label):
            enums.put(add_label(known, change.label, change.beside, before=change.before))
        case RenameLabel() if known is not None:
            enums.put(rename_label(known, change.label, change.to))
        case RenameEnum() if known is not None:
            enums.drop(change.name)
            enums.put(Enumeration(known.type_id, change.to, known.labels, change.schema))
        case _:
            return
