"""Checks that run beside the apply loop, each on a snapshot opened when it was asked for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Thread
from time import monotonic_ns
from typing import Final, NamedTuple

import apsw

from leasehold.adapters.os.scheduling import take_short_turns
from leasehold.adapters.sqlite.access import sum_access
from leasehold.adapters.sqlite.catalog import read_newest_job
from leasehold.adapters.sqlite.checking.findings import FINDINGS_MAX, TableFindings
from leasehold.adapters.sqlite.checking.repair import Repairs
from leasehold.adapters.sqlite.checking.slice_check import SliceCheck
from leasehold.adapters.sqlite.checking.table_check import TableCheck
from leasehold.adapters.sqlite.checking.yielding import (
    CHECK_REST,
    STEPS_BETWEEN_LOOKS,
    GivesWay,
    Users,
)
from leasehold.adapters.sqlite.snapshot import Readers, SqliteSnapshot
from leasehold.adapters.sqlite.statement_memory import statement_memory
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import ALL_ROWS
from leasehold.catalog.job import job_from_wire
from leasehold.catalog.states import State
from leasehold.model.records.acks import ROLES_CHECKED, CheckReport
from leasehold.model.records.log import CheckSlice, LogPosition

# Each waiting check keeps a snapshot open, and with it the WAL from being reset.
CHECKS_PENDING_MAX: Final = 8
FILE_CACHE_MB: Final = 64


class _Check(NamedTuple):
    subject: bytes
    table_ids: tuple[int, ...]
    elements: tuple[int, ...]
    repairs_max: int
    part: CheckSlice | None
    snapshot: SqliteSnapshot


class Checker:
    """The one worker thread that takes checks in turn; it starts with the first one.

    Whatever goes wrong becomes a report with `error` set: a check that ends in silence would leave
    the master waiting for it.
    """

    def __init__(self, readers: Readers, users: Users) -> None:
        """Begin without a check; beside `users` they pause, those that run, too."""
        self._readers = readers
        self._users = users
        self.repairs = Repairs()
        self._waiting: SimpleQueue[_Check | None] = SimpleQueue()
        self._finished: deque[CheckReport] = deque()
        self._thread: Thread | None = None
        self._running: apsw.Connection | None = None
        self._closing = Event()

    def start(
        self,
        subject: bytes,
        table_ids: Sequence[int],
        elements: Sequence[int],
        repairs_max: int = 0,
        part: CheckSlice | None = None,
    ) -> None:
        """Open the snapshot now, check later. `table_ids` empty: every table."""
        snapshot = self._readers.open_snapshot(alone=part is not None)
        tables = tuple(table_ids) or tuple(d.table_id for d in snapshot.tables())
        if self._waiting.qsize() >= CHECKS_PENDING_MAX:
            words = f"{CHECKS_PENDING_MAX} checks are waiting already; ask again later"
            position = snapshot.position()
            snapshot.close()
            self._finished.extend(_failed(subject, table, position, words) for table in tables)
            return
        if self._thread is None:
            self._thread = Thread(target=self._work, name="store-check", daemon=True)
            self._thread.start()
        self._waiting.put(_Check(subject, tables, tuple(elements), repairs_max, part, snapshot))

    def finished(self) -> Sequence[CheckReport]:
        """Reports finished since the last call."""
        reports = []
        while self._finished:
            reports.append(self._finished.popleft())
        return reports

    def close(self) -> None:
        """Stop; a check that runs is interrupted and reports nothing any more."""
        if self._thread is None:
            return
        self._closing.set()
        self._waiting.put(None)
        while self._thread.is_alive():
            running = self._running
            if running is not None:
                running.interrupt()
            self._thread.join(timeout=0.05)

    def _work(self) -> None:
        take_short_turns()
        while (check := self._waiting.get()) is not None:
            connection = check.snapshot.connection
            try:
                self._running = connection
                connection.set_progress_handler(
                    GivesWay(self._users, self._closing, CHECK_REST), STEPS_BETWEEN_LOOKS
                )
                for table_id in check.table_ids:
                    if self._closing.is_set():
                        break
                    self._finished.append(_checked(check, table_id, self.repairs))
            finally:
                self._running = None
                connection.set_progress_handler(None)  # readers will have it
                check.snapshot.close()


def _checked(check: _Check, table_id: int, repairs: Repairs) -> CheckReport:
    began_ns = monotonic_ns()
    position = LogPosition()
    try:
        snapshot = check.snapshot
        position = snapshot.position()
        if table_id == ROLES_CHECKED:
            return _roles_checked(check, position)
        versions = snapshot.versions(table_id)
        if not versions:
            return _failed(check.subject, table_id, position, f"there is no table {table_id}")
        lowest, collected = snapshot.min_version(table_id), snapshot.collected(table_id)
        about = (snapshot.connection, versions, lowest, collected, position.lsn)
        until = None
        unmerged, parents = _unmerged(snapshot, versions[-1]), _parents(snapshot, versions[-1])
        if check.part is not None:
            sliced = SliceCheck(*about, check.part, unmerged, parents)
            found, until = sliced.run_slice(check.elements)
        else:
            made = TableCheck(
                *about, repairs_max=check.repairs_max, unmerged=unmerged, parents=parents
            )
            found = made.run(check.elements)
            if ALL_ROWS in check.elements:
                found = _with(found, _whole(snapshot, versions[-1].mirror, position.lsn))
        if check.repairs_max:
            repairs.remember(check.subject, table_id, found.wrong)
    except Exception as error:  # noqa: BLE001 - surfaces as the report's error
        return _failed(check.subject, table_id, position, f"{type(error).__name__}: {error}")
    return CheckReport(
        subject=check.subject,
        node="",
        incarnation=b"",
        offset=position.offset,
        lsn=position.lsn,
        table_id=table_id,
        version=versions[-1].version,
        rows=found.rows,
        entries=found.entries,
        checksum=found.checksum,
        findings_total=found.findings_total,
        findings=found.findings,
        took_ms=(monotonic_ns() - began_ns) // 1_000_000,
        rows_checksum=found.rows_checksum,
        until=until,
        code=found.code,
    )


def check_file(path: Path, told: Callable[[CheckReport], None]) -> None:
    """Check roles and every table of the file of a store that nobody writes, and tell each report;
    of whatever goes wrong with a table the report has the `error`."""
    readers = Readers(path, cache_mb=FILE_CACHE_MB, memory=statement_memory(None))
    try:
        with readers.open_snapshot() as snapshot:
            tables = (ROLES_CHECKED, *(table.table_id for table in snapshot.tables()))
            check = _Check(b"file", tables, (), 0, None, snapshot)
            for table_id in tables:
                told(_checked(check, table_id, Repairs()))
    finally:
        readers.close()


def _unmerged(snapshot: SqliteSnapshot, newest: Descriptor) -> frozenset[int]:
    """Return the indexes that a job fills by range as of the snapshot. ⚠ By what the log says: on
    each node at that position they are the same, however far each has merged."""
    if not any(index.state is State.WRITE_ONLY for index in newest.indexes):
        return frozenset()
    body = read_newest_job(snapshot.connection, newest.table_id)
    job = None if body is None else job_from_wire(body)
    return frozenset((job.element_id,) if job is not None and job.by_range else ())


def _parents(snapshot: SqliteSnapshot, newest: Descriptor) -> dict[int, str]:
    """Return what the tables that foreign keys of a table refer to are called, by their ids."""
    told = {key.parent: snapshot.versions(key.parent) for key in newest.foreign_keys}
    return {parent: versions[-1].name for parent, versions in told.items() if versions}


def _roles_checked(check: _Check, position: LogPosition) -> CheckReport:
    """Return the report on roles, memberships and privileges: there is nothing to be found in them
    but that another node's differ."""
    began_ns = monotonic_ns()
    count, checksum = sum_access(check.snapshot.connection)
    took_ms = (monotonic_ns() - began_ns) // 1_000_000
    told = _failed(check.subject, ROLES_CHECKED, position, "")
    return told._replace(rows=count, checksum=checksum, took_ms=took_ms)


def _whole(snapshot: SqliteSnapshot, table_id: int, lsn: int) -> TableFindings:
    """Check a table that is about to take the place of the one that is asked about."""
    about = snapshot.versions(table_id), snapshot.min_version(table_id)
    return TableCheck(snapshot.connection, *about, snapshot.collected(table_id), lsn).run()


def _with(found: TableFindings, other: TableFindings) -> TableFindings:
    """Join two findings to one verdict on both tables."""
    return found._replace(
        entries={**found.entries, **other.entries},
        checksum=blake2b(found.checksum + other.checksum, digest_size=16).digest(),
        findings_total=found.findings_total + other.findings_total,
        findings=(*found.findings, *other.findings)[:FINDINGS_MAX],
        code=found.code or other.code,
    )


def _failed(subject: bytes, table_id: int, position: LogPosition, words: str) -> CheckReport:
    return CheckReport(
        subject, "", b"", position.offset, position.lsn, table_id, 0, 0, {}, b"", 0, (), 0, words
    )
