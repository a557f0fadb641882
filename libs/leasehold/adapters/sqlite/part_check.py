"""Refuses, before a statement runs, what it might need of rows that a partial store has not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

import apsw

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.part import KeyRange, Part
from leasehold.catalog.privileges import Privilege
from leasehold.model.errors import NotHeldHere, Refused
from leasehold.sql.planning.plan import Prepared

_PARTS: Final[WeakKeyDictionary[apsw.Connection, Part]] = WeakKeyDictionary()
"""Of connections to stores that have some rows of a table alone."""


def give_part(connection: apsw.Connection, part: Part) -> None:
    """Let statements on the connection be refused that may need other rows than those of `part`."""
    if part.has_ranges:
        _PARTS[connection] = part


def check_read(connection: apsw.Connection, prepared: Prepared, parameters: Sequence[Any]) -> None:
    """Raise NotHeldHere unless the statement's own conditions say that it is about rows alone that
    are there. What it is about is told by its text, so the same statement is always refused, or
    never, however it finds its rows."""
    part = _PARTS.get(connection) if _PARTS else None
    if part is None or (prepared.explain and not prepared.tells_reads):
        return
    tables = {table.table_id: table for table in prepared.tables.values()}
    for place in prepared.reads.keyed:
        table = tables.get(place.table_id)
        if table is None or part.holds_whole(place.table_id):
            continue
        try:
            ranges, values = list(place.ranges(parameters)), place.column_values(parameters)
        except NotHeldHere:
            raise
        except Refused:  # the statement itself may say so, or never come to it
            ranges, values = [KeyRange()], {}
        if None in values.values():
            continue  # nothing is equal to NULL
        for each in ranges:
            part.check_rows(table, each, values)
    _check_columns(part, prepared, tables)
    _check_conflicts(part, prepared)


def _check_columns(part: Part, prepared: Prepared, tables: dict[int, Descriptor]) -> None:
    """Refuse what names other columns than those that are there: a statement needs the privilege
    to read each column that it names, whoever runs it."""
    for table_id, _, privilege, columns, _ in prepared.needs:
        table = tables.get(table_id)
        if table is not None and privilege & Privilege.SELECT:
            part.check_columns(table, columns)
    write = prepared.write
    if write is not None:
        part.check_writable(write.bound.descriptor)


def _check_conflicts(part: Part, prepared: Prepared) -> None:
    """Refuse ON CONFLICT where the row in the way may be one that is not there."""
    if prepared.write is None or prepared.write.bound.conflict is None:
        return
    table: Descriptor = prepared.write.bound.descriptor
    if not part.holds_whole(table.table_id):
        raise part.outside(table)
