"""Conditions in SQL for values that can't be storage values of a column's type."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final
from zlib import crc32

import apsw

from leasehold.model.errors import Refused
from leasehold.values import interval, json_text, jsonb, networks, numeric
from leasehold.values.dates import DAY_US
from leasehold.values.declared import ENUM
from leasehold.values.doubles import NAN
from leasehold.values.storage import from_storage, to_storage
from leasehold.values.types import (
    FLOATS,
    INTEGER_BITS,
    TIMED,
    Type,
    element_of,
    sort_key_of,
)

_CHECKED: Final[dict[str, Callable[[Any], bool]]] = {
    "jsonb": jsonb.is_stored_form,
    "inet": networks.is_stored_form,
    "cidr": networks.is_stored_network,
    "json": json_text.is_stored_form,
    "interval": interval.is_stored_form,
}
_FORMED: Final = frozenset({"numeric", *_CHECKED})
"""Types of text of which not every text is a storage value."""


def wrong_value(kind: Type, name: str) -> str:
    """Return SQL that is true for a value that is not a storage value of the type. It may call what
    `install_form_check` gives the connection."""
    if kind.name in INTEGER_BITS:
        limit = 1 << INTEGER_BITS[kind.name] - 1
        right = f"typeof({name}) = 'integer' AND {name} BETWEEN {-limit} AND {limit - 1}"
    elif kind.name == "boolean":
        right = f"typeof({name}) = 'integer' AND {name} IN (0, 1)"
    elif kind.name == "time":
        right = f"typeof({name}) = 'integer' AND {name} BETWEEN 0 AND {DAY_US}"
    elif kind.name in ("date", "timetz", "timestamp", "timestamptz"):
        right = f"typeof({name}) = 'integer'"
    elif kind.name in FLOATS:
        right = f"typeof({name}) = 'real' OR {name} = '{NAN}'"
    elif kind.name == ENUM.name:
        assert kind.enum is not None, kind
        places = ", ".join(map(str, map(int, kind.enum.places)))
        right = f"typeof({name}) = 'integer' AND {name} IN ({places})"
    elif kind.name == "bytea":
        right = f"typeof({name}) = 'blob'"
    elif element_of(kind) is not None:
        right = f"typeof({name}) = 'text' AND {_form_check(kind)}({name})"
    else:
        right = f"typeof({name}) = 'text'"
        if kind.length is not None and kind.name not in TIMED:
            right += f" AND length({name}) <= {int(kind.length)}"
        if kind.name == "char":
            right += f" AND {name} = rtrim({name}, ' ')"
        elif kind.name in _FORMED:
            right += f" AND {_form_check(kind)}({name})"
    return f"{name} IS NOT NULL AND NOT ({right})"


def _form_check(kind: Type) -> str:
    """Return the name of the function that says whether a text is a storage value of a numeric or
    jsonb type."""
    element = element_of(kind)
    if element is not None:
        words = f"{element.name} {element.length or ''} {element.precision or ''} {element.scale}"
        if element.enum is not None:  # by its labels: each version has a check of its own
            words += f" {crc32(repr(element.enum).encode())}"
        return f"is_array_of_{re.sub('[^a-z0-9]', '_', words)}"
    name = f"is_{kind.name}"
    if kind.precision is None or kind.scale is None:
        return name
    return f"{name}_{kind.precision}_{'m' if kind.scale < 0 else ''}{abs(kind.scale)}"


def install_form_check(connection: apsw.Connection, kind: Type) -> None:
    """Give the connection the function that `wrong_value` calls for values of this type, if any."""
    if kind.name not in _FORMED and element_of(kind) is None:
        return
    store = to_storage(kind)

    def has_form(*values: Any) -> int:
        (value,) = values
        if element_of(kind) is not None:
            return int(_is_array(kind, store, value))
        if kind.name in _CHECKED:
            return int(_CHECKED[kind.name](value))
        if not numeric.is_stored_form(value):
            return 0
        return int(_kept(store, numeric.decimal_of(value)) == value)

    connection.create_scalar_function(_form_check(kind), has_form, numargs=1, deterministic=True)


def write_entry_key(connection: apsw.Connection, kind: Type, name: str) -> str:
    """Return SQL of what stands for a value of the type in entries of indexes, and give the
    connection what it calls."""
    key = sort_key_of(kind)
    if key is None:
        return name
    function = f"entry_key_of_{kind.name}"

    def keyed(*values: Any) -> Any:
        (value,) = values
        return None if value is None else key(value)

    connection.create_scalar_function(function, keyed, numargs=1, deterministic=True)
    return f"{function}({name})"


def _is_array(kind: Type, store: Callable[[Any], Any], value: Any) -> bool:
    try:
        return bool(store(from_storage(kind, value)) == value)
    except Exception:  # noqa: BLE001 - whatever it is: what can't be read is no such array
        return False


def _kept(store: Callable[[Any], Any], value: Any) -> Any:
    try:
        return store(value)
    except Refused:
        return None
