"""Goal: the deployment of docker-compose.three.yml goes on without one of its brokers, and with the
replica of its Redis where the master is gone.

Method: its containers are run as Docker would; then the first broker and the first Redis are
killed, and started again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from infra.compose import THREE_FILE
from infra.ports import SQL_PORT
from infra.secure.users import OPERATOR, SQL_USER
from tests.support.containers.compose_project import ComposeProject
from tests.support.containers.pod_network import PodNetwork, open_to_users, why_not_here

WHY_NOT: Final = why_not_here()
NAMES: Final = ("m1", "m2", "r1", "changefeed")
pytestmark = [
    pytest.mark.long("three brokers and a failover of Redis: a minute"),
    pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT),
]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ComposeProject]:
    folder = open_to_users(tmp_path_factory.mktemp("three"))
    (folder / "secrets").mkdir(mode=0o711)
    environ = {"LEASEHOLD_SECRETS": str(folder / "secrets")}
    with PodNetwork(folder) as network, ComposeProject(THREE_FILE, network, folder, environ) as up:
        up.run("secrets")
        up.up(*NAMES)
        for name in NAMES:
            up.await_healthy(name)
        yield up


def connect(project: ComposeProject) -> psycopg.Connection[Any]:
    secrets = Path(project.folder) / "secrets"
    with project.network.entered():
        return psycopg.connect(
            host="r1",
            hostaddr=project.running["r1"].address,
            port=SQL_PORT,
            dbname="demo",
            user=SQL_USER,
            password=(secrets / "sql-password").read_text("ascii").strip(),
            sslmode="verify-full",
            sslrootcert=str(secrets / "ca.pem"),
            autocommit=True,
        )


def test_it_goes_on_without_a_broker_and_with_the_replica_of_redis(project: ComposeProject) -> None:
    with connect(project) as session:
        session.execute("CREATE TABLE flights (id bigint PRIMARY KEY, gate text)")
        session.execute("INSERT INTO flights VALUES (1, 'A1')")
        project.running["kafka-1"].kill()
        project.running["redis-1"].kill()
        session.execute("INSERT INTO flights VALUES (2, 'B2')")
        # A schema change needs the ledger, which is the replica's now.
        session.execute("ALTER TABLE flights ADD COLUMN meal text DEFAULT 'none'")
        assert session.execute("SELECT id, meal FROM flights ORDER BY id").fetchall() == [
            (1, "none"),
            (2, "none"),
        ]
    for name in ("kafka-1", "redis-1"):
        project.start(name)
        project.await_healthy(name)
    project.await_healthy("r1")


def test_an_operator_sees_three_of_all(project: ComposeProject) -> None:
    container = project.start(OPERATOR)
    container.wait(60)
    assert "could lose" not in container.tail()
