"""A table that changes its primary key, and the one that follows it under the other key."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import ALL_ROWS, Column, Index, Lock
from leasehold.catalog.states import State
from leasehold.model.keys import Key
from leasehold.model.records.requests import Operation, OperationKind
from leasehold.transaction.mirror_table import genids_of, key_in
from leasehold.values.types import Type
from tests.support.sqlite.lockstep import reports_of
from tests.support.transaction.written_table import WrittenTable

OLD, NEW = 1, 2
ID, K, V, W, LOCK, KEY, BY_V = 1, 2, 3, 4, 5, 6, 7
ONE = Descriptor(
    OLD,
    "t",
    1,
    (
        Column(ID, "id", Type("bigint"), False),
        Column(K, "k", Type("text"), not_null_enforced=True),
        Column(V, "v", Type("integer")),
        Column(W, "w", Type("text"), locks=(LOCK,)),
    ),
    (ID,),
    (
        Index(KEY, "t_pkey1", (K,), state=State.WRITE_ONLY, unique_enforced=True),
        Index(BY_V, "v", (V,)),
    ),
    next_element_id=8,
    row_locks=(Lock(LOCK, "l"),),
)
FOLLOWED = replace(ONE, version=2, mirror=NEW)
FOLLOWER = replace(
    ONE,
    table_id=NEW,
    version=2,
    columns=(ONE.columns[0], replace(ONE.columns[1], nullable=False), *ONE.columns[2:]),
    primary_key=(K,),
    indexes=ONE.indexes[1:],
    state=State.WRITE_ONLY,
    mirror=OLD,
    former=OLD,
)
Findings = set[tuple[int, int, Key]]


def by_id(kind: str, key: int, version: int | None = None, **values: Any) -> Operation:
    return Operation(OperationKind(kind), "t", {"id": key}, values, None, version)


def by_k(kind: str, key: str, version: int | None = None, **values: Any) -> Operation:
    return Operation(OperationKind(kind), "t", {"k": key}, values, None, version)


def swap(tables: WrittenTable) -> None:
    tables.publish(replace(FOLLOWED, version=3, state=State.WRITE_ONLY))
    tables.publish(replace(FOLLOWER, version=3, state=State.PUBLIC))


def found(tables: WrittenTable) -> Findings:
    (report,) = reports_of(tables.store, (OLD,), ALL_ROWS)
    assert report.findings_total == len(report.findings)
    return {finding[:3] for finding in report.findings}


def same_row(tables: WrittenTable, key: int) -> bool:
    row = tables.store.row(tables.catalog.newest(OLD), (key,))
    follower = tables.catalog.newest(NEW)
    in_mirror = None if row is None else key_in(follower, row.values)
    other = None if in_mirror is None else tables.store.row(follower, in_mirror)
    if row is None or other is None:
        return False
    genids = genids_of(follower, row), genids_of(follower, other)
    return row.values == other.values and genids[0] == genids[1]
