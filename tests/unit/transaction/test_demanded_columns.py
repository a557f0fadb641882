"""A column that a transaction adds, fills and sets NOT NULL: no row is without it from its commit
on, whoever inserts one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.catalog.states import State
from leasehold.model.errors import NotNullViolation
from leasehold.model.ports import Row
from leasehold.model.records.log import ChangeKind, DescriptorWrite, RowChange
from leasehold.model.records.requests import ChangeRequest, Operation, OperationKind
from leasehold.transaction.demanded_columns import count_filled
from leasehold.transaction.verify import Decided, verify
from leasehold.values.types import Type

HIDDEN: Final = Column(3, "c", Type("text"), state=State.DELETE_ONLY)
DEMANDED: Final = replace(HIDDEN, state=State.PUBLIC, not_null_enforced=True, demanded=True)
BEFORE: Final = Descriptor(
    1,
    "t",
    1,
    (Column(1, "id", Type("integer"), nullable=False), Column(2, "a", Type("integer")), HIDDEN),
    (1,),
)


def catalog(column: Column) -> Catalog:
    """As the commit leaves it that shows the column, with writers at the version before."""
    made = Catalog()
    after = replace(BEFORE, version=2, columns=(*BEFORE.columns[:2], column))
    for each in (BEFORE, after):
        made.apply(DescriptorWrite(1, each.version, each.to_wire()), 1, 1)
    return made


def decide(catalog: Catalog, kind: OperationKind, values: dict[str, Any], version: int) -> Decided:
    there = {(1,): Row({1: 1, 2: 5, 3: "x"}, {0: 9}, 1)}
    key = (1,) if kind is OperationKind.UPDATE else (7,)
    operation = Operation(kind, "t", key, values, schema_version=version)
    request = ChangeRequest(b"id", (operation,))
    return verify(request, catalog, lambda _, key: there.get(key), 20, lambda *_: ())


@pytest.mark.parametrize("kind", [OperationKind.INSERT, OperationKind.UPSERT])
def test_a_writer_who_does_not_see_it_inserts_nothing(kind: OperationKind) -> None:
    with pytest.raises(NotNullViolation, match="null value in column 'c'"):
        decide(catalog(DEMANDED), kind, {"a": 1}, 1)
    assert decide(catalog(replace(DEMANDED, demanded=False)), kind, {"a": 1}, 1).rows_affected == 1
    assert decide(catalog(DEMANDED), kind, {"a": 1, "c": "y"}, 2).rows_affected == 1


def test_he_updates_what_is_there_as_ever() -> None:
    (change,) = decide(catalog(DEMANDED), OperationKind.UPDATE, {"a": 6}, 1).changes
    assert change.image == {1: 1, 2: 6, 3: "x"}


def test_one_that_was_there_is_left_empty_by_nobody() -> None:
    """A writer at the version before may give NULL by what he knows, and is refused."""
    made = Catalog()
    there = replace(BEFORE.columns[1], not_null_enforced=True, demanded=True)
    after = replace(BEFORE, version=2, columns=(BEFORE.columns[0], there, HIDDEN))
    for each in (BEFORE, after):
        made.apply(DescriptorWrite(1, each.version, each.to_wire()), 1, 1)
    for kind in (OperationKind.UPDATE, OperationKind.UPSERT, OperationKind.INSERT):
        with pytest.raises(NotNullViolation, match="null value in column 'a'"):
            decide(made, kind, {"a": None}, 1)
        assert decide(made, kind, {"a": 8}, 1).rows_affected == 1


def change(kind: ChangeKind, key: int, image: dict[int, Any] | None, table: int = 1) -> RowChange:
    return RowChange(kind, table, 2, (key,), image, {}, (0,))


def test_what_is_filled_or_gone_counts_once() -> None:
    lacks, has = Row({1: 1}, {}, 1), Row({1: 1, 3: "x"}, {}, 1)
    update, delete, insert = ChangeKind.UPDATE, ChangeKind.DELETE, ChangeKind.INSERT
    told = [
        (change(update, 1, {1: 1, 3: "y"}), lacks),
        (change(update, 1, {1: 1, 2: 4, 3: "z"}), has),  # again
        (change(delete, 2, None), lacks),
        (change(update, 3, {1: 3, 2: 5}), lacks),  # it goes on without
        (change(update, 4, {1: 4, 3: "y"}), has),  # it had one
        (change(insert, 5, {1: 5, 3: "y"}), None),
        (change(update, 6, {1: 6, 3: "y"}, table=2), lacks),
    ]
    decided = Decided(tuple(c for c, _ in told), tuple(row for _, row in told), {}, 0)
    assert count_filled(decided, 1, 3) == 2
