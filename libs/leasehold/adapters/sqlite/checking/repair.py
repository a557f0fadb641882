"""Repair of index entries: those that a check has found unlike their rows wait here until the
store's writer comes to them, and puts each right by its row as both are then."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple

import apsw

from leasehold.adapters.sqlite.plan import WritePlan
from leasehold.model.keys import Key
from leasehold.rows.key_values import entries


class WrongEntry(NamedTuple):
    """An entry that is not as its row says, or (`entry` None) one that the row lacks. `entry` is
    what lies in the store: index columns, `key` (the primary one), then what else it carries."""

    index_id: int
    key: Key
    entry: tuple[Any, ...] | None


class Repairs:
    """The wrong entries that the newest check has found. Who asks for a repair asks for one after
    the other, so those of checks before are forgotten."""

    def __init__(self) -> None:
        self._asked: tuple[bytes, int] = (b"", 0)
        self._wrong: deque[WrongEntry] = deque()

    def remember(self, subject: bytes, table_id: int, wrong: Iterable[WrongEntry]) -> None:
        self._wrong = deque(wrong)
        self._asked = (subject, table_id)

    def take(self, subject: bytes, table_id: int, entries_max: int) -> list[WrongEntry]:
        """Remove the next ones and return them; [] when there are none, or another check has come
        since."""
        if self._asked != (subject, table_id):
            return []
        return [self._wrong.popleft() for _ in range(min(entries_max, len(self._wrong)))]


def repair_entry(connection: apsw.Connection, plan: WritePlan, wrong: WrongEntry) -> int:
    """Take the entry away unless it is right by now, and put the right one unless it is there;
    return how many were changed. An index that this version does not have is left alone."""
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
    """Return what an insert of the row would put, None where there is no row, or nothing is put."""
    found = connection.execute(plan.get, wrong.key).fetchall()
    if not found:
        return None
    put = {e.index_id: e.put for e in entries(plan.descriptor, None, plan.row(found[0]).values)}
    entry = put.get(wrong.index_id)
    return None if entry is None else plan.entries[wrong.index_id].put_bindings(entry, wrong.key)


def _same(entry: Key, right: Key | None) -> bool:
    """Whether the store sees one entry in both: 1 and 1.0 are one value to Python, two to it."""
    return right is not None and entry == right and [*map(type, entry)] == [*map(type, right)]
