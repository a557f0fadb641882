"""Disks that get short of room under a running system: that of the master's store, and a node's.

Goal: before a disk is full the master refuses what needs room, in words, and takes it again when
there is room; a node leaves in order and goes on when there is room; nothing that was answered is
lost, and `leasehold doctor` names what it is.

Method: the stores lie on small file systems in memory, which only root may mount.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from infra.local_cluster import LocalCluster
from leasehold import ChangeProducer
from leasehold.admin.watch import ClusterWatch
from leasehold.model.records.requests import Outcome
from leasehold.settings.client import ClientSettings
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
from tests.support.cluster.system_load import made_counters

pytestmark = [
    pytest.mark.long("runs a cluster on file systems of its own"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a file system"),
]

MIB = 1 << 20
DISK_MIB = 200
"""Of which a tenth is the reserve."""
SHORT_MIB, OUT_MIB, ROOM_MIB = 15, 3, 40
NODES = ("m1", "r1", "r2")
BALLAST = "ballast"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    folder = tmp_path_factory.mktemp("reserve")
    with ExitStack() as mounted:
        for node in ("m1", "r1"):
            place = folder / node
            place.mkdir(mode=0o700)
            size = f"size={DISK_MIB}m,mode=0700"
            subprocess.run(
                ["mount", "-t", "tmpfs", "-o", size, "leasehold-test", str(place)], check=True
            )
            mounted.callback(subprocess.run, ["umount", "--lazy", str(place)], check=True)
        with running(folder, (*NODES, "changefeed"), dict(os.environ)) as made:
            made_counters(settings_of(made, "setup"), range(6))
            yield made


def leave_free(place: Path, free_mib: int) -> None:
    """Fill or empty a file until so much is free."""
    ballast = place / BALLAST
    ballast.unlink(missing_ok=True)
    disk = os.statvfs(place)
    os_free = disk.f_bavail * disk.f_frsize
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, os_free - free_mib * MIB)


def asked(producer: ChangeProducer, op: str, key: int) -> Outcome:
    request = {"table": "t", "op": op, "key": {"id": key}, "on_conflict": "fail"}
    if op == "insert":
        request["values"] = {}
    return producer.submit(request).result(60)


def doctor(cluster: LocalCluster, check: str) -> list[dict[str, str]]:
    said = command(cluster, "doctor", "--json")
    return [
        each for each in said.json["findings"] if each["check"] == check and each["verdict"] != "ok"
    ]


def test_where_all_is_well_the_doctor_warns_of_one_broker_alone(
    cluster: LocalCluster, watch: ClusterWatch
) -> None:
    for node in ("r1", "r2"):
        await_coherent(watch, node, 1)
    said = command(cluster, "doctor", "--json")
    wrong = [each for each in said.json["findings"] if each["verdict"] != "ok"]
    shown = "\n".join(f"{each['verdict']} {each['check']}: {each['words']}" for each in wrong)
    assert said.code == 0, shown
    known = {"log's durability", "data folder", "nodes"}  # here nobody is asked for a password
    assert {each["check"] for each in wrong} <= known, shown
    assert any("on one broker" in each["words"] for each in wrong)


def test_a_master_short_of_room_refuses_what_adds_until_there_is_room(
    cluster: LocalCluster, producer: ChangeProducer
) -> None:
    place = cluster.data / "m1"
    leave_free(place, SHORT_MIB)
    keys = iter(range(1_000, 100_000))
    until(lambda: asked(producer, "insert", next(keys)).code == "53100", "a refusal")
    refused = asked(producer, "insert", next(keys))
    assert "LEASEHOLD_DISK_RESERVE_MB keeps 20 MiB" in refused.message
    assert asked(producer, "delete", 1_000).code in ("", "40001"), "there or not"
    (found,) = doctor(cluster, "disks")[:1]
    assert (found["verdict"], "node m1" in found["words"]) == ("fail", True), found
    refuses, takes = "refuses what adds or changes rows", "takes all writes again"
    until(lambda: refuses in logged(cluster, "m1"), "a line of the log that says so")
    leave_free(place, ROOM_MIB)
    until(lambda: asked(producer, "insert", next(keys)).lsn > 0, "writes that are taken again")
    until(lambda: takes in logged(cluster, "m1"), "a line of the log that says so")


def test_a_node_out_of_room_leaves_in_order_and_comes_back(
    cluster: LocalCluster, producer: ChangeProducer, watch: ClusterWatch
) -> None:
    place = cluster.data / "r1"
    leave_free(place, OUT_MIB)
    until(lambda: not cluster.is_running("r1"), "r1 to leave")
    log = logged(cluster, "r1")
    assert "Traceback" not in log, log
    assert "the node stops before the disk is full" in log, log
    seen(watch, lambda view: "r1" not in view.nodes, "its farewell: nobody waits for it")
    assert asked(producer, "insert", 200_000).lsn > 0, "nobody waits for it"
    leave_free(place, OUT_MIB)  # what it has ended has freed its write-ahead log
    cluster.start("r1", wait=False)
    until(lambda: "not started yet" in logged(cluster, "r1"), "a node that waits for room")
    leave_free(place, ROOM_MIB)
    await_coherent(watch, "r1")


def test_l6_all_nodes_hold_the_same_afterwards(
    cluster: LocalCluster, settings: ClientSettings
) -> None:
    assert_consistent(cluster, NODES)
