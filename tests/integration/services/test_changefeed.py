"""Goal: killed at any point, the changefeed publishes every image exactly once (L6).

Method: a synthetic log on a real broker, real processes ended by SIGKILL at moments that its own
output chooses, and a `read_committed` reader that compares the whole of what was published.
"""

from __future__ import annotations

import random
import time
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from infra.local_cluster import LocalCluster
from leasehold.adapters.codec.published import restore_image
from leasehold.adapters.codec.records import restore_row_key, row_key
from leasehold.adapters.kafka.admin import TopicAdmin
from leasehold.adapters.kafka.reader import Record, TopicReader
from leasehold.adapters.kafka.transaction import Fenced, TransactionWriter
from leasehold.adapters.kafka.whole_topic import read_compacted
from leasehold.adapters.kafka.writer import BY_KEY
from leasehold.catalog.job import Phase, Status
from leasehold.changefeed.publisher import Publisher
from leasehold.model.errors import BusUnavailable
from leasehold.model.records.events import RowImage, RowLeftOut, VersionEvent
from leasehold.model.records.jobs import ChangefeedReport, JobEvent
from leasehold.model.records.log import (
    ChangeKind,
    Decisions,
    Disposition,
    JobForgotten,
    JobWrite,
    LogPosition,
    RowChange,
    TableForgotten,
)
from leasehold.model.topics import PUBLISHED_BYTES_MAX, Topics
from leasehold.settings.changefeed import ChangefeedSettings
from leasehold.settings.environment import KafkaSettings
from tests.support.changefeed.changefeed_process import (
    CODEC,
    DEADLINE_S,
    append,
    changefeed,
    has_stored,
    published,
    stored_position,
    wait_until,
)
from tests.support.changefeed.made_log import MadeLog, job
from tests.support.cluster.secure_suite import access_of

KILLS = 7


@pytest.fixture
def settings(kafka: KafkaSettings) -> KafkaSettings:
    return kafka


@pytest.fixture
def access(servers: LocalCluster, database: str) -> dict[str, str]:
    return access_of(servers, "changefeed", database)


def rows_written(ends: TopicReader, topics: Topics) -> int:
    """Records in the rows topics, those of open transactions and markers included."""
    written = 0
    for table_id in (1, 2):
        name = topics.rows(table_id).name
        with suppress(BusUnavailable):  # not created yet
            written += sum(ends.end_offset(name, p) for p in range(ends.partitions(name)))
    return written


def has_written(ends: TopicReader, topics: Topics, enough: int, log: MadeLog) -> bool:
    return rows_written(ends, topics) >= min(enough, len(log.rows))


def by_key(rows: list[Any]) -> dict[Any, list[Any]]:
    found: dict[Any, list[Any]] = {}
    for table_id, key, lsn, values in rows:
        found.setdefault((table_id, key), []).append(values if values is None else (lsn, values))
    return found


def images(records: list[Record], table_of: dict[str, int]) -> list[Any]:
    rows: list[Any] = []
    for record in records:
        assert record.key is not None
        key = restore_row_key(record.key)
        if record.value is None:
            rows.append((table_of[record.topic], key, 0, None))
        else:
            image = CODEC.decode_as(RowImage, record.value)
            assert image.key == key
            rows.append((image.table_id, key, image.lsn, image.values))
    return rows


def made_log(seed: int, batches: int) -> MadeLog:
    log = MadeLog(seed)
    log.claim()
    log.create_table(1)
    log.create_table(2)
    for number in range(batches):
        log.write_rows(log.random.choice((1, 2)), commits=log.random.randint(1, 8), keys=40)
        if number % 17 == 3:
            log.barrier()
        if number % 23 == 5:
            log.claim()
            log.stale()
        if number % 29 == 7:
            log.refuse(Disposition.DEAD_LETTER)
        if number % 31 == 9:
            log.refuse(Disposition.FINAL)
    log.run_job(7, 1, chunks=5)
    return log


@pytest.mark.long("16 s; feeds, of the same process, meet the same kills in make test")
@pytest.mark.slow
def test_l6_killed_again_and_again_it_publishes_every_image_once(
    settings: KafkaSettings, access: dict[str, str], topics: Topics, tmp_path: Path
) -> None:
    log = made_log(seed=5, batches=600)
    moments = random.Random(17)
    append(settings, topics, log)
    ends = TopicReader(settings, "test-ends")
    kills = 0
    for _ in range(KILLS):
        # Die when so many more records, committed or not, stand in the rows topics.
        enough = rows_written(ends, topics) + moments.randint(1, 600)
        with changefeed(access, topics, tmp_path) as process:
            wait_until(partial(has_written, ends, topics, enough, log), process, tmp_path)
        kills += stored_position(settings, topics).offset < len(log.records)
    assert kills >= 3, "the log was too short to be killed in"
    with changefeed(access, topics, tmp_path) as process:
        wait_until(partial(has_stored, settings, topics, log), process, tmp_path)
    ends.close()
    names = {topics.rows(1).name: 1, topics.rows(2).name: 2}
    found = images(published(settings, *names), names)
    # Partitions keep the order of each key, so this compares order and counts alike.
    assert by_key(found) == by_key(log.rows)
    events = [
        CODEC.decode_as(JobEvent, r.value)
        for r in published(settings, topics.jobs.name)
        if r.value is not None and r.key == b"job/7"
    ]
    assert [e.body["rows_read"] for e in events] == [0, 100, 200, 300, 400, 500]
    own_words = [
        CODEC.decode_as(ChangefeedReport, r.value)
        for r in published(settings, topics.jobs.name)
        if r.value is not None and r.key == b"changefeed"
    ]
    offsets = [each.offset for each in own_words]
    assert len(offsets) >= kills, "each process says that it is at work"
    assert offsets == sorted(offsets)
    assert offsets[-1] <= len(log.records)
    for name in (topics.versions.name, topics.versions_history.name):
        versions = [
            CODEC.decode_as(VersionEvent, r.value)
            for r in published(settings, name)
            if r.value is not None
        ]
        assert [(v.table_id, v.version, v.job_id) for v in versions] == [
            (1, 1, 0),
            (2, 1, 0),
            (1, 2, 7),
        ]
    dead = published(settings, topics.dead_letter.name)
    expected = [
        r.refusals[0].request_id
        for _, r in log.records
        if isinstance(r, Decisions)
        and any(refusal.disposition is Disposition.DEAD_LETTER for refusal in r.refusals)
    ]
    assert [r.key for r in dead] == expected


def test_a_stopped_changefeed_has_published_and_stored_what_it_read(
    settings: KafkaSettings, access: dict[str, str], topics: Topics, tmp_path: Path
) -> None:
    log = made_log(seed=6, batches=20)
    append(settings, topics, log)
    with changefeed(access, topics, tmp_path) as process:
        wait_until((tmp_path / "ready").exists, process, tmp_path)
        wait_until(partial(has_stored, settings, topics, log), process, tmp_path)
        process.terminate()
        assert process.wait(DEADLINE_S) == 0
    before = stored_position(settings, topics)
    assert (before.lsn, before.digest) == (log.lsn, log.digest)
    more = len(log.records)
    log.write_rows(1, commits=3, keys=40)
    append(settings, topics, log, more)
    with changefeed(access, topics, tmp_path) as process:
        wait_until(partial(has_stored, settings, topics, log), process, tmp_path)
    names = {topics.rows(1).name: 1, topics.rows(2).name: 2}
    assert by_key(images(published(settings, *names), names)) == by_key(log.rows)


def test_it_goes_on_behind_rows_that_are_too_large(
    settings: KafkaSettings, access: dict[str, str], topics: Topics, tmp_path: Path
) -> None:
    """Kafka's producer and broker take the largest row that is told whole, of bytes that nothing
    makes fewer, and of one byte more what stands for it; a commit of 40 MB is a few kilobytes."""
    log = MadeLog(9)
    log.claim()
    log.create_table(1)
    head = len(
        CODEC.encode(RowImage(1, (1,), {0: 9 << 20}, 9, 1, log.commit_us, {3: b"x" * 70_000}))
    )
    room = PUBLISHED_BYTES_MAX - (head - 70_000) - len(row_key((1,)))
    rows = {
        1: log.random.randbytes(room - 16),
        2: log.random.randbytes(room + 16),
        3: "x" * 40_000_000,
        4: "y",
    }
    for key, value in rows.items():
        change = RowChange(ChangeKind.INSERT, 1, 1, (key,), {1: key, 3: value}, {}, (0,))
        log.decide((log.commit((change,)),))
    append(settings, topics, log)
    with changefeed(access, topics, tmp_path) as process:
        wait_until(partial(has_stored, settings, topics, log), process, tmp_path)
    found = {}
    for record in published(settings, topics.rows(1).name):
        assert record.key is not None
        assert record.value is not None
        (key,) = restore_row_key(record.key)
        found[key] = restore_image((key,), record.value)
    assert [type(found[key]) for key in rows] == [RowImage, RowLeftOut, RowLeftOut, RowImage]
    left_out = found[3]
    assert isinstance(left_out, RowLeftOut)
    assert left_out.image_bytes > 40_000_000


def test_a_job_of_megabytes_is_published(
    settings: KafkaSettings, access: dict[str, str], topics: Topics, tmp_path: Path
) -> None:
    """A broker refuses what is larger than a segment of its topic, and those of jobs and versions
    are small: whoever publishes it would begin anew for ever."""
    log = MadeLog(10)
    log.claim()
    log.create_table(1)
    text = log.random.randbytes(3 << 19).hex()
    log.decide((log.commit(catalog=(JobWrite(3, {**job(3, 1, 2).to_wire(), "sql": text}),)),))
    append(settings, topics, log)
    with changefeed(access, topics, tmp_path) as process:
        wait_until(partial(has_stored, settings, topics, log), process, tmp_path)
    values = read_compacted(settings, "jobs", topics.jobs.name).values()
    told = [CODEC.decode(value) for value in values]
    assert [each.body["sql"] == text for each in told if isinstance(each, JobEvent)] == [True]


def test_what_nobody_waits_for_shares_the_transaction_of_what_somebody_does(
    settings: KafkaSettings, topics: Topics
) -> None:
    log = MadeLog(8)
    log.claim()
    log.create_table(1)
    without_rows = len(log.records)
    for _ in range(30):
        log.write_rows(1, commits=1, keys=40)
    backfilling = job(3, 1, 2)
    step = next(number for number, each in enumerate(backfilling.steps) if each.backfills)
    begun = job(3, 1, 2, step=step, phase=Phase.BACKFILLING)
    log.decide((log.commit(catalog=(JobWrite(3, begun.to_wire()),)),))
    stop = Event()
    patient = ChangefeedSettings(linger_ms=3_600_000)
    with Publisher(settings, topics, patient, stop.is_set) as publisher:
        publisher.open()
        running = Thread(target=publisher.run)
        running.start()
        try:
            append(settings, topics, log)
            give_up = time.monotonic() + DEADLINE_S
            while not has_stored(settings, topics, log):
                assert time.monotonic() < give_up, "the job's event waited with the others"
        finally:
            stop.set()
            running.join()
    (name,) = names = {topics.rows(1).name: 1}
    assert by_key(images(published(settings, name), names)) == by_key(log.rows)
    positions = [
        CODEC.decode_as(LogPosition, record.value).offset
        for record in published(settings, topics.changefeed.name)
        if record.value is not None
    ]
    assert all(at <= without_rows or at == len(log.records) for at in positions), positions


def test_what_the_log_forgets_is_gone_from_the_broker(
    settings: KafkaSettings, access: dict[str, str], topics: Topics, tmp_path: Path
) -> None:
    """Keys and rows topic of a table that was dropped, keys of a job. Killed at the moment when the
    keys are gone, the next process deletes the topic."""
    log = MadeLog()
    log.claim()
    for table_id in (1, 2):
        log.create_table(table_id)
        log.write_rows(table_id, commits=3, keys=5)
    ended = job(7, 1, 2, run=1, status=Status.SUCCEEDED, phase=Phase.DONE)
    log.decide((log.commit(catalog=(JobWrite(7, ended.to_wire()),)),))
    append(settings, topics, log)
    with changefeed(access, topics, tmp_path) as process:
        wait_until(lambda: has_stored(settings, topics, log), process, tmp_path)
    assert read_compacted(settings, "test", topics.versions.name).keys() == {b"1", b"2"}
    first = len(log.records)
    log.decide((log.commit(catalog=(JobForgotten(7), TableForgotten(1))),))
    append(settings, topics, log, first)
    admin = TopicAdmin(settings, "test")

    def is_there(table_id: int) -> bool:
        try:
            admin.topic_id(topics.rows(table_id).name)
        except BusUnavailable:
            return False
        return True

    with closing(Publisher(settings, topics, ChangefeedSettings(), lambda: False)) as publisher:
        publisher.open()
        while not publisher._gone._new:
            publisher._take()
        publisher._publish()  # and it ends before it has deleted anything
    assert read_compacted(settings, "test", topics.versions.name).keys() == {b"2"}
    jobs = read_compacted(settings, "test", topics.jobs.name)
    assert not any(key.startswith((b"job/", b"progress/")) for key in jobs)
    assert b"gone/1" in read_compacted(settings, "test", topics.changefeed.name)
    assert is_there(1)
    with changefeed(access, topics, tmp_path) as process:
        wait_until(lambda: not is_there(1), process, tmp_path)
        gone = partial(read_compacted, settings, "test", topics.changefeed.name)
        wait_until(lambda: b"gone/1" not in gone(), process, tmp_path)
    assert is_there(2)


def test_a_newer_changefeed_fences_the_older_one(settings: KafkaSettings, topics: Topics) -> None:
    """A zombie must not put an old image over a new one in a compacted topic."""
    older = TransactionWriter(settings, "older", f"leasehold-changefeed-{topics.database}")
    older.open()
    older.begin()
    older.send(topics.versions.name, BY_KEY, b"1", b"old")
    newer = TransactionWriter(settings, "newer", f"leasehold-changefeed-{topics.database}")
    newer.open()
    with pytest.raises(Fenced, match="Run only one"):
        older.commit()
    newer.begin()
    newer.send(topics.versions.name, BY_KEY, b"1", b"new")
    newer.commit()
    assert [r.value for r in published(settings, topics.versions.name)] == [b"new"]
    older.close()
    newer.close()


def test_a_transaction_that_kafka_ended_by_time_is_not_taken_for_a_takeover(
    settings: KafkaSettings, topics: Topics
) -> None:
    """Kafka's words are those of a newer process, and who ends for good on them needs hands after
    any outage that held a transaction up."""
    late = TransactionWriter(settings, "late", f"late-{topics.database}", timeout_ms=1000)
    late.open()
    late.begin()
    late.send(topics.versions.name, BY_KEY, b"1", b"late")
    await_record(settings, topics.versions.name, read_committed=False)
    behind = TransactionWriter(settings, "behind", f"behind-{topics.database}")
    behind.open()
    behind.begin()
    behind.send(topics.versions.name, BY_KEY, b"1", b"behind")
    behind.commit()
    await_record(settings, topics.versions.name, read_committed=True)  # nothing open before it
    with pytest.raises(BusUnavailable, match="longer than 1000 ms") as raised:
        late.commit()
    assert not isinstance(raised.value, Fenced)
    late.close()
    behind.close()
    again = TransactionWriter(settings, "late", f"late-{topics.database}")
    again.open()
    again.begin()
    again.send(topics.versions.name, BY_KEY, b"1", b"again")
    again.commit()
    again.close()
    assert [r.value for r in published(settings, topics.versions.name)] == [b"behind", b"again"]


def await_record(settings: KafkaSettings, name: str, *, read_committed: bool) -> None:
    with closing(TopicReader(settings, "test-await", read_committed=read_committed)) as reader:
        reader.start(name, 0, 0)
        give_up = time.monotonic() + DEADLINE_S
        while not reader.read(10, 0.1):
            assert time.monotonic() < give_up


def test_an_aborted_transaction_leaves_nothing_and_the_next_goes_on(
    settings: KafkaSettings, topics: Topics
) -> None:
    """Scenario 33, `aborted_kafka_txn_in_log`, of what the changefeed writes in transactions."""
    writer = TransactionWriter(settings, "test", f"test-{topics.database}")
    writer.open()
    for number in range(10):
        writer.begin()
        writer.send(topics.versions.name, BY_KEY, b"1", b"no")
        writer.abort()  # at once: librdkafka #4849
        writer.begin()
        writer.send(topics.versions.name, BY_KEY, b"1", b"%d" % number)
        writer.commit()
    writer.close()
    found = [r.value for r in published(settings, topics.versions.name)]
    assert found == [b"%d" % number for number in range(10)]


def test_a_contradicting_log_ends_the_changefeed_with_a_reason(
    settings: KafkaSettings, access: dict[str, str], topics: Topics, tmp_path: Path
) -> None:
    log = made_log(seed=8, batches=5)
    del log.records[5]
    append(settings, topics, log)
    with changefeed(access, topics, tmp_path) as process:
        assert process.wait(DEADLINE_S) == 1
    last = (tmp_path / "log").read_text().splitlines()[-1]
    assert "ERROR" in last
    assert "L2" in last


def test_without_a_broker_it_waits_until_it_is_stopped(tmp_path: Path) -> None:
    nowhere = KafkaSettings(bootstrap="127.0.0.1:1")
    asked = iter([False, False, True])
    publisher = Publisher(
        nowhere, Topics("nowhere"), ChangefeedSettings(), lambda: next(asked, True)
    )
    with pytest.raises(BusUnavailable, match=nowhere.bootstrap):
        publisher.open()
    publisher.close()
    assert next(asked, None) is None
