"""What a record of the log is about, for who holds some tables only (C7)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.part import sequences_of
from leasehold.model.records.log import (
    CatalogWrite,
    ChunkDecided,
    Decisions,
    DescriptorWrite,
    FindingsDecided,
    JobForgotten,
    JobWrite,
    LedgerRun,
    MinVersion,
    TableForgotten,
    TableTruncated,
)


class About(NamedTuple):
    """The tables that a record says something of, None: it is about everything. `heirs`: tables
    held from it on by who holds another one, (the one, the other): it takes that one's place, or
    is a sequence that it draws from."""

    tables: frozenset[int] | None = frozenset()
    heirs: tuple[tuple[int, int], ...] = ()


EVERYTHING: Final = About(None)


def about(record: Decisions, catalog: Catalog) -> About:
    """Return what a record is about; `catalog` has its catalog writes already.

    A read of a table rests on its rows and its versions, and on who may read what: roles,
    privileges, views and enum types are everybody's. What becomes of a job is about its tables.
    """
    tables: set[int] = set()
    everything = False
    heirs: list[tuple[int, int]] = []
    for commit in record.commits:
        tables.update([change.table_id for change in commit.changes])
        tables.update([backfill.table_id for backfill in commit.backfills])
        for write in commit.catalog:
            said = _tables_of(write, catalog)
            everything |= said is None
            tables.update(said or ())
        heirs += _heirs(commit.catalog, catalog)
    return About(None if everything else frozenset(tables), tuple(heirs))


def _tables_of(write: CatalogWrite, catalog: Catalog) -> tuple[int, ...] | None:
    """Return the tables that a catalog write is about, None: it is about everything."""
    match write:
        case DescriptorWrite() | MinVersion() | TableTruncated() | TableForgotten():
            return (write.table_id,)
        case JobWrite() | ChunkDecided() | FindingsDecided():
            job = catalog.jobs.get(write.job_id)
            return None if job is None else tuple(job.tables)
        case JobForgotten() | LedgerRun():
            return ()
    return None


def _heirs(writes: tuple[CatalogWrite, ...], catalog: Catalog) -> Iterator[tuple[int, int]]:
    for write in writes:
        if isinstance(write, DescriptorWrite):
            made = catalog.version(write.table_id, write.version)
            if made.former:
                yield write.table_id, made.former
            yield from ((drawn, write.table_id) for drawn in sequences_of(made))
