"""Which types a process of an earlier release does not know are in what is to be written.

A node that reads of a column's type that it does not know stops (`newer_release.py`), and one that
can't compile an expression would keep other index entries than the rest. So a master writes neither
before all processes know such types (`model/ids.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from leasehold.model.ids import COLUMN_TYPES
from leasehold.values.declared import DECLARED

_NEWER: Final = {
    name: each.known_by
    for each in DECLARED
    if each.known_by
    for name in (each.name, each.pg_name, *each.synonyms)
    if name
}
_NEWER["[]"] = COLUMN_TYPES
_NAMES: Final = "|".join(map(re.escape, sorted(_NEWER.keys() - {"[]"}, key=len, reverse=True)))
_IN_EXPRESSION: Final = re.compile(
    r"(?:::\s*|\bas\s+)(?P<array>[a-z_][a-z0-9_ ]*(?:\([0-9, ]*\))?\s*(?:\[|\barray\b))"
    rf"|(?:::\s*|\bas\s+)\"?(?P<cast>{_NAMES})\b|\b(?P<constant>{_NAMES})\s*(?:\([0-9]\)\s*)?'",
    re.IGNORECASE | re.ASCII,
)
_NO_EXPRESSIONS: Final = frozenset(
    {"sql", "table", "name", "alias", "subject", "error", "verdict", "default", "missing", "kind"}
)
"""Names of what is text of a user's own, or of people's, in the bodies of tables and jobs."""


def find_newer_type(bodies: Iterable[Any], known: int) -> str:
    """Return a type in the wire forms of tables and jobs that a process which knows no more than
    `known` can't read; "" for none."""
    found = (name for body in bodies for name in _types_in(body))
    return next((name for name in found if _NEWER[name] > known), "")


def _types_in(body: Any) -> Iterator[str]:
    if isinstance(body, Mapping):
        for name, value in body.items():
            if name == "type":
                yield from _of_column(str(value))
            elif name not in _NO_EXPRESSIONS:
                yield from _types_in(value)
    elif isinstance(body, list | tuple):
        for each in body:
            yield from _types_in(each)
    elif isinstance(body, str):
        for found in _IN_EXPRESSION.finditer(body):
            yield "[]" if found["array"] else (found["cast"] or found["constant"]).lower()


def _of_column(name: str) -> Iterator[str]:
    yield from (
        part
        for part in ("[]" if name.endswith("[]") else "", name.removesuffix("[]"))
        if part in _NEWER
    )
