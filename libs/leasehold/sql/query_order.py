"""What ORDER BY, GROUP BY and set operations have in common: places in the result, and types whose
values can be told apart."""

from __future__ import annotations

from typing import Final

from leasehold.model.errors import (
    AmbiguousColumn,
    FeatureNotSupported,
    InvalidColumnReference,
    Refused,
    SyntaxInvalid,
)
from leasehold.schema.types import Type, element_of
from leasehold.sql import query_tree as tree
from leasehold.sql.query_bind import sortable
from leasehold.sql.query_bound import Value
from leasehold.sql.query_typing import KEYED
from leasehold.sql.whole import whole

_MANY_FORMS: Final = frozenset({"numeric", "double precision", "interval", "jsonb"})
"""Of which equal values may have storage values that differ."""


def number_of(node: tree.Node, width: int, word: str = "ORDER BY") -> int | None:
    """ORDER BY 2 → 1. Raises InvalidColumnReference."""
    if not isinstance(node, tree.Constant) or node.kind == "null":
        return None
    if node.kind != "number" or not node.text.lstrip("-").isdecimal():
        raise SyntaxInvalid(f"non-integer constant in {word}", position=node.at)
    number = whole(node.text.lstrip("-")) * (-1 if node.text.startswith("-") else 1)
    if not 1 <= number <= width:
        raise InvalidColumnReference(
            f"{word} position {number} is not in select list", position=node.at
        )
    return number - 1


def ambiguous_order(node: tree.Name) -> Refused:
    return AmbiguousColumn(f"{node.parts[0]!r} is ambiguous", position=node.at)


def check_grouped(kind: Type, word: str, at: int) -> None:
    """Values that are equal to PostgreSQL must be equal to SQLite where it looks for equal rows."""
    if kind.name in KEYED and kind.scale is None and word in ("INTERSECT", "EXCEPT"):
        raise FeatureNotSupported(
            f"{word} over numeric without a scale is not supported: CAST it to numeric(p, s)",
            position=at,
        )
    element = element_of(kind)
    if element is not None and element.name in _MANY_FORMS and word != "GROUP BY":
        raise FeatureNotSupported(f"{word} over {kind} is not supported", position=at)
    if kind.name not in KEYED:
        sortable(Value(kind, None), at)
