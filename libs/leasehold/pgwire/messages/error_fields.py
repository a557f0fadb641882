"""An error of the tree → the fields of an ErrorResponse or NoticeResponse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from leasehold.model.errors import LeaseholdError

SCHEMA: Final = "public"
_FROM_DETAIL: Final = (
    ("D", "detail"),
    ("H", "hint"),
    ("P", "position"),
    ("W", "where"),
    ("s", "schema"),
    ("t", "table"),
    ("c", "column"),
    ("d", "type"),
    ("n", "constraint"),
)
INTERNAL: Final = "an internal error; the server's log tells more"


def error_fields(error: BaseException, severity: str = "ERROR") -> dict[str, str]:
    """Return the fields of an error's message. `severity` is ERROR, FATAL (the connection ends) or
    a notice's NOTICE, WARNING …

    What is not of the tree is a defect: its words may hold values and stay here.
    """
    if not isinstance(error, LeaseholdError):
        return {"S": severity, "V": severity, "C": "XX000", "M": INTERNAL}
    fields = {"S": severity, "V": severity, "C": error.sqlstate, "M": error.message}
    fields |= _named(error.detail)
    routine = getattr(error, "routine", None)
    return fields if routine is None else {**fields, "R": routine}


def notice_fields(
    severity: str, sqlstate: str, message: str, detail: Mapping[str, object]
) -> dict[str, str]:
    return {"S": severity, "V": severity, "C": sqlstate, "M": message} | _named(detail)


def _named(detail: Mapping[str, object]) -> dict[str, str]:
    fields = {key: str(detail[name]) for key, name in _FROM_DETAIL if detail.get(name) is not None}
    if "t" in fields:
        fields.setdefault("s", SCHEMA)
    return fields
