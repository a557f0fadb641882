"""Functions and operators over text, as PostgreSQL counts and cuts: by characters, from 1."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import md5
from typing import Any, Final

from leasehold.model.budget import charge, charge_each, charge_size
from leasehold.model.errors import (
    FeatureNotSupported,
    InvalidArgument,
    InvalidSubstring,
    OutOfRange,
    RequestTooLarge,
    TooLong,
)
from leasehold.sql.functions.function import BIGINT, BOOLEAN, INTEGER, TEXT, Function
from leasehold.values.letters import is_letter_or_digit, lower, upper
from leasehold.values.types import TEXT_BYTES_MAX, Type

MADE_CHARACTERS_MAX: Final = 16 << 20
"""Of a text on its way through a query, as of an array: 64 MiB of memory at most. A column takes
TEXT_BYTES_MAX."""
_PIECE: Final = 16_384
"""Characters of a long text at once, about a millisecond."""
_CASE_WORK: Final = 25
_TRANSLATE_WORK: Final = 8
_FIND_WORK: Final = 20
_FOUND_AT_ONCE: Final = 256
_ASCII_WORD: Final = re.compile("[A-Za-z0-9]+")


def check_length(text: str, most: int = TEXT_BYTES_MAX) -> str:
    """Raises TooLong (22001)."""
    if len(text) > most:
        raise too_long(most)
    return text


def too_long(most: int = TEXT_BYTES_MAX) -> TooLong:
    return TooLong(f"the text would have more than {most} characters")


def _too_large(most: int) -> RequestTooLarge:
    return RequestTooLarge(f"requested length too large: at most {most} characters are made")


def concatenate(left: str, right: str, most: int = TEXT_BYTES_MAX) -> str:
    if len(left) + len(right) > most:
        raise too_long(most)
    return left + right


def _pieces(text: str, work: int) -> Iterator[str]:
    """Give a text in pieces, each charged for with so much work a character."""
    if len(text) <= _PIECE:
        yield text
        return
    for begin in range(0, len(text), _PIECE):
        charge(_PIECE * work)
        yield text[begin : begin + _PIECE]


def _initcap(text: str) -> str:
    ascii_only = text.isascii()
    if ascii_only and len(text) <= _PIECE:
        return _ASCII_WORD.sub(lambda word: word[0].capitalize(), text)
    made: list[str] = []
    inside = False
    if ascii_only:
        for piece in _pieces(text, _CASE_WORK):
            begun = _ASCII_WORD.match(piece) if inside else None
            end = begun.end() if begun else 0
            made.append(lower(piece[:end]))
            made.append(_ASCII_WORD.sub(lambda word: word[0].capitalize(), piece[end:]))
            inside = is_letter_or_digit(piece[-1:] or " ")
        return "".join(made)
    for character in charge_each(text, 2 * _CASE_WORK):
        in_word = is_letter_or_digit(character)
        if in_word:
            made.append(lower(character) if inside else upper(character))
        else:
            made.append(character)
        inside = in_word
    return "".join(made)


def cut_part(value: Any, start: int, length: int | None = None) -> Any:
    """Return a part of a text or of bytes from position `start` on, which may lie before the first
    one."""
    if length is None:
        return value[max(start - 1, 0) :]
    if length < 0:
        raise InvalidSubstring("negative substring length not allowed")
    return value[max(start - 1, 0) : max(start - 1 + length, 0)]


def find_place(text: Any, wanted: Any) -> int:
    """Return where `wanted` stands, from 1; 0 where it does not."""
    return int(text.find(wanted)) + 1


def _left(text: str, count: int) -> str:
    return text[:count] if count else ""


def _right(text: str, count: int) -> str:
    if count >= 0:
        return text[max(len(text) - count, 0) :]
    return text[-count:]


def _filling(text: str, length: int, fill: str, most: int) -> str:
    missing = length - len(text)
    if missing <= 0 or not fill:
        return ""
    if length > most:
        raise _too_large(most)
    return (fill * (missing // len(fill) + 1))[:missing]


def _lpad(text: str, length: int, fill: str = " ", *, most: int = TEXT_BYTES_MAX) -> str:
    return _filling(text, length, fill, most) + text[: max(length, 0)]


def _rpad(text: str, length: int, fill: str = " ", *, most: int = TEXT_BYTES_MAX) -> str:
    return text[: max(length, 0)] + _filling(text, length, fill, most)


def _repeat(text: str, times: int, *, most: int = TEXT_BYTES_MAX) -> str:
    if times > 0 and len(text) * times > most:
        raise _too_large(most)
    return text * times


def _replace(text: str, old: str, new: str, *, most: int = TEXT_BYTES_MAX) -> str:
    if not old:
        return text
    charge_size(len(text) // 2, 1)
    if len(text) + text.count(old) * (len(new) - len(old)) > most:
        raise _too_large(most)
    return text.replace(old, new)


def _split_part(text: str, by: str, number: int) -> str:
    if number == 0:
        raise InvalidArgument("field position must not be zero")
    if not by:
        return text if number in (1, -1) else ""
    position = number if number > 0 else text.count(by) + 2 + number
    begin = 0
    for passed in range(1, position):
        if not passed % _FOUND_AT_ONCE:
            charge(_FOUND_AT_ONCE * _FIND_WORK)
        begin = text.find(by, begin) + len(by)
        if begin < len(by):
            return ""
    end = text.find(by, begin)
    return "" if position < 1 else text[begin:] if end < 0 else text[begin:end]


def _by_pattern(*_values: str) -> str:
    raise FeatureNotSupported(
        "substring by a regular expression is not supported: regexp_substr is"
    )


def _chr(code: int) -> str:
    if code < 0:
        raise InvalidArgument("character number must be positive")
    if code == 0:
        raise RequestTooLarge("null character not permitted")
    if not 0 < code <= 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise RequestTooLarge(f"requested character not valid for encoding: {code}")
    return chr(code)


def _translate(text: str, old: str, new: str) -> str:
    table: dict[int, str | None] = {}
    for position, character in enumerate(charge_each(old, _CASE_WORK)):
        table.setdefault(ord(character), new[position] if position < len(new) else None)
    if len(text) <= _PIECE:
        return text.translate(table)
    return "".join([piece.translate(table) for piece in _pieces(text, _TRANSLATE_WORK)])


def _to_hex(bits: int) -> Callable[[int], str]:
    return lambda value: format(value & (1 << bits) - 1, "x")


def _md5(text: str) -> str:
    return md5(text.encode(), usedforsecurity=False).hexdigest()


def _overlay(text: str, new: str, start: int, length: int | None = None) -> str:
    if start <= 0:
        raise InvalidSubstring("negative substring length not allowed")
    end = start + (len(new) if length is None else length)
    if end >= 1 << 31:
        raise OutOfRange("integer out of range")
    return concatenate(cut_part(text, 1, start - 1) + new, cut_part(text, end))


def _trims() -> list[Function]:
    strips: dict[str, Callable[..., str]] = {
        "btrim": str.strip,
        "ltrim": str.lstrip,
        "rtrim": str.rstrip,
    }
    made = []
    for name, strip in strips.items():
        made.append(Function(name, (TEXT,), TEXT, _blanks(strip)))
        made.append(Function(name, (TEXT, TEXT), TEXT, _stripped(name)))
    return made


def _stripped(name: str) -> Callable[[str, str], str]:
    """Python's own looks through all that is to go for each character of the text."""
    left, right = name in ("btrim", "ltrim"), name in ("btrim", "rtrim")

    def strip(text: str, characters: str) -> str:
        gone = frozenset(characters)
        begin, end = 0, len(text)
        while left and begin < end and text[begin] in gone:
            begin += 1
            if not begin % _PIECE:
                charge(_PIECE * _TRANSLATE_WORK)
        while right and end > begin and text[end - 1] in gone:
            end -= 1
            if not end % _PIECE:
                charge(_PIECE * _TRANSLATE_WORK)
        return text[begin:end]

    return strip


def _blanks(strip: Callable[..., str]) -> Callable[[str], str]:
    return lambda text: strip(text, " ")


def _making(name: str, arguments: tuple[Type, ...], compute: Callable[..., str]) -> Function:
    """A function that makes long texts of short ones."""
    more = partial(compute, most=MADE_CHARACTERS_MAX)
    return Function(name, arguments, TEXT, compute, computes_more=more)


FUNCTIONS: Final[tuple[Function, ...]] = (
    Function("length", (TEXT,), INTEGER, len),
    Function("char_length", (TEXT,), INTEGER, len),
    Function("character_length", (TEXT,), INTEGER, len),
    Function("octet_length", (TEXT,), INTEGER, lambda text: len(text.encode())),
    Function("bit_length", (TEXT,), INTEGER, lambda text: len(text.encode()) * 8),
    Function("upper", (TEXT,), TEXT, upper),
    Function("lower", (TEXT,), TEXT, lower),
    Function("initcap", (TEXT,), TEXT, _initcap),
    Function("substring", (TEXT, INTEGER), TEXT, cut_part),
    Function("substring", (TEXT, INTEGER, INTEGER), TEXT, cut_part),
    Function("substring", (TEXT, TEXT, TEXT), TEXT, _by_pattern),
    Function("substr", (TEXT, INTEGER), TEXT, cut_part),
    Function("substr", (TEXT, INTEGER, INTEGER), TEXT, cut_part),
    Function("position", (TEXT, TEXT), INTEGER, find_place),
    Function("strpos", (TEXT, TEXT), INTEGER, find_place),
    Function("left", (TEXT, INTEGER), TEXT, _left),
    Function("right", (TEXT, INTEGER), TEXT, _right),
    *_trims(),
    _making("lpad", (TEXT, INTEGER), _lpad),
    _making("lpad", (TEXT, INTEGER, TEXT), _lpad),
    _making("rpad", (TEXT, INTEGER), _rpad),
    _making("rpad", (TEXT, INTEGER, TEXT), _rpad),
    _making("repeat", (TEXT, INTEGER), _repeat),
    _making("replace", (TEXT, TEXT, TEXT), _replace),
    Function("reverse", (TEXT,), TEXT, lambda text: text[::-1]),
    Function("split_part", (TEXT, TEXT, INTEGER), TEXT, _split_part),
    Function("starts_with", (TEXT, TEXT), BOOLEAN, lambda a, b: int(a.startswith(b))),
    Function("ascii", (TEXT,), INTEGER, lambda text: ord(text[0]) if text else 0),
    Function("chr", (INTEGER,), TEXT, _chr),
    Function("translate", (TEXT, TEXT, TEXT), TEXT, _translate),
    Function("md5", (TEXT,), TEXT, _md5),
    Function("to_hex", (INTEGER,), TEXT, _to_hex(32)),
    Function("to_hex", (BIGINT,), TEXT, _to_hex(64)),
    Function("overlay", (TEXT, TEXT, INTEGER), TEXT, _overlay),
    Function("overlay", (TEXT, TEXT, INTEGER, INTEGER), TEXT, _overlay),
)
OPERATORS: Final[tuple[Function, ...]] = (
    _making("||", (TEXT, TEXT), concatenate),
    Function("^@", (TEXT, TEXT), BOOLEAN, lambda a, b: int(a.startswith(b))),
)
