"""Redis with a replica and Sentinels: clients find the master, also the next one, in the open and
with TLS and passwords; what the ledger is called after that; and a Redis Cluster is refused."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Timer
from typing import Final

import pytest

from infra.local_cluster import LocalCluster
from infra.ports import Ports, find_free_port
from infra.redis.server import server_command, wait_for_redis
from infra.redis.servers import SENTINEL
from leasehold.adapters.redis.client import make_client
from leasehold.adapters.redis.connection import RedisLine
from leasehold.adapters.redis.ledger import RedisLedger
from leasehold.adapters.redis.server_look import look_at_redis, refuse_cluster
from leasehold.lease.commands import (
    Liveness,
    MarkReady,
    OpenSession,
    RegisterEpoch,
    Renew,
    Seed,
    SeedTables,
    Vouch,
)
from leasehold.lease.replies import LedgerRefused, LivenessReport, Opened, RefusalReason, Renewed
from leasehold.model.errors import ConfigurationError, LedgerUnavailable
from leasehold.settings.environment import RedisSettings
from tests.support.cluster.connections import connections_of
from tests.support.cluster.system_cluster import until

DATABASE = "demo"
MASTER = "m1"
"""A process that may do with the ledger what a master does."""
SECURE_TOO: Final = pytest.mark.long("40 s; with TLS the tests above and below fail over, too")
INFO = b"*2\r\n$4\r\nINFO\r\n$11\r\nreplication\r\n"


@pytest.fixture(params=[False, True], ids=["open", "secure"])
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalCluster]:
    made = LocalCluster(tmp_path, Ports.free(), redis=SENTINEL, secure=request.param)
    with made as cluster:
        cluster.start_redis()
        yield cluster


def settings_of(cluster: LocalCluster) -> RedisSettings:
    return cluster.redis_settings if cluster.secure is None else cluster.secure.redis_as(MASTER)


def look(ledger: RedisLedger) -> LivenessReport | None:
    try:
        reply = ledger.call(Liveness())
    except LedgerUnavailable:
        return None
    assert isinstance(reply, LivenessReport)
    return reply


def looked(ledger: RedisLedger, before: LivenessReport) -> LivenessReport:
    """The first look at the ledger that is not called as it was."""
    found: list[LivenessReport] = []

    def is_another() -> bool:
        report = look(ledger)
        if report is None or report.run_id == before.run_id:
            return False
        found.append(report)
        return True

    until(is_another, "a ledger of another name")
    return found[0]


def open_ledger(ledger: RedisLedger, epoch: int) -> LivenessReport:
    report = look(ledger)
    assert report is not None
    ledger.call(RegisterEpoch(epoch, vouches=True))
    ledger.call(SeedTables(epoch, report.run_id, (Seed(1, 1, 1),)))
    ledger.call(MarkReady(epoch, report.run_id))
    opened = look(ledger)
    assert opened is not None
    assert (opened.seeded, opened.ready) == (True, True)
    return opened


def test_d3_an_answer_that_comes_late_is_not_the_next_calls(cluster: LocalCluster) -> None:
    """Redis stands still for longer than a call waits, and goes on while the next one does: that
    gets its own answer, or none."""
    with closing(RedisLedger(settings_of(cluster), DATABASE, 1.0)) as ledger:
        open_ledger(ledger, 1)
        master = cluster.redis.master()
        cluster.kill(master, signal.SIGSTOP)
        goes_on = Timer(0.3, cluster.kill, (master, signal.SIGCONT))
        try:
            with pytest.raises(LedgerUnavailable):
                ledger.call(OpenSession("a", 7))
            goes_on.start()
            look(ledger)  # says whether it is an answer to that
        finally:
            goes_on.join()
        until(lambda: look(ledger) is not None, "Redis again")


def test_d6_d11_the_ledger_of_the_next_master_is_closed(cluster: LocalCluster) -> None:
    """It has the state of the one before, and its own name: nobody is served before it is seeded.
    There and back again it is a third one, although the process is the first."""
    ledger = RedisLedger(settings_of(cluster), DATABASE, 1.0)
    first = open_ledger(ledger, 1)
    assert ledger.call(OpenSession("a", 7)) == Opened(first.run_id, 7, 1, 0)
    assert ledger.call(Renew(7, 1, 0, 0)) == Renewed(first.run_id, 1, 2, 0)
    ledger.call(Vouch(1, first.run_id, 2))
    assert ledger.call(Renew(7, 2, 0, 1)) == Renewed(first.run_id, 2, 3, 2)

    master = cluster.redis.master()
    cluster.redis.kill(master)
    until(lambda: cluster.redis.master() not in ("", master), "another master")
    second = looked(ledger, first)
    assert (second.seeded, second.ready) == (False, False)
    refused = ledger.call(Renew(7, 3, 0, 2))
    assert isinstance(refused, LedgerRefused)
    assert refused.reason is RefusalReason.CLOSED
    open_ledger(ledger, 2)

    cluster.start(master)
    cluster.start("redis")
    with make_client(settings_of(cluster)) as client:
        until(lambda: client.info("replication")["connected_slaves"] == 1, "the replica")
    cluster.redis.fail_over()
    assert cluster.redis.master() == master
    third = looked(ledger, second)
    assert not third.seeded
    ledger.close()


def connected_to(cluster: LocalCluster) -> int:
    """How many connections this process has to the cluster's Redis servers and Sentinels."""
    ports = {cluster.ports.redis, cluster.ports.redis_replica, *cluster.ports.sentinels}
    return sum(each.other in ports for each in connections_of(os.getpid()))


@pytest.mark.parametrize(
    "cluster", [False, pytest.param(True, marks=SECURE_TOO)], indirect=True, ids=["open", "secure"]
)
def test_whoever_is_closed_leaves_no_connection_behind(cluster: LocalCluster) -> None:
    """Neither to a server nor to the Sentinels that were asked for it."""
    before = connected_to(cluster)
    ledger = RedisLedger(settings_of(cluster), DATABASE, 1.0)
    assert look(ledger) is not None
    line = RedisLine(settings_of(cluster), "questions")
    until(line.open, "a connection")
    assert connected_to(cluster) >= before + 4, "one each, and one each to a Sentinel"
    ledger.close()
    line.close()
    assert connected_to(cluster) == before


@pytest.mark.parametrize(
    "cluster", [False, pytest.param(True, marks=SECURE_TOO)], indirect=True, ids=["open", "secure"]
)
def test_d11_a_process_that_is_master_again_is_not_the_one_before(cluster: LocalCluster) -> None:
    """Without a restart in between its run id is the same, and its state another's."""
    ledger = RedisLedger(settings_of(cluster), DATABASE, 1.0)
    first = open_ledger(ledger, 1)
    names = [first.run_id]
    for _ in range(2):
        before = look(ledger)
        assert before is not None
        cluster.redis.fail_over()
        names.append(looked(ledger, before).run_id)
        cluster.start("redis")
        until(lambda: look_at_redis(settings_of(cluster)).replicas == 1, "the replica")
    assert len(set(names)) == 3
    report = look(ledger)
    assert report is not None
    assert not report.seeded, "seeded under its first name, which it has no more"
    ledger.close()


def test_the_fast_paths_come_to_the_next_master(cluster: LocalCluster) -> None:
    line = RedisLine(settings_of(cluster), "words")
    until(line.open, "a connection")
    master = cluster.redis.master()
    cluster.redis.kill(master)

    def is_gone() -> bool:
        line.read()
        return not line.up

    until(is_gone, "the end of the connection")
    replies: list[object] = []

    def answers() -> bool:
        if line.open():
            line.send(INFO)
        replies.extend(line.read())
        return bool(replies)

    until(answers, "an answer of the next master")
    assert b"role:master" in str(replies[0]).encode()
    line.close()


def test_a_redis_cluster_is_refused_with_a_sentence(tmp_path: Path) -> None:
    port = find_free_port()
    command = [*server_command(tmp_path, port), "--cluster-enabled", "yes"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        settings = RedisSettings(url=f"redis://127.0.0.1:{port}/0")
        wait_for_redis(settings.url, 20.0, lambda: process.poll() is None)
        with pytest.raises(ConfigurationError, match="a Redis Cluster, which Leasehold does not"):
            refuse_cluster(settings)
        ledger = RedisLedger(settings, DATABASE)
        with pytest.raises(LedgerUnavailable, match="a Redis Cluster, which Leasehold does not"):
            ledger.call(Liveness())
        ledger.close()
    finally:
        process.kill()
        process.wait()
    refuse_cluster(settings)  # one that is away may be anything
