"""A number that is a default in the form in which PostgreSQL shows it: with the digits and the type
that it was written with, whatever the column makes of it."""

from __future__ import annotations

from typing import Any, Final

from leasehold.catalog.definitions import literal
from leasehold.model.errors import Refused
from leasehold.sql.expressions.typed import read_constant
from leasehold.sql.functions.polymorphic import quote_literal
from leasehold.sql.syntax import tree
from leasehold.sql.system_catalog.expression_text import NoForm, Part, Shower, brought
from leasehold.values.declared import NUMBERS
from leasehold.values.text_io import to_text
from leasehold.values.types import Type, parse_type, plain_type

_FLOATS: Final = frozenset({"real", "double precision"})
TEXT_BYTES_MAX: Final = 128
"""A longer one is shown by its value: it would travel with each version of the table."""


def show_number(said: tree.Node, kind: Type, value: Any) -> str:
    """Return how PostgreSQL shows a default that was said so, of a column of `kind`, which stores
    `value`; "" where that is what its value shows, or is not known."""
    if kind.name not in NUMBERS or value is None or not _is_number(said):
        return ""
    try:
        text = _show_constant(said, kind)
    except (NoForm, Refused):
        return ""
    return "" if text == literal(kind, value) or len(text.encode()) > TEXT_BYTES_MAX else text


def _show_constant(said: tree.Node, kind: Type) -> str:
    """Return the text of a constant, which is of the column's type where it has none of its own.
    Raises NoForm, and Refused for no value of it."""
    constant, named = said, plain_type(kind)
    if isinstance(said, tree.Cast):
        constant, named = said.operand, parse_type(said.target.name)
    if named.name in _FLOATS and isinstance(constant, tree.Constant) and constant.kind == "string":
        shown = to_text(named, read_constant(named, constant.text))
        return f"{quote_literal(shown)}::{named.name}"
    part = Shower(_no_column).show(said)
    return (brought(part, named) if part.kind is None else part).full


def _is_number(said: tree.Node) -> bool:
    """Say whether it is a constant, or one with a cast to a type of numbers. A sign is its own."""
    if isinstance(said, tree.Cast):
        return not (said.target.modifiers or said.target.array) and _is_constant(said.operand)
    return _is_constant(said)


def _is_constant(said: tree.Node) -> bool:
    return isinstance(said, tree.Constant) and said.kind in ("number", "string")


def _no_column(_parts: tuple[str, ...]) -> Part:
    raise NoForm
