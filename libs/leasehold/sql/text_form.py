"""Quoted constants → storage values: PostgreSQL's input rules for the types known here."""

from __future__ import annotations

import math
from typing import Any, Final

from leasehold.model.errors import InvalidText, OutOfRange
from leasehold.schema.types import INTEGER_BITS, Type, to_storage

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
