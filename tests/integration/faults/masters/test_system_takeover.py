"""Masters killed, paused and brought back under load; a standby, a replicant and no Spark.

Goal: whatever becomes of masters, what was acknowledged is there, once, and the same id has the
same answer; there is one line of history.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator

import psycopg
import pytest

from infra.local_cluster import LocalCluster
from leasehold import ChangeProducer, Replica, open_replica
from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.kafka.reader import TopicReader
from leasehold.admin.watch import ClusterWatch
from leasehold.model.records.acks import Ack
from leasehold.model.records.log import LogPosition
from leasehold.replication.log.admission import Verdict, admit
from leasehold.settings.client import ClientSettings
from tests.integration.faults.masters import MASTERS, NODES, SERVICES
from tests.support.cluster.secure_suite import dsn_of
from tests.support.cluster.system_cluster import (
    assert_consistent,
    await_ack,
    command,
    logged,
    seen,
    settings_of,
    until,
)
from tests.support.cluster.system_load import Load

KEYS = range(6)


@pytest.fixture(scope="module")
def replica(cluster: LocalCluster) -> Iterator[Replica]:
    """One that lives through every takeover of this module."""
    with open_replica(settings_of(cluster, "embedded")) as made:
        yield made


@pytest.fixture
def load(settings: ClientSettings, replica: Replica) -> Iterator[Load]:
    """Writers on rows that begin at 0, already at work."""
    with ChangeProducer(settings) as producer:
        for key in KEYS:
            fields = {"table": "t", "key": {"id": key}, "values": {"n": 0}}
            assert producer.submit({"op": "upsert", **fields}).result(90).lsn
    with Load(settings, "t", KEYS) as made:
        made.more(100)
        yield made


def master_of(watch: ClusterWatch) -> str:
    return seen(watch, lambda view: bool(view.log.master), "a master").log.master


def other_than(name: str) -> str:
    return MASTERS[1 - MASTERS.index(name)]


def await_master(watch: ClusterWatch, name: str) -> int:
    """Until the log says that `name` is master; the epoch."""
    return seen(watch, lambda view: view.log.master == name, f"{name} as master").log.epoch


def await_standby(watch: ClusterWatch, name: str, epoch: int) -> None:
    """Until the node itself says so, of that epoch or a later one."""

    def is_standby(ack: Ack) -> bool:
        return ack.role == "standby" and ack.epoch >= epoch

    await_ack(watch, name, is_standby, f"as standby of epoch {epoch}")


def test_l3_l5_master_killed_under_load_nothing_acknowledged_is_lost_or_doubled(
    cluster: LocalCluster,
    settings: ClientSettings,
    watch: ClusterWatch,
    replica: Replica,
    load: Load,
) -> None:
    """Scenarios 25 and 26. The killed one comes back as a standby with the same store (L6)."""
    killed = master_of(watch)
    before = len(load.answered)
    cluster.kill(killed)
    epoch = await_master(watch, other_than(killed))
    load.more(200)
    load.stop()
    load.assert_exact(replica)
    assert len(load.answered) > before
    load.assert_same_answers(settings)
    cluster.start(killed)
    await_standby(watch, killed, epoch)
    assert_consistent(cluster, NODES)
    assert command(cluster, "status", "--json").json["log"]["master"] == other_than(killed)


def test_t2_a_cursor_is_open_while_the_master_is_killed(
    cluster: LocalCluster, watch: ClusterWatch
) -> None:
    """Its COMMIT finds no master, waits for the next one, meets a verify error there and runs
    again: the cursor goes on with what was committed, from where its client had come to."""

    def connected() -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(dsn_of(cluster, 0), autocommit=True)

    with connected() as client, connected() as other:
        client.execute("CREATE TABLE rows (id int PRIMARY KEY, v int)")
        client.execute("INSERT INTO rows SELECT n, n * 10 FROM generate_series(1, 5) AS n")
        client.execute("BEGIN")
        client.execute("UPDATE rows SET v = (SELECT v + 1) WHERE id = 4")
        client.execute("DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT id, v FROM rows ORDER BY id")
        assert client.execute("FETCH 2 FROM c").fetchall() == [(1, 10), (2, 20)]
        assert client.execute("FETCH BACKWARD c").fetchall() == [(1, 10)]
        client.execute("UPDATE rows SET v = (SELECT v + 2) WHERE id = 1")
        other.execute("UPDATE rows SET v = v + 100 WHERE id = 4")
        killed = master_of(watch)
        cluster.kill(killed)
        client.execute("COMMIT")
        epoch = await_master(watch, other_than(killed))
        assert client.execute("FETCH 2 FROM c").fetchall() == [(2, 20), (3, 30)]
        assert client.execute("FETCH ALL FROM c").fetchall() == [(4, 141), (5, 50)]
        assert client.execute("FETCH FIRST FROM c").fetchall() == [(1, 10)], "as of its DECLARE"
        committed = other.execute("SELECT id, v FROM rows ORDER BY id").fetchall()
        assert committed == [(1, 12), (2, 20), (3, 30), (4, 141), (5, 50)]
        client.execute("CLOSE c")
        client.execute("DROP TABLE rows")
    cluster.start(killed)
    await_standby(watch, killed, epoch)


def test_l1_master_paused_past_its_election_is_fenced_and_steps_down(
    cluster: LocalCluster,
    settings: ClientSettings,
    watch: ClusterWatch,
    replica: Replica,
    load: Load,
) -> None:
    """Scenario 28. It wakes in the belief that it is master, with requests of before its pause in
    its hands; what it appends counts for nobody, itself included."""
    paused = master_of(watch)
    cluster.kill(paused, signal.SIGSTOP)
    try:
        epoch = await_master(watch, other_than(paused))
        load.more(100)
    finally:
        cluster.kill(paused, signal.SIGCONT)
    await_standby(watch, paused, epoch)
    load.more(100)
    load.stop()
    load.assert_exact(replica)
    load.assert_same_answers(settings)
    assert master_of(watch) == other_than(paused)
    assert watch.view.log.epoch == epoch, "waking up took the epoch from nobody"
    assert_consistent(cluster, NODES)


@pytest.mark.long("three elections; one master, and both, are killed above and below")
def test_l5_masters_killed_again_and_again(
    cluster: LocalCluster,
    settings: ClientSettings,
    watch: ClusterWatch,
    replica: Replica,
    load: Load,
) -> None:
    """Scenario 26: three masters in turn, each killed while it decides."""
    for _ in range(3):
        killed = master_of(watch)
        cluster.kill(killed)
        epoch = await_master(watch, other_than(killed))
        load.more(50)
        cluster.start(killed)
        await_standby(watch, killed, epoch)
    load.more(50)
    load.stop()
    load.assert_exact(replica)
    load.assert_same_answers(settings)
    assert_consistent(cluster, NODES)


@pytest.mark.long("20 s; a master is killed under load in make test")
def test_l5_both_masters_killed_and_one_started_again(
    cluster: LocalCluster,
    settings: ClientSettings,
    watch: ClusterWatch,
    replica: Replica,
    load: Load,
) -> None:
    """Nobody decides for a while: clients know nothing, and are told the truth afterwards."""
    for name in MASTERS:
        cluster.kill(name)
    try:
        until(lambda: not replica.coherent, "the end of the coherency lease")
        until(lambda: says_silent(cluster), "a status that names the silent master")
        answered = len(load.answered)
    finally:
        for name in MASTERS:
            cluster.start(name)
    load.more(100)
    load.stop()
    assert len(load.answered) > answered
    load.assert_exact(replica)
    load.assert_same_answers(settings)
    assert_consistent(cluster, NODES)


def says_silent(cluster: LocalCluster) -> bool:
    said = command(cluster, "status", "--json")
    if said.code == 0:
        return False  # heard of a moment ago
    assert said.code == 1, said
    return any("has written nothing" in words for words in said.json["troubles"])


def test_l1_l2_l9_the_log_has_one_line_of_history(settings: ClientSettings) -> None:
    """Read with the rules of the log alone, which raise LogStopped where a record that counts is
    out of sequence, an LSN is left out, or a commit time does not rise over all masters."""
    codec = MessagePackCodec()
    log = settings.topics.log.name
    reader = TopicReader(settings.kafka, "history")
    try:
        end = reader.end_offset(log, 0)
        reader.start(log, 0, reader.first_offset(log, 0))
        position, claims = LogPosition(), 0
        while reader.next_offset(log, 0) < end:
            for record in reader.read(1_000, 1.0):
                assert record.value is not None
                decoded, digest = codec.decode_log(record.value), codec.digest(record.value)
                verdict, position = admit(position, record.offset, decoded, digest)
                claims += verdict is Verdict.CLAIMED
    finally:
        reader.close()
    assert claims >= 4
    assert position.epoch == claims
    assert position.lsn > 500


def test_no_process_has_met_an_error_of_its_own(cluster: LocalCluster) -> None:
    for name in SERVICES:
        assert "Traceback" not in logged(cluster, name)
