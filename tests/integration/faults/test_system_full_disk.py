"""A disk without room, under a running system: the store of a node, that of the master, the broker.

Goal: who can't write says so and ends, the others go on, nothing that was answered is lost, and
when there is room again a start is all that it takes. No file system has to be mounted for it: the
kernel refuses to let a process's files grow, as if the disk were full, until it is told otherwise.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator

import pytest

from infra.local_cluster import ROOT, LocalCluster
from leasehold import ChangeProducer, Replica
from leasehold.admin.watch import ClusterWatch
from leasehold.settings.client import ClientSettings
from tests.support.cluster.servers_suite import not_with_brokers
from tests.support.cluster.system_cluster import (
    assert_consistent,
    await_coherent,
    command,
    logged,
    running,
    seen,
    settings_of,
    until,
)
from tests.support.cluster.system_jobs import begin, ended
from tests.support.cluster.system_load import Load, made_counters

pytestmark = pytest.mark.long("fills small disks under brokers and nodes, one after the other")

NODES = ("m1", "m2", "r1")
SERVICES = (*NODES, "changefeed")
KEYS = range(6)
ENVIRON = {**os.environ, "LEASEHOLD_SESSION_TTL_MS": "3000"}
FULL_FROM_BYTES = 96 * 1024
"""Below it files may grow: a service's own log can say what is wrong. A store's WAL and a broker's
segments are beyond it after some hundred writes."""
WRITES_BEFORE = 400


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with running(tmp_path_factory.mktemp("full"), SERVICES, ENVIRON) as made:
        made_counters(settings_of(made, "setup"), KEYS)
        yield made


@pytest.fixture(scope="module")
def load(settings: ClientSettings, replica: Replica) -> Iterator[Load]:
    with Load(settings, "t", KEYS) as made:
        made.more(WRITES_BEFORE)
        yield made


def fill_the_disk_of(pid: int) -> None:
    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (FULL_FROM_BYTES, hard))


def ended_by_it(cluster: LocalCluster, name: str) -> None:
    record = cluster.processes.find(name)
    assert record is not None
    fill_the_disk_of(record.identity.pid)
    until(lambda: not cluster.is_running(name), f"{name} to end, which can't write any more")


def said_by(cluster: LocalCluster, name: str) -> None:
    """One sentence with what to do, and no traceback."""
    log = logged(cluster, name)
    assert "Traceback" not in log, log
    last = log.strip().splitlines()[-1]
    assert "can't be written" in last, last
    assert "make room on its disk" in last, last
    assert "(58030)" in last, last


def status_says(cluster: LocalCluster, words: str) -> bool:
    said = command(cluster, "status", "--json")
    return said.code == 1 and any(words in trouble for trouble in said.json["troubles"])


def test_l6_a_replicant_without_room_ends_and_catches_up_when_there_is_room(
    cluster: LocalCluster, watch: ClusterWatch, producer: ChangeProducer, load: Load
) -> None:
    """Nobody waits for it longer than its lease (C4) or, a schema change, than its session."""
    ended_by_it(cluster, "r1")
    said_by(cluster, "r1")
    load.more(200)
    until(lambda: status_says(cluster, "node r1"), "a status that names it")
    ended(watch, begin(producer, "ALTER TABLE t ADD COLUMN without_r1 text"))
    cluster.start("r1")
    load.more(50)
    await_coherent(watch, "r1")


def test_l4_a_master_without_room_has_lost_nothing_that_was_answered(
    cluster: LocalCluster, watch: ClusterWatch, producer: ChangeProducer, load: Load
) -> None:
    """Its record is in the log before its store is told: whoever is master next has it."""
    master = watch.view.log.master
    assert master in ("m1", "m2")
    ended_by_it(cluster, master)
    said_by(cluster, master)
    seen(watch, lambda view: view.log.master not in ("", master), "another master")
    load.more(200)
    ended(watch, begin(producer, "ALTER TABLE t ADD COLUMN without_master text"))
    cluster.start(master)
    load.more(50)


EMBEDDED = """
import sys, time
from leasehold import open_replica
from leasehold.model.errors import LeaseholdError
with open_replica() as replica:
    print(len(list(replica.scan("t"))), flush=True)
    while True:
        try:
            replica.get("t", 0)
        except LeaseholdError as error:
            print(error.sqlstate, error.message, flush=True)
            if error.sqlstate == "58030":
                break
        time.sleep(0.05)
"""


def test_c2_an_embedded_replica_without_room_refuses_to_read_and_says_why(
    cluster: LocalCluster, load: Load
) -> None:
    """The service lives on; what it is told is no outdated row."""
    process = subprocess.Popen(
        [sys.executable, "-c", EMBEDDED],
        env=cluster.env("service"),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert int(process.stdout.readline()) == len(KEYS)
        fill_the_disk_of(process.pid)
        out, err = process.communicate(timeout=90)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0, err
    assert "Traceback" not in err, err
    said = out.strip().splitlines()[-1]
    assert said.startswith("58030"), said
    assert "make room on its disk" in said, said
    load.more(50)


@not_with_brokers("the others go on")
def test_t5_a_broker_without_room_ends_and_everything_goes_on_with_it(
    cluster: LocalCluster, watch: ClusterWatch, producer: ChangeProducer, load: Load
) -> None:
    """An append may have failed half-way (L4); what is written meanwhile is unknown, never lost."""
    ended_by_it(cluster, "kafka")
    assert command(cluster, "status").code == 3
    cluster.start("kafka")
    load.more(200)
    ended(watch, begin(producer, "ALTER TABLE t ADD COLUMN without_broker text"))


def test_l3_l5_no_full_disk_lost_or_doubled_a_write(
    cluster: LocalCluster, settings: ClientSettings, replica: Replica, load: Load
) -> None:
    load.stop()
    load.assert_exact(replica)
    load.assert_same_answers(settings)
    assert_consistent(cluster, NODES)
