"""Goal: in secure mode everything works, Spark and dashboard too, and nobody else gets in.

Method: the cluster that `make up SECURE=1` starts, with one master and one replicant. Commands as
an operator runs them; jobs that Spark works on; what the broker denies it logs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
import redis

from infra.deployment import KAFKA, SERVICES
from infra.local_cluster import LocalCluster
from infra.ports import LOOPBACK, Ports
from leasehold import ChangeProducer
from leasehold.adapters.kafka.admin import TopicAdmin
from leasehold.adapters.kafka.writer import TopicWriter
from leasehold.model.errors import BusUnavailable
from leasehold.model.ids import genid
from leasehold.settings.client import ClientSettings
from leasehold.settings.environment import KafkaSettings
from leasehold.settings.setting import to_environment
from tests.support.cluster.redis_server import redis_in
from tests.support.cluster.system_cluster import SOON_S, logged
from tests.support.documents.document_run import ROOT, run_marked

ROWS = 300
PAGE = ROOT / "docs" / "how-to" / "secure.md"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    folder = tmp_path_factory.mktemp("secure")
    services = [each for each in SERVICES if each.name not in ("m2", "r2", "r3")]
    with LocalCluster(folder, Ports.free(), services=services, secure=True) as made:
        made.start_all()
        yield made


def denied(cluster: LocalCluster) -> list[str]:
    return [line for line in logged(cluster, KAFKA).splitlines() if " is Denied " in line]


def run(cluster: LocalCluster, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "leasehold.cli.main", *words],
        env={
            **cluster.env("operator"),
            "PYTHONPATH": os.pathsep.join(sys.path),
            "LEASEHOLD_SQL_PORT": str(cluster.ports.sql[0]),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


def test_all_is_done_with_the_least_rights(cluster: LocalCluster, tmp_path: Path) -> None:
    run(cluster, "ddl", "create table t (id bigint primary key, n int)")
    run(cluster, "sql", "-c", f"insert into t select g, g from generate_series(1, {ROWS}) g")
    run(cluster, "ddl", "create unique index on t (n)")  # Spark backfills and validates
    run(cluster, "ddl", "alter table t add column m int not null default 7")
    assert str(7 * ROWS) in run(cluster, "sql", "-c", "select sum(m) from t")
    run(cluster, "check")
    for command in ("jobs", "leases", "versions", "dead-letter", "audit", "topics", "clock"):
        run(cluster, command)
    for command in ("doctor", "feed", "intake", "upgrade status", "top --once"):
        run(cluster, *command.split())
    assert "full backup" in run(cluster, "backup", "create", str(tmp_path / "backups"))
    status = run(cluster, "status")
    assert "all is well" in status
    assert "open:" not in status
    page = f"http://{LOOPBACK}:{cluster.ports.dashboard}/"
    with urllib.request.urlopen(page, timeout=SOON_S) as answer:
        assert b"Leasehold" in answer.read()
    events = [json.loads(line) for line in run(cluster, "audit", "--json").splitlines()]
    assert {"log-in", "schema"} <= {each["kind"] for each in events}
    assert denied(cluster) == []


def test_a_stale_row_that_a_producer_sends_is_retried_by_spark(cluster: LocalCluster) -> None:
    """Spark reads conflicts, and signs what it sends again."""
    settings = ClientSettings.read(cluster.env("producers"))
    with ChangeProducer(settings) as producer:
        made = producer.submit({"sql": "CREATE TABLE c (id bigint PRIMARY KEY, n int)"})
        assert made.result(SOON_S).lsn
        key = {"table": "c", "key": {"id": 1}}
        inserted = producer.submit({**key, "op": "insert", "values": {"n": 1}}).result(SOON_S)
        update = {**key, "op": "update", "values": {"n": {"expr": "n + 1"}}}
        stale = {**update, "expect": genid(inserted.lsn, 0)}
        outcomes = [each.result(SOON_S) for each in [producer.submit(stale) for _ in range(3)]]
    assert all(outcome.lsn for outcome in outcomes), outcomes
    assert sum(outcome.attempt > 1 for outcome in outcomes) == 2
    assert denied(cluster) == []


def test_nobody_gets_in_without_his_password(cluster: LocalCluster) -> None:
    assert cluster.secure is not None
    topic = f"{cluster.cluster_settings.database}.log"
    right = ClientSettings.read(cluster.env("dashboard")).kafka
    for wrong in (
        replace(right, password="wrong"),
        replace(right, ca=None),
        KafkaSettings(
            bootstrap=cluster.secure.administrator.bootstrap, security="SSL", ca=right.ca
        ),
    ):
        with pytest.raises(BusUnavailable):
            TopicAdmin(wrong, "test").partitions([topic], timeout_s=3.0)
    authority = str(right.ca)
    for url in (
        f"redis://{LOOPBACK}:{cluster.ports.redis}",
        f"rediss://{LOOPBACK}:{cluster.ports.redis}",
    ):
        options = {"ssl_ca_certs": authority} if url.startswith("rediss") else {}
        with (
            redis.Redis.from_url(url, socket_timeout=3.0, retry=None, **options) as client,
            pytest.raises(redis.RedisError),
        ):
            client.get("a")
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(host=LOOPBACK, port=cluster.ports.sql[0], user="leasehold", dbname="demo")


def test_the_dashboard_can_t_write_to_the_log(cluster: LocalCluster) -> None:
    settings = ClientSettings.read(cluster.env("dashboard"))
    writer = TopicWriter(settings.kafka, "test", delivery_timeout_ms=int(SOON_S * 1e3))
    for name in ("log", "requests"):
        writer.send(f"{settings.cluster.database}.{name}", 0, None, b"x", token=name)
    writer.flush(SOON_S)
    errors = [delivery.error or "" for delivery in writer.deliveries()]
    assert len(errors) == 2
    assert all("access denied as user dashboard" in error for error in errors), errors
    writer.close(1)


@pytest.mark.long("each command of a page, on a cluster with Spark that asks everybody who he is")
def test_what_its_page_shows_happens(cluster: LocalCluster, tmp_path: Path) -> None:
    """docs/how-to/secure.md, by the operator, and by who may do everything; for the users of Redis
    on one that knows none yet."""
    assert cluster.secure is not None
    for name in (".leasehold", "redis"):
        (tmp_path / name).mkdir()
    (tmp_path / ".leasehold" / "data").symlink_to(cluster.data)
    others = {name: value for name, value in os.environ.items() if "LEASEHOLD" not in name}
    operator = {**others, **cluster.secure.for_operator()}
    with redis_in(tmp_path / "redis") as server:
        administrator = {
            **others,
            **to_environment(cluster.secure.administrator),
            "LEASEHOLD_DATABASE": operator["LEASEHOLD_DATABASE"],
            "LEASEHOLD_REDIS": server.url,
        }
        environs = {("secure", "operator"): operator, ("secure", "administrator"): administrator}
        assert run_marked(PAGE, tmp_path, environs) == 7
