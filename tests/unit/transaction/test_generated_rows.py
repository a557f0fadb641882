"""Generated columns and decided defaults where requests are decided: on every store alike.

Goal: nobody gives a generated column a value, everybody who changes what it comes from changes it,
and what rests on it (an index, a reference, a lock) sees that. Method: real tables made by SQL, and
requests against the reference in memory and against SQLite.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import CommitContext, Derived, Lock
from leasehold.model.errors import (
    DivisionByZero,
    DuplicateKey,
    ForeignKeyViolation,
    GeneratedAlways,
    Refused,
)
from leasehold.model.records.requests import ChangeRequest, Operation
from leasehold.transaction.locks import covering_locks
from leasehold.transaction.verify import verify
from tests.schema_change.changes import standing
from tests.support.sqlite.lockstep import reports_of
from tests.support.transaction.written_table import (
    Store,
    WrittenTable,
    delete,
    insert,
    update,
    upsert,
)

ID, A, G, B = 1, 2, 3, 4
TABLE = standing(
    "CREATE TABLE t (id int PRIMARY KEY, a int, g int GENERATED ALWAYS AS (100 / a) STORED, b int)",
    "CREATE UNIQUE INDEX u ON t (g)",
)


def test_it_follows_every_write(store: Store) -> None:
    table = WrittenTable(store, TABLE)
    table.send(insert("t", 1, a=5), insert("t", 2, b=1), upsert("t", 3, a=50))
    assert [table.row(1, key) for key in (1, 2, 3)] == [
        {ID: 1, A: 5, G: 20},
        {ID: 2, B: 1},
        {ID: 3, A: 50, G: 2},
    ]
    table.send(update("t", 1, a=10), upsert("t", 2, a=100), update("t", 3, b=9))
    assert [table.row(1, key) for key in (1, 2, 3)] == [
        {ID: 1, A: 10, G: 10},
        {ID: 2, A: 100, G: 1, B: 1},
        {ID: 3, A: 50, G: 2, B: 9},
    ]
    assert not reports_of(store, (1,))[0].findings_total


@pytest.mark.parametrize(
    "operation",
    [insert("t", 9, g=1), insert("t", 9, g=None), update("t", 1, g=20), upsert("t", 1, a=5, g=20)],
)
def test_it_takes_no_value_not_even_its_own(store: Store, operation: Operation) -> None:
    table = WrittenTable(store, TABLE)
    table.send(insert("t", 1, a=5))
    with pytest.raises(GeneratedAlways, match="leave it out") as caught:
        table.send(operation)
    assert (caught.value.sqlstate, caught.value.detail["column"]) == ("428C9", "g")


@pytest.mark.parametrize(
    ("operation", "error"),
    [
        (update("t", 1, a=0), DivisionByZero),
        (insert("t", 9, a=0), DivisionByZero),
        (update("t", 2, a=5), DuplicateKey),
        (insert("t", 9, a=5), DuplicateKey),
    ],
)
def test_what_rests_on_it_refuses_the_write(
    store: Store, operation: Operation, error: type[Refused]
) -> None:
    table = WrittenTable(store, TABLE)
    table.send(insert("t", 1, a=5), insert("t", 2, a=50))
    with pytest.raises(error):
        table.send(operation)
    table.send(update("t", 1, a=50), update("t", 2, a=5))


def test_a_wrong_value_is_found_by_a_check(store: Store) -> None:
    """It is damaged by another expression: the store's rows are those of version 1."""
    table = WrittenTable(store, TABLE)
    table.send(insert("t", 1, a=5), insert("t", 2, a=10), insert("t", 3))
    other = Derived((A,), "200 / a - 10", strict=True, generated=True)
    columns = tuple(replace(c, derived=other) if c.name == "g" else c for c in TABLE.columns)
    table.publish(replace(TABLE, version=2, columns=columns))
    (report,) = reports_of(store, (1,))
    assert [(f[0], f[1], tuple(f[2])) for f in report.findings] == [(2, G, (1,))]
    assert "the row has 20 instead of 30" in report.findings[0][3]
    loose = tuple(
        replace(c, derived=other._replace(loose=True)) if c.name == "g" else c
        for c in TABLE.columns
    )
    table.publish(replace(TABLE, version=3, columns=loose))
    assert not reports_of(store, (1,))[0].findings_total


def test_a_reference_that_is_computed(store: Store) -> None:
    """NO ACTION: a child whose computed value refers to nothing, a parent that is referred to."""
    parent = standing("CREATE TABLE p (id int PRIMARY KEY)")
    child = standing(
        "CREATE TABLE p (id int PRIMARY KEY, a int, g int GENERATED ALWAYS AS (a + 1) STORED"
        " REFERENCES p NOT NULL)"
    )
    (key,) = child.foreign_keys
    assert (key.parent, key.parent_index) == (1, 0)
    made = replace(child, table_id=2, name="c")
    table = WrittenTable(store, parent, made)
    table.send(insert("p", 1), insert("p", 2), insert("c", 1, a=1))
    with pytest.raises(ForeignKeyViolation, match="still referred to"):
        table.send(delete("p", 2))
    with pytest.raises(ForeignKeyViolation):
        table.send(update("c", 1, a=5))
    with pytest.raises(ForeignKeyViolation):
        table.send(insert("c", 2, a=9))
    table.send(update("c", 1, a=0))


# ------------------------------------------------------------------ locks


def locked() -> Descriptor:
    columns = tuple(replace(c, locks=(7,)) if c.name == "a" else c for c in TABLE.columns)
    return replace(TABLE, columns=columns, row_locks=(Lock(7, "l"),), indexes=())


def test_who_changes_its_source_writes_its_lock_too(store: Store) -> None:
    """Else a reader of the generated column, which is under another lock, would not be told."""
    table = WrittenTable(store, locked())
    table.send(insert("t", 1, a=5))
    (change,) = table.send(update("t", 1, a=10)).changes
    assert set(change.locks) == {0, 7}
    (change,) = table.send(update("t", 1, b=1)).changes
    assert set(change.locks) == {0}
    descriptor = locked()
    assert covering_locks(descriptor, [A]) == (7,), "who reads the source rests on its lock alone"


# ------------------------------------------------------------------ defaults


def test_a_request_has_one_moment(store: Store) -> None:
    decided = standing(
        "CREATE TABLE t (id int PRIMARY KEY, d timestamptz DEFAULT now(),"
        " u uuid DEFAULT gen_random_uuid())"
    )
    table = WrittenTable(store, decided)
    request = ChangeRequest(b"r" * 16, (insert("t", 1), insert("t", 2), insert("t", 3, d=None)))
    context = CommitContext(77, b"seed")
    made = verify(request, table.catalog, store.row, 1, holders=store.holders, context=context)
    images = [change.image or {} for change in made.changes]
    assert [image.get(2) for image in images] == [77, 77, None]
    assert len({image[3] for image in images}) == 3


def test_a_default_that_does_not_fit_refuses_the_write(store: Store) -> None:
    text = "CREATE TABLE t (id int PRIMARY KEY, d varchar(5) DEFAULT gen_random_uuid()::text)"
    with pytest.raises(Refused) as caught:
        standing(text)
    assert caught.value.sqlstate == "22001"
