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
    UnknownFunction,
)
from leasehold.sql.binding.bound_tree import Bound, Value
from leasehold.sql.binding.typing import KEYED, PLAIN, as_key, has_order_key
from leasehold.sql.syntax import tree
from leasehold.values.declared import Compared, names_compared, names_where
from leasehold.values.integers import whole
from leasehold.values.types import Type, element_of

_WITHOUT_ORDER: Final = names_compared(Compared.NEVER)
_MANY_FORMS: Final = names_where(lambda each: each.many_forms)
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


def as_sort_key(part: Bound, at: int) -> Bound:
    """A key of an order or a group. Raises UnknownFunction for types without an order."""
    # char(n) is stored without the blanks that fill it up, which count for nothing.
    if part.kind.name in PLAIN or part.kind.name == "char":
        return part
    if part.kind.name in KEYED or has_order_key(part.kind):
        return as_key(part)
    if part.kind.name in _WITHOUT_ORDER:
        raise UnknownFunction(
            f"could not identify an ordering operator for type {part.kind}", position=at
        )
    raise FeatureNotSupported(f"ordering by type {part.kind} is not supported", position=at)


def check_grouped(kind: Type, word: str, at: int) -> None:
    """Values that are equal to PostgreSQL must be equal to SQLite where it looks for equal rows."""
    element = element_of(kind)
    if element is not None and element.name in _MANY_FORMS and word != "GROUP BY":
        raise FeatureNotSupported(f"{word} over {kind} is not supported", position=at)
    if kind.name not in KEYED:
        as_sort_key(Value(kind, None), at)
