"""A node's store on SQLite: what its single writer does (`model.ports.StoreWriter`).

Readers have connections of their own (`snapshot.py`); a check reads beside the apply loop
(`check.py`). One thread at a time may use the writer's methods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from threading import get_native_id
from typing import Any, Final

import apsw

from leasehold.adapters.sqlite.backfill import (
    backfill_column,
    backfill_entries,
    backfill_images,
    backfill_indexed,
)
from leasehold.adapters.sqlite.catalog import StoredTables
from leasehold.adapters.sqlite.checking.checker import Checker
from leasehold.adapters.sqlite.checking.repair import repair_entry
from leasehold.adapters.sqlite.checking.yielding import Users
from leasehold.adapters.sqlite.checkpoints import Checkpoints
from leasehold.adapters.sqlite.column_backfill import backfill_computed
from leasehold.adapters.sqlite.counts import RowCounts
from leasehold.adapters.sqlite.history import make_history
from leasehold.adapters.sqlite.layout import (
    WriterLock,
    connect,
    element_ids,
    make_past,
    make_physical,
    make_writer,
    physical_columns,
    read_part,
    set_aside,
    set_entries_aside,
    table_name,
    write_part,
)
from leasehold.adapters.sqlite.outcomes import Outcomes
from leasehold.adapters.sqlite.plan import WritePlan
from leasehold.adapters.sqlite.range_backfills import DIRECT_ROWS_MAX, WAITING, RangeBackfills
from leasehold.adapters.sqlite.removal import Removal
from leasehold.adapters.sqlite.row_copying import RowCopying
from leasehold.adapters.sqlite.row_history import RowHistory, kept_from, table_kept_from
from leasehold.adapters.sqlite.snapshot import PLANS_KEPT_MAX, Readers, SqliteSnapshot
from leasehold.adapters.sqlite.statement_memory import (
    TEMP_FOLDER,
    StatementMemory,
    statement_memory,
    use_temp_folder,
)
from leasehold.adapters.sqlite.store_measures import StoreMeasures
from leasehold.adapters.sqlite.written_since import gone_from, written_in
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.catalog.part import Part
from leasehold.catalog.physical_names import column_name
from leasehold.model.budget import Budget, RangeLooks
from leasehold.model.errors import ConfigurationError, Refused, StoreCorrupted
from leasehold.model.ids import genid
from leasehold.model.keys import Key
from leasehold.model.ports import CopyRange, Merged, RangeWaiting, Row, StoredCatalog
from leasehold.model.records.acks import CheckReport
from leasehold.model.records.events import Image
from leasehold.model.records.log import (
    Backfill,
    ChangeKind,
    CheckSlice,
    LogPosition,
    RoleOrAccessWrite,
    RowChange,
)
from leasehold.model.records.requests import Outcome, ReadRange
from leasehold.rows.key_values import entries
from leasehold.rows.row_copies import find_copying_index
from leasehold.settings.private_files import FOLDER_MODE, keep_store_private

CACHE_MB: Final = 64
"""Of a connection: the writer's where nobody says otherwise, and a reader's at most."""
_INSERT, _DELETE, _BACKFILL = ChangeKind.INSERT, ChangeKind.DELETE, ChangeKind.BACKFILL


class SqliteStore:
    """StoreWriter on the file `path`, which is created when it isn't there.

    `synchronous` "normal" may lose the last commits in a power cut, never half of one: the log
    has them. "full" syncs at every commit. `memory` bounds the statements that read it. Ranges of
    up to `direct_rows_max` rows are filled at their very position. Raises
    ConfigurationError when another writer has the file open, or when the file is not a store this
    program can read.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        synchronous: str = "normal",
        cache_mb: int = CACHE_MB,
        memory: StatementMemory | None = None,
        direct_rows_max: int = DIRECT_ROWS_MAX,
    ) -> None:
        self.path = Path(path)
        if synchronous not in ("normal", "full"):
            raise ConfigurationError(f"synchronous is normal or full, not {synchronous!r}")
        self.path.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        self._lock = WriterLock(self.path)
        try:
            keep_store_private(self.path)
            self._connection = connect(self.path, cache_mb=cache_mb, read_only=False)
            make_writer(self._connection, synchronous)
            make_history(self._connection)
            self._connection.execute(WAITING)
            self.part = read_part(self._connection)
            """What of the database is in here: a record's rows of other tables pass it by."""
            self.taken_out: set[tuple[int, Key]] = set()
            """See the port."""
            self.memory = memory or statement_memory(self.path.parent / TEMP_FOLDER)
            use_temp_folder(self._connection, self.memory.temp.folder)
            self._checkpoints = Checkpoints(self._connection, self.path)
        except BaseException:
            self._lock.close()
            raise
        self.measures = StoreMeasures(self._connection, self.path, self._checkpoints, self.memory)
        self._execute = self._connection.cursor().execute
        self._tables = StoredTables(self._connection)
        self._outcomes = Outcomes(self._connection)
        self._counts = RowCounts(self._connection)
        self._past = RowHistory(self._connection)
        # By identity, which is one look-up; a plan holds its descriptor, so no id comes twice.
        self._plans: dict[int, WritePlan] = {}
        self._plans_of: dict[int, list[int]] = {}  # those of each table
        self._open = False
        self._savepoints = 0
        self._touched: set[int] = set()  # tables whose versions this transaction has changed
        self._look_aside = False  # it has set something aside
        self._look_again = False  # more of what is dead may go now
        self._readers = Readers(self.path, cache_mb=min(cache_mb, CACHE_MB), memory=self.memory)
        self._readers.part = self.part
        self._users = Users()
        self._checker = Checker(self._readers, self._users)
        self._removal = Removal(self._connection, self._tables, self._past.lose)
        self._removal.look_at_all()
        self._ranges = RangeBackfills(self._connection, self.path, direct_rows_max, self._users)
        self._ranges_touched = False

    def close(self) -> None:
        """Give everything back; an open transaction is rolled back."""
        self._checker.close()
        self._ranges.close()
        self._checkpoints.close()
        self._readers.close()
        self._connection.close()
        self._lock.close()

    # ------------------------------------------------------------ transactions

    def begin(self) -> None:
        assert not self._open, "a transaction is open"
        self._execute("BEGIN IMMEDIATE")
        self.taken_out.clear()
        self._open = True

    def commit(self, position: LogPosition) -> None:
        """End the transaction. L6: the position lies in the same transaction as what was
        applied."""
        assert self._open, "no transaction is open"
        assert self._savepoints == 0, "a savepoint is open"
        self._checkpoints.raise_failure()
        self._tables.put_position(position)
        self._counts.commit()
        self._past.commit(position.lsn)
        self._execute("COMMIT")
        self._open = False
        if self._touched:
            self._removal.look(self._touched)
            self._touched = set()
        if self._look_aside:
            self._removal.look_aside()
        if self._look_again:
            self._removal.look_again()
        self._look_aside = self._look_again = False
        self._ranges_touched = False

    def remove_dead(self, rows_max: int) -> bool:
        assert not self._open, "a transaction is open"
        return self._past.step(rows_max) or self._removal.step(rows_max)

    def keep_rows(self, on: bool) -> None:
        assert not self._open, "a transaction is open"
        self._past.keep(on)
        self._clear_plans()
        self._removal.look_at_all()

    def rollback(self) -> None:
        assert self._open, "no transaction is open"
        self._execute("ROLLBACK")
        self._counts.rollback()
        self._past.rollback()
        self._open = False
        self._savepoints = 0
        self._forget_plans()
        self._touched = set()
        self._look_aside = self._look_again = False
        self._forget_ranges()

    def savepoint(self) -> None:
        assert self._open, "no transaction is open"
        self._execute("SAVEPOINT request")
        self._counts.savepoint()
        self._past.savepoint()
        self._savepoints += 1

    def release(self) -> None:
        assert self._savepoints > 0, "no savepoint"
        self._execute("RELEASE request")
        self._counts.release()
        self._past.release()
        self._savepoints -= 1

    def rollback_to(self) -> None:
        """Undo everything since the newest savepoint, which is gone afterwards."""
        assert self._savepoints > 0, "no savepoint"
        self._execute("ROLLBACK TO request")
        self._execute("RELEASE request")
        self._counts.rollback_to()
        self._past.rollback_to()
        self._savepoints -= 1
        self._forget_plans()
        if self._ranges_touched:
            self._ranges.undone()

    def _forget_plans(self) -> None:
        if self._touched:
            self._clear_plans()

    def _clear_plans(self) -> None:
        self._plans.clear()
        self._plans_of.clear()

    def _forget_ranges(self) -> None:
        if self._ranges_touched:
            self._ranges.undone()
        self._ranges_touched = False

    # ------------------------------------------------------------ position and catalog

    def position(self) -> LogPosition:
        return self._tables.position()

    def catalog(self) -> StoredCatalog:
        return self._tables.catalog()

    def put_part(self, part: Part) -> None:
        assert self._open, "no transaction is open"
        write_part(self._connection, part)
        self.part = self._readers.part = part

    def prepare(self, descriptor: Descriptor) -> None:
        self._touch(descriptor.table_id)
        make_physical(self._connection, descriptor)
        if self._past.keeps:
            make_past(self._connection, descriptor.table_id)

    def put_descriptor(self, table_id: int, version: int, body: Any) -> None:
        self._touch(table_id)
        self._tables.put_descriptor(table_id, version, body)

    def collect_descriptor(self, table_id: int, version: int, until_lsn: int) -> None:
        self._touch(table_id)
        self._look_again = True  # the floor of what is kept may rise
        self._tables.collect_descriptor(table_id, version, until_lsn)

    def put_min_version(self, table_id: int, version: int) -> None:
        self._touch(table_id)
        self._tables.put_min_version(table_id, version)

    def forget_table(self, table_id: int) -> None:
        self._touch(table_id)
        self._look_again = True  # as above
        self._tables.forget_table(table_id)
        self._past.forget(table_id)

    def put_job(self, job_id: int, body: Any) -> None:
        assert self._open, "no transaction is open"
        self._tables.put_job(job_id, body)

    def forget_job(self, job_id: int) -> None:
        assert self._open, "no transaction is open"
        self._tables.forget_job(job_id)

    def put_ledger_run(self, run_id: str) -> None:
        assert self._open, "no transaction is open"
        self._tables.put_ledger_run(run_id)

    def put_access(self, write: RoleOrAccessWrite, next_role_id: int) -> None:
        assert self._open, "no transaction is open"
        self._tables.access.put(write, next_role_id)

    def _touch(self, table_id: int) -> None:
        """Note that what is known of a table changes."""
        assert self._open, "no transaction is open"
        self._touched.add(table_id)
        for plan in self._plans_of.pop(table_id, ()):
            del self._plans[plan]

    def _plan(self, descriptor: Descriptor) -> WritePlan:
        plan = self._plans.get(id(descriptor))
        return self._new_plan(descriptor) if plan is None else plan

    def _new_plan(self, descriptor: Descriptor) -> WritePlan:
        there = physical_columns(self._connection, table_name(descriptor.table_id))
        if not there:
            raise StoreCorrupted(
                f"the store {self.path} has no table for {descriptor.name!r}"
                f" (id {descriptor.table_id}); its descriptor was never prepared"
            )
        known = frozenset(element_ids(there))
        # Dead columns are neither read nor carried along: nodes remove them at their own pace,
        # and an image must not depend on how far the master has come with that.
        live = sorted(known - self._tables.dead_elements(descriptor.table_id))
        if len(self._plans) >= PLANS_KEPT_MAX:
            self._clear_plans()
        plan = WritePlan(descriptor, live, known, there)
        for entries_plan in plan.entries.values():
            entries_plan.install(self._connection)
        self._plans[id(descriptor)] = plan
        self._plans_of.setdefault(descriptor.table_id, []).append(id(descriptor))
        return plan

    # ------------------------------------------------------------ rows

    def row(self, descriptor: Descriptor, key: Key) -> Row | None:
        plan = self._plan(descriptor)
        found = self._execute(plan.get, key).fetchall()
        return plan.row(found[0]) if found else None

    def lacks(self, descriptor: Descriptor, keys: Sequence[Key]) -> bool:
        try:
            ends = (*min(keys), *max(keys))
        except TypeError:
            return False  # of values of several kinds Python has no order, as the file has
        return not self._execute(self._plan(descriptor).any_between, ends).fetchall()

    def is_empty(self, table_id: int) -> bool:
        return not self._execute(f"SELECT 1 FROM {table_name(table_id)} LIMIT 1").fetchall()  # noqa: S608 - an integer

    def count_lacking(self, descriptor: Descriptor, element_id: int) -> int:
        name, column = table_name(descriptor.table_id), column_name(element_id)
        text = f"SELECT count(*) FROM {name} WHERE {column} IS NULL"  # noqa: S608 - integers
        rows: Any = self._execute(text).fetchall()
        return int(rows[0][0])

    def rows_about(self, table_id: int) -> int:
        return self._counts.rows(table_id)

    def holders(
        self, descriptor: Descriptor, index_id: int, values: Key, rows_max: int
    ) -> Sequence[Key]:
        entries = self._plan(descriptor).entries[index_id]
        return self._execute(entries.holders, (*entries.key(values), rows_max)).fetchall()

    def change(
        self,
        descriptor: Descriptor,
        change: RowChange,
        lsn: int,
        position: int,
        before: Row | None,
    ) -> None:
        plan = self._plan(descriptor)
        kind, table_id, _, key, image, verified, locks, carried = change
        if self._ranges.waits:
            self._ranges.written(table_id, key)
        stamp = genid(lsn, position)
        old = self._image_before(plan, change, before) if plan.entries else None
        if self._past.keeps:
            # What the row was up to now, for those who read as of an earlier LSN.
            if kind is not _INSERT:
                self._execute(plan.keep, (stamp, *key, lsn))
            if kind is not _BACKFILL:
                self._past.written[table_id] = lsn
        if kind is _DELETE:
            self._execute(plan.delete(tuple(verified)), (*key, *verified.values()))
            self._counts.add(table_id, -1)
        else:
            assert image is not None, "T0: every change but a delete carries its after-image"
            if not image.keys() <= plan.known:
                raise self._unprepared(plan, image.keys() - plan.known)
            pairs = map(image.get, plan.other_ids)
            if kind is _INSERT:
                stamps = _stamps_of(plan, change, stamp)
                self._insert(plan, change, (*key, *pairs, *stamps, lsn))
            else:
                stamps = (stamp,) * len(locks)
                if carried:
                    locks = (*locks, *carried)
                    stamps = (*stamps, *carried.values())
                self._execute(
                    plan.update(locks, tuple(verified)),
                    (*pairs, *stamps, lsn, *key, *verified.values()),
                )
        if kind is not _INSERT and self._connection.changes() != 1:
            raise self._contradiction(plan, change)
        if plan.entries:
            self._change_entries(plan, key, old, image)

    def insert(
        self, descriptor: Descriptor, changes: Sequence[RowChange], lsn: int, position: int
    ) -> None:
        plan = self._plan(descriptor)
        if plan.entries or self._ranges.waits:
            for place, change in enumerate(changes, position):
                self.change(descriptor, change, lsn, place, None)
            return
        rows: list[tuple[Any, ...]] = []
        for place, change in enumerate(changes, position):
            image = change.image
            assert image is not None, "T0: every change but a delete carries its after-image"
            if not image.keys() <= plan.known:
                raise self._unprepared(plan, image.keys() - plan.known)
            pairs = map(image.get, plan.other_ids)
            rows.append((*change.key, *pairs, *_stamps_of(plan, change, genid(lsn, place)), lsn))
        before = self._connection.total_changes()
        try:
            self._connection.executemany(plan.insert, rows)
        except apsw.ConstraintError as error:
            there = self._connection.total_changes() - before  # those before it have been put
            raise self._contradiction(plan, changes[there]) from error
        self._counts.add(descriptor.table_id, len(rows))
        if self._past.keeps:
            self._past.written[descriptor.table_id] = lsn

    def _insert(self, plan: WritePlan, change: RowChange, row: tuple[Any, ...]) -> None:
        try:
            self._execute(plan.insert, row)
        except apsw.ConstraintError as error:
            raise self._contradiction(plan, change) from error
        self._counts.add(change.table_id, 1)

    def _image_before(self, plan: WritePlan, change: RowChange, before: Row | None) -> Image | None:
        """Return the indexed pairs before the change, or the whole row where the caller has it."""
        if change.kind is _INSERT:
            return None
        if before is not None:
            return before.values
        found = self._execute(plan.get_indexed, change.key).fetchall()
        if not found:
            raise self._contradiction(plan, change)
        return dict(zip(plan.indexed_ids, found[0], strict=False))

    def _change_entries(
        self, plan: WritePlan, key: Key, old: Image | None, new: Image | None
    ) -> None:
        for entry in entries(plan.descriptor, old, new):
            statements = plan.entries[entry.index_id]
            if entry.remove is not None:
                self._execute(statements.remove, statements.remove_bindings(entry.remove, key))
            if entry.put is not None:
                self._execute(statements.put, statements.put_bindings(entry.put, key))

    def _unprepared(self, plan: WritePlan, elements: Iterable[int]) -> StoreCorrupted:
        return StoreCorrupted(
            f"the log carries elements {sorted(elements)} of table {plan.descriptor.name!r},"
            f" which the store {self.path} was not prepared for"
        )

    def _contradiction(self, plan: WritePlan, change: RowChange) -> StoreCorrupted:
        """Return the error of a row that is not the one the log's change was decided on."""
        found = self._execute(plan.get, change.key).fetchall()
        there = plan.row(found[0]).genids if found else "no row"
        return StoreCorrupted(
            f"{change.kind.name} of {change.key!r} in table {plan.descriptor.name!r} was decided"
            f" on genids {dict(change.before)}, the store {self.path} has {there};"
            " remove the store and let the node take a snapshot",
            table=plan.descriptor.name,
            key=change.key,
        )

    def truncate(self, table_id: int, lsn: int) -> None:
        self._touch(table_id)
        self._look_aside = True
        self._ranges.truncated(table_id)
        set_aside(self._connection, table_id, lsn)
        self._counts.add(table_id, -self._counts.rows(table_id))
        for descriptor in self._tables.versions_in_use(table_id):
            make_physical(self._connection, descriptor)
        if self._past.keeps:
            self._past.emptied(table_id, lsn)

    def backfill(self, descriptor: Descriptor, backfill: Backfill) -> int:
        plan, element = self._plan(descriptor), descriptor.element(backfill.element_id)
        assert element is not None, f"version {descriptor.version} has no such element"
        if backfill.images:
            self._backfill_images(plan, backfill)
            return len(backfill.keys)
        if backfill.span is not None:
            self._ranges_touched = True
            return self._ranges.note(plan, element.element_id, backfill.span)
        if not isinstance(element, Column):
            return backfill_entries(
                self._connection, plan, plan.entries[element.element_id], backfill.keys
            )
        if element.missing is not None and element.missing.computed is not None:
            return backfill_computed(
                self._connection, plan, element, backfill.keys, self._change_entries
            )
        if element.element_id not in plan.indexed_ids:
            return backfill_column(self._connection, plan, element, backfill.keys)
        return backfill_indexed(
            self._connection, plan, element, backfill.keys, self._change_entries
        )

    def _backfill_images(self, plan: WritePlan, backfill: Backfill) -> None:
        unknown = set().union(*backfill.images) - plan.known
        if unknown:
            raise self._unprepared(plan, unknown)
        other = backfill_images(self._connection, plan, backfill, self._change_entries)
        if other is not None:
            position = backfill.keys.index(other)
            genids = backfill.genids[position]
            raise self._contradiction(
                plan,
                RowChange(_BACKFILL, backfill.table_id, backfill.version, other, None, genids, ()),
            )

    def read_copy(
        self, source: Descriptor, target: Descriptor, after: Key, rows_max: int
    ) -> CopyRange:
        return self._copying(source, target).read(self._connection, after, rows_max)

    def copy_rows(
        self, source: Descriptor, target: Descriptor, backfill: Backfill, lsn: int
    ) -> int:
        span, said = backfill.span, backfill.copied
        assert span is not None, "rows are copied by ranges"
        assert said is not None, "the log says which rows a copy has"
        rows, digest = self._copying(source, target).put(self._connection, span, lsn)
        if (rows, digest) != (len(said.rows), said.digest):
            raise StoreCorrupted(
                f"rows of table {source.name!r} are copied under another key: the log has"
                f" {len(said.rows)} of them behind {span.after!r:.200}, the store {self.path} has"
                f" {rows}, or others; remove the store and let the node take a snapshot",
                table=source.name,
            )
        if rows:
            self._counts.add(target.table_id, rows)
            if self._past.keeps:
                self._past.written[target.table_id] = lsn
        return rows

    def _copying(self, source: Descriptor, target: Descriptor) -> RowCopying:
        index = find_copying_index(source, target)
        assert index is not None, "only what has an index over the key is copied by ranges"
        plan = self._plan(source)
        return RowCopying(plan, self._plan(target), plan.entries[index.element_id])

    def ranges_waiting(self, table_id: int | None = None) -> int:
        return self._ranges.waits if table_id is None else self._ranges.waits_of(table_id)

    def next_range(self) -> RangeWaiting | None:
        return self._ranges.first

    def merge_entries(self, descriptor: Descriptor, rows_max: int | None = None) -> Merged:
        assert not self._open, "a transaction is open"
        return self._ranges.merge(self._plan(descriptor), rows_max)

    def range_failure(self, table_id: int, element_id: int) -> tuple[Key, Refused] | None:
        return self._ranges.failure(table_id, element_id)

    def end_ranges(
        self, descriptor: Descriptor, element_id: int, lsn: int, *, complete: bool
    ) -> None:
        assert self._open, "no transaction is open"
        table_id = descriptor.table_id
        self._ranges_touched = True
        self._ranges.end(table_id, element_id, self._plan(descriptor) if complete else None)
        if not complete and element_id not in descriptor.by_id:
            self._touch(table_id)
            self._look_aside = True
            set_entries_aside(self._connection, table_id, element_id, lsn)
            make_physical(self._connection, descriptor)

    # ------------------------------------------------------------ outcomes

    def outcome(self, request_id: bytes) -> Outcome | None:
        return self._outcomes.get(request_id)

    def put_outcome(self, request_id: bytes, outcome: Outcome) -> None:
        self._outcomes.put(request_id, outcome)

    def put_untimely(self, request_id: bytes, outcome: Outcome) -> None:
        self._outcomes.put_untimely(request_id, outcome)

    def oldest_outcomes(self, count: int) -> Sequence[Outcome]:
        return self._outcomes.oldest(count)

    def oldest_id(self) -> bytes | None:
        return self._outcomes.least()

    def collect_outcomes(self, id_horizon_us: int, rows_max: int) -> int:
        return self._outcomes.collect(id_horizon_us, rows_max)

    def collect_decided_outcomes(self, decided_before_us: int, rows_max: int) -> int:
        return self._outcomes.collect_decided(decided_before_us, rows_max)

    # ------------------------------------------------------------ rows of the past

    def put_commit_times(self, times: Sequence[tuple[int, int]]) -> None:
        if self._past.keeps:
            self._past.put_times(times)

    def reset_commit_times(self, lsn: int, time_us: int) -> None:
        if self._past.keeps:
            self._past.reset_times(lsn, time_us)

    def collect_rows(self, before_us: int, newest_lsn: int) -> None:
        if self._past.keeps and self._past.collect(before_us, newest_lsn):
            self._look_again = True

    def kept_from(self, table_id: int) -> int | None:
        floor = kept_from(self._connection)
        return None if floor is None else max(floor, table_kept_from(self._connection, table_id))

    def last_write(self, table_id: int) -> int:
        return self._past.last_write(table_id)

    def written_in(
        self, descriptor: Descriptor, index_id: int, part: ReadRange, lsn: int, looks: RangeLooks
    ) -> Key | None:
        return written_in(self._connection, self._plan(descriptor), index_id, part, lsn, looks)

    def gone_from(
        self, descriptor: Descriptor, index_id: int, part: ReadRange, lsn: int, looks: RangeLooks
    ) -> Key | None:
        return gone_from(self._connection, self._plan(descriptor), index_id, part, lsn, looks)

    # ------------------------------------------------------------ readers and checks

    def open_snapshot(self, *, brief: bool = False) -> SqliteSnapshot:
        """Open a read snapshot of what is committed now; any thread may call this. `brief` is as of
        SqliteSnapshot."""
        return self._readers.open_snapshot(brief=brief)

    def open_budget(self) -> Budget:
        """Return a transaction's budget, which is the caller's to close."""
        return self.memory.open_budget()

    def row_at_once(
        self, table: str, key_of: Callable[[Descriptor], Key]
    ) -> tuple[Descriptor, tuple[Any, ...] | None] | None:
        """Return a table's newest version and one of its rows, from any thread; see Readers."""
        return self._readers.row_at_once(table, key_of)

    def check(
        self,
        subject: bytes,
        table_ids: Sequence[int],
        elements: Sequence[int],
        *,
        repairs_max: int = 0,
        part: CheckSlice | None = None,
    ) -> None:
        self._checker.start(subject, table_ids, elements, repairs_max, part)

    def give_way(self, *, beside_users: bool, gentle: bool) -> None:
        self._users.beside, self._users.gentle = beside_users, gentle
        self._users.thread_id = get_native_id()  # of whoever applies the log

    def tidy(self) -> None:
        if not self._open:
            self._checkpoints.tidy()
            self.measures.look()

    def repair(self, descriptor: Descriptor, subject: bytes, entries_max: int) -> tuple[int, bool]:
        assert self._open, "no transaction is open"
        plan = self._plan(descriptor)
        wrong = self._checker.repairs.take(subject, descriptor.table_id, entries_max)
        changed = sum(repair_entry(self._connection, plan, each) for each in wrong)
        return changed, len(wrong) == entries_max

    def checked(self) -> Sequence[CheckReport]:
        reports = self._checker.finished()
        if reports:
            self._checkpoints.released()
        return reports


def _stamps_of(plan: WritePlan, change: RowChange, stamp: int) -> tuple[int, ...]:
    """Return the genids of a new row, of every lock in order. Raises StoreCorrupted."""
    if change.locks == plan.locks:
        return (stamp,) * len(plan.locks)
    if change.carried and not change.locks:
        # It follows a row of another table, and has all of its genids.
        return tuple([change.carried[lock] for lock in plan.locks])
    raise StoreCorrupted(
        f"an insert sets the genids of every lock {plan.locks}, the log has {change.locks}"
    )
