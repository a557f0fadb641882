"""Backfills by range: entries of an index, or values of a column, for all rows between two keys, at
the store's own pace.

What stands in the log is the range alone. A connection of its own reads the rows in a snapshot
behind that position and writes their entries, sorted, into a file beside the store: a *run*. The
writer merges it in small commits between records. So an index is written from its first page to
its last, once for each run, whatever order rows lie in.

⚠ A run is old when it is merged. Its entry of a row is put only where the row's last write is the
one that the run has read: who has written it since was at write-only or later, and has put the
entry himself. So at any moment each entry is of a row as it is, and no row that a merge has passed
lacks one. Which rows may have been written since, the writer knows: only those are looked at, since
to find a row takes longer than to put its entry. Nothing of a run is kept over a restart: the range
is begun anew, and puts what is missing.

Values of a column that follows others need no run: they lie in the rows, and are put from them in
the order of keys, by statements for as many rows as take some ms. What is left of the range is kept
with what was put.
"""

# ruff: noqa: S608 - statement text comes from integer ids alone, values are bound

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Thread
from time import monotonic_ns, thread_time_ns
from typing import Any, Final, NamedTuple

import apsw
import msgpack

from leasehold.adapters.os.scheduling import take_short_turns
from leasehold.adapters.sqlite.checking.yielding import (
    BACKFILL_REST,
    STEPS_BETWEEN_LOOKS,
    GivesWay,
    ProcessorWaits,
    Users,
    pause_by_need_ns,
    pause_ns,
    processors_wanted,
)
from leasehold.adapters.sqlite.column_backfill import ColumnBackfill
from leasehold.adapters.sqlite.layout import BUSY_TIMEOUT_MS
from leasehold.adapters.sqlite.plan import EntriesPlan, WritePlan
from leasehold.catalog.elements import Column
from leasehold.model.errors import Refused
from leasehold.model.keys import Key
from leasehold.model.ports import Merged, RangeWaiting
from leasehold.model.records.log import KeySpan
from leasehold.settings.private_files import FILE_MODE

WAITING: Final = """
CREATE TABLE IF NOT EXISTS range_backfills (
    number INTEGER PRIMARY KEY AUTOINCREMENT, table_id INTEGER NOT NULL, version INTEGER NOT NULL,
    element_id INTEGER NOT NULL, span BLOB NOT NULL)
"""
"""Ranges that stand in the log and are not merged, in the order of the log."""

DIRECT_ROWS_MAX: Final = 2_000
"""Of a range that is put at its very position: some ms, less than a run of its own takes."""
PIECE_NS: Final = 15_000_000
PIECE_BESIDE_NS: Final = 2_000_000
"""Of a merge between two records, while users write: less than what each of them waits anyway.
Processor time: where a processor is waited for, shorter pieces would wait as long, each of them."""
PAGE_NS: Final = 10_000
"""Of a page that is written at the commit, about: copied, and its checksum computed."""
PIECE_TAKES_MAX: Final = 4
"""How often as long a piece may take by the clock: a disk may be slow, too."""
PIECE_ROWS_FIRST: Final = 500
PIECE_ROWS_MIN: Final = 100
PIECE_ROWS_MAX: Final = 20_000
WRITTEN_MAX: Final = 100_000
"""Keys that are remembered; with more, every row is looked at."""
SORT_PAUSE_NS: Final = 10_000_000
"""Until it is looked again whether a run is sorted."""
SORTER_CACHE_MB: Final = 64
NOT_YET: Final = Merged(0, SORT_PAUSE_NS)


class _Waiting(NamedTuple):
    number: int
    table_id: int
    version: int
    element_id: int
    span: KeySpan


class _Work(NamedTuple):
    """What the sorter does for a range: statements that make the run, and what they are bound."""

    of: _Waiting
    path: Path
    make: str
    select: str
    bindings: Key


class RangeBackfills:
    """The ranges that wait, as the writer drives them. Changed inside its transactions; `undone`
    after each that ended otherwise than by a commit."""

    def __init__(
        self, connection: apsw.Connection, path: Path, direct_rows_max: int, users: Users
    ) -> None:
        self._connection = connection
        self._direct_rows_max = direct_rows_max
        self._users = users
        self._sorter = _Sorter(path, users)
        self._columns = ColumnBackfill(connection)
        self._failures: dict[tuple[int, int], tuple[Key, Refused]] = {}  # of what is committed
        self._rows = PIECE_ROWS_FIRST  # of the last piece
        self._row_ns = 0.0  # what a row of it took; 0: not known yet
        self._stated_ns = 0, 0  # when its statements had ended, by the clock, and of the processor
        self._attached: _Waiting | None = None  # whose run this connection has
        self._merged = 0  # entries of that run
        self._waits: ProcessorWaits | None = None
        self._since = 0  # from that one of `_written` on keys are not in the table of them
        self._written: dict[int, list[Key] | None] = {}
        """Of tables of which a run is made or merged: keys that were written since it was begun,
        or more than those; None: any may have been."""
        self._waiting: list[_Waiting] = []
        self.look()

    def close(self) -> None:
        self._sorter.close()

    def look(self) -> None:
        """Read what waits."""
        found: list[Any] = self._connection.execute(
            "SELECT number, table_id, version, element_id, span FROM range_backfills"
            " ORDER BY number"
        ).fetchall()
        self._waiting = [
            _Waiting(number, table_id, version, element_id, _span_from(span))
            for number, table_id, version, element_id, span in found
        ]
        self._sorter.forget(set(self._waiting))

    def undone(self) -> None:
        """Read what waits, since a transaction was undone: what it has met was never there. ⚠ Nor
        are keys that it has put into the table of those that were written; what pieces before it
        have met is."""
        self._columns.failures = dict(self._failures)
        self._since = 0
        self.look()

    # ------------------------------------------------------------ inside a transaction

    def written(self, table_id: int, key: Key) -> None:
        """Take that a row is written, whatever becomes of the transaction."""
        keys = self._written.get(table_id)
        if keys is not None:
            keys.append(key)
            if len(keys) > WRITTEN_MAX:
                self._written[table_id] = None

    def truncated(self, table_id: int) -> None:
        """Take that all rows are written."""
        if table_id in self._written:
            self._written[table_id] = None

    def note(self, plan: WritePlan, element_id: int, span: KeySpan) -> int:
        """Put what is missing of a range that has few rows; note any other. Return how much was
        put."""
        where, bindings = _between(plan, span)
        counted = f"SELECT count(*) FROM (SELECT 1 FROM {plan.name} AS t{where} LIMIT ?)"
        few = (*bindings, self._direct_rows_max + 1)
        if self._connection.execute(counted, few).get <= self._direct_rows_max:
            return self._put(plan, element_id, span)
        descriptor = plan.descriptor
        self._connection.execute(
            "INSERT INTO range_backfills (table_id, version, element_id, span) VALUES (?, ?, ?, ?)",
            (
                descriptor.table_id,
                descriptor.version,
                element_id,
                _packed(span),
            ),
        )
        self.look()
        return 0

    def failure(self, table_id: int, element_id: int) -> tuple[Key, Refused] | None:
        """Return a row that had no value when its range was filled, and why."""
        return self._columns.failures.get((table_id, element_id))

    def end(self, table_id: int, element_id: int, plan: WritePlan | None) -> None:
        """End what waits of an index or a column: all that is missing is put now, or, without
        `plan`, nothing."""
        wanted = (table_id, element_id)
        for each in [w for w in self._waiting if (w.table_id, w.element_id) == wanted]:
            if plan is not None:
                if self._attached == each:
                    entries = plan.entries[element_id]
                    self._keep_written(table_id, entries)
                    self._put_of_run(plan, entries, self._last())
                else:
                    self._put(plan, element_id, each.span)
            self._forget(each)
            self.look()
        self._columns.failures.pop(wanted, None)

    def _forget(self, ended: _Waiting) -> None:
        self._connection.execute("DELETE FROM range_backfills WHERE number = ?", (ended.number,))

    def _put(self, plan: WritePlan, element_id: int, span: KeySpan) -> int:
        where, bindings = _between(plan, span)
        column = plan.descriptor.by_id.get(element_id)
        if column is not None:
            return self._columns.put(plan, column, where, bindings)
        entries = plan.entries[element_id]
        order = ", ".join(str(n + 1) for n in range(len(entries.columns)))
        self._connection.execute(
            f"INSERT OR IGNORE INTO {entries.name} SELECT {', '.join(_shown(entries))}"
            f" FROM {plan.name} AS t{where} ORDER BY {order}",
            bindings,
        )
        return self._connection.changes()

    # ------------------------------------------------------------ outside a transaction

    @property
    def waits(self) -> int:
        return len(self._waiting)

    def waits_of(self, table_id: int) -> int:
        return sum(waiting.table_id == table_id for waiting in self._waiting)

    @property
    def first(self) -> RangeWaiting | None:
        """The range that is merged next."""
        if not self._waiting:
            self._let_go()
            return None
        _, table_id, version, element_id, _ = self._waiting[0]
        return RangeWaiting(table_id, version, element_id)

    def merge(self, plan: WritePlan, rows_max: int | None = None) -> Merged:
        """Go on with the first range, in one commit of some ms, and of at most so many rows."""
        first = self._waiting[0]
        column = plan.descriptor.by_id.get(first.element_id)
        if column is not None:
            self._let_go()
            return self._paced(lambda rows: self._put_piece(plan, column, first, rows), rows_max)
        entries = plan.entries[first.element_id]
        if self._attached != first:
            self._let_go()
            self._written.setdefault(first.table_id, [])  # ⚠ before any snapshot of a run
            path = self._sorter.take(first)
            if path is None:
                self._sorter.begin([self._work(plan, entries, first)])
                return NOT_YET
            self._connection.execute("ATTACH ? AS run", (str(path),))
            self._attached, self._merged = first, 0
            self._make_written(plan)
            # The next one meanwhile.
            then = [w for w in self._waiting[1:2] if w[1:4] == first[1:4]]
            self._sorter.begin([self._work(plan, entries, each) for each in then])
        return self._paced(lambda rows: self._merge_piece(plan, entries, first, rows), rows_max)

    def _paced(self, put: Callable[[int], int], rows_max: int | None) -> Merged:
        """Put a piece of about as many rows as take the time that there is for it. `put` returns
        how many it has passed.

        ⚠ By what its statements take and the pages that they change, not by the commit: that takes
        as long for one row. Pieces would shrink to the least there is wherever a commit alone is
        longer than a piece may be, and take no less.
        """
        beside, gentle = self._users.beside, self._users.gentle
        wanted_ns = PIECE_BESIDE_NS // (2 if gentle else 1) if beside else PIECE_NS
        if self._row_ns:
            # ⚠ By what is wanted now: the last piece may be of a time when nobody was beside it.
            fit = min(int(wanted_ns / self._row_ns), 2 * self._rows)
            self._rows = min(PIECE_ROWS_MAX, max(PIECE_ROWS_MIN, fit))
        rows = self._rows if rows_max is None else min(self._rows, rows_max)
        pages = self._pages_written()
        begun_ns, begun_work_ns = monotonic_ns(), thread_time_ns()
        passed = put(rows)
        took_ns, worked_ns = monotonic_ns() - begun_ns, thread_time_ns() - begun_work_ns
        pages = self._pages_written() - pages
        stated_ns, stated_work_ns = self._stated_ns
        of_rows_ns = max(stated_work_ns - begun_work_ns, (stated_ns - begun_ns) // PIECE_TAKES_MAX)
        self._row_ns = max(1, of_rows_ns + pages * PAGE_NS) / rows
        if not beside:
            return Merged(passed, 0)
        waited_ns = self._waits_of_users_ns()
        if waited_ns is not None:
            return Merged(
                passed, pause_by_need_ns(worked_ns, waited_ns, BACKFILL_REST, gentle=gentle)
            )
        return Merged(passed, pause_ns(worked_ns, took_ns, processors_wanted(), gentle=gentle))

    def _pages_written(self) -> int:
        """Return how many pages this connection's commits have written so far."""
        return self._connection.status(apsw.SQLITE_DBSTATUS_CACHE_WRITE)[0]

    def _waits_of_users_ns(self) -> int | None:
        """Return for how long the thread that applies the log, which is this one, has waited for a
        processor since the piece before; None where that is not told."""
        if self._waits is None:
            if not self._users.thread_id:
                return None
            self._waits = ProcessorWaits(self._users.thread_id)
        return self._waits.take_ns()

    def _merge_piece(
        self, plan: WritePlan, entries: EntriesPlan, first: _Waiting, rows: int
    ) -> int:
        """Put the next entries of the run; count them."""
        last = self._last()
        until = min(last, self._merged + rows)
        self._keep_written(first.table_id, entries)
        with self._connection:
            self._put_of_run(plan, entries, until)
            if until == last:
                self._forget(first)
            self._stated_ns = monotonic_ns(), thread_time_ns()
        passed = until - self._merged
        self._merged = until  # ⚠ only now: what is rolled back was never merged
        if until == last:
            self.look()
            self._let_go()
        return passed

    def _put_piece(self, plan: WritePlan, column: Column, first: _Waiting, rows: int) -> int:
        """Put the values of the next rows, and keep where the ones behind them begin. Return about
        how many those are."""
        where, bindings = _between(plan, first.span)
        keys = ", ".join(f"t.{name}" for name in plan.key_names)
        found: list[Key] = self._connection.execute(
            f"SELECT {keys} FROM {plan.name} AS t{where} ORDER BY {keys} LIMIT 1 OFFSET ?",
            (*bindings, rows - 1),
        ).fetchall()
        piece = first.span if not found else first.span._replace(through=found[0])
        with self._connection:
            put = self._put(plan, column.element_id, piece)
            if found:
                left = first.span._replace(after=found[0])
                self._connection.execute(
                    "UPDATE range_backfills SET span = ? WHERE number = ?",
                    (_packed(left), first.number),
                )
            else:
                self._forget(first)
            self._stated_ns = monotonic_ns(), thread_time_ns()
        self._failures = dict(self._columns.failures)
        self.look()
        return rows if found else put

    def _last(self) -> int:
        """Return how many entries the run has."""
        last: int = self._connection.execute("SELECT ifnull(max(n), 0) FROM run.run").get
        return last

    def _make_written(self, plan: WritePlan) -> None:
        """Begin a table of the keys that were written."""
        keys = ", ".join(f"p{n}" for n in range(len(plan.key_names)))
        self._connection.execute("DROP TABLE IF EXISTS temp.written")
        self._connection.execute(
            f"CREATE TABLE temp.written ({keys}, PRIMARY KEY ({keys})) WITHOUT ROWID"
        )
        self._since = 0

    def _keep_written(self, table_id: int, entries: EntriesPlan) -> None:
        keys = self._written[table_id]
        if keys is not None and len(keys) > self._since:
            holes = ", ".join("?" * len(entries.primary))
            self._connection.executemany(
                f"INSERT OR IGNORE INTO temp.written VALUES ({holes})", keys[self._since :]
            )
            self._since = len(keys)

    def _put_of_run(self, plan: WritePlan, entries: EntriesPlan, until: int) -> None:
        """Put the run's entries up to number `until`. ⚠ Of rows that may have been written since,
        only where they were not."""
        same = [f"t.{k} = r.{p}" for k, p in zip(plan.key_names, entries.primary, strict=True)]
        shown = ", ".join(f"r.{column}" for column in _columns(entries))
        put = f"INSERT OR IGNORE INTO {entries.name} SELECT {shown} FROM run.run AS r"
        these = " WHERE r.n > ? AND r.n <= ?"
        as_read = f" CROSS JOIN {plan.name} AS t ON {' AND '.join(same)} AND t.lsn = r.lsn"
        bound = (self._merged, until)
        if self._written[plan.descriptor.table_id] is None:
            self._connection.execute(f"{put}{as_read}{these} ORDER BY r.n", bound)
            return
        # ⚠ Not `(…) NOT IN temp.written`: of a key of several columns SQLite then looks at each one
        # that was written, for a NULL among them.
        these_keys = " AND ".join(f"w.p{n} = r.{p}" for n, p in enumerate(entries.primary))
        listed = f"EXISTS (SELECT 1 FROM temp.written AS w WHERE {these_keys})"
        self._connection.execute(f"{put}{these} AND NOT {listed} ORDER BY r.n", bound)
        self._connection.execute(f"{put}{as_read}{these} AND {listed}", bound)

    def _work(self, plan: WritePlan, entries: EntriesPlan, of: _Waiting) -> _Work:
        where, bindings = _between(plan, of.span)
        order = ", ".join(str(n + 2) for n in range(len(entries.columns)))
        make = f"CREATE TABLE run (n INTEGER PRIMARY KEY, {', '.join(_columns(entries))}, lsn)"
        select = (
            f"INSERT INTO run SELECT NULL, {', '.join(_shown(entries))}, t.lsn"
            f" FROM {plan.name} AS t{where} ORDER BY {order}"
        )
        return _Work(of, self._sorter.path_of(of.number), make, select, bindings)

    def _let_go(self) -> None:
        """Give the run back that this connection has. ⚠ Only here, where no transaction may bring
        a range back, is it forgotten which keys were written."""
        tables = {waiting.table_id for waiting in self._waiting}
        self._written = {of: keys for of, keys in self._written.items() if of in tables}
        if self._attached is None:
            return
        self._connection.execute("DETACH run")
        self._sorter.remove(self._attached)
        self._attached = None


class _Sorter:
    """The thread that sorts runs aside, one after the other."""

    def __init__(self, store: Path, users: Users) -> None:
        self._store = store
        self._users = users
        self._closing = Event()
        self._asked: set[_Waiting] = set()
        self._works: SimpleQueue[_Work | None] = SimpleQueue()
        self._sorted: dict[_Waiting, Path | BaseException] = {}
        self._thread: Thread | None = None
        for left in store.parent.glob(f"{store.name}.run*"):  # of a process that is gone
            left.unlink(missing_ok=True)

    def path_of(self, number: int) -> Path:
        return self._store.with_name(f"{self._store.name}.run{int(number)}")

    def begin(self, works: list[_Work]) -> None:
        """Sort these, unless they are asked for already."""
        for work in works:
            if work.of in self._asked:
                continue
            self._asked.add(work.of)
            if self._thread is None:
                self._thread = Thread(target=self._run, name="store-sort", daemon=True)
                self._thread.start()
            self._works.put(work)

    def take(self, of: _Waiting) -> Path | None:
        """Return the run of a range once it is sorted. Raises what sorting it has raised."""
        found = self._sorted.pop(of, None)
        if isinstance(found, BaseException):
            self._asked.discard(of)
            raise found
        return found

    def forget(self, waiting: set[_Waiting]) -> None:
        """Remove runs of ranges that wait no more."""
        for of in [of for of in self._sorted if of not in waiting]:
            del self._sorted[of]
            self.remove(of)

    def remove(self, of: _Waiting) -> None:
        self._asked.discard(of)
        self.path_of(of.number).unlink(missing_ok=True)

    def close(self) -> None:
        self._closing.set()
        self._works.put(None)
        if self._thread is not None:
            self._thread.join()
        for left in self._store.parent.glob(f"{self._store.name}.run*"):
            left.unlink(missing_ok=True)

    def _run(self) -> None:
        take_short_turns()
        while (work := self._works.get()) is not None and not self._closing.is_set():
            try:
                self._sort(work)
            except BaseException as error:  # noqa: BLE001 - `take` raises it
                self._sorted[work.of] = error
            else:
                self._sorted[work.of] = work.path

    def _sort(self, work: _Work) -> None:
        with suppress(FileNotFoundError):
            work.path.unlink()
        os.close(os.open(work.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE))
        connection = apsw.Connection(str(work.path), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            connection.set_busy_timeout(BUSY_TIMEOUT_MS)
            # Of no use after a crash, so that nothing of it needs to be safe.
            connection.execute("PRAGMA journal_mode = OFF")
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute(f"PRAGMA cache_size = -{SORTER_CACHE_MB * 1024}")
            connection.execute("ATTACH ? AS store", (str(self._store),))
            connection.set_progress_handler(
                GivesWay(self._users, self._closing, BACKFILL_REST), STEPS_BETWEEN_LOOKS
            )
            connection.execute(work.make)
            connection.execute(work.select, work.bindings)
        finally:
            connection.close()


def _columns(entries: EntriesPlan) -> tuple[str, ...]:
    """Columns of an entry, as its table has them."""
    return (*entries.columns, *entries.included)


def _shown(entries: EntriesPlan) -> tuple[str, ...]:
    """What they are of a row `t`."""
    assert not entries.held, "a computed index is not filled by range"
    return (*entries.from_row, *entries.primary_of_row, *entries.included_of_row)


def _between(plan: WritePlan, span: KeySpan) -> tuple[str, Key]:
    """Return the condition on a row `t` in the range, and what it is bound."""
    keys = ", ".join(f"t.{name}" for name in plan.key_names)
    holes = ", ".join("?" * len(plan.key_names))
    parts = []
    if span.after:
        parts.append(f"({keys}) > ({holes})")
    if span.through:
        parts.append(f"({keys}) <= ({holes})")
    return f" WHERE {' AND '.join(parts)}" if parts else "", (*span.after, *span.through)


def _packed(span: KeySpan) -> bytes:
    packed: bytes = msgpack.packb([list(span.after), list(span.through)])
    return packed


def _span_from(data: bytes) -> KeySpan:
    after, through = msgpack.unpackb(data, use_list=False)
    return KeySpan(after, through)
