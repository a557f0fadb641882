"""The storage form of numeric: text that SQLite, Python and Spark order as the numbers are ordered.

A stored numeric is its *sort key* followed by one character, the display scale (1.50 comes back as
1.50). Equal numbers have equal keys; no key is the beginning of another one, so the whole text is
ordered by number first, by scale then.

    -Infinity  A            a negative number  B exponent digits end, each character mirrored
    zero       C            a positive number  D exponent digits end
    Infinity   E            NaN                F

A number is 0.digits × 10^exponent without zeros at either end of the digits; `end` is a blank,
which is less than a digit. An exponent is one character where it is small, else a mark and digits.
"""

from __future__ import annotations

import re
from decimal import (
    MAX_EMAX,
    MAX_PREC,
    MIN_EMIN,
    ROUND_HALF_UP,
    Context,
    Decimal,
    DecimalException,
)
from typing import Final

from leasehold.model.errors import InvalidText, OutOfRange, TooLong
from leasehold.values.letters import ascii_lower

SCALE_MAX: Final = 16_383
"""Digits behind the point."""
WHOLE_DIGITS_MAX: Final = 131_072
PRECISION_MAX: Final = 1_000
"""What numeric(p, s) may say."""
TEXT_CHARACTERS_MAX: Final = 262_144
_WHOLE_BITS_MAX: Final = 4 * WHOLE_DIGITS_MAX
"""No number of more bits has WHOLE_DIGITS_MAX digits; Decimal takes seconds for them."""

EXACT: Final = Context(
    prec=MAX_PREC, rounding=ROUND_HALF_UP, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[]
)
"""Sums, differences and products are exact in it."""

_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]++\.?+[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]{1,9})?")
_WORDS: Final = {
    "nan": "NaN",
    **dict.fromkeys(("inf", "infinity", "+inf", "+infinity"), "Infinity"),
    **dict.fromkeys(("-inf", "-infinity"), "-Infinity"),
}
_MIRROR: Final = {code: 0x9E - code for code in range(0x20, 0x7F)}
_SCALE_ZERO: Final = 0x30
_EXPONENT_ZERO: Final = 0x50
_EXPONENT_MOST: Final = 39
"""Of those that are one character: ) to w, between the marks ! and ~."""
_EXPONENT_SHIFT: Final = 100_000

NAN: Final = "F0"
INFINITY: Final = "E0"
_SPECIAL: Final = {"A": Decimal("-Infinity"), "E": Decimal("Infinity"), "F": Decimal("NaN")}
_SPECIAL_FORMS: Final = {"-Infinity": "A0", "Infinity": INFINITY, "NaN": NAN}


def sort_key(stored: str) -> str:
    """Return what equality, order and index entries go by."""
    return stored[:-1]


def with_scale(key: str, scale: int) -> str:
    """Return the stored form of that key in a column of numeric(p, scale), where equal numbers are
    all shown alike."""
    return key + ("0" if key[0] in _SPECIAL else chr(_SCALE_ZERO + max(scale, 0)))


def stored_form(value: Decimal) -> str:
    """Return the storage form. Raises OutOfRange (22003) above WHOLE_DIGITS_MAX; digits behind
    SCALE_MAX are rounded."""
    if not value.is_finite():
        return _SPECIAL_FORMS[str(value.copy_abs() if value.is_nan() else value)]
    exponent = value.adjusted() + 1
    if exponent > WHOLE_DIGITS_MAX and value:
        raise OutOfRange("value overflows numeric format")
    if exponent < -SCALE_MAX:  # too small to be told from zero
        value = Decimal((0, (0,), -SCALE_MAX))
    text = format(value, "f")
    whole, _, fraction = text.partition(".")
    scale = len(fraction)
    if scale > SCALE_MAX:
        return stored_form(round_number(value, SCALE_MAX))
    digits = (whole + fraction).lstrip("-0").rstrip("0")
    shown = chr(_SCALE_ZERO + scale)
    if not digits:
        return "C" + shown
    if -_EXPONENT_MOST <= exponent <= _EXPONENT_MOST:
        body = f"{chr(_EXPONENT_ZERO + exponent)}{digits} "
    else:
        body = f"{'~' if exponent > 0 else '!'}{exponent + _EXPONENT_SHIFT:06d}{digits} "
    if text[0] == "-":
        return f"B{body.translate(_MIRROR)}{shown}"
    return f"D{body}{shown}"


def has_room(value: Decimal) -> bool:
    """Whether the first digit is in a place that numeric has, before or behind the point. To be
    asked of a foreign number before its digits are written out: ten characters may say a billion of
    zeros. Those behind the first one have been sent, each of them."""
    return not value.is_finite() or -SCALE_MAX <= value.adjusted() < WHOLE_DIGITS_MAX


def decimal_of(stored: str) -> Decimal:
    """Return the number; a finite one has the exponent −scale, so its digits are those shown.
    Raises InvalidText for what is no stored form, which a damaged store may hold."""
    try:
        return _decimal_of(stored)
    except (TypeError, LookupError, ValueError, DecimalException) as error:
        raise InvalidText(f"{stored!r:.80} is no stored numeric") from error


def _decimal_of(stored: str) -> Decimal:
    sign, scale = stored[0], ord(stored[-1]) - _SCALE_ZERO
    if sign == "D":
        body = stored[1:-2]
    elif sign == "B":
        body = stored[1:-2].translate(_MIRROR)
    elif sign == "C":
        return Decimal(f"0E-{scale}")
    else:
        return _SPECIAL[sign]
    if body[0] in "!~":
        exponent, digits = int(body[1:7]) - _EXPONENT_SHIFT, body[7:]
    else:
        exponent, digits = ord(body[0]) - _EXPONENT_ZERO, body[1:]
    zeros = exponent + scale - len(digits)
    return Decimal(f"{'-' if sign == 'B' else ''}{digits}{'0' * zeros}E-{scale}")


def digits_in(stored: str, value: Decimal) -> int:
    """Return how many digits `decimal_of` has made of a stored numeric, zeros among them."""
    return value.adjusted() + ord(stored[-1]) - _SCALE_ZERO + 1


def words_of(key: str) -> str:
    """Return a sort key, or a stored numeric, as people read it; a key has no scale."""
    if key[-1:] not in (" ", "~") and key not in ("A", "C", "E", "F"):
        return text_of(key)
    body = key[1:-1] if key[0] == "D" else key[1:-1].translate(_MIRROR)
    if not body:
        return text_of(key + "0")
    exponent = (
        int(body[1:7]) - _EXPONENT_SHIFT if body[0] in "!~" else ord(body[0]) - _EXPONENT_ZERO
    )
    digits = len(body) - (7 if body[0] in "!~" else 1)
    return text_of(key + chr(_SCALE_ZERO + max(digits - exponent, 0)))


def is_stored_form(value: object) -> bool:
    """Whether a value is what `stored_form` makes, for checks of what lies in a store."""
    try:
        return isinstance(value, str) and stored_form(decimal_of(value)) == value
    except (InvalidText, OutOfRange):
        return False


def text_of(stored: str) -> str:
    """Return the text that PostgreSQL shows: never with an exponent."""
    return format(decimal_of(stored), "f")


def decimal_of_number(value: int | float) -> Decimal:
    """Return the number, of a double that of its shortest text. Raises OutOfRange."""
    if isinstance(value, float):
        return Decimal(repr(value))
    if value.bit_length() > _WHOLE_BITS_MAX:
        raise OutOfRange("value overflows numeric format")
    return Decimal(value)


def decimal_of_text(text: str) -> Decimal:
    """Return the number of a constant as PostgreSQL's input reads it. Raises InvalidText,
    OutOfRange, TooLong."""
    trimmed = text.strip(" \t\n\r\v\f")
    if len(trimmed) > TEXT_CHARACTERS_MAX:
        raise TooLong(f"a number of {len(trimmed)} characters; at most {TEXT_CHARACTERS_MAX}")
    if not _NUMBER.fullmatch(trimmed):
        word = _WORDS.get(ascii_lower(trimmed))
        if word is None:
            raise InvalidText(f'invalid input syntax for type numeric: "{text:.80}"')
        return Decimal(word)
    value = number_as_written(trimmed)
    return round_number(value, 0) if _exponent_of(value) > 0 else value


def number_as_written(text: str) -> Decimal:
    """Return the number of digits, a point and an exponent, whose zeros nobody has written yet.
    Raises OutOfRange where numeric has no room for it, InvalidText for an exponent beyond all."""
    try:
        value = Decimal(text)
    except DecimalException as error:
        raise InvalidText(f'invalid input syntax for type numeric: "{text:.80}"') from error
    if value and value.adjusted() >= WHOLE_DIGITS_MAX:
        raise OutOfRange("value overflows numeric format")
    if not value:  # of 0e5 no digit is behind the point
        value = value.copy_abs() if _exponent_of(value) < 0 else Decimal(0)
    if -_exponent_of(value) > SCALE_MAX:
        raise OutOfRange("value overflows numeric format")
    return value


def _exponent_of(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    return exponent


def round_number(value: Decimal, scale: int) -> Decimal:
    """Return the value rounded half away from zero. `scale` < 0 rounds before the point; what comes
    out has scale ≥ 0."""
    if not value.is_finite():
        return value
    made: Decimal = value.quantize(Decimal((0, (1,), -scale)), context=EXACT)
    if scale < 0:
        made = made.quantize(Decimal(1), context=EXACT)
    return made or made.copy_abs()


def fit_number(value: Decimal, precision: int | None, scale: int | None) -> Decimal:
    """Return a value as numeric(precision, scale) holds it. Raises OutOfRange (22003)."""
    if precision is None:
        return value
    scale = scale or 0
    if value.is_infinite():
        raise OutOfRange(
            f"numeric field overflow: numeric({precision}, {scale}) can't hold an infinite value"
        )
    if value.is_nan():
        return value
    if value and value.adjusted() >= WHOLE_DIGITS_MAX:  # whose digits nobody is to write
        raise OutOfRange("value overflows numeric format")
    made = round_number(value, scale)
    if made and made.adjusted() + 1 > precision - scale:
        raise OutOfRange(
            f"numeric field overflow: a value of numeric({precision}, {scale}) must round to less"
            f" than 10^{precision - scale}"
        )
    return made
