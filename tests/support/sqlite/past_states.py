"""What a table's rows were at each LSN, kept beside the stores, and whether they say the same."""

from __future__ import annotations

from typing import Any

import pytest

from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.states import READABLE
from leasehold.model.errors import SnapshotTooOld, UnknownTable
from leasehold.model.keys import Key
from leasehold.model.ports import Row
from leasehold.rows.index_entries import entry_of
from tests.support.memory_store.store import MemoryStore
from tests.support.sqlite.flights_table import TABLE

Rows = dict[Key, Row]
LOOKED_AT_MAX = 6


class PastStates:
    """`noted` after each write; what a roll-back or a crash undoes was never there."""

    def __init__(self) -> None:
        self._states: dict[int, Rows] = {0: {}}
        self._open: dict[int, Rows] = {}
        self._emptied = 0
        self._emptied_open: list[int] = []
        self.floor = 0
        self.compared = 0

    def noted(self, lsn: int, store: MemoryStore, *, emptied: bool = False) -> None:
        held = store.contents
        rows = {key: held.row(TABLE, key) for table, key in held.exists if table == TABLE}
        self._open[lsn] = {key: row for key, row in rows.items() if row is not None}
        if emptied:
            self._emptied_open.append(lsn)

    def forget(self, lsn: int) -> None:
        """What was noted after that LSN was undone."""
        self._open = {at: rows for at, rows in self._open.items() if at <= lsn}
        self._emptied_open = [at for at in self._emptied_open if at <= lsn]

    def undone(self) -> None:
        self._open = {}
        self._emptied_open = []

    def committed(self) -> None:
        self._states.update(self._open)
        self._emptied = max(self._emptied, *self._emptied_open, 0)
        self.undone()

    def rows(self, lsn: int) -> Rows:
        return self._states[max(at for at in self._states if at <= lsn)]

    # ------------------------------------------------------------ comparison

    def compare(self, store: MemoryStore | SqliteStore, newest_lsn: int) -> None:
        with store.open_snapshot() as snapshot:
            first = max(newest_lsn - LOOKED_AT_MAX, 0)
            for lsn in range(first, newest_lsn):
                if lsn < self.floor:
                    with pytest.raises(SnapshotTooOld):
                        snapshot.as_of(lsn)
                    continue
                past = snapshot.as_of(lsn)
                try:
                    then = past.newest("flights")
                except UnknownTable:
                    continue
                if lsn < self._emptied:
                    with pytest.raises(SnapshotTooOld):
                        past.get(then, self._any_key(then))
                    continue
                self._compare_at(past, then, self.rows(lsn))
                self.compared += 1

    def _any_key(self, descriptor: Descriptor) -> Key:
        return (0,) * len(descriptor.primary_key)

    def _compare_at(self, past: Any, then: Descriptor, rows: Rows) -> None:
        public = then.public_ids

        def seen(row: Row) -> Row:
            values = {e: v for e, v in row.values.items() if e in public}
            return Row(values, dict(row.genids), row.lsn)

        expected = {key: seen(row) for key, row in rows.items()}
        found = list(past.scan(then, None, None, rows_max=1_000))
        assert [key for key, _ in found] == sorted(expected)
        assert {key: seen(row) for key, row in found} == expected
        for key, row in expected.items():
            got = past.get(then, key)
            assert got is not None
            assert seen(got) == row
        missing = (
            tuple(-9 if type(part) is int else "none" for part in found[0][0]) if found else ()
        )
        if missing:
            assert past.get(then, missing) is None
        for index in then.indexes:
            if index.state not in READABLE:
                continue
            made, width = entry_of(then, index), len(index.columns)
            entries = {key: made(row.values) for key, row in expected.items()}
            keys = {entry[:width] for entry in entries.values() if entry is not None}
            for values in keys:
                wanted = {
                    key for key, e in entries.items() if e is not None and e[:width] == values
                }
                by = list(past.get_by(then, index.element_id, values, rows_max=1_000))
                assert {key for key, _ in by} == wanted
                assert len(by) == len(wanted)
            held = {key for key, entry in entries.items() if entry is not None}
            through = list(past.get_by(then, index.element_id, (), rows_max=1_000))
            assert {key for key, _ in through} == held
            assert len(through) == len(held)
