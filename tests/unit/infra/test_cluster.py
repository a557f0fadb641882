"""The command's settings and the description of what runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from infra.cluster import cluster_from
from infra.deployment import SERVICES, service_named
from infra.kafka import warm_up
from infra.kafka.settings import as_container_environment, as_properties, broker_settings
from infra.local_cluster import ROOT, LocalCluster
from infra.ports import Ports, can_bind
from infra.process_table import entry_of
from infra.processes import Record
from leasehold.model.errors import BusUnavailable, ConfigurationError
from leasehold.model.topics import MESSAGE_BYTES_MAX
from leasehold.settings.environment import KafkaSettings


def test_ports_and_folder_come_from_the_environment(tmp_path: Path) -> None:
    cluster = cluster_from(
        {
            "LEASEHOLD_KAFKA": "localhost:20001",
            "LEASEHOLD_KAFKA_CONTROLLER_PORT": "20009",
            "LEASEHOLD_REDIS": "redis://127.0.0.1:20002/0",
            "LEASEHOLD_DASHBOARD_PORT": "20003",
            "LEASEHOLD_DATA": str(tmp_path),
        }
    )
    assert cluster.ports == Ports(
        kafka=20001, kafka_controller=20009, redis=20002, dashboard=20003, kafka_trusted=20010
    )
    assert cluster.data == tmp_path


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("LEASEHOLD_KAFKA", "broker.example:9092"),
        ("LEASEHOLD_KAFKA", "127.0.0.1:1,127.0.0.1:2"),
        ("LEASEHOLD_REDIS", "redis://cache.example:6379/0"),
        ("LEASEHOLD_KAFKA_CONTROLLER_PORT", "many"),
    ],
)
def test_servers_elsewhere_are_not_ours_to_start(variable: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=variable):
        cluster_from({variable: value})


SECRETS = {
    "LEASEHOLD_SNAPSHOT_TOKEN": "token",
    "LEASEHOLD_SQL_USERS": "users",
    "LEASEHOLD_REQUEST_KEY": "key",
    "LEASEHOLD_SPARK_SECRET": "secret",
    "AWS_SECRET_ACCESS_KEY": "key",
}
FOR_ALL = {"PATH": "/bin", "LC_ALL": "C", "JAVA_HOME": "/java", "TMPDIR": "/t"}
FOR_OURS = {"LEASEHOLD_DATABASE": "air", "PYTHONPATH": "/p"}


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("m1", {"LEASEHOLD_SNAPSHOT_TOKEN", "LEASEHOLD_REQUEST_KEY"}),
        ("r1", {"LEASEHOLD_SNAPSHOT_TOKEN", "LEASEHOLD_REQUEST_KEY", "LEASEHOLD_SQL_USERS"}),
        ("changefeed", set()),
        ("spark", {"LEASEHOLD_REQUEST_KEY", "LEASEHOLD_SPARK_SECRET"}),
        ("dashboard", set()),
    ],
)
def test_a_service_gets_no_secret_of_another_one(
    tmp_path: Path, name: str, known: set[str]
) -> None:
    environ = {**FOR_ALL, **FOR_OURS, **SECRETS}
    cluster = LocalCluster(tmp_path, Ports(kafka=20001, redis=20002), environ)
    env = cluster.env(name)
    assert env.items() >= FOR_ALL.items()
    assert env["LEASEHOLD_DATABASE"] == "air"
    assert env["PYTHONPATH"].endswith("/p")
    assert env.keys() & SECRETS.keys() == known
    assert cluster.env("a command by hand").items() >= SECRETS.items()


def test_kafka_and_redis_get_nothing_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = LocalCluster(
        tmp_path, Ports(kafka=20001, redis=20002), {**FOR_ALL, **FOR_OURS, **SECRETS}
    )
    given: dict[str, Any] = {}
    monkeypatch.setattr(cluster._broker, "prepare", lambda environ: given.update(format=environ))
    monkeypatch.setattr(
        cluster.processes, "start", lambda name, command, env, *more: given.update({name: env})
    )
    cluster._start_kafka()
    cluster._start_redis()
    assert given == {"format": FOR_ALL, "kafka": FOR_ALL, "redis": FOR_ALL}


def test_a_service_gets_its_place_and_not_the_shells_cluster(tmp_path: Path) -> None:
    environ = {"LEASEHOLD_KAFKA_SECURITY": "SASL_SSL", "LEASEHOLD_DATABASE": "air", "HOME": "/h"}
    cluster = LocalCluster(tmp_path, Ports(kafka=20001, redis=20002), environ)
    env = cluster.env("r2")
    assert env["LEASEHOLD_KAFKA"] == "127.0.0.1:20001"
    assert env["LEASEHOLD_REDIS"] == "redis://127.0.0.1:20002/0"
    assert env["LEASEHOLD_NODE"] == "r2"
    assert env["LEASEHOLD_DATABASE"] == "air"
    assert env["HOME"] == "/h"
    assert env["LEASEHOLD_READY_FILE"] == str(tmp_path / "run" / "r2.ready")
    assert "LEASEHOLD_KAFKA_SECURITY" not in env


@pytest.mark.parametrize("lasting", [True, False])
def test_only_a_broker_that_stays_compiles_for_good_and_is_warmed_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, lasting: bool
) -> None:
    cluster = LocalCluster(tmp_path, Ports(), {}, lasting=lasting)
    command = cluster._broker.command()
    assert (warm_up.COMPILED_EARLY in command) is lasting
    assert ("-XX:TieredStopAtLevel=1" in command) is not lasting
    asked: list[int] = []

    def warms_up(kafka: KafkaSettings, pid: int) -> None:
        assert kafka == cluster.kafka_settings
        asked.append(pid)
        raise BusUnavailable("it is away")

    monkeypatch.setattr(warm_up, "warm_up", warms_up)
    this = entry_of(os.getpid())
    assert this is not None
    record = Record("kafka", this.identity, (), "", 0)
    monkeypatch.setattr(cluster.processes, "find", lambda name: record)
    work = cluster._warm_up()
    if work is not None:
        work.join()
        assert work.trouble == "it is away"
    assert asked == ([os.getpid()] if lasting else [])


def test_the_deployment_is_the_one_of_the_design() -> None:
    names = ["m1", "m2", "r1", "r2", "r3", "changefeed", "spark", "dashboard"]
    assert [service.name for service in SERVICES] == names
    seen: set[str] = set()
    for service in SERVICES:
        assert seen.issuperset(service.needs), f"{service.name} is listed before what it needs"
        seen.add(service.name)
    assert service_named("spark").module == "spark_streaming.main"


def test_broker_settings_keep_the_promises() -> None:
    for replicas, in_sync in ((1, "1"), (3, "2")):
        settings = broker_settings(replicas)
        assert settings["min.insync.replicas"] == in_sync
        assert settings["transaction.state.log.min.isr"] == in_sync
        assert settings["unclean.leader.election.enable"] == "false"
        assert settings["auto.create.topics.enable"] == "false"
        assert settings["message.max.bytes"] == str(MESSAGE_BYTES_MAX)


def test_both_spellings_of_broker_settings() -> None:
    assert as_properties({"log.dirs": "a\\b"}) == "log.dirs=a\\\\b\n"
    assert as_container_environment({"log.dirs": "x"}) == {"KAFKA_LOG_DIRS": "x"}


def test_free_ports_are_four_and_free() -> None:
    ports = Ports.free()
    every = {ports.kafka, ports.kafka_controller, ports.redis, ports.dashboard}
    assert all(can_bind(port) for port in every)


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    """As `make status | head -1` is: what was asked for is done, and said to nobody."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "infra.cluster", "status"],
            stdout=writing,
            stderr=subprocess.PIPE,
            env={**os.environ, "LEASEHOLD_DATA": str(tmp_path)},
            cwd=ROOT,
            text=True,
            check=False,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (3, "")
