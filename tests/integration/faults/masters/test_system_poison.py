"""Two candidates and a poison message of each kind, on a real broker.

Goal: after each of them writes go on, no process has ended, and a dead letter says why it was
refused. A request that masters end over is ended by this test: it kills whoever says in the log
that it is about to decide it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from infra.local_cluster import LocalCluster
from leasehold import ChangeProducer
from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.codec.request_encoding import encode_request
from leasehold.adapters.kafka.reader import TopicReader
from leasehold.adapters.kafka.writer import TopicWriter
from leasehold.adapters.os.clock import new_request_id
from leasehold.admin.watch import ClusterWatch
from leasehold.model.records.jobs import Chunk, Findings
from leasehold.model.records.log import Attempt, Decisions
from leasehold.model.records.requests import (
    ChangeRequest,
    DeadLetter,
    Expression,
    Operation,
    OperationKind,
    Queue,
)
from leasehold.replication.master.attempts import LOST_MAX
from leasehold.settings.client import ClientSettings
from tests.integration.faults.masters import MASTERS, NODES, SERVICES
from tests.support.cluster.secure_suite import superuser_of_redis
from tests.support.cluster.system_cluster import (
    assert_consistent,
    logged,
    seen,
    settings_of,
    until,
)
from tests.support.cluster.system_load import ALONE, add_one

CODEC = MessagePackCodec()
MANY = 60_000
GARBAGE = (b"", b"\xc1", b"{" * 5_000, b"\x93\x01\x63\x01", b'{"id": 7}', bytes(100_000))
LONG = "case when regexp_count(repeat('a', 100000), 'a*b|a') > 0 then 1 else 2 end"


@pytest.fixture
def settings(cluster: LocalCluster) -> ClientSettings:
    return settings_of(cluster, "tester")


@pytest.fixture
def writer(cluster: LocalCluster) -> Iterator[TopicWriter]:
    made = TopicWriter(cluster.kafka_settings, "poison")
    yield made
    made.close(5)


def epoch(settings: ClientSettings) -> int:
    with ClusterWatch(settings) as watch:
        watch.first_look(30)
        return seen(watch, lambda view: bool(view.log.master), "a master").log.epoch


def master(settings: ClientSettings) -> str:
    with ClusterWatch(settings) as watch:
        watch.first_look(30)
        return seen(watch, lambda view: bool(view.log.master), "a master").log.master


def write_on(settings: ClientSettings) -> None:
    with ChangeProducer(settings) as producer:
        add_one(producer)


def records_of(settings: ClientSettings, topic: str) -> Iterator[bytes]:
    """All that stand there, and then what comes; b"" when nothing came for a moment."""
    reader = TopicReader(settings.kafka, "poison-reader", read_committed=True)
    try:
        reader.start(topic, 0, 0)
        while True:
            yield from [record.value or b"" for record in reader.read(500, 0.2)] or [b""]
    finally:
        reader.close()


def await_letter(settings: ClientSettings, is_it: Callable[[DeadLetter], bool]) -> DeadLetter:
    found: list[DeadLetter] = []
    letters = records_of(settings, settings.topics.dead_letter.name)

    def met() -> bool:
        data = next(letters)
        if data:
            letter = CODEC.decode_as(DeadLetter, data)
            found.extend([letter] if is_it(letter) else [])
        return bool(found)

    until(met, "a dead letter", 60)
    letters.close()  # type: ignore[attr-defined]
    return found[0]


def test_what_nobody_can_read_or_compute_ends_nobody(
    cluster: LocalCluster, settings: ClientSettings, writer: TopicWriter
) -> None:
    topics, before = settings.topics, epoch(settings)
    for topic in (topics.requests, topics.backfill, topics.acks):
        for value in GARBAGE:
            writer.send(topic.name, 0, None, value, (), None)
    key = (2**63, b"", None)
    for record in (Chunk(99, 1, 1, 1, 7, (key, ())), Findings(99, 1, 1, 1, 1, 1, ((1, key),))):
        writer.send(topics.backfill.name, 0, None, CODEC.encode(record), (), None)
    dear = ChangeRequest(
        new_request_id(),
        (Operation(OperationKind.UPDATE, "t", {"id": ALONE}, {"n": Expression(LONG)}),),
    )
    content_type, body = encode_request(dear)
    signed = settings.signer()(Queue.REQUESTS.value, "", content_type, body)
    headers = (("content-type", signed.encode()),)
    writer.send(topics.requests.name, 0, None, body, headers, None)
    write_on(settings)
    letter = await_letter(settings, lambda letter: letter.request_id == dear.id)
    assert letter.code == "54001"
    unreadable = await_letter(settings, lambda letter: not letter.request_id)
    assert unreadable.queue == Queue.REQUESTS.value
    # A busy machine may give a master no turn for as long as an election: that is one term, and
    # has nothing to do with the request, which ends every master that decides it or none.
    assert epoch(settings) - before < LOST_MAX, "masters have lost their terms"
    assert all(cluster.is_running(name) for name in SERVICES)


def test_what_anybody_publishes_through_redis_ends_nobody(
    cluster: LocalCluster, settings: ClientSettings
) -> None:
    before = epoch(settings)
    with ChangeProducer(settings) as producer:
        for _ in range(30):  # often enough for the paths through Redis
            add_one(producer)
    client = superuser_of_redis(cluster)
    try:
        channels = client.pubsub_channels(f"leasehold:{{{settings.cluster.database}}}:*")
        assert channels, "nobody listens"
        for channel in channels:
            for value in GARBAGE:
                client.publish(channel, value)
    finally:
        client.close()
    write_on(settings)
    # A busy machine may give a master no turn for as long as an election: that is one term, and
    # has nothing to do with the request, which ends every master that decides it or none.
    assert epoch(settings) - before < LOST_MAX, "masters have lost their terms"
    assert all(cluster.is_running(name) for name in SERVICES)


def said_of(settings: ClientSettings, offset: int) -> Iterator[Attempt | None]:
    """What masters say in the log of that message of `requests`; None when nothing came."""
    for data in records_of(settings, settings.topics.log.name):
        record = CODEC.decode_log(data) if data else None
        attempts = record.attempts if isinstance(record, Decisions) else ()
        yield from (a for a in attempts if a[:2] == (Queue.REQUESTS.value, offset))
        if not data:
            yield None


def test_l10_a_request_that_masters_end_over_is_refused(
    cluster: LocalCluster, settings: ClientSettings, writer: TopicWriter
) -> None:
    """Each that says that it is about to decide it is killed, as often as may be."""
    rows = [Operation(OperationKind.UPSERT, "t", {"id": 1_000 + n}, {"n": n}) for n in range(MANY)]
    hard = ChangeRequest(new_request_id(), tuple(rows))
    content_type, body = encode_request(hard)
    first = master(settings)
    signed = settings.signer()(Queue.REQUESTS.value, "", content_type, body)
    headers = (("content-type", signed.encode()),)
    writer.send(settings.topics.requests.name, 0, None, body, headers, hard.id)
    places: list[int] = []

    def stands() -> bool:
        places.extend(delivery.offset for delivery in writer.deliveries())
        return bool(places)

    until(stands, "its place")
    cluster.kill(first)
    killed = [first]
    said = said_of(settings, places[0])

    def refused() -> bool:
        attempt = next(said)
        if attempt is not None and attempt.lost == len(killed) <= LOST_MAX:
            other = MASTERS[1 - MASTERS.index(killed[-1])]
            cluster.kill(other)
            cluster.start(killed[-1])
            killed.append(other)
        return attempt is not None and attempt.lost > LOST_MAX

    until(refused, "its refusal", 120, lambda: str(killed))
    letter = await_letter(settings, lambda letter: letter.request_id == hard.id)
    assert letter.code == "54001"
    assert f"{LOST_MAX} masters" in letter.message
    cluster.start(killed[-1])
    write_on(settings)
    assert not any("Traceback" in logged(cluster, name) for name in SERVICES)
    assert_consistent(cluster, NODES)
