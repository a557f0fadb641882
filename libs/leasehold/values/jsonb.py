"""The storage form of jsonb: the text that PostgreSQL shows of it, one for each value.

Members of an object stand in the order of their names, shorter ones first, then by bytes; of two
with one name the last counts. Numbers keep the digits behind the point and lose an exponent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final, NoReturn

from leasehold.model.budget import charge_each, charge_long, charge_size
from leasehold.model.errors import InvalidText, OutOfRange, TooLong, UntranslatableCharacter
from leasehold.values.numeric import (
    SCALE_MAX,
    decimal_of_number,
    has_room,
    number_as_written,
    sort_key,
)
from leasehold.values.numeric import stored_form as numeric_form

NESTING_MAX: Final = 500
TEXT_CHARACTERS_MAX: Final = 262_144
_PLAIN_BITS_MAX: Final = 1_024
"""Of a whole number that Python writes by itself; it refuses those of more than 4,300 digits."""
_READ_WORK: Final = 30
"""Of a character of JSON that is read: a number of two characters takes longest."""
_ELEMENT_WORK: Final = 120
"""Of an element or member that is written, or put in order."""
_LONG_NUMBER: Final = 400
"""Characters of a number that are counted while it is written: ten may say 131,072 digits."""
_ESCAPED: Final = re.compile(r'["\\\x00-\x1f]')
_ESCAPES: Final = {
    '"': '\\"',
    "\\": "\\\\",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
}


def value_of(text: str) -> Any:
    """Return JSON text as Python values: numbers are Decimal, so none loses a digit.

    Raises InvalidText (22P02), UntranslatableCharacter (22P05), OutOfRange, TooLong.
    """
    if not isinstance(text, str):  # a damaged store may hold it
        raise InvalidText(f"{text!r:.80} is no JSON")
    if len(text) > TEXT_CHARACTERS_MAX:
        raise _too_long(len(text))
    charge_size(len(text), _READ_WORK)
    try:
        return _decoder.decode(text.strip(" \t\n\r"))
    except RecursionError as error:
        raise _too_deep() from error
    except ValueError as error:
        raise InvalidText(f"invalid input syntax for type json: {error}") from error


def text_of(value: Any) -> str:
    """Return the one text of a value of JSON: None, bool, numbers, str, list, tuple or mapping.

    Raises InvalidText, UntranslatableCharacter, OutOfRange, TooLong.
    """
    parts = _Parts()
    _write(value, parts, 0)
    made = "".join(parts)
    if len(made) > TEXT_CHARACTERS_MAX:
        raise _too_long(len(made))
    return made


def _too_long(size: int) -> TooLong:
    return TooLong(f"{size} characters of JSON; at most {TEXT_CHARACTERS_MAX} are stored")


def count_number(size: int, value: Any) -> int:
    """Return `size` and the digits of a long number, for whoever collects numbers before any is
    written. Raises TooLong as soon as they are more than JSON may have."""
    if isinstance(value, Decimal) and value.adjusted() > _LONG_NUMBER:
        size += value.adjusted()
        if size > TEXT_CHARACTERS_MAX:
            raise _too_long(size)
    return size


class _Parts(list[str]):
    """The parts of a text. `numbers`: characters of long numbers among them."""

    numbers = 0

    def add_number(self, text: str) -> None:
        """Raises TooLong as soon as the numbers alone are too long."""
        if len(text) > _LONG_NUMBER:
            self.numbers += len(text)
            if self.numbers > TEXT_CHARACTERS_MAX:
                raise _too_long(self.numbers)
        self.append(text)


def stored_form(text: str) -> str:
    return text_of(value_of(text))


def kind_of(value: Any) -> str:
    """Return what jsonb_typeof says of one of `value_of`'s values."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, list):
        return "array"
    return "object" if isinstance(value, dict) else "number"


# Of an array and an object the number of elements comes before them.
_NULL, _STRING, _NUMBER, _FALSE, _TRUE = b"\0", b"\1", b"\2", b"\3\0", b"\3\1"
_ARRAY, _OBJECT = b"\4", b"\5"
_COUNT_BYTES: Final = 4


def ordered_form(stored: str) -> bytes:
    """Return bytes that are equal for equal values (1.0 and 1.00 are one number), in PostgreSQL's
    order: an object above an array, true above false, a number, a string, null."""
    return ordered_bytes(value_of(stored))


def ordered_bytes(value: Any) -> bytes:
    """Return `ordered_form` of one of `value_of`'s values."""
    parts: list[bytes] = []
    if isinstance(value, list | dict):
        _order(value, parts, whole=True)
    else:  # a scalar by itself stands in an array of one, below another one
        parts.append(_ARRAY + (1).to_bytes(_COUNT_BYTES) + b"\0")
        _order(value, parts)
    return b"".join(parts)


def _order(value: Any, parts: list[bytes], *, whole: bool = False) -> None:
    """Append the form of a value; no form is the beginning of another one's."""
    if value is None:
        parts.append(_NULL)
    elif isinstance(value, bool):
        parts.append(_TRUE if value else _FALSE)
    elif isinstance(value, str):
        parts += (_STRING, value.encode(), b"\0")  # no text holds U+0000
    elif isinstance(value, list):
        parts.append(_ARRAY + len(value).to_bytes(_COUNT_BYTES) + (b"\1" if whole else b""))
        for each in charge_each(value, _ELEMENT_WORK):
            _order(each, parts)
    elif isinstance(value, dict):
        parts.append(_OBJECT + len(value).to_bytes(_COUNT_BYTES))
        charge_long(len(value), _ELEMENT_WORK)
        named = sorted(_by_bytes(value), key=lambda member: (len(member[0]), member[0]))
        for name, each in named:
            parts += (name, b"\0")
            _order(each, parts)
    else:
        parts += (_NUMBER, sort_key(numeric_form(value)).encode())


def _by_bytes(value: Mapping[str, Any]) -> Iterator[tuple[bytes, Any]]:
    return ((name.encode(), each) for name, each in value.items())


def is_stored_form(value: object) -> bool:
    """Whether a value is what `stored_form` makes, for checks of what lies in a store."""
    try:
        return isinstance(value, str) and stored_form(value) == value
    except (InvalidText, UntranslatableCharacter, OutOfRange, TooLong):
        return False


def quoted(text: str) -> str:
    """Return a JSON string. Raises UntranslatableCharacter for U+0000, InvalidText for half a pair
    of surrogates."""
    if "\0" in text:
        raise UntranslatableCharacter("unsupported Unicode escape sequence: \\u0000 is no text")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidText(
            "invalid input syntax for type json: a Unicode high surrogate must be followed by a low"
            " one"
        ) from error
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    return _ESCAPES.get(character) or f"\\u{ord(character):04x}"


def _write(value: Any, parts: _Parts, depth: int) -> None:
    if depth > NESTING_MAX:
        raise _too_deep()
    if value is None:
        parts.append("null")
    elif isinstance(value, bool):
        parts.append("true" if value else "false")
    elif isinstance(value, str):
        parts.append(quoted(value))
    elif isinstance(value, int | float | Decimal):
        parts.add_number(_number(value))
    elif isinstance(value, Mapping):
        # Here, not in a function of its own: Python's own limit of depth counts calls.
        parts.append("{")
        for position, (shown, each) in enumerate(_members(value)):
            parts.append(f"{', ' if position else ''}{shown}: ")
            _write(each, parts, depth + 1)
        parts.append("}")
    elif isinstance(value, list | tuple):
        parts.append("[")
        for position, each in enumerate(charge_each(value, _ELEMENT_WORK)):
            if position:
                parts.append(", ")
            _write(each, parts, depth + 1)
        parts.append("]")
    else:
        raise InvalidText(f"a {type(value).__name__} has no form in JSON")


def _members(value: Mapping[Any, Any]) -> list[tuple[str, Any]]:
    """Return (name as it is written, value) of the members in their order."""
    charge_long(len(value), _ELEMENT_WORK)
    named = []
    for name in value:
        if not isinstance(name, str):
            raise InvalidText(f"a member's name must be text, not {type(name).__name__}")
        shown = quoted(name)
        spelled = name.encode()
        named.append((len(spelled), spelled, shown, value[name]))
    return [(shown, each) for _, _, shown, each in sorted(named, key=lambda member: member[:2])]


def _number(value: int | float | Decimal) -> str:
    if isinstance(value, int) and value.bit_length() <= _PLAIN_BITS_MAX:
        return str(value)
    number = value if isinstance(value, Decimal) else decimal_of_number(value)
    if not number.is_finite():
        raise InvalidText(f"JSON has no number {number}")
    if not has_room(number):
        raise OutOfRange("value overflows numeric format")
    text = format(number or number.copy_abs(), "f")
    if len(text.partition(".")[2]) > SCALE_MAX:
        raise OutOfRange("value overflows numeric format")
    return text


def _too_deep() -> OutOfRange:
    return OutOfRange(f"JSON nested more than {NESTING_MAX} deep")


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f'Token "{word}" is invalid')


_decoder: Final = json.JSONDecoder(
    parse_float=number_as_written, parse_int=number_as_written, parse_constant=_no_constant
)
