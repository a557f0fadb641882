"""Recognises statements that surely end soon, which may run where others wait for the same thread,
and runs queries among them there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final
from weakref import WeakKeyDictionary

import apsw

from leasehold.adapters.sqlite.explain import query_plan
from leasehold.adapters.sqlite.part_check import check_read
from leasehold.adapters.sqlite.query import FIRST_ROWS, take_rows, translate_error
from leasehold.adapters.sqlite.snapshot import SqliteSnapshot
from leasehold.adapters.sqlite.statement_functions import install
from leasehold.model.errors import LeaseholdError
from leasehold.sql.functions.function import Function
from leasehold.sql.planning.emit_from import OWN_ROWS
from leasehold.sql.planning.emitted import Emitted
from leasehold.sql.planning.plan import Prepared
from leasehold.values.declared import VARIABLE, names_where
from leasehold.values.types import Type

_FIXED_SIZE: Final = names_where(lambda each: each.column and each.size != VARIABLE)
_MAKES: Final = ("CO-ROUTINE ", "MATERIALIZE ")
LOOKS_MAX: Final = 1
"""How often a statement may be found still running: some thousand steps of SQLite."""
_KNOWN: Final[WeakKeyDictionary[Emitted, bool]] = WeakKeyDictionary()


def is_brief(connection: apsw.Connection, prepared: Prepared) -> bool:
    """Whether SQLite searches every table that the statement uses by a key or an index, and every
    function works on values of fixed size alone. How many rows it finds is not known: that takes a
    bound while it runs. Looked up once for each plan."""
    known = _KNOWN.get(prepared.emitted)
    if known is None:
        try:
            whole = prepared.explain or prepared.asks_system or prepared.parts
            known = not whole and all(
                _is_brief(connection, emitted) for emitted in _parts(prepared)
            )
        except apsw.SQLError:  # it names own rows, of which this connection has no table yet
            return False
        _KNOWN[prepared.emitted] = known
    return known


def needs_nothing(prepared: Prepared) -> bool:
    """Whether the query finds its rows in what is newest, asks for nothing else, and notes
    nothing."""
    emitted = prepared.emitted
    return not (
        prepared.explain
        or prepared.parts
        or prepared.visits is not None
        or prepared.beside.tables
        or emitted.asks_system
        or emitted.depends_on_context
    )


def brief_rows(
    snapshot: SqliteSnapshot, prepared: Prepared, parameters: Sequence[Any], rows_max: int
) -> list[tuple[Any, ...]] | None:
    """Return all rows of a brief query that `needs_nothing`, or None: they are more, or it took
    longer than such a query does, or it fails behind some of them. Raises what functions raise."""
    emitted, reader = prepared.emitted, snapshot.reader
    check_read(reader.connection, prepared, parameters)
    if id(emitted) not in reader.installed:
        install(reader.connection, emitted)
        reader.knows(emitted)
    reader.watch.looks_left = LOOKS_MAX
    rows: list[Any] = []
    try:
        bindings = (*parameters, *emitted.constants)[: emitted.highest]
        found = reader.execute(emitted.text, bindings)
        rows.extend(islice(found, FIRST_ROWS))  # those before an error are in it then
        if len(rows) == FIRST_ROWS and take_rows(found, rows, rows_max + 1):
            reader.execute("").fetchall()  # the statement is over, and its snapshot with it
            return None
    except apsw.InterruptError:
        return None
    except apsw.Error as error:
        if rows:
            return None
        raise translate_error(error) from error
    except LeaseholdError:
        if rows:
            return None
        raise
    finally:
        reader.watch.looks_left = None
    return rows if len(rows) <= rows_max else None


def _parts(prepared: Prepared) -> Iterator[Emitted]:
    yield prepared.emitted
    yield from prepared.visited
    write = prepared.write
    if write is not None:
        yield from (each for each in (write.returning, write.update) if each is not None)
        yield from write.there.values()


def _is_brief(connection: apsw.Connection, emitted: Emitted) -> bool:
    if not all(map(_is_small, emitted.functions.values())):
        return False
    steps = [text for _, _, text in query_plan(connection, emitted)]
    # Gone through are also a transaction's own rows, and what steps of their own have found.
    passed = {"CONSTANT ROW", OWN_ROWS}
    passed |= {text.partition(" ")[2] for text in steps if text.startswith(_MAKES)}
    return "RECURSIVE STEP" not in steps and all(
        text.removeprefix("SCAN ") in passed for text in steps if text.startswith("SCAN ")
    )


def _is_small(function: Function) -> bool:
    return all(map(_has_fixed_size, (*function.arguments, function.result)))


def _has_fixed_size(kind: Type) -> bool:
    return kind.name in _FIXED_SIZE
