"""Order and operator classes of an index's key: checked, and kept as PostgreSQL writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from leasehold.model.errors import UnknownObject, WrongType
from leasehold.sql.syntax.statements import (
    IndexOrder,
)
from leasehold.values.declared import DECLARED, ENUM
from leasehold.values.types import Type

_DEFAULT_OF: Final[Mapping[str, str]] = {each.name: each.operators for each in (*DECLARED, ENUM)}
_TEXTS: Final = frozenset({"text", "varchar"})
_OTHERS: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(("text_pattern_ops", "varchar_ops", "varchar_pattern_ops"), _TEXTS),
    "bpchar_pattern_ops": frozenset({"char"}),
}
"""Classes that order as the default one does here, where text is compared by code point."""


def written_orders(orders: Sequence[IndexOrder], kinds: Sequence[Type]) -> tuple[str, ...]:
    """Return what is said behind each key column, () where nothing is that is not so anyway. Raises
    UnknownObject (42704), WrongType (42804) for an operator class."""
    written = tuple(_written(order, kind) for order, kind in zip(orders, kinds, strict=True))
    return written if any(written) else ()


def _written(order: IndexOrder, kind: Type) -> str:
    words = []
    if order.operators:
        _check_class(order, kind)
        if order.operators != _DEFAULT_OF.get(kind.name):
            words.append(order.operators)
    if order.descending:
        words += ["DESC", "NULLS LAST"] if order.nulls_first is False else ["DESC"]
    elif order.nulls_first:
        words.append("NULLS FIRST")
    return " ".join(words)


def _check_class(order: IndexOrder, kind: Type) -> None:
    name = order.operators
    if name in _OTHERS:
        takes = kind.name in _OTHERS[name]
    elif name in _DEFAULT_OF.values():
        takes = _DEFAULT_OF.get(kind.name) == name
    else:
        raise UnknownObject(
            f'operator class "{name:.80}" does not exist for access method "btree"',
            position=order.position,
        )
    if not takes:
        raise WrongType(
            f'operator class "{name}" does not accept data type {kind}', position=order.position
        )
