"""Writes docker-compose.yml, docker-compose.secure.yml and docker-compose.three.yml from
infra/deployment.py, or says which of them are stale.

`python -m infra.compose` writes them; `--check` changes nothing and ends with 1 when a file is not
what this module writes. The committed files are never edited by hand; a test runs
the check, and holds them to the Compose specification's schema. The images of others are held to
the digests of infra/images.lock, in the Dockerfiles, too.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import fields
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from infra.deployment import INTAKE, KAFKA, OPTIONAL, REDIS, SERVICES, TOPICS, Service
from infra.image_lock import locked_images, pinned, pinned_dockerfiles
from infra.kafka.settings import as_container_environment, broker_settings, jvm_options
from infra.ports import KAFKA_PORT, METRICS_PORT, REDIS_PORT, SQL_PORT, SQL_PORTS
from infra.redis.server import server_settings
from infra.secure.compose import secure_file, secure_head
from infra.secure.servers import ONE, THREE, Servers
from leasehold.settings.environment import ClusterSettings
from leasehold.settings.intake import IntakeSettings

FILE = Path(__file__).resolve().parent.parent / "docker-compose.yml"
SECURE_FILE = FILE.with_name("docker-compose.secure.yml")
THREE_FILE = FILE.with_name("docker-compose.three.yml")
KAFKA_IMAGE = "apache/kafka:4.2.0"
REDIS_IMAGE = "redis:7.4-bookworm"
ASK_READY = ("CMD", "python", "-I", "-S", "/opt/leasehold/infra/ask_ready.py")
"""What the images themselves have as their health check."""
DATA = "/var/lib/leasehold"
SNAPSHOT_TOKEN = "snapshot-token"  # noqa: S105 - the secret's name

LOGGING = {"driver": "json-file", "options": {"max-size": "32m", "max-file": "2"}}
"""Docker keeps all that a container ever said, unless told otherwise, until the disk is full."""

CONFINED = {
    "read_only": True,
    "tmpfs": ["/tmp"],  # noqa: S108 - the container's
    "security_opt": ["no-new-privileges:true"],
    "cap_drop": ["ALL"],
    "pids_limit": 1_000,
}
"""Of containers that run as a user of their own from the start, need nothing of root, and write
into their volume alone."""

HEAD = """\
# Leasehold with Docker, after giving the nodes a secret to know each other by:
#   echo "LEASEHOLD_SNAPSHOT_TOKEN=$(openssl rand -hex 32)" >> .env
#   docker compose up --build
# For SQL on 127.0.0.1:54331 to 54333 name the users, too: LEASEHOLD_SQL_USERS, lines of
# name=SCRAM-SHA-256$… (docs/how-to/secure.md); without users nobody is listened to.
# For change requests of other systems' events, LEASEHOLD_INTAKE_ROUTES and --profile intake
# (docs/how-to/take-in-events.md).
# Written by `make compose` from infra/deployment.py, which `make up` uses too; do not edit.
# Ports are published on the loopback address only. Settings come from the environment or .env:
# LEASEHOLD_DATABASE, LEASEHOLD_KAFKA_SECURITY, … (docs/reference/settings.md).
"""

# Handed through from the shell or .env, so that the same services can use a Kafka and a Redis with
# TLS and passwords; empty means not set. The files that they name must be mounted by the user.
PASSED_THROUGH = (
    "LEASEHOLD_KAFKA_SECURITY",
    "LEASEHOLD_KAFKA_SASL_MECHANISM",
    "LEASEHOLD_KAFKA_USERNAME",
    "LEASEHOLD_KAFKA_PASSWORD",
    "LEASEHOLD_KAFKA_PASSWORD_FILE",
    "LEASEHOLD_KAFKA_CA",
    "LEASEHOLD_KAFKA_CERTIFICATE",
    "LEASEHOLD_KAFKA_KEY",
    "LEASEHOLD_KAFKA_KEY_PASSWORD",
    "LEASEHOLD_KAFKA_KEY_PASSWORD_FILE",
    "LEASEHOLD_REDIS_PASSWORD",
    "LEASEHOLD_REDIS_PASSWORD_FILE",
    "LEASEHOLD_REDIS_CA",
    "LEASEHOLD_FAST_ACKS",
    "LEASEHOLD_FAST_LOG",
    "LEASEHOLD_FAST_REQUESTS",
    "LEASEHOLD_REPLICATION_FACTOR",
    "LEASEHOLD_LOG_FORMAT",
    "LEASEHOLD_LOG_LEVEL",
    "LEASEHOLD_METRICS_LISTEN",
    "LEASEHOLD_TRACES_ENDPOINT",
    "LEASEHOLD_TRACES_SAMPLE",
    "LEASEHOLD_SESSION_TTL_MS",
    "LEASEHOLD_HISTORY_MS",
    "LEASEHOLD_ROW_HISTORY_MS",
    "LEASEHOLD_DROPPED_MS",
)
# For the nodes: the memory of each; with a certificate snapshots travel encrypted.
PASSED_TO_NODES = (
    "LEASEHOLD_STORE_CACHE_MB",
    "LEASEHOLD_AUDIT_TOPIC",
    "LEASEHOLD_AUDIT_FILE",
    "LEASEHOLD_AUDIT_FILE_MB",
    "LEASEHOLD_AUDIT_REQUIRED",
    "LEASEHOLD_SQL_MEMORY_MB",
    "LEASEHOLD_SQL_MEMORY_TOTAL_MB",
    "LEASEHOLD_SQL_TEMP_MB",
    "LEASEHOLD_SNAPSHOT_TLS_CERT",
    "LEASEHOLD_SNAPSHOT_TLS_KEY",
    "LEASEHOLD_SNAPSHOT_TLS_CA",
)
# For nodes and Spark's driver, who sign change requests and verify them.
PASSED_TO_SIGNERS = (
    "LEASEHOLD_REQUEST_KEY",
    "LEASEHOLD_REQUEST_KEY_FILE",
    "LEASEHOLD_UNSIGNED_ROLE",
)
# For the replicants: users and their SCRAM verifiers; with a certificate SQL travels encrypted.
PASSED_TO_SQL = (
    "LEASEHOLD_SQL_USERS",
    "LEASEHOLD_SQL_TLS_CERT",
    "LEASEHOLD_SQL_TLS_KEY",
    "LEASEHOLD_SQL_TLS_CLIENT_CA",
    "LEASEHOLD_SQL_TLS_CRL_FILE",
    "LEASEHOLD_SQL_TLS_CLIENTCERT",
    "LEASEHOLD_SQL_AUTH",
)
# Containers talk over a network of their own on one machine, and ports are published on its
# loopback address alone: without certificates they do so in the clear. With some this says nothing.
WITHOUT_TLS = "${{{}:-off}}"
# For the changefeed, and the replicants that submit schema changes: a schema registry.
PASSED_TO_FEEDS = (
    "LEASEHOLD_REGISTRY",
    "LEASEHOLD_REGISTRY_USERNAME",
    "LEASEHOLD_REGISTRY_PASSWORD_FILE",
    "LEASEHOLD_REGISTRY_CA",
    "LEASEHOLD_REGISTRY_CHECK",
    "LEASEHOLD_REGISTRY_SCHEMAS",
)
# For the intake: what it reads, and how.
PASSED_TO_INTAKE = tuple(each.metadata["env"] for each in fields(IntakeSettings))
# For the dashboard: names under which browsers may ask for it, where it is published by one, and
# how users log in to it.
PASSED_TO_DASHBOARD = (
    "LEASEHOLD_DASHBOARD_HOSTS",
    "LEASEHOLD_DASHBOARD_SESSION_MIN",
    "LEASEHOLD_DASHBOARD_TLS_CERT",
    "LEASEHOLD_DASHBOARD_TLS_KEY",
    "LEASEHOLD_SQL_TLS_CA",
)


def compose_file() -> dict[str, Any]:
    """The whole file as plain data."""
    services: dict[str, Any] = {KAFKA: _kafka(), REDIS: _redis(), TOPICS: _topics()}
    volumes: dict[str, Any] = {KAFKA: {}, REDIS: {}}
    for service in (*SERVICES, *OPTIONAL):
        services[service.name] = _service(service)
        volumes[service.name] = {}
    for service in OPTIONAL:
        services[service.name]["profiles"] = [service.name]
    for described in services.values():
        described["logging"] = deepcopy(LOGGING)  # YAML would refer to one and the same
    # From the environment, since a file would reach the container with its owner on the host, and
    # the services run as a user of their own.
    secrets = {SNAPSHOT_TOKEN: {"environment": "LEASEHOLD_SNAPSHOT_TOKEN"}}
    return {"name": "leasehold", "services": services, "volumes": volumes, "secrets": secrets}


def render() -> str:
    return HEAD + as_yaml(compose_file())


def render_secure(servers: Servers = ONE) -> str:
    file = SECURE_FILE if servers == ONE else THREE_FILE
    return secure_head(file.name) + as_yaml(secure_file(compose_file(), servers))


def as_yaml(described: dict[str, Any]) -> str:
    yaml = YAML()
    yaml.default_flow_style = False
    yaml.width = 120
    yaml.indent(mapping=2, sequence=4, offset=2)
    text = io.StringIO()
    yaml.dump(described, text)
    return text.getvalue()


def _kafka() -> dict[str, Any]:
    # Containers reach it as kafka:9092; a second listener is for programs on the host.
    settings = {
        **broker_settings(replication_factor=1),
        "controller.quorum.voters": f"1@{KAFKA}:9093",
        "listeners": f"PLAINTEXT://:{KAFKA_PORT},HOST://:19092,CONTROLLER://:9093",
        "advertised.listeners": f"PLAINTEXT://{KAFKA}:{KAFKA_PORT},HOST://127.0.0.1:19092",
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,HOST:PLAINTEXT,CONTROLLER:PLAINTEXT"
        ),
        "log.dirs": "/var/lib/kafka/data",
    }
    check = "/opt/kafka/bin/kafka-broker-api-versions.sh --bootstrap-server "
    return {
        "image": pinned(KAFKA_IMAGE, locked_images()),
        "environment": {
            **as_container_environment(settings),
            # Unless it is set, Kafka's scripts choose a collector of their own by the second one.
            "KAFKA_HEAP_OPTS": " ".join(jvm_options()),
            "KAFKA_JVM_PERFORMANCE_OPTS": "-server -Djava.awt.headless=true",
        },
        "ports": ["127.0.0.1:19092:19092"],
        "volumes": [f"{KAFKA}:/var/lib/kafka/data"],
        "healthcheck": _check(f"{check}localhost:{KAFKA_PORT} >/dev/null", start="60s"),
        "restart": "unless-stopped",
        "stop_grace_period": "30s",
        "mem_limit": "2048m",  # its heap is 768 MB
        "pids_limit": 2_000,
    }


def _redis() -> dict[str, Any]:
    command = ["redis-server"]
    for name, value in server_settings().items():
        command += [f"--{name}", value]
    return {
        "image": pinned(REDIS_IMAGE, locked_images()),
        "command": command,
        "ports": ["127.0.0.1:16379:6379"],
        "volumes": [f"{REDIS}:/data"],
        "healthcheck": _check("redis-cli ping | grep -q PONG", start="10s"),
        "restart": "unless-stopped",
        "mem_limit": "1024m",  # of the leases 256 MB, and as much again while it rewrites its file
        "pids_limit": 100,
    }


def _topics() -> dict[str, Any]:
    return {
        "build": _build("services"),
        "image": "leasehold/services",
        "command": ["leasehold", "topics"],
        "environment": _environment(TOPICS),
        "depends_on": {KAFKA: {"condition": "service_healthy"}},
        "restart": "on-failure:5",
        "healthcheck": {"disable": True},  # it serves nothing
        **deepcopy(CONFINED),
    }


def _service(service: Service) -> dict[str, Any]:
    needs = {
        TOPICS: {"condition": "service_completed_successfully"},
        REDIS: {"condition": "service_healthy"},
        **{name: {"condition": "service_healthy"} for name in service.needs},
    }
    described: dict[str, Any] = {
        "build": _build(service.image),
        "image": f"leasehold/{service.image}",
        "command": list(service.command),
        "environment": {**_environment(service.name), **service.environment},
        "depends_on": needs,
        "volumes": [f"{service.name}:{DATA}"],
        "healthcheck": _asked(ASK_READY, start=f"{service.ready_deadline_s:g}s"),
        "restart": "unless-stopped",
        "stop_grace_period": "20s",
        # Without it SIGTERM is lost while Python starts, and nobody collects Spark's dead workers.
        "init": True,
        **deepcopy(CONFINED),
        "mem_limit": f"${{LEASEHOLD_CONTAINER_MEMORY:-{service.memory_mb}m}}",
    }
    if service.niceness:
        described["cpu_shares"] = service.cpu_shares
    if service.signs:
        described["environment"] |= _handed_through(PASSED_TO_SIGNERS)
    if service.keeps_store:
        described["secrets"] = [SNAPSHOT_TOKEN]
        described["environment"] |= {
            "LEASEHOLD_SNAPSHOT_TOKEN_FILE": f"/run/secrets/{SNAPSHOT_TOKEN}",
            **_handed_through(PASSED_TO_NODES),
            "LEASEHOLD_SNAPSHOT_TLS": WITHOUT_TLS.format("LEASEHOLD_SNAPSHOT_TLS"),
        }
    if service.sql is not None:
        # The host reaches it through the container's own address, so nobody comes without a
        # password: without users it does not listen.
        described["environment"] |= {
            "LEASEHOLD_SQL_PORT": f"${{LEASEHOLD_SQL_USERS:+{SQL_PORT}}}",
            "LEASEHOLD_SQL_HOST": "0.0.0.0",  # noqa: S104
            **_handed_through(PASSED_TO_SQL),
            "LEASEHOLD_SQL_TLS": WITHOUT_TLS.format("LEASEHOLD_SQL_TLS"),
        }
        described["ports"] = [f"127.0.0.1:{SQL_PORTS[service.sql]}:{SQL_PORT}"]
    if service.asks_registry:
        described["environment"] |= _handed_through(PASSED_TO_FEEDS)
    if service == INTAKE:
        described["environment"] |= _handed_through(PASSED_TO_INTAKE)
    if service.dashboard:
        port = ClusterSettings().dashboard_port
        described["environment"] |= {
            **_handed_through(PASSED_TO_DASHBOARD),
            # It is published on the host's loopback alone, and SQL may have no users.
            "LEASEHOLD_DASHBOARD_LOGIN": "${LEASEHOLD_DASHBOARD_LOGIN:-off}",
            "LEASEHOLD_DASHBOARD_TLS": WITHOUT_TLS.format("LEASEHOLD_DASHBOARD_TLS"),
            "LEASEHOLD_SQL_HOST": "r1",
            "LEASEHOLD_SQL_PORT": f"${{LEASEHOLD_SQL_USERS:+{SQL_PORT}}}",
            "LEASEHOLD_SQL_TLS": WITHOUT_TLS.format("LEASEHOLD_SQL_TLS"),
        }
        described["ports"] = [f"127.0.0.1:${{LEASEHOLD_DASHBOARD_PORT:-{port}}}:{port}"]
    return described


def _environment(name: str) -> dict[str, str]:
    return {
        "LEASEHOLD_DATABASE": "${LEASEHOLD_DATABASE:-demo}",
        "LEASEHOLD_KAFKA": f"${{LEASEHOLD_KAFKA:-{KAFKA}:{KAFKA_PORT}}}",
        "LEASEHOLD_REDIS": f"${{LEASEHOLD_REDIS:-redis://{REDIS}:{REDIS_PORT}/0}}",
        "LEASEHOLD_NODE": name,
        "LEASEHOLD_DATA": DATA,
        # Other containers must reach the listeners; nothing but the dashboard is published.
        "LEASEHOLD_LISTEN": "0.0.0.0",  # noqa: S104
        "LEASEHOLD_ADVERTISE": name,
        **_handed_through(PASSED_THROUGH),
        "LEASEHOLD_METRICS_PORT": f"${{LEASEHOLD_METRICS_PORT:-{METRICS_PORT}}}",
    }


def _handed_through(variables: tuple[str, ...]) -> dict[str, str]:
    return {variable: f"${{{variable}:-}}" for variable in variables}


def _build(image: str) -> dict[str, str]:
    return {"context": ".", "dockerfile": f"infra/images/{image}.Dockerfile"}


def _check(command: str, start: str) -> dict[str, Any]:
    return _asked(("CMD-SHELL", command), start)


def _asked(test: tuple[str, ...], start: str) -> dict[str, Any]:
    return {
        "test": list(test),
        "interval": "5s",
        "timeout": "10s",
        "retries": 12,
        "start_period": start,
    }


def files() -> dict[Path, str]:
    """Return each file as it has to be."""
    return {
        FILE: render(),
        SECURE_FILE: render_secure(),
        THREE_FILE: render_secure(THREE),
        **pinned_dockerfiles(locked_images()),
    }


def main(arguments: Sequence[str]) -> int:
    """Write or check; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m infra.compose", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; 1 if stale")
    check = parser.parse_args(arguments).check
    stale = {file: text for file, text in files().items() if not _is(file, text)}
    for file, text in stale.items():
        print(f"compose: {file.name}: {'stale' if check else 'written anew'}")
        if not check:
            file.write_text(text, encoding="utf-8")
    if stale and check:
        print("run `python -m infra.compose`", file=sys.stderr)
    return 1 if stale and check else 0


def _is(file: Path, text: str) -> bool:
    return file.is_file() and file.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
