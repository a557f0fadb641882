"""docker-compose.secure.yml: what docker-compose.yml describes, in secure mode. A user for each
container in Kafka and Redis, with the rights of its kind; all goes by TLS; secrets are files, of
which a container sees its own ones.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final

from infra.deployment import KAFKA, OPTIONAL, REDIS, SERVICES, TOPICS, Service
from infra.kafka.settings import as_container_environment
from infra.ports import KAFKA_PORT, REDIS_PORT, SQL_PORT
from infra.redis.server import server_settings
from infra.secure import given
from infra.secure import secret_files as files
from infra.secure.containers import DASHBOARD
from infra.secure.given import Places
from infra.secure.users import ADMINISTRATOR, OPERATOR, PROBE, USERS

SECRETS: Final = "secrets"
PASSWORDS: Final = "passwords"
RIGHTS: Final = "rights"
FOLDER: Final = "${LEASEHOLD_SECRETS:-./.leasehold/secrets}"
MOUNTED: Final = "/run/secrets"
TRUSTED_PORT: Final = 9094
HOST_PORT: Final = 19092
DATABASE: Final = {"LEASEHOLD_DATABASE": "${LEASEHOLD_DATABASE:-demo}"}
OF_THE_MODE: Final = (
    *("LEASEHOLD_KAFKA", "LEASEHOLD_REDIS", "LEASEHOLD_SQL_TLS", "LEASEHOLD_SQL_USERS"),
    *("LEASEHOLD_SQL_AUTH", "LEASEHOLD_SQL_PORT", "LEASEHOLD_SNAPSHOT_", "LEASEHOLD_REQUEST_"),
    *("LEASEHOLD_UNSIGNED_", "LEASEHOLD_DASHBOARD_LOGIN", "LEASEHOLD_DASHBOARD_TLS"),
)
"""How the settings begin that are not taken from .env here."""

HEAD: Final = """\
# Leasehold with Docker in secure mode: Kafka and Redis by TLS, a user with the rights of its kind
# for each container, signed requests, SQL and the dashboard by password (docs/how-to/secure.md).
# First, once, and again after each release, the secrets (what is there is kept):
#   docker compose -f docker-compose.secure.yml run --rm --build secrets
# Then:
#   docker compose -f docker-compose.secure.yml up --build
# Commands of an operator, and the password of SQL's user leasehold:
#   docker compose -f docker-compose.secure.yml run --rm operator leasehold status
#   docker compose -f docker-compose.secure.yml run --rm operator cat /run/secrets/sql-password
# The secrets stand in .leasehold/secrets (or LEASEHOLD_SECRETS), which is root's.
# Written by `make compose` from infra/deployment.py, which `make up` uses too; do not edit.
"""


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


def secure_file(plain: dict[str, Any]) -> dict[str, Any]:
    """Return the whole file as plain data, made of that of the other file."""
    services = deepcopy(plain["services"])
    jobs = {SECRETS: _secrets_job(services[TOPICS]), PASSWORDS: _passwords_job(services[TOPICS])}
    jobs[RIGHTS] = _rights_job(services[TOPICS])
    described = {
        **jobs,
        **services,
        KAFKA: _kafka(services[KAFKA]),
        REDIS: _redis(services[REDIS]),
        TOPICS: _topics(services[TOPICS]),
        **{each.name: _service(each, services[each.name]) for each in (*SERVICES, *OPTIONAL)},
        OPERATOR: _operator(services[TOPICS]),
    }
    return {
        "name": "leasehold-secure",
        "services": described,
        "volumes": deepcopy(plain["volumes"]),
        "secrets": {
            files.mounted(name): {"file": f"{FOLDER}/{name}"} for name in sorted(_all_files())
        },
    }


def _all_files() -> set[str]:
    certified = (*files.SERVERS, DASHBOARD)
    return {
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


def _kafka(plain: dict[str, Any]) -> dict[str, Any]:
    seen = SeenFiles()
    clients = ("CLIENTS", "HOST")
    settings = {
        "listeners": (
            f"CLIENTS://:{KAFKA_PORT},HOST://:{HOST_PORT},TRUSTED://:{TRUSTED_PORT},"
            "CONTROLLER://:9093"
        ),
        "advertised.listeners": (
            f"CLIENTS://{KAFKA}:{KAFKA_PORT},HOST://127.0.0.1:{HOST_PORT},"
            f"TRUSTED://{KAFKA}:{TRUSTED_PORT}"
        ),
        **given.broker_settings(clients, seen),
    }
    # That it listens: who may ask more waits by himself.
    check = f"bash -c ': > /dev/tcp/127.0.0.1/{KAFKA_PORT}'"
    return {
        **plain,
        "environment": {**plain["environment"], **as_container_environment(settings)},
        "secrets": seen.secrets,
        "healthcheck": {**plain["healthcheck"], "test": ["CMD-SHELL", check]},
    }


def _redis(plain: dict[str, Any]) -> dict[str, Any]:
    seen = SeenFiles()
    command = ["redis-server"]
    for name, value in {**server_settings(), **given.redis_settings(REDIS_PORT, seen)}.items():
        command += [f"--{name}", value]
    # `$$`: a dollar for the shell in the container.
    check = (
        f"REDISCLI_AUTH=$$(cat {seen(files.redis_password(PROBE))}) redis-cli --tls"
        f" --cacert {seen(files.AUTHORITY_FILE)} --user {PROBE} ping | grep -q PONG"
    )
    return {
        **plain,
        "command": command,
        "secrets": seen.secrets,
        "healthcheck": {**plain["healthcheck"], "test": ["CMD-SHELL", check]},
    }


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


def _passwords_job(plain: dict[str, Any]) -> dict[str, Any]:
    """Return the job that tells the broker its users, as who may do everything there."""
    seen = SeenFiles()
    environment = _administrator(seen)
    for name in USERS:
        seen(files.kafka_password(name))
    return {
        **_like(plain, ["python", "-m", "infra.secure.containers", PASSWORDS, MOUNTED]),
        "environment": environment,
        "secrets": seen.secrets,
        "depends_on": {KAFKA: {"condition": "service_healthy"}},
    }


def _rights_job(plain: dict[str, Any]) -> dict[str, Any]:
    seen = SeenFiles()
    named = ((kind, name) for name, kinds in USERS.items() for kind in kinds)
    command = ["leasehold", "setup-acls"]
    for kind, name in named:
        command += [f"--{kind}", f"User:{name}"]
    return {
        **_like(plain, command),
        "environment": _administrator(seen),
        "secrets": seen.secrets,
        "depends_on": {PASSWORDS: {"condition": "service_completed_successfully"}},
    }


def _topics(plain: dict[str, Any]) -> dict[str, Any]:
    needs = {RIGHTS: {"condition": "service_completed_successfully"}}
    return {**_process(TOPICS, None, plain), "depends_on": needs}


def _operator(plain: dict[str, Any]) -> dict[str, Any]:
    made = _process(OPERATOR, None, plain)
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
    kept = ("build", "image", "security_opt", "cap_drop", "pids_limit", "restart", "logging")
    return {**{name: deepcopy(plain[name]) for name in kept}, "command": command}


def _administrator(seen: SeenFiles) -> dict[str, str]:
    return {
        **DATABASE,
        "LEASEHOLD_KAFKA": f"{KAFKA}:{TRUSTED_PORT}",
        "LEASEHOLD_KAFKA_SECURITY": "SSL",
        "LEASEHOLD_KAFKA_CA": seen(files.AUTHORITY_FILE),
        "LEASEHOLD_KAFKA_CERTIFICATE": seen(files.certificate(ADMINISTRATOR)),
        "LEASEHOLD_KAFKA_KEY": seen(files.key(ADMINISTRATOR)),
    }


# ---------------------------------------------------------------- services


def _service(service: Service, plain: dict[str, Any]) -> dict[str, Any]:
    return _process(service.name, service, plain)


def _process(name: str, service: Service | None, plain: dict[str, Any]) -> dict[str, Any]:
    seen = SeenFiles()
    places = Places(f"{KAFKA}:{KAFKA_PORT}", f"{REDIS}:{REDIS_PORT}", seen)
    environment = {
        **{
            variable: value
            for variable, value in plain["environment"].items()
            if not variable.startswith(OF_THE_MODE)
        },
        **given.process_settings(name, USERS[name], "demo", service, places),
    }
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
