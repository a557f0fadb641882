"""What a value may be, and the storage value that stands for it everywhere inside.

Storage values are what SQLite orders as PostgreSQL would order the type: int for integers, booleans
(0/1), dates (days since 1970-01-01), timestamps (microseconds since 1970-01-01, UTC), of which
infinite ones are `dates.INFINITY` and its opposite; float for
double precision, but for NaN, which is the text NaN there (`doubles.py`); str for text, varchar,
char (without trailing blanks) and uuid (lower-case canonical); bytes for bytea; int for an enum,
the place of its label (`enums.py`). numeric, jsonb,
interval and arrays are text of their own form (`numeric.py`, `jsonb.py`, `interval.py`,
`arrays.py`): what a client sees of them is made at the edge.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache, partial
from typing import Any, Final
from uuid import UUID

from leasehold.model.errors import (
    InvalidText,
    OutOfRange,
    Refused,
    TooLong,
    WrongType,
)
from leasehold.values import (
    arrays,
    dates,
    doubles,
    interval,
    json_text,
    jsonb,
    networks,
    numeric,
    times,
)
from leasehold.values.enums import to_place
from leasehold.values.singles import fewest_digits, single_of, single_of_exact
from leasehold.values.time_text import time_of_text, zoned_time_of_text
from leasehold.values.types import (
    INTEGER_BITS,
    STORED_AS_THEY_ARE,
    TEXT_BYTES_MAX,
    Type,
    element_of,
)

_NOT_FINITE: Final = frozenset({"Infinity", "-Infinity", "NaN"})  # JSON has no numbers for them

Converter = Callable[[Any], Any]


@lru_cache(maxsize=256)
def to_storage(kind: Type) -> Converter:
    """Return a function from an outside value (JSON or Python) to the storage value; None stays
    None.

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
    if kind.name == "char":
        return _padded(kind)
    if kind.name == "numeric":
        return _numeric(kind)
    element = element_of(kind)
    if element is not None:
        return _array(kind, element)
    if kind.enum is not None:
        return partial(to_place, kind.enum)
    simple: dict[str, Converter] = {
        "double precision": _double,
        "real": _real,
        "boolean": _boolean,
        "bytea": _bytes,
        "date": _date,
        "timestamp": lambda value: _timestamp(value, kind, zoned=False),
        "timestamptz": lambda value: _timestamp(value, kind, zoned=True),
        "time": lambda value: _time(value, kind),
        "timetz": lambda value: _zoned_time(value, kind),
        "inet": lambda value: _address(value, "inet"),
        "cidr": lambda value: _address(value, "cidr"),
        "uuid": _uuid,
        "json": _json,
        "jsonb": _jsonb,
        "interval": lambda value: _interval(value, kind),
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
            if isinstance(value, float | Decimal) and _is_whole(value):
                value = int(value)
            else:
                raise _wrong(value, name)
        if not -limit <= value < limit:
            raise OutOfRange(f"{_number_words(value)} is out of range for {name}")
        return value  # type: ignore[no-any-return]

    return convert


def _number_words(value: int | float | Decimal) -> str:
    """Return a number for an error text. ⚠ Python writes no int of more than 4,300 digits."""
    if isinstance(value, int) and value.bit_length() > 128:
        return "a huge number"
    return str(value)[:80]


def _is_whole(value: float | Decimal) -> bool:
    if isinstance(value, float):
        return value.is_integer()
    return value.is_finite() and value.adjusted() < 40 and value == value.to_integral_value()


def _text(kind: Type) -> Converter:
    length = kind.length

    def convert(value: Any) -> str:
        if type(value) is not str:
            raise _wrong(value, str(kind))
        text: str = value
        if length is not None and len(text) > length:
            if text[length:].strip(" "):
                raise TooLong(f"{len(text)} characters are too long for {kind}")
            text = text[:length]  # blanks that are too many go, as in PostgreSQL
        if len(text) > TEXT_BYTES_MAX:
            raise TooLong(f"{len(text)} characters; at most {TEXT_BYTES_MAX} are stored")
        if "\x00" in text:
            raise InvalidText("text must not contain the character U+0000")
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError as error:
                raise InvalidText("text holds a surrogate that UTF-8 has no form for") from error
        return text

    return convert


def _double(value: Any) -> doubles.Stored:
    if isinstance(value, str) and value in _NOT_FINITE:
        value = float(value)
    if type(value) not in (float, int, Decimal):
        raise _wrong(value, "double precision")
    try:
        number = float(value)
    except (OverflowError, ValueError) as error:  # the latter of a signaling NaN
        words = f"{_number_words(value)} is out of range for double precision"
        raise OutOfRange(words) from error
    return doubles.stored_form(number)


def _real(value: Any) -> doubles.Stored:
    if isinstance(value, str) and value in _NOT_FINITE:
        return doubles.stored_form(float(value))
    if type(value) not in (float, int, Decimal):
        raise _wrong(value, "real")
    if not math.isfinite(value) or isinstance(value, float):
        return doubles.stored_form(_in_real(float(value), single_of))
    return _in_real(value, single_of_exact)


def _in_real(value: Any, convert: Callable[[Any], float]) -> float:
    try:
        return convert(value)
    except OutOfRange as error:
        raise OutOfRange(f"{_number_words(value)} is out of range for real") from error


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


def _padded(kind: Type) -> Converter:
    """Return the converter of char(n), which is stored without the blanks that fill it up."""
    text = _text(kind)
    return lambda value: str(text(value)).rstrip(" ")


def _numeric(kind: Type) -> Converter:
    precision, scale = kind.precision, kind.scale

    def convert(value: Any) -> str:
        if type(value) is str:
            number = numeric.decimal_of_text(value)
        elif type(value) is int or type(value) is float:
            number = numeric.decimal_of_number(value)
        elif isinstance(value, Decimal):
            number = value
        else:
            raise _wrong(value, str(kind))
        return numeric.stored_form(numeric.fit_number(number, precision, scale))

    return convert


def _jsonb(value: Any) -> str:
    """Return the storage value of JSON: a text is JSON's text, as in SQL; anything else the value
    itself."""
    return jsonb.stored_form(value) if isinstance(value, str) else jsonb.text_of(value)


def _json(value: Any) -> str:
    """Return the storage value of JSON as `_jsonb` takes it; a text is kept as it is."""
    return json_text.stored_form(value) if isinstance(value, str) else jsonb.text_of(value)


def _interval(value: Any, kind: Type) -> str:
    if isinstance(value, timedelta):
        span = interval.Span(0, value.days, value.seconds * 1_000_000 + value.microseconds)
    elif isinstance(value, str):
        span = interval.span_of_text(value)
    else:
        raise _wrong(value, "interval")
    return interval.stored_form(interval.round_span(span, kind.length))


def _array(kind: Type, element: Type) -> Converter:
    store = to_storage(element)

    def convert(value: Any) -> str:
        if isinstance(value, str):  # as it comes in a request, which has JSON as its text
            value = jsonb.value_of(value) if value[:1] == "[" else value
        if not isinstance(value, list | tuple):
            raise _wrong(value, f"{kind} (an array of JSON)")
        if any(isinstance(item, list | tuple) for item in value):
            arrays.refuse_dimensions()
        return arrays.stored_form([store(item) for item in value])

    return convert


def _date(value: Any) -> int:
    if isinstance(value, date) and not isinstance(value, datetime):
        return dates.day_of(value)
    if not isinstance(value, str):
        raise _wrong(value, "date")
    if value in dates.INFINITE_WORDS:
        return dates.INFINITE_WORDS[value]
    try:
        return dates.day_of(date.fromisoformat(value))
    except ValueError as error:
        raise _wrong(value, "date (YYYY-MM-DD)") from error


def _timestamp(value: Any, kind: Type, *, zoned: bool) -> int:
    if isinstance(value, str):
        if value in dates.INFINITE_WORDS:
            return dates.INFINITE_WORDS[value]
        try:
            timestamp = datetime.fromisoformat(value)
        except ValueError as error:
            raise _wrong(value, "timestamp (ISO 8601)") from error
    elif isinstance(value, datetime):
        timestamp = value
    else:
        raise _wrong(value, "timestamp")
    return dates.round_second(dates.microseconds_of(timestamp, zoned=zoned), kind.length)


def _time(value: Any, kind: Type) -> int:
    if isinstance(value, time):
        microseconds = times.microseconds_of_python(value)
    elif isinstance(value, str):
        microseconds = time_of_text(value)
    else:
        raise _wrong(value, "time")
    return times.check_time(times.round_time(microseconds, kind.length))


def _zoned_time(value: Any, kind: Type) -> int:
    if isinstance(value, time):
        zoned = times.zoned_of_python(value)
        if zoned is None:
            raise WrongType("a time without an offset can't be stored as timetz")
        stored = times.stored_form(zoned)
    elif isinstance(value, str):
        stored = zoned_time_of_text(value)
    else:
        raise _wrong(value, "timetz")
    return times.round_zoned(stored, kind.length)


def _address(value: Any, kind: str) -> str:
    if isinstance(value, str):
        return networks.stored_form(networks.address_of_text(value, kind))
    address = networks.address_of_python(value)
    if address is None or (kind == "cidr" and address.number & ~address.mask):
        raise _wrong(value, kind)
    return networks.stored_form(address)


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
    """Return the Python value of a storage value: bool, date, datetime (aware for timestamptz),
    UUID, Decimal …; of jsonb its text, of an array a list, of an infinite date or timestamp the
    word for it."""
    if value is None or kind.name in STORED_AS_THEY_ARE:
        return value
    match kind.name:
        case "boolean":
            return bool(value)
        case "date" | "timestamp" | "timestamptz" if dates.is_infinite(value):
            return dates.infinite_word(value)
        case "date":
            return dates.date_of(value)
        case "timestamp":
            return dates.utc_of(value).replace(tzinfo=None)
        case "timestamptz":
            return dates.utc_of(value)
        case "double precision" | "real":
            return doubles.number_of(value)
        case "numeric":
            return numeric.decimal_of(value)
        case "char":
            return value.ljust(kind.length or 0)
        case "interval":
            return interval.text_of(value)
        case "inet":
            return networks.python_of(value)
        case "cidr":
            return networks.python_network_of(value)
        case "time":
            return times.python_of(value)
        case "timetz":
            return times.python_of_zoned(value)
        case "uuid":
            return UUID(value)
        case "enum":
            return label_of(kind, value)
    element = element_of(kind)
    if element is not None:
        return [from_storage(element, item) for item in arrays.elements_of(value)]
    return value


def label_of(kind: Type, value: Any) -> str:
    """Return the label of a value of an enum type."""
    assert kind.enum is not None, kind
    return kind.enum.text_of(value)


def fit_stored(kind: Type) -> Converter:
    """Return a function that brings the storage value of a type like this one (of more values,
    another length, another version of an enum) to one of this. Raises what `to_storage` raises."""
    store = to_storage(kind)
    if kind.enum is None and kind.name == "numeric":
        return lambda value: None if value is None else store(numeric.decimal_of(value))
    if kind.enum is None:
        return store
    enum = kind.enum
    if element_of(kind) is None:
        return lambda value: None if value is None else enum.fitting(value)

    def each(value: Any) -> Any:
        for place in () if value is None else arrays.elements_of(value):
            if place is not None:
                enum.fitting(place)
        return value

    return each


def keep_stored(kind: Type) -> Converter:
    """Return a function that returns the storage value of a wider type as it is. Raises what
    `to_storage` raises for one that the type lacks, and TooLong for a text which only blanks make
    too long: they would go if it was written anew."""
    fit = fit_stored(kind)

    def keep(value: Any) -> Any:
        if fit(value) != value:
            raise TooLong(
                f"{len(value)} characters, with blanks at its end, are too long for {kind}: take"
                " the blanks away by rtrim(…) first, or say USING"
            )
        return value

    return keep


def is_kept(kind: Type, value: Any) -> bool:
    """Say whether the storage value of a wider type is one of this, or None."""
    try:
        keep_stored(kind)(value)
    except Refused:
        return False
    return True


def to_json(kind: Type, value: Any) -> Any:
    """Return the JSON form of a storage value, the one that `to_storage` reads back."""
    element = element_of(kind)
    if element is not None and value is not None:
        return [to_json(element, each) for each in arrays.elements_of(value)]
    decoded = plain_form(from_storage(kind, value))
    if kind.name == "real" and decoded is not None and math.isfinite(decoded) and decoded:
        return fewest_digits(decoded)  # 0.1, not the double that is the real next to it
    if isinstance(decoded, float) and not math.isfinite(decoded):
        return "NaN" if math.isnan(decoded) else "Infinity" if decoded > 0 else "-Infinity"
    return decoded


def plain_form(value: Any) -> Any:
    """Return the text that stands for a date, a time, a UUID, a Decimal or bytes where there is no
    form for it, as in JSON; any other value is returned as it is."""
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    if isinstance(value, UUID) or networks.address_of_python(value) is not None:
        return str(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, list):
        return [plain_form(each) for each in value]
    return "\\x" + value.hex() if isinstance(value, bytes) else value
