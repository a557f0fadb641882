"""Goal: each process runs as the manifests have it: command, environment, user, mounted secrets, a
root that nobody can write; its probes tell whether it can be used; it ends as it should when its
pod is taken off.

Method: pods are made of the rendered manifests as a kubelet would make them, in namespaces of this
machine, with the ports and names that the manifests say, beside a real Kafka and Redis.
"""

from __future__ import annotations

import json
import secrets
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import psycopg
import pytest

from infra.chart.rendering import ROOT, manifests
from leasehold.cli.exit_code import ExitCode
from leasehold.pgwire.auth.scram_server import SALT_BYTES, verifier_of_password
from tests.support.containers.kubelet import READY_S, Kubelet, Pod
from tests.support.containers.pod_network import PodNetwork, open_to_users, why_not_here
from tests.support.containers.servers import a_broker, a_redis
from tests.support.documents.blocks import Command, blocks, commands, is_as_shown

WHY_NOT: Final = why_not_here()
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)

SQL_USER: Final = "flo"
PASSWORD: Final = secrets.token_hex(8)
SERVING: Final = (
    *("leasehold-master-0", "leasehold-master-1", "leasehold-replicant-0"),
    *("leasehold-changefeed-00000", "leasehold-dashboard-00000", "leasehold-spark-0"),
)


@pytest.fixture(scope="module")
def kubelet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubelet]:
    """All pods of the values `observed`, started side by side: of replicants one."""
    folder = open_to_users(tmp_path_factory.mktemp("pods"))
    verifier = verifier_of_password(PASSWORD, secrets.token_bytes(SALT_BYTES))
    given = {
        "leasehold-snapshots": {"token": secrets.token_hex(32).encode()},
        "leasehold-sql-users": {"users": f"{SQL_USER}={verifier}\n".encode()},
    }
    found = manifests("observed")
    with (
        PodNetwork(folder) as network,
        a_broker(network, folder, ("kafka",), 9092) as kafka,
        a_redis(network, folder, "redis"),
        # One broker stands for three.
        Kubelet(found, network, folder, given, {"LEASEHOLD_REPLICATION_FACTOR": "1"}) as made,
    ):
        made.servers["kafka"] = kafka
        made.run_job(made.find("Job", "leasehold-topics"))
        for each in found:
            if each["kind"] in ("StatefulSet", "Deployment"):
                for name, spec in made.pods_of(each):
                    if name not in ("leasehold-replicant-1", "leasehold-replicant-2"):
                        made.start(name, spec, each)
        yield made


def pod(kubelet: Kubelet, name: str) -> Pod:
    return kubelet.pods[name]


def connect(kubelet: Kubelet, database: str = "demo") -> psycopg.Connection[tuple[object, ...]]:
    found = pod(kubelet, "leasehold-replicant-0")
    with kubelet.network.entered():
        return psycopg.connect(
            host=found.container.address,
            port=found.port("sql"),
            dbname=database,
            user=SQL_USER,
            password=PASSWORD,
            sslmode="disable",
            autocommit=True,
        )


@pytest.mark.parametrize("name", SERVING)
def test_a_pod_lives_and_becomes_ready(kubelet: Kubelet, name: str) -> None:
    """By its own probes; one that wrote elsewhere than into its volumes would not come so far."""
    found = pod(kubelet, name)
    assert kubelet.await_probe(found, "startupProbe") == "it lives\n"
    assert kubelet.await_probe(found, "readinessProbe") == "it is ready\n"
    assert kubelet.probe(found, "livenessProbe").words == "it lives\n"


def test_clients_are_served_where_the_service_sends_them(kubelet: Kubelet) -> None:
    kubelet.name_service("leasehold-sql", pod(kubelet, "leasehold-replicant-0"))
    with connect(kubelet) as session:
        session.execute("CREATE TABLE flights (id bigint PRIMARY KEY, gate text)")
        session.execute("INSERT INTO flights VALUES (1, 'B12')")
        assert session.execute("SELECT gate FROM flights").fetchall() == [("B12",)]


def test_an_operator_runs_commands_in_a_pod(kubelet: Kubelet) -> None:
    (name,) = (each for each in kubelet.pods if each.startswith("leasehold-operator"))
    done = pod(kubelet, name).container.run("leasehold", "status", "--json")
    told = json.loads(done.stdout)
    nodes = {node["node"]: node["coherency"] for node in told["nodes"]}
    assert nodes == {
        "leasehold-master-0": "coherent",
        "leasehold-master-1": "follows",
        "leasehold-replicant-0": "coherent",
    } or sorted(nodes.values()) == ["coherent", "coherent", "follows"], done.stdout + done.stderr


def inside() -> list[tuple[str, Command]]:
    """Return the commands of the page that run in a pod, and in which."""
    page = ROOT / "docs" / "how-to" / "run-on-kubernetes.md"
    found = [
        command
        for block in blocks(page)
        if block.mark == "kubernetes"
        for command in commands(block)
        if command.text.startswith("kubectl exec ")
    ]
    return [(command.text.split()[2], command) for command in found]


@pytest.mark.parametrize(("target", "command"), inside(), ids=lambda each: str(each)[:60])
def test_a_command_of_the_page_shows_what_it_says(
    kubelet: Kubelet, target: str, command: Command
) -> None:
    for name in SERVING:
        kubelet.await_probe(pod(kubelet, name), "readinessProbe")
    own = target.rpartition("/")[2]
    (name,) = (each for each in kubelet.pods if each.startswith(own))
    _, _, words = command.text.partition(" -- ")
    done = pod(kubelet, name).container.run(*shlex.split(words))
    printed = done.stdout + done.stderr
    assert "Traceback" not in printed
    assert not command.shown or is_as_shown(printed, command.shown), printed


def test_cron_jobs_make_backups_that_can_be_restored(kubelet: Kubelet) -> None:
    """Run one after the other, as a Job is made of each: a whole one, an increment, a whole one,
    and a look at all of them."""
    kubelet.await_probe(pod(kubelet, "leasehold-replicant-0"), "readinessProbe")

    def run(name: str) -> str:
        return kubelet.run_job(kubelet.find("CronJob", f"leasehold-{name}")).splitlines()[-1]

    assert "full backup up to LSN" in run("backup")
    with connect(kubelet) as session:
        session.execute("INSERT INTO flights VALUES (3, 'C4')")
    assert "log backup up to LSN" in run("backup")
    assert "full backup up to LSN" in run("backup-full")
    run("backup-verify")
    verdicts = kubelet.pods["leasehold-backup-verify-00000"].container.log.read_text("utf-8")
    assert verdicts.count("can be restored") == 3, verdicts


def test_who_serves_no_reads_is_sent_nobody_and_is_not_started_again(kubelet: Kubelet) -> None:
    """While Kafka stands still no lease is renewed; a new process would wait as well."""
    replicant = pod(kubelet, "leasehold-replicant-0")
    broker = kubelet.servers["kafka"]
    broker.send(signal.SIGSTOP)
    try:
        words = kubelet.await_probe(replicant, "readinessProbe", well=False)
        assert words == "it holds no coherency lease, so that it answers no reads\n"
        assert kubelet.probe(replicant, "livenessProbe").well
    finally:
        broker.send(signal.SIGCONT)
    assert kubelet.await_probe(replicant, "readinessProbe") == "it is ready\n"


def test_a_master_that_is_taken_off_hands_over_and_comes_back_with_its_store(
    kubelet: Kubelet,
) -> None:
    with connect(kubelet) as session:
        (first,) = session.execute(
            "SELECT node FROM leasehold.nodes WHERE role = 'master'"
        ).fetchall()
        master = pod(kubelet, str(first[0]))
        assert kubelet.stop(master) == 0
        session.execute("INSERT INTO flights VALUES (2, 'A1')")
        (next_,) = session.execute(
            "SELECT node FROM leasehold.nodes WHERE role = 'master'"
        ).fetchall()
        assert next_ != first
    owner = kubelet.find("StatefulSet", "leasehold-master")
    again = kubelet.start(master.name, master.spec, owner)
    kubelet.await_probe(again, "readinessProbe")
    said = again.container.log.read_text("utf-8")
    assert "snapshot" not in said.rpartition("leasehold 0.")[2], "its claim has its store"


def test_every_pod_ends_within_its_time_when_it_is_told_to(kubelet: Kubelet) -> None:
    for name in reversed(list(kubelet.pods)):
        found = pod(kubelet, name)
        if found.container.code is None:
            code = kubelet.stop(found)
            idle = name.startswith("leasehold-operator")
            assert code == (-signal.SIGTERM if idle else 0), (name, found.container.tail())


def test_what_is_private_is_closed_to_the_group_of_the_volume(kubelet: Kubelet) -> None:
    volumes = kubelet.folder / "volumes"
    stores = list(volumes.glob("data-*/*/store.db"))
    assert len(stores) == 3
    assert all(path.stat().st_mode & 0o077 == 0 for path in stores)


def test_a_release_begins_as_the_backups_of_another_one_have_it(
    kubelet: Kubelet, tmp_path: Path
) -> None:
    """Into topics and a claim of its own; a second installation is refused, and harms nothing."""
    folder = open_to_users(tmp_path)
    (folder / "volumes").mkdir()
    (folder / "volumes" / "leasehold-backups").symlink_to(
        kubelet.folder / "volumes" / "leasehold-backups"
    )
    one_broker = {"LEASEHOLD_REPLICATION_FACTOR": "1"}
    found = manifests("restored")
    with Kubelet(found, kubelet.network, folder, kubelet.secrets, one_broker) as other:
        said = other.run_job(other.find("Job", "leasehold-restore"))
        assert "restored is restored as of LSN" in said
        for owner in ("leasehold-master", "leasehold-replicant"):
            described = other.find("StatefulSet", owner)
            name, spec = next(other.pods_of(described))
            other.start(name, spec, described)
        other.await_probe(pod(other, "leasehold-replicant-0"), "readinessProbe")
        with connect(other, "restored") as session:
            rows = session.execute("SELECT id, gate FROM flights ORDER BY id").fetchall()
            assert rows[0] == (1, "B12")
            assert (3, "C4") in rows
            session.execute("INSERT INTO flights VALUES (9, 'D1')")
            ((name, spec),) = other.pods_of(other.find("Job", "leasehold-restore"))
            again = other.start(name, spec)
            assert again.container.wait(READY_S) == ExitCode.USAGE, again.container.tail()
            assert session.execute("SELECT count(*) FROM flights WHERE id = 9").fetchone() == (1,)
