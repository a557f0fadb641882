"""Goal: the containers of docker-compose.secure.yml come up in their order, as the users and with
the closed roots that the file gives them; each finds its own secrets, is healthy by its own check,
and ends in its time.

Method: the file is run as Docker would, in namespaces of this machine; only the images of Kafka and
Redis are this machine's servers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import psycopg
import pytest

from infra.compose import SECURE_FILE
from infra.deployment import OPTIONAL, SERVICES
from infra.ports import SQL_PORT
from infra.secure.users import OPERATOR, SQL_USER
from tests.support.containers.compose_project import ComposeProject
from tests.support.containers.pod_network import PodNetwork, open_to_users, why_not_here

WHY_NOT: Final = why_not_here()
NAMES: Final = tuple(service.name for service in SERVICES)
pytestmark = [
    pytest.mark.long("all services of a deployment start, two JVMs among them: a minute"),
    pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return open_to_users(tmp_path_factory.mktemp("composed"))


@pytest.fixture(scope="module")
def project(folder: Path) -> Iterator[ComposeProject]:
    (folder / "secrets").mkdir(mode=0o711)
    environ = {"LEASEHOLD_SECRETS": str(folder / "secrets"), "LEASEHOLD_REPLICATION_FACTOR": "1"}
    with PodNetwork(folder) as network, ComposeProject(SECURE_FILE, network, folder, environ) as up:
        up.run("secrets")
        up.up(*NAMES)
        yield up


@pytest.mark.parametrize("name", NAMES)
def test_a_container_is_healthy(project: ComposeProject, name: str) -> None:
    project.await_healthy(name)
    assert project.check(name) == (True, "it is ready\n")


def test_clients_come_by_tls_with_the_password_that_was_made(
    project: ComposeProject, folder: Path
) -> None:
    with project.network.entered():
        session = psycopg.connect(
            host="r1",
            hostaddr=project.running["r1"].address,
            port=SQL_PORT,
            dbname="demo",
            user=SQL_USER,
            password=(folder / "secrets" / "sql-password").read_text("ascii").strip(),
            sslmode="verify-full",
            sslrootcert=str(folder / "secrets" / "ca.pem"),
            autocommit=True,
        )
    with session:
        session.execute("CREATE TABLE flights (id bigint PRIMARY KEY, gate text)")
        session.execute("INSERT INTO flights VALUES (1, 'B12')")
        session.execute("CREATE INDEX ON flights (gate)")  # by Spark
        assert session.execute("SELECT gate FROM flights").fetchall() == [("B12",)]


def test_an_operator_sees_that_all_is_well(project: ComposeProject) -> None:
    container = project.start(OPERATOR)
    assert container.wait(60) == 0, container.tail()


def test_every_container_ends_within_its_time(project: ComposeProject) -> None:
    for name in reversed(NAMES):
        assert project.stop(name) == 0, project.running[name].tail()


def test_what_a_service_writes_is_in_its_volume(folder: Path) -> None:
    kept = {path.name for path in (folder / "volumes").iterdir()}
    assert kept == {*NAMES, "kafka", "redis"} - {each.name for each in OPTIONAL}
    store = folder / "volumes" / "r1" / "r1" / "store.db"
    assert store.stat().st_uid == 10_001
    assert os.access(store, os.R_OK)
