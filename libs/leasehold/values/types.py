"""Column types: what a value may be, and the storage value that stands for it everywhere inside.

Storage values are what SQLite orders as PostgreSQL would order the type: int for integers, booleans
(0/1), dates (days since 1970-01-01), timestamps (microseconds since 1970-01-01, UTC); float for
double precision, but for NaN, which is the text NaN there (`doubles.py`); str for text, varchar,
char (without trailing blanks) and uuid (lower-case canonical); bytes for bytea. numeric, jsonb,
interval and arrays are text of their own form (`numeric.py`, `jsonb.py`, `interval.py`,
`arrays.py`): what a client sees of them is made at the edge.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

from leasehold.model.errors import (
    FeatureNotSupported,
    InvalidArgument,
    InvalidText,
    OutOfRange,
    Refused,
    TooLong,
    WrongType,
)
from leasehold.values import arrays, dates, doubles, interval, jsonb, numeric
from leasehold.values.letters import BLANKS, ascii_lower
from leasehold.values.numeric import PRECISION_MAX

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
    "decimal": "numeric",
    "dec": "numeric",
    "character": "char",
    "bpchar": "char",
    "character varying": "varchar",
    "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamptz",
}
KNOWN: Final = (
    "smallint",
    "integer",
    "bigint",
    "numeric",
    "double precision",
    "text",
    "varchar",
    "char",
    "boolean",
    "bytea",
    "date",
    "timestamp",
    "timestamptz",
    "uuid",
    "jsonb",
)
"""Of columns; `interval` is a type of expressions alone."""
STORED_AS_THEY_ARE: Final = frozenset(
    {"smallint", "integer", "bigint", "text", "varchar", "bytea", "jsonb"}
)
"""Types whose storage value is the Python value."""

VECTORS: Final = {"int2vector": "smallint", "oidvector": "oid"}
"""Arrays of the system catalog alone: subscripts begin at 0, and blanks stand between elements."""
TEXT_BYTES_MAX: Final = 262_144
SCALE_LIMIT: Final = 1_000
_WHOLE_BITS_MAX: Final = 4 * numeric.WHOLE_DIGITS_MAX
"""No number of more bits has that many digits; Decimal takes seconds for them."""
_SINGLE_BITS, _DOUBLE_BITS = 24, 53
_NOT_FINITE: Final = frozenset({"Infinity", "-Infinity", "NaN"})  # JSON has no numbers for them
_MODIFIED: Final = re.compile(r"([^(]*)\(([^()]*)\)")


@dataclass(frozen=True, slots=True)
class Type:
    """The type of a column or an expression. `name` is one of KNOWN, `interval`, or one of these
    and `[]` for an array of it, whose length and precision are the element's. `length` (characters)
    is only for varchar(n) and char(n), `precision` and `scale` only for numeric(p, s), both or
    neither."""

    name: str
    length: int | None = None
    precision: int | None = None
    scale: int | None = None

    def __str__(self) -> str:
        element = element_of(self)
        if element is not None and self.name not in VECTORS:
            return f"{element}[]"
        if self.length is not None:
            return f"{self.name}({self.length})"
        if self.precision is not None:
            return f"{self.name}({self.precision},{self.scale})"
        return self.name


def array_of(element: Type) -> Type:
    return replace(element, name=f"{element.name}[]")


def element_of(kind: Type) -> Type | None:
    """Return the type of an array's elements, None for what is no array."""
    if kind.name.endswith("[]"):
        return replace(kind, name=kind.name[:-2])
    found = VECTORS.get(kind.name)
    return None if found is None else Type(found)


def first_subscript(array: Type) -> int:
    return 0 if array.name in VECTORS else 1


def parse_type(text: str) -> Type:
    """Return the type that a text names: `varchar(20)`, `int8`, `numeric(10, 2)` …

    Raises FeatureNotSupported naming the known types, InvalidArgument for a modifier out of range.
    """
    whole = ascii_lower(text.strip(BLANKS))
    found = _MODIFIED.fullmatch(whole)
    name = (found[1] if found else whole).strip(BLANKS)
    takes = name == "float"
    name = name if found and takes else SYNONYMS.get(name, name)
    takes = takes or name in ("varchar", "char", "numeric")
    if (name not in KNOWN and name != "float") or (found and not takes):
        raise FeatureNotSupported(f"type {text!r} is not known; known are: {', '.join(KNOWN)}")
    if found is None:
        return Type(name, 1) if name == "char" else Type(name)
    modifiers = [part.strip(BLANKS) for part in found[2].split(",")]
    if not all(re.fullmatch("-?[0-9]{1,9}", part) for part in modifiers):
        raise InvalidArgument(f"type {text!r}: a length or precision must be a whole number")
    return type_with(name, [int(part) for part in modifiers])


def type_with(name: str, modifiers: Sequence[int]) -> Type:
    """Return a type with its modifiers: varchar [20] → varchar(20), numeric [10] → numeric(10,0).
    Raises InvalidArgument."""
    if not modifiers:
        return Type(name, 1) if name == "char" else Type(name)
    if name == "numeric" and len(modifiers) <= 2:
        precision, scale = (*modifiers, 0)[:2]
        if not 1 <= precision <= PRECISION_MAX:
            raise InvalidArgument(f"numeric: the precision must be 1 to {PRECISION_MAX}")
        if not -SCALE_LIMIT <= scale <= SCALE_LIMIT:
            raise InvalidArgument(f"numeric: the scale must be {-SCALE_LIMIT} to {SCALE_LIMIT}")
        return Type(name, None, precision, scale)
    if name in ("varchar", "char") and len(modifiers) == 1:
        if not 1 <= modifiers[0] <= TEXT_BYTES_MAX:
            raise InvalidArgument(f"type {name}: the length must be 1 to {TEXT_BYTES_MAX}")
        return Type(name, modifiers[0])
    if name == "float" and len(modifiers) == 1:
        if not 1 <= modifiers[0] <= _DOUBLE_BITS:
            raise InvalidArgument(f"float: the precision must be 1 to {_DOUBLE_BITS} bits")
        if modifiers[0] <= _SINGLE_BITS:
            raise FeatureNotSupported(f"float({modifiers[0]}) is real, which is not supported")
        return Type("double precision")
    raise FeatureNotSupported(f"type {name!r} takes no such length or precision")


def type_to_wire(kind: Type) -> dict[str, Any]:
    """Return the fields of a column's wire form; what only numeric has stands there only for
    numeric."""
    fields: dict[str, Any] = {"type": kind.name, "length": kind.length}
    if kind.precision is not None:
        fields |= {"precision": kind.precision, "scale": kind.scale}
    return fields


def type_from_wire(body: Mapping[str, Any]) -> Type:
    return Type(body["type"], body["length"], body.get("precision"), body.get("scale"))


def words_of(kind: Type, value: Any) -> str:
    """Return a storage value, or the sort key of one, as a refusal shows it."""
    if value == doubles.NAN and kind.name == "double precision":
        return doubles.NAN
    shown = numeric.words_of(value) if kind.name == "numeric" and value else repr(value)
    return shown[:80]


def sort_key_of(kind: Type) -> Callable[[Any], Any] | None:
    """Return the function that makes what stands for a value (not NULL) in equality, SQLite's order
    and index entries, None where that is the value itself."""
    element = element_of(kind)
    if element is not None:
        ordered = doubles.number_of if element.name == "double precision" else sort_key_of(element)
        return arrays.sort_key(ordered)
    return _SORT_KEYS.get(kind.name)


def order_key_of(kind: Type) -> Callable[[Any], Any] | None:
    """Return the function that makes what Python compares in the place of values (not NULL), None
    where these are compared themselves."""
    return doubles.order_of if kind.name == "double precision" else sort_key_of(kind)


_SORT_KEYS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "numeric": numeric.sort_key,
    "interval": interval.sort_key,
    "jsonb": jsonb.ordered_form,
}


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
    simple: dict[str, Converter] = {
        "double precision": _double,
        "boolean": _boolean,
        "bytea": _bytes,
        "date": _date,
        "timestamp": lambda value: _timestamp(value, zoned=False),
        "timestamptz": lambda value: _timestamp(value, zoned=True),
        "uuid": _uuid,
        "jsonb": _jsonb,
        "interval": _interval,
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
        elif type(value) is int:
            if value.bit_length() > _WHOLE_BITS_MAX:
                raise OutOfRange("value overflows numeric format")
            number = Decimal(value)
        elif type(value) is float:
            number = Decimal(repr(value))  # the shortest text that is this double
        elif isinstance(value, Decimal):
            number = value
        else:
            raise _wrong(value, str(kind))
        return numeric.stored_form(numeric.fitted(number, precision, scale))

    return convert


def _jsonb(value: Any) -> str:
    """Return the storage value of JSON: a text is JSON's text, as in SQL; anything else the value
    itself."""
    return jsonb.stored_form(value) if isinstance(value, str) else jsonb.text_of(value)


def _interval(value: Any) -> str:
    if not isinstance(value, str):
        raise _wrong(value, "interval")
    return interval.stored_form(interval.span_of_text(value))


def _array(kind: Type, element: Type) -> Converter:
    store = to_storage(element)

    def convert(value: Any) -> str:
        if not isinstance(value, list | tuple):
            raise _wrong(value, str(kind))
        if any(isinstance(item, list | tuple) for item in value):
            raise FeatureNotSupported("arrays of more than one dimension are not supported")
        return arrays.stored_form([store(item) for item in value])

    return convert


def _date(value: Any) -> int:
    if isinstance(value, date) and not isinstance(value, datetime):
        return dates.day_of(value)
    if not isinstance(value, str):
        raise _wrong(value, "date")
    try:
        return dates.day_of(date.fromisoformat(value))
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
    return dates.microseconds_of(moment, zoned=zoned)


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
    UUID, Decimal …; of jsonb its text, of an array a list."""
    if value is None:
        return None
    match kind.name:
        case "boolean":
            return bool(value)
        case "date":
            return dates.date_of(value)
        case "timestamp":
            return dates.utc_of(value).replace(tzinfo=None)
        case "timestamptz":
            return dates.utc_of(value)
        case "double precision":
            return doubles.number_of(value)
        case "numeric":
            return numeric.decimal_of(value)
        case "char":
            return value.ljust(kind.length or 0)
        case "interval":
            return interval.text_of(value)
        case "uuid":
            return UUID(value)
    element = element_of(kind)
    if element is not None:
        return [from_storage(element, item) for item in arrays.elements_of(value)]
    return value


def to_json(kind: Type, value: Any) -> Any:
    """Return the JSON form of a storage value, the one that `to_storage` reads back."""
    decoded = from_storage(kind, value)
    if isinstance(decoded, date | datetime):
        return decoded.isoformat()
    if isinstance(decoded, UUID):
        return str(decoded)
    if isinstance(decoded, Decimal):
        return format(decoded, "f")
    if isinstance(decoded, bytes):
        return "\\x" + decoded.hex()
    if isinstance(decoded, float) and not math.isfinite(decoded):
        return "NaN" if math.isnan(decoded) else "Infinity" if decoded > 0 else "-Infinity"
    return decoded


def why_no_key(kind: Type) -> str:
    """Return why a column of this type can't be in a primary key, "" where it can."""
    if kind.name == "jsonb":
        return "1.0 and 1.00 in jsonb would be one key of two forms"
    if kind == Type("numeric"):
        return "1.5 and 1.50 would be one key of two forms: say numeric(precision, scale)"
    return ""
