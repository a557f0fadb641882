"""Deciding rows of a backfill chunk: entries to be derived by every node, or column values."""

from __future__ import annotations

from typing import Final, NamedTuple

from leasehold.model.ports import Row, StoreWriter
from leasehold.model.records import ChangeKind, Chunk, ChunkDecided, EntriesFill, RowChange
from leasehold.schema.catalog import Catalog
from leasehold.schema.descriptor import Column, Index
from leasehold.schema.key_values import compose
from leasehold.transaction.verify import RULES, VerifyRules

COLUMN_ROW_COST: Final = 4


def row_cost(chunk: Chunk, catalog: Catalog) -> int:
    """What a row of an accepted chunk costs all nodes, in index entries: a column's row is
    composed, logged and written whole, by itself."""
    element = catalog.version(chunk.table_id, chunk.version).element(chunk.element_id)
    return COLUMN_ROW_COST if isinstance(element, Column) else 1


class FillSlice(NamedTuple):
    """Part of a chunk, decided: either `entries` or `changes` with the rows `before` them."""

    changes: tuple[RowChange, ...]
    before: tuple[Row, ...]
    entries: tuple[EntriesFill, ...]
    applied: int
    decided: ChunkDecided


def slice_chunk(
    chunk: Chunk,
    start: int,
    rows: int,
    catalog: Catalog,
    store: StoreWriter,
    rules: VerifyRules = RULES,
) -> FillSlice:
    """Rows [start, start + rows) of an accepted chunk.

    Index: only the keys are logged, each node derives the entry from its own row at this very
    log position, so an image that is older than the row can write nothing wrong. Column: an
    operation like any other (⚠ `key_values`, an image with its own LSN), but the genids stay, so
    that no writer gets a verify error from a schema change.
    """
    descriptor = catalog.version(chunk.table_id, chunk.version)
    element = descriptor.element(chunk.element_id)
    keys = tuple(key for key, _ in chunk.rows[start : start + rows])
    if isinstance(element, Index):
        fill = EntriesFill(chunk.table_id, chunk.version, chunk.element_id, keys)
        decided = ChunkDecided(chunk.job_id, chunk.run, rows, rows, False)
        return FillSlice((), (), (fill,), rows, decided)
    assert isinstance(element, Column), "accept_chunk lets only live elements through"
    changes: list[RowChange] = []
    before: list[Row] = []
    for key in dict.fromkeys(keys):
        row = store.row(descriptor, key)
        if row is None or row.values.get(element.element_id) is not None:
            continue
        fills = {} if element.derived else {element.element_id: element.default}
        image = compose(descriptor, ChangeKind.FILL, row.values, fills)
        if element.derived and element.element_id not in image:
            continue
        changes.append(
            RowChange(
                ChangeKind.FILL,
                chunk.table_id,
                chunk.version,
                key,
                image,
                row.genids,
                () if rules.fill_leaves_genids else descriptor.locks,
            )
        )
        before.append(row)
    decided = ChunkDecided(chunk.job_id, chunk.run, rows, len(changes), False)
    return FillSlice(tuple(changes), tuple(before), (), len(changes), decided)
