"""Types of columns and expressions: their names, modifiers and wire form, and how their values are
ordered. What stands for a value inside: `storage.py`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from leasehold.model import byte_limits
from leasehold.model.errors import (
    FeatureNotSupported,
    InvalidArgument,
)
from leasehold.values import arrays, doubles, interval, jsonb, numeric
from leasehold.values.declared import DECLARED, ENUM, Modifier, names_where
from leasehold.values.enums import Enumeration
from leasehold.values.letters import BLANKS, ascii_lower
from leasehold.values.numeric import PRECISION_MAX

INTEGER_BITS: Final = {"smallint": 16, "integer": 32, "bigint": 64}
SYNONYMS: Final = {synonym: each.name for each in DECLARED for synonym in each.synonyms}
KNOWN: Final = tuple(each.name for each in DECLARED if each.column)
"""Of columns, apart from arrays of them."""
STORED_AS_THEY_ARE: Final = names_where(lambda each: each.column and each.as_it_is)
"""Types whose storage value is the Python value."""
_TEXTS: Final = frozenset({"text", "varchar"})
"""Types of text without padding."""

TIMESTAMPS: Final = frozenset({"timestamp", "timestamptz"})
DATES_AND_TIMESTAMPS: Final = frozenset({"date", *TIMESTAMPS})
"""Types that have infinity among their values."""
TIMED: Final = names_where(lambda each: each.modifier is Modifier.SECOND_DIGITS)
"""Types whose length is a number of digits of a second."""
MODIFIED: Final = names_where(lambda each: each.modifier is not Modifier.NONE)
"""What may have a length, or a precision and a scale, behind it."""
FLOATS: Final = frozenset({"real", "double precision"})
SECOND_DIGITS: Final = 6
"""Where a type says nothing of them."""
VECTORS: Final = {"int2vector": "smallint", "oidvector": "oid"}
"""Arrays of the system catalog alone: subscripts begin at 0, and blanks stand between elements."""
TEXT_BYTES_MAX: Final = byte_limits.VALUE
SCALE_LIMIT: Final = 1_000
_SINGLE_BITS, _DOUBLE_BITS = 24, 53
_KNOWN_NAMES: Final = frozenset(KNOWN)
_WITHIN: Final = re.compile(r"(time|timestamp)[ ]*(\([^()]*\))( with(?:out)? time zone)")
_MODIFIED: Final = re.compile(r"([^(]*)\(([^()]*)\)")


@dataclass(frozen=True, slots=True)
class Type:
    """The type of a column or an expression. `name` is one of DECLARED, or one of these and
    `[]` for an array of it, whose length and precision are the element's. `length` is for
    varchar(n) and char(n), characters, and for TIMED, digits of a second; `precision` and
    `scale` only for numeric(p, s), both or neither. `enum`: of an enum type, whose name is that of
    ENUM here, or of an array of one, which it is."""

    name: str
    length: int | None = None
    precision: int | None = None
    scale: int | None = None
    enum: Enumeration | None = None

    def __str__(self) -> str:
        element = element_of(self)
        if element is not None and self.name not in VECTORS:
            return f"{element}[]"
        if self.enum is not None:
            return self.enum.quoted
        if self.length is not None:
            return f"{self.name}({self.length})"
        if self.precision is not None:
            return f"{self.name}({self.precision},{self.scale})"
        return self.name


def enum_type(enumeration: Enumeration, *, array: bool = False) -> Type:
    """Return the type of a column of an enum type, or of an array of it."""
    return Type(f"{ENUM.name}[]" if array else ENUM.name, enum=enumeration)


def plain_type(kind: Type) -> Type:
    """Return the type without length, precision and scale: what an operator sees."""
    return Type(kind.name, enum=kind.enum)


def is_same_enum(one: Type, other: Type) -> bool:
    """Say whether two types are not of two different enum types: of none, or versions of one."""
    if one.enum is None or other.enum is None:
        return one.enum is other.enum
    return one.enum.type_id == other.enum.type_id


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


def is_column_type(name: str) -> bool:
    """Whether a column may have the type: one of KNOWN, or an array of one."""
    return name.removesuffix("[]") in _KNOWN_NAMES or name.removesuffix("[]") == ENUM.name


def parse_type(text: str) -> Type:
    """Return the type that a text names: `varchar(20)`, `int8`, `numeric(10, 2)`, `date[]` …

    Raises FeatureNotSupported naming the known types, InvalidArgument for a modifier out of range.
    """
    whole = ascii_lower(text.strip(BLANKS))
    if whole.endswith("[]"):
        return array_of(parse_type(whole[:-2]))
    # With the modifier within, as PostgreSQL writes it: time(3) without time zone.
    within = _WITHIN.fullmatch(whole)
    whole = f"{within[1]}{within[3]}{within[2]}" if within else whole
    found = _MODIFIED.fullmatch(whole)
    name = (found[1] if found else whole).strip(BLANKS)
    takes = name == "float"
    name = name if found and takes else SYNONYMS.get(name, name)
    takes = takes or name in MODIFIED
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
    if name in TIMED and len(modifiers) == 1:
        if modifiers[0] < 0:
            raise InvalidArgument(f"{name}: the precision must not be negative")
        return Type(name, min(modifiers[0], SECOND_DIGITS))
    if name == "float" and len(modifiers) == 1:
        if not 1 <= modifiers[0] <= _DOUBLE_BITS:
            raise InvalidArgument(f"float: the precision must be 1 to {_DOUBLE_BITS} bits")
        return Type("real" if modifiers[0] <= _SINGLE_BITS else "double precision")
    raise FeatureNotSupported(f"type {name!r} takes no such length or precision")


def type_to_wire(kind: Type) -> dict[str, Any]:
    """Return the fields of a column's wire form; what only numeric has stands there only for
    numeric, and what only an enum type has only for one."""
    fields: dict[str, Any] = {"type": kind.name, "length": kind.length}
    if kind.precision is not None:
        fields |= {"precision": kind.precision, "scale": kind.scale}
    if kind.enum is not None:
        fields["enum"] = kind.enum.to_wire()
    return fields


def type_from_wire(body: Mapping[str, Any]) -> Type:
    said = body.get("enum")
    enum = None if said is None else Enumeration.from_wire(said)
    return Type(body["type"], body["length"], body.get("precision"), body.get("scale"), enum)


def holds_all_of(wide: Type, kind: Type) -> bool:
    """Whether every value of a type is one of the type `wide`, in the same storage form, and shown
    alike; and what the narrower one can't hold is refused by it. ⚠ A timestamp is rounded, so a
    writer who knows the wider type would be told another value than is kept."""
    if kind.enum is not None and wide.enum is not None:
        return wide.name == kind.name and wide.enum.holds_all_of(kind.enum)
    if kind.name in INTEGER_BITS and wide.name in INTEGER_BITS:
        return INTEGER_BITS[kind.name] <= INTEGER_BITS[wide.name]
    if kind.name in _TEXTS and wide.name in _TEXTS:
        return wide.length is None or (kind.length is not None and kind.length <= wide.length)
    if kind.name == wide.name == "numeric" and kind.precision and wide.precision:
        return kind.scale == wide.scale and kind.precision <= wide.precision
    return False


def is_narrower(narrow: Type, kind: Type) -> bool:
    """Whether a type has some of a type's values, in the same storage form and shown alike, and no
    others. Labels of an enum type are no such values: what a version of it has is never less."""
    return kind.enum is None and holds_all_of(kind, narrow) and not holds_all_of(narrow, kind)


def words_of(kind: Type, value: Any) -> str:
    """Return a storage value, or the sort key of one, as a refusal shows it."""
    if value is None:
        return "null"
    if value == doubles.NAN and kind.name in FLOATS:
        return doubles.NAN
    if isinstance(value, bytes):
        return f"\\x{value.hex()}"[:80]
    shown = numeric.words_of(value) if kind.name == "numeric" and value else repr(value)
    return shown[:80]


def sort_key_of(kind: Type) -> Callable[[Any], Any] | None:
    """Return the function that makes what stands for a value (not NULL) in equality, SQLite's order
    and index entries, None where that is the value itself."""
    element = element_of(kind)
    if element is not None:
        ordered = doubles.number_of if element.name in FLOATS else sort_key_of(element)
        return arrays.make_sort_key(ordered)
    return _SORT_KEYS.get(kind.name)


def is_equal(kind: Type, one: Any, other: Any) -> bool:
    """Return whether two storage values, or None, are equal as values of the type: 1.5 and 1.50
    are."""
    if one == other or one is None or other is None:
        return bool(one == other)
    key = sort_key_of(kind)
    return key is not None and bool(key(one) == key(other))


def null_in_entries(kind: Type | None) -> str | bytes:
    """Return what stands for NULL in entries of an index over such values, None: over what is gone.

    An empty blob, which SQLite orders behind numbers and texts, as PostgreSQL does NULL. Values of
    bytea are blobs, and may be empty: there it is an empty text, which is none of them and is
    ordered before all.
    """
    return "" if kind is not None and kind.name == "bytea" else b""


def order_key_of(kind: Type) -> Callable[[Any], Any] | None:
    """Return the function that makes what Python compares in the place of values (not NULL), None
    where these are compared themselves."""
    return doubles.order_of if kind.name in FLOATS else sort_key_of(kind)


_SORT_KEYS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "numeric": numeric.sort_key,
    "interval": interval.sort_key,
    "jsonb": jsonb.ordered_form,
}


def why_no_key(kind: Type) -> str:
    """Return why a column of this type can't be in a primary key, "" where it can."""
    if element_of(kind) is not None:
        return "an array can't be in a key yet"
    if kind.name == "json":
        return "json has no order, and no equality"
    if kind.name == "jsonb":
        return "1.0 and 1.00 in jsonb would be one key of two forms"
    if kind.name == "interval":
        return "1 mon and 30 days would be one key of two forms"
    if kind == Type("numeric"):
        return "1.5 and 1.50 would be one key of two forms: say numeric(precision, scale)"
    return ""
