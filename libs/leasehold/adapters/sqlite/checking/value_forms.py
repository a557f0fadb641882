"""Conditions in SQL for values that can't be storage values of a column's type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import apsw

from leasehold.catalog.elements import Column
from leasehold.model.errors import Refused
from leasehold.values import jsonb, numeric
from leasehold.values.doubles import NAN
from leasehold.values.storage import to_storage
from leasehold.values.types import INTEGER_BITS, Type


def wrong_value(column: Column, name: str) -> str:
    """Return SQL that is true for a value that is not a storage value of the column's type. It may
    call what `install_form_check` gives the connection."""
    kind = column.type
    if kind.name in INTEGER_BITS:
        limit = 1 << INTEGER_BITS[kind.name] - 1
        right = f"typeof({name}) = 'integer' AND {name} BETWEEN {-limit} AND {limit - 1}"
    elif kind.name == "boolean":
        right = f"typeof({name}) = 'integer' AND {name} IN (0, 1)"
    elif kind.name in ("date", "timestamp", "timestamptz"):
        right = f"typeof({name}) = 'integer'"
    elif kind.name == "double precision":
        right = f"typeof({name}) = 'real' OR {name} = '{NAN}'"
    elif kind.name == "bytea":
        right = f"typeof({name}) = 'blob'"
    else:
        right = f"typeof({name}) = 'text'"
        if kind.length is not None:
            right += f" AND length({name}) <= {int(kind.length)}"
        if kind.name == "char":
            right += f" AND {name} = rtrim({name}, ' ')"
        elif kind.name in ("numeric", "jsonb"):
            right += f" AND {_form_check(kind)}({name})"
    return f"{name} IS NOT NULL AND NOT ({right})"


def _form_check(kind: Type) -> str:
    """Return the name of the function that says whether a text is a storage value of a numeric or
    jsonb type."""
    name = f"is_{kind.name}"
    if kind.precision is None or kind.scale is None:
        return name
    return f"{name}_{kind.precision}_{'m' if kind.scale < 0 else ''}{abs(kind.scale)}"


def install_form_check(connection: apsw.Connection, kind: Type) -> None:
    """Give the connection the function that `wrong_value` calls for values of this type, if any."""
    if kind.name not in ("jsonb", "numeric"):
        return
    store = to_storage(kind)

    def has_form(*values: Any) -> int:
        (value,) = values
        if kind.name == "jsonb":
            return int(jsonb.is_stored_form(value))
        if not numeric.is_stored_form(value):
            return 0
        return int(_kept(store, numeric.decimal_of(value)) == value)

    connection.create_scalar_function(_form_check(kind), has_form, numargs=1, deterministic=True)


def _kept(store: Callable[[Any], Any], value: Any) -> Any:
    try:
        return store(value)
    except Refused:
        return None
