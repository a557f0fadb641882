"""Goal: what the Kafka adapters promise, against a real broker.

Method: one topic per test; every wait is for an event, with a deadline.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError

from infra.ports import Ports
from leasehold.adapters.kafka import request_transport
from leasehold.adapters.kafka.admin import TopicAdmin, id_in
from leasehold.adapters.kafka.client import ClientWatch
from leasehold.adapters.kafka.log_identity import log_offsets
from leasehold.adapters.kafka.reader import END, FIRST, Record, TopicReader
from leasehold.adapters.kafka.request_transport import KafkaRequestTransport
from leasehold.adapters.kafka.transaction import TransactionWriter
from leasehold.adapters.kafka.whole_topic import read_compacted
from leasehold.adapters.kafka.writer import BY_KEY, Delivery, TopicWriter, log_writer
from leasehold.model.errors import BusUnavailable, ConfigurationError, LogStopped
from leasehold.model.records.log import Barrier, LogPosition, LogRecord
from leasehold.model.topics import MESSAGE_BYTES_MAX, Topic
from leasehold.replication.log.admission import Verdict, admit
from leasehold.replication.log.identity import NO_ID
from leasehold.settings.environment import KafkaSettings
from tests.support.cluster.broker_talk import DEADLINE_S, read, told
from tests.support.cluster.system_cluster import until
from tests.support.replication.made_records import CODEC, M1, M2, claim, decisions, digest


def test_records_arrive_in_order_with_everything_they_carry(
    reader: TopicReader, writer: TopicWriter, new_topic: Callable[..., str]
) -> None:
    topic = new_topic()
    headers = [("content-type", b"application/json")]
    for number in range(500):
        writer.send(topic, 0, b"key", b"%d" % number, headers, token=number)
    deliveries = told(writer, 500)
    assert [(d.token, d.offset, d.error) for d in deliveries] == [(n, n, None) for n in range(500)]
    reader.start(topic, 0, 0)
    records = read(reader, 500)
    assert [(r.offset, r.value) for r in records] == [(n, b"%d" % n) for n in range(500)]
    assert {(r.topic, r.partition, r.key, r.content_type) for r in records} == {
        (topic, 0, b"key", "application/json")
    }
    assert reader.end_offset(topic, 0) == 500


def test_a_writer_may_be_told_of_failures_alone(
    settings: KafkaSettings, reader: TopicReader, new_topic: Callable[..., str]
) -> None:
    topic = new_topic()
    writer = TopicWriter(settings, "test-quiet", batches_under_way=1, tells_all=False)
    writer.send(topic, 0, None, b"a", token="a")
    writer.send(topic, 7, None, b"b", token="b")  # there is no such partition
    assert [(d.token, d.error is None) for d in told(writer, 1)] == [("b", False)]
    assert writer.close(5) == 0
    reader.start(topic, 0, 0)
    assert [r.value for r in read(reader, 1)] == [b"a"]


def test_a_partition_that_is_not_there_is_a_failed_delivery_however_soon_it_is_known(
    writer: TopicWriter, new_topic: Callable[..., str]
) -> None:
    topic = new_topic()
    writer.send(topic, 7, None, b"a", token="asked for first")
    assert [(d.token, d.error is None) for d in told(writer, 1)] == [("asked for first", False)]
    writer.send(topic, 7, None, b"b", token="known by now")
    assert len(writer) == 1
    assert writer.flush(0) == 0
    begun = time.monotonic()
    assert [(d.token, d.error is None) for d in writer.deliveries(DEADLINE_S)] == [
        ("known by now", False)
    ]
    assert time.monotonic() - begun < DEADLINE_S / 2, "it was there: nothing to wait for"
    writer.send(topic, 0, None, b"c", token="there")
    assert [(d.token, d.error) for d in told(writer, 1)] == [("there", None)]
    assert len(writer) == 0


def test_a_producer_that_was_hastened_has_its_id_and_sends_at_once(
    settings: KafkaSettings, new_topic: Callable[..., str]
) -> None:
    """Without it the first record waits half a second, one in twelve of them a whole one."""
    topic, missing = new_topic(), f"t{uuid.uuid4().hex[:12]}"
    took = []
    for known in (topic, missing) * 5:
        begun = time.monotonic()
        writer = TopicWriter(settings, "test-hastened", topic=known)
        writer.send(topic, 0, None, b"x", token=1)
        assert writer.flush(DEADLINE_S) == 0
        took.append(time.monotonic() - begun)
        assert [d.error for d in writer.deliveries()] == [None]
        transactions = TransactionWriter(settings, "test", f"hastened-{topic}", topic=known)
        begun = time.monotonic()
        transactions.open()
        took.append(time.monotonic() - begun)
        transactions.close()
    assert sorted(took)[len(took) // 2] < 0.4, took  # most of them, on a machine that is busy


def test_a_writer_is_made_without_a_broker_too(caplog: pytest.LogCaptureFixture) -> None:
    nowhere = KafkaSettings(bootstrap=f"127.0.0.1:{Ports.free().kafka}")
    writer = TopicWriter(nowhere, "test", delivery_timeout_ms=300, topic="anything")
    writer.send("anything", 0, None, b"x", token=1)
    assert [d.error is None for d in told(writer, 1)] == [False]


def test_delivered_records_without_a_token_are_not_told(
    writer: TopicWriter, new_topic: Callable[..., str]
) -> None:
    topic = new_topic()
    writer.send(topic, 0, None, b"a")
    writer.send(topic, 0, None, b"b", token="b")
    assert [d.token for d in told(writer, 1)] == ["b"]
    assert writer.flush(5) == 0
    assert writer.deliveries() == []


def test_a_partition_can_be_read_again_from_any_offset(
    reader: TopicReader, writer: TopicWriter, new_topic: Callable[..., str]
) -> None:
    topic = new_topic()
    for number in range(20):
        writer.send(topic, 0, None, b"%d" % number)
    assert writer.flush(10) == 0
    for offset in (0, 12, 3):
        reader.start(topic, 0, offset)
        assert [r.offset for r in read(reader, 5)] == list(range(offset, offset + 5))
        assert reader.next_offset(topic, 0) == offset + 5


def test_one_partition_pauses_while_another_goes_on(
    reader: TopicReader, writer: TopicWriter, new_topic: Callable[..., str]
) -> None:
    held, free = new_topic(), new_topic()
    reader.start(held, 0, 0)
    reader.start(free, 0, 0)
    writer.send(held, 0, None, b"1")
    assert [r.topic for r in read(reader, 1)] == [held]
    reader.pause(held, 0)
    for number in range(10):
        writer.send(held, 0, None, b"%d" % number)
        writer.send(free, 0, None, b"%d" % number)
    assert [r.topic for r in read(reader, 10)] == [free] * 10
    reader.resume(held, 0)
    assert [r.offset for r in read(reader, 10)] == list(range(1, 11))


def test_a_stopped_partition_delivers_no_more(
    reader: TopicReader, writer: TopicWriter, new_topic: Callable[..., str]
) -> None:
    stopped, other = new_topic(), new_topic()
    for topic in (stopped, other):
        for number in range(10):
            writer.send(topic, 0, None, b"%d" % number)
    assert writer.flush(10) == 0
    reader.start(stopped, 0, 0)
    read(reader, 1)
    reader.stop(stopped, 0)
    reader.start(other, 0, 0)
    assert {r.topic for r in read(reader, 10)} == {other}


@pytest.mark.parametrize("offset", [0, 11])
def test_an_offset_that_is_not_there_stops_the_reader(
    reader: TopicReader,
    writer: TopicWriter,
    admin: TopicAdmin,
    new_topic: Callable[..., str],
    offset: int,
) -> None:
    """L2, L3: deleted below, or lost by the broker; never read on from elsewhere."""
    topic = new_topic()
    for number in range(10):
        writer.send(topic, 0, None, b"%d" % number)
    assert writer.flush(10) == 0
    assert admin.delete_below_soon(topic, 0, 4).result(10).low_watermark == 4
    assert reader.first_offset(topic, 0) == 4
    reader.start(topic, 0, offset)
    with pytest.raises(LogStopped, match=f"Offset {offset} of partition 0 of topic '{topic}'"):
        read(reader, 1)


def test_the_end_of_a_topic_is_a_place_to_start(
    reader: TopicReader, writer: TopicWriter, new_topic: Callable[..., str]
) -> None:
    topic = new_topic()
    reader.start(topic, 0, reader.end_offset(topic, 0))
    writer.send(topic, 0, None, b"new")
    assert [r.value for r in read(reader, 1)] == [b"new"]


def test_many_topics_tell_their_offsets_at_once(
    reader: TopicReader, writer: TopicWriter, admin: TopicAdmin, new_topic: Callable[..., str]
) -> None:
    """Those that are missing are told apart, also where all are; one that was made a moment ago is
    waited for."""
    topic, other = new_topic(2), new_topic()
    for _ in range(10):
        writer.send(topic, 0, None, b"x")
    assert writer.flush(10) == 0
    assert admin.delete_below_soon(topic, 0, 4).result(10).low_watermark == 4
    there, missing = {(topic, 0), (topic, 1), (other, 0)}, {("none.such", 0), ("nor.this", 0)}
    ends = reader.offsets_of({*there, *missing}, END, DEADLINE_S)
    assert {place: ends.pop(place) for place in there} == {
        (topic, 0): 10,
        (topic, 1): 0,
        (other, 0): 0,
    }
    firsts = reader.offsets_of(there, FIRST, DEADLINE_S)
    assert firsts == {(topic, 0): 4, (topic, 1): 0, (other, 0): 0}
    for told_of in (ends, reader.offsets_of(missing, END, DEADLINE_S)):
        assert told_of.keys() == missing
        assert all(isinstance(each, KafkaError) for each in told_of.values())
    assert reader.offsets_of((), END, DEADLINE_S) == {}


def test_new_topics_are_asked_for_while_they_are_made(
    settings: KafkaSettings, reader: TopicReader, admin: TopicAdmin
) -> None:
    """librdkafka's admin client ended the process where this came together."""
    prefix, count = f"t{uuid.uuid4().hex[:12]}", 60
    names = [f"{prefix}.{number}" for number in range(count)]

    def make() -> None:
        with TopicAdmin(settings, "test-maker") as maker:
            for name in names:
                maker.create([Topic(name, 1, {})], 1)

    with ThreadPoolExecutor(1) as pool:
        made = pool.submit(make)
        while not made.done():
            reader.offsets_of([(name, 0) for name in names], END, DEADLINE_S)
        made.result()

    def are_known() -> bool:
        ends = reader.offsets_of([(name, 0) for name in names], END, DEADLINE_S)
        return ends == {(name, 0): 0 for name in names}

    until(are_known, "topics that were asked for before they were there")


def test_a_topic_has_an_id_and_one_that_is_made_anew_has_another(
    admin: TopicAdmin, new_topic: Callable[..., str]
) -> None:
    first, second = new_topic(), new_topic()
    assert admin.topic_id(first) == admin.topic_id(first) == id_in(soon(admin, first))
    assert NO_ID != admin.topic_id(first) != admin.topic_id(second)
    with pytest.raises(BusUnavailable, match="has no topic nothing"):
        admin.topic_id("nothing")


def soon(admin: TopicAdmin, topic: str) -> Any:
    return admin.topic_id_soon(topic).result(10)


def test_without_a_broker_nobody_waits_for_a_topics_id_longer_than_he_wants() -> None:
    asked: list[bool] = []

    def give_up() -> bool:
        asked.append(True)
        return True

    nowhere = KafkaSettings(bootstrap=f"127.0.0.1:{Ports.free().kafka}")
    with pytest.raises(BusUnavailable, match="asking which topic log is failed"):
        TopicAdmin(nowhere, "x").topic_id("log", give_up)
    assert asked == [True]


def test_creating_topics_may_be_repeated(admin: TopicAdmin, new_topic: Callable[..., str]) -> None:
    topic = new_topic()
    assert admin.create([Topic(topic, 1, {})], 1) == ()


def test_the_newest_value_of_each_key_is_read_back(
    settings: KafkaSettings, writer: TopicWriter, new_topic: Callable[..., str]
) -> None:
    topic = new_topic(partitions=3, **{"cleanup.policy": "compact"})
    assert read_compacted(settings, "test", topic) == {}
    for number in range(30):
        writer.send(topic, BY_KEY, b"%d" % (number % 10), b"%d" % number)
    writer.send(topic, BY_KEY, b"3", None)
    assert writer.flush(10) == 0
    found = read_compacted(settings, "test", topic)
    assert found == {b"%d" % n: b"%d" % (n + 20) for n in range(10) if n != 3}


def test_a_topic_that_does_not_exist_is_said_so(settings: KafkaSettings) -> None:
    with pytest.raises(BusUnavailable, match="nowhere"):
        read_compacted(settings, "test", "nowhere", 5)


def test_a_record_too_large_is_refused_at_once_and_the_next_goes_on(
    writer: TopicWriter, new_topic: Callable[..., str]
) -> None:
    topic = new_topic()
    with pytest.raises(BusUnavailable, match="too large"):
        writer.send(topic, 0, None, b"x" * (MESSAGE_BYTES_MAX + 1))
    writer.send(topic, 0, None, b"small", token=1)
    assert told(writer, 1)[0].error is None


def test_without_a_broker_outcomes_are_told_and_one_sentence_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """L4: the time-out of an append is an outcome; it comes without a broker too."""
    nowhere = KafkaSettings(bootstrap=f"127.0.0.1:{Ports.free().kafka}")
    with caplog.at_level(logging.DEBUG):
        writer = log_writer(nowhere, "test-log", delivery_timeout_ms=300)
        writer.send("log", 0, None, b"x", token="append")
        (delivery,) = told(writer, 1)
        writer.close(1)
    assert delivery.token == "append"
    assert delivery.error is not None
    lines = [r.getMessage() for r in caplog.records if r.name == "leasehold.kafka"]
    assert len(lines) == 1, lines
    assert "can't be reached" in lines[0]
    assert nowhere.bootstrap in lines[0]


def test_a_reader_without_a_broker_waits_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    nowhere = KafkaSettings(bootstrap=f"127.0.0.1:{Ports.free().kafka}")
    reader = TopicReader(nowhere, "test-reader")
    reader.start("log", 0, 0)
    give_up = time.monotonic() + DEADLINE_S
    while not caplog.records:
        assert time.monotonic() < give_up
        assert reader.read(10, 0.05) == []
    assert "can't be reached" in caplog.records[0].getMessage()
    with pytest.raises(BusUnavailable, match=nowhere.bootstrap):
        reader.end_offset("log", 0, 0.1)
    reader.close()


def test_a_full_queue_refuses(caplog: pytest.LogCaptureFixture) -> None:
    nowhere = KafkaSettings(bootstrap=f"127.0.0.1:{Ports.free().kafka}")
    writer = TopicWriter(nowhere, "test", queued_max=2)
    writer.send("t", 0, None, b"1", token=1)
    writer.send("t", 0, None, b"2", token=2)
    with pytest.raises(BusUnavailable, match="queue of 2 records is full"):
        writer.send("t", 0, None, b"3")
    writer.purge()
    assert [(d.token, d.error is None) for d in told(writer, 2)] == [(1, False), (2, False)]
    # librdkafka counts its own news (that nobody answers) with the records, until it is polled.
    give_up = time.monotonic() + DEADLINE_S
    while len(writer):
        assert time.monotonic() < give_up, len(writer)
        assert not writer.deliveries(0.1), "each record is told once"


def test_the_same_thing_is_said_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    watch = ClientWatch(KafkaSettings(), "c")
    for _ in range(100):
        watch.log(logging.WARNING, "%s %s", "TERM", "one")
        watch.log(logging.WARNING, "%s %s", "FAIL", "connect to 127.0.0.1:1 failed")
    assert [r.getMessage() for r in caplog.records] == ["TERM one"]


def test_l4_after_a_fatal_error_all_is_told_and_the_next_record_goes(
    writer: TopicWriter, new_topic: Callable[..., str]
) -> None:
    topic = new_topic()
    writer.send(topic, 0, None, b"1", token=1)
    assert told(writer, 1)[0].error is None
    # As if librdkafka had reported an error after which it refuses every call.
    writer._watch.fatal = "made up"
    writer.send(topic, 0, None, b"2", token=2)
    assert told(writer, 1) == [Delivery(2, topic, 0, 1, None)]


def test_unusable_settings_are_told_in_words(tmp_path: Path) -> None:
    broken = KafkaSettings(bootstrap="127.0.0.1:1", security="SSL", ca=tmp_path / "gone.pem")
    for make in (TopicReader, TopicWriter, TopicAdmin):
        with pytest.raises(ConfigurationError, match=r"LEASEHOLD_KAFKA.*ssl\.ca\.location"):
            make(broken, "test")


def test_gathered_requests_leave_together(
    settings: KafkaSettings, new_topic: Callable[..., str], reader: TopicReader
) -> None:
    """Long before they would by themselves, beside one that was sent alone."""
    requests, results = new_topic(), new_topic()
    road = KafkaRequestTransport(settings, requests, results, 0)
    try:
        reader.start(requests, 0, 0)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(request_transport, "GATHERED_LINGER_MS", 29_000)
            for number in range(16):
                road.gather(b"%d" % number, "application/json", b"{}")
            road.send(b"alone", "application/json", b"{}")
            assert [record.key for record in read(reader, 1)] == [b"alone"]
            gathered: list[Record] = []
            give_up = time.monotonic() + 20
            while len(gathered) < 16:
                assert time.monotonic() < give_up, f"{len(gathered)} left when they were told to"
                road.send_gathered()  # again where its producer had no connection yet
                gathered += reader.read(16 - len(gathered), 0.1)
        assert [record.key for record in gathered] == [b"%d" % number for number in range(16)]
        assert {record.content_type for record in gathered} == {"application/json"}
        assert road.failures() == []
    finally:
        road.close(1.0)


# ------------------------------------------------------------------ scenario 33: the log


def chained(count: int) -> list[LogRecord]:
    """A Claim and the records of its master after it."""
    first = claim(LogPosition(), M1)
    records: list[LogRecord] = [first]
    position = admit(LogPosition(), 0, first, digest(first))[1]
    for number in range(count):
        record = decisions(position, commits=(10 + number,))
        position = admit(position, position.offset, record, digest(record))[1]
        records.append(record)
    return records


def put(writer: TopicWriter, topic: str, records: Sequence[LogRecord]) -> None:
    for record in records:
        writer.send(topic, 0, None, CODEC.encode(record))
    assert writer.flush(10) == 0


def judged(reader: TopicReader, topic: str, count: int) -> tuple[list[Verdict], LogPosition]:
    """As each node judges what it reads."""
    reader.start(topic, 0, 0)
    position, verdicts = LogPosition(), []
    for record in read(reader, count):
        assert record.value is not None
        decoded, mark = CODEC.decode_log(record.value), CODEC.digest(record.value)
        verdict, position = admit(position, record.offset, decoded, mark)
        verdicts.append(verdict)
    return verdicts, position


def test_33_gap_in_log(
    reader: TopicReader, writer: TopicWriter, new_topic: Callable[..., str]
) -> None:
    """What was acknowledged and is gone stops the reader; it applies nothing behind it."""
    topic = new_topic()
    records = chained(6)
    put(writer, topic, [*records[:3], *records[4:]])
    assert judged(reader, topic, 3)[1].lsn == 2
    with pytest.raises(LogStopped, match="expected sequence 3"):
        judged(reader, topic, 4)


def test_33_same_entry_twice(
    reader: TopicReader, writer: TopicWriter, new_topic: Callable[..., str]
) -> None:
    topic = new_topic()
    records = chained(3)
    put(writer, topic, [each for record in records for each in (record, record)])
    verdicts, position = judged(reader, topic, 2 * len(records))
    assert verdicts[::2] == [Verdict.CLAIMED, *[Verdict.APPLY] * 3]
    assert set(verdicts[1::2]) == {Verdict.SKIP}
    assert position.lsn == 3


@pytest.mark.parametrize("aborts", [True, False])
def test_33_aborted_kafka_txn_in_log(
    settings: KafkaSettings,
    reader: TopicReader,
    writer: TopicWriter,
    new_topic: Callable[..., str],
    aborts: bool,
) -> None:
    """The log is written without transactions, its own chain tells what counts (L1, L2): what a
    zombie left there in one of its own is applied neither aborted nor committed, and the markers
    that transactions leave between offsets are no gap."""
    topic = new_topic()
    records = chained(4)
    put(writer, topic, records[:3])
    last = judged(reader, topic, 3)[1]
    zombie = decisions(last, commits=(99,), incarnation=M2)
    strange = TransactionWriter(settings, "test-zombie", f"zombie-{topic}")
    strange.open()
    strange.begin()
    strange.send(topic, 0, b"", CODEC.encode(zombie))
    if aborts:
        strange.abort()
    else:
        strange.commit()
    strange.close()
    give_up = time.monotonic() + DEADLINE_S
    while reader.end_offset(topic, 0) < 5:  # an abort is answered before its marker is there
        assert time.monotonic() < give_up, "no marker came"
    put(writer, topic, records[3:])
    verdicts, position = judged(reader, topic, 6)
    assert verdicts[3:] == [Verdict.SKIP, Verdict.APPLY, Verdict.APPLY]
    assert (position.lsn, position.commit_us) == (4, 13)
    assert position.offset == 7, "the marker has an offset, too"


def test_l2_the_record_that_was_applied_last_is_looked_for_far_back(
    reader: TopicReader, writer: TopicWriter, new_topic: Callable[..., str]
) -> None:
    topic, other = new_topic(), new_topic()
    records = [*chained(20), *(Barrier(b"%d" % number) for number in range(300))]
    put(writer, topic, records)
    put(writer, other, records[:1] + records[2:] + records[-1:])
    _, position = judged(reader, topic, len(records))
    reader.stop(topic, 0)
    assert log_offsets(reader, topic, position) == (0, len(records))
    assert log_offsets(reader, other, position._replace(digest=b"")) == (0, len(records))
    gone = position._replace(digest=digest(records[1]))
    assert log_offsets(reader, topic, gone) == (0, len(records))
    with pytest.raises(LogStopped, match="does not stand in topic"):
        log_offsets(reader, other, gone)
