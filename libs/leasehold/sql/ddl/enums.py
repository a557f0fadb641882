"""CREATE TYPE … AS ENUM, ALTER TYPE and DROP TYPE of enum types."""

from __future__ import annotations

from typing import Any, NoReturn

from leasehold.catalog.schema_names import PUBLIC
from leasehold.model.errors import Refused
from leasehold.sql.ddl.drops import CASCADE
from leasehold.sql.ddl.other_objects import read_object_name
from leasehold.sql.ddl.roles import read_role_named
from leasehold.sql.syntax.accounting import Body, handles
from leasehold.sql.syntax.enum_names import ANY_NAME, EnumNames
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
    return CreateEnum(name, labels, reading.enums.new_id(name), position)


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
    return RenameEnum(name, body["newname"], position)


def read_enum_owner(reading: Reading, body: Body) -> ChangeOwner:
    """ALTER TYPE name OWNER TO role"""
    if body["objectType"] != "OBJECT_TYPE":
        said = body["objectType"].removeprefix("OBJECT_").replace("_", " ")
        reading.refuse(f"ALTER {said} … OWNER TO is not supported", reading.verb)
    reading.read("AlterOwnerStmt", body)
    name, position = _named(reading, body["object"]["List"]["items"])
    return ChangeOwner(
        "type", ObjectNamed(name, position), read_role_named(reading, body["newowner"])
    )


def read_drop_enum(reading: Reading, body: Body) -> tuple[DropEnum | DropAbsent, ...]:
    """DROP TYPE [IF EXISTS] name, … [CASCADE | RESTRICT]: a statement for each. There is no type in
    another schema than public, but those that are built in."""
    reading.read("DropStmt", body)
    exists, cascade = bool(body.get("missing_ok")), body["behavior"] == CASCADE
    spans = reading.listed(Span(reading.behind(reading.verb + 2, "if exists"), reading.span.end))
    read: list[DropEnum | DropAbsent] = []
    for node, span in zip(body["objects"], spans, strict=True):
        named, position = read_object_name(ObjectKind.TYPE, node), reading.position(span.first)
        if named.schema:
            read.append(DropAbsent(ObjectKind.TYPE, named, exists, position, DropEnum.tag))
        else:
            read.append(DropEnum(named.name, exists, position, cascade))
    return tuple(read)


def _named(reading: Reading, nodes: list[Any]) -> tuple[str, int]:
    """Return the name that a list spells, and where it stands."""
    *schema, name = names_of(nodes)
    first = reading.behind(reading.verb + 2)
    if schema and schema != [PUBLIC]:
        reading.refuse(f"types lie in schema public, and none in {schema[0]!r:.80}", first)
    return name, reading.position(first)


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
            enums.put(Enumeration(change.type_id, change.name, make_labels(change.labels)))
        case DropEnum():
            enums.drop(change.name)
        case AddLabel() if known is not None and not known.has_label(change.label):
            enums.put(add_label(known, change.label, change.beside, before=change.before))
        case RenameLabel() if known is not None:
            enums.put(rename_label(known, change.label, change.to))
        case RenameEnum() if known is not None:
            enums.drop(change.name)
            enums.put(Enumeration(known.type_id, change.to, known.labels))
        case _:
            return
