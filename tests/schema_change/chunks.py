"""Chunks of the backfill: which the master takes, and what one does to a row."""

from __future__ import annotations

from typing import Any, cast

from leasehold.model.ports import StoreWriter
from leasehold.model.records import Chunk
from leasehold.replication.fill import slice_chunk
from leasehold.schema.chunk_gate import accept_chunk
from leasehold.schema.descriptor import Index
from leasehold.schema.key_values import entry_of
from tests.schema_change.timeline import JOB, Position, Run
from tests.schema_change.versions import Version
from tests.schema_change.world import ID, OneRow, Row, make_row
from tests.schema_change.writers import KEY, applied


def accepts(position: Position, run: Run, low: int) -> bool:
    """Does the master take a chunk of `run` now? `accept_chunk` on the catalog as it is."""
    chunk = Chunk(JOB, run.number, 1, run.version, run.element_id, ())
    return accept_chunk(position.catalog(low), chunk)


def fill(row: Row, version: Version, element_id: int, seen: Any = None) -> Row:
    """The row after an accepted chunk, of a run at `version`, that names it. `seen`: pairs of an
    older image, from which the chunk's entry is taken (V3 broken); None: the row's own."""
    table = version.descriptor
    chunk = Chunk(JOB, 1, 1, table.version, element_id, (((KEY,), 1),))
    store = cast(StoreWriter, OneRow(row.stored(KEY)))
    part = slice_chunk(chunk, 0, 1, version.catalog, store)
    if part.entries and row.exists:
        index = table.element(element_id)
        assert isinstance(index, Index)
        image = {ID: KEY, **dict(row.pairs if seen is None else seen)}
        entries = {*row.entries, (element_id, entry_of(index, image))}
        return make_row(True, dict(row.pairs), entries)
    for change in part.changes:
        assert change.image is not None
        row = applied(row, table, change.kind, {element_id: change.image[element_id]})
    return row
