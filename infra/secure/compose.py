"""docker-compose.secure.yml: what docker-compose.yml describes, in secure mode; and with three
brokers and a Redis that has a replica and Sentinels: docker-compose.three.yml. A user for each
container in Kafka and Redis, with the rights of its kind; all goes by TLS; secrets are files, of
which a container sees its own ones.
"""

from __future__ import annotations

import shlex
from copy import deepcopy
from typing import Any, Final

from infra.deployment import KAFKA, OPTIONAL, REDIS, SERVICES, TOPICS, Service
from infra.kafka.settings import as_container_environment, broker_settings
from infra.ports import KAFKA_PORT, REDIS_PORT, SQL_PORT
from infra.redis.server import server_settings
from infra.secure import given
from infra.secure import secret_files as files
from infra.secure.containers import DASHBOARD
from infra.secure.given import Places
from infra.secure.servers import (
    CLUSTER_ID,
    CONTROLLER_PORT,
    HEALTHY,
    MOUNTED,
    ONE,
    REDIS_REPLICATION,
    SENTINEL_FILE,
    SENTINEL_PORT,
    SENTINEL_PROBE,
    WATCHED,
    Servers,
)
from infra.secure.users import ADMINISTRATOR, OPERATOR, PROBE, SENTINELS, USERS

SECRETS: Final = "secrets"
PASSWORDS: Final = "passwords"
RIGHTS: Final = "rights"
FOLDER: Final = "${LEASEHOLD_SECRETS:-./.leasehold/secrets}"
TRUSTED_PORT: Final = 9094
HOST_PORT: Final = 19092
HOST_PORTS_APART: Final = 10
DATABASE: Final = {"LEASEHOLD_DATABASE": "${LEASEHOLD_DATABASE:-demo}"}
OF_THE_MODE: Final = (
    *("LEASEHOLD_KAFKA", "LEASEHOLD_REDIS", "LEASEHOLD_SQL_TLS", "LEASEHOLD_SQL_USERS"),
    *("LEASEHOLD_SQL_AUTH", "LEASEHOLD_SQL_PORT", "LEASEHOLD_SNAPSHOT_", "LEASEHOLD_REQUEST_"),
    *("LEASEHOLD_UNSIGNED_", "LEASEHOLD_DASHBOARD_LOGIN", "LEASEHOLD_DASHBOARD_TLS"),
)
"""How the settings begin that are not taken from .env here."""


def secure_head(file: str) -> str:
    """Return the first lines of a file: how it is used."""
    command = f"docker compose -f {file}"
    return f"""\
# Leasehold with Docker in secure mode: Kafka and Redis by TLS, a user with the rights of its kind
# for each container, signed requests, SQL and the dashboard by password (docs/how-to/secure.md).
# First, once, and again after each release, the secrets (what is there is kept):
#   {command} run --rm --build secrets
# Then:
#   {command} up --build
# Commands of an operator, and the password of SQL's user leasehold:
#   {command} run --rm operator leasehold status
#   {command} run --rm operator cat /run/secrets/sql-password
# The secrets stand in .leasehold/secrets (or LEASEHOLD_SECRETS), which is root's.
# Written by `make compose` from infra/deployment.py, which `make up` uses too; do not edit.
"""


CONFINED_REDIS: Final[dict[str, Any]] = {
    # Its image's own, from the start: what the shell makes is its own, too.
    "user": "999",
    "read_only": True,
    "security_opt": ["no-new-privileges:true"],
    "cap_drop": ["ALL"],
}


class SeenFiles:
    """Gives the names under which a container sees files, and remembers which they were."""

    def __init__(self) -> None:
        self._names: dict[str, None] = {}

    def __call__(self, name: str) -> str:
        self._names[name] = None
        return f"{MOUNTED}/{files.mounted(name)}"

    @property
    def secrets(self) -> list[str]:
        """Return what the container is to be given."""
        return sorted(files.mounted(name) for name in self._names)


def secure_file(plain: dict[str, Any], servers: Servers = ONE) -> dict[str, Any]:
    """Return the whole file as plain data, made of that of the other file."""
    services = deepcopy(plain["services"])
    topics, kafka, redis = (services.pop(name) for name in (TOPICS, KAFKA, REDIS))
    described = {
        SECRETS: _secrets_job(topics),
        PASSWORDS: _passwords_job(topics, servers),
        RIGHTS: _rights_job(topics, servers),
        **{name: _kafka(kafka, name, servers) for name in servers.brokers},
        **{name: _redis(redis, name, servers) for name in servers.redis},
        **{name: _sentinel(redis, name, servers) for name in servers.sentinels},
        TOPICS: _topics(topics, servers),
        **{
            each.name: _service(each, services[each.name], servers)
            for each in (*SERVICES, *OPTIONAL)
        },
        OPERATOR: _operator(topics, servers),
    }
    own = [*servers.brokers, *servers.redis, *servers.sentinels]
    rest = [name for name in plain["volumes"] if name not in (KAFKA, REDIS)]
    return {
        "name": "leasehold-secure" if servers == ONE else "leasehold-three",
        "services": described,
        "volumes": {name: {} for name in (*own, *rest)},
        "secrets": {
            files.mounted(name): {"file": f"{FOLDER}/{name}"}
            for name in sorted(_all_files(servers))
        },
    }


def _all_files(servers: Servers) -> set[str]:
    certified = (*files.SERVERS, DASHBOARD)
    several = {
        *(REDIS_REPLICATION, SENTINEL_FILE, SENTINEL_PROBE, files.redis_password(SENTINELS)),
    }
    return {
        *(several if servers.sentinels else ()),
        files.AUTHORITY_FILE,
        *(files.with_key(name) for name in (KAFKA, ADMINISTRATOR)),
        *(files.certificate(name) for name in certified if name != KAFKA),
        *(files.key(name) for name in certified if name != KAFKA),
        *(files.kafka_password(name) for name in USERS),
        *(files.redis_password(name) for name in (*USERS, PROBE) if name != TOPICS),
        *(files.SNAPSHOT_TOKEN, files.REQUEST_KEY, files.SQL_PASSWORD, files.SQL_USERS),
        files.REDIS_USERS,
    }


# ---------------------------------------------------------------- servers


def _kafka(plain: dict[str, Any], name: str, servers: Servers) -> dict[str, Any]:
    seen = SeenFiles()
    clients = ("CLIENTS", "HOST")
    number = servers.brokers.index(name) + 1
    host_port = HOST_PORT + HOST_PORTS_APART * (number - 1)
    environment = {**plain["environment"]}
    several: dict[str, str] = {}
    if len(servers.brokers) > 1:
        voters = enumerate(servers.brokers, 1)
        several = {
            **broker_settings(replication_factor=len(servers.brokers)),
            "node.id": str(number),
            "controller.quorum.voters": ",".join(f"{n}@{at}:{CONTROLLER_PORT}" for n, at in voters),
        }
        environment["CLUSTER_ID"] = CLUSTER_ID
    settings = {
        **several,
        "listeners": (
            f"CLIENTS://:{KAFKA_PORT},HOST://:{HOST_PORT},TRUSTED://:{TRUSTED_PORT},"
            "CONTROLLER://:9093"
        ),
        "advertised.listeners": (
            f"CLIENTS://{name}:{KAFKA_PORT},HOST://127.0.0.1:{host_port},"
            f"TRUSTED://{name}:{TRUSTED_PORT}"
        ),
        **given.broker_settings(clients, seen),
    }
    # That it listens: who may ask more waits by himself.
    check = f"bash -c ': > /dev/tcp/127.0.0.1/{KAFKA_PORT}'"
    return {
        **deepcopy(plain),
        "environment": {**environment, **as_container_environment(settings)},
        "ports": [f"127.0.0.1:{host_port}:{HOST_PORT}"],
        "volumes": [f"{name}:/var/lib/kafka/data"],
        "secrets": seen.secrets,
        "healthcheck": {**deepcopy(plain["healthcheck"]), "test": ["CMD-SHELL", check]},
    }


def _redis(plain: dict[str, Any], name: str, servers: Servers) -> dict[str, Any]:
    seen = SeenFiles()
    settings = {**server_settings(), **given.redis_settings(REDIS_PORT, seen)}
    described = deepcopy(plain)
    if servers.sentinels:
        # Sentinels have a server write into its file whose replica it is. What it is told at first
        # stands there once; the password by which it comes to another one in a file of its own.
        begun = [f"include {seen(REDIS_REPLICATION)}"]
        begun += [f"replicaof {servers.redis[0]} {REDIS_PORT}"] if name != servers.redis[0] else []
        settings |= {"tls-replication": "yes", "replica-announce-ip": name, "dir": "/data"}
        command = _with_own_file("redis.conf", begun, settings)
        del described["ports"]  # it is asked by the name that Sentinels tell
        described |= deepcopy(CONFINED_REDIS)
    else:
        command = ["redis-server"]
        for setting, value in settings.items():
            command += [f"--{setting}", value]
    # `$$`: a dollar for the shell in the container.
    check = (
        f"REDISCLI_AUTH=$$(cat {seen(files.redis_password(PROBE))}) redis-cli --tls"
        f" --cacert {seen(files.AUTHORITY_FILE)} --user {PROBE} ping | grep -q PONG"
    )
    return {
        **described,
        "command": command,
        "volumes": [f"{name}:/data"],
        "secrets": seen.secrets,
        "healthcheck": {**described["healthcheck"], "test": ["CMD-SHELL", check]},
    }


def _sentinel(plain: dict[str, Any], name: str, servers: Servers) -> dict[str, Any]:
    seen = SeenFiles()
    # Sentinel keeps all that it knows in its file, what it is told at first among it.
    file = "/data/sentinel.conf"
    begun = f"cp {seen(SENTINEL_FILE)} {file} && echo 'sentinel announce-ip {name}' >> {file}"
    # The certificates' files are named in that one.
    for each in (files.certificate(REDIS), files.key(REDIS), files.AUTHORITY_FILE):
        seen(each)
    check = (
        f"REDISCLI_AUTH=$$(cat {seen(SENTINEL_PROBE)}) redis-cli --tls"
        f" --cacert {seen(files.AUTHORITY_FILE)} -p {SENTINEL_PORT} sentinel ckquorum {WATCHED}"
        " | grep -q ^OK"
    )
    described = {**deepcopy(plain), **deepcopy(CONFINED_REDIS)}
    del described["ports"]
    return {
        **described,
        "command": [
            *("sh", "-c"),
            f"test -f {file} || {{ {begun}; }}; exec redis-server {file} --sentinel",
        ],
        "volumes": [f"{name}:/data"],
        "secrets": seen.secrets,
        "depends_on": {each: dict(HEALTHY) for each in servers.redis},
        "healthcheck": {**described["healthcheck"], "test": ["CMD-SHELL", check]},
    }


def _with_own_file(name: str, begun: list[str], settings: dict[str, str]) -> list[str]:
    """Return a command that makes a file of a server in its volume where there is none."""
    file = f"/data/{name}"
    lines = " ".join(shlex.quote(line) for line in begun)
    words = ["redis-server", file]
    for setting, value in settings.items():
        words += [f"--{setting}", value]
    made = f"test -f {file} || printf '%s\\n' {lines} > {file}"
    return ["sh", "-c", f"{made}; exec {shlex.join(words)}"]


# ---------------------------------------------------------------- jobs and commands


def _secrets_job(plain: dict[str, Any]) -> dict[str, Any]:
    """Return the job that makes the files: they are the users' of several images, so it runs as
    root, without a network."""
    return {
        **_like(plain, ["python", "-m", "infra.secure.containers", SECRETS, "/secrets"]),
        "profiles": [SECRETS],
        "user": "0:0",
        "cap_add": ["CHOWN", "DAC_OVERRIDE", "FOWNER"],
        "network_mode": "none",
        "environment": dict(DATABASE),
        "volumes": [f"{FOLDER}:/secrets"],
    }


def _passwords_job(plain: dict[str, Any], servers: Servers) -> dict[str, Any]:
    """Return the job that tells the broker its users, as who may do everything there."""
    seen = SeenFiles()
    environment = _administrator(seen, servers)
    for name in USERS:
        seen(files.kafka_password(name))
    return {
        **_like(plain, ["python", "-m", "infra.secure.containers", PASSWORDS, MOUNTED]),
        "environment": environment,
        "secrets": seen.secrets,
        "depends_on": {name: dict(HEALTHY) for name in servers.brokers},
    }


def _rights_job(plain: dict[str, Any], servers: Servers) -> dict[str, Any]:
    seen = SeenFiles()
    named = ((kind, name) for name, kinds in USERS.items() for kind in kinds)
    command = ["leasehold", "setup-acls"]
    for kind, name in named:
        command += [f"--{kind}", f"User:{name}"]
    return {
        **_like(plain, command),
        "environment": _administrator(seen, servers),
        "secrets": seen.secrets,
        "depends_on": {PASSWORDS: {"condition": "service_completed_successfully"}},
    }


def _topics(plain: dict[str, Any], servers: Servers) -> dict[str, Any]:
    needs = {RIGHTS: {"condition": "service_completed_successfully"}}
    return {**_process(TOPICS, None, plain, servers), "depends_on": needs}


def _operator(plain: dict[str, Any], servers: Servers) -> dict[str, Any]:
    made = _process(OPERATOR, None, plain, servers)
    address = {"LEASEHOLD_SQL_HOST": "r1", "LEASEHOLD_SQL_PORT": str(SQL_PORT)}
    del made["restart"], made["depends_on"]
    return {
        **made,
        "command": ["leasehold", "status"],
        "profiles": [OPERATOR],
        "environment": {**made["environment"], "LEASEHOLD_NODE": OPERATOR, **address},
    }


def _like(plain: dict[str, Any], command: list[str]) -> dict[str, Any]:
    """Return a job in the image and the confines of another one."""
    kept = (
        *("build", "image", "read_only", "tmpfs", "security_opt", "cap_drop", "pids_limit"),
        *("restart", "healthcheck", "logging"),
    )
    return {**{name: deepcopy(plain[name]) for name in kept}, "command": command}


def _administrator(seen: SeenFiles, servers: Servers) -> dict[str, str]:
    return {
        **DATABASE,
        "LEASEHOLD_KAFKA": ",".join(f"{name}:{TRUSTED_PORT}" for name in servers.brokers),
        "LEASEHOLD_KAFKA_SECURITY": "SSL",
        "LEASEHOLD_KAFKA_CA": seen(files.AUTHORITY_FILE),
        "LEASEHOLD_KAFKA_CERTIFICATE": seen(files.certificate(ADMINISTRATOR)),
        "LEASEHOLD_KAFKA_KEY": seen(files.key(ADMINISTRATOR)),
    }


# ---------------------------------------------------------------- services


def _service(service: Service, plain: dict[str, Any], servers: Servers) -> dict[str, Any]:
    made = _process(service.name, service, plain, servers)
    needs = {name: kept for name, kept in made["depends_on"].items() if name != REDIS}
    (first, *rest) = needs.items()
    return {**made, "depends_on": dict([first, *servers.healthy.items(), *rest])}


def _process(
    name: str, service: Service | None, plain: dict[str, Any], servers: Servers
) -> dict[str, Any]:
    seen = SeenFiles()
    places = Places(servers.bootstrap, servers.ledger, seen, bool(servers.sentinels))
    environment = {
        **{
            variable: value
            for variable, value in plain["environment"].items()
            if not variable.startswith(OF_THE_MODE)
        },
        **given.process_settings(name, USERS[name], "demo", service, places),
    }
    if servers != ONE:
        environment["LEASEHOLD_REPLICATION_FACTOR"] = str(len(servers.brokers))
    if service is not None and service.sql is not None:
        environment["LEASEHOLD_SQL_PORT"] = str(SQL_PORT)
    if service is not None and service.dashboard:
        environment |= {
            "LEASEHOLD_DASHBOARD_LOGIN": "on",
            "LEASEHOLD_DASHBOARD_TLS_CERT": seen(files.certificate(DASHBOARD)),
            "LEASEHOLD_DASHBOARD_TLS_KEY": seen(files.key(DASHBOARD)),
            "LEASEHOLD_SQL_PORT": str(SQL_PORT),
            "LEASEHOLD_SQL_TLS_CA": seen(files.AUTHORITY_FILE),
        }
    return {**deepcopy(plain), "environment": environment, "secrets": seen.secrets}
