"""Replicants killed, paused, and new ones that begin from a snapshot; no Spark.

Goal: a replicant that was away is right again by itself, and never answers a read that is not
current while it is not (C1–C5).
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from dataclasses import replace

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from infra.local_cluster import LocalCluster
from infra.ports import find_free_port
from leasehold import ChangeProducer, open_replica
from leasehold.adapters.kafka.reader import TopicReader
from leasehold.adapters.redis.ledger import RedisLedger
from leasehold.admin.watch import ClusterWatch
from leasehold.lease.commands import Holders
from leasehold.lease.replies import HolderList
from leasehold.model.topics import Topics
from leasehold.settings.client import ClientSettings
from tests.integration.cluster.replicants import NODES
from tests.support.cluster.system_cluster import (
    assert_consistent,
    await_coherent,
    command,
    logged,
    settings_of,
    until,
)
from tests.support.cluster.system_load import ALONE, Load, add_one, made_counters
from tests.support.cluster.system_reader import REFUSED, Reader

KEYS = range(6)


@pytest.fixture(scope="module", autouse=True)
def counters(cluster: LocalCluster) -> Iterator[None]:
    made_counters(settings_of(cluster, "setup"), (*KEYS, ALONE))
    yield
    cluster.stop("r3")


def test_c5_a_killed_replicant_catches_up_and_is_coherent_again(
    cluster: LocalCluster, watch: ClusterWatch, producer: ChangeProducer, load: Load
) -> None:
    """Writes go on while it is away (C4), and it has each of them when it answers reads again."""
    cluster.kill("r1")
    try:
        load.more(100)
        until(lambda: names_silent(cluster, "r1"), "a status that names the silent node")
        missed = add_one(producer)
    finally:
        cluster.start("r1")
    await_coherent(watch, "r1", missed)
    load.more(50)
    assert_consistent(cluster, NODES)


def names_silent(cluster: LocalCluster, node: str) -> bool:
    said = command(cluster, "status", "--json")
    if said.code == 0:
        return False  # heard of a moment ago
    assert said.code == 1, said
    return any(f"node {node} " in words and "silent" in words for words in said.json["troubles"])


def test_c2_c4_a_paused_replica_delays_no_write_for_long_and_refuses_reads_when_it_wakes(
    cluster: LocalCluster, producer: ChangeProducer, load: Load
) -> None:
    """Its lease runs out on its own clock, which went on while it stood still: the read that it
    was asked for during the pause is refused, or current; old it is never."""
    with Reader(cluster, "sleeper", "t", ALONE) as reader:
        assert int(reader.read()) >= 0
        os.kill(reader.pid, signal.SIGSTOP)
        try:
            add_one(producer)  # answered only after the lease of the sleeper has run out (C4)
            load.more(50)
            current = add_one(producer)
            assert current
            value = current_value(cluster)
            reader.ask()
        finally:
            os.kill(reader.pid, signal.SIGCONT)
        assert reader.answer() in (REFUSED, str(value))
        again: list[str] = []

        def answers() -> bool:
            again.append(reader.read())
            return again[-1] != REFUSED

        until(answers, "a read that is answered again")
        assert again[-1] == str(value)


def current_value(cluster: LocalCluster) -> int:
    with open_replica(settings_of(cluster, "looker")) as replica:
        row = replica.get("t", ALONE)
        assert row is not None
        return int(row["n"])


def test_c4_a_paused_replicant_is_left_out_and_comes_back(
    cluster: LocalCluster, watch: ClusterWatch, producer: ChangeProducer, load: Load
) -> None:
    cluster.kill("r2", signal.SIGSTOP)
    try:
        missed = add_one(producer)
        load.more(100)
    finally:
        cluster.kill("r2", signal.SIGCONT)
    await_coherent(watch, "r2", missed)


def test_l6_a_new_replicant_begins_from_a_snapshot_where_the_log_is_cut(
    cluster: LocalCluster,
    settings: ClientSettings,
    watch: ClusterWatch,
    producer: ChangeProducer,
    load: Load,
) -> None:
    """The log no longer reaches back to its beginning, so a copy is the only way: for a new
    replicant (r3), and for an embedded replica in a service."""
    lsn = add_one(producer)
    for node in ("r1", "r2"):
        await_coherent(watch, node, lsn)
    cut_log(cluster, watch.view.nodes["r1"].ack.offset - 1)
    # Its port was free when the cluster began, which may be long ago.
    cluster.ports = replace(cluster.ports, sql=(*cluster.ports.sql[:2], find_free_port()))
    cluster.start("r3")
    assert "snapshot of" in logged(cluster, "r3")
    await_coherent(watch, "r3", add_one(producer))
    with open_replica(settings_of(cluster, "newcomer")) as replica:
        assert replica.lsn > lsn
        row = replica.get("t", ALONE)
        assert row is not None
        assert row["n"] == current_value(cluster)
    load.more(50)
    assert_consistent(cluster, (*NODES, "r3"))


def cut_log(cluster: LocalCluster, offset: int) -> None:
    """Delete the records below `offset`, as truncation below the oldest snapshot does."""
    log = Topics(cluster.cluster_settings.database).log.name
    partition = TopicPartition(log, 0, offset)
    admin = AdminClient(cluster.kafka_settings.librdkafka())
    for future in admin.delete_records([partition]).values():
        future.result(30)
    reader = TopicReader(cluster.kafka_settings, "cut")
    try:
        assert reader.first_offset(log, 0) == offset
    finally:
        reader.close()


def test_l6_a_replicant_that_lost_its_store_gets_another_one(
    cluster: LocalCluster, watch: ClusterWatch, producer: ChangeProducer, load: Load
) -> None:
    cluster.kill("r2")
    shutil.rmtree(cluster.data / "r2")
    cluster.start("r2")
    await_coherent(watch, "r2", add_one(producer))


def test_d4_a_replica_that_was_closed_holds_up_nobody(
    cluster: LocalCluster, settings: ClientSettings, producer: ChangeProducer
) -> None:
    """It gives back all its leases, not the first alone: the others would block the tables' schema
    changes until its session has run out."""
    for name in ("second", "third"):
        assert producer.submit({"sql": f"CREATE TABLE {name} (id bigint PRIMARY KEY)"}).result().lsn
    with open_replica(settings_of(cluster, "looker")) as replica:
        ids = [each.table_id for each in replica.tables() if each.name in ("t", "second", "third")]
    ledger = RedisLedger(settings.redis, settings.cluster.database)

    def held() -> int:
        found = 0
        for table in ids:
            reply = ledger.call(Holders(table))
            assert isinstance(reply, HolderList)
            found += sum(holding.agent == "guest" for holding in reply.holders)
        return found

    try:
        with open_replica(settings_of(cluster, "guest")):
            until(lambda: held() == 3, "leases on three tables")
        assert held() == 0
    finally:
        ledger.close()


def test_l3_l5_no_write_was_lost_or_doubled_and_all_nodes_are_equal(
    cluster: LocalCluster, settings: ClientSettings, load: Load
) -> None:
    load.stop()
    with open_replica(settings_of(cluster, "last")) as replica:
        load.assert_exact(replica)
    load.assert_same_answers(settings)
    assert_consistent(cluster, (*NODES, "r3"))
    for name in (*NODES, "r3", "changefeed"):
        assert "Traceback" not in logged(cluster, name)
