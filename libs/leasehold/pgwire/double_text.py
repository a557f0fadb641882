"""double precision ↔ text as PostgreSQL writes and reads it."""

from __future__ import annotations

import math
import re
from typing import Final

from leasehold.model.errors import InvalidText, OutOfRange

DIGITS_MAX: Final = 17
"""So many digits tell every double from its neighbours."""
_CLOSE_LEAST: Final = 2.0**53
_CLOSE_MOST: Final = 1e41
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WORDS: Final = {
    **dict.fromkeys(("inf", "infinity", "+inf", "+infinity"), math.inf),
    **dict.fromkeys(("-inf", "-infinity"), -math.inf),
}
_NAN: Final = "nan"
_BLANKS: Final = " \t\n\r\v\f"


def double_text(value: float) -> str:
    """The shortest text that lies nearer to this double than to any other."""
    if not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    text = repr(value)
    size = abs(value)
    if size >= 1e15:
        if _CLOSE_LEAST <= size < _CLOSE_MOST:
            text = _not_halfway(value, text)
        if "e" not in text:  # repr writes an exponent from 1e16 on, PostgreSQL from 1e15
            text = _with_exponent(text.removesuffix(".0"))
    return text.removesuffix(".0")


def double_of_text(text: str) -> float:
    """Raises InvalidText; OutOfRange for what no double is near to, and for NaN, which can't be
    stored."""
    trimmed = text.strip(_BLANKS)
    if not _NUMBER.fullmatch(trimmed):
        word = trimmed.lower()
        if word == _NAN:
            raise OutOfRange("NaN can't be stored as double precision")
        if word not in _WORDS:
            raise InvalidText(f'invalid input syntax for type double precision: "{text:.80}"')
        return _WORDS[word]
    value = float(trimmed)
    lost = value == 0 and any(digit in "123456789" for digit in re.split("[eE]", trimmed)[0])
    if lost or math.isinf(value):
        raise OutOfRange(f'"{trimmed:.80}" is out of range for type double precision')
    return value


def _not_halfway(value: float, text: str) -> str:
    """repr also takes a text halfway to the next double, which is read back by rounding to even;
    PostgreSQL takes one more digit then. Only large whole numbers have such neighbours."""
    whole = int(value)
    halfways = {whole + int(math.nextafter(value, end)) for end in (-math.inf, math.inf)}
    if 2 * _whole(text) not in halfways:
        return text
    longer = (f"{value:.{digits}e}" for digits in range(DIGITS_MAX))
    return next(
        shown for shown in longer if float(shown) == value and 2 * _whole(shown) not in halfways
    )


def _whole(text: str) -> int:
    mantissa, _, exponent = text.partition("e")
    before, _, behind = mantissa.partition(".")
    zeros = int(exponent or "0") - len(behind)
    return int(before + behind) * 10**zeros if zeros >= 0 else int(before)


def _with_exponent(digits: str) -> str:
    sign, digits = ("-", digits[1:]) if digits[0] == "-" else ("", digits)
    exponent = len(digits.partition(".")[0]) - 1
    significant = digits.replace(".", "").rstrip("0")
    behind = f".{significant[1:]}" if len(significant) > 1 else ""
    return f"{sign}{significant[0]}{behind}e+{exponent}"
