"""Rows of a cursor that know which rows of tables they are, for WHERE CURRENT OF: the primary keys
stand behind the columns that the client gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.physical_names import column_name
from leasehold.model.errors import Refused
from leasehold.model.records import Key
from leasehold.sql.binding.bound_tree import Bound, BoundQuery, BoundSelect, Field, TableSource
from leasehold.sql.binding.select_for_verify import Visits
from leasehold.sql.binding.walk import has_window


class InvalidCursorState(Refused):
    """The cursor is there, and does not stand on a row of the table."""

    sqlstate = "24000"


@dataclass(frozen=True, slots=True)
class Located:
    """`width`: columns of the client's; `tables`, with the column at which the key of each begins.
    `locks`: the query says by FOR UPDATE, FOR SHARE or SELECTV of which tables its rows are."""

    width: int
    tables: tuple[tuple[Descriptor, int], ...]
    locks: bool

    def key_at(self, table: Descriptor, cursor: str) -> int:
        """Where the key of that table's row begins. Raises InvalidCursorState."""
        found = [at for each, at in self.tables if each.table_id == table.table_id]
        if len(found) == 1:
            return found[0]
        if not self.locks:
            raise not_simple(cursor, table)
        what = "has multiple FOR UPDATE/SHARE references" if found else _LOCKS_NONE
        raise InvalidCursorState(f'cursor "{cursor}" {what} to table "{table.name}"')


_LOCKS_NONE = "does not have a FOR UPDATE/SHARE reference"


def not_simple(cursor: str, table: Descriptor) -> InvalidCursorState:
    return InvalidCursorState(
        f'cursor "{cursor}" is not a simply updatable scan of table "{table.name}"'
    )


def key_in(row: Sequence[Any], at: int, table: Descriptor) -> Key | None:
    """None: an outer join has found none."""
    key = tuple(row[at : at + len(table.primary_key)])
    return None if None in key else key


def located_in(query: BoundQuery, visits: Visits | None) -> tuple[BoundQuery, Located | None]:
    """The query that tells. None: its rows are of no table, or of several without saying which."""
    if visits is not None:
        return query, _of_visits(visits)
    body = query.body
    if not isinstance(body, BoundSelect) or not isinstance(body.source, TableSource):
        return query, None
    if body.aggregated or body.distinct is not None or any(map(has_window, body.outputs)):
        return query, None
    source, descriptor = body.source, body.source.descriptor
    key: list[Bound] = [
        Field(source.relation, column_name(e), descriptor.by_id[e].type)
        for e in descriptor.primary_key
    ]
    width = len(body.outputs)
    wider = replace(query, body=replace(body, outputs=(*body.outputs, *key)))
    return wider, Located(width, ((descriptor, width),), locks=False)


def _of_visits(visits: Visits) -> Located | None:
    if visits.apart is not None:
        return None
    found: list[tuple[Descriptor, int]] = []
    at = visits.width
    for table in visits.tables:
        found.append((table, at))
        at += len(table.primary_key) + len(table.locks)
    return Located(visits.width, tuple(found), locks=True)
