"""The command's settings and the description of what runs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from infra.cluster import cluster_from
from infra.deployment import SERVICES, service_named
from infra.kafka import warm_up
from infra.kafka.broker import Broker
from infra.kafka.settings import (
    as_container_environment,
    as_properties,
    broker_settings,
    local_settings,
)
from infra.local_cluster import ROOT, LocalCluster
from infra.ports import Ports, can_bind
from infra.process_table import entry_of
from infra.processes import ProcessFailure, Record
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
        *(20001, 20009, 20002, 20003),
        kafka_trusted=20010,
        more_brokers=(20011, 20012, 20013, 20014, 20015, 20016),
        redis_replica=20003,
        sentinels=(20004, 20005, 20006),
    )
    assert cluster.data == tmp_path


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("LEASEHOLD_KAFKA", "broker.example:9092"),
        ("LEASEHOLD_KAFKA", "127.0.0.1:1,broker.example:2"),
        ("LEASEHOLD_REDIS", "redis+sentinel://127.0.0.1:9,cache.example:9/leasehold"),
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
    broker = cluster.brokers.by_name["kafka"]
    monkeypatch.setattr(broker, "prepare", lambda environ: given.update(format=environ))
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
    command = cluster.brokers.by_name["kafka"].command()
    assert (warm_up.COMPILED_EARLY in command) is lasting
    assert ("-XX:TieredStopAtLevel=1" in command) is not lasting
    asked: list[int] = []

    def warms_up(kafka: KafkaSettings, pids: Sequence[int]) -> None:
        assert kafka == cluster.kafka_settings
        asked.extend(pids)
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


def more_of_each(data: Path) -> LocalCluster:
    return LocalCluster(data, Ports(), {}, brokers=3, redis="sentinel")


def test_processes_are_told_of_all_brokers_and_sentinels(tmp_path: Path) -> None:
    cluster = more_of_each(tmp_path)
    env = cluster.env("r1")
    assert env["LEASEHOLD_KAFKA"] == "127.0.0.1:19092,127.0.0.1:19095,127.0.0.1:19098"
    at = "127.0.0.1:16381,127.0.0.1:16382,127.0.0.1:16383"
    assert env["LEASEHOLD_REDIS"] == f"redis+sentinel://{at}/leasehold/0"
    assert env["LEASEHOLD_REPLICATION_FACTOR"] == "3"
    assert cluster.members("kafka") == ("kafka-1", "kafka-2", "kafka-3")
    assert cluster.members("redis") == (
        *("redis-1", "redis-2"),
        *("sentinel-1", "sentinel-2", "sentinel-3"),
    )
    assert cluster.members("kafka-2") == ("kafka-2",)
    assert "LEASEHOLD_REPLICATION_FACTOR" not in LocalCluster(tmp_path / "x", Ports(), {}).env("r1")


def test_three_brokers_are_of_one_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has its own node id, files and listeners, and all know of all controllers."""
    cluster = more_of_each(tmp_path)
    monkeypatch.setattr(cluster.processes, "start", lambda *args: None)
    monkeypatch.setattr(Broker, "prepare", lambda broker, environ: None)
    cluster.brokers.start()
    brokers = list(cluster.brokers.by_name.values())
    assert [broker.node_id for broker in brokers] == [1, 2, 3]
    assert len({broker.cluster_id for broker in brokers}) == 1
    assert len({broker.data for broker in brokers}) == 3
    settings = [
        local_settings(each.port, each.controller_port, "data", each.node_id, each.controllers)
        for each in brokers
    ]
    voters = "1@127.0.0.1:19093,2@127.0.0.1:19096,3@127.0.0.1:19099"
    assert {each["controller.quorum.voters"] for each in settings} == {voters}
    assert {each["min.insync.replicas"] for each in settings} == {"2"}
    assert [each["node.id"] for each in settings] == ["1", "2", "3"]
    assert len({each["listeners"] for each in settings}) == 3


def test_a_folder_keeps_what_its_cluster_is_made_of(tmp_path: Path) -> None:
    for name in ("kafka-1", "redis-1"):
        (tmp_path / name).mkdir()
    cluster = LocalCluster(tmp_path, Ports(), {})
    assert (len(cluster.brokers.names), cluster.redis.mode) == (3, "sentinel")
    with pytest.raises(ProcessFailure, match=r"has 3 broker\(s\).*another folder"):
        LocalCluster(tmp_path, Ports(), {}, brokers=1)
    with pytest.raises(ProcessFailure, match="has its Redis as sentinel"):
        LocalCluster(tmp_path, Ports(), {}, redis="single")
    with pytest.raises(ProcessFailure, match="1 broker or 3, not 2"):
        LocalCluster(tmp_path, Ports(), {}, brokers=2)


def test_redis_keeps_the_side_that_it_has_changed_to(tmp_path: Path) -> None:
    """Sentinel has a server write whose replica it is; who starts it again leaves that alone."""
    servers = more_of_each(tmp_path).redis
    for name in servers.names:
        (tmp_path / name).mkdir()
        servers._command(name, tmp_path / name)
    first, second = (tmp_path / name / "redis.conf" for name in servers.names)
    assert "replicaof" not in first.read_text()
    assert "replicaof 127.0.0.1 16379\n" in second.read_text()
    first.write_text("port 1\nreplicaof 127.0.0.1 16380\n")
    second.write_text(second.read_text().replace("replicaof 127.0.0.1 16379\n", ""))
    for name in servers.names:
        servers._command(name, tmp_path / name)
    assert "replicaof 127.0.0.1 16380\n" in first.read_text()
    assert "port 16379\n" in first.read_text()
    assert "replicaof" not in second.read_text()


def test_a_sentinels_file_is_written_once(tmp_path: Path) -> None:
    servers = more_of_each(tmp_path).redis
    (tmp_path / "sentinel-1").mkdir()
    command = servers._command("sentinel-1", tmp_path / "sentinel-1")
    file = tmp_path / "sentinel-1" / "sentinel.conf"
    assert command == ["redis-server", str(file), "--sentinel"]
    lines = file.read_text().splitlines()
    assert "sentinel monitor leasehold 127.0.0.1 16379 2" in lines
    file.write_text("\n".join([*lines, "sentinel known-replica"]))
    servers._command("sentinel-1", tmp_path / "sentinel-1")
    assert "known-replica" in file.read_text()


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
