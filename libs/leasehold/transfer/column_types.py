"""Types that a column gets where there is none of the source's name, and what reads values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from leasehold.transfer.source_tables import SourceColumn


class OtherType(NamedTuple):
    """The type that a column gets instead. `read` makes the source's expression from its name."""

    type: str
    words: str = ""
    read: Callable[[str], str] = str


_OTHERWISE: Final[Mapping[str, OtherType]] = {
    # By the text: 0.1 stays 0.1, where a cast gives the double next to the real.
    "real": OtherType("double precision", ", by its digits", lambda c: f"{c}::text::float8"),
    "json": OtherType(
        "jsonb", ": order, blanks and repeated names of objects go", lambda c: f"{c}::jsonb"
    ),
    "name": OtherType("text", "", lambda c: f"{c}::text"),
    "oid": OtherType("bigint", "", lambda c: f"{c}::bigint"),
    "citext": OtherType("text", ": it compares letter by letter", lambda c: f"{c}::text"),
}


def find_other(column: SourceColumn) -> OtherType | None:
    """Return the type to be tried where the column's own is not taken."""
    if column.labels:
        return OtherType("text", " with a CHECK of its labels", lambda c: f"{c}::text")
    return _OTHERWISE.get(column.type)


def _number(text: str) -> float | str:
    return text if text in ("NaN", "Infinity", "-Infinity") else float(text)


_READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "smallint": int,
    "integer": int,
    "bigint": int,
    "boolean": lambda text: text in ("t", "true"),
    "double precision": _number,
}


def find_reader(type_name: str) -> Callable[[str], Any] | None:
    """Return what makes a change request's value of PostgreSQL's text form; None: the text is one
    already."""
    return _READERS.get(type_name)
