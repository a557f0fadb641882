"""Column types: what a value may be, and the storage value that stands for it everywhere inside.

Storage values are what SQLite orders as PostgreSQL would order the type: int for integers, booleans
(0/1), dates (days since 1970-01-01), timestamps (microseconds since 1970-01-01, UTC); float for
double precision; str for text, varchar and uuid (lower-case canonical); bytes for bytea.
`numeric` and `jsonb` need arithmetic and operators that come with SQL and are refused until then.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

from leasehold.model.errors import (
    FeatureNotSupported,
    InvalidText,
    OutOfRange,
    Refused,
    TooLong,
    WrongType,
)

INTEGER_BITS: Final = {"smallint": 16, "integer": 32, "bigint": 64}
SYNONYMS: Final = {
    "int2": "smallint",
    "int": "integer",
    "int4": "integer",
    "int8": "bigint",
    "float8": "double precision",
    "double": "double precision",
    "float": "double precision",
    "bool": "boolean",
    "character varying": "varchar",
    "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamptz",
}
KNOWN: Final = (
    "smallint",
    "integer",
    "bigint",
    "double precision",
    "text",
    "varchar",
    "boolean",
    "bytea",
    "date",
    "timestamp",
    "timestamptz",
    "uuid",
)
STORED_AS_THEY_ARE: Final = frozenset(
    {"smallint", "integer", "bigint", "double precision", "text", "varchar", "bytea"}
)
"""Types whose storage value is the Python value."""

TEXT_BYTES_MAX: Final = 262_144
_NOT_FINITE: Final = frozenset({"Infinity", "-Infinity", "NaN"})  # JSON has no numbers for them
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Type:
    """`name` is one of KNOWN; `length` (characters) only for varchar(n)."""

    name: str
    length: int | None = None

    def __str__(self) -> str:
        return self.name if self.length is None else f"{self.name}({self.length})"


def parse_type(text: str) -> Type:
    """`varchar(20)`, `int8` … → Type. Raises FeatureNotSupported naming the known types."""
    name, _, rest = text.strip().lower().partition("(")
    name = SYNONYMS.get(name.strip(), name.strip())
    if name not in KNOWN or (rest and name != "varchar"):
        raise FeatureNotSupported(f"type {text!r} is not known; known are: {', '.join(KNOWN)}")
    if not rest:
        return Type(name)
    digits = rest.rstrip(") ").strip()
    if not digits.isdecimal() or not 1 <= int(digits) <= TEXT_BYTES_MAX:
        raise FeatureNotSupported(f"type {text!r}: the length must be 1 to {TEXT_BYTES_MAX}")
    return Type(name, int(digits))


Converter = Callable[[Any], Any]


@lru_cache(maxsize=256)
def to_storage(kind: Type) -> Converter:
    """A function from an outside value (JSON or Python) to the storage value; None stays None.

    It raises WrongType, InvalidText, OutOfRange or TooLong; the caller adds the column's name.
    """
    convert = _converter(kind)

    def checked(value: Any) -> Any:
        return None if value is None else convert(value)

    return checked


def _converter(kind: Type) -> Converter:
    if kind.name in INTEGER_BITS:
        return _integer(kind.name)
    if kind.name in ("text", "varchar"):
        return _text(kind)
    simple: dict[str, Converter] = {
        "double precision": _double,
        "boolean": _boolean,
        "bytea": _bytes,
        "date": _date,
        "timestamp": lambda value: _timestamp(value, zoned=False),
        "timestamptz": lambda value: _timestamp(value, zoned=True),
        "uuid": _uuid,
    }
    return simple[kind.name]


def _wrong(value: Any, wanted: str) -> Refused:
    if isinstance(value, str):
        return InvalidText(f"{value[:80]!r} is not a valid {wanted}")
    return WrongType(f"a {type(value).__name__} can't be stored as {wanted}")


def _integer(name: str) -> Converter:
    limit = 1 << INTEGER_BITS[name] - 1

    def convert(value: Any) -> int:
        if type(value) is not int:
            if isinstance(value, float) and value.is_integer():
                value = int(value)
            else:
                raise _wrong(value, name)
        if not -limit <= value < limit:
            raise OutOfRange(f"{value} is out of range for {name}")
        return int(value)

    return convert


def _text(kind: Type) -> Converter:
    length = kind.length

    def convert(value: Any) -> str:
        if type(value) is not str:
            raise _wrong(value, str(kind))
        if length is not None and len(value) > length:
            raise TooLong(f"{len(value)} characters are too long for {kind}")
        if len(value) > TEXT_BYTES_MAX:
            raise TooLong(f"{len(value)} characters; at most {TEXT_BYTES_MAX} are stored")
        if "\x00" in value:
            raise InvalidText("text must not contain the character U+0000")
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError as error:
                raise InvalidText("text holds a surrogate that UTF-8 has no form for") from error
        return value

    return convert


def _double(value: Any) -> float:
    if isinstance(value, str) and value in _NOT_FINITE:
        value = float(value)
    if type(value) not in (float, int):
        raise _wrong(value, "double precision")
    try:
        number = float(value)
    except OverflowError as error:
        raise OutOfRange(f"{value} is out of range for double precision") from error
    if math.isnan(number):
        # SQLite stores NaN as NULL, which would turn a value into an absent pair.
        raise OutOfRange("NaN can't be stored in a double precision column")
    return number


def _boolean(value: Any) -> int:
    if type(value) is not bool:
        raise _wrong(value, "boolean")
    return int(value)


def _bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        data = value
    elif isinstance(value, str) and value.startswith("\\x"):
        try:
            data = bytes.fromhex(value[2:])
        except ValueError as error:
            raise InvalidText("bytea text must be \\x and an even number of hex digits") from error
    else:
        raise _wrong(value, "bytea (bytes, or text starting with \\x)")
    if len(data) > TEXT_BYTES_MAX:
        raise TooLong(f"{len(data)} bytes; at most {TEXT_BYTES_MAX} are stored")
    return data


def _date(value: Any) -> int:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.toordinal() - _EPOCH_DAY
    if not isinstance(value, str):
        raise _wrong(value, "date")
    try:
        return date.fromisoformat(value).toordinal() - _EPOCH_DAY
    except ValueError as error:
        raise _wrong(value, "date (YYYY-MM-DD)") from error


def _timestamp(value: Any, *, zoned: bool) -> int:
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError as error:
            raise _wrong(value, "timestamp (ISO 8601)") from error
    elif isinstance(value, datetime):
        moment = value
    else:
        raise _wrong(value, "timestamp")
    if moment.tzinfo is None or not zoned:
        moment = moment.replace(tzinfo=UTC)
    try:
        return (moment.astimezone(UTC) - _EPOCH) // _MICROSECOND
    except OverflowError as error:
        raise OutOfRange(f"{moment.isoformat()} in UTC is not in the years 1 to 9999") from error


def _uuid(value: Any) -> str:
    if isinstance(value, UUID):
        return str(value)
    if not isinstance(value, str):
        raise _wrong(value, "uuid")
    try:
        return str(UUID(value))
    except ValueError as error:
        raise _wrong(value, "uuid") from error


def from_storage(kind: Type, value: Any) -> Any:
    """The Python value of a storage value: bool, date, datetime (aware for timestamptz), UUID …"""
    if value is None:
        return None
    match kind.name:
        case "boolean":
            return bool(value)
        case "date":
            return date.fromordinal(value + _EPOCH_DAY)
        case "timestamp":
            return (_EPOCH + timedelta(microseconds=value)).replace(tzinfo=None)
        case "timestamptz":
            return _EPOCH + timedelta(microseconds=value)
        case "uuid":
            return UUID(value)
    return value


def to_json(kind: Type, value: Any) -> Any:
    """The JSON form of a storage value, the one that `to_storage` reads back."""
    decoded = from_storage(kind, value)
    if isinstance(decoded, date | datetime):
        return decoded.isoformat()
    if isinstance(decoded, UUID):
        return str(decoded)
    if isinstance(decoded, bytes):
        return "\\x" + decoded.hex()
    if isinstance(decoded, float) and math.isinf(decoded):
        return "Infinity" if decoded > 0 else "-Infinity"
    return decoded
