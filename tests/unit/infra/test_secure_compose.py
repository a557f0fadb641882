"""docker-compose.secure.yml gives each container its own secrets and rights, and nobody else's."""

from __future__ import annotations

import argparse
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any, Final

import jsonschema
import pytest
from ruamel.yaml import YAML

from infra.compose import SECURE_FILE, compose_file, render_secure
from infra.deployment import KAFKA, REDIS, SERVICES, TOPICS
from infra.kafka.settings import as_container_environment
from infra.secure import secret_files as files
from infra.secure.compose import PASSWORDS, RIGHTS, SECRETS, secure_file
from infra.secure.containers import HOSTS, SERVICES_UID, UIDS, make_secrets
from infra.secure.servers import MOUNTED
from infra.secure.users import OPERATOR, USERS
from leasehold.cli.access import setup_acls
from leasehold.settings.client import ClientSettings
from leasehold.settings.dashboard import DashboardSettings
from leasehold.settings.environment import from_environment
from leasehold.settings.sql_address import SqlAddress
from leasehold.settings.sql_port import PgwireSettings
from tests.unit.infra.test_compose import schema

JOBS: Final = (PASSWORDS, RIGHTS)
PROCESSES: Final = (*(service.name for service in SERVICES), TOPICS, OPERATOR)
UID_OF: Final = {KAFKA: 1_000, REDIS: 999}
_NAMED: Final = re.compile(rf"{MOUNTED}/([A-Za-z0-9._-]+)")


@cache
def committed() -> dict[str, Any]:
    """The file as it is read; nobody changes what is returned."""
    loaded: dict[str, Any] = YAML(typ="safe").load(SECURE_FILE.read_text(encoding="utf-8"))
    return loaded


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("secrets")
    make_secrets(made, "demo")
    return made


def test_the_committed_file_is_the_generated_one() -> None:
    assert SECURE_FILE.read_text(encoding="utf-8") == render_secure(), "run: make compose"
    assert committed() == secure_file(compose_file())
    jsonschema.Draft7Validator(schema()).validate(committed())


def file_of(secret: str) -> str:
    """Return the name of a secret's file in the folder of all."""
    name: str = committed()["secrets"][secret]["file"]
    return name.partition("}/")[2]


def test_the_job_makes_every_file_that_is_mounted(folder: Path) -> None:
    assert all((folder / file_of(name)).is_file() for name in committed()["secrets"])


def test_what_was_made_is_kept(folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    make_secrets(folder, "demo")
    assert {path: path.read_bytes() for path in before} == before


def test_each_container_has_the_files_that_it_names_and_no_others() -> None:
    described = committed()
    for name, service in described["services"].items():
        if name == SECRETS:
            continue
        told = f"{service['environment'] if name != REDIS else ''}{service.get('command')}"
        named = set(_NAMED.findall(f"{told}{service.get('healthcheck')}"))
        if name == PASSWORDS:
            named |= {files.mounted(files.kafka_password(user)) for user in USERS}
        assert set(service["secrets"]) == named, name
        assert named <= set(described["secrets"]), name


def test_nobody_has_what_opens_the_door_of_another_one() -> None:
    services = committed()["services"]
    for name in PROCESSES:
        environment = services[name]["environment"]
        assert environment["LEASEHOLD_KAFKA_USERNAME"] == name
        passwords = {each for each in services[name]["secrets"] if "-passwords." in each}
        assert passwords <= {f"kafka-passwords.{name}", f"redis-passwords.{name}"}
        assert not any("administrator" in each for each in services[name]["secrets"])
        given = [variable for variable in environment if variable.endswith(("_KEY", "_PASSWORD"))]
        assert all(environment[variable].startswith(MOUNTED) for variable in given), given


def test_a_file_is_of_the_user_that_reads_it() -> None:
    """One that only its owner may read has readers of one user alone."""
    for name, service in committed()["services"].items():
        uid = UID_OF.get(name, SERVICES_UID)
        for secret in service.get("secrets", ()):
            file = file_of(secret)
            public = file.endswith(".pem") and not file.endswith(".both.pem")
            assert public or UIDS.get(file, SERVICES_UID) == uid, (name, file)


@pytest.mark.parametrize("name", PROCESSES)
def test_what_a_container_is_told_can_be_read(folder: Path, name: str) -> None:
    environment: dict[str, str] = {
        variable: _NAMED.sub(lambda found: str(folder / file_of(found[1])), value)
        for variable, value in committed()["services"][name]["environment"].items()
        if "${" not in value
    }
    settings = ClientSettings.read(environment)
    password = (folder / files.kafka_password(name)).read_text().strip()
    assert (settings.kafka.username, settings.kafka.password) == (name, password)
    assert settings.kafka.bootstrap == "kafka:9092"
    service = {each.name: each for each in SERVICES}.get(name)
    if service is not None and service.sql is not None:
        told = from_environment(PgwireSettings, environment)
        assert (told.port, told.host) == (5432, "0.0.0.0")
        assert told.users
    if service is not None and service.dashboard:
        login = from_environment(DashboardSettings, environment)
        assert login.login == "on"
        assert login.tls_cert is not None
        assert from_environment(SqlAddress, environment).port == 5432


def test_certificates_are_for_every_container(folder: Path) -> None:
    for name in ("kafka", "redis", "sql", "snapshot", "dashboard"):
        made = str(folder / f"{name}.pem")
        verify = ["openssl", "verify", "-CAfile", str(folder / "ca.pem"), made]
        show = ["openssl", "x509", "-noout", "-ext", "subjectAltName", "-in", made]
        told = [subprocess.run(each, capture_output=True, text=True) for each in (verify, show)]
        assert [each.returncode for each in told] == [0, 0]
        named = set(re.findall(r"DNS:([a-z0-9-]+)", told[1].stdout))
        assert named == {*HOSTS, "localhost"}


def test_rights_are_given_by_the_command_as_in_the_table() -> None:
    command = committed()["services"][RIGHTS]["command"]
    assert command[:2] == ["leasehold", "setup-acls"]
    parser = argparse.ArgumentParser()
    setup_acls.register(parser.add_subparsers())
    found = setup_acls.read_principals(parser.parse_args(command[1:]))
    assert {name: set(kinds) for name, kinds in found.items()} == {
        f"User:{name}": set(kinds) for name, kinds in USERS.items()
    }


def test_servers_and_jobs_come_before_the_topics_and_these_before_all_others() -> None:
    services = committed()["services"]

    def needs(name: str) -> set[str]:
        found = set(services[name].get("depends_on", ()))
        return found.union(*(needs(each) for each in found))

    for service in SERVICES:
        assert {TOPICS, RIGHTS, PASSWORDS, KAFKA} <= needs(service.name)
    assert services[SECRETS]["profiles"] == [SECRETS]
    assert services[OPERATOR]["profiles"] == [OPERATOR]


def test_ports_are_published_on_the_loopback_address_only() -> None:
    for service in committed()["services"].values():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))


def test_nothing_listens_in_the_clear() -> None:
    services = committed()["services"]
    listeners = services[KAFKA]["environment"]["KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"]
    assert {each.partition(":")[2] for each in listeners.split(",")} == {"SASL_SSL", "SSL"}
    words = services[REDIS]["command"]
    assert words[words.index("--port") + 1] == "0"
    for name in PROCESSES:
        environment = services[name]["environment"]
        assert environment["LEASEHOLD_KAFKA_SECURITY"] == "SASL_SSL"
        assert environment.get("LEASEHOLD_REDIS", "rediss:").startswith("rediss:")
        assert not [each for each in environment.values() if each.rstrip("}").endswith("off")]


def test_the_image_of_kafka_understands_a_hyphen() -> None:
    name = "listener.name.host.scram-sha-512.sasl.jaas.config"
    (variable,) = as_container_environment({name: ""})
    said = variable.removeprefix("KAFKA_").lower()
    assert said.replace("___", "-").replace("_", ".") == name
