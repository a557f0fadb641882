"""A number that is a default in the form in which PostgreSQL shows it: with the digits and the type
that it was written with, whatever the column makes of it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

from leasehold.catalog.definitions import literal
from leasehold.model.errors import Refused
from leasehold.sql.expressions.typed import read_constant
from leasehold.sql.functions.polymorphic import quote_literal
from leasehold.sql.syntax import tree
from leasehold.values.declared import NUMBERS
from leasehold.values.text_io import to_text
from leasehold.values.types import Type, parse_type, plain_type

TEXT_BYTES_MAX: Final = 128
"""A longer one is shown by its value: it would travel with each version of the table."""
_INTEGER_MAX: Final = 2**31 - 1
_BIGINT_MAX: Final = 2**63 - 1


def show_number(said: tree.Node, kind: Type, value: Any) -> str:
    """Return how PostgreSQL shows a default that was said so, of a column of `kind`, which stores
    `value`; "" where that is what its value shows, or where it is no number, with a cast or
    without."""
    if kind.name not in NUMBERS or value is None:
        return ""
    try:
        text = _show(said, kind)
    except Refused:
        return ""
    return "" if text == literal(kind, value) or len(text.encode()) > TEXT_BYTES_MAX else text


def kind_of_number(text: str) -> Type:
    """Return the type of a number that is written so."""
    number = Decimal(text)
    if set(text) & set(".eE") or abs(number) > _BIGINT_MAX:
        return Type("numeric")
    return Type("integer" if abs(number) <= _INTEGER_MAX else "bigint")


def _show(said: tree.Node, kind: Type) -> str:
    """Return the text of a constant, "" of anything else. A text is read as one of the type that it
    is cast to, else the column's. Raises Refused for no value of it."""
    constant, target = said, None
    if isinstance(said, tree.Cast):
        if said.target.modifiers or said.target.array:
            return ""
        constant, target = said.operand, parse_type(said.target.name)
    if not isinstance(constant, tree.Constant) or (target and target.name not in NUMBERS):
        return ""
    if constant.kind == "string":
        return _show_constant(target or plain_type(kind), constant.text)
    if constant.kind != "number":
        return ""
    own = kind_of_number(constant.text)
    text = _show_constant(own, constant.text)
    return text if target in (None, own) else f"({text})::{target.name}"


def _show_constant(kind: Type, text: str) -> str:
    value = to_text(kind, read_constant(kind, text))
    bare = kind.name == "integer" or (kind.name == "numeric" and "." in value)
    return value if bare and value[0].isdigit() else f"{quote_literal(value)}::{kind.name}"
