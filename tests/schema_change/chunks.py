"""Chunks of the backfill: which the master takes, and what one does to a row."""

from __future__ import annotations

from typing import Any, cast

from leasehold.catalog.elements import Column, Index
from leasehold.model.ports import StoreWriter
from leasehold.model.records.jobs import Chunk
from leasehold.model.records.log import ChangeKind
from leasehold.replication.master.backfill import slice_chunk
from leasehold.rows.filled_by_key import backfill_row
from leasehold.rows.index_entries import entry_of
from leasehold.rows.key_values import entries
from leasehold.schema_change.job.chunk_acceptance import accept_chunk
from tests.schema_change.timeline import JOB, Position, Run
from tests.schema_change.versions import Version
from tests.schema_change.world import ID, Cell, OneRow, Row, make_row
from tests.schema_change.writers import KEY, applied, with_entries


def accepts(position: Position, run: Run, low: int) -> bool:
    """Does the master take a chunk of `run` now? `accept_chunk` on the catalog as it is."""
    chunk = Chunk(JOB, run.number, 1, run.version, run.element_id, ())
    return accept_chunk(position.catalog(low), chunk)


def backfill(row: Row, version: Version, element_id: int, seen: Any = None) -> Row:
    """The row after an accepted chunk, of a run at `version`, that names it. `seen`: pairs of an
    older image, from which the chunk's entry is taken (V3 broken); None: the row's own."""
    table = version.descriptor
    chunk = Chunk(JOB, 1, 1, table.version, element_id, ((KEY,),))
    store = cast(StoreWriter, OneRow(row.stored(KEY)))
    part = slice_chunk(chunk, 0, 1, version.catalog, store)
    for each in part.backfills:
        if not each.images and row.exists:
            return _by_key(row, version, element_id, seen)
        for image in each.images:
            row = applied(row, table, ChangeKind.BACKFILL, {element_id: image[element_id]})
    return row


def _by_key(row: Row, version: Version, element_id: int, seen: Any) -> Row:
    table = version.descriptor
    element = table.element(element_id)
    image = {ID: KEY, **dict(row.pairs if seen is None else seen)}
    if isinstance(element, Index):
        entry = entry_of(table, element)(image)
        put = set() if entry is None else {(element_id, entry)}
        return make_row(True, dict(row.pairs), {*row.entries, *put})
    assert isinstance(element, Column)
    after = backfill_row(element, image)
    if after is None:
        return row
    return make_row(True, dict(after), with_entries(row, entries(table, image, after)))


def after_backfill(cell: Cell, row: Row, version: Version, run: Run, made: int) -> Cell:
    """The cell with `row` as a chunk has left it: filled by key, its last image is older; else the
    chunk has made one, under the version that is `made` to readers."""
    if row.pairs == cell.row.pairs:
        return cell._replace(row=row)
    if run.element_id in version.descriptor.missing:
        return cell._replace(row=row, lacks=tuple(sorted({*cell.lacks, run.element_id})))
    return cell._replace(row=row, lacks=(), made=made)
