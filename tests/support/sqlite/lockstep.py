"""Stores driven in lockstep: the same decided changes into each, compared after every step."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from leasehold.adapters.sqlite.dead_elements import brief_of, dead_elements
from leasehold.adapters.sqlite.layout import entries_name, entries_tables
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.catalog.descriptor import Descriptor, from_wire
from leasehold.catalog.elements import Column, Index
from leasehold.catalog.states import DELETED, READABLE, State
from leasehold.model.budget import RangeLooks
from leasehold.model.ids import first_id
from leasehold.model.keys import Key
from leasehold.model.ports import StoreWriter
from leasehold.model.records.acks import CheckReport
from leasehold.model.records.log import Backfill, ChangeKind, LogPosition, RowChange
from leasehold.model.records.requests import Outcome, ReadRange
from leasehold.rows.filled_by_key import complete_new_row
from leasehold.rows.key_values import compose
from tests.support.memory_store.store import MemoryStore
from tests.support.sqlite.flights_table import TABLE, history
from tests.support.sqlite.past_states import PastStates

DEADLINE_S: Final = 30


def reports_of(
    store: SqliteStore | MemoryStore, table_ids: tuple[int, ...] = (), *elements: int
) -> list[CheckReport]:
    """Ask for a check of what is committed and wait for its reports."""
    store.check(b"test", table_ids, elements)
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        found = list(store.checked())
        if found:
            assert not any(report.error for report in found), found
            return found
        time.sleep(0.001)
    raise TimeoutError("the check did not end")


def entries_of(store: SqliteStore) -> set[tuple[int, int, Key, Key]]:
    """Every physical entry, in the reference's form."""
    found = set()
    for index_id in entries_tables(store._connection, TABLE):
        index = _index(store, index_id)
        name, width = entries_name(TABLE, index_id), len(index.columns)
        for entry in store._connection.execute(f"SELECT * FROM {name}"):
            end = len(entry) - len(index.included)
            values = tuple(None if v == b"" else v for v in entry[:width])
            found.add((TABLE, index_id, (*values, *entry[end:]), tuple(entry[width:end])))
    return found


def _index(store: SqliteStore, index_id: int) -> Index:
    for body in store.catalog().descriptors:
        for index in from_wire(body).indexes:
            if index.element_id == index_id:
                return index
    raise LookupError(index_id)


class Lockstep:
    """A reference in memory, a SQLite store fed as a master feeds it, another as a follower.

    The master hands `change` the row it has read; a follower hands it None.
    """

    def __init__(self, folder: Path, *, wide_key: bool) -> None:
        self.folder = folder
        self.wide_key = wide_key
        self.versions = history(wide_key=wide_key)
        self.memory = MemoryStore()
        self.master = SqliteStore(folder / "master.db", cache_mb=1)
        self.follower = SqliteStore(folder / "follower.db", cache_mb=1)
        self.lsn = 0
        self.commits = 0
        self.crashes = 0
        self.savepoints = 0
        self.past = PastStates()
        self.marks: list[int] = []
        for store in self.writers:
            store.keep_rows(True)
        self.begin()
        self.publish(self.versions[0])
        self.commit()
        self.begin()

    @property
    def stores(self) -> tuple[MemoryStore, SqliteStore, SqliteStore]:
        return self.memory, self.master, self.follower

    @property
    def writers(self) -> tuple[StoreWriter, ...]:
        return self.stores

    def close(self) -> None:
        self.master.close()
        self.follower.close()

    # ------------------------------------------------------------ what the catalog says now

    def newest(self) -> int:
        return max(version for _, version in self.memory.contents.descriptors)

    def lowest(self) -> int:
        return self.memory.contents.min_versions.get(TABLE, 1)

    def usable(self, which: int) -> Descriptor:
        """One of the at most two versions in use (D1)."""
        return self.versions[(self.newest(), self.lowest())[which] - 1]

    # ------------------------------------------------------------ transactions

    def begin(self) -> None:
        for store in self.writers:
            store.begin()

    def commit(self) -> None:
        while self.savepoints:
            self.release()
        self.commits += 1
        position = LogPosition(
            self.commits, 1, b"inc", self.commits, b"digest", self.lsn, 5, {"requests": self.lsn}
        )
        for store in self.writers:
            store.commit(position)
            assert store.position() == position
        self.past.committed()

    def rollback(self) -> None:
        self.past.undone()
        self.marks.clear()
        self.savepoints = 0
        for store in self.writers:
            store.rollback()

    def savepoint(self) -> None:
        self.savepoints += 1
        self.marks.append(self.lsn)
        for store in self.writers:
            store.savepoint()

    def release(self) -> None:
        self.savepoints -= 1
        self.marks.pop()
        for store in self.writers:
            store.release()

    def rollback_to(self) -> None:
        self.savepoints -= 1
        self.past.forget(self.marks.pop())
        for store in self.writers:
            store.rollback_to()

    def crash(self) -> None:
        """What is on disk now, as a killed process leaves it; then a restart."""
        self.crashes += 1
        self.savepoints = 0
        self.past.undone()
        self.marks.clear()
        self.memory = self.memory.crash()
        self.master = self._crashed(self.master, "master")
        self.follower = self._crashed(self.follower, "follower")

    def _crashed(self, store: SqliteStore, name: str) -> SqliteStore:
        target = self.folder / f"{name}-{self.crashes}.db"
        for side in ("", "-wal"):
            shutil.copy(f"{store.path}{side}", f"{target}{side}")
        store.close()
        return SqliteStore(target, cache_mb=1)

    # ------------------------------------------------------------ work

    def publish(self, descriptor: Descriptor) -> None:
        self.lsn += 1
        published = replace(descriptor, since_lsn=self.lsn)
        for store in self.writers:
            store.prepare(descriptor)
            store.put_descriptor(TABLE, descriptor.version, published.to_wire())
        self._noted()

    def advance(self) -> None:
        """The schema change's next step: drain the newest version, or publish the next one."""
        newest = self.newest()
        if self.lowest() < newest:
            for store in self.writers:
                store.put_min_version(TABLE, newest)
        elif newest < len(self.versions):
            self._backfill(self.versions[newest - 1], self.versions[newest])
            self.publish(self.versions[newest])

    def _backfill(self, now: Descriptor, then: Descriptor) -> None:
        """What must be complete before `then` may be published."""
        keys = sorted(key for table, key in self.memory.contents.exists if table == TABLE)
        for column in then.columns:
            before = now.by_id.get(column.element_id)
            if before in now.at_once:
                continue
            if column.state in READABLE and before is not None and before.state not in READABLE:
                self.backfill_images(now, column, tuple(keys[::2]))
                self.backfill(now, column, tuple(keys))
        for index in then.indexes:
            if index.state in READABLE and now.element(index.element_id) != index:
                self.backfill(now, index, tuple(keys))

    def backfill(
        self, descriptor: Descriptor, element: Column | Index, keys: tuple[Key, ...]
    ) -> None:
        backfill = Backfill(TABLE, descriptor.version, element.element_id, keys)
        counts = {store.backfill(descriptor, backfill) for store in self.writers}
        assert len(counts) == 1, counts

    def backfill_images(
        self, descriptor: Descriptor, column: Column, keys: tuple[Key, ...]
    ) -> None:
        """As a master decides it on the reference's rows: those that lack the pair."""
        lacking = []
        for key in keys:
            row = self.memory.row(descriptor, key)
            if row is not None and row.values.get(column.element_id) is None:
                pair = {column.element_id: column.default}
                image = compose(descriptor, ChangeKind.BACKFILL, row.values, pair)
                lacking.append((key, image, row.genids))
        if lacking:
            self.lsn += 1
            named, images, genids = zip(*lacking, strict=True)
            backfill = Backfill(TABLE, descriptor.version, column.element_id, named, images, genids)
            assert {store.backfill(descriptor, backfill) for store in self.writers} == {
                len(lacking)
            }
            self._noted()

    def backfill_some(self, keys: tuple[Key, ...]) -> None:
        newest = self.versions[self.newest() - 1]
        if self.lowest() == newest.version:
            elements: tuple[Column | Index, ...] = (*newest.columns, *newest.indexes)
            for element in elements:
                if element.state is State.WRITE_ONLY:
                    self.backfill(newest, element, keys)

    def write(
        self, kind: ChangeKind, descriptor: Descriptor, key: Key, values: Mapping[int, Any]
    ) -> None:
        """Decide one operation on the reference's row, apply it everywhere."""
        row = self.memory.row(descriptor, key)
        for store in self.writers[1:]:
            assert store.row(descriptor, key) == row
        if row is None and kind in (ChangeKind.UPDATE, ChangeKind.BACKFILL):
            kind = ChangeKind.INSERT
        if row is not None and kind is ChangeKind.INSERT:
            kind = ChangeKind.UPDATE
        if row is None and kind is ChangeKind.DELETE:
            return
        image = None
        if kind is not ChangeKind.DELETE:
            before = None if row is None else row.values
            pairs = dict(values)
            if kind is ChangeKind.INSERT:
                pairs.update(zip(descriptor.primary_key, key, strict=True))
            image = compose(descriptor, kind, before, pairs)
            if kind is ChangeKind.INSERT:
                newest = self.versions[self.newest() - 1]
                image = complete_new_row(newest, descriptor.version, image)
        self.lsn += 1
        locks = () if kind is ChangeKind.BACKFILL else descriptor.locks
        genids = {} if row is None else row.genids
        change = RowChange(kind, TABLE, descriptor.version, key, image, genids, locks)
        for store in self.writers:
            store.change(descriptor, change, self.lsn, 0, row if store is self.master else None)
        self._noted()

    def _noted(self, *, emptied: bool = False) -> None:
        for store in self.writers:
            store.put_commit_times([(self.lsn, self.lsn * 1_000)])
        self.past.noted(self.lsn, self.memory, emptied=emptied)

    def collect(self, lsns: int) -> None:
        """Rows of so many LSNs ago can't be read any more."""
        for store in self.writers:
            store.collect_rows((self.lsn - lsns) * 1_000, self.lsn)

    def remove_dead(self) -> None:
        for store in (self.master, self.follower):
            while store.remove_dead(3):
                pass

    def truncate(self) -> None:
        self.lsn += 1
        for store in self.writers:
            store.truncate(TABLE, self.lsn)
        self._noted(emptied=True)

    def remember(self, number: int) -> None:
        request_id = first_id(number * 1_000)
        outcome = Outcome(1, self.lsn, 1, self.lsn, True, detail={"key": [1, "x"]}, answer=None)
        untimely = first_id((number + 4) * 1_000)
        for store in self.writers:
            store.put_outcome(request_id, outcome)
            store.put_untimely(untimely, outcome)

    def forget(self, before_us: int, rows_max: int) -> None:
        counts = {store.collect_outcomes(before_us * 200, rows_max) for store in self.writers}
        assert len(counts) == 1, counts
        assert len({store.oldest_id() for store in self.writers}) == 1

    # ------------------------------------------------------------ comparison

    def compare(self) -> None:
        """Everything that a store shows of its current transaction is the reference's."""
        held = self.memory.contents
        reader = self.versions[self.newest() - 1]
        # What is dead each store removes at its own pace; the reference never does.
        versions = map(brief_of, self.versions[: self.newest()])
        dead = dead_elements(versions, self.lowest(), frozenset())
        entries = {entry for entry in held.entries if entry[1] not in dead}
        for store in (self.master, self.follower):
            assert store.position() == held.position
            assert store.catalog() == self.memory.catalog()
            assert {entry for entry in entries_of(store) if entry[1] not in dead} == entries
            for table, key in held.exists:
                assert table == TABLE
                assert store.row(reader, key) == self.memory.row(reader, key)
            count = store._connection.execute(f"SELECT count(*) FROM t{TABLE}").get
            assert count == len(held.exists)
            assert store.rows_about(TABLE) == self.memory.rows_about(TABLE) == count
            for request_id, outcome in held.outcomes.items():
                assert store.outcome(request_id) == outcome
            count = store._connection.execute("SELECT count(*) FROM outcomes").get
            assert count == len(held.outcomes)
            for request_id, outcome in held.untimely.items():
                assert store.outcome(request_id) == outcome
            count = store._connection.execute("SELECT count(*) FROM untimely").get
            assert count == len(held.untimely)
            self._compare_holders(store, reader)

    def _compare_holders(self, store: SqliteStore, reader: Descriptor) -> None:
        """Who has an entry is the same for every entry there is, and for one of NULLs."""
        held = self.memory.contents
        for index in reader.indexes:
            if index.state not in DELETED:
                continue
            number = index.element_id
            width = len(index.columns)
            keys = {entry[:width] for _, i, entry, _ in held.entries if i == number}
            for values in (*keys, (None,) * width):
                for most in (1, len(held.exists) + 1):
                    found = list(store.holders(reader, number, values, most))
                    assert found == list(self.memory.holders(reader, number, values, most))

    def compare_committed(self) -> None:
        """Checks of committed contents find nothing, and say the same of equal stores (L6)."""
        (memory,), (master,), (follower,) = (reports_of(s, (TABLE,)) for s in self.stores)
        for report in (memory, master, follower):
            assert report.findings_total == 0, report
        same = ("offset", "lsn", "table_id", "version", "rows")
        for name in same:
            assert getattr(memory, name) == getattr(master, name)
        assert master._replace(took_ms=0) == follower._replace(took_ms=0)
        self.past.floor = self.memory.contents.rows_lsn or 0
        for store in self.stores:
            self.past.compare(store, self.lsn)
        first = max(self.lsn - 4, self.memory.kept_from(TABLE) or 0)
        for lsn in range(first, self.lsn + 1):
            self._compare_since(lsn)

    def _compare_since(self, lsn: int) -> None:
        """What was written, and what is gone, since an LSN: of all, by key, and by index."""
        held, reader = self.memory.contents, self.versions[self.newest() - 1]
        there = {key for table, key in (*held.exists, *held.old) if table == TABLE}
        parts = [(0, ReadRange())] + [(0, ReadRange(equal=key)) for key in sorted(there)]
        parts += [(0, ReadRange(low=key, high=(*key[:-1], key[-1] + 2))) for key in sorted(there)]
        for index in reader.indexes:
            if index.state in READABLE:
                number, width = index.element_id, len(index.columns)
                keys = {entry[:width] for _, i, entry, _ in held.entries if i == number}
                equal = [ReadRange(index.name, key) for key in keys]
                parts += [(number, part) for part in (ReadRange(index.name), *equal)]
        for number, part in parts:
            written = self.memory.written_in(reader, number, part, lsn, RangeLooks(10**9))
            gone = self.memory.gone_from(reader, number, part, lsn, RangeLooks(10**9))
            for store in (self.master, self.follower):
                found = store.written_in(reader, number, part, lsn, RangeLooks(10**9))
                assert (found is None) == (written is None), (number, part, lsn)
                found = store.gone_from(reader, number, part, lsn, RangeLooks(10**9))
                assert (found is None) == (gone is None), (number, part, lsn)
                assert store.last_write(TABLE) == self.memory.last_write(TABLE)
                assert store.kept_from(TABLE) == self.memory.kept_from(TABLE)
