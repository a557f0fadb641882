"""The log's topic deleted and recreated under a running system, which Kafka's clients may not
notice: once a broker has been restarted they take the new topic's metadata for outdated.

Goal: whoever has read the old log ends and says what happened and what to do, reads and answers
end with it, nothing that was answered is missing in the stores, a start does not go on in another
log, and goes on in the old one when it is brought back.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from infra.local_cluster import ROOT, LocalCluster
from leasehold import ChangeProducer, Replica, open_replica
from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.kafka.admin import TopicAdmin
from leasehold.adapters.kafka.reader import TopicReader
from leasehold.adapters.kafka.writer import TopicWriter
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.model.errors import BusUnavailable, LeaseholdError, LogStopped
from leasehold.model.records.log import Barrier
from leasehold.model.topics import Topic, Topics
from leasehold.node import bootstrap as bootstrapping
from leasehold.replica.row_values import named as named_columns
from leasehold.settings.client import ClientSettings
from tests.support.cluster.system_cluster import (
    assert_consistent,
    command,
    is_told,
    logged,
    running,
    settings_of,
    until,
)
from tests.support.cluster.system_load import ALONE, add_one, made_counters

pytestmark = pytest.mark.long("makes a broker's log anew twice, under writers")

NODES = ("m1", "m2", "r1")
SERVICES = (*NODES, "changefeed")
KEYS = range(4)
FAST = {"LEASEHOLD_LOG_LEVEL": "DEBUG"}
KAFKA_ALONE = {
    "LEASEHOLD_FAST_LOG": "off",
    "LEASEHOLD_FAST_ACKS": "off",
    "LEASEHOLD_FAST_REQUESTS": "off",
}


@pytest.fixture(
    scope="module", params=[FAST, KAFKA_ALONE], ids=["fast ways, broker restarted", "Kafka alone"]
)
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalCluster]:
    environ = {**os.environ, **request.param}
    with running(tmp_path_factory.mktemp("anew"), SERVICES, environ) as made:
        made_counters(settings_of(made, "setup"), (*KEYS, ALONE))
        yield made


def is_fast(cluster: LocalCluster) -> bool:
    return cluster.env("r1").get("LEASEHOLD_FAST_LOG") != "off"


def blind(cluster: LocalCluster) -> None:
    """Clients that know of a restart of the broker notice nothing. (Those of the other cluster do,
    and end by what they read: both are to say the same.)"""
    if is_fast(cluster):
        cluster.restart("kafka")
    told = partial(command, cluster, "status")

    def untroubled() -> bool:
        said = told()
        # Beside the logs, to be read where it took long: once in some hundred restarts it does.
        with (cluster.processes.logs / "status.log").open("a") as kept:
            kept.write(f"{datetime.now(UTC)} {said.out}\n")
        return said.code == 0

    until(untroubled, "a status without troubles", seen=lambda: told().out)


# ---------------------------------------------------------------- the log


def log_of(cluster: LocalCluster) -> Topic:
    return Topics(cluster.cluster_settings.database).log


def copy_of(cluster: LocalCluster) -> list[bytes]:
    log = log_of(cluster).name
    reader = TopicReader(cluster.kafka_settings, "copy")
    try:
        first, end = reader.offsets(log, 0)
        assert first == 0
        reader.start(log, 0, 0)
        found: list[bytes] = []
        while len(found) < end:
            found += [record.value or b"" for record in reader.read(1_000, 1.0)]
        return found
    finally:
        reader.close()


def recreate(cluster: LocalCluster, records: list[bytes]) -> None:
    """The topic, with these records in it."""
    log = log_of(cluster)
    client = AdminClient(cluster.kafka_settings.librdkafka())
    for deleted in client.delete_topics([log.name]).values():
        deleted.result()
    admin = TopicAdmin(cluster.kafka_settings, "anew")

    def made() -> bool:
        try:
            return bool(admin.create([log], 1))
        except (BusUnavailable, KafkaException):
            return False  # the old one is still on its way out

    until(made, "the topic recreated")
    writer = TopicWriter(cluster.kafka_settings, "anew", linger_ms=5)
    for record in records:
        writer.send(log.name, 0, None, record)
    assert writer.close(30.0) == 0


def barriers(count: int) -> list[bytes]:
    return [MessagePackCodec().encode(Barrier(b"%d" % number)) for number in range(count)]


# ---------------------------------------------------------------- who ends


def assert_ended(cluster: LocalCluster, name: str) -> None:
    until(lambda: not cluster.is_running(name), f"{name} to end")
    log = logged(cluster, name)
    assert "Traceback" not in log, log
    last = log.strip().splitlines()[-1]
    assert f"topic '{log_of(cluster).name}' was deleted and recreated" in last, last
    assert "docs/how-to/recover-a-lost-log.md" in last, last
    assert "Rebuild this process" not in log, log


def assert_refuses(replica: Replica) -> None:
    def stopped() -> bool:
        try:
            replica.get("t", 0)
        except LogStopped as error:
            return "was deleted and recreated" in error.message
        except LeaseholdError:
            return False
        return False

    until(stopped, "the embedded replica's refusal")
    assert not replica.coherent


def start(cluster: LocalCluster, name: str) -> str:
    """Start a service that ends by itself; what it says last. Its exit code is 1."""
    done = subprocess.run(
        [sys.executable, *cluster.services[name].command[1:]],
        env=cluster.env(name),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return done.stderr.strip().splitlines()[-1]


def test_l2_idle_and_then_started_in_another_log_and_in_the_old_one_brought_back(
    cluster: LocalCluster,
    settings: ClientSettings,
    producer: ChangeProducer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    blind(cluster)
    counted = add_one(producer)
    with open_replica(settings_of(cluster, "embedded")) as replica:
        replica.wait_applied(counted)
        before = replica.get("t", ALONE)
        assert before is not None
        until(lambda: "goes on at offset" in logged(cluster, "changefeed"), "the changefeed")
        # Nobody writes to it while it is copied; who stood still notices as soon as he goes on.
        for name in NODES:
            cluster.kill(name, signal.SIGSTOP)
        old = copy_of(cluster)
        while (more := copy_of(cluster)) != old:  # what was on its way
            old = more
        recreate(cluster, [])
        for name in NODES:
            cluster.kill(name, signal.SIGCONT)
        for name in SERVICES:
            assert_ended(cluster, name)
        assert_refuses(replica)
    assert command(cluster, "status").code == 1
    for name in SERVICES:
        assert "has only" in start(cluster, name), name
    recreate(cluster, barriers(len(old) + 100))
    for name in SERVICES:
        last = start(cluster, name)
        assert "does not stand in topic" in last, last
        assert "docs/how-to/recover-a-lost-log.md" in last, last
    # Far behind, it would take a snapshot of somebody's, over what may be the last copy.
    monkeypatch.setattr(bootstrapping, "BEHIND_RECORDS_MAX", 50)
    with pytest.raises(LogStopped, match="does not stand in topic"):
        bootstrapping.bootstrap(
            cluster.data / "r1" / "store.db",
            "r1",
            settings.topics,
            settings.kafka,
            settings.snapshot,
        )
    recreate(cluster, old)
    for name in SERVICES:
        cluster.start(name)
    again = add_one(producer)
    with open_replica(settings_of(cluster, "embedded")) as replica:
        replica.wait_applied(again)
        assert replica.get("t", ALONE) == {"id": ALONE, "n": before["n"] + 1}
    assert_consistent(cluster, NODES)


class Writer:
    """Adds one to its row, again and again, until an answer does not come."""

    def __init__(self, settings: ClientSettings, key: int) -> None:
        self._settings = settings
        self.key = key
        self.answered = 0
        self.error: LeaseholdError | None = None
        self.thread = threading.Thread(target=self._run, name=f"writer {key}")
        self.thread.start()

    def _run(self) -> None:
        values = {"n": {"expr": "n + 1"}}
        request = {"table": "t", "op": "update", "key": {"id": self.key}, "values": values}
        with ChangeProducer(self._settings) as producer:
            try:
                while True:
                    assert producer.submit(request).result(5.0).lsn
                    self.answered += 1
            except LeaseholdError as error:
                self.error = error


def test_l2_t5_under_writes_nothing_answered_is_missing_in_the_stores(
    cluster: LocalCluster, settings: ClientSettings
) -> None:
    blind(cluster)
    with open_replica(settings_of(cluster, "embedded")) as replica:
        writers = [Writer(settings, key) for key in KEYS]
        try:
            until(lambda: all(w.answered > 100 or w.error for w in writers), "answers")
            assert all(writer.error is None for writer in writers)
            if is_fast(cluster):
                until(lambda: is_told(cluster, "r1"), "the log told to the replicant")
        finally:
            recreate(cluster, [])
            for writer in writers:
                writer.thread.join()
        for name in SERVICES:
            assert_ended(cluster, name)
        assert_refuses(replica)
    for writer in writers:
        assert writer.error is not None
        assert writer.error.sqlstate == "08007", "unknown, never refused"
    for name in ("r1", "embedded"):  # those that were coherent (C1)
        store = SqliteStore(cluster.data / name / "store.db")
        try:
            with store.open_snapshot() as snapshot:
                table = snapshot.newest("t")
                for writer in writers:
                    row = snapshot.get(table, (writer.key,))
                    assert row is not None
                    counted = named_columns(table, row)["n"]
                    assert counted >= writer.answered, (name, writer.key, row)
        finally:
            store.close()
