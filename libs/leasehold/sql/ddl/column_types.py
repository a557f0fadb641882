"""The type of a column."""

from __future__ import annotations

from typing import Final

from leasehold.catalog.definitions import PG_NAMES
from leasehold.model.errors import FeatureNotSupported
from leasehold.sql.syntax.accounting import Body
from leasehold.sql.syntax.positions import refused_at
from leasehold.sql.syntax.statement import Reading, names_of
from leasehold.sql.syntax.types import read_type_name
from leasehold.values.types import KNOWN, TIMESTAMPS, Type, type_with

_TYPES: Final = {PG_NAMES.get(name, name): name for name in KNOWN}
"""By the names that PostgreSQL's parser gives them."""
_MODIFIED: Final = frozenset({"numeric", "varchar", "char", *TIMESTAMPS})
"""What may have a length, or a precision and a scale, behind it."""
_INTERVAL: Final = "interval is a type of expressions: no column can have it yet"
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


def read_column_type(reading: Reading, body: Body) -> Type:
    """Raises FeatureNotSupported, InvalidArgument (a length or precision out of range)."""
    location = body.get("location", 0)
    said, fields = read_type_name(reading.source, body, location)
    if said.name == "interval":
        raise FeatureNotSupported(_INTERVAL, position=said.at)
    name = _TYPES.get(said.name)
    if name is None:
        shown = "real" if said.name == "float4" else said.name
        raise FeatureNotSupported(
            f"type {shown!r:.80} is not known; known are: {', '.join(KNOWN)}", position=said.at
        )
    assert fields is None, "of an interval alone"
    if said.array or (said.modifiers and name not in _MODIFIED):
        raise FeatureNotSupported(
            f"type {name!r} takes no length, precision or array here", position=said.at
        )
    with refused_at(said.at):
        return type_with(name, said.modifiers)
