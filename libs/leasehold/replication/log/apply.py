"""Applies a record that counts to a node's store and catalog: alike on every node (L6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.job import Job, Status
from leasehold.catalog.part import Part
from leasehold.model.keys import Key
from leasehold.model.ports import StoreWriter
from leasehold.model.records.log import (
    AccessWrite,
    Backfill,
    CatalogWrite,
    ChangeKind,
    ChunkDecided,
    CommentWrite,
    Commit,
    Decisions,
    DescriptorWrite,
    EnumWrite,
    FindingsDecided,
    JobForgotten,
    JobWrite,
    LedgerRun,
    LogPosition,
    MembershipWrite,
    MinVersion,
    NamespaceWrite,
    RoleWrite,
    RowChange,
    TableForgotten,
    TableTruncated,
    ViewWrite,
)
from leasehold.replication.log.retention import HistorySettings, collect_history, times_of
from leasehold.replication.outcomes import (
    OutcomeSettings,
    is_untimely,
    outcome_of_commit,
    outcome_of_refusal,
)

TOGETHER_MIN: Final = 4
TOGETHER_MAX: Final = 100
"""Of inserts that are put together: between two of them a master looks at the clock."""
_INSERT: Final = ChangeKind.INSERT
COLLECT_EVERY_RECORDS: Final = 64
COLLECT_EVERY_COMMITS: Final = 256
"""One by one it would cost half of what a small record's commit does."""


class BackfillWriter(Protocol):
    """What applies backfills to a store, at once or a little later."""

    def backfill(self, descriptor: Any, backfill: Backfill) -> int: ...
    def copy_rows(self, source: Any, target: Any, backfill: Backfill, lsn: int) -> int: ...


def apply_rows(commit: Commit, lsn: int, catalog: Catalog, store: StoreWriter) -> None:
    """Apply rows and fills of one commit, each under the version it was made under (T0)."""
    part: Part = store.part
    for write in commit.catalog:
        if isinstance(write, TableTruncated) and part.stores(write.table_id):
            store.truncate(write.table_id, lsn)

    def is_here(change: RowChange) -> bool:
        return store.row(catalog.version(change.table_id, change.version), change.key) is not None

    seen = enumerate(commit.changes) if part.is_whole else part.seen(commit, is_here)
    end = 0
    for position, change in seen:
        if position < end:
            continue
        if part.is_whole:
            end = end_of_inserts(commit.changes, position)
            if end > position:
                descriptor = catalog.version(change.table_id, change.version)
                store.insert(descriptor, commit.changes[position:end], lsn, position)
                continue
        descriptor = catalog.version(change.table_id, change.version)
        store.change(descriptor, change, lsn, position, None)
        if change.kind is ChangeKind.DELETE and part.equal(change.table_id) is not None:
            store.taken_out.add((change.table_id, change.key))
    for backfill in commit.backfills:
        descriptor = catalog.version(backfill.table_id, backfill.version)
        held: Backfill | None = backfill
        if not part.is_whole:
            indexes = [index.element_id for index in descriptor.indexes]

            def has_row(key: Key, descriptor: Descriptor = descriptor) -> bool:
                return store.row(descriptor, key) is not None

            held = part.backfill(backfill, indexes, has_row)
        if held is not None:
            apply_backfill(held, lsn, catalog, store)


def end_of_inserts(changes: Sequence[RowChange], start: int) -> int:
    """Return where the inserts end that stand from `start` on in one version of a table, of which
    so many are put together; `start` where there are none."""
    kind, table_id, version = changes[start][:3]
    end = start
    if kind is _INSERT:
        for kind, table, under, _, _, _, _, _ in changes[start : start + TOGETHER_MAX]:
            if kind is not _INSERT or table != table_id or under != version:
                break
            end += 1
    return end if end - start >= TOGETHER_MIN else start


def apply_backfill(backfill: Backfill, lsn: int, catalog: Catalog, store: BackfillWriter) -> None:
    """Apply what the commit `lsn` fills, under the version it was decided under."""
    descriptor = catalog.version(backfill.table_id, backfill.version)
    if backfill.copied is None:
        store.backfill(descriptor, backfill)
        return
    # Both tables move together, so that the same number is the same step.
    source = catalog.version(descriptor.mirror, backfill.version)
    store.copy_rows(source, descriptor, backfill, lsn)


def apply_catalog(commit: Commit, lsn: int, catalog: Catalog, store: StoreWriter) -> bool:
    """Apply catalog writes of one commit to the catalog and the store; return whether there are
    any."""
    for write in commit.catalog:
        before = catalog.jobs.get(write.job_id) if isinstance(write, JobWrite) else None
        catalog.apply(write, commit.commit_us, lsn)
        if before is not None and before.by_range and not before.copies_rows:
            _end_ranges(before, lsn, catalog, store)
        _keep(write, catalog, store)
    return bool(commit.catalog)


def _keep(write: CatalogWrite, catalog: Catalog, store: StoreWriter) -> None:
    match write:
        case DescriptorWrite(table_id=table_id, version=version):
            descriptor = catalog.version(table_id, version)
            part: Part = store.part
            held = part.followed_by(descriptor)
            if held is not part:
                store.put_part(held)
            if held.stores(table_id):
                store.prepare(descriptor)
            store.put_descriptor(table_id, version, descriptor.to_wire())
            if descriptor.former:  # see Catalog.apply
                for each in catalog.access.writes_of(table_id):
                    store.put_access(each, catalog.access.next_role_id)
        case MinVersion(table_id=table_id, version=version):
            store.put_min_version(table_id, version)
        case JobWrite(job_id=job_id) | ChunkDecided(job_id=job_id) | FindingsDecided(job_id=job_id):
            store.put_job(job_id, catalog.jobs[job_id].to_wire())
        case TableForgotten(table_id=table_id):
            store.forget_table(table_id)
        case JobForgotten(job_id=job_id):
            store.forget_job(job_id)
        case LedgerRun(run_id=run_id):
            store.put_ledger_run(run_id)
        case (
            RoleWrite()
            | MembershipWrite()
            | AccessWrite()
            | ViewWrite()
            | CommentWrite()
            | EnumWrite()
            | NamespaceWrite()
        ):
            store.put_access(write, catalog.access.next_role_id)


def _end_ranges(before: Job, lsn: int, catalog: Catalog, store: StoreWriter) -> None:
    """End what waits of a backfill by range, if the job, as it was `before`, is no more at it. ⚠
    From the record on by which it leaves a run stores at equal positions are equal again, and
    whoever looks there sees every entry and pair; of one that turns back no entry is left, however
    many each node has merged. Pairs of a column stay as far as each node was, and nobody reads or
    compares them; they go with the column."""
    if not store.part.stores(before.table_id):
        return
    job = catalog.jobs[before.job_id]
    if not job.by_range or job.run != before.run:
        complete = job.status in (Status.RUNNING, Status.PAUSED)
        newest = catalog.newest(job.table_id)
        store.end_ranges(newest, before.element_id, lsn, complete=complete)


def apply_record(
    record: Decisions,
    after: LogPosition,
    catalog: Catalog,
    store: StoreWriter,
    settings: OutcomeSettings,
    history: HistorySettings,
) -> bool:
    """Apply a whole Decisions record, inside the store's open transaction; `after` is the position
    behind it. The caller commits with that position. Return whether the catalog has changed."""
    lsn = record.first_lsn
    changed = False
    # Whoever asks again asks a master, and a partial replica is never one.
    remembers: bool = store.part.is_whole
    for commit in record.commits:
        if commit.catalog:
            # Its own tables first: rows of the same commit may be in them.
            changed |= apply_catalog(commit, lsn, catalog, store)
        apply_rows(commit, lsn, catalog, store)
        if commit.request_id and remembers:
            store.put_outcome(commit.request_id, outcome_of_commit(commit, lsn))
        lsn += 1
    for refusal in record.refusals if remembers else ():
        if refusal.request_id:
            outcome = outcome_of_refusal(refusal)
            # (Of an older master all are forgotten alike.)
            if record.id_horizon_us and is_untimely(refusal):
                store.put_untimely(refusal.request_id, outcome)
            else:
                store.put_outcome(refusal.request_id, outcome)
    keep_past(record, after, catalog, store, settings, history)
    return changed


def keep_past(
    record: Decisions,
    after: LogPosition,
    catalog: Catalog,
    store: StoreWriter,
    settings: OutcomeSettings,
    history: HistorySettings,
) -> None:
    """Keep when a record's commits were made; forget outcomes by the id horizon (L5), descriptors
    and rows by commit time, at the same log position on every node."""
    commits = record.commits
    if record.reset_us:
        store.reset_commit_times(record.first_lsn - 1, record.reset_us)
    if commits and history.rows_ms:
        store.put_commit_times(times_of(record.first_lsn, commits))
    at_times = after.sequence % COLLECT_EVERY_RECORDS == 0 and after.commit_us > 0
    if after.id_horizon_us:
        # Twice as many as came since, so that there can't come more than go.
        passed = after.lsn // COLLECT_EVERY_COMMITS - (
            (record.first_lsn - 1) // COLLECT_EVERY_COMMITS
        )
        most = 2 * (COLLECT_EVERY_COMMITS * passed + len(record.refusals))
        if at_times:
            most += settings.collected_per_record_max
        if most:
            store.collect_outcomes(after.id_horizon_us, most)
    elif at_times:
        # A record of an older master, whose ids were judged accordingly: an id may have been ahead
        # of the clock when it was decided, and grows old so much later.
        kept_ms = settings.horizon_ms + settings.ahead_ms_max
        store.collect_decided_outcomes(
            after.commit_us - kept_ms * 1000, settings.collected_per_record_max
        )
    if at_times:
        collect_history(after.commit_us, after.lsn, catalog, store, history)
