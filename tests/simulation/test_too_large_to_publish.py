"""Nothing that can be committed is unpublishable; and what an earlier master has taken holds up
neither the changefeed nor a schema change.

Method: rows of 10 MB, which travel in the log as a few kilobytes behind zlib; the changefeed in
memory has the limit that Kafka's producer has for a message as it is before any packing.
"""

from __future__ import annotations

import pytest

from leasehold.adapters.codec.published import restore_image
from leasehold.adapters.codec.records import MessagePackCodec, restore_row_key
from leasehold.catalog.job import Status
from leasehold.events.rows import decode_row
from leasehold.model.records.events import RowImage, RowLeftOut
from leasehold.model.records.jobs import JobEvent
from leasehold.model.records.requests import Outcome
from leasehold.model.topics import PUBLISHED_BYTES_MAX
from leasehold.replication.master import batch_limits
from tests.simulation.stage import Stage

CODEC = MessagePackCodec()
TEXTS = 40
TEXT = "x" * 250_000
TABLE = "create table w (id bigint primary key, a bigint, {})".format(
    ", ".join(f"t{n} text" for n in range(TEXTS))
)

MANY_DEFAULTS = "alter table s {}".format(
    ", ".join(f"add column c{n} text default repeat('x', 250000)" for n in range(10))
)


def insert(stage: Stage, key: int, texts: int, **values: int) -> Outcome:
    row = {**{f"t{n}": TEXT for n in range(texts)}, **values}
    return stage.settle(
        {"table": "w", "op": "insert", "key": {"id": key}, "values": row, "on_conflict": "fail"}
    )


def update(stage: Stage, key: int, **values: int | str) -> Outcome:
    asked = {"table": "w", "op": "update", "key": {"id": key}, "values": values}
    return stage.settle({**asked, "on_conflict": "fail"})


def table_id(stage: Stage) -> int:
    assert stage.master is not None
    assert stage.master.node is not None
    return next(t.table_id for t in stage.master.node.catalog.tables() if t.name == "w")


def images(stage: Stage) -> dict[int, RowImage | RowLeftOut]:
    """The newest of each row, when all is published."""
    stage.passing(2_000)
    topic = stage.cluster.topics.rows(table_id(stage))
    found: dict[int, RowImage | RowLeftOut] = {}
    for partition in range(topic.partitions):
        for message in stage.cluster.bus.read(topic.name, partition):
            key = restore_row_key(message.key)
            if message.value is None:
                found.pop(key[0], None)
            else:
                image = restore_image(key, message.value)
                assert isinstance(image, RowImage | RowLeftOut)
                found[key[0]] = image
    return found


def ended(stage: Stage, sql: str) -> tuple[Status, str]:
    job = stage.settle({"sql": sql}).answer["job"]
    stage.until(lambda: stage.job(job).status.ended, "the job's end")
    return stage.job(job).status, stage.job(job).error


@pytest.fixture
def earlier(monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Its log has a row that no message has room for, taken by a master that did not look."""
    stage = Stage()
    stage.settle({"sql": TABLE})
    with monkeypatch.context() as before:
        before.setattr(batch_limits, "PUBLISHED_BYTES_MAX", 1 << 40)
        assert insert(stage, 1, TEXTS, a=1).lsn
    assert insert(stage, 2, 1, a=2).lsn
    return stage


def test_a_row_that_no_message_has_room_for_is_refused_with_its_table_and_key() -> None:
    stage = Stage()
    stage.settle({"sql": TABLE})
    refused = insert(stage, 7, TEXTS)
    assert refused.code == "54000"
    assert "row (7,) of table 'w' would have 10000" in refused.message
    assert insert(stage, 7, TEXTS // 2).lsn
    assert isinstance(images(stage)[7], RowImage)


def test_the_row_as_it_will_be_counts_and_not_the_change() -> None:
    """A small change may be what makes a row too large."""
    stage = Stage()
    stage.settle({"sql": TABLE})
    fitting = (PUBLISHED_BYTES_MAX - 1_000) // len(TEXT)
    assert insert(stage, 1, fitting).lsn
    refused = update(stage, 1, **{f"t{fitting}": TEXT})
    assert refused.code == "54000"
    assert "row (1,) of table 'w'" in refused.message
    assert update(stage, 1, a=5).lsn


def test_rows_that_fit_one_by_one_may_be_more_together() -> None:
    stage = Stage()
    stage.settle({"sql": TABLE})
    rows = [
        {
            "table": "w",
            "op": "insert",
            "key": {"id": key},
            "values": {f"t{n}": TEXT for n in range(TEXTS // 2)},
        }
        for key in (1, 2, 3)
    ]
    assert stage.settle({"transaction": rows, "on_conflict": "fail"}).lsn
    assert images(stage).keys() == {1, 2, 3}


def test_the_changefeed_goes_on_behind_a_row_that_is_too_large(earlier: Stage) -> None:
    """It is told as one that is there: with its key, genids, LSN, version and size."""
    found = images(earlier)
    assert isinstance(found[2], RowImage)
    left_out = found[1]
    assert isinstance(left_out, RowLeftOut)
    assert left_out.key == (1,)
    assert left_out.image_bytes > 10_000_000
    assert left_out.lsn == found[2].lsn - 1
    assert left_out.genids.keys() == found[2].genids.keys()
    assert earlier.master is not None
    assert earlier.master.node is not None
    table = next(t for t in earlier.master.node.catalog.tables() if t.name == "w")
    row = decode_row(table, left_out.key, left_out)  # as a subscriber reads it
    assert (row.values, row.left_out_bytes) == ({"id": 1}, left_out.image_bytes)


def test_such_a_row_is_made_smaller_or_deleted(earlier: Stage) -> None:
    assert update(earlier, 1, a=9).code == "54000"
    assert update(earlier, 1, **{f"t{n}": "" for n in range(TEXTS // 2)}).lsn
    assert isinstance(images(earlier)[1], RowImage)
    assert earlier.settle({"table": "w", "op": "delete", "key": {"id": 1}}).lsn
    assert images(earlier).keys() == {2}


@pytest.mark.parametrize(
    "sql",
    [
        "create unique index u on w (a, t0)",
        "alter table w add constraint c check (a < 5 and t39 <> 'y')",
        "alter table w alter column a set not null",
    ],
)
def test_a_schema_change_over_such_a_row_ends(earlier: Stage, sql: str) -> None:
    assert ended(earlier, sql) == (Status.SUCCEEDED, "")


def test_a_constraint_that_such_a_row_breaks_fails_with_its_key(earlier: Stage) -> None:
    status, error = ended(earlier, "alter table w add constraint c check (length(t39) < 9)")
    assert status is not Status.SUCCEEDED
    assert "row (1,)" in error


def test_a_schema_change_that_no_message_has_room_for_is_refused() -> None:
    """A job is published whole at each step; a default may be long and its text short."""
    stage = Stage()
    stage.settle({"sql": "create table s (id bigint primary key)"})
    outcome = stage.settle({"sql": MANY_DEFAULTS, "on_conflict": "fail"})
    assert outcome.code == "54000"
    assert "the schema change is described in" in outcome.message
    assert ended(stage, "alter table s add column c text default repeat('x', 250000)")[0] == (
        Status.SUCCEEDED
    )


def test_the_changefeed_goes_on_behind_a_job_that_is_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage()
    stage.settle({"sql": "create table s (id bigint primary key)"})
    with monkeypatch.context() as before:
        before.setattr(batch_limits, "CATALOG_BYTES_MAX", 1 << 40)
        job = stage.settle({"sql": MANY_DEFAULTS}).answer["job"]
    stage.until(lambda: stage.job(job).status.ended, "the job's end")
    assert stage.job(job).status is Status.SUCCEEDED
    stage.passing(2_000)
    told = [
        CODEC.decode_as(JobEvent, message.value)
        for message in stage.cluster.bus.read(stage.cluster.topics.jobs.name)
        if message.key == b"job/%d" % job and message.value is not None
    ]
    assert told[-1].body["status"] == Status.SUCCEEDED.value
    assert stage.settle(stage.update(1, 5)).lsn


def test_a_job_names_rows_of_long_keys_by_their_beginning() -> None:
    """Up to twenty rows stand in a job and in the record of each of its steps."""
    stage = Stage()
    stage.settle({"sql": "create table k (id text primary key, a bigint)"})
    for number in range(8):
        row = {"key": {"id": f"{number:02}" + "€" * 150_000}, "values": {"a": 0}}
        assert stage.settle({"table": "k", "op": "insert", **row}).lsn
    job = stage.settle({"sql": "create index i on k ((1 / a))"}).answer["job"]
    stage.until(lambda: stage.job(job).status.ended, "the job's end")
    found = stage.job(job)
    assert found.status is not Status.SUCCEEDED
    keys = [key[0] for _, _, key, _ in found.findings]
    assert keys == [f"{number:02}" + "€" * 998 for number in range(len(keys))]
    assert keys
    assert len(CODEC.encode(JobEvent(job, 1, 1, found.to_wire()))) < 200_000
