"""What a stranger's values are to be, and the sentences that say what they are instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from difflib import get_close_matches
from math import isfinite, isnan
from typing import Any, Final

from leasehold.model.errors import MalformedRequest, Refused
from leasehold.model.keys import INTEGER_LEAST, INTEGER_MOST
from leasehold.values.jsonb import text_of
from leasehold.values.numeric import has_room
from leasehold.values.storage import plain_form

NAME_CHARACTERS_MAX: Final = 256


def check_storable(value: Any, where: str, field: str, name: Any) -> None:
    """Raise MalformedRequest unless `value` can be a storage value or become one. Which type it
    must be, the log knows."""
    kind = type(value)
    if kind is str:
        if value.isascii() or encodable(value):
            return
        wanted = "text without lone surrogates"
    elif kind is int:
        if INTEGER_LEAST <= value <= INTEGER_MOST:
            return
        wanted = "a whole number of at most 64 bits"
    elif kind is float or kind is bytes or kind is bool or value is None:
        return
    elif kind is Decimal:
        if has_room(value):
            return
        wanted = "a number of as many digits as a numeric has"
    else:
        wanted = "text, a number, true, false, bytes or null"
    position = f"{where}{field}" if name is None else f"{where}{field}.{show_name(name)}"
    raise unexpected_value(position, wanted, value)


def storable(value: Any, where: str, field: str, name: Any) -> Any:
    """Return what stands for a value: the value itself, a number of more than 64 bits exactly, an
    object or an array as the text of its JSON. Raises MalformedRequest as `check_storable`."""
    kind = type(value)
    if kind is dict or kind is list:
        try:
            return text_of(value if kind is dict else [_in_json(each) for each in value])
        except Refused as error:
            position = f"{where}{field}" if name is None else f"{where}{field}.{show_name(name)}"
            raise MalformedRequest(f"'{position}': {error.message}", field=position) from error
    if kind is int and not INTEGER_LEAST <= value <= INTEGER_MOST:
        value = Decimal(value)
    check_storable(value, where, field, name)
    return value


def _in_json(value: Any) -> Any:
    """Return an element of an array as JSON has it: bytes, and numbers that JSON has not, as
    text."""
    if isinstance(value, float) and not isfinite(value):
        return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return plain_form(value) if isinstance(value, bytes) else value


def check_name(value: Any, where: str, field: str) -> str:
    if type(value) is not str or not 0 < len(value) <= NAME_CHARACTERS_MAX:
        raise unexpected_value(
            f"{where}{field}", f"a name (text of 1 to {NAME_CHARACTERS_MAX} characters)", value
        )
    if not value.isascii() and not encodable(value):
        raise unexpected_value(f"{where}{field}", "a name without lone surrogates", value)
    return value


def check_text(value: Any, field: str, characters_max: int) -> str:
    if type(value) is not str or not 0 < len(value) <= characters_max:
        raise unexpected_value(field, "text", value)
    if not encodable(value):
        raise unexpected_value(field, "text without lone surrogates", value)
    return value


def encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_whole_number(value: Any, field: str, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise unexpected_value(field, f"a whole number from {least} to {most}", value)
    return value


def check_flag(value: Any, field: str) -> bool:
    if type(value) is not bool:
        raise unexpected_value(field, "true or false", value)
    return value


def check_choice(value: Any, field: str, choices: Mapping[str, Any]) -> Any:
    if type(value) is not str or value not in choices:
        raise unexpected_value(field, f"one of {', '.join(choices)}", value)
    return choices[value]


def unexpected_value(field: str, wanted: str, value: Any) -> MalformedRequest:
    found = "nothing" if value is None else describe_value(value)
    return MalformedRequest(f"'{field}': expected {wanted}, found {found}", field=field)


_KIND_WORDS: Final[Mapping[type[Any], Callable[[Any], str]]] = {
    dict: lambda value: "an object" if value else "an empty object",
    list: lambda value: f"an array of {len(value)}",
    str: lambda value: f"the text {value[:40]!r}",
    bytes: lambda value: f"{len(value)} bytes",
    bool: lambda value: "true" if value else "false",
    int: lambda value: f"the number {value}" if value.bit_length() < 128 else "a huge number",
    float: lambda value: f"the number {value}",
    Decimal: lambda value: f"the number {value:.4E}",
    type(None): lambda _: "null",
}


def describe_value(value: Any) -> str:
    words = _KIND_WORDS.get(type(value))
    return f"a {type(value).__name__}" if words is None else words(value)


def show_name(name: Any) -> str:
    """Return a stranger's name as it may stand in a message: short, printable, encodable."""
    return ascii(name)[1:-1][:80] if type(name) is str else repr(name)[:80]


def refuse_unknown(fields: Mapping[Any, Any], known: frozenset[str], where: str) -> None:
    for name in fields:
        if name in known:
            continue
        near = get_close_matches(name[:64], sorted(known), n=1) if type(name) is str else []
        hint = f"; did you mean '{near[0]}'?" if near else f"; known are {', '.join(sorted(known))}"
        position = f"{where}{show_name(name)}"
        raise MalformedRequest(f"'{position}' is not a field of this request{hint}", field=position)
