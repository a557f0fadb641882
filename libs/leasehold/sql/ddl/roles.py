"""CREATE, ALTER and DROP ROLE, USER and GROUP, and GRANT and REVOKE of roles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from leasehold.model.errors import FeatureNotSupported, InvalidArgument, SyntaxInvalid
from leasehold.sql.ddl.passwords import is_verifier
from leasehold.sql.syntax.accounting import Body, handles
from leasehold.sql.syntax.positions import refused_at
from leasehold.sql.syntax.roles.role_statements import (
    AlterRole,
    CreateRole,
    DropRole,
    GrantRole,
    RenameRole,
    RoleNamed,
    RoleOptions,
)
from leasehold.sql.syntax.statement import Reading, only
from leasehold.values.date_text import timestamp_of_text
from leasehold.values.time_zone import UTC, zone_of

handles("CreateRoleStmt", "stmt_type", "role", "options")
handles("AlterRoleStmt", "role", "options", "action")
handles("DropRoleStmt", "roles", "missing_ok")
handles("GrantRoleStmt", "granted_roles", "grantee_roles", "is_grant", "opt", "grantor", "behavior")
handles("RoleSpec", "roletype", "rolename", "location")

_SWITCHES: Final[Mapping[str, str]] = {
    "canlogin": "may_log_in",
    "superuser": "superuser",
    "inherit": "inherits",
    "createrole": "may_create_roles",
    "createdb": "may_create_databases",
}
_REFUSED_SWITCHES: Final[Mapping[str, str]] = {
    "isreplication": "REPLICATION: whoever reads the log does so by Kafka's rights; a role with it",
    "bypassrls": "BYPASSRLS: there is no row security, so nothing to bypass; a role with it",
}
_LISTS: Final[Mapping[str, str]] = {
    "addroleto": "groups",
    "rolemembers": "members",
    "adminmembers": "admins",
}
IN_THE_CLEAR: Final = (
    "a password may not be sent to the master in the clear: it would stay in the log of requests."
    " Say the statement in a SQL session, which makes a verifier of it, or give the verifier"
    " SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey> as the password"
)


def read_role_named(reading: Reading, body: Body) -> RoleNamed:
    """Return the role that a statement names."""
    reading.read("RoleSpec", body)
    position = reading.source.position(body.get("location", 0))
    match body["roletype"]:
        case "ROLESPEC_CSTRING":
            return RoleNamed(body["rolename"], position=position)
        case "ROLESPEC_PUBLIC":
            return RoleNamed(is_public=True, position=position)
        case "ROLESPEC_CURRENT_USER" | "ROLESPEC_CURRENT_ROLE":
            return RoleNamed(is_actor=True, position=position)
    raise FeatureNotSupported(
        "SESSION_USER is not supported here: name the role, or CURRENT_USER", position=position
    )


def read_roles(reading: Reading, nodes: list[Any]) -> tuple[RoleNamed, ...]:
    return tuple(read_role_named(reading, only(node)[1]) for node in nodes)


def read_create_role(reading: Reading, body: Body) -> CreateRole:
    """CREATE {ROLE | USER | GROUP} name [WITH] option …"""
    reading.read("CreateRoleStmt", body)
    options = _read_options(reading, body.get("options", []))
    if body["stmt_type"] == "ROLESTMT_USER" and options.may_log_in is None:
        options = _with(options, may_log_in=True)
    return CreateRole(body["role"], options, reading.position(reading.verb + 2))


def read_alter_role(reading: Reading, body: Body) -> AlterRole | GrantRole:
    """ALTER {ROLE | USER} name option …, and ALTER GROUP name {ADD | DROP} USER member, …"""
    reading.read("AlterRoleStmt", body)
    role = read_role_named(reading, body["role"])
    options = _read_options(reading, body.get("options", []))
    if reading.said(reading.verb, "alter", "group"):
        return GrantRole((role,), options.members, body["action"] > 0, alters=True)
    return AlterRole(role, options)


def read_rename_role(reading: Reading, body: Body) -> RenameRole:
    """ALTER {ROLE | USER | GROUP} name RENAME TO name"""
    reading.read("RenameStmt", body)
    return RenameRole(body["subname"], body["newname"], reading.position(reading.verb + 2))


def read_drop_role(reading: Reading, body: Body) -> DropRole:
    """DROP {ROLE | USER | GROUP} [IF EXISTS] name, …"""
    reading.read("DropRoleStmt", body)
    return DropRole(read_roles(reading, body["roles"]), bool(body.get("missing_ok")))


def read_grant_role(reading: Reading, body: Body) -> GrantRole:
    """GRANT role, … TO member, … [WITH ADMIN OPTION] [GRANTED BY …], and REVOKE."""
    reading.read("GrantRoleStmt", body)
    position = reading.position(reading.verb + 1)
    admin = False
    for node in body.get("opt", []):
        option = node["DefElem"]
        where = reading.source.position(option.get("location", 0))
        if option["defname"] != "admin":
            named = option["defname"].upper()
            raise FeatureNotSupported(f"WITH {named} is not supported", position=where)
        value = bool(option["arg"]["Boolean"].get("boolval"))
        if body.get("is_grant") and not value:
            raise FeatureNotSupported("WITH ADMIN FALSE is not supported", position=where)
        admin = True
    roles = []
    for node in body["granted_roles"]:
        granted = node["AccessPriv"]
        if "cols" in granted or "priv_name" not in granted:
            raise SyntaxInvalid(
                "column names cannot be included in GRANT/REVOKE ROLE", position=position
            )
        roles.append(RoleNamed(granted["priv_name"], position=position))
    grantor = read_role_named(reading, body["grantor"]) if "grantor" in body else None
    members = read_roles(reading, body["grantee_roles"])
    return GrantRole(tuple(roles), members, bool(body.get("is_grant")), admin, grantor)


# ------------------------------------------------------------------ options


def _with(options: RoleOptions, **changed: Any) -> RoleOptions:
    said = {name: getattr(options, name) for name in RoleOptions.__slots__}
    return RoleOptions(**{**said, **changed})


def _read_options(reading: Reading, nodes: list[Any]) -> RoleOptions:
    said: dict[str, Any] = {}
    for node in nodes:
        option = node["DefElem"]
        position = reading.source.position(option.get("location", 0))
        found = _read_option(reading, option, position)
        if found.keys() & said.keys():
            raise SyntaxInvalid("conflicting or redundant options", position=position)
        said |= found
    return RoleOptions(**said)


def _read_option(reading: Reading, option: Body, position: int) -> dict[str, Any]:
    name, arg = option["defname"], option.get("arg", {})
    if name in _SWITCHES:
        return {_SWITCHES[name]: _switch(arg)}
    if name in _REFUSED_SWITCHES:
        if _switch(arg):
            words = f"{_REFUSED_SWITCHES[name]} is not supported"
            raise FeatureNotSupported(words, position=position)
        return {}
    if name in _LISTS:
        return {_LISTS[name]: read_roles(reading, arg["List"]["items"])}
    if name in _VALUES:
        with refused_at(position):
            return _VALUES[name](reading, arg)
    raise FeatureNotSupported(
        f"the role option {name.upper()!r:.40} is not supported", position=position
    )


def _switch(arg: Body) -> bool:
    return bool(arg["Boolean"].get("boolval"))


def _text(arg: Body) -> str:
    """Return the text of an option. Raises SyntaxInvalid for a parameter: the parser takes one in
    the place of any password, PostgreSQL does not."""
    if "ParamRef" in arg:
        number = arg["ParamRef"].get("number", 0)
        raise SyntaxInvalid(f'syntax error at or near "${number}"')
    text: str = arg["String"].get("sval", "")
    return text


def _connections(reading: Reading, arg: Body) -> dict[str, Any]:
    most = arg["Integer"].get("ival", 0)
    if most < -1:
        raise InvalidArgument(f"invalid connection limit: {most}")
    return {"connections_max": most}


def _password(reading: Reading, arg: Body) -> dict[str, Any]:
    if not arg:
        return {"password": ""}
    said = _text(arg)
    if not said:
        return {"password": "", "empty_password": True}
    if not is_verifier(said):
        raise FeatureNotSupported(IN_THE_CLEAR)
    return {"password": said}


def _valid_until(reading: Reading, arg: Body) -> dict[str, Any]:
    text = _text(arg)
    if text.strip().lower() == "infinity":
        return {"valid_until_us": 0}
    zone = zone_of(reading.zone) if reading.zone else UTC
    # 0 stands for no end, and what ends at the epoch has ended likewise.
    return {"valid_until_us": timestamp_of_text(text, zoned=True, session=zone) or -1}


_VALUES: Final[Mapping[str, Callable[[Reading, Body], dict[str, Any]]]] = {
    "connectionlimit": _connections,
    "password": _password,
    "validUntil": _valid_until,
    "sysid": lambda reading, arg: {"numbered": True},
}
