"""SET, RESET and SHOW."""

from __future__ import annotations

from typing import Any, Final

from leasehold.sql.session.transactions import modes
from leasehold.sql.syntax.accounting import Body, handles
from leasehold.sql.syntax.names import listed_element
from leasehold.sql.syntax.own_session_words import MODES_ALONE, VERIFYRETRY, modes_alone
from leasehold.sql.syntax.session_statements import Reset, Set, SetModes, Show
from leasehold.sql.syntax.statement import Reading, only

handles("VariableSetStmt", "kind", "name", "args", "jumble_args", "is_local", "location")
handles("VariableShowStmt", "name")

_OF_ROLES: Final = ("role", "session_authorization")
_OWN_NAMES: Final = {"verifyretry": "leasehold.verifyretry"}
_PATH: Final = "search_path"
_WHOLE_INTERVAL: Final = 0x7FFF


def set_or_reset(reading: Reading, body: Body) -> Set | SetModes | Reset:
    alone = next((one for one in reading.parsed.marks if one.kind == MODES_ALONE), None)
    if alone is not None:
        first = reading.span.first
        ever = reading.said(first + 1, "session", "characteristics")
        return SetModes(modes(reading, [], modes_alone(alone.tokens)), ever=ever)
    reading.read("VariableSetStmt", body)
    kind, name = body["kind"], body.get("name", "")
    local = bool(body.get("is_local"))
    if name in _OF_ROLES and kind == "VAR_SET_VALUE":
        return Set(name, _role(body["args"]), local)
    match kind:
        case "VAR_SET_MULTI":
            return _modes(reading, body, name)
        case "VAR_RESET_ALL":
            return Reset(None)
        case "VAR_RESET":
            return Reset(name.lower())
        case "VAR_SET_CURRENT":
            reading.refuse(f"SET {name:.63} FROM CURRENT is not supported", reading.span.first)
    if any(mark.kind == VERIFYRETRY for mark in reading.parsed.marks):
        name = VERIFYRETRY
    name = _OWN_NAMES.get(name.lower(), name.lower())
    if kind == "VAR_SET_DEFAULT":
        value = "UTF8" if reading.word(reading.span.end - 1) == "names" else None
        return Set(name, value, local)
    if name == _PATH:
        return Set(name, ", ".join(map(listed_element, body["args"])), local)
    return Set(name, ", ".join(_value(reading, node) for node in body["args"]), local)


def _modes(reading: Reading, body: Body, name: str) -> SetModes:
    if name not in ("TRANSACTION", "SESSION CHARACTERISTICS"):
        reading.refuse(f"SET {name:.63} is not supported", reading.span.first)
    found = modes(reading, body["args"], reading.parsed.marks)
    return SetModes(found, ever=name != "TRANSACTION")


def _role(args: Any) -> str:
    """Return the name of a role, whose quotes are not of it."""
    return str(only(args[0])[1].get("sval", {}).get("sval", ""))


def _value(reading: Reading, node: Any) -> str:
    kind, body = only(node)
    if kind == "TypeCast":
        return _interval(reading, body)
    if kind != "A_Const":
        reading.refuse(f"{kind} in SET is not supported", reading.span.first)
    if "ival" in body:
        return str(body["ival"].get("ival", 0))
    if "fval" in body:
        return str(body["fval"]["fval"])
    value = str(body["sval"].get("sval", ""))
    location = body.get("location", 0)
    if reading.source.encoded[location : location + 1] != b'"':
        return value
    # A name in quotes keeps them: the elements of a list of names are told apart by them.
    return '"' + value.replace('"', '""') + '"'


def _interval(reading: Reading, body: Body) -> str:
    """Return the text of TIME ZONE INTERVAL '…', whose fields PostgreSQL's parser has looked at."""
    modifiers = body["typeName"].get("typmods", [])
    if modifiers and modifiers[0]["A_Const"]["ival"].get("ival") == _WHOLE_INTERVAL:
        reading.refuse("a precision of an interval is not supported", reading.span.first)
    return f"INTERVAL '{body['arg']['A_Const']['sval'].get('sval', '')}'"


def shown(reading: Reading, body: Body) -> Show:
    reading.read("VariableShowStmt", body)
    name = body["name"]
    if name == "all":
        return Show(None)
    return Show(_OWN_NAMES.get(name.lower(), name.lower()))
