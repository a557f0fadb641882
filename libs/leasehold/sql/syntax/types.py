"""PostgreSQL's TypeName → the name of a type as it is said: varchar(5), int4[], interval."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

from leasehold.catalog.namespaces import qualified
from leasehold.catalog.schema_names import PUBLIC, SCHEMAS
from leasehold.model.errors import (
    FeatureNotSupported,
    IndeterminateType,
    SyntaxInvalid,
    UnknownObject,
)
from leasehold.sql.syntax.accounting import Body, handles, refuse, refuse_unread
from leasehold.sql.syntax.enum_names import FindEnum, no_enums
from leasehold.sql.syntax.left_out import TYPES, refuse_left_out
from leasehold.sql.syntax.positions import refused_at
from leasehold.sql.syntax.source import Source
from leasehold.sql.syntax.tree import ArrayOf, TypeName
from leasehold.values.arrays import refuse_dimensions
from leasehold.values.catalog_types import SYSTEM_TYPES
from leasehold.values.enums import KEPT, Enumeration
from leasehold.values.interval import FIELDS
from leasehold.values.types import KNOWN, SYNONYMS, VECTORS, Type, array_of, enum_type, parse_type

DOMAINS: Final[dict[str, tuple[str, int | None]]] = {
    "sql_identifier": ("name", None),
    "character_data": ("varchar", None),
    "cardinal_number": ("integer", None),
    "yes_or_no": ("varchar", 3),
    "time_stamp": ("timestamptz", None),
}
"""The domains of information_schema: their types, and the length. Their checks (no number below 0,
YES or NO) are not made, nor is a time cut to hundredths of a second."""

_TYPE: Final = handles(
    "TypeName",
    *("names", "typmods", "typemod", "arrayBounds", "location"),
    setof="SETOF",
    pct_type="%TYPE",
    later=["typeOid"],
)
_NOT_HERE: Final = frozenset(
    {
        *("money", "xml", "bit", "varbit", "macaddr", "macaddr8", "tsvector", "tsquery", "pg_lsn"),
        *("point", "line", "lseg", "box", "path", "polygon", "circle", "jsonpath", "txid_snapshot"),
        *("int4range", "int8range", "numrange", "tsrange", "tstzrange", "daterange", "xid", "cid"),
        *("int4multirange", "int8multirange", "nummultirange", "tsmultirange", "datemultirange"),
        *("tstzmultirange", "pg_snapshot", "tid", "xid8", "refcursor", "bytea_output", "cstring"),
        *("void", "record", "unknown", "anyenum", "anyelement", "anyarray", "enum"),
    }
)
"""Types of PostgreSQL's own that are not built here, so that none can be made under the name."""
_SERIALS: Final = frozenset(
    {*("serial", "bigserial", "smallserial"), *("serial2", "serial4", "serial8")}
)
"""What stands in the place of a type and is none."""
_DIGITS_MAX: Final = 6
_WHOLE_INTERVAL: Final = 0x7FFF
_FIELD_BITS: Final = {1 << 2: "year", 1 << 1: "month", 1 << 3: "day"} | {
    1 << 10: "hour",
    1 << 11: "minute",
    1 << 12: "second",
}
"""As PostgreSQL packs INTERVAL's fields into a number."""


class IntervalFields(NamedTuple):
    """INTERVAL `first` TO `last`; `digits`: of a fraction of a second."""

    first: str
    last: str
    digits: int | None


def read_type_name(source: Source, body: Body, near: int) -> tuple[TypeName, IntervalFields | None]:
    """The type, and which fields of an interval are meant. `near`: where a type stands that the
    parser itself puts there. Raises FeatureNotSupported, SyntaxInvalid."""
    if not body.keys() <= _TYPE:
        refuse_unread(source, "TypeName", body, near)
    location = body.get("location", 0)
    at = source.position(near if location < 0 else location)
    names = [name["String"].get("sval", "") for name in body["names"]]
    bounds = body.get("arrayBounds", ())
    if len(bounds) > 1:
        refuse_dimensions(at)
    array = bool(bounds)
    name = names[-1]
    if names[:-1] == [PUBLIC]:
        if is_built_in(name):
            raise UnknownObject(f'type "{PUBLIC}.{name}" does not exist', position=at)
    elif len(names) > 1 and names[:-1] != ["pg_catalog"]:
        if names[:-1] != ["information_schema"]:
            if len(names) > 2 or names[0] in SCHEMAS:
                refuse(f"the type {'.'.join(names)!r:.80}", at)
            return TypeName(at, qualified(*names), (), array), None
        known, length = DOMAINS.get(name, (f"information_schema.{name}", None))
        return TypeName(at, known, () if length is None else (length,), array), None
    if name == "char":
        name = '"char"'  # another type than char, which is called bpchar here
    modifiers = tuple(_modifier(one, at) for one in body.get("typmods", ()))
    if name == "interval" and modifiers:
        mask, *rest = modifiers
        if mask != _WHOLE_INTERVAL:
            return TypeName(at, name, (), array), _fields(mask, rest)
        modifiers = tuple(rest)
    return TypeName(at, name, modifiers, array), None


BLANK_PADDED: Final = "bpchar"
"""The name of char(n) that PostgreSQL's parser has, and its catalogs, there without a length."""


def is_built_in(name: str) -> bool:
    """Return whether it is the name of a type that no statement makes."""
    plain = SYNONYMS.get(name, name)
    return plain in KNOWN or plain in SYSTEM_TYPES or plain in VECTORS or plain == "float"


def may_be_made(name: str) -> bool:
    """Return whether a type of that name may be one that a statement has made."""
    return not is_built_in(name) and name not in _NOT_HERE and name not in _SERIALS


def find_enum(name: str, find: FindEnum, at: int) -> Enumeration:
    """Return the enum type of a name that is no built-in type's. Raises FeatureNotSupported for a
    type of PostgreSQL's that there is not here, UnknownObject (42704)."""
    with refused_at(at):
        found = None if name in _NOT_HERE else find(name)
    if found is not None:
        return found
    if name in TYPES:
        refuse_left_out(TYPES[name], at, f"type {name!r}: ")
    if name in _NOT_HERE:
        known = ", ".join(KNOWN)
        raise FeatureNotSupported(
            f"type {name!r:.80} is not known; known are: {known}, and enum types", position=at
        )
    if name.startswith(KEPT):
        raise FeatureNotSupported(
            "an expression that is kept with a table may name the enum types of its columns alone",
            position=at,
        )
    raise UnknownObject(f'type "{name:.80}" does not exist', position=at)


def type_of(name: TypeName, find: FindEnum = no_enums, *, in_query: bool = True) -> Type:
    """Return the type that is named; `find` knows the enum types. An expression that is kept
    (`in_query` False) may name types of columns alone, not those of the system catalog. Raises
    FeatureNotSupported with the known types, UnknownObject (42704)."""
    if name.array:
        return array_of(type_of(replace(name, array=False), find, in_query=in_query))
    text = name.name
    if not is_built_in(text) and not name.modifiers:
        return enum_type(find_enum(text, find, name.at))
    of_query = in_query and (text in SYSTEM_TYPES or text in VECTORS)
    if of_query and not name.modifiers:
        return Type(text)
    if text == BLANK_PADDED and in_query and not name.modifiers:
        return Type("char")  # of any length, where char is char(1)
    if name.modifiers:
        text += f"({','.join(map(str, name.modifiers))})"
    with refused_at(name.at):
        return parse_type(text)


def _modifier(node: Body, at: int) -> int:
    constant = node.get("A_Const", {})
    if "ival" not in constant:
        raise SyntaxInvalid("a length or precision of a type must be a whole number", position=at)
    return int(constant["ival"].get("ival", 0))


def _fields(mask: int, rest: list[int]) -> IntervalFields:
    named = {name for bit, name in _FIELD_BITS.items() if mask & bit}
    said = [field for field in FIELDS if field in named]
    return IntervalFields(said[0], said[-1], min(rest[0], _DIGITS_MAX) if rest else None)


def check_items(node: ArrayOf, target: Type | None) -> None:
    """Refuse ARRAY[…] of arrays, and one without items whose type nothing tells. `target`: the type
    that it is cast to. Raises FeatureNotSupported, IndeterminateType."""
    if any(isinstance(item, ArrayOf) for item in node.items):
        refuse_dimensions(node.at)
    if target is None and not node.items:
        raise IndeterminateType(
            "cannot determine type of empty array: CAST it, as in ARRAY[]::integer[]",
            position=node.at,
        )
