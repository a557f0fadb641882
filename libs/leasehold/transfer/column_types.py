"""Types that a column gets where there is none of the source's name, and what reads values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from leasehold.model.errors import FeatureNotSupported
from leasehold.transfer.source_tables import SourceColumn
from leasehold.values.storage import to_json
from leasehold.values.text_io import from_text
from leasehold.values.types import Type, array_of, parse_type


class OtherType(NamedTuple):
    """The type that a column gets instead. `read` makes the source's expression from its name."""

    type: str
    words: str = ""
    read: Callable[[str], str] = str


_OTHERWISE: Final[Mapping[str, OtherType]] = {
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
    "real": _number,
    "double precision": _number,
}


def find_reader(type_name: str) -> Callable[[str], Any] | None:
    """Return what makes a change request's value of PostgreSQL's text form; None: the text is one
    already."""
    if type_name.endswith("[]"):
        try:
            kind = parse_type(type_name)
        except FeatureNotSupported:  # of an enum type, whose values are texts
            kind = array_of(Type("text"))
        return lambda text: to_json(kind, from_text(kind, text))
    return _READERS.get(type_name)
