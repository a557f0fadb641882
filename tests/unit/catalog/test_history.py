"""Which version was current at an LSN, and which nobody need keep any more."""

from __future__ import annotations

from dataclasses import replace

import pytest

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor, from_wire
from leasehold.catalog.elements import Column
from leasehold.catalog.history import Ended, History, ended_before
from leasehold.catalog.states import State
from leasehold.model.errors import NotCoherent, SnapshotTooOld, UnknownTable
from leasehold.model.records.log import DescriptorWrite, MinVersion
from leasehold.values.types import Type
from tests.support.descriptors import with_state

V1 = Descriptor(1, "t", 1, (Column(1, "id", Type("bigint"), nullable=False),), (1,))
V2 = replace(V1, version=2, name="u", alias="t")
V3 = replace(V1, version=3, name="u")
GONE = replace(V3, version=4, state=State.ABSENT)
LATER = replace(V1, table_id=2)


def catalog() -> Catalog:
    """t: 1 at LSN 10, called u from 20, u alone from 30, dropped at 40; another t from 50 on."""
    made = Catalog()
    for descriptor in (V1, V2, V3, GONE):
        lsn = 10 * descriptor.version
        body = descriptor.to_wire()
        made.apply(DescriptorWrite(1, descriptor.version, body), lsn * 1_000, lsn)
        made.apply(MinVersion(1, descriptor.version), lsn * 1_000 + 1, lsn + 1)
    made.apply(DescriptorWrite(2, 1, LATER.to_wire()), 50_000, 50)
    return made


def history(made: Catalog, floor_lsn: int = 0) -> History:
    return History([made.versions(1), made.versions(2)], floor_lsn, 60)


@pytest.mark.parametrize(
    ("name", "lsn", "found"),
    [
        ("t", 10, (1, 1)),
        ("t", 19, (1, 1)),
        ("t", 20, (1, 2)),
        ("u", 20, (1, 2)),
        ("u", 39, (1, 3)),
        ("t", 50, (2, 1)),
        ("t", 60, (2, 1)),
    ],
)
def test_a_table_is_what_had_the_name_then_as_it_was_then(
    name: str, lsn: int, found: tuple[int, int]
) -> None:
    descriptor = history(catalog()).table_at(name, lsn)
    assert (descriptor.table_id, descriptor.version) == found


@pytest.mark.parametrize(("name", "lsn"), [("t", 9), ("u", 10), ("t", 30), ("u", 40), ("t", 49)])
def test_a_name_that_nothing_had_then(name: str, lsn: int) -> None:
    with pytest.raises(UnknownTable, match=f"'{name}' did not exist at LSN {lsn}"):
        history(catalog()).table_at(name, lsn)


def test_before_the_floor_and_ahead_of_the_newest_nothing_is_told() -> None:
    told = history(catalog(), floor_lsn=20)
    assert told.table_at("t", 20).version == 2
    with pytest.raises(SnapshotTooOld, match="before LSN 20 is no longer kept") as raised:
        told.table_at("t", 19)
    assert raised.value.sqlstate == "72000"
    with pytest.raises(NotCoherent, match="61 lies ahead: 60"):
        told.table_at("t", 61)


def test_what_was_replaced_long_ago_and_can_not_be_used_may_go_oldest_first() -> None:
    made = catalog()
    assert made.ended_before(20_001) == [Ended(1, 1, 20)]
    assert made.ended_before(20_000) == [], "replaced at that time, not before"
    all_of_it = [Ended(1, 1, 20), Ended(1, 2, 30), Ended(1, 3, 40)]
    assert made.ended_before(10**9) == all_of_it, "never the newest, an absent one either"
    assert list(ended_before(made.versions(1), 2, 10**9)) == all_of_it[:1], "D5: 2 may be in use"


def test_a_catalog_forgets_and_is_loaded_without_what_it_forgot() -> None:
    made = catalog()
    for ended in made.ended_before(30_001):
        made.forget(ended.table_id, ended.version)
    assert [d.version for d in made.versions(1)] == [3, 4]
    kept = [d.to_wire() for table in (1, 2) for d in made.versions(table)]
    loaded = Catalog.load(kept, {1: 4}, [], "")
    assert loaded.versions(1) == made.versions(1)
    assert [d.since_lsn for d in loaded.versions(1)] == [30, 40]
    assert loaded.next_table_id() == 3
    with pytest.raises(AssertionError, match="D5"):
        made.forget(2, 1)


def test_the_log_says_where_a_version_stands_and_a_store_keeps_it() -> None:
    kept = catalog().newest(2)
    assert kept.since_lsn == 50
    assert from_wire(kept.to_wire()).since_lsn == 50
    assert from_wire(LATER.to_wire()).since_lsn == 0, "written by an earlier program"
    assert with_state(kept, 1, State.WRITE_ONLY).since_lsn == 0
