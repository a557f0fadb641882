"""Collects the past when it was kept long enough: at the same log position on every node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leasehold.catalog.catalog import Catalog
from leasehold.model.ports import StoreWriter
from leasehold.model.records.log import Commit

MS_PER_DAY = 24 * 3600 * 1000
DROPPED_MS = 7 * MS_PER_DAY
"""As long as a reader of a rows topic may be away and still see what was deleted
(TOMBSTONE_RETENTION_MS); and whoever looks for a job that failed over a weekend finds it."""
FORGET_EVERY_MS = 60_000
"""How often the master looks for what may be forgotten: it walks over the whole catalog."""


@dataclass(frozen=True, slots=True)
class HistorySettings:
    """How long after its replacement something can still be read AS OF a time at which it was
    current; by the commit times of the log, and the same for all nodes. `keep_ms`: a descriptor;
    `rows_ms`: a row. Two figures, because a row costs every write something; 0 rows_ms: no rows of
    the past are kept, and nothing is written for them. `dropped_ms`: how long after it was dropped
    a table's rows topic is kept, and a job after its end; the master's alone, which says in the log
    what is forgotten."""

    keep_ms: int = MS_PER_DAY
    rows_ms: int = 60_000
    collected_per_record_max: int = 100
    dropped_ms: int = DROPPED_MS


def forgotten_before_us(commit_us: int, settings: HistorySettings) -> int:
    """Return the time, µs: tables that were dropped before it, and jobs that ended, are forgotten
    at `commit_us`. They are kept at least as long as the past can be read."""
    return commit_us - max(settings.dropped_ms, settings.keep_ms, settings.rows_ms) * 1_000


def times_of(first_lsn: int, commits: Sequence[Commit]) -> list[tuple[int, int]]:
    """Return (LSN, commit time) of a record's first commit and of each that is not 1 µs after the
    one before: mostly one a record, since a batch has one reading of the clock (L9)."""
    times: list[tuple[int, int]] = []
    expected = 0
    for lsn, commit in enumerate(commits, first_lsn):
        if commit.commit_us != expected:
            times.append((lsn, commit.commit_us))
        expected = commit.commit_us + 1
    return times


def collect_history(
    commit_us: int, newest_lsn: int, catalog: Catalog, store: StoreWriter, settings: HistorySettings
) -> None:
    """Forget versions that were replaced `keep_ms` before `commit_us`, oldest first. No request can
    name one (D5), and every change that was made under one stands before its fence in the log. And
    rows that were replaced `rows_ms` before."""
    # Whoever can read a row as it was needs the version that it was read under.
    before_us = commit_us - max(settings.keep_ms, settings.rows_ms) * 1_000
    for ended in catalog.ended_before(before_us)[: settings.collected_per_record_max]:
        store.collect_descriptor(ended.table_id, ended.version, ended.until_lsn)
        catalog.forget(ended.table_id, ended.version)
    if settings.rows_ms:
        store.collect_rows(commit_us - settings.rows_ms * 1_000, newest_lsn)
