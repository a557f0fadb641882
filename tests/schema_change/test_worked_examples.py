"""Named schedules: the three worked examples of the leasing RFC's "Correctness", two of TiDB's
tests, and what a column backfill does to writers' genids. All over the real verify and states."""

from __future__ import annotations

from typing import cast

import pytest

from leasehold.model.errors import Refused, UnknownColumn
from leasehold.model.ids import genid
from leasehold.model.ports import Row as StoredRow
from leasehold.model.ports import StoreWriter
from leasehold.model.records import ChangeRequest, Chunk, Operation, OperationKind
from leasehold.replication.fill import slice_chunk
from leasehold.schema.states import State
from leasehold.transaction.verify import RowRefused, verify
from tests.schema_change.model_f1 import Model
from tests.schema_change.planned_change import (
    ADD_NULLABLE,
    ADD_REQUIRED,
    CREATE_INDEX,
    ID,
    A,
    B,
    Change,
    E,
)
from tests.schema_change.world import OneRow, Row, Write, make_row

ABSENT, DELETE_ONLY, WRITE_ONLY, PUBLIC = State
V1, V2, V3, V4 = 1, 2, 3, 4  # absent, delete-only, write-only, public
THROUGH_WRITE_ONLY = (int(ABSENT), int(DELETE_ONLY), int(WRITE_ONLY))
THROUGH_PUBLIC = (*THROUGH_WRITE_ONLY, int(PUBLIC))
INSERT = Write(OperationKind.INSERT, ((A, 0), (B, 0)))
UPDATE = Write(OperationKind.UPDATE, ((A, 1),))
DELETE = Write(OperationKind.DELETE)
OLD_GENID = 2  # every stored row of the model has genid 1, and 0 means any


def consistent(model: Model, row: Row, *states: State) -> bool:
    return all(model.verdict(row, 0, state, False) is None for state in states)


@pytest.fixture
def index() -> Model:
    return Model(CREATE_INDEX, rows=1)


@pytest.fixture
def old_row(index: Model) -> Row:
    row = index.decide(Row(), 0, index.catalog((int(ABSENT),), 0), V1, INSERT)
    assert row is not None
    return row


def test_delete_without_the_index_meets_update_in_write_only(index: Model, old_row: Row) -> None:
    """Example 1. The DELETE is aborted, by the fence and by what it saw; or the UPDATE sees it."""
    draining = index.catalog(THROUGH_WRITE_ONLY, 1)  # v2 not drained yet: v2 and v3 in use
    updated = index.decide(old_row, 0, draining, V3, UPDATE)
    assert updated is not None
    assert updated.entries == ((1,),)
    assert index.decide(updated, 0, draining, V1, DELETE) is None, "D5"
    assert index.decide(updated, 0, draining, V2, DELETE, seen=OLD_GENID) is None, "T1"
    # A DELETE that knows of the index and has seen the UPDATE takes its entry along.
    deleted = index.decide(updated, 0, draining, V2, DELETE, seen=1)
    assert deleted == Row()
    # The other order: the UPDATE meets the tombstone.
    earlier = index.decide(old_row, 0, draining, V2, DELETE)
    assert earlier == Row()
    assert index.decide(earlier, 0, draining, V3, UPDATE) is None
    # Without the fence the DELETE would leave the entry behind.
    orphan = index.decide(updated, 0, index.catalog((int(ABSENT),), 0), V1, DELETE)
    assert orphan is not None
    assert not consistent(index, orphan, WRITE_ONLY)


def test_delete_in_delete_only_during_backfill(index: Model, old_row: Row) -> None:
    """Example 2. Seen by the backfill (the row is gone, its chunk does nothing), or aborted."""
    before_fence = index.catalog(THROUGH_WRITE_ONLY, 1)
    deleted = index.decide(old_row, 0, before_fence, V2, DELETE)
    assert deleted == Row()
    assert index.fill(deleted, 0, None) == Row()
    after_fence = index.catalog(THROUGH_WRITE_ONLY, 2)
    assert index.decide(old_row, 0, after_fence, V2, DELETE) is None, "D5"
    filled = index.fill(old_row, 0, None)
    assert filled.entries == ((0,),)
    # Even a chunk decided before a delete-only DELETE that is still allowed leaves nothing.
    gone = index.decide(filled, 0, before_fence, V2, DELETE)
    assert gone == Row()


def test_update_in_write_only_is_seen_by_select_when_public(index: Model, old_row: Row) -> None:
    """Example 3. While v3 is accepted its UPDATE moves the entry; afterwards it is aborted."""
    filled = index.fill(old_row, 0, None)
    assert consistent(index, filled, PUBLIC)
    both = index.catalog(THROUGH_PUBLIC, 2)
    updated = index.decide(filled, 0, both, V3, UPDATE)
    assert updated is not None
    assert updated.entries == ((1,),), "SELECT through the index finds the row where it is now"
    assert consistent(index, updated, WRITE_ONLY, PUBLIC)
    drained = index.catalog(THROUGH_PUBLIC, 3)
    assert index.decide(filled, 0, drained, V3, UPDATE) is None, "D5"


@pytest.mark.parametrize("change", [ADD_REQUIRED, ADD_NULLABLE], ids=lambda c: c.name)
def test_compiled_at_v_executed_at_v1(change: Change) -> None:
    """An INSERT made in delete-only is decided while the next version is the newest; naming the
    column before it is public is 42703."""
    model = Model(change, rows=1)
    versions = (int(ABSENT), *(int(state) for state in change.steps[:2]))
    catalog = model.catalog(versions, 1)
    row = model.decide(Row(), 0, catalog, V2, INSERT)
    assert row is not None
    assert E not in row.image
    assert consistent(model, row, DELETE_ONLY, change.steps[1])
    naming = Operation(OperationKind.INSERT, "t", (0,), {"a": 0, "c": 8}, schema_version=V2)
    with pytest.raises(UnknownColumn):
        verify(ChangeRequest(b"", (naming,)), catalog, lambda _, __: None, 2)
    if change is ADD_REQUIRED:
        same = naming._replace(schema_version=V3)
        with pytest.raises(UnknownColumn):
            verify(ChangeRequest(b"", (same,)), catalog, lambda _, __: None, 2)


@pytest.mark.parametrize("kind", [OperationKind.INSERT, OperationKind.UPDATE, OperationKind.UPSERT])
@pytest.mark.parametrize("there", [True, False], ids=["there", "new"])
def test_upsert_in_write_only(kind: OperationKind, there: bool) -> None:
    """Whatever writes the row in write-only, the new column then holds its default."""
    model = Model(ADD_REQUIRED, rows=1)
    catalog = model.catalog(THROUGH_WRITE_ONLY, 2)
    start = model.full(ABSENT, 0) if there else Row()
    operation = Operation(kind, "t", (0,), {"b": 0}, schema_version=V3)
    stored = StoredRow(start.image, {0: 1}, 1) if there else None
    try:
        decided = verify(ChangeRequest(b"", (operation,)), catalog, lambda _, __: stored, 2)
    except Refused:
        assert kind is OperationKind.INSERT
        assert there
        return
    if kind is OperationKind.UPDATE and not there:
        assert decided.changes == ()
        return
    image = decided.changes[0].image
    assert image is not None
    assert image[E] == 7


def test_a_column_backfill_fails_no_writer() -> None:
    """A fill leaves the genids alone. Raised, they would harm no data, but every writer that had
    read one of the filled rows would be refused for a schema change."""
    model = Model(ADD_REQUIRED, rows=1)
    catalog = model.catalog(THROUGH_WRITE_ONLY, 2)
    newest = catalog.newest(1)
    seen = StoredRow(make_row(True, {ID: 0, A: 0, B: 0}, set()).image, {0: genid(1, 0)}, 1)
    chunk = Chunk(1, 1, 1, newest.version, E, (((0,), 1),))
    part = slice_chunk(chunk, 0, 1, catalog, cast(StoreWriter, OneRow(seen)))
    (fill,) = part.changes
    assert fill.image is not None
    assert fill.locks == ()

    def after(locks: tuple[int, ...]) -> StoredRow:
        assert fill.image is not None
        return StoredRow(fill.image, {**seen.genids, **{lock: genid(2, 0) for lock in locks}}, 2)

    update = Operation(OperationKind.UPDATE, "t", (0,), {"a": 1}, expect=genid(1, 0))
    request = ChangeRequest(b"", (update,))
    kept = verify(request, catalog, lambda _, __: after(fill.locks), 3)
    assert kept.changes[0].image == {ID: 0, A: 1, B: 0, E: 7}
    with pytest.raises(RowRefused):
        verify(request, catalog, lambda _, __: after(newest.locks), 3)
