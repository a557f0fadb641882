"""Functions that take arguments of any types: concat, concat_ws, format, to_jsonb and its kin.

Each is made for the types of one call, since a value's text depends on its type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, Final
from zoneinfo import ZoneInfo

from leasehold.model.budget import charge
from leasehold.model.errors import InvalidArgument, NullNotAllowed, OutOfRange
from leasehold.sql.functions.function import INTEGER, JSON, JSONB, TEXT, Function, is_text
from leasehold.sql.functions.jsonb.values import json_of, json_text_of
from leasehold.sql.functions.texts.text import MADE_CHARACTERS_MAX, check_length, too_long
from leasehold.sql.syntax.words import RESERVED
from leasehold.values import jsonb
from leasehold.values.integers import whole
from leasehold.values.text_io import shown_text, shows_zone
from leasehold.values.time_zone import UTC, by_zone
from leasehold.values.types import TEXT_BYTES_MAX, Type

Kinds = Sequence[Type | None]
Family = Callable[[Kinds], Function | None]
InZones = Callable[[Kinds, ZoneInfo], Function | None]

_PLAIN_NAME: Final = re.compile(r"[a-z_][a-z0-9_$]*")
_QUOTED_TOO: Final = RESERVED | {
    *("between", "bigint", "bit", "boolean", "char", "character", "coalesce", "dec", "decimal"),
    *("exists", "extract", "float", "greatest", "grouping", "inout", "int", "integer", "interval"),
    *("least", "national", "nchar", "none", "normalize", "nullif", "numeric", "out", "overlay"),
    *("position", "precision", "real", "row", "setof", "smallint", "substring", "time"),
    *("timestamp", "treat", "trim", "values", "varchar"),
}
_SPECIFIER: Final = re.compile(r"%(?:(%)|(?:([0-9]+)\$)?(-*)([0-9]*)(.)?)", re.DOTALL)

_SPECIFIERS_AT_ONCE: Final = 256
_SPECIFIER_WORK: Final = 150
_COUNT_MAX: Final = (1 << 31) - 1


def _known(kinds: Kinds) -> tuple[Type, ...]:
    return tuple(TEXT if kind is None else kind for kind in kinds)


def in_zones(make: InZones) -> Family:
    """A family whose functions show values: of a timestamptz in the session's time zone."""

    def family(kinds: Kinds) -> Function | None:
        made = make(kinds, UTC)
        if made is None or not any(map(shows_zone, made.arguments)):
            return made

        @lru_cache(maxsize=16)
        def of(zone: ZoneInfo) -> Callable[..., Any]:
            found = make(kinds, zone)
            assert found is not None
            return found.compute

        def compute(zone: ZoneInfo, *values: Any) -> Any:
            return of(zone)(*values)

        return replace(made, compute=by_zone(compute), volatility="stable", zoned=True)

    return family


def _texts(kinds: Kinds, zone: ZoneInfo) -> list[Callable[[Any], str]]:
    """How a value of each argument is shown; never called with None."""
    return [_shown(kind, zone) for kind in _known(kinds)]


def _shown(kind: Type, zone: ZoneInfo) -> Callable[[Any], str]:
    if is_text(kind) and kind.length is None:
        return str
    return lambda value: shown_text(kind, value, zone)


def _join(by: str, texts: Sequence[Callable[[Any], str]], values: Sequence[Any]) -> str:
    """Return what is shown of the values, with `by` between them. Raises TooLong."""
    pairs = zip(texts, values, strict=True)
    shown = [text(value) for text, value in pairs if value is not None]
    if sum(map(len, shown)) + len(by) * max(len(shown) - 1, 0) > TEXT_BYTES_MAX:
        raise too_long()
    return by.join(shown)


@in_zones
def _concat(kinds: Kinds, zone: ZoneInfo) -> Function | None:
    if not kinds:
        return None
    texts = _texts(kinds, zone)

    def compute(*values: Any) -> str:
        return _join("", texts, values)

    return Function("concat", _known(kinds), TEXT, compute, strict=False)


@in_zones
def _concat_ws(kinds: Kinds, zone: ZoneInfo) -> Function | None:
    if len(kinds) < 2 or not (kinds[0] is None or is_text(kinds[0])):
        return None
    texts = _texts(kinds[1:], zone)

    def compute(by: str | None, *values: Any) -> str | None:
        if by is None:
            return None
        return _join(by, texts, values)

    return Function("concat_ws", (TEXT, *_known(kinds[1:])), TEXT, compute, strict=False)


# ------------------------------------------------------------------ format


def quote_ident(name: str) -> str:
    if _PLAIN_NAME.fullmatch(name) and name not in _QUOTED_TOO:
        return name
    return '"' + name.replace('"', '""') + '"'


def _limited(quote: Callable[[Any], str], text: Any, *, most: int = TEXT_BYTES_MAX) -> str:
    return check_length(quote(text), most)


def _quoting(name: str, quote: Callable[[Any], str], *, strict: bool = True) -> Function:
    shorter = partial(_limited, quote)
    longer = partial(_limited, quote, most=MADE_CHARACTERS_MAX)
    return Function(name, (TEXT,), TEXT, shorter, strict=strict, computes_more=longer)


def quote_literal(text: str) -> str:
    quoted = "'" + text.replace("'", "''") + "'"
    return "E" + quoted.replace("\\", "\\\\") if "\\" in quoted else quoted


@in_zones
def _format(kinds: Kinds, zone: ZoneInfo) -> Function | None:
    if not kinds or not (kinds[0] is None or is_text(kinds[0])):
        return None
    texts = _texts(kinds[1:], zone)

    def compute(pattern: str | None, *values: Any) -> str | None:
        if pattern is None:
            return None
        shown = [
            None if value is None else text(value)
            for text, value in zip(texts, values, strict=True)
        ]
        return _formatted(pattern, shown)

    return Function("format", (TEXT, *_known(kinds[1:])), TEXT, compute, strict=False)


def _formatted(pattern: str, shown: list[str | None]) -> str:
    """Return what format() makes of texts. Raises TooLong as soon as it is too long."""
    made: list[str] = []
    end = following = size = 0
    for number, found in enumerate(_SPECIFIER.finditer(pattern)):
        if number and not number % _SPECIFIERS_AT_ONCE:
            charge(_SPECIFIERS_AT_ONCE * _SPECIFIER_WORK)
        made.append(pattern[end : found.start()])
        size += len(made[-1])
        end = found.end()
        percent, position, left, digits, kind = found.groups()
        if percent:
            made.append("%")
            size += 1
            continue
        index, width = _count(position), _count(digits)
        if position is not None and index == 0:
            raise InvalidArgument("format specifies argument 0, but arguments are numbered from 1")
        following = index or following + 1
        if kind is None:
            raise InvalidArgument("unterminated format() type specifier")
        if kind not in "sIL":
            raise InvalidArgument(f'unrecognized format() type specifier "{kind}"')
        if following > len(shown):
            raise InvalidArgument("too few arguments for format()")
        text = _specified(kind, shown[following - 1])
        size += max(len(text), width)
        if size > TEXT_BYTES_MAX:
            raise too_long()
        made.append(text.ljust(width) if left else text.rjust(width))
    made.append(pattern[end:])
    return check_length("".join(made))


def _count(digits: str | None) -> int:
    """What the digits of a format's position or width say; 0 for none. Raises OutOfRange."""
    number = whole(digits or "0")
    if number > _COUNT_MAX:
        raise OutOfRange("number is out of range")
    return number


def _specified(kind: str, value: str | None) -> str:
    if kind == "s":
        return value or ""
    if kind == "L":
        return "NULL" if value is None else quote_literal(value)
    if value is None:
        raise NullNotAllowed("null values cannot be formatted as an SQL identifier")
    return quote_ident(value)


# ------------------------------------------------------------------ JSON


@in_zones
def _to_jsonb(kinds: Kinds, zone: ZoneInfo) -> Function | None:
    if len(kinds) != 1 or kinds[0] is None:
        return None
    make = json_of(kinds[0], zone)
    return Function("to_jsonb", (kinds[0],), JSONB, lambda value: jsonb.text_of(make(value)))


@in_zones
def _build_array(kinds: Kinds, zone: ZoneInfo) -> Function | None:
    makes = [json_of(kind, zone) for kind in _known(kinds)]

    def compute(*values: Any) -> str:
        pairs = zip(makes, values, strict=True)
        return jsonb.text_of([None if v is None else make(v) for make, v in pairs])

    return Function("jsonb_build_array", _known(kinds), JSONB, compute, strict=False)


def _object_of(kinds: Kinds, zone: ZoneInfo) -> Function:
    known = _known(kinds)
    texts = [_shown(kind, zone) for kind in known[::2]]
    makes = [json_of(kind, zone) for kind in known[1::2]]

    def compute(*values: Any) -> str:
        if len(values) % 2:
            raise InvalidArgument("argument list must have even number of elements")
        made: dict[str, Any] = {}
        for index, (text, make) in enumerate(zip(texts, makes, strict=True)):
            name, value = values[2 * index], values[2 * index + 1]
            if name is None:
                raise InvalidArgument(f"argument {2 * index + 1}: key must not be null")
            made[text(name)] = None if value is None else make(value)
        return jsonb.text_of(made)

    if len(kinds) % 2:
        texts = texts[:-1]
    return Function("jsonb_build_object", known, JSONB, compute, strict=False)


@in_zones
def _build_json(kinds: Kinds, zone: ZoneInfo) -> Function | None:
    """json keeps its members as they are given, and is written with blanks around the colon."""
    object_of = _object_of(kinds, zone)
    known = object_of.arguments
    texts = [_shown(kind, zone) for kind in known[::2]]
    makes = [json_text_of(kind, zone) for kind in known[1::2]]

    def compute(*values: Any) -> str:
        object_of.compute(*values)  # for what it refuses
        pairs = zip(texts, makes, values[::2], values[1::2], strict=True)
        written = [
            f"{jsonb.text_of(text(name))} : {'null' if value is None else make(value)}"
            for text, make, name, value in pairs
        ]
        return within_limit(f"{{{', '.join(written)}}}")

    return Function("json_build_object", known, JSON, compute, strict=False)


@in_zones
def _build_json_array(kinds: Kinds, zone: ZoneInfo) -> Function | None:
    makes = [json_text_of(kind, zone) for kind in _known(kinds)]

    def compute(*values: Any) -> str:
        pairs = zip(makes, values, strict=True)
        written = ["null" if value is None else make(value) for make, value in pairs]
        return within_limit(f"[{', '.join(written)}]")

    return Function("json_build_array", _known(kinds), JSON, compute, strict=False)


@in_zones
def _to_json(kinds: Kinds, zone: ZoneInfo) -> Function | None:
    if len(kinds) != 1 or kinds[0] is None:
        return None
    make = json_text_of(kinds[0], zone)
    return Function("to_json", (kinds[0],), JSON, lambda value: within_limit(make(value)))


def within_limit(text: str) -> str:
    """Return a text. Raises TooLong for one that is longer than a value may be."""
    if len(text) > TEXT_BYTES_MAX:
        raise too_long(TEXT_BYTES_MAX)
    return text


# ------------------------------------------------------------------ char(n)


def _octets(kinds: Kinds) -> Function | None:
    """Return octet_length of char(n), with the blanks that fill it up; the catalogue has it of
    other types."""
    kind = kinds[0] if len(kinds) == 1 else None
    if kind is None or kind.name != "char":
        return None
    return Function("octet_length", (kind,), INTEGER, lambda v: len(shown_text(kind, v).encode()))


FAMILIES: Final[dict[str, Family]] = {
    "concat": _concat,
    "concat_ws": _concat_ws,
    "format": _format,
    "to_jsonb": _to_jsonb,
    "jsonb_build_array": _build_array,
    "jsonb_build_object": in_zones(_object_of),
    "to_json": _to_json,
    "json_build_array": _build_json_array,
    "json_build_object": _build_json,
    "octet_length": _octets,
}
"""By name: a function for the types of a call, None where it is none of theirs."""

FUNCTIONS: Final[tuple[Function, ...]] = (
    _quoting("quote_ident", quote_ident),
    _quoting("quote_literal", quote_literal),
    _quoting(
        "quote_nullable",
        lambda text: "NULL" if text is None else quote_literal(text),
        strict=False,
    ),
)
