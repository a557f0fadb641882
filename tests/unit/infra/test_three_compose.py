"""docker-compose.three.yml: the secure deployment with three brokers, a Redis with a replica, and
Sentinels. What it shares with docker-compose.secure.yml is tested there."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from infra.compose import SECURE_FILE, THREE_FILE, compose_file, render_secure
from infra.deployment import OPTIONAL, SERVICES, TOPICS
from infra.kafka.settings import as_container_environment, broker_settings
from infra.secure.compose import PASSWORDS, RIGHTS, secure_file
from infra.secure.containers import SERVICES_UID, UIDS, make_secrets
from infra.secure.servers import MOUNTED, THREE
from infra.secure.users import OPERATOR
from tests.unit.infra.test_compose import schema

PROCESSES = (*(service.name for service in (*SERVICES, *OPTIONAL)), TOPICS, OPERATOR)


@cache
def committed() -> dict[str, Any]:
    """The file as it is read; nobody changes what is returned."""
    loaded: dict[str, Any] = YAML(typ="safe").load(THREE_FILE.read_text("utf-8"))
    return loaded


@cache
def with_one() -> dict[str, Any]:
    loaded: dict[str, Any] = YAML(typ="safe").load(SECURE_FILE.read_text("utf-8"))
    return loaded


def test_the_committed_file_is_the_generated_one() -> None:
    assert THREE_FILE.read_text("utf-8") == render_secure(THREE), "run: make compose"
    assert committed() == secure_file(compose_file(), THREE)
    jsonschema.Draft7Validator(schema()).validate(committed())


def test_a_record_is_on_three_brokers_and_acknowledged_by_two() -> None:
    wanted = as_container_environment(broker_settings(replication_factor=3))
    voters = "1@kafka-1:9093,2@kafka-2:9093,3@kafka-3:9093"
    clusters = set()
    for number, name in enumerate(THREE.brokers, 1):
        environment = committed()["services"][name]["environment"]
        assert environment["KAFKA_MIN_INSYNC_REPLICAS"] == "2"
        assert environment["KAFKA_DEFAULT_REPLICATION_FACTOR"] == "3"
        assert environment["KAFKA_UNCLEAN_LEADER_ELECTION_ENABLE"] == "false"
        differs = {"KAFKA_NODE_ID", "KAFKA_INTER_BROKER_LISTENER_NAME"}
        assert {k: environment[k] for k in wanted.keys() - differs} == {
            k: wanted[k] for k in wanted.keys() - differs
        }
        assert environment["KAFKA_NODE_ID"] == str(number)
        assert environment["KAFKA_CONTROLLER_QUORUM_VOTERS"] == voters
        assert f"CLIENTS://{name}:9092" in environment["KAFKA_ADVERTISED_LISTENERS"]
        clusters.add(environment["CLUSTER_ID"])
    assert len(clusters) == 1


@pytest.mark.parametrize("name", PROCESSES)
def test_a_process_knows_all_of_them(name: str) -> None:
    environment = committed()["services"][name]["environment"]
    assert environment["LEASEHOLD_KAFKA"] == "kafka-1:9092,kafka-2:9092,kafka-3:9092"
    assert environment["LEASEHOLD_REPLICATION_FACTOR"] == "3"
    address = environment.get("LEASEHOLD_REDIS")
    if address is not None:
        at = "sentinel-1:26379,sentinel-2:26379,sentinel-3:26379/leasehold/0"
        assert address == f"rediss+sentinel://{name}@{at}"
        assert environment["LEASEHOLD_REDIS_SENTINEL_PASSWORD_FILE"].startswith(MOUNTED)


@pytest.mark.parametrize("name", PROCESSES)
def test_beside_that_it_is_told_what_it_is_told_with_one(name: str) -> None:
    ours, theirs = (each["services"][name]["environment"] for each in (committed(), with_one()))
    differs = {variable for variable in ours if ours[variable] != theirs.get(variable)}
    assert differs <= {
        *("LEASEHOLD_KAFKA", "LEASEHOLD_REPLICATION_FACTOR", "LEASEHOLD_REDIS"),
        "LEASEHOLD_REDIS_SENTINEL_PASSWORD_FILE",
    }
    assert theirs.keys() <= ours.keys()


def test_all_servers_are_waited_for_before_a_process_starts() -> None:
    services = committed()["services"]
    for service in SERVICES:
        needs = set(services[service.name]["depends_on"])
        assert {TOPICS, *THREE.redis, *THREE.sentinels} <= needs
        assert not needs & {"kafka", "redis"}
    assert set(services[PASSWORDS]["depends_on"]) == set(THREE.brokers)
    assert set(services[RIGHTS]["depends_on"]) == {PASSWORDS}
    for name in THREE.sentinels:
        assert set(services[name]["depends_on"]) == set(THREE.redis)


def test_each_server_has_a_volume_and_a_port_of_its_own() -> None:
    services, volumes = committed()["services"], committed()["volumes"]
    ports = [port for name in THREE.brokers for port in services[name]["ports"]]
    assert len({port.split(":")[1] for port in ports}) == len(ports) == 3
    for name in (*THREE.brokers, *THREE.redis, *THREE.sentinels):
        ((volume, _),) = (each.split(":") for each in services[name]["volumes"])
        assert volume == name
        assert name in volumes


def test_no_password_stands_on_a_command_line() -> None:
    for name in (*THREE.redis, *THREE.sentinels):
        service = committed()["services"][name]
        words = " ".join(service["command"])
        assert "masterauth" not in words
        assert "requirepass" not in words
        assert (service["user"], service["read_only"], service["cap_drop"]) == (
            "999",
            True,
            ["ALL"],
        )
        named = set(re.findall(rf"{MOUNTED}/([A-Za-z0-9._-]+)", f"{words}{service['healthcheck']}"))
        assert named <= set(service["secrets"])


def test_what_servers_are_told_in_files_is_made_for_their_user(tmp_path: Path) -> None:
    make_secrets(tmp_path, "demo")
    sentinel = (tmp_path / "sentinel.conf").read_text("ascii").splitlines()
    password = (tmp_path / "redis-passwords" / "sentinels").read_text("ascii").strip()
    assert "sentinel monitor leasehold redis-1 6379 2" in sentinel
    assert f"requirepass {password}" in sentinel
    assert "port 0" in sentinel
    assert "sentinel announce-hostnames yes" in sentinel
    users = (tmp_path / "redis-users.acl").read_text("ascii")
    assert "user sentinels " in users
    assert "user replication " in users
    for server in (*THREE.redis, *THREE.sentinels):
        for secret in committed()["services"][server]["secrets"]:
            name = committed()["secrets"][secret]["file"].partition("}/")[2]
            public = name.endswith(".pem")
            assert public or UIDS.get(name, SERVICES_UID) == 999, (server, name)
