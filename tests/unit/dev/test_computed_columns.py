"""A column that follows others, in a whole database: no row gets a new image, and whoever reads the
old ones has what nodes have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from leasehold.adapters.codec.records import MessagePackCodec, restore_row_key
from leasehold.adapters.sqlite.range_backfills import DIRECT_ROWS_MAX
from leasehold.catalog.job import Status
from leasehold.dev.database import DevDatabase
from leasehold.events.rows import decode_row
from leasehold.model.keys import Key
from leasehold.model.records.events import RowImage

ROWS: Final = DIRECT_ROWS_MAX + 500
"""So many that a range is filled between records, and not at its position."""
CODEC: Final = MessagePackCodec()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[DevDatabase]:
    dev = DevDatabase(tmp_path)
    try:
        dev.wait_ready()
        yield dev
    finally:
        dev.close()


def change(database: DevDatabase, sql: str) -> None:
    answer = database.ask({"sql": sql})
    job_id = answer.outcome.answer["job"]
    job = database.wait_job(job_id)
    assert job is not None
    assert (job.status, job.error) == (Status.SUCCEEDED, "")


def images(database: DevDatabase) -> dict[Key, RowImage]:
    """The last image of each row of table 1, and none of any row that is gone."""
    found: dict[Key, RowImage] = {}
    topic = database.cluster.topics.rows(1)
    for partition in range(topic.partitions):
        for message in database.cluster.bus.read(topic.name, partition):
            key = restore_row_key(message.key)
            if message.value is None:
                found.pop(key, None)
                continue
            image = CODEC.decode(message.value)
            assert isinstance(image, RowImage)
            found[key] = image
    return found


def told(database: DevDatabase) -> int:
    """How many images there are in all."""
    topic = database.cluster.topics.rows(1)
    ends = (database.cluster.bus.end(topic.name, p) for p in range(topic.partitions))
    return sum(ends)


def read(database: DevDatabase) -> list[tuple[Any, Any]]:
    """Of each row what a reader of images finds, and what a node has."""
    (table,) = (t for t in database.tables() if t.table_id == 1)
    found = []
    for key, image in images(database).items():
        seen = decode_row(table, key, image)
        found.append((seen.values, database.get("t", key)))
    return found


def filled(database: DevDatabase) -> None:
    database.ask({"sql": "create table t (id bigint primary key, n integer, b text)"})
    rows = [
        {"table": "t", "op": "insert", "key": {"id": key}, "values": {"n": key % 9, "b": "x"}}
        for key in range(ROWS)
    ]
    assert database.ask({"transaction": rows}).committed


def test_types_change_and_columns_come_without_an_image_of_a_row(database: DevDatabase) -> None:
    filled(database)
    before = told(database)
    change(database, "alter table t add column g text generated always as (b || id) stored")
    change(database, "alter table t alter column n type text")
    change(database, "alter table t alter column n type integer using n::integer + 1")
    assert told(database) == before, "nobody was told of a row"
    assert database.ask(
        {"table": "t", "op": "update", "key": {"id": 3}, "values": {"b": "y"}}
    ).committed
    assert told(database) == before + 1
    seen = read(database)
    assert len(seen) == ROWS
    assert [pair for pair in seen if pair[0] != pair[1]] == []
    row = {"id": 12, "n": 4, "b": "x", "g": "x12"}
    assert row in [values for values, _ in seen]
    assert database.check().differences == ()


def test_a_row_that_can_t_be_converted_ends_the_job_and_is_named(database: DevDatabase) -> None:
    filled(database)
    database.ask({"table": "t", "op": "update", "key": {"id": 7}, "values": {"b": "12"}})
    answer = database.ask({"sql": "alter table t alter column n type integer using 12 / n"})
    job = database.wait_job(answer.outcome.answer["job"])
    assert job is not None
    assert (job.status, job.code) == (Status.FAILED, "22012")
    assert "division by zero" in job.error
    assert "row (" in job.error
    assert "verifying" not in {phase for _, phase, _ in job.marks}, "where the backfill meets it"
    assert database.get("t", (9,)) == {"id": 9, "n": 0, "b": "x"}
    assert database.check().differences == ()
    change(database, "alter table t alter column n type text")
    assert all(seen == row for seen, row in read(database))


@pytest.mark.parametrize(
    "sql",
    [
        "alter table t alter column b type text using upper(b)",
        "alter table t add column at timestamp generated always as (timestamp '2026-01-01') stored",
    ],
)
def test_what_rests_on_more_than_values_is_told_by_images(database: DevDatabase, sql: str) -> None:
    filled(database)
    before = told(database)
    change(database, sql)
    assert told(database) == before + ROWS
    assert all(seen == row for seen, row in read(database))
