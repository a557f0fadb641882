"""Which statements surely end soon: those that may run where others wait for the same thread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from weakref import WeakKeyDictionary

import apsw

from leasehold.adapters.sqlite_query import query_plan
from leasehold.schema.types import Type
from leasehold.sql.function import Function
from leasehold.sql.query_emit import Emitted
from leasehold.sql.query_plan import Prepared

_FIXED_SIZE: Final = frozenset(
    {"smallint", "integer", "bigint", "double precision", "boolean", "date", "timestamp"}
    | {"timestamptz", "uuid"}
)
_KNOWN: Final[WeakKeyDictionary[Emitted, bool]] = WeakKeyDictionary()


def is_brief(connection: apsw.Connection, prepared: Prepared) -> bool:
    """Does SQLite search every table it uses by a key or an index, and does every function work on
    values of fixed size alone? How many rows it finds is not known: that takes a bound while it
    runs. Looked up once for each plan."""
    known = _KNOWN.get(prepared.emitted)
    if known is None:
        known = _KNOWN[prepared.emitted] = not (prepared.explain or prepared.asks_system) and all(
            _is_brief(connection, emitted) for emitted in _parts(prepared)
        )
    return known


def _parts(prepared: Prepared) -> Iterator[Emitted]:
    yield prepared.emitted
    write = prepared.write
    if write is not None:
        yield from (each for each in (write.returning, write.update) if each is not None)
        yield from write.there.values()


def _is_brief(connection: apsw.Connection, emitted: Emitted) -> bool:
    if not all(map(_is_small, emitted.functions.values())):
        return False
    try:
        steps = query_plan(connection, emitted)
    except apsw.SQLError:  # it names own rows, of which there is no table now
        return False
    return not any(text.startswith("SCAN") and text != "SCAN CONSTANT ROW" for _, _, text in steps)


def _is_small(function: Function) -> bool:
    return all(map(_has_fixed_size, (*function.arguments, function.result)))


def _has_fixed_size(kind: Type) -> bool:
    return kind.name in _FIXED_SIZE
