"""The storage form of an array of one dimension: one text for each sequence of storage values, and
the refusal of others.

It is JSON of the elements' storage values, bytes as {"\\\\x": hex digits}: it says of itself what
is a number, a text or bytes, so nobody who takes it apart needs the element's type.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NoReturn

from leasehold.model.budget import charge_each, charge_size
from leasehold.model.errors import FeatureNotSupported, RequestTooLarge

ELEMENTS_MAX: Final = 100_000
CHARACTERS_MAX: Final = 16 << 20
_BYTES: Final = "\\x"
_LONG: Final = 100
_ELEMENT_WORK: Final = 25
_KEY_WORK: Final = 100
"""Of an element whose sort key is made."""


_PAGE: Final = "docs/how-to/do-without.md"


def refuse_dimensions(position: int | None = None) -> NoReturn:
    """Raise FeatureNotSupported for an array of arrays. `position`: in the statement's text."""
    raise FeatureNotSupported(
        "arrays of more than one dimension are not supported",
        hint="Keep it as jsonb, as '[[1, 2], [3, 4]]', or as rows of a table whose key has a"
        f" column for each dimension ({_PAGE})",
        **({} if position is None else {"position": position}),
    )


def refuse_bounds() -> NoReturn:
    """Raise FeatureNotSupported for an array that begins with another element than 1."""
    raise FeatureNotSupported(
        "arrays that begin with another element than 1 are not supported",
        hint=f"Leave the bounds out: {{1,2}}, not [0:1]={{1,2}} ({_PAGE})",
    )


def stored_form(values: Sequence[Any]) -> str:
    """Return the text of storage values. Raises RequestTooLarge above ELEMENTS_MAX elements or
    CHARACTERS_MAX characters."""
    check_number(len(values))
    charge_size(len(values), _ELEMENT_WORK)
    made = _write(values)
    check_characters(len(made))
    return made


def check_number(count: int) -> None:
    """Raises RequestTooLarge for an array of so many elements, before it is made."""
    if count > ELEMENTS_MAX:
        raise RequestTooLarge(f"an array has at most {ELEMENTS_MAX} elements, not {count}")


def check_characters(size: int) -> None:
    """Raises RequestTooLarge for an array of so many characters, before it is made."""
    if size > CHARACTERS_MAX:
        raise RequestTooLarge(f"an array has at most {CHARACTERS_MAX} characters, not {size}")


def collect(values: Iterable[Any]) -> list[Any]:
    """Return the values of an array that is being made. Raises RequestTooLarge as soon as its long
    texts are too many characters: a short number may be a long text."""
    made: list[Any] = []
    size = 0
    for value in values:
        made.append(value)
        if type(value) is str and len(value) > _LONG:
            size += len(value)
            check_characters(size)
    return made


def elements_of(stored: str) -> list[Any]:
    """Return the storage values, None for NULL."""
    charge_size(len(stored) >> 2, 1)  # 600 characters a microsecond, at worst 300
    found: list[Any] = _read(stored)
    return found


def _hex(value: bytes) -> dict[str, str]:
    return {_BYTES: value.hex()}


def _unhex(pairs: dict[str, str]) -> bytes:
    return bytes.fromhex(pairs[_BYTES])


_write: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_hex).encode
_read: Final = json.JSONDecoder(object_hook=_unhex).decode


# ------------------------------------------------------------------ order

_END, _VALUE, _NULL = b"\0", b"\1", b"\2"  # a shorter array first, NULLs last
_DOUBLE: Final = struct.Struct(">d")
_MOST: Final = (1 << 64) - 1


def ordered_form(values: Iterable[Any]) -> bytes:
    """Return bytes that are ordered as arrays of these sort keys are: element by element."""
    parts: list[bytes] = []
    for value in values:
        parts += (_NULL,) if value is None else (_VALUE, _ordered(value))
    return b"".join(parts) + _END


def _ordered(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode() + b"\0"  # no text holds U+0000
    if isinstance(value, bytes):
        return value.replace(b"\0", b"\0\xff") + b"\0\0"
    if isinstance(value, float):
        number = int.from_bytes(_DOUBLE.pack(value or 0.0))  # -0 is 0
        return (number ^ (_MOST if number >> 63 else 1 << 63)).to_bytes(8)
    return (int(value) + (1 << 63)).to_bytes(8)


def make_sort_key(element: Callable[[Any], Any] | None) -> Callable[[str], bytes]:
    """Return the function that makes an array's sort key. `element` makes that of an element; None
    where it is the element itself."""
    if element is None:
        return lambda stored: ordered_form(charge_each(elements_of(stored), _KEY_WORK))
    return lambda stored: ordered_form(
        None if value is None else element(value)
        for value in charge_each(elements_of(stored), 2 * _KEY_WORK)
    )
