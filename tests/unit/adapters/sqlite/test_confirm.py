"""Findings are confirmed on the rows and entries of real stores, inside the open batch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Check, Column, Index
from leasehold.catalog.job import Phase, Step
from leasehold.catalog.states import State
from leasehold.model.records.jobs import Findings
from leasehold.model.records.log import ChangeKind, FindingsDecided, JobWrite, RowChange
from leasehold.replication.master.findings import confirm
from leasehold.values.types import Type
from tests.support.schema_change.made_job import index_job
from tests.support.transaction.written_table import STORES, WrittenTable, insert, opened, update

UNIQUE, CHECK, REQUIRED = 5, 6, 3
ELEMENTS = (UNIQUE, CHECK, REQUIRED)
BEFORE = Descriptor(
    1,
    "t",
    1,
    (
        Column(1, "id", Type("bigint"), False),
        Column(2, "a", Type("text")),
        Column(REQUIRED, "b", Type("integer")),
    ),
    (1,),
    (Index(UNIQUE, "u", (2,), state=State.WRITE_ONLY),),
    next_element_id=7,
)
ENFORCED = Descriptor(
    1,
    "t",
    2,
    (*BEFORE.columns[:2], Column(REQUIRED, "b", Type("integer"), not_null_enforced=True)),
    (1,),
    (Index(UNIQUE, "u", (2,), state=State.WRITE_ONLY, unique_enforced=True),),
    checks=(Check(CHECK, "c", "b < 10", (3,), State.WRITE_ONLY),),
    next_element_id=7,
)


@pytest.fixture(params=STORES)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WrittenTable]:
    """Rows from before the constraints: 1 and 2 are equal, 3 lacks its pair, 4 makes it false."""
    with opened(request.param, tmp_path) as store:
        made = WrittenTable(store, BEFORE)
        made.send(
            insert("t", 1, a="x", b=1),
            insert("t", 2, a="x", b=1),
            insert("t", 3, a="y"),
            insert("t", 4, a="z", b=10),
        )
        made.publish(ENFORCED)
        job = index_job(
            1,
            1,
            steps=(Step((), (), ELEMENTS, ELEMENTS),),
            phase=Phase.VALIDATING,
            run=1,
            versions={1: 2},
        )
        made.catalog.apply(JobWrite(1, job.to_wire()), 1, 1)
        yield made


def decided(table: WrittenTable) -> FindingsDecided:
    """Every row is named, for every constraint."""
    named = tuple((element, (key,)) for element in ELEMENTS for key in range(1, 6))
    return confirm(Findings(1, 1, 1, 2, 4, len(named), named), table.catalog, table.store)


def blamed(found: FindingsDecided) -> set[tuple[int, int]]:
    return {(element, key[0]) for _, element, key, _ in found.findings}


def test_what_is_there_is_confirmed_and_nothing_else(table: WrittenTable) -> None:
    found = decided(table)
    assert blamed(found) == {(UNIQUE, 1), (UNIQUE, 2), (REQUIRED, 3), (CHECK, 4)}
    assert found.dropped == 11
    assert "(a) = ('x') is also in row (2,)" in found.words


def test_rows_that_are_mended_are_dropped(table: WrittenTable) -> None:
    table.send(update("t", 2, a="w"), update("t", 3, b=3), update("t", 4, b=9))
    assert decided(table) == FindingsDecided(1, 1, 4, 15, "", ())


def test_what_the_open_batch_has_changed_counts(table: WrittenTable) -> None:
    """Goal: findings stand behind the requests of their record, which may have mended the row, and
    which are undone when the record does not get into the log."""
    store, key = table.store, (4,)
    row = store.row(ENFORCED, key)
    assert row is not None
    store.begin()
    image = {**row.values, 3: 9}
    change = RowChange(ChangeKind.UPDATE, 1, 2, key, image, row.genids, (0,))
    store.change(ENFORCED, change, table.lsn + 1, 0, row)
    assert (CHECK, 4) not in blamed(decided(table))
    store.rollback()
    assert (CHECK, 4) in blamed(decided(table))
