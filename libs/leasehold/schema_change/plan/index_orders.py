"""Order and operator classes of an index's key: checked, and kept as PostgreSQL writes them."""

from __future__ import annotations

from collections.abc import Sequence

from leasehold.model.errors import UnknownObject, WrongType
from leasehold.sql.syntax.statements import (
    IndexOrder,
)
from leasehold.values.operator_classes import BY_CLASS_NAME, default_class, takes_type
from leasehold.values.types import Type


def written_orders(orders: Sequence[IndexOrder], kinds: Sequence[Type]) -> tuple[str, ...]:
    """Return what is said behind each key column, () where nothing is that is not so anyway. Raises
    UnknownObject (42704), WrongType (42804) for an operator class."""
    written = tuple(_written(order, kind) for order, kind in zip(orders, kinds, strict=True))
    return written if any(written) else ()


def _written(order: IndexOrder, kind: Type) -> str:
    words = []
    if order.operators:
        _check_class(order, kind)
        usual = default_class(kind)
        if usual is None or order.operators != usual.name:
            words.append(order.operators)
    if order.descending:
        words += ["DESC", "NULLS LAST"] if order.nulls_first is False else ["DESC"]
    elif order.nulls_first:
        words.append("NULLS FIRST")
    return " ".join(words)


def _check_class(order: IndexOrder, kind: Type) -> None:
    name = order.operators
    named = BY_CLASS_NAME.get(name)
    if named is None:
        raise UnknownObject(
            f'operator class "{name:.80}" does not exist for access method "btree"',
            position=order.position,
        )
    if not takes_type(named, kind):
        raise WrongType(
            f'operator class "{name}" does not accept data type {kind}', position=order.position
        )
