"""Goal: whatever others write to the topics that a changefeed goes on from, it finds its place and
its jobs, or says that it can't; it begins anew by no mistake."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.changefeed.read_back import POSITION_KEY, keep_newest, read_jobs, read_position
from leasehold.model.errors import LogStopped
from leasehold.model.records.jobs import JobEvent, SparkReport
from leasehold.model.records.log import LogPosition
from tests.support.schema_change.made_job import index_job

CODEC = MessagePackCodec()
GARBAGE = (b"", b"\xff" * 9, b"{}", CODEC.encode(SparkReport(1, "")))
HERE = CODEC.encode(LogPosition(offset=7, lsn=3))
BEFORE_THE_LOG = CODEC.encode(LogPosition(offset=-1))


class Record(NamedTuple):
    offset: int
    key: bytes | None
    value: bytes | None


def stored(*records: tuple[bytes | None, bytes | None]) -> list[Record]:
    return [Record(number, *record) for number, record in enumerate(records)]


@pytest.mark.parametrize("garbage", [*GARBAGE, None, BEFORE_THE_LOG])
def test_l6_the_newest_place_that_can_be_read_counts(garbage: bytes | None) -> None:
    records = stored((POSITION_KEY, HERE), (POSITION_KEY, garbage), (b"gone/1", b"1"), (None, b""))
    assert read_position(records) == LogPosition(offset=7, lsn=3)


def test_l6_without_a_record_the_log_is_read_from_its_start() -> None:
    assert read_position(stored((b"other", b"x"))) == LogPosition()


@pytest.mark.parametrize("garbage", [*GARBAGE, None, BEFORE_THE_LOG])
def test_l6_where_no_place_can_be_read_it_does_not_begin_anew(garbage: bytes | None) -> None:
    """Old images would come after new ones."""
    with pytest.raises(LogStopped, match="1 records under 'position'"):
        read_position(stored((POSITION_KEY, garbage)))


def test_of_each_key_the_newest_value_is_kept_and_no_other() -> None:
    records = stored((b"gone/1", b"1"), (POSITION_KEY, HERE), (None, b"x"), (b"gone/1", None))
    newest: dict[bytes, bytes | None] = {}
    assert read_position(keep_newest(iter(records), newest)) == LogPosition(offset=7, lsn=3)
    assert newest == {b"gone/1": None, POSITION_KEY: HERE}


@pytest.mark.parametrize("garbage", GARBAGE)
def test_a_job_is_as_its_newest_event_that_can_be_read_says(garbage: bytes) -> None:
    job = index_job(3, 1)
    event = CODEC.encode(JobEvent(job.job_id, 1, 1, job.to_wire()))
    nothing = CODEC.encode(JobEvent(job.job_id, 2, 2, {"id": job.job_id}))
    key = b"job/%d" % job.job_id
    others = [(b"job/" + b"9" * 5_000, event), (b"job/x", event), (b"job/-1", event)]
    records = stored((key, event), (key, garbage), (key, nothing), (b"job/77", event), *others)
    (body,) = read_jobs(records)
    assert body["id"] == job.job_id
    assert read_jobs([*records, Record(99, key, None)]) == []
