"""The log told by Redis under a running system: Redis, a replicant and the master disturbed; no
Spark.

Goal: what goes wrong on the fast way is read from Kafka, at once; nothing is lost, applied twice or
different on any node; and the fast way is taken again by itself.
"""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Iterator

import pytest
import redis

from infra.local_cluster import LocalCluster
from leasehold import ChangeProducer, Replica, open_replica
from leasehold.adapters.codec import MessagePackCodec
from leasehold.adapters.kafka_reader import TopicReader
from leasehold.adapters.redis_log import CHANNELS, FORM
from leasehold.client.client_settings import ClientSettings
from leasehold.client.cluster_watch import ClusterWatch
from leasehold.model.records import Claim, Decisions
from leasehold.replication.fast_log import Term
from tests.integration.system_cluster import (
    assert_consistent,
    await_coherent,
    logged,
    named,
    running,
    seen,
    settings_of,
    until,
)
from tests.integration.system_load import ALONE, Load, add_one, made_counters

MASTERS = ("m1", "m2")
REPLICANTS = ("r1", "r2")
NODES = (*MASTERS, *REPLICANTS)
KEYS = range(6)
TOLD = "the log is told by the master from offset"
READ = "the log is read from Kafka from offset"
CODEC = MessagePackCodec()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    environ = {**os.environ, "LEASEHOLD_LOG_LEVEL": "DEBUG"}
    with running(tmp_path_factory.mktemp("fast_log"), (*NODES, "changefeed"), environ) as made:
        made_counters(settings_of(made, "setup"), (*KEYS, ALONE))
        yield made


@pytest.fixture(scope="module")
def load(settings: ClientSettings) -> Iterator[Load]:
    """Writers that go on through every test of this module."""
    with Load(settings, "t", KEYS) as made:
        made.more(50)
        yield made


def counts(cluster: LocalCluster, words: str) -> list[int]:
    return [logged(cluster, name).count(words) for name in REPLICANTS]


def await_one_more(cluster: LocalCluster, words: str, since: list[int] | None = None) -> None:
    """On each replicant, than there were `since`, or are now."""
    before = counts(cluster, words) if since is None else since

    def more() -> bool:
        return all(now > old for now, old in zip(counts(cluster, words), before, strict=True))

    until(more, f"{words!r} on {REPLICANTS}")


def test_under_steady_writes_the_log_is_told(
    cluster: LocalCluster, load: Load, replica: Replica
) -> None:
    until(lambda: all(counts(cluster, TOLD)), "the fast way on both replicants")
    road = replica._node._road
    assert road is not None
    until(lambda: road.fast, "the fast way of an embedded replica")
    load.more(200)
    assert_consistent(cluster, NODES)


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL], ids=["stands still", "dies"])
def test_redis_away_kafka_stands_in_and_the_fast_way_is_taken_again(
    cluster: LocalCluster, load: Load, number: signal.Signals, replica: Replica
) -> None:
    await_one_more(cluster, TOLD)
    read = counts(cluster, READ)
    cluster.kill("redis", number)
    try:
        load.more(100)
        await_one_more(cluster, READ, read)
        told = counts(cluster, TOLD)
        load.more(100)
        replica.wait_coherent()
        assert counts(cluster, TOLD) == told, "nobody can tell anything"
    finally:
        if number == signal.SIGSTOP:
            cluster.kill("redis", signal.SIGCONT)
        else:
            cluster.start("redis")
    await_one_more(cluster, TOLD)
    load.more(50)


def test_a_replicant_that_stood_still_has_each_record_once(
    cluster: LocalCluster, watch: ClusterWatch, producer: ChangeProducer, load: Load
) -> None:
    cluster.kill("r1", signal.SIGSTOP)
    try:
        load.more(200)
        missed = add_one(producer)
    finally:
        cluster.kill("r1", signal.SIGCONT)
    await_coherent(watch, "r1", missed)
    await_one_more(cluster, TOLD)
    assert_consistent(cluster, NODES)


def test_a_new_term_begins_with_kafka_and_its_master_tells(
    cluster: LocalCluster, watch: ClusterWatch, load: Load
) -> None:
    before = seen(watch, lambda view: bool(view.log.master), "a master").log
    cluster.kill(before.master)
    other = MASTERS[1 - MASTERS.index(before.master)]
    seen(watch, lambda view: view.log.master == other, f"{other} as master")
    load.more(50)
    await_one_more(cluster, TOLD)
    cluster.start(before.master)
    assert_consistent(cluster, NODES)


def test_what_is_made_up_on_the_channel_is_not_applied(
    cluster: LocalCluster, settings: ClientSettings, load: Load, producer: ChangeProducer
) -> None:
    """Whatever contradicts the log so far is asked of Kafka, and stops nobody. (One that fits in
    the chain of digests would be taken: README says who has to be kept from that channel.)"""
    await_one_more(cluster, TOLD)
    with redis.Redis.from_url(settings.redis.url) as client:
        (heard,) = client.pubsub_channels(CHANNELS.pattern(settings.cluster.database))
        _, epoch, incarnation = heard.decode().rsplit(":", 2)
        term: Term = (int(epoch), bytes.fromhex(incarnation))
        assert heard == CHANNELS.of(settings.cluster.database, term)
        made_up = (
            CODEC.encode(Claim(term[0] + 1, b"nobody", b"nothing before", "m9")),
            CODEC.encode(Claim(term[0] + 9, b"nobody", b"nothing before", "m9")),
            CODEC.encode(Decisions(*term, 7, b"other", 1, (), (), {}, 0, ())),
            b"no record",
        )
        for data in (b"", b"\x01", b"\x02" + bytes(20), FORM + bytes(8), FORM + b"\xff" * 400):
            client.publish(heard, data)

        def met_the_next_one() -> bool:
            end = log.end_offset(settings.topics.log.name, 0)
            for offset, data in itertools.product(range(end - 2, end + 20), made_up):
                client.publish(heard, FORM + offset.to_bytes(8, "big") + data)
            return all(counts(cluster, "does not follow what this node has"))

        log = TopicReader(settings.kafka, "made-up")
        try:
            until(met_the_next_one, "something that was made up, in its place")
        finally:
            log.close()
    load.more(100)
    add_one(producer)
    assert_consistent(cluster, NODES)


def test_l3_l5_no_write_was_lost_or_doubled_and_all_nodes_are_equal(
    cluster: LocalCluster, settings: ClientSettings, load: Load
) -> None:
    load.stop()
    with open_replica(named(settings, "last")) as replica:
        load.assert_exact(replica)
    assert_consistent(cluster, NODES)
    for name in (*NODES, "changefeed"):
        assert "Traceback" not in logged(cluster, name)
