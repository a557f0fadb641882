"""A store in memory that takes the key-value form literally: pair by pair, entry by entry.

It is the reference that the SQLite store is tested against, and small enough for models and the
simulation: `copy()` shares nothing that changes, `key()` is hashable. Nothing here is clever; it
must be plainly what `leasehold.rows.key_values` says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from leasehold.adapters.sqlite.checking.repair import Repairs, WrongEntry
from leasehold.adapters.sqlite.dead_elements import element_ids_of
from leasehold.catalog.access import Access
from leasehold.catalog.descriptor import Descriptor, from_wire
from leasehold.catalog.elements import Column, Index
from leasehold.catalog.part import WHOLE, Part
from leasehold.catalog.states import WRITTEN
from leasehold.model.budget import UNBOUNDED_BYTES, Budget, RangeLooks, RangeTooLong
from leasehold.model.errors import Refused, StoreCorrupted
from leasehold.model.ids import first_id, genid, genid_lsn
from leasehold.model.keys import Key, order_of
from leasehold.model.ports import CopyRange, Merged, RangeWaiting, Row, StoredCatalog
from leasehold.model.records.acks import CheckReport
from leasehold.model.records.events import Genids, Image
from leasehold.model.records.log import (
    Backfill,
    ChangeKind,
    CheckSlice,
    CopiedRows,
    KeySpan,
    LogPosition,
    RoleOrAccessWrite,
    RowChange,
)
from leasehold.model.records.requests import Outcome, ReadRange
from leasehold.model.time_units import NS_PER_MS
from leasehold.rows.computed_missing import compile_strictly
from leasehold.rows.filled_by_key import backfill_row
from leasehold.rows.index_entries import entry_of
from leasehold.rows.key_values import EntryChange, entries
from leasehold.rows.row_copies import digest_genids
from leasehold.transaction.mirror_table import genids_of, key_in, written
from tests.support.memory_store.check import check_contents, wrong_entries
from tests.support.memory_store.contents import Contents, OldRow, WaitingRange
from tests.support.memory_store.key_values import key_values
from tests.support.memory_store.slice import check_slice
from tests.support.memory_store.snapshot import MemorySnapshot

MERGED_MAX = 3
MERGE_PAUSE_NS = NS_PER_MS


class MemoryStore:
    """StoreWriter on dictionaries. `crash()` is what a killed process leaves: the last commit."""

    def __init__(self, contents: Contents | None = None, part: Part = WHOLE) -> None:
        self.part = part
        self.taken_out: set[tuple[int, Key]] = set()
        self._committed = Contents() if contents is None else contents
        self._now = self._committed
        self._savepoints: list[Contents] = []
        self._reports: list[CheckReport] = []
        self._repairs = Repairs()

    @property
    def contents(self) -> Contents:
        """What the writer sees now, uncommitted changes included."""
        return self._now

    def copy(self) -> MemoryStore:
        """A store of its own with what is committed here."""
        return MemoryStore(self._committed.copy(), self.part)

    def narrowed(self, part: Part) -> MemoryStore:
        """A store of its own with that part of what is committed here, as `copy_part` makes it."""
        assert self.part.is_whole, "a copy is taken of who has everything"
        held = self._committed.copy()
        kept = {
            name: {row: each for row, each in getattr(held, name).items() if part.stores(row[0])}
            for name in ("exists", "pairs", "old")
        }
        held.entries = {entry for entry in held.entries if part.stores(entry[0])}
        held.outcomes, held.untimely = {}, {}
        for name, rows in kept.items():
            setattr(held, name, rows)
        held.ranges = tuple(each for each in held.ranges if part.stores(each.table_id))
        return MemoryStore(held, part)

    def key(self) -> tuple[Any, ...]:
        """A hashable value: equal for stores that hold the same."""
        return self._now.key()

    def crash(self) -> MemoryStore:
        """The store as it is found after a crash: nothing uncommitted."""
        return self.copy()

    # ------------------------------------------------------------ transactions

    def begin(self) -> None:
        assert self._now is self._committed, "a transaction is open"
        self._now = self._committed.copy()
        self.taken_out.clear()

    def commit(self, position: LogPosition) -> None:
        """L6: position and contents change together."""
        assert self._now is not self._committed, "no transaction is open"
        assert not self._savepoints, "a savepoint is open"
        self._now.position = position
        self._now.newest_lsn = position.lsn
        self._committed = self._now

    def rollback(self) -> None:
        assert self._now is not self._committed, "no transaction is open"
        self._now = self._committed
        self._savepoints.clear()

    def savepoint(self) -> None:
        assert self._now is not self._committed, "no transaction is open"
        self._savepoints.append(self._now.copy())

    def release(self) -> None:
        self._savepoints.pop()

    def rollback_to(self) -> None:
        self._now = self._savepoints.pop()

    # ------------------------------------------------------------ position and catalog

    def position(self) -> LogPosition:
        return self._now.position

    def catalog(self) -> StoredCatalog:
        now = self._now
        access = list(now.access.writes_since(Access()))
        return StoredCatalog(
            [now.descriptors[place].to_wire() for place in sorted(now.descriptors)],
            dict(now.min_versions),
            [body for _, body in sorted(now.jobs.items())],
            now.ledger_run,
            access,
            now.next_role_id,
        )

    def prepare(self, descriptor: Descriptor) -> None:
        """Pairs and entries need no place of their own here; but every row gets what it has at once
        of a column that comes."""
        table_id, now = descriptor.table_id, self._now
        known = now.collected.get(table_id, frozenset()).union(
            *map(element_ids_of, now.versions(table_id))
        )
        missing = {e: m for e, m in descriptor.missing.items() if e not in known and m.at_once}
        given = {e: m.value for e, m in missing.items()}
        for table, key in now.exists if given else ():
            if table == table_id:
                now.pairs[table, key] = {**now.pairs.get((table, key), {}), **given}

    def put_descriptor(self, table_id: int, version: int, body: Any) -> None:
        self._now.descriptors[table_id, version] = from_wire(body)
        self._now.dead.clear()

    def collect_descriptor(self, table_id: int, version: int, until_lsn: int) -> None:
        now = self._now
        known = element_ids_of(now.descriptors.pop((table_id, version)))
        now.collected[table_id] = now.collected.get(table_id, frozenset()) | known
        now.history_floor = max(now.history_floor, until_lsn)
        now.dead.clear()

    def put_min_version(self, table_id: int, version: int) -> None:
        self._now.min_versions[table_id] = version
        self._now.dead.clear()

    def forget_table(self, table_id: int) -> None:
        now = self._now
        for place in [place for place in now.descriptors if place[0] == table_id]:
            now.history_floor = max(now.history_floor, now.descriptors.pop(place).since_lsn)
        for known in (now.min_versions, now.collected, now.emptied, now.written):
            known.pop(table_id, None)
        now.access = now.access.without_object(table_id)
        now.exists = {row: stamp for row, stamp in now.exists.items() if row[0] != table_id}
        now.pairs = {row: pairs for row, pairs in now.pairs.items() if row[0] != table_id}
        now.entries = {entry for entry in now.entries if entry[0] != table_id}
        now.old = {row: kept for row, kept in now.old.items() if row[0] != table_id}
        now.dead.clear()

    def forget_job(self, job_id: int) -> None:
        del self._now.jobs[job_id]

    def put_job(self, job_id: int, body: Any) -> None:
        self._now.jobs[job_id] = body

    def put_ledger_run(self, run_id: str) -> None:
        self._now.ledger_run = run_id

    def put_access(self, write: RoleOrAccessWrite, next_role_id: int) -> None:
        self._now.access = self._now.access.applied(write)
        self._now.next_role_id = next_role_id

    # ------------------------------------------------------------ rows

    def row(self, descriptor: Descriptor, key: Key) -> Row | None:
        return self._now.row(descriptor.table_id, key)

    def lacks(self, descriptor: Descriptor, keys: Sequence[Key]) -> bool:
        return all(self.row(descriptor, key) is None for key in keys)

    def is_empty(self, table_id: int) -> bool:
        return not self.rows_about(table_id)

    def count_lacking(self, descriptor: Descriptor, element_id: int) -> int:
        rows = [self._now.row(t, k) for t, k in self._now.exists if t == descriptor.table_id]
        return sum(row is not None and row.values.get(element_id) is None for row in rows)

    def rows_about(self, table_id: int) -> int:
        return sum(1 for table, _ in self._now.exists if table == table_id)

    def holders(
        self, descriptor: Descriptor, index_id: int, values: Key, rows_max: int
    ) -> Sequence[Key]:
        table = descriptor.table_id
        width = len(values)
        found = (
            key
            for t, i, entry, key in self._now.entries
            if (t, i, entry[:width]) == (table, index_id, values)
        )
        return sorted(found, key=order_of)[:rows_max]

    def change(
        self, descriptor: Descriptor, change: RowChange, lsn: int, position: int, before: Row | None
    ) -> None:
        row = self._now.row(descriptor.table_id, change.key)
        self._verify(descriptor, change, row)
        if self._now.rows_lsn is not None:
            self._keep(change, lsn)
        pairs = None if row is None else row.values
        if change.image is None:
            self._put(descriptor, change, pairs, {}, lsn, {})
            return
        # The image says all: a pair that it lacks is a NULL that somebody has chosen, or the
        # master would have put the default there.
        known = pairs or {}
        changed = {e: change.image.get(e) for e in (*known, *change.image, *descriptor.by_id)}
        genids = dict(row.genids) if row is not None else {}
        genids.update(change.carried)
        genids.update((lock, genid(lsn, position)) for lock in change.locks)
        self._put(descriptor, change, pairs, changed, lsn, genids)

    def insert(
        self, descriptor: Descriptor, changes: Sequence[RowChange], lsn: int, position: int
    ) -> None:
        for place, change in enumerate(changes, position):
            self.change(descriptor, change, lsn, place, None)

    def _keep(self, change: RowChange, lsn: int) -> None:
        """What the row was up to now; a row that this very commit has made was never there."""
        now, row = self._now, (change.table_id, change.key)
        genids, since = now.exists.get(row, ({}, lsn))
        if since < lsn:
            old = OldRow(genids, since, lsn, now.pairs.get(row, {}))
            now.old[row] = (*now.old.get(row, ()), old)
        if change.kind is not ChangeKind.BACKFILL:
            now.written[change.table_id] = lsn

    def _verify(self, descriptor: Descriptor, change: RowChange, row: Row | None) -> None:
        if change.kind is ChangeKind.INSERT:
            agrees = row is None
        else:
            agrees = row is not None and all(
                row.genids.get(lock) == seen for lock, seen in change.before.items()
            )
        if not agrees:
            raise StoreCorrupted(
                f"{change.kind.name} of {change.key!r} in table {descriptor.name!r} was decided on"
                f" genids {dict(change.before)}, the store has {row}"
            )

    def _put(
        self,
        descriptor: Descriptor,
        change: RowChange,
        before: Image | None,
        changed: Mapping[int, Any],
        lsn: int,
        genids: Genids,
    ) -> None:
        now, table, key = self._now, descriptor.table_id, change.key
        done = key_values(descriptor, change.kind, before, changed)
        pairs = dict(now.pairs.get((table, key), {}))
        for element in done.delete:
            pairs.pop(element, None)
        pairs.update(done.put)
        newest = () if done.exists else now.versions(table)[-1:]
        for missing in (version.missing for version in newest):
            for element, said in missing.items():
                # What a row has at once goes with it, whoever takes it away.
                unknown = said.at_once and element not in descriptor.by_id
                if unknown and pairs.get(element) == said.value:
                    del pairs[element]
        now.pairs[table, key] = pairs
        if not pairs:
            del now.pairs[table, key]
        if done.exists:
            now.exists[table, key] = (genids, lsn)
        else:
            now.exists.pop((table, key), None)
        self._change_entries(table, key, done.entries)

    def truncate(self, table_id: int, lsn: int) -> None:
        now = self._now
        now.exists = {row: stamp for row, stamp in now.exists.items() if row[0] != table_id}
        now.pairs = {row: pairs for row, pairs in now.pairs.items() if row[0] != table_id}
        now.entries = {entry for entry in now.entries if entry[0] != table_id}
        if now.rows_lsn is not None:
            now.old = {row: kept for row, kept in now.old.items() if row[0] != table_id}
            now.emptied[table_id] = now.written[table_id] = lsn

    def backfill(self, descriptor: Descriptor, backfill: Backfill) -> int:
        element = descriptor.element(backfill.element_id)
        assert isinstance(element, Column | Index), f"no element {backfill.element_id} to be filled"
        assert element.state in WRITTEN, f"{element.name!r} takes no pairs in this version"
        now, table, done = self._now, descriptor.table_id, 0
        if backfill.images:
            for key, image, genids in zip(
                backfill.keys, backfill.images, backfill.genids, strict=True
            ):
                self._backfill_image(descriptor, key, image, genids)
            return len(backfill.keys)
        if backfill.span is not None:
            noted = WaitingRange(table, descriptor.version, backfill.element_id, backfill.span)
            now.ranges += (noted,)
            return 0
        for key in backfill.keys:
            row = now.row(table, key)
            if row is None:
                continue
            if isinstance(element, Index):
                values = entry_of(descriptor, element)(row.values)
                if values is not None:
                    entry = (table, element.element_id, values, key)
                    done += entry not in now.entries
                    now.entries.add(entry)
                continue
            after = backfill_row(element, row.values)
            if after is not None:
                now.pairs[table, key] = {**now.pairs[table, key], **after}
                self._change_entries(table, key, entries(descriptor, row.values, after))
                done += 1
        return done

    # ------------------------------------------------------------ rows that are copied by range

    def read_copy(
        self, source: Descriptor, target: Descriptor, after: Key, rows_max: int
    ) -> CopyRange:
        behind = self._in_order(source, target, KeySpan(after, ()))
        through = behind[rows_max - 1] if len(behind) >= rows_max else ()
        span = KeySpan(after, through)
        rows = list(self._missing(source, target, span))
        width, locks = len(target.primary_key), target.locks
        others = sorted({e for _, row in rows for e in row.values} - set(target.primary_key))
        columns = (*target.primary_key, *others)
        shown = tuple(
            (*map(row.values.get, columns), *genids_of(target, row).values()) for _, row in rows
        )
        digest = digest_genids(tuple(genids_of(target, row).values()) for _, row in rows)
        return CopyRange(span, CopiedRows(columns, width, locks, shown, digest))

    def copy_rows(
        self, source: Descriptor, target: Descriptor, backfill: Backfill, lsn: int
    ) -> int:
        said, span = backfill.copied, backfill.span
        assert said is not None
        assert span is not None
        found = list(self._missing(source, target, span))
        digest = digest_genids(tuple(genids_of(target, row).values()) for _, row in found)
        if (len(found), digest) != (len(said.rows), said.digest):
            raise StoreCorrupted(f"the log has {said}, the store {found}")
        for position, (key, row) in enumerate(found):
            self.change(target, written(target, key, None, row), lsn, position, None)
        return len(found)

    def _in_order(self, source: Descriptor, target: Descriptor, span: KeySpan) -> list[Key]:
        """The keys under `target` of rows of `source`, in a range."""
        now = self._now
        rows = (now.row(*at) for at in now.exists if at[0] == source.table_id)
        keys = (None if row is None else key_in(target, row.values) for row in rows)
        return sorted((k for k in keys if k is not None and _is_within(k, span)), key=order_of)

    def _missing(
        self, source: Descriptor, target: Descriptor, span: KeySpan
    ) -> Iterator[tuple[Key, Row]]:
        now = self._now
        mine = (key for table, key in now.exists if table == source.table_id)
        for key in sorted(mine, key=order_of):
            row = now.row(source.table_id, key)
            other = None if row is None else key_in(target, row.values)
            if row is None or other is None or not _is_within(other, span):
                continue
            if now.row(target.table_id, other) is None:
                yield other, row

    # ------------------------------------------------------------ backfills by range

    def ranges_waiting(self, table_id: int | None = None) -> int:
        return sum(table_id in (None, each.table_id) for each in self._now.ranges)

    def next_range(self) -> RangeWaiting | None:
        return RangeWaiting(*self._now.ranges[0][:3]) if self._now.ranges else None

    def merge_entries(self, descriptor: Descriptor, rows_max: int | None = None) -> Merged:
        """First the run, then a few of its entries: with as many writes in between as there
        are."""
        assert self._now is self._committed, "a transaction is open"
        now = self._now = self._committed.copy()
        first, *others = now.ranges
        count = min(MERGED_MAX, rows_max or MERGED_MAX)
        if first.run is None:
            now.ranges = (first._replace(run=_run_of(now, descriptor, first)), *others)
            merged = Merged(0, MERGE_PAUSE_NS)
        else:
            column = descriptor.by_id.get(first.element_id)
            for entry, key, lsn in first.run[:count]:
                if column is not None:
                    failed = _put_value(now, first.table_id, column, key)
                    if failed is not None:
                        now.failures.setdefault((first.table_id, first.element_id), (key, failed))
                    continue
                stamp = now.exists.get((first.table_id, key))
                if stamp is not None and stamp[1] == lsn:
                    now.entries.add((first.table_id, first.element_id, entry, key))
            merged = Merged(len(first.run[:count]), MERGE_PAUSE_NS)
            left = first.run[count:]
            now.ranges = (first._replace(run=left), *others) if left else tuple(others)
        self._committed = now
        return merged

    def range_failure(self, table_id: int, element_id: int) -> tuple[Key, Refused] | None:
        return self._now.failures.get((table_id, element_id))

    def end_ranges(
        self, descriptor: Descriptor, element_id: int, lsn: int, *, complete: bool
    ) -> None:
        assert self._now is not self._committed, "no transaction is open"
        now, of = self._now, (descriptor.table_id, element_id)
        ended = [r for r in now.ranges if (r.table_id, r.element_id) == of]
        now.ranges = tuple(r for r in now.ranges if r not in ended)
        now.failures.pop(of, None)
        if not complete:
            now.entries = {each for each in now.entries if each[:2] != of}
            return
        column = descriptor.by_id.get(element_id)
        for each in ended:
            for entry, key, _ in _run_of(now, descriptor, each):
                if column is None:
                    now.entries.add((*of, entry, key))
                else:
                    _put_value(now, descriptor.table_id, column, key)

    def _backfill_image(
        self, descriptor: Descriptor, key: Key, image: Image, genids: Genids
    ) -> None:
        table, version, kind = descriptor.table_id, descriptor.version, ChangeKind.BACKFILL
        row = self._now.row(table, key)
        change = RowChange(kind, table, version, key, image, genids, ())
        self._verify(descriptor, change, row)
        assert row is not None, "verified"
        changed = {e: image.get(e) for e in (*row.values, *image, *descriptor.by_id)}
        self._put(descriptor, change, row.values, changed, row.lsn, row.genids)

    def _change_entries(self, table: int, key: Key, changes: Iterable[EntryChange]) -> None:
        for entry in changes:
            if entry.remove is not None:
                self._now.entries.discard((table, entry.index_id, entry.remove, key))
            if entry.put is not None:
                self._now.entries.add((table, entry.index_id, entry.put, key))

    # ------------------------------------------------------------ outcomes

    def outcome(self, request_id: bytes) -> Outcome | None:
        now = self._now
        return now.outcomes.get(request_id) or now.untimely.get(request_id)

    def put_outcome(self, request_id: bytes, outcome: Outcome) -> None:
        self._now.outcomes[request_id] = outcome

    def put_untimely(self, request_id: bytes, outcome: Outcome) -> None:
        self._now.outcomes.pop(request_id, None)  # that of an attempt before
        self._now.untimely[request_id] = outcome

    def oldest_outcomes(self, count: int) -> Sequence[Outcome]:
        kept = sorted((o.decided_us, request_id) for request_id, o in self._now.outcomes.items())
        return [self._now.outcomes[request_id] for _, request_id in kept[:count]]

    def oldest_id(self) -> bytes | None:
        return min(self._now.outcomes, default=None)

    def collect_outcomes(self, id_horizon_us: int, rows_max: int) -> int:
        _forget_decided(self._now.untimely, id_horizon_us, rows_max)
        first = first_id(id_horizon_us)
        old = sorted(request_id for request_id in self._now.outcomes if request_id < first)
        for request_id in old[:rows_max]:
            del self._now.outcomes[request_id]
        return len(old[:rows_max])

    def collect_decided_outcomes(self, decided_before_us: int, rows_max: int) -> int:
        return _forget_decided(self._now.outcomes, decided_before_us, rows_max)

    # ------------------------------------------------------------ rows of the past

    def put_part(self, part: Part) -> None:
        self.part = part

    def keep_rows(self, on: bool) -> None:
        assert self._now is self._committed, "a transaction is open"
        now = self._now
        if on == (now.rows_lsn is not None):
            return
        now.rows_lsn = now.position.lsn if on else None
        now.old, now.emptied, now.written, now.times = {}, {}, {}, ()

    def put_commit_times(self, times: Sequence[tuple[int, int]]) -> None:
        if self._now.rows_lsn is not None:
            self._now.times = (*self._now.times, *times)

    def reset_commit_times(self, lsn: int, time_us: int) -> None:
        now = self._now
        if now.rows_lsn is not None:
            self._raise_floor(lsn)
            now.times = ((lsn, time_us),)

    def collect_rows(self, before_us: int, newest_lsn: int) -> None:
        now = self._now
        if now.rows_lsn is None:
            return
        now.newest_lsn = newest_lsn
        floor = now.lsn_at(before_us)
        if floor <= max(now.rows_lsn, now.history_floor):
            return
        self._raise_floor(floor)
        first = max(lsn for lsn, _ in now.times if lsn <= floor)
        now.times = tuple(at for at in now.times if at[0] >= first)

    def _raise_floor(self, floor: int) -> None:
        now = self._now
        assert now.rows_lsn is not None
        now.rows_lsn = max(now.rows_lsn, floor)
        kept = {row: tuple(o for o in old if o.until > floor) for row, old in now.old.items()}
        now.old = {row: old for row, old in kept.items() if old}

    def kept_from(self, table_id: int) -> int | None:
        return self._now.kept_from(table_id)

    def last_write(self, table_id: int) -> int:
        return self._now.written.get(table_id, 0)

    def written_in(
        self, descriptor: Descriptor, index_id: int, part: ReadRange, lsn: int, looks: RangeLooks
    ) -> Key | None:
        now, table = self._now, descriptor.table_id
        for key in now.in_range(descriptor, index_id, part):
            if not looks.take(1):
                raise RangeTooLong
            if genid_lsn(max(now.exists[table, key][0].values())) > lsn:
                return key
        return None

    def gone_from(
        self, descriptor: Descriptor, index_id: int, part: ReadRange, lsn: int, looks: RangeLooks
    ) -> Key | None:
        now, table = self._now, descriptor.table_id
        then = now.at(lsn)
        for key in then.in_range(descriptor, index_id, part):
            if not looks.take(1):
                raise RangeTooLong
            stamp = now.exists.get((table, key))
            if stamp is None or genid_lsn(max(stamp[0].values())) > lsn:
                return key
        return None

    # ------------------------------------------------------------ readers and checks

    def open_snapshot(self, *, brief: bool = False) -> MemorySnapshot:
        return MemorySnapshot(self._committed.copy())

    def open_budget(self) -> Budget:
        return Budget(UNBOUNDED_BYTES)

    def remove_dead(self, rows_max: int) -> bool:
        """Left-overs are what models and checks are about; they stay."""
        return False

    def check(
        self,
        subject: bytes,
        table_ids: Sequence[int],
        elements: Sequence[int],
        *,
        repairs_max: int = 0,
        part: CheckSlice | None = None,
    ) -> None:
        """At once, by the definition."""
        held = self._committed
        for table_id in table_ids or sorted({t for t, _ in held.descriptors}):
            if part is not None:
                report = check_slice(held, subject, table_id, elements, part)
            else:
                report = check_contents(held, subject, table_id, elements)
            self._reports.append(report)
            if repairs_max:
                wrong = wrong_entries(held, table_id)[:repairs_max]
                self._repairs.remember(subject, table_id, wrong)

    def repair(self, descriptor: Descriptor, subject: bytes, entries_max: int) -> tuple[int, bool]:
        wrong = self._repairs.take(subject, descriptor.table_id, entries_max)
        before = set(self._now.entries)
        for each in wrong:
            self._repair(descriptor, each)
        return len(before ^ self._now.entries), len(wrong) == entries_max

    def _repair(self, descriptor: Descriptor, wrong: WrongEntry) -> None:
        now, table, key = self._now, descriptor.table_id, wrong.key
        row = now.row(table, key)
        put = entries(descriptor, None, row.values) if row is not None else ()
        right = next((e.put for e in put if e.index_id == wrong.index_id), None)
        if wrong.entry is not None:
            now.entries.discard((table, wrong.index_id, wrong.entry[: -len(key)], key))
        if right is not None:
            now.entries.add((table, wrong.index_id, right, key))

    def give_way(self, *, beside_users: bool, gentle: bool) -> None:
        """Nothing here takes long."""

    def tidy(self) -> None:
        """Nothing is put off here."""

    def checked(self) -> Sequence[CheckReport]:
        reports, self._reports = self._reports, []
        return reports


def _run_of(
    now: Contents, descriptor: Descriptor, waiting: WaitingRange
) -> tuple[tuple[Key, Key, int], ...]:
    """Return entry, key and LSN of the rows of a range that have an entry, in the index's order; of
    a column's range all rows, in the order of keys, each with no entry."""
    index = descriptor.element(waiting.element_id)
    made = entry_of(descriptor, index) if isinstance(index, Index) else lambda image: ()
    found = []
    for table, key in now.exists:
        row = now.row(table, key) if table == descriptor.table_id and waiting.has(key) else None
        entry = None if row is None else made(row.values)
        if row is not None and entry is not None:
            found.append((entry, key, row.lsn))
    return tuple(sorted(found, key=lambda each: (order_of(each[0]), order_of(each[1]))))


def _is_within(key: Key, span: KeySpan) -> bool:
    behind = not span.after or order_of(key) > order_of(span.after)
    return behind and (not span.through or order_of(key) <= order_of(span.through))


def _put_value(now: Contents, table: int, column: Column, key: Key) -> Refused | None:
    """Put a column's value into a row as it is, if it is there and lacks one; return why there is
    none."""
    row = now.row(table, key)
    if row is None or row.values.get(column.element_id) is not None:
        return None
    assert column.missing is not None
    assert column.missing.computed is not None
    try:
        compile_strictly(column.missing.computed)(row.values)
    except Refused as error:
        return error
    after = backfill_row(column, row.values)
    if after is not None:
        now.pairs[table, key] = {**now.pairs[table, key], **after}
    return None


def _forget_decided(outcomes: dict[bytes, Outcome], before_us: int, rows_max: int) -> int:
    old = sorted(
        (outcome.decided_us, request_id)
        for request_id, outcome in outcomes.items()
        if outcome.decided_us < before_us
    )
    for _, request_id in old[:rows_max]:
        del outcomes[request_id]
    return len(old[:rows_max])
