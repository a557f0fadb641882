"""The master confirms findings by its own rows: what is no longer so blames nobody."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Check, Column, ForeignKey, Index
from leasehold.catalog.job import Job, Phase, Step
from leasehold.model.keys import Key
from leasehold.model.ports import Row
from leasehold.model.records.jobs import Findings
from leasehold.model.records.log import DescriptorWrite, FindingsDecided, JobWrite
from leasehold.replication.master.findings import confirm
from leasehold.rows.index_entries import entry_of
from leasehold.schema_change.coordinator.verification import LISTED_MAX
from leasehold.schema_change.job.transitions import FINDINGS_MAX
from leasehold.values.types import Type
from tests.models.mutants.schema import JobRules, broken
from tests.support.schema_change.made_job import index_job

UNIQUE, CHECK, REFERENCE, BY_INDEX, REQUIRED = 9, 10, 11, 12, 3
ELEMENTS = (UNIQUE, CHECK, REFERENCE, BY_INDEX, REQUIRED)
CHILD, PARENT, PARENT_INDEX = 1, 7, 4


def columns() -> tuple[Column, ...]:
    return (
        Column(1, "id", Type("bigint"), nullable=False),
        Column(2, "a", Type("text")),
        Column(REQUIRED, "b", Type("bigint")),
    )


TABLES = (
    Descriptor(
        CHILD,
        "child",
        1,
        columns(),
        (1,),
        (Index(UNIQUE, "u", (2, 3), unique_enforced=True),),
        checks=(Check(CHECK, "c", "b < 100", (3,)),),
        foreign_keys=(
            ForeignKey(REFERENCE, "f", (3,), PARENT, (1,)),
            ForeignKey(BY_INDEX, "g", (2,), PARENT, (2,), PARENT_INDEX),
        ),
    ),
    Descriptor(PARENT, "parent", 1, columns(), (1,), (Index(PARENT_INDEX, "i", (2,), True),)),
)


class Store:
    def __init__(self, rows: Mapping[tuple[int, int], Mapping[int, Any]]) -> None:
        self.rows = {
            (table, (key,)): Row({1: key, **values}, {0: 1}, 1)
            for (table, key), values in rows.items()
        }

    def row(self, descriptor: Descriptor, key: Key) -> Row | None:
        return self.rows.get((descriptor.table_id, key))

    def holders(
        self, descriptor: Descriptor, index_id: int, values: Key, rows_max: int
    ) -> list[Key]:
        index = next(i for i in descriptor.indexes if i.element_id == index_id)
        found = [
            key
            for (table, key), row in self.rows.items()
            if table == descriptor.table_id and entry_of(descriptor, index)(row.values) == values
        ]
        return found[:rows_max]


def decided(store: Store, *found: tuple[int, int], total: int = 0) -> FindingsDecided:
    catalog = Catalog()
    for table in TABLES:
        catalog.apply(DescriptorWrite(table.table_id, 1, table.to_wire()), 1, 1)
    catalog.apply(JobWrite(1, job().to_wire()), 1, 1)
    named = tuple((element, (key,)) for element, key in found)
    findings = Findings(1, 4, CHILD, 1, 30, total or len(named), named)
    return confirm(findings, catalog, store)


def job() -> Job:
    return index_job(
        1,
        CHILD,
        steps=(Step((), (), ELEMENTS, ELEMENTS),),
        phase=Phase.VALIDATING,
        run=4,
        versions={CHILD: 1},
    )


BROKEN: list[tuple[int, dict[int, Any], str]] = [
    (UNIQUE, {2: "x", 3: 5}, "unique index 'u': (a, b) = ('x', 5) is also in row (2,)"),
    (CHECK, {2: "x", 3: 100}, "check 'c': the row makes it false"),
    (REFERENCE, {2: "x", 3: 6}, "foreign key 'f': (id) = (6) is not in table 'parent'"),
    (BY_INDEX, {2: "y", 3: 5}, "foreign key 'g': (a) = ('y') is not in table 'parent'"),
    (REQUIRED, {2: "x"}, "column 'b' is NULL"),
]
Rows = Mapping[tuple[int, int], Mapping[int, Any]]
WHOLE: Rows = {(CHILD, 2): {2: "x", 3: 5}, (PARENT, 5): {2: "x"}}


@pytest.mark.parametrize(("element", "values", "words"), BROKEN)
def test_what_the_row_shows_now_is_confirmed(
    element: int, values: dict[int, Any], words: str
) -> None:
    told = decided(Store({**WHOLE, (CHILD, 1): values}), (element, 1))
    assert told[:4] == (1, 4, 30, 0)
    condition = 2 if element == REQUIRED else 6
    assert told.findings == ((condition, element, (1,), words),)
    assert told.words == f"1 row breaks index i1: row (1,): {words}"


@pytest.mark.parametrize(("element", "values", "words"), BROKEN)
def test_what_it_does_not_show_is_dropped(element: int, values: dict[int, Any], words: str) -> None:
    fine = {2: "x", 3: 5}
    lone = {key: row for key, row in WHOLE.items() if key != (CHILD, 2)}
    told = decided(Store({**lone, (CHILD, 1): fine}), (element, 1))
    assert told == FindingsDecided(1, 4, 30, 1, "", ())
    gone = decided(Store(WHOLE), (element, 1))
    assert gone == FindingsDecided(1, 4, 30, 1, "", ()), "the row is gone"
    # The rule turned off blames a row that is as it should be: this is what it is for.
    with broken(JobRules(findings_confirmed=False)):
        blamed = decided(Store({**lone, (CHILD, 1): fine}), (element, 1))
    assert blamed.words


def test_nulls_break_nothing_but_not_null() -> None:
    rows = {(CHILD, 1): {2: "x"}, (CHILD, 2): {2: "x"}, (PARENT, 5): {2: "x"}}
    told = decided(Store(rows), (UNIQUE, 1), (REFERENCE, 1), (CHECK, 1), (BY_INDEX, 1))
    assert (told.dropped, told.words) == (4, "")


def test_many_are_counted_and_the_first_are_named() -> None:
    rows = {(CHILD, key): {2: "x", 3: 100} for key in range(60)}
    twice = [(CHECK, key) for key in range(60)] * 2
    told = decided(Store(rows), *twice, total=150)
    assert len(told.findings) == FINDINGS_MAX
    assert told.words.startswith("60 rows break index i1 and perhaps 30 more: row (0,): check 'c'")
    assert told.words.count("row (") == LISTED_MAX
    assert told.words.endswith(" …")


def test_an_element_that_is_not_validated_says_nothing() -> None:
    store = Store({(CHILD, 1): {2: "x", 3: 100}})
    assert decided(store, (77, 1)) == FindingsDecided(1, 4, 30, 0, "", ())
