"""Finds types in what is to be written that a process of an earlier release does not know.

A node that reads of a column's type that it does not know stops (`newer_release.py`), and one that
can't compile an expression would keep other index entries than the rest. So a master writes neither
before all processes know such types (`model/features.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from leasehold.model.features import Feature
from leasehold.values.dates import is_infinite
from leasehold.values.declared import DECLARED, ENUM
from leasehold.values.types import DATES_AND_TIMESTAMPS

ARRAY: Final = "[]"
_NEWER: Final = {
    ARRAY: Feature.COLUMN_TYPES,
    ENUM.name: ENUM.known_by,
    **{
        name: each.known_by
        for each in DECLARED
        if each.known_by
        for name in (each.name, each.pg_name, *each.synonyms)
        if name
    },
}
_CAST: Final = re.compile(
    r"(?:::\s*+|\bas\s++)\"?(?P<cast>[a-z_][a-z0-9_ ]*+)(?:\([0-9, ]*+\))?[ ]*+(?P<bound>\[)?",
    re.IGNORECASE | re.ASCII,
)
_NOT_IN_WORDS: Final = re.compile(r"[^a-z0-9_]")
_LOOKED_AT: Final = 40  # characters before a quote: more than any type's name and its digits
_NO_EXPRESSIONS: Final = frozenset(
    {
        "sql",
        "table",
        "name",
        "alias",
        "subject",
        "error",
        "verdict",
        "default",
        "missing",
        "kind",
        "enum",
    }
)
"""Names of what is text of a user's own, or of people's, in the bodies of tables and jobs."""


def find_newer_type(bodies: Iterable[Any], known: int) -> str:
    """Return a type in the wire forms of tables and jobs that a process which knows no more than
    `known` can't read; "" for none."""
    found = (name for body in bodies for name in _types_in(body))
    return next((name for name in found if _NEWER.get(name, 0) > known), "")


def has_equal_nulls(body: Any) -> bool:
    """Say whether the wire form of a table or a job has a unique index to which NULLs are equal."""
    if isinstance(body, Mapping):
        if body.get("equal_nulls") is True:
            return True
        return any(has_equal_nulls(value) for value in body.values())
    return isinstance(body, list | tuple) and any(map(has_equal_nulls, body))


def says_field(body: Any, name: str) -> bool:
    """Say whether the wire form of a table or a job has a field of that name, which is left out
    where it says nothing."""
    if isinstance(body, Mapping):
        return name in body or any(says_field(value, name) for value in body.values())
    return isinstance(body, list | tuple) and any(says_field(each, name) for each in body)


def has_infinite_time(body: Any) -> bool:
    """Say whether the wire form of a table or a job has an infinite date or timestamp for a
    default, or says infinity in an expression, of which types it may be."""
    if isinstance(body, Mapping):
        if str(body.get("type")) in DATES_AND_TIMESTAMPS and _is_infinite(body.get("default")):
            return True
        return any(has_infinite_time(v) for name, v in body.items() if name not in _NO_EXPRESSIONS)
    if isinstance(body, str):
        return "infinity" in body.lower()
    return isinstance(body, list | tuple) and any(map(has_infinite_time, body))


def _is_infinite(default: Any) -> bool:
    return isinstance(default, int) and is_infinite(default)


def _types_in(body: Any) -> Iterator[str]:
    if isinstance(body, Mapping):
        for name, value in body.items():
            if name == "type":
                yield str(value).removesuffix(ARRAY)
                yield ARRAY if str(value).endswith(ARRAY) else ""
            elif name not in _NO_EXPRESSIONS:
                yield from _types_in(value)
    elif isinstance(body, list | tuple):
        for each in body:
            yield from _types_in(each)
    elif isinstance(body, str):
        yield from _types_named(body)


def _types_named(expression: str) -> Iterator[str]:
    """Give what an expression casts to, with the words behind it cut off, and what its constants
    are of."""
    for found in _CAST.finditer(expression):
        words = found["cast"].lower().split()
        yield ARRAY if found["bound"] or words[1:2] == ["array"] else words[0]
    for piece in expression.split("'")[:-1]:
        before = piece[-_LOOKED_AT:].rstrip().lower()
        if before.endswith(")"):  # time(3) '10:20'
            before = before.rpartition("(")[0].rstrip()
        yield _NOT_IN_WORDS.split(before)[-1]
