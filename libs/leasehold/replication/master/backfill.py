"""Deciding rows of a backfill chunk: pairs to be put by every node itself, or images."""

from __future__ import annotations

from itertools import chain
from typing import Final, NamedTuple

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import ALL_ROWS, Column, CommitContext
from leasehold.model.errors import MalformedRequest, Refused, RequestTooLarge, SequenceExhausted
from leasehold.model.keys import (
    INTEGER_LEAST,
    INTEGER_MOST,
    STORED_TYPES,
    IntKeys,
    Key,
    Keys,
)
from leasehold.model.ports import Row, RowSource
from leasehold.model.records.events import Genids, Image
from leasehold.model.records.jobs import Chunk
from leasehold.model.records.log import (
    Backfill,
    ChangeKind,
    ChunkDecided,
    FindingsDecided,
    RowChange,
)
from leasehold.rows.defaults import Draw
from leasehold.rows.generated import refusal_of
from leasehold.rows.key_values import compose
from leasehold.schema_change.coordinator.verification import REQUIRED, make_finding, tell_no_value
from leasehold.transaction.mirror_table import key_in, written
from leasehold.transaction.sequence_operations import Drawing

IMAGE_COST: Final = 4  # of measured 2 to 6 (replication/DESIGN.md)


def row_cost(chunk: Chunk, catalog: Catalog) -> int:
    """Return what a row of an accepted chunk costs all nodes, in index entries: one that is filled
    by its image is composed, logged and written whole, by itself."""
    if chunk.element_id == ALL_ROWS:
        return IMAGE_COST
    column = _by_images(catalog.version(chunk.table_id, chunk.version), chunk.element_id)
    return 1 if column is None else IMAGE_COST


def _by_images(descriptor: Descriptor, element_id: int) -> Column | None:
    """Return the element, if it is a column whose pairs images must tell: what follows from other
    columns no reader of images could put there for himself, nor what is too long for a
    descriptor."""
    element = descriptor.element(element_id)
    return element if isinstance(element, Column) and element.missing is None else None


class BackfillSlice(NamedTuple):
    """A part of a chunk, decided: `backfills`, or `changes` that put rows of another table. Beside
    fills `changes` are of sequences, of which the filled rows have drawn; `before`: the rows under
    them. `decided`: how far the job has come by that, or which row ends it."""

    changes: tuple[RowChange, ...]
    before: tuple[Row | None, ...]
    backfills: tuple[Backfill, ...]
    applied: int
    decided: ChunkDecided | FindingsDecided


def slice_chunk(
    chunk: Chunk,
    start: int,
    rows: int,
    catalog: Catalog,
    store: RowSource,
    context: CommitContext | None = None,
    lsn: int = 0,
) -> BackfillSlice:
    """Return the decision on rows [start, start + rows) of an accepted chunk.

    By key where that is enough: each node puts entry or value from its own row at this very log
    position, so an image that is older than the row can write nothing wrong. By image: an operation
    like any other (⚠ `key_values`, an image with its own LSN), all rows in one entry of the log.
    Genids and LSN of a row stay in both, so that no writer, nor who has read it at a level that
    verifies reads, gets a verify error from a schema change. `context`: as of when a column is
    filled that has none of its own; `lsn`: of the commit that this is going to be. Raises
    MalformedRequest."""
    descriptor = catalog.version(chunk.table_id, chunk.version)
    keys = chunk.keys[start : start + rows]
    _check_keys(descriptor, keys)
    if chunk.element_id == ALL_ROWS:
        mirrors = _rows_of_mirror(descriptor, keys, catalog, store)
        decided = ChunkDecided(chunk.job_id, chunk.run, rows, len(mirrors), False)
        return BackfillSlice(mirrors, (None,) * len(mirrors), (), len(mirrors), decided)
    column = _by_images(descriptor, chunk.element_id)
    if column is None:
        backfill = Backfill(chunk.table_id, chunk.version, chunk.element_id, keys)
        decided = ChunkDecided(chunk.job_id, chunk.run, rows, rows, False)
        return BackfillSlice((), (), (backfill,), rows, decided)
    sequence_values = Drawing(catalog, store.row, lsn)
    backfill, ended = _images(descriptor, column, keys, store, context, sequence_values.next)
    if ended is not None:
        return BackfillSlice((), (), (), 0, _given_up(chunk, start + rows, column, *ended))
    put = len(backfill.keys)
    decided = ChunkDecided(chunk.job_id, chunk.run, rows, put, False)
    moves = tuple(sequence_values.moved())
    changes, before = tuple(m.change for m in moves), tuple(m.row for m in moves)
    return BackfillSlice(changes, before, (backfill,) if put else (), put, decided)


def _check_keys(descriptor: Descriptor, keys: Keys) -> None:
    """Raises MalformedRequest for what no row can have as its key, and no store can look for."""
    width = len(descriptor.primary_key)
    if isinstance(keys, IntKeys):
        fine = width == 1
    else:
        values = list(chain.from_iterable(keys))
        fine = (
            {width}.issuperset(map(len, keys))
            and STORED_TYPES.issuperset(map(type, values))
            and all(
                INTEGER_LEAST <= value <= INTEGER_MOST for value in values if type(value) is int
            )
        )
    if not fine:
        raise MalformedRequest(f"a chunk names what are no keys of table {descriptor.name!r}")


def row_too_large(
    chunk: Chunk, position: int, catalog: Catalog, error: RequestTooLarge
) -> RequestTooLarge:
    """Return the reason for which a row of a chunk can't be filled: it alone is too large for a
    record of the log."""
    name = catalog.version(chunk.table_id, chunk.version).name
    return RequestTooLarge(f"row {chunk.keys[position]!r:.200} of table {name!r}: {error.message}")


def _rows_of_mirror(
    descriptor: Descriptor,
    keys: Keys,
    catalog: Catalog,
    store: RowSource,
) -> tuple[RowChange, ...]:
    """Return the changes that put rows into the table under the other key, as they are now, with
    their genids. One that is there is right already: whoever has written its row has written it."""
    mirror = catalog.version(descriptor.mirror, descriptor.version)
    made: dict[Key, RowChange] = {}
    for key in dict.fromkeys(keys):
        row = store.row(descriptor, key)
        other = None if row is None else key_in(mirror, row.values)
        if row is None or other is None or other in made or store.row(mirror, other) is not None:
            continue
        made[other] = written(mirror, other, None, row)
    return tuple(made.values())


def _given_up(chunk: Chunk, rows: int, column: Column, key: Key, error: Refused) -> FindingsDecided:
    """Return the end of a run at a row that has no value to be filled in: the job can't succeed any
    more, so no other row has to be looked at."""
    found = make_finding(REQUIRED, column.element_id, key, error.message)
    words = tell_no_value(column, key, error)
    return FindingsDecided(chunk.job_id, chunk.run, rows, 0, words, (found,), error.sqlstate)


def _images(
    descriptor: Descriptor,
    column: Column,
    keys: Keys,
    store: RowSource,
    context: CommitContext | None,
    draw: Draw,
) -> tuple[Backfill, tuple[Key, Refused] | None]:
    """Return the images of those rows that are there and lack a value that is not NULL; and the
    first row of which it can't be computed. ⚠ What a sequence has no number left for stays without,
    and the verification names it."""
    found: list[tuple[Key, Image, Genids]] = []
    ended: tuple[Key, Refused] | None = None
    for key in dict.fromkeys(keys):
        row = store.row(descriptor, key)
        if row is None or row.values.get(column.element_id) is not None:
            continue
        try:
            image = compose(descriptor, ChangeKind.BACKFILL, row.values, {}, context, draw)
        except SequenceExhausted:
            continue
        except Refused as refused:  # a default that fails on this row
            ended = key, refused
            break
        if column.element_id in image:
            found.append((key, image, row.genids))
        elif column.derived is not None:
            error = refusal_of(descriptor, column, row.values)
            if error is not None:
                ended = key, error
                break
    filled, images, genids = zip(*found, strict=True) if found else ((), (), ())
    element_id = column.element_id
    made = Backfill(descriptor.table_id, descriptor.version, element_id, filled, images, genids)
    return made, ended
