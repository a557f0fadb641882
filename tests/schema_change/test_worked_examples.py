"""Named schedules: the three worked examples of the leasing RFC's "Correctness", two of TiDB's
tests, and what a column backfill does to writers' genids. All over the real verify and states."""

from __future__ import annotations

from typing import cast

import pytest

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.job import Phase
from leasehold.model.errors import Refused, UnknownColumn
from leasehold.model.ids import genid
from leasehold.model.ports import Row as StoredRow
from leasehold.model.ports import StoreWriter
from leasehold.model.records.jobs import Chunk
from leasehold.model.records.log import ChangeKind, RowChange
from leasehold.model.records.requests import ChangeRequest, Operation, OperationKind
from leasehold.replication.master.backfill import slice_chunk
from leasehold.transaction.row_conflict import RowRefused
from leasehold.transaction.verify import Decided, verify
from tests.schema_change.changes import A, B, C, Change, changed
from tests.schema_change.chunks import backfill
from tests.schema_change.menu import INDEX, filled_by_key
from tests.schema_change.timeline import Timeline
from tests.schema_change.verdict import inconsistent
from tests.schema_change.versions import Version, version_of
from tests.schema_change.world import ID, OneRow, Row, Write
from tests.schema_change.writers import Writers
from tests.support.memory_store.store import MemoryStore

V1, V2, V3, V4 = 1, 2, 3, 4  # absent, delete-only, write-only, public
CREATE_INDEX = changed(INDEX)
ADD_REQUIRED = filled_by_key("integer NOT NULL DEFAULT 7")
ADD_AT_ONCE = changed("ALTER TABLE t ADD COLUMN c integer NOT NULL DEFAULT 7")
ADD_OPTIONAL = changed("ALTER TABLE t ADD COLUMN c integer")
INSERT = Write(OperationKind.INSERT, (("a", 0), ("b", 0)))
UPDATE = Write(OperationKind.UPDATE, (("a", 1),))
DELETE = Write(OperationKind.DELETE)
OLD_GENID = 2  # every stored row of the model has genid 1
E = C  # of what is made
GONE = Row()
WRITERS = Writers({})


def catalog(change: Change, version: int, *, drained: bool) -> Catalog:
    """The catalog with `version` as the newest, the one before it in use still or not."""
    timeline = Timeline(change)
    at = 0
    while (position := timeline.all[at]).newest.version < version or (
        drained and position.job.phase is Phase.DRAINING
    ):
        moves = {
            Phase.PUBLISHING: "publish",
            Phase.DRAINING: "fence",
            Phase.BACKFILLING: "filled",
            Phase.VALIDATING: "validated",
            Phase.VERIFYING: "verified",
        }
        at = timeline.moved(at, moves[position.job.phase])
    return timeline.all[at].catalog(0 if drained else 1)


def at(change: Change, version: int) -> Version:
    newest = catalog(change, version, drained=True).newest(1)
    return version_of(newest)


def decide(
    row: Row, known: Catalog, version: int, write: Write, seen: int | None = None
) -> Row | None:
    """None: refused, or no row was met."""
    try:
        return WRITERS.decide(row, (), known, write, version, seen=seen)
    except Refused:
        return None


def consistent(row: Row, *versions: Version) -> bool:
    return not any(inconsistent((row,), version, frozenset()) for version in versions)


@pytest.fixture
def old_row() -> Row:
    row = decide(GONE, catalog(CREATE_INDEX, V1, drained=True), V1, INSERT)
    assert row is not None
    return row


def entries(row: Row | None) -> list[tuple[int, ...]]:
    assert row is not None
    return [values for _, values in row.entries]


def test_delete_without_the_index_meets_update_in_write_only(old_row: Row) -> None:
    """Example 1. The DELETE is aborted, by the fence and by what it saw; or the UPDATE sees it."""
    draining = catalog(CREATE_INDEX, V3, drained=False)  # v2 and v3 in use
    updated = decide(old_row, draining, V3, UPDATE)
    assert updated is not None
    assert entries(updated) == [(1,)]
    assert decide(updated, draining, V1, DELETE) is None, "D5"
    assert decide(updated, draining, V2, DELETE, seen=OLD_GENID) is None, "T1"
    # A DELETE that knows of the index and has seen the UPDATE takes its entry along.
    assert decide(updated, draining, V2, DELETE, seen=1) == GONE
    # The other order: the UPDATE meets the tombstone.
    assert decide(old_row, draining, V2, DELETE) == GONE
    assert decide(GONE, draining, V3, UPDATE) is None
    # Without the fence the DELETE would leave the entry behind.
    orphan = decide(updated, catalog(CREATE_INDEX, V1, drained=True), V1, DELETE)
    assert orphan is not None
    assert not consistent(orphan, at(CREATE_INDEX, V3))


def test_delete_in_delete_only_during_backfill(old_row: Row) -> None:
    """Example 2. Seen by the backfill (the row is gone, its chunk does nothing), or aborted."""
    before_fence = catalog(CREATE_INDEX, V3, drained=False)
    writing = at(CREATE_INDEX, V3)
    assert decide(old_row, before_fence, V2, DELETE) == GONE
    assert backfill(GONE, writing, E) == GONE
    after_fence = catalog(CREATE_INDEX, V3, drained=True)
    assert decide(old_row, after_fence, V2, DELETE) is None, "D5"
    filled = backfill(old_row, writing, E)
    assert entries(filled) == [(0,)]
    # Even a chunk decided before a delete-only DELETE that is still allowed leaves nothing.
    assert decide(filled, before_fence, V2, DELETE) == GONE


def test_update_in_write_only_is_seen_by_select_when_public(old_row: Row) -> None:
    """Example 3. While v3 is accepted its UPDATE moves the entry; afterwards it is aborted."""
    writing, public = at(CREATE_INDEX, V3), at(CREATE_INDEX, V4)
    filled = backfill(old_row, writing, E)
    assert consistent(filled, public)
    updated = decide(filled, catalog(CREATE_INDEX, V4, drained=False), V3, UPDATE)
    assert entries(updated) == [(1,)], "SELECT through the index finds the row where it is now"
    assert updated is not None
    assert consistent(updated, writing, public)
    assert decide(filled, catalog(CREATE_INDEX, V4, drained=True), V3, UPDATE) is None, "D5"


@pytest.mark.parametrize(
    ("change", "value"),
    [(ADD_REQUIRED, None), (ADD_OPTIONAL, None), (ADD_AT_ONCE, 7)],
    ids=["required", "optional", "at once"],
)
def test_compiled_at_v_executed_at_v1(change: Change, value: int | None) -> None:
    """Scenario 63: an INSERT made in delete-only is decided while the next version is the
    newest; naming the column before it is public is 42703."""
    both = catalog(change, V3, drained=False)
    row = decide(GONE, both, V2, INSERT)
    assert row is not None
    assert row.value(E) == value
    assert consistent(row, at(change, V2), at(change, V3))
    naming = Operation(OperationKind.INSERT, "t", (0,), {"a": 0, "c": 8}, schema_version=V2)
    with pytest.raises(UnknownColumn):
        verify_one(naming, both, None)
    if change is ADD_REQUIRED:
        with pytest.raises(UnknownColumn):
            verify_one(naming._replace(schema_version=V3), both, None)


def verify_one(
    operation: Operation, known: Catalog, stored: StoredRow | None, lsn: int = 2
) -> Decided:
    return verify(ChangeRequest(b"", (operation,)), known, lambda _, __: stored, lsn)


@pytest.mark.parametrize("kind", [OperationKind.INSERT, OperationKind.UPDATE, OperationKind.UPSERT])
@pytest.mark.parametrize("there", [True, False], ids=["there", "new"])
def test_upsert_in_write_only(kind: OperationKind, there: bool, old_row: Row) -> None:
    """Scenario 66: whatever writes the row in write-only, the new column then holds its default."""
    known = catalog(ADD_REQUIRED, V3, drained=True)
    operation = Operation(kind, "t", (0,), {"b": 0}, schema_version=V3)
    stored = old_row.stored(0) if there else None
    try:
        decided = verify_one(operation, known, stored)
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
    """A backfill leaves the genids alone. Raised, they would harm no data, but every writer that
    had read one of the filled rows would be refused for a schema change."""
    known = catalog(ADD_REQUIRED, V3, drained=True)
    newest = known.newest(1)
    chunk = Chunk(1, 1, 1, newest.version, E, ((0,),))
    part = slice_chunk(chunk, 0, 1, known, cast(StoreWriter, OneRow(None)))
    assert (part.changes, len(part.backfills)) == ((), 1), "by key: nobody's row is written anew"
    store = MemoryStore()
    store.begin()
    was = {ID: 0, A: 0, B: 0}
    one = known.version(1, 1)
    store.change(one, RowChange(ChangeKind.INSERT, 1, 1, (0,), was, {}, (0,)), 1, 0, None)
    assert store.backfill(newest, part.backfills[0]) == 1
    filled = store.row(newest, (0,))
    assert filled == StoredRow({**was, E: 7}, {0: genid(1, 0)}, 1)

    assert filled is not None
    update = Operation(OperationKind.UPDATE, "t", (0,), {"a": 1}, expect=genid(1, 0))
    kept = verify_one(update, known, filled, 3)
    assert kept.changes[0].image == {ID: 0, A: 1, B: 0, E: 7}
    with pytest.raises(RowRefused):
        verify_one(update, known, filled._replace(genids={0: genid(2, 0)}), 3)
