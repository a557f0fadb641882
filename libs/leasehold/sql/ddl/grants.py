"""GRANT and REVOKE of privileges, OWNER TO, REASSIGN OWNED and DROP OWNED."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from leasehold.model.errors import FeatureNotSupported
from leasehold.sql.ddl.roles import read_role_named, read_roles
from leasehold.sql.syntax.accounting import Body, handles
from leasehold.sql.syntax.names import relation_name
from leasehold.sql.syntax.roles.grant_statements import (
    ChangeOwner,
    DropOwned,
    GrantPrivileges,
    ObjectNamed,
    PrivilegeNamed,
    ReassignOwned,
)
from leasehold.sql.syntax.statement import Reading, names_of, only

handles(
    "GrantStmt",
    *("is_grant", "targtype", "objtype", "objects", "privileges", "grantees", "grant_option"),
    *("grantor", "behavior"),
)
handles("AccessPriv", "priv_name", "cols")
handles("ReassignOwnedStmt", "roles", "newrole")
handles("DropOwnedStmt", "roles", "behavior")

_KINDS: Final[dict[str, Literal["table", "sequence", "database", "schema"]]] = {
    "OBJECT_TABLE": "table",
    "OBJECT_SEQUENCE": "sequence",
    "OBJECT_DATABASE": "database",
    "OBJECT_SCHEMA": "schema",
}

_OWNED: Final[Mapping[str, Literal["table", "view", "sequence"]]] = {
    "OBJECT_TABLE": "table",
    "OBJECT_VIEW": "view",
    "OBJECT_SEQUENCE": "sequence",
}


def read_grant(reading: Reading, body: Body) -> GrantPrivileges:
    """GRANT privilege, … ON object, … TO role, … [WITH GRANT OPTION], and REVOKE [GRANT OPTION FOR]
    privilege, … ON object, … FROM role, … [CASCADE | RESTRICT]"""
    reading.read("GrantStmt", body)
    kind = _KINDS.get(body["objtype"])
    everywhere = body["targtype"] == "ACL_TARGET_ALL_IN_SCHEMA"
    if kind is None or (everywhere and kind not in ("table", "sequence")):
        named = body["objtype"].removeprefix("OBJECT_").replace("_", " ").lower()
        reading.refuse(
            f"{'GRANT' if body.get('is_grant') else 'REVOKE'} on a {named} is not supported: it is"
            " on tables, sequences and the database",
            reading.verb,
        )
    objects = tuple(_object(reading, node) for node in body["objects"])
    grantor = read_role_named(reading, body["grantor"]) if "grantor" in body else None
    return GrantPrivileges(
        bool(body.get("is_grant")),
        kind,
        objects,
        _privileges(reading, body.get("privileges", [])),
        read_roles(reading, body["grantees"]),
        bool(body.get("grant_option")),
        body["behavior"] == "DROP_CASCADE",
        everywhere,
        grantor,
    )


def _object(reading: Reading, node: Any) -> ObjectNamed:
    kind, body = only(node)
    if kind == "String":
        return ObjectNamed(body.get("sval", ""), reading.position(reading.verb))
    return ObjectNamed(relation_name(reading, body), reading.source.position(body["location"]))


def _privileges(reading: Reading, nodes: list[Any]) -> tuple[PrivilegeNamed, ...]:
    """Return what is named; ALL without columns is one without a word."""
    position = reading.position(reading.verb + 1)
    found = []
    for node in nodes:
        said = reading.read("AccessPriv", node["AccessPriv"])
        columns = names_of(said.get("cols", []))
        found.append(PrivilegeNamed(said.get("priv_name", ""), columns, position))
    return tuple(found) or (PrivilegeNamed("", (), position),)


def read_change_owner(reading: Reading, body: Body) -> ChangeOwner:
    """ALTER {TABLE | VIEW | SEQUENCE} [IF EXISTS] name OWNER TO role, which stands alone."""
    commands = body["cmds"]
    if len(commands) > 1:
        reading.refuse(
            "OWNER TO stands alone in its statement: other actions are jobs, and it is done at"
            " once",
            reading.verb,
        )
    reading.read("AlterTableStmt", body)
    relation = body["relation"]
    named = ObjectNamed(
        relation_name(reading, relation), reading.source.position(relation["location"])
    )
    kind = _OWNED[body["objtype"]]
    owner = read_role_named(reading, commands[0]["AlterTableCmd"]["newowner"])
    return ChangeOwner(kind, named, owner, bool(body.get("missing_ok")))


def changes_owner(body: Body) -> bool:
    """Return whether ALTER TABLE, VIEW or SEQUENCE has OWNER TO among its actions."""
    if body["objtype"] not in _OWNED:
        return False
    return any(c["AlterTableCmd"]["subtype"] == "AT_ChangeOwner" for c in body["cmds"])


def read_reassign_owned(reading: Reading, body: Body) -> ReassignOwned:
    """REASSIGN OWNED BY role, … TO role"""
    reading.read("ReassignOwnedStmt", body)
    return ReassignOwned(
        read_roles(reading, body["roles"]), read_role_named(reading, body["newrole"])
    )


def read_drop_owned(reading: Reading, body: Body) -> DropOwned:
    """DROP OWNED BY role, … [CASCADE | RESTRICT]"""
    reading.read("DropOwnedStmt", body)
    return DropOwned(read_roles(reading, body["roles"]), body["behavior"] == "DROP_CASCADE")


def refuse_default_privileges(reading: Reading, body: Body) -> GrantPrivileges:
    """Refuse ALTER DEFAULT PRIVILEGES, by its name."""
    raise FeatureNotSupported(
        "ALTER DEFAULT PRIVILEGES is not supported: GRANT when the table is made, or make the"
        " reader a member of pg_read_all_data",
        position=reading.position(reading.verb),
    )
