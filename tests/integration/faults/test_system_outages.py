"""Kafka and Redis taken away and given back under a running system; no Spark.

Goal: what is away is named in clear words, nobody is told what is not so, and everything goes on
by itself when it is back.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.local_cluster import LocalCluster
from infra.ports import Ports
from leasehold import ChangeProducer, Replica
from leasehold.adapters.kafka.reader import TopicReader
from leasehold.adapters.os.clock import unix_us
from leasehold.admin.report import report
from leasehold.admin.view import ClusterView
from leasehold.admin.watch import ClusterWatch
from leasehold.model.errors import LeaseholdError, NotCoherent, OutcomeUnknown
from leasehold.settings.client import ClientSettings
from tests.support.cluster.secure_suite import secrets_of
from tests.support.cluster.system_cluster import (
    assert_consistent,
    command,
    logged,
    running,
    seen,
    settings_of,
    until,
)
from tests.support.cluster.system_jobs import begin, ended
from tests.support.cluster.system_load import OFTEN_S, Load, made_counters, settled
from tests.support.cluster.system_subscriber import following

pytestmark = pytest.mark.long(
    "two minutes of brokers and Redis that die or stand still; each rule has shorter tests"
)

NODES = ("m1", "m2", "r1")
SERVICES = (*NODES, "changefeed")
KEYS = range(6)
ENVIRON = {**os.environ, "LEASEHOLD_SESSION_TTL_MS": "3000"}
"""Short, since a ledger that lost its state is waited for one whole TTL (D6)."""
EARLY = ("m1", "r1", "changefeed")
LOG_LINE = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} [A-Z]+ [\w.]+: ")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with running(tmp_path_factory.mktemp("outages"), SERVICES, ENVIRON) as made:
        made_counters(settings_of(made, "setup"), KEYS)
        yield made


@pytest.fixture(scope="module")
def load(settings: ClientSettings, replica: Replica) -> Iterator[Load]:
    """Writers that go on through every outage of this module."""
    with Load(settings, "t", KEYS, pace_s=OFTEN_S) as made:
        made.more(50)
        yield made


def status_says(cluster: LocalCluster, words: str) -> bool:
    said = command(cluster, "status", "--json")
    if said.code == 0:
        return False  # there a moment ago
    assert said.code == 1, said
    return any(words in trouble for trouble in said.json["troubles"])


def await_no_troubles(cluster: LocalCluster) -> None:
    said = command(cluster, "status")

    def is_well() -> bool:
        nonlocal said
        said = command(cluster, "status")
        return said.code == 0

    try:
        until(is_well, "a status without troubles")
    except AssertionError as error:
        raise AssertionError(f"{error}; the last one said:\n{said.out}{said.err}") from None


# ---------------------------------------------------------------- an agent that stands still


def test_d7_an_agent_paused_past_its_session_holds_up_one_step_and_goes_on_when_it_wakes(
    cluster: LocalCluster, watch: ClusterWatch, producer: ChangeProducer, tmp_path: Path
) -> None:
    """While it stands still its lease holds up the step for as long as its session may live, and
    it is named; then the change goes on without it. What it decodes after it woke is right by the
    version that it says (that it decodes nothing under the lease it lost, D3: unit tests)."""
    with following(cluster, "follower", "t", tmp_path / "rows") as service:
        until(lambda: bool(service.rows), "a row from the subscriber")
        before = service.rows[-1]["version"]
        service.process.send_signal(signal.SIGSTOP)
        try:
            job = begin(producer, "ALTER TABLE t ADD COLUMN note text")
            seen(watch, lambda view: "follower" in waits_of(view, job), "the blocker's name")
            ended(watch, job)
            note = {"table": "t", "op": "update", "key": {"id": 0}, "values": {"note": "new"}}
            assert settled(producer.submit(note)).lsn
        finally:
            service.process.send_signal(signal.SIGCONT)
        # Rows from before have none, also where they are decoded with the column.
        until(lambda: any(r["values"].get("note") == "new" for r in service.rows), "the row's note")
        rows = service.rows
    for row in rows:
        # Delete-only at v + 1, public at v + 2.
        assert ("note" in row["values"]) == (row["version"] >= before + 2), row
        assert row["made_under"] <= row["version"] or row["version"] > before, row


def waits_of(view: ClusterView, job: int) -> str:
    jobs = report(view, unix_us())["jobs"]
    return " ".join(words for each in jobs if each["job"] == job for words in each["waits_for"])


# ---------------------------------------------------------------- Redis


def test_d6_redis_away_writes_and_reads_go_on_and_a_schema_change_waits(
    cluster: LocalCluster,
    watch: ClusterWatch,
    producer: ChangeProducer,
    replica: Replica,
    load: Load,
) -> None:
    """The job says what it waits for, and ends by itself once Redis is back with its data."""
    cluster.kill("redis")
    try:
        load.more(100)
        replica.wait_coherent()
        assert replica.get("t", 0) is not None
        until(lambda: status_says(cluster, "lease ledger is away"), "a status that names Redis")
        job = begin(producer, "ALTER TABLE t ADD COLUMN a text")
        until(lambda: waits_for_redis(cluster, job), "a job that says that it waits for Redis")
        load.more(50)
        assert not watch.view.jobs[job].job.status.ended
    finally:
        cluster.start("redis")
    ended(watch, job)
    await_no_troubles(cluster)


def waits_for_redis(cluster: LocalCluster, job: int) -> bool:
    jobs: list[dict[str, Any]] = command(cluster, "jobs", "list", "--json").json
    waiting = [words for each in jobs if each["job"] == job for words in each["waits_for"]]
    return any("ledger" in words or "Redis" in words for words in waiting)


def test_d6_redis_back_without_its_data(
    cluster: LocalCluster,
    watch: ClusterWatch,
    producer: ChangeProducer,
    replica: Replica,
    load: Load,
) -> None:
    """The ledger is built again from the log and the agents, nothing is published for one TTL,
    then the change goes on; writers and readers notice nothing."""
    before = watch.view.ledger
    assert before is not None
    cluster.kill("redis")
    for name in cluster.redis.names:
        for path in (cluster.data / name).iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    cluster.start("redis")
    job = begin(producer, "ALTER TABLE t ADD COLUMN b text")
    load.more(50)
    ended(watch, job)
    replica.wait_coherent()
    assert replica.get("t", 0) is not None

    def rebuilt(_: object) -> bool:
        ledger = watch.view.ledger
        return (
            ledger is not None
            and ledger.report.run_id != before.report.run_id
            and ledger.report.ready
            and {"r1", "embedded"} <= {session.agent for session in ledger.report.sessions}
        )

    seen(watch, rebuilt, "a ledger with the agents that were there before")
    await_no_troubles(cluster)


# ---------------------------------------------------------------- acknowledgements by Redis


def grown(settings: ClientSettings, load: Load) -> tuple[int, int]:
    """Records of the log, and of the topic of acknowledgements, while the load writes."""
    reader = TopicReader(settings.kafka, "counter")
    names = (settings.topics.log.name, settings.topics.acks.name)
    try:
        before = [reader.end_offset(name, 0) for name in names]
        load.more(100)
        log, acks = [
            reader.end_offset(name, 0) - end for name, end in zip(names, before, strict=True)
        ]
    finally:
        reader.close()
    return log, acks


def by_redis(settings: ClientSettings, load: Load) -> bool:
    log, acks = grown(settings, load)
    return acks < log


def test_acknowledgements_go_by_redis_while_it_is_there(
    cluster: LocalCluster, settings: ClientSettings, replica: Replica, load: Load
) -> None:
    """r1 and the embedded replica would put one on the topic for every record. Also a new master's
    way is found, which listens on a channel of its own."""
    replica.wait_coherent()
    until(lambda: by_redis(settings, load), "acknowledgements by Redis")
    holder = "m1" if "now master" in logged(cluster, "m1") else "m2"
    cluster.restart(holder)
    replica.wait_coherent()
    until(lambda: by_redis(settings, load), "acknowledgements by Redis to another master")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["dies", "stands still"])
def test_c1_writes_go_on_by_kafka_while_redis_dies_or_stands_still(
    cluster: LocalCluster,
    settings: ClientSettings,
    replica: Replica,
    load: Load,
    number: signal.Signals,
) -> None:
    """Each acknowledged write is seen by whoever reads then; the sums are told at the end."""
    cluster.kill("redis", number)
    try:
        load.more(100)
        log, acks = grown(settings, load)
        assert acks > log  # two nodes and each record, and what is renewed
        replica.wait_coherent()
        answered = load.committed
        found = {row["id"]: row["n"] for row in replica.scan("t")}
        assert all(found[key] >= count for key, count in answered.items())
        assert logged(cluster, "r1").count("acknowledgements by Redis") <= 20
    finally:
        if number == signal.SIGSTOP:
            cluster.kill("redis", signal.SIGCONT)
        else:
            cluster.start("redis")
    until(lambda: by_redis(settings, load), "acknowledgements by Redis again")
    await_no_troubles(cluster)


# ---------------------------------------------------------------- Kafka


def test_t5_l4_kafka_killed_and_restarted_under_load(
    cluster: LocalCluster,
    settings: ClientSettings,
    watch: ClusterWatch,
    producer: ChangeProducer,
    replica: Replica,
    load: Load,
) -> None:
    """While it is away a read is refused once the lease has run out (C2) and a write is unknown
    (T5), never refused; afterwards everything goes on without hands."""
    cluster.kill("kafka")
    try:
        until(lambda: not replica.coherent, "the end of the coherency lease")
        with pytest.raises(NotCoherent):
            replica.get("t", 0)
        values = {"n": {"expr": "n + 1"}}
        request = {"table": "t", "op": "update", "key": {"id": 0}, "values": values}
        pending = producer.submit(request)
        with pytest.raises(OutcomeUnknown):
            pending.result(0.5)
        said = command(cluster, "status")
        assert said.code == 3, said
        assert "Is Kafka running" in said.err
        assert len(said.err.strip().splitlines()) <= 2, said.err
        refused = command(cluster, "ddl", "ALTER TABLE t ADD COLUMN z text")
        assert refused.code == 3, refused
    finally:
        cluster.start("kafka")
    counted = settled(pending)
    assert counted.lsn
    load.more(200)
    ended(watch, begin(producer, "ALTER TABLE t ADD COLUMN c text"))
    await_no_troubles(cluster)
    # The one of this test is not the load's: it is taken back, so that the load's sums stay exact.
    back = {**request, "values": {"n": {"expr": "n - 1"}}}
    assert settled(producer.submit(back)).lsn


def test_l3_l5_no_outage_lost_or_doubled_a_write(
    cluster: LocalCluster, settings: ClientSettings, replica: Replica, load: Load
) -> None:
    load.stop()
    load.assert_exact(replica)
    load.assert_same_answers(settings)
    assert_consistent(cluster, NODES)
    for name in SERVICES:
        assert "Traceback" not in logged(cluster, name)


# ---------------------------------------------------------------- started before the broker


@pytest.mark.parametrize("name", EARLY)
def test_started_without_a_broker_it_says_so_and_is_ready_once_there_is_one(
    early: EarlyStart, name: str
) -> None:
    """One clear line a try, no traceback, and no hands needed afterwards."""
    early.await_words(name)
    early.bring_the_broker()
    early.cluster.wait_ready(name)
    lines = logged(early.cluster, name).splitlines()
    assert not [line for line in lines if "Traceback" in line], lines
    complaints = [line for line in lines if "Kafka" in line and "WARNING" in line]
    assert 1 <= len(complaints) <= 60, lines
    assert all(LOG_LINE.match(line) for line in complaints), complaints


class EarlyStart:
    """Services that were started before the broker; the first test to ask for it brings it."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.cluster = cluster
        self._here = False

    def await_words(self, name: str) -> None:
        def says() -> bool:
            assert self.cluster.is_running(name), logged(self.cluster, name)
            return "Kafka" in logged(self.cluster, name)

        until(says, f"{name} says what it waits for")

    def bring_the_broker(self) -> None:
        if not self._here:
            for name in EARLY:
                self.await_words(name)
                assert not self.cluster.is_ready(name)
            self.cluster.start_servers()
            self.cluster.create_topics()
            self._here = True


@pytest.fixture(scope="module")
def early(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EarlyStart]:
    folder = tmp_path_factory.mktemp("early")
    ports = Ports.free()
    secure = secrets_of(folder, ports, ENVIRON)
    with LocalCluster(folder, ports, ENVIRON, secure=secure) as cluster:
        cluster.make_secrets()
        if secure is not None:  # a broker that has run knows its users before it listens
            cluster.start_servers()
            cluster.stop("kafka")
            cluster.stop("redis")
        for name in EARLY:
            cluster.start(name, wait=False)
        yield EarlyStart(cluster)


def test_a_client_without_a_broker_is_told_so_at_once(tmp_path_factory: Any) -> None:
    with LocalCluster(tmp_path_factory.mktemp("none"), Ports.free(), ENVIRON) as cluster:
        said = command(cluster, "check")
        assert said.code == 3, said
        assert "Is Kafka running" in said.err
        with pytest.raises(LeaseholdError, match="Kafka"):
            ChangeProducer(settings_of(cluster, "nobody"))
