"""Putting an entry right by its row, as both are when the writer comes to it."""

from __future__ import annotations

import apsw

from leasehold.adapters.sqlite.plan import WritePlan
from leasehold.adapters.sqlite.repairs import WrongEntry
from leasehold.model.keys import Key
from leasehold.rows.key_values import entries


def repair_entry(connection: apsw.Connection, plan: WritePlan, wrong: WrongEntry) -> int:
    """Take the entry away unless it is right by now, and put the right one unless it is there; how
    many were changed. An index that this version does not have is left alone."""
    statements = plan.entries.get(wrong.index_id)
    if statements is None:
        return 0
    right = _right_entry(connection, plan, wrong)
    changed = 0
    if wrong.entry is not None and not _same(wrong.entry, right):
        connection.execute(statements.remove, wrong.entry[: len(statements.columns)])
        changed += connection.changes()
    if right is not None:
        connection.execute(statements.put, right)
        changed += connection.changes()
    return changed


def _right_entry(connection: apsw.Connection, plan: WritePlan, wrong: WrongEntry) -> Key | None:
    """What an insert of the row would put; None where there is no row, or nothing is put."""
    found = connection.execute(plan.get, wrong.key).fetchall()
    if not found:
        return None
    put = {e.index_id: e.put for e in entries(plan.descriptor, None, plan.row(found[0]).values)}
    entry = put.get(wrong.index_id)
    return None if entry is None else plan.entries[wrong.index_id].to_put(entry, wrong.key)


def _same(entry: Key, right: Key | None) -> bool:
    """1 and 1.0 are one value to Python, and two to the store."""
    return right is not None and entry == right and [*map(type, entry)] == [*map(type, right)]
