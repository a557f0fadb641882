"""Constants in a statement → storage values: PostgreSQL's input rules for the types known here."""

from __future__ import annotations

import math
from typing import Any, Final

from sqlglot import exp

from leasehold.model.errors import FeatureNotSupported, InvalidText, OutOfRange, WrongType
from leasehold.schema.types import INTEGER_BITS, Type, to_storage
from leasehold.sql.parse import only, type_of

_TRUE: Final = frozenset({"t", "tr", "tru", "true", "y", "ye", "yes", "on", "1"})
_FALSE: Final = frozenset({"f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0"})
_DIGITS_MAX: Final = 400  # no double has more; int() of a longer text would be slow


def from_text(kind: Type, text: str) -> Any:
    """The storage value of a quoted constant, e.g. integer '3', boolean 'yes'.

    Raises InvalidText, OutOfRange or TooLong.
    """
    trimmed = text.strip()
    if kind.name in INTEGER_BITS:
        sign, digits = ("-", trimmed[1:]) if trimmed[:1] == "-" else ("", trimmed.lstrip("+"))
        if not (digits.isascii() and digits.isdecimal()) or trimmed[:2] == "++":
            raise InvalidText(f"{text!r:.80} is not a valid {kind}")
        return to_storage(kind)(integer(sign + digits))
    if kind.name == "double precision":
        return to_storage(kind)(double(trimmed))
    if kind.name == "boolean":
        word = trimmed.lower()
        if word not in _TRUE and word not in _FALSE:
            raise InvalidText(f"{text!r:.80} is not a valid boolean")
        return int(word in _TRUE)
    return to_storage(kind)(text if kind.name in ("text", "varchar") else trimmed)


def integer(digits: str) -> int:
    """Raises OutOfRange for more digits than any type holds."""
    if len(digits) > _DIGITS_MAX:
        raise OutOfRange(f"a number of {len(digits)} digits is out of range")
    return int(digits)


def double(text: str) -> float:
    """A finite double. Raises InvalidText or OutOfRange."""
    try:
        number = float(text) if "_" not in text and text.isascii() else math.nan
    except ValueError as error:
        raise InvalidText(f"{text!r:.80} is not a valid double precision") from error
    if not math.isfinite(number):
        raise OutOfRange(f"{text!r:.80} is not a finite double precision")
    return number


def constant(node: exp.Expression, kind: Type) -> Any:
    """The storage value of a DEFAULT: literal, negative number, boolean, NULL, CAST of those.

    Raises FeatureNotSupported for anything that would have to be computed, WrongType when the
    constant is of another type, InvalidText, OutOfRange and TooLong as the type says.
    """
    match node:
        case exp.Null():
            return None
        case exp.Paren():
            only(node, "this")
            return constant(node.this, kind)
        case exp.Boolean():
            return to_storage(kind)(bool(node.this))
        case exp.Literal() if node.is_string:
            return from_text(kind, node.this)
        case exp.Literal():
            return _number(node.this, kind)
        case exp.Neg(this=exp.Literal() as number) if not number.is_string:
            return _number("-" + number.this, kind)
        case exp.Cast() if type(node) is exp.Cast:
            return _cast(node, kind)
    raise FeatureNotSupported(
        f"DEFAULT {node.sql('postgres')!r:.80}: only a constant can be a default"
    )


def _number(text: str, kind: Type) -> Any:
    if kind.name not in INTEGER_BITS and kind.name != "double precision":
        raise WrongType(f"the number {text:.40} can't be stored as {kind}")
    if text.lstrip("-").isdecimal():
        return to_storage(kind)(integer(text))
    if kind.name in INTEGER_BITS:
        raise WrongType(f"the number {text:.40} can't be stored as {kind} without rounding")
    return double(text)


def _cast(node: exp.Cast, kind: Type) -> Any:
    only(node, "this", "to")
    named = type_of(node.args["to"])
    if named.name != kind.name and not _widens(named, kind):
        raise WrongType(f"a constant of type {named} can't be the default of a column of {kind}")
    value = constant(node.this, named)
    # The value has storage form; range and length of the column's own type still count.
    if value is None or named == kind:
        return value
    if kind.name in ("boolean", "date", "timestamp", "timestamptz"):
        return value
    return to_storage(kind)(value)


def _widens(named: Type, kind: Type) -> bool:
    numbers = (*INTEGER_BITS, "double precision")
    if named.name in numbers and kind.name in numbers:
        return numbers.index(named.name) <= numbers.index(kind.name)
    return {named.name, kind.name} <= {"text", "varchar"}


def default_value(text: str, kind: Type) -> Any:
    """The storage value of a default given as SQL text. Raises as `constant` does."""
    from leasehold.sql.parse import tokens_of, tree_of

    return constant(tree_of(text, tokens_of(text)), kind)
