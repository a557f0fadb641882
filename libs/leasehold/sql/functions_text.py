"""Functions and operators over text, as PostgreSQL counts and cuts: by characters, from 1."""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import md5
from typing import Any, Final

from leasehold.model.errors import (
    FeatureNotSupported,
    InvalidArgument,
    InvalidSubstring,
    OutOfRange,
    RequestTooLarge,
    TooLong,
)
from leasehold.schema.types import TEXT_BYTES_MAX
from leasehold.sql.function import BIGINT, BOOLEAN, INTEGER, TEXT, Function

_WORD: Final = re.compile(r"[^\W_]+")


def bounded(text: str) -> str:
    """Raises TooLong (22001): nothing longer than what is stored is ever made."""
    if len(text) > TEXT_BYTES_MAX:
        raise too_long()
    return text


def too_long() -> TooLong:
    return TooLong(f"the text would have more than {TEXT_BYTES_MAX} characters")


def _too_large() -> RequestTooLarge:
    return RequestTooLarge(
        f"requested length too large: at most {TEXT_BYTES_MAX} characters are made"
    )


def joined(left: str, right: str) -> str:
    if len(left) + len(right) > TEXT_BYTES_MAX:
        raise too_long()
    return left + right


def _upper(text: str) -> str:
    """Letter by letter, as PostgreSQL's usual locales have it: one that has no capital of a single
    letter stays, as ß does."""
    raised = text.upper()
    if len(raised) == len(text):
        return raised
    forms = ((each, each.upper(), each.title()) for each in text)
    return "".join(
        next((form for form in (up, title) if len(form) == 1), each) for each, up, title in forms
    )


def _lower(text: str) -> str:
    """As `_upper`: of İ an i stays, without the dot that Python sets above it."""
    return "".join(each.lower()[0] for each in text) if not text.isascii() else text.lower()


def _initcap(text: str) -> str:
    return _WORD.sub(lambda word: _upper(word[0][0]) + _lower(word[0][1:]), text)


def part(value: Any, start: int, length: int | None = None) -> Any:
    """Of text or bytes, from position `start` on, which may lie before the first one."""
    if length is None:
        return value[max(start - 1, 0) :]
    if length < 0:
        raise InvalidSubstring("negative substring length not allowed")
    return value[max(start - 1, 0) : max(start - 1 + length, 0)]


def place_of(text: Any, wanted: Any) -> int:
    """From 1; 0: not there."""
    return int(text.find(wanted)) + 1


def _left(text: str, count: int) -> str:
    return text[:count] if count else ""


def _right(text: str, count: int) -> str:
    if count >= 0:
        return text[max(len(text) - count, 0) :]
    return text[-count:]


def _filling(text: str, length: int, fill: str) -> str:
    missing = length - len(text)
    if missing <= 0 or not fill:
        return ""
    if length > TEXT_BYTES_MAX:
        raise _too_large()
    return (fill * (missing // len(fill) + 1))[:missing]


def _lpad(text: str, length: int, fill: str = " ") -> str:
    return _filling(text, length, fill) + text[: max(length, 0)]


def _rpad(text: str, length: int, fill: str = " ") -> str:
    return text[: max(length, 0)] + _filling(text, length, fill)


def _repeat(text: str, times: int) -> str:
    if times > 0 and len(text) * times > TEXT_BYTES_MAX:
        raise _too_large()
    return text * times


def _replace(text: str, old: str, new: str) -> str:
    if not old:
        return text
    if len(text) + text.count(old) * (len(new) - len(old)) > TEXT_BYTES_MAX:
        raise _too_large()
    return text.replace(old, new)


def _split_part(text: str, by: str, number: int) -> str:
    if number == 0:
        raise InvalidArgument("field position must not be zero")
    parts = text.split(by) if by else [text]
    place = number - 1 if number > 0 else len(parts) + number
    return parts[place] if 0 <= place < len(parts) else ""


def _by_pattern(*_values: str) -> str:
    raise FeatureNotSupported("substring by a regular expression is not supported")


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
    for place, character in enumerate(old):
        table.setdefault(ord(character), new[place] if place < len(new) else None)
    return text.translate(table)


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
    return joined(part(text, 1, start - 1) + new, part(text, end))


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
        while right and end > begin and text[end - 1] in gone:
            end -= 1
        return text[begin:end]

    return strip


def _blanks(strip: Callable[..., str]) -> Callable[[str], str]:
    return lambda text: strip(text, " ")


FUNCTIONS: Final[tuple[Function, ...]] = (
    Function("length", (TEXT,), INTEGER, len),
    Function("char_length", (TEXT,), INTEGER, len),
    Function("character_length", (TEXT,), INTEGER, len),
    Function("octet_length", (TEXT,), INTEGER, lambda text: len(text.encode())),
    Function("bit_length", (TEXT,), INTEGER, lambda text: len(text.encode()) * 8),
    Function("upper", (TEXT,), TEXT, _upper),
    Function("lower", (TEXT,), TEXT, _lower),
    Function("initcap", (TEXT,), TEXT, _initcap),
    Function("substring", (TEXT, INTEGER), TEXT, part),
    Function("substring", (TEXT, INTEGER, INTEGER), TEXT, part),
    Function("substring", (TEXT, TEXT, TEXT), TEXT, _by_pattern),
    Function("substr", (TEXT, INTEGER), TEXT, part),
    Function("substr", (TEXT, INTEGER, INTEGER), TEXT, part),
    Function("position", (TEXT, TEXT), INTEGER, place_of),
    Function("strpos", (TEXT, TEXT), INTEGER, place_of),
    Function("left", (TEXT, INTEGER), TEXT, _left),
    Function("right", (TEXT, INTEGER), TEXT, _right),
    *_trims(),
    Function("lpad", (TEXT, INTEGER), TEXT, _lpad),
    Function("lpad", (TEXT, INTEGER, TEXT), TEXT, _lpad),
    Function("rpad", (TEXT, INTEGER), TEXT, _rpad),
    Function("rpad", (TEXT, INTEGER, TEXT), TEXT, _rpad),
    Function("repeat", (TEXT, INTEGER), TEXT, _repeat),
    Function("replace", (TEXT, TEXT, TEXT), TEXT, _replace),
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
    Function("||", (TEXT, TEXT), TEXT, joined),
    Function("^@", (TEXT, TEXT), BOOLEAN, lambda a, b: int(a.startswith(b))),
)
