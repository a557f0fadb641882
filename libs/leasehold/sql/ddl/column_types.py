"""The type of a column."""

from __future__ import annotations

from typing import Any, Final

from leasehold.catalog.definitions import PG_NAMES
from leasehold.model.errors import FeatureNotSupported, SyntaxInvalid
from leasehold.sql.syntax.accounting import Body
from leasehold.sql.syntax.expressions import COLLATIONS
from leasehold.sql.syntax.positions import refused_at
from leasehold.sql.syntax.statement import Reading, names_of
from leasehold.sql.syntax.types import BLANK_PADDED, find_enum, read_type_name
from leasehold.values.types import KNOWN, MODIFIED, Type, array_of, enum_type, type_with

_TYPES: Final = {PG_NAMES.get(name, name): name for name in KNOWN}
"""By the names that PostgreSQL's parser gives them."""
SERIALS: Final = {
    **dict.fromkeys(("smallserial", "serial2"), "smallint"),
    **dict.fromkeys(("serial", "serial4"), "integer"),
    **dict.fromkeys(("bigserial", "serial8"), "bigint"),
}


def serial_of(body: Body) -> str | None:
    """The type of a column that is SERIAL; None: it is not."""
    names = names_of(body.get("names", []))
    if len(names) != 1 or body.keys() & {"typmods", "arrayBounds", "setof", "pct_type"}:
        return None
    return SERIALS.get(names[0])


def check_collation(reading: Reading, nodes: list[Any], word_index: int) -> None:
    """Check that COLLATE, which stands behind a word, names the one that all texts have. Raises
    FeatureNotSupported."""
    name = names_of(nodes)[-1]
    if name not in COLLATIONS:
        reading.refuse(
            f"the collation {name!r:.80} is not supported: text is compared by code point, as"
            ' collation "C" does',
            reading.next(word_index, "collate"),
        )


def read_column_type(reading: Reading, body: Body) -> Type:
    """Raises FeatureNotSupported, InvalidArgument (a length or precision out of range),
    UnknownObject (42704)."""
    location = body.get("location", 0)
    said, fields = read_type_name(reading.source, body, location)
    if fields is not None:
        raise FeatureNotSupported(
            "an interval of some fields alone is no column's type: say interval, or interval(p)",
            position=said.at,
        )
    if said.name == BLANK_PADDED and not said.modifiers:
        raise FeatureNotSupported(
            "a column of type bpchar without a length is not supported",
            position=said.at,
            hint="Say character(n), where all have n characters, or text.",
        )
    name = _TYPES.get(said.name)
    if name is None:
        enum = find_enum(said.name, reading.enums.find, said.at)
        if said.modifiers:
            raise SyntaxInvalid(
                f'type modifier is not allowed for type "{enum.name}"', position=said.at
            )
        return enum_type(enum, array=said.array)
    if said.modifiers and name not in MODIFIED:
        raise FeatureNotSupported(f"type {name!r} takes no length or precision", position=said.at)
    with refused_at(said.at):
        kind = type_with(name, said.modifiers)
    return array_of(kind) if said.array else kind
