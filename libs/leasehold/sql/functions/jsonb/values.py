"""A storage value as a value of JSON: what to_jsonb and the aggregates over JSON make of it."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from math import isfinite
from typing import Any, Final
from zoneinfo import ZoneInfo

from leasehold.model.budget import charge_each
from leasehold.values.arrays import collect, elements_of
from leasehold.values.dates import infinite_word, is_infinite, utc_of
from leasehold.values.doubles import Stored, number_of
from leasehold.values.jsonb import count_number, text_of, value_of
from leasehold.values.numeric import decimal_of
from leasehold.values.text_io import double_text, real_text, shown_text, to_text
from leasehold.values.time_zone import UTC, local_of, offset_at, offset_text
from leasehold.values.types import FLOATS, INTEGER_BITS, Type, element_of

_ELEMENT_WORK: Final = 200


def json_of(kind: Type, zone: ZoneInfo = UTC) -> Callable[[Any], Any]:
    """Never called with None. Numbers stay numbers, but for those that JSON has none for."""
    if kind.name in INTEGER_BITS:
        return Decimal
    if kind.name == "boolean":
        return bool
    if kind.name in ("json", "jsonb"):
        return value_of
    if kind.name == "numeric":
        return _exact
    if kind.name == "double precision":
        return _double
    if kind.name == "real":
        return _real
    if kind.name == "timestamp":
        return _local
    if kind.name == "timestamptz":
        return lambda value: _zoned(value, zone)
    element = element_of(kind)
    if element is not None:
        return partial(_list, json_of(element, zone))
    return lambda value: shown_text(kind, value)


def json_text_of(kind: Type, zone: ZoneInfo = UTC) -> Callable[[Any], str]:
    """Return what makes the json text of a value that is not NULL: json itself is as it was said,
    and arrays have no blanks between elements."""
    if kind.name in ("json", "jsonb"):
        return str
    element = element_of(kind)
    if element is not None:
        return partial(_array_text, json_text_of(element, zone))
    if kind.name in FLOATS:
        return partial(_float_text, kind)
    make = json_of(kind, zone)
    return lambda value: text_of(make(value))


def _float_text(kind: Type, value: Stored) -> str:
    text = to_text(kind, value)
    return text if isfinite(number_of(value)) else f'"{text}"'


def _array_text(make: Callable[[Any], str], stored: str) -> str:
    shown = collect(
        "null" if value is None else make(value)
        for value in charge_each(elements_of(stored), _ELEMENT_WORK)
    )
    return f"[{','.join(shown)}]"


def _list(make: Callable[[Any], Any], stored: str) -> list[Any]:
    made: list[Any] = []
    size = 0
    for value in charge_each(elements_of(stored), _ELEMENT_WORK):
        made.append(None if value is None else make(value))
        size = count_number(size, made[-1])
    return made


def _exact(value: str) -> Any:
    number = decimal_of(value)
    return number if number.is_finite() else str(number)


def _double(value: Stored) -> Any:
    number = number_of(value)
    text = double_text(number)
    return Decimal(text) if isfinite(number) else text


def _real(value: Stored) -> Any:
    number = number_of(value)
    text = real_text(number)
    return Decimal(text) if isfinite(number) else text


def _local(value: int) -> str:
    if is_infinite(value):
        return infinite_word(value)
    shown = utc_of(value).replace(tzinfo=None).isoformat()
    return shown.rstrip("0") if "." in shown else shown


def _zoned(value: int, zone: ZoneInfo) -> str:
    if is_infinite(value):
        return infinite_word(value)
    offset = offset_text(offset_at(value, zone))
    return _local(local_of(value, zone)) + (offset if ":" in offset else f"{offset}:00")
