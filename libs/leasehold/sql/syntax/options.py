"""Options of statements, each a name and what is said of it."""

from __future__ import annotations

from typing import Final

from leasehold.sql.syntax.accounting import Body, handles, refuse_unread
from leasehold.sql.syntax.source import Source

_OPTION: Final = handles(
    "DefElem",
    *("defname", "arg", "defaction", "location"),
    defnamespace="an option of a schema",
)


def read_option(source: Source, body: Body) -> str:
    """Return an option's name. Raises FeatureNotSupported for one of a namespace."""
    if not body.keys() <= _OPTION:
        refuse_unread(source, "DefElem", body)
    return str(body["defname"])


def said_by(body: Body) -> str | None:
    """The argument of an option, a word in lower case or digits; None: nothing is said."""
    if "arg" not in body:
        return None
    ((kind, value),) = body["arg"].items()
    match kind:
        case "String":
            return str(value.get("sval", "")).lower()
        case "Integer":
            return str(value.get("ival", 0))
        case "Boolean":
            return "true" if value.get("boolval") else "false"
    return ""
