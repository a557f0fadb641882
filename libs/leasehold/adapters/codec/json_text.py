"""Values as JSON text, and JSON text as values: valid JSON only, both ways.

JSON has no infinity and no NaN, Python's json module writes and reads them all the same. Here they
are the texts "Infinity", "-Infinity" and "NaN", as in PostgreSQL's to_json, and a request may give
them so to a double precision column (values/storage.py).
"""

from __future__ import annotations

import json
import math
from typing import Any, Final, NoReturn

from leasehold.values.storage import plain_form

_WORDS: Final = {math.inf: "Infinity", -math.inf: "-Infinity"}


def json_text(value: Any, *, indent: int | None = None) -> str:
    """Return a value as JSON text. Bytes become `\\x` and hex digits, dates and timestamps ISO
    8601, UUIDs and Decimals their text."""
    try:
        return _dumps(value, indent)
    except ValueError:  # rare: the walk is not paid for every row
        return _dumps(_with_words(value), indent)


def parse_json(text: str) -> Any:
    """Return the value of a JSON text. Raises ValueError for what is no JSON, such as a bare
    Infinity or a number too large for a double, and RecursionError for nesting too deep."""
    return json.loads(text, parse_constant=_no_constant, parse_float=_finite)


def _dumps(value: Any, indent: int | None) -> str:
    return json.dumps(value, default=_plain, ensure_ascii=False, allow_nan=False, indent=indent)


def _with_words(value: Any) -> Any:
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else _WORDS.get(value, "NaN")
    if isinstance(value, dict):
        return {_with_words(name): _with_words(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_with_words(each) for each in value]
    return _with_words(_plain(value))


def _plain(value: Any) -> Any:
    plain = plain_form(value)
    if plain is not value:
        return plain
    try:
        return dict(value)
    except (TypeError, ValueError):
        return str(value)


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f'{text} is not a JSON value; write "{text}" for a double precision column')


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"the number {text[:40]} is too large")
    return number
