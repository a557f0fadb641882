"""The secure mode of a local cluster: its files, and what each process is given of them."""

from __future__ import annotations

import re
import stat
import subprocess
from pathlib import Path
from typing import Final

import pytest

from infra.cluster import cluster_from, status
from infra.deployment import KAFKA, SERVICES
from infra.local_cluster import LocalCluster
from infra.ports import Ports
from infra.processes import ProcessFailure
from infra.secure.mode import FOLDER, SecureMode
from infra.secure.users import USERS
from leasehold.model.process_rights import KIND_NAMED
from leasehold.settings.client import ClientSettings
from leasehold.settings.environment import from_environment
from leasehold.settings.sql_address import SqlAddress
from leasehold.settings.sql_port import PgwireSettings

PORTS: Final = Ports(kafka=20001, redis=20002)
_HEX: Final = re.compile(r"[0-9a-f]{64}")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("secure") / "data"
    SecureMode(folder, PORTS, "air").make()
    return folder


def files_in(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def secrets_in(folder: Path) -> set[str]:
    """Return the text of each file that holds one secret and nothing else."""
    texts = (data.decode().strip() for data in files_in(folder).values())
    return {text for text in texts if _HEX.fullmatch(text)}


def test_files_are_for_their_owner_and_are_made_once(data: Path) -> None:
    folder = data / FOLDER
    for path in (folder, *folder.rglob("*")):
        public = path.suffix == ".pem" and not path.name.endswith(".both.pem")
        mode = stat.S_IMODE(path.stat().st_mode)
        assert public or not mode & 0o077, f"{path}: {mode:o}"
    before = files_in(folder)
    SecureMode(data, PORTS, "air").make()
    assert files_in(folder) == before
    assert len(secrets_in(folder)) == 2 * len(USERS) + 4, "each secret is another one"


def test_certificates_are_of_the_authority_and_for_loopback(data: Path) -> None:
    folder = data / FOLDER
    for name in ("kafka", "redis", "sql", "snapshot", "administrator"):
        words = ["verify", "-CAfile", str(folder / "ca.pem"), "-verify_ip", "127.0.0.1"]
        command = ["openssl", *words, str(folder / f"{name}.pem")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_each_service_is_of_a_kind_and_has_a_user_of_its_own() -> None:
    assert all(service.rights in KIND_NAMED for service in SERVICES)
    assert all(USERS[service.name] == (service.rights,) for service in SERVICES)


ALWAYS: Final = {"ca.pem", "kafka-passwords/NAME"}
REDIS: Final = {"redis-passwords/NAME"}
NODE: Final = REDIS | {"request-key", "snapshot-token", "snapshot.pem", "snapshot.key"}
SQL_NODE: Final = NODE | {"sql-users", "sql.pem", "sql.key"}
ADMIN: Final = REDIS | {"request-key", "sql-password"}


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("m1", NODE),
        ("m2", NODE),
        ("r1", SQL_NODE),
        ("r3", SQL_NODE),
        ("changefeed", set()),
        ("spark", {"request-key"}),
        ("dashboard", REDIS),
        ("operator", ADMIN | {"snapshot-token"}),
        ("demo", ADMIN | NODE),
        ("producers", ADMIN),
    ],
)
def test_a_process_is_given_the_names_of_its_own_files_and_no_secret(
    data: Path, name: str, files: set[str]
) -> None:
    shell = {
        "LEASEHOLD_DATABASE": "air",
        "LEASEHOLD_SQL_USERS": "of the shell",
        "LEASEHOLD_SNAPSHOT_TOKEN": "of the shell",
        "LEASEHOLD_REQUEST_KEY": "of the shell",
        "LEASEHOLD_KAFKA_PASSWORD": "of the shell",
    }
    env = LocalCluster(data, PORTS, shell).env(name)
    folder = f"{data / FOLDER}/"
    named = {value.removeprefix(folder) for value in env.values() if value.startswith(folder)}
    assert named == {each.replace("NAME", name) for each in ALWAYS | files}
    assert not [value for value in env.values() if value in secrets_in(data / FOLDER)]
    assert "of the shell" not in env.values()
    settings = ClientSettings.read(env)
    assert (settings.kafka.security, settings.kafka.username) == ("SASL_SSL", name)
    if "redis-passwords/NAME" in files:
        assert settings.redis.url == f"rediss://{name}@127.0.0.1:20002/0"
        assert settings.redis.publishes_requests(settings.kafka)
    if name.startswith("r"):
        pgwire = from_environment(PgwireSettings, env)
        assert pgwire.read_users()
        assert pgwire.read_tls() is not None
        assert pgwire.open_to == ""


def test_a_command_that_nobody_is_named_for_is_the_operator_s(data: Path) -> None:
    env = LocalCluster(data, PORTS, {"LEASEHOLD_DATABASE": "air"}).env("a command by hand")
    assert env["LEASEHOLD_KAFKA_USERNAME"] == "operator"
    assert from_environment(SqlAddress, env).tls_context() is not None
    lines = (data / FOLDER / "operator.sh").read_text()
    assert "export LEASEHOLD_KAFKA_USERNAME='operator'" in lines
    assert not _HEX.search(lines)


def test_neither_server_is_told_a_secret(data: Path) -> None:
    mode = SecureMode(data, PORTS, "air")
    (broker,) = PORTS.brokers(1)
    told = [*mode.broker_settings(broker).values(), *mode.redis_settings(PORTS.redis).values()]
    told.append((data / FOLDER / "redis-users.acl").read_text())
    assert not [secret for secret in secrets_in(data / FOLDER) if secret in "\n".join(told)]
    assert "user default off" in told[-1]


def test_a_folder_stays_in_its_mode(data: Path, tmp_path: Path) -> None:
    assert LocalCluster(data, PORTS, {}).secure is not None
    assert LocalCluster(tmp_path, PORTS, {}).secure is None
    assert LocalCluster(tmp_path, PORTS, {}, secure=True).secure is not None
    assert not (tmp_path / FOLDER).exists(), "to describe a cluster makes nothing"


def test_a_cluster_in_the_open_is_not_made_secure_while_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = LocalCluster(tmp_path, PORTS, {}, secure=True)
    monkeypatch.setattr(cluster.processes, "find", lambda name: object() if name == KAFKA else None)
    with pytest.raises(ProcessFailure, match="not in secure mode; make down"):
        cluster.start_all()
    assert not (tmp_path / FOLDER).exists()


def test_the_cluster_is_found_and_ended_from_the_operator_s_shell(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who has read the file has LEASEHOLD_REDIS with a user's name in it. `status` tells the file
    to who has not."""
    told = SecureMode(data, PORTS, "air").for_operator()
    cluster = cluster_from({**told, "LEASEHOLD_DATA": str(data)})
    assert (cluster.ports.kafka, cluster.ports.redis) == (PORTS.kafka, PORTS.redis)
    assert cluster.ports.sql == PORTS.sql
    assert status(cluster) == 3
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.endswith(
        f"leasehold status and other commands by hand: . {data}/secure/operator.sh"
    )
