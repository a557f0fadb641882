"""Descriptors, jobs and the catalog: wire forms, versions without gaps, fences that only rise."""

from __future__ import annotations

from dataclasses import replace

import pytest

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor, from_wire
from leasehold.catalog.elements import Column, Index
from leasehold.catalog.job import Phase, Status, job_from_wire
from leasehold.catalog.states import State
from leasehold.model.errors import (
    StaleVersion,
    StoreCorrupted,
    UnknownColumn,
    UnknownTable,
    UnknownVersion,
)
from leasehold.model.records.log import (
    ChunkDecided,
    DescriptorWrite,
    JobWrite,
    LedgerRun,
    MinVersion,
)
from leasehold.values.types import Type
from tests.support.descriptors import with_state
from tests.support.schema_change.made_job import INDEX_ID, index_job

TABLE = Descriptor(
    table_id=4,
    name="t",
    version=1,
    columns=(
        Column(1, "id", Type("bigint"), nullable=False),
        Column(2, "a", Type("varchar", 5), default="x"),
        Column(3, "raw", Type("bytea"), default=b"\x00", state=State.WRITE_ONLY),
    ),
    primary_key=(1,),
    indexes=(Index(4, "i", (2, 1), unique=True, state=State.DELETE_ONLY),),
    next_element_id=5,
    modified_us=77,
)


def test_wire_form_is_read_back() -> None:
    assert from_wire(TABLE.to_wire()) == TABLE


def test_unknown_fields_of_newer_writers_are_ignored() -> None:
    body = {**TABLE.to_wire(), "later": 1}
    body["columns"][0]["later"] = 2
    assert from_wire(body) == TABLE


def test_element_that_is_not_public_can_not_be_named() -> None:
    assert TABLE.column("a").element_id == 2
    with pytest.raises(UnknownColumn):
        TABLE.column("raw")
    assert [column.name for column in TABLE.written] == ["id", "a", "raw"]


def test_with_state_moves_one_element_in_a_new_version() -> None:
    moved = with_state(TABLE, 4, State.WRITE_ONLY)
    assert (moved.version, moved.modified_us) == (2, 0)
    assert moved.indexes[0].state is State.WRITE_ONLY
    assert moved.columns == TABLE.columns
    gone = with_state(TABLE, 3, State.ABSENT)
    assert [column.element_id for column in gone.columns] == [1, 2]
    assert gone.next_element_id == 5
    with pytest.raises(AssertionError):
        with_state(TABLE, 9, State.PUBLIC)


JOB = index_job(
    2,
    4,
    request_id=b"r",
    step=1,
    backfill=0,
    phase=Phase.BACKFILLING,
    status=Status.PAUSED,
    versions={4: 3},
    run=2,
    fence_lsn=9,
    error="why",
    findings=((4, 4, "key", "words"),),
    settings={"chunk_rows": 7},
    created_us=1,
    marks=((0, "publishing", 1),),
)


def test_job_wire_form_is_read_back() -> None:
    assert job_from_wire(JOB.to_wire()) == JOB
    assert (JOB.current.label, JOB.element_id) == ("write-only", INDEX_ID)


def catalog() -> Catalog:
    made = Catalog()
    made.apply(DescriptorWrite(4, 1, TABLE.to_wire()), 100, 1)
    return made


def test_commit_time_is_the_time_of_modification() -> None:
    assert catalog().newest(4).modified_us == 100


def test_d1_versions_follow_without_a_gap() -> None:
    made = catalog()
    with pytest.raises(StoreCorrupted):
        made.apply(DescriptorWrite(4, 3, replace(TABLE, version=3).to_wire()), 1, 2)
    with pytest.raises(StoreCorrupted):
        made.apply(DescriptorWrite(4, 1, TABLE.to_wire()), 1, 2)
    made.apply(DescriptorWrite(4, 2, with_state(TABLE, 3, State.PUBLIC).to_wire()), 1, 2)
    assert [d.version for d in made.versions(4)] == [1, 2]


def test_d5_resolve_under_the_version_named() -> None:
    made = catalog()
    made.apply(DescriptorWrite(4, 2, with_state(TABLE, 3, State.PUBLIC).to_wire()), 1, 2)
    assert made.resolve("t").version == 2
    assert made.resolve("t", 1).version == 1
    for version in (0, -1, 3):
        with pytest.raises(UnknownVersion):
            made.resolve("t", version)
    with pytest.raises(UnknownTable):
        made.resolve("u")
    made.apply(MinVersion(4, 2), 1, 3)
    with pytest.raises(StaleVersion):
        made.resolve("t", 1)
    assert made.resolve("t", 2).version == 2


def test_d5_fence_only_rises_and_stays_below_the_newest() -> None:
    made = catalog()
    assert made.min_version(4) == 1
    with pytest.raises(AssertionError):
        made.apply(MinVersion(4, 2), 1, 2)
    made.apply(DescriptorWrite(4, 2, with_state(TABLE, 3, State.PUBLIC).to_wire()), 1, 2)
    made.apply(MinVersion(4, 2), 1, 3)
    with pytest.raises(AssertionError):
        made.apply(MinVersion(4, 1), 1, 4)


def test_chunks_of_the_run_are_counted_others_are_not() -> None:
    made = catalog()
    made.apply(JobWrite(2, JOB.to_wire()), 1, 2)
    made.apply(ChunkDecided(2, 2, 10, 8, False), 1, 3)
    made.apply(ChunkDecided(2, 1, 10, 10, True), 1, 4)
    assert (made.jobs[2].rows_read, made.jobs[2].rows_applied) == (10, 8)
    assert not made.jobs[2].chunks_ended
    made.apply(ChunkDecided(2, 2, 0, 0, True), 1, 5)
    assert made.jobs[2].chunks_ended


def test_load_gives_what_was_kept() -> None:
    made = catalog()
    made.apply(DescriptorWrite(4, 2, with_state(TABLE, 3, State.PUBLIC).to_wire()), 200, 2)
    made.apply(MinVersion(4, 2), 1, 3)
    made.apply(JobWrite(2, JOB.to_wire()), 1, 4)
    made.apply(LedgerRun("run"), 1, 5)
    loaded = Catalog.load(
        [d.to_wire() for d in made.versions(4)], {4: 2}, [JOB.to_wire()], made.ledger_run
    )
    assert loaded.versions(4) == made.versions(4)
    assert (loaded.min_version(4), loaded.jobs, loaded.ledger_run) == (2, made.jobs, "run")
    assert loaded.table_names() == {"t"}
    assert (loaded.next_table_id(), loaded.next_job_id()) == (5, 3)
