"""From release 0.1.0 to this one under load, process by process, and back, and to its end.

Goal: while a schema change runs, each process is replaced; one goes back before the upgrade is
finalized, and none can afterwards. Nothing that was acknowledged is lost, no statement fails, and
nobody writes what a process that is there can't read.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

import psycopg
import pytest

from infra.local_cluster import LocalCluster
from leasehold import ChangeProducer, __version__, open_replica
from leasehold.admin.view import ClusterView
from leasehold.admin.watch import ClusterWatch
from leasehold.catalog.job import Status
from leasehold.model.features import NEWEST, WITHOUT_LEVEL
from leasehold.settings.client import ClientSettings
from tests.support.cluster.releases import (
    THIS,
    Release,
    await_moving,
    earlier_release,
)
from tests.support.cluster.secure_suite import dsn_of, not_in_secure_mode
from tests.support.cluster.system_cluster import (
    Beside,
    assert_consistent,
    command,
    logged,
    settings_of,
)
from tests.support.cluster.system_jobs import at_full_speed, begin, control
from tests.support.cluster.system_load import Load, made_counters, made_tables

pytestmark = [
    pytest.mark.long("3 minutes: two releases of every process, one after the other"),
    not_in_secure_mode("the earlier release has other rights"),
]

COMMIT: Final = "79491950"
"""Release 0.1.0."""
MASTERS: Final = ("m1", "m2")
REPLICANTS: Final = ("r1", "r2")
NODES: Final = (*MASTERS, *REPLICANTS)
KEYS: Final = range(6)
BY_SQL: Final = 50
"""The row that is written by SQL alone."""
ROWS: Final = 20_000
SLOWLY: Final = 100
"""Rows per second of the schema change, so that it lasts for all of the upgrade."""
PACE_S: Final = 0.1


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return earlier_release(COMMIT, tmp_path_factory.mktemp("earlier"))


@pytest.fixture(scope="module")
def cluster(beside: Beside, earlier: Release) -> Iterator[LocalCluster]:
    """All of it of the earlier release."""
    environ = {**os.environ, "LEASEHOLD_COMPILED": "never"}
    with beside.running("upgrade", (), environ) as made:
        earlier.begin(made, "spark")
        for name in (*NODES, "changefeed"):
            earlier.start(made, name)
        yield made


class SqlWriter:
    """Adds one by SQL, statement after statement, on the replicant that it is told. A statement
    that has begun is ended where it was sent."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._dsns = {name: dsn_of(cluster, place) for place, name in enumerate(REPLICANTS)}
        self._on = REPLICANTS[0]
        self._moved = threading.Condition()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sql writer")
        self._is_on = ""
        self.error: BaseException | None = None
        self.committed = 0

    def move_to(self, name: str) -> None:
        """Have the next statements sent to that replicant; return when none is on another."""
        self._on = name
        await_moving(
            lambda: self._is_on == name or self.error is not None,
            f"the SQL client on {name}",
            lambda: self.committed,
        )
        assert self.error is None, self.error

    def __enter__(self) -> SqlWriter:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                name = self._on
                with psycopg.connect(self._dsns[name], autocommit=True) as client:
                    self._is_on = name
                    while self._on == name and not self._stop.wait(PACE_S):
                        client.execute("UPDATE t SET n = n + 1 WHERE id = %s", (BY_SQL,))
                        self.committed += 1
        except psycopg.Error as error:
            self.error = error


class Stage:
    """The cluster as it is watched while its processes are replaced."""

    def __init__(self, cluster: LocalCluster, watch: ClusterWatch, load: Load, sql: SqlWriter):
        self.cluster = cluster
        self._watch = watch
        self._load = load
        self._sql = sql

    def until(self, met: Callable[[ClusterView], bool], what: str) -> ClusterView:
        await_moving(
            lambda: met(self._watch.view),
            what,
            lambda: (self._watch.view.log.lsn, len(self._load.answered), self._sql.committed),
        )
        return self._watch.view

    def replace(self, name: str, release: Release) -> None:
        """Replace a process, which then is as far as the others; and the load goes on."""
        view = self._watch.view
        lsn, epoch = view.log.lsn, view.log.epoch
        print(f"{name} at LSN {lsn:,}, {self._sql.committed} statements")
        if name in REPLICANTS:
            self._sql.move_to(REPLICANTS[1 - REPLICANTS.index(name)])
        release.replace(self.cluster, name)
        if name in NODES:
            self.until(lambda view: self._is_back(view, name, lsn, epoch), f"{name} is back")
        self.load_goes_on()

    def load_goes_on(self) -> None:
        answered, committed = len(self._load.answered), self._sql.committed

        def met() -> bool:
            assert self._sql.error is None, self._sql.error
            assert not self._load.errors, self._load.errors
            return len(self._load.answered) >= answered + 20 and self._sql.committed > committed

        await_moving(
            met, "the load goes on", lambda: (len(self._load.answered), self._sql.committed)
        )

    def _is_back(self, view: ClusterView, name: str, lsn: int, epoch: int) -> bool:
        node = view.nodes.get(name)
        if node is None or node.ack.lsn < lsn or node.ack.epoch < epoch:
            return False
        if name in MASTERS:
            return node.ack.role in ("standby", "master") and bool(view.log.master)
        return node.ack.coherent


def upgrade(cluster: LocalCluster, *arguments: str) -> tuple[int, Any]:
    said = command(cluster, "upgrade", *arguments, "--json")
    return said.code, said.json


def test_each_process_is_replaced_and_one_goes_back_and_then_none_can(
    cluster: LocalCluster, settings: ClientSettings, watch: ClusterWatch, earlier: Release
) -> None:
    made_counters(settings_of(cluster, "setup"), (*KEYS, BY_SQL))
    producer = ChangeProducer(settings_of(cluster, "setup"))
    inserts = [
        {"table": "wide", "op": "insert", "key": {"id": n}, "values": {"v": n}} for n in range(ROWS)
    ]
    made_tables(producer, "CREATE TABLE wide (id bigint PRIMARY KEY, v int NOT NULL)", inserts)
    with Load(settings, "t", KEYS, pace_s=PACE_S) as load, SqlWriter(cluster) as sql:
        stage = Stage(cluster, watch, load, sql)
        stage.load_goes_on()
        job = begin(producer, "CREATE INDEX wide_v ON wide (v)")
        control(producer, job, "set", rows_per_second=SLOWLY, chunk_rows=100)

        def runs(view: ClusterView) -> bool:
            return job in view.jobs and not view.jobs[job].status.ended

        stage.until(runs, "a running schema change")
        for name in ("r1", "r2", "changefeed", "spark"):
            stage.replace(name, THIS)
        master = watch.view.log.master
        code, told = upgrade(cluster)
        assert code == 1
        assert told["level"] == 0
        assert sorted(told["blockers"]) == sorted(MASTERS), told
        releases = {each["process"]: each["release"] for each in told["processes"]}
        assert (releases["r1"], releases["m1"]) == (__version__, "0.1.0")
        assert "spark" in {each["role"] for each in told["processes"]}, told
        code, told = upgrade(cluster, "finalize", "--yes")
        assert (code, told["code"]) == (1, "55000"), told
        for name in (MASTERS[1 - MASTERS.index(master)], master):
            stage.replace(name, THIS)

        # All are of this release: and each can go back, be it to lead.
        leader = stage.until(lambda view: bool(view.log.master), "a master").log.master
        other = MASTERS[1 - MASTERS.index(leader)]
        for name in ("r1", other, leader):
            stage.replace(name, earlier)
        leads = stage.until(lambda view: view.log.master == other, "the earlier release leads")
        assert leads.log.master == other
        code, told = upgrade(cluster, "finalize", "--yes")
        assert (code, told["code"]) == (1, "55000"), told
        assert other in told["error"]
        for name in ("r1", leader, other):
            stage.replace(name, THIS)

        assert runs(watch.view), "the schema change has outlasted all of that"
        code, told = upgrade(cluster)
        assert (code, told["blockers"]) == (1, []), told
        assert [e["number"] for e in told["enables"]] == [*range(WITHOUT_LEVEL + 1, NEWEST + 1)]
        code, told = upgrade(cluster, "finalize", "--yes")
        assert (code, told["answer"]["level"], told["answer"]["was"]) == (0, NEWEST, 0), told
        code, told = upgrade(cluster, "finalize", "--yes")
        assert (code, told["answer"]["finalized"]) == (0, False), told
        stage.load_goes_on()
        sql.move_to("r2")
        assert_stays_away(cluster, earlier, "r1")
        stage.until(lambda view: upgraded(view, ("m1", "m2", "r2")), "all have read the level")
        THIS.start(cluster, "r1")
        stage.until(lambda view: upgraded(view, NODES), "all have read the level")
        code, told = upgrade(cluster)
        assert (code, told["level"], told["enables"]) == (0, NEWEST, []), told
        at_full_speed(producer, job)
        stage.until(lambda view: not runs(view), "the end of the schema change")
        found = watch.view.jobs[job].job
        assert found.status is Status.SUCCEEDED, found
        stage.load_goes_on()
        load.stop()
    producer.close()
    assert sql.error is None, sql.error
    with open_replica(settings_of(cluster, "embedded")) as replica:
        load.assert_exact(replica)
        (row,) = [row for row in replica.scan("t") if row["id"] == BY_SQL]
        assert row["n"] == sql.committed
    load.assert_same_answers(settings)
    assert_consistent(cluster, NODES)


def upgraded(view: ClusterView, nodes: tuple[str, ...]) -> bool:
    told = view.node_reports
    return all(name in told and told[name].feature_level == NEWEST for name in nodes)


def assert_stays_away(cluster: LocalCluster, earlier: Release, name: str) -> None:
    """A process of the earlier release refuses at its start what it can't read, and says what to
    do; this one's is started afterwards as if nothing had been."""
    cluster.stop(name)
    earlier.begin(cluster, name)
    await_moving(
        lambda: not cluster.is_running(name), f"{name} ends", lambda: len(logged(cluster, name))
    )
    said = logged(cluster, name)
    assert "has layout 3, this program knows 2 at most: start a newer program" in said, said
    assert "Traceback" not in said, said
