"""Requests told to the master by Redis under a running system: Redis and masters disturbed; no
Spark.

Goal: requests really go that way; whatever becomes of it, each is decided once, in the order in
which its requester sent it, and answered; and the way is taken again by itself.
"""

from __future__ import annotations

import signal
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from types import TracebackType
from typing import Any, Self

import psycopg
import pytest

from infra.local_cluster import LocalCluster
from leasehold import ChangeProducer, Replica, connect, open_replica
from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.kafka.reader import TopicReader
from leasehold.adapters.kafka.request_transport import KafkaRequestTransport
from leasehold.admin.watch import ClusterWatch
from leasehold.client.pending import Pending
from leasehold.client.request_transport import FastRequestTransport
from leasehold.model.records.log import Decisions
from leasehold.settings.client import ClientSettings
from tests.integration.cluster.fast import MASTERS, NODES, OF_CLIENTS, ORDERED, REQUEST_KEYS
from tests.support.cluster.secure_suite import dsn_of
from tests.support.cluster.system_cluster import (
    SOON_S,
    assert_consistent,
    logged,
    named,
    seen,
    settings_of,
    until,
)
from tests.support.cluster.system_load import ALONE, Load, add_one, settled

KEYS = REQUEST_KEYS
UPDATE = "UPDATE t SET n = n + 1 WHERE id = %s"
IN_FLIGHT_MAX = 400
PACE_S = 0.02
CODEC = MessagePackCodec()
TOLD_AGAIN_S = 3 * SOON_S
"""On a machine that is busy with other things the way is left and taken, with pauses of 5 s."""


class InOrder:
    """One requester that never waits: each request is sent behind the one before it, whatever has
    become of that. Its requests have to be decided in that order."""

    def __init__(self, settings: ClientSettings) -> None:
        self._producer = ChangeProducer(settings)
        self._sent: list[Pending] = []
        self._waiting: deque[Pending] = deque()
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="in order")

    def send(self, count: int) -> None:
        """So many in a row."""
        fields = {"table": "t", "op": "update", "key": {"id": ORDERED}}
        request: dict[str, Any] = {**fields, "values": {"n": {"expr": "n + 1"}}}
        with self._lock:
            made = [self._producer.submit(request) for _ in range(count)]
            self._sent += made
            self._waiting += made

    def answered(self) -> None:
        """Until all that were sent by now are."""
        with self._lock:
            last = self._sent[-1]
        assert settled(last).lsn

    def _run(self) -> None:
        while not self._stop.wait(PACE_S):
            while self._waiting and self._waiting[0].outcome is not None:
                self._waiting.popleft()
            if len(self._waiting) < IN_FLIGHT_MAX:
                self.send(1)

    def lsns(self) -> list[int]:
        """Of all, when it is over."""
        self._stop.set()
        self._thread.join()
        return [settled(pending).lsn for pending in self._sent]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._producer.close()


@pytest.fixture(scope="module")
def in_order(settings: ClientSettings) -> Iterator[InOrder]:
    with InOrder(settings) as made:
        yield made


@pytest.fixture(scope="module")
def on_topic(cluster: LocalCluster, settings: ClientSettings) -> Iterator[Callable[[], int]]:
    """How many requests went through Kafka."""
    reader = TopicReader(cluster.kafka_settings, "requests-counted")
    yield lambda: reader.end_offset(settings.topics.requests.name, 0)
    reader.close()


def await_told(load: Load, on_topic: Callable[[], int], count: int = 100) -> None:
    """Until `count` requests in a row, whoever's, are told: then hardly one is on the topic. A
    machine that does other things, too, has this way left now and then."""

    def told() -> bool:
        before = on_topic()
        load.more(count)
        return on_topic() - before <= count / 10

    until(told, "requests that are told", TOLD_AGAIN_S)


def told_by_key(settings: ClientSettings, begin: int) -> Counter[int]:
    """How many updates were decided because they were told: nobody's partition is to hear of it.
    `begin`: the offset of the log from which on they count."""
    found: Counter[int] = Counter()
    log = settings.topics.log.name
    reader = TopicReader(settings.kafka, "told-counted")
    try:
        end = reader.end_offset(log, 0)
        reader.start(log, 0, begin)
        offset = begin - 1
        while offset < end - 1:
            for record in reader.read(1_000, 0.1):
                offset = record.offset
                said = CODEC.decode_log(record.value or b"")
                if isinstance(said, Decisions):
                    told = (commit for commit in said.commits if commit.reply_to < 0)
                    found.update(change.key[0] for commit in told for change in commit.changes)
    finally:
        reader.close()
    return found


def end_of_log(settings: ClientSettings) -> int:
    reader = TopicReader(settings.kafka, "end")
    try:
        return reader.end_offset(settings.topics.log.name, 0)
    finally:
        reader.close()


def counter(replica: Replica, key: int) -> int:
    replica.wait_coherent()
    row = replica.get("t", key)
    assert row is not None
    found: int = row["n"]
    return found


def test_l5_requests_of_steady_writers_are_told_and_applied_once(
    load: Load, in_order: InOrder, on_topic: Callable[[], int], replica: Replica
) -> None:
    await_told(load, on_topic, 300)
    in_order.send(500)
    in_order.answered()
    await_told(load, on_topic)


def test_l5_updates_of_sql_clients_are_told(
    cluster: LocalCluster, settings: ClientSettings, replica: Replica
) -> None:
    """Several connections of one node, which is one requester, and an embedded node."""
    count = 80

    def by_wire(key: int) -> None:
        with psycopg.connect(dsn_of(cluster, 0), autocommit=True) as connection:
            for _ in range(count):
                assert connection.execute(UPDATE, (key,)).rowcount == 1

    def embedded(key: int) -> None:
        with connect(settings_of(cluster, "embedded-sql"), autocommit=True) as connection:
            for _ in range(count):
                assert connection.execute(UPDATE, (key,)).rowcount == 1

    rounds, begin = 0, end_of_log(settings)

    def told() -> bool:
        nonlocal rounds
        rounds += 1
        with ThreadPoolExecutor(len(OF_CLIENTS)) as pool:
            works = [by_wire] * 3 + [embedded]
            done = [pool.submit(work, key) for work, key in zip(works, OF_CLIENTS, strict=True)]
            for each in done:
                each.result(SOON_S)
        found = told_by_key(settings, begin)
        return all(found[key] >= count / 2 for key in OF_CLIENTS)

    until(told, "updates of each client that were told", TOLD_AGAIN_S)
    assert [counter(replica, key) for key in OF_CLIENTS] == [rounds * count] * len(OF_CLIENTS)


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL], ids=["stands still", "dies"])
def test_redis_away_kafka_stands_in_and_the_fast_way_is_taken_again(
    cluster: LocalCluster,
    load: Load,
    in_order: InOrder,
    on_topic: Callable[[], int],
    number: signal.Signals,
) -> None:
    await_told(load, on_topic)
    cluster.kill("redis", number)
    try:
        in_order.send(200)
        load.more(100)
        before = on_topic()
        load.more(100)
        assert on_topic() - before >= 90, "nobody can tell anything"
        in_order.answered()
    finally:
        if number == signal.SIGSTOP:
            cluster.kill("redis", signal.SIGCONT)
        else:
            cluster.start("redis")
    await_told(load, on_topic)


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL], ids=["stands still", "dies"])
def test_l3_l5_a_master_away_each_request_is_answered_once(
    cluster: LocalCluster,
    watch: ClusterWatch,
    load: Load,
    in_order: InOrder,
    on_topic: Callable[[], int],
    number: signal.Signals,
) -> None:
    await_told(load, on_topic)
    before = seen(watch, lambda view: bool(view.log.master), "a master").log
    other = MASTERS[1 - MASTERS.index(before.master)]
    cluster.kill(before.master, number)
    try:
        in_order.send(200)
        seen(watch, lambda view: view.log.master == other, f"{other} as master")
        load.more(100)
        in_order.answered()
    finally:
        if number == signal.SIGSTOP:
            cluster.kill(before.master, signal.SIGCONT)
        else:
            cluster.start(before.master)
    await_told(load, on_topic)
    in_order.send(500)
    in_order.answered()


def test_off_is_off(settings: ClientSettings, producer: ChangeProducer, replica: Replica) -> None:
    assert isinstance(producer._transport, FastRequestTransport)
    before = counter(replica, ALONE)
    off = replace(settings, redis=replace(settings.redis, fast_requests="off"))
    with ChangeProducer(named(off, "off")) as one:
        assert isinstance(one._transport, KafkaRequestTransport)
        for _ in range(20):
            add_one(one)
    assert counter(replica, ALONE) == before + 20


def test_l3_l5_no_write_was_lost_or_doubled_and_order_was_kept(
    cluster: LocalCluster, settings: ClientSettings, load: Load, in_order: InOrder
) -> None:
    load.stop()
    lsns = in_order.lsns()
    assert all(first < second for first, second in pairwise(lsns)), next(
        (n, first, second) for n, (first, second) in enumerate(pairwise(lsns)) if first >= second
    )
    with open_replica(settings_of(cluster, "last")) as replica:
        load.assert_exact(replica)
        assert counter(replica, ORDERED) == len(lsns)
    load.assert_same_answers(settings)
    assert_consistent(cluster, NODES)
    for name in (*NODES, "changefeed"):
        assert "Traceback" not in logged(cluster, name)
