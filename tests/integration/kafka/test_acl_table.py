"""Goal: with the rights that docs/how-to/secure.md names, and no others, everybody can work.

Method: one broker that asks for a password and denies what no ACL allows. The ACLs are made by
`leasehold setup-acls`, from the table of which that document has a copy. A master, a replicant and
a changefeed run as users of their own; a producer, a subscriber and SQL write, change a table and
read. What the broker denies it logs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from infra.deployment import KAFKA, service_named
from infra.local_cluster import LocalCluster
from infra.ports import LOOPBACK, Ports, find_free_port
from leasehold import ChangeProducer, Subscriber
from leasehold.adapters.kafka.topic_creation import ensure_topics
from leasehold.adapters.kafka.writer import TopicWriter
from leasehold.admin.feeds import Feeds
from leasehold.admin.watch import ClusterWatch
from leasehold.cli.check import EVERY_TABLE
from leasehold.cli.doctor.checks import CHECKS
from leasehold.cli.doctor.facts import SettingsSeen
from leasehold.cli.doctor.finding import Verdict, examine
from leasehold.cli.doctor.gather import gather
from leasehold.events.debezium.definition import Definition
from leasehold.model.process_rights import KIND_NAMED
from leasehold.model.topics import Topics
from leasehold.replica.barrier import ask_check
from leasehold.settings.client import ClientSettings
from leasehold.settings.environment import to_environment
from tests.support.cluster.guarded_kafka import guarded_broker, settings_of_user
from tests.support.cluster.system_cluster import SOON_S, logged, settings_of, until

pytestmark = pytest.mark.long("40 s; all of a secured cluster works with these rights in make test")

DATABASE: Final = "demo"
RESTORED: Final = "again"
RESTORER: Final = "restorer"
"""Of another database than the others."""
KINDS: Final[Mapping[str, str]] = {
    "topics": "topics",
    "m": "master",
    "node": "replicant",
    "feed": "changefeed",
    "writer": "producer",
    "reader": "subscriber",
    "watcher": "status",
    "check": "check",
    "physician": "doctor",
    "orderer": "feeds",
    "saver": "backup",
}
"""User → the kind of process that the table gives rights to."""
SERVICES: Final = {"m1": "m", "r1": "node", "changefeed": "feed"}
PRINCIPALS: Final = [word for user, kind in KINDS.items() for word in (f"--{kind}", f"User:{user}")]


def setup_acls(
    cluster: LocalCluster, *words: str, database: str = DATABASE
) -> tuple[int, dict[str, Any]]:
    """Run the command on the listener where everybody may everything; → exit code and answer."""
    more = {"LEASEHOLD_DATABASE": database}
    return run_command(cluster, more, "setup-acls", *(words or PRINCIPALS))


def run_command(
    cluster: LocalCluster, more: Mapping[str, str], *words: str
) -> tuple[int, dict[str, Any]]:
    """Run a command with `more` settings; → exit code and answer."""
    done = subprocess.run(
        [sys.executable, "-m", "leasehold.cli.main", *words, "--json"],
        env={**cluster.env("setup"), **more, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, json.loads(done.stdout or "{}") if done.returncode < 2 else {
        "error": done.stderr
    }


@pytest.fixture(scope="module")
def guarded_port() -> int:
    return find_free_port()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, guarded_port: int) -> Iterator[LocalCluster]:
    ports = Ports.free()
    users = (*KINDS, RESTORER)
    guarded = guarded_broker(ports.kafka, ports.kafka_controller, guarded_port, users)
    folder, environ = (
        tmp_path_factory.mktemp("acls"),
        {**os.environ, "LEASEHOLD_DATABASE": DATABASE},
    )
    with LocalCluster(folder, ports, environ, broker_settings=guarded) as made:
        made.start_servers()
        code, told = setup_acls(made)
        assert code == 0, told
        ensure_topics(settings_of_user("topics", guarded_port), Topics(DATABASE).all_static())
        for name, user in SERVICES.items():
            environment = to_environment(settings_of_user(user, guarded_port))
            made.services[name] = replace(service_named(name), environment=environment)
            made.start(name)
        yield made


@pytest.fixture(scope="module")
def wanted_denials() -> list[str]:
    """What the tests until now wanted denied: a client that is being closed may ask once more."""
    return []


@pytest.fixture
def denials(cluster: LocalCluster, wanted_denials: list[str]) -> Iterator[list[str]]:
    """What the test wants denied; as it ends, the broker has denied nothing else since it began."""
    before = len(denied(cluster))
    yield wanted_denials
    new = denied(cluster)[before:]
    found = [line for line in new if not any(each in line for each in wanted_denials)]
    assert found == [], "\n".join(found)


def denied(cluster: LocalCluster) -> list[str]:
    return [line for line in logged(cluster, KAFKA).splitlines() if " is Denied " in line]


def as_user(cluster: LocalCluster, user: str, guarded_port: int) -> ClientSettings:
    return replace(settings_of(cluster, user), kafka=settings_of_user(user, guarded_port))


def test_the_documented_rights_are_enough(
    cluster: LocalCluster, guarded_port: int, denials: list[str]
) -> None:
    """A producer's rows, a schema change by a job, SQL on the replicant, and their events."""
    with ChangeProducer(as_user(cluster, "writer", guarded_port)) as producer:
        made = producer.submit({"sql": "CREATE TABLE t (id bigint PRIMARY KEY, n int)"})
        assert made.result(SOON_S).lsn
        row = {"table": "t", "op": "insert", "key": {"id": 1}, "values": {"n": 1}}
        assert producer.submit(row).result(SOON_S).lsn
    with (
        Subscriber(as_user(cluster, "reader", guarded_port), ["t"]) as subscriber,
        psycopg.connect(
            host=LOOPBACK,
            port=cluster.ports.sql[0],
            user="leasehold",
            dbname=DATABASE,
            autocommit=True,
        ) as sql,
    ):
        sql.execute("alter table t add column m int")
        sql.execute("begin isolation level linearizable")
        sql.execute("update t set m = n + 1 where id = 1")
        sql.execute("commit")
        assert sql.execute("select id, n, m from t").fetchall() == [(1, 1, 2)]
        told = sql.execute("select node from leasehold.nodes").fetchall()
        assert {("m1",), ("r1",)} <= set(told)
        heard: list[object] = []

        def is_heard() -> bool:
            heard.extend(subscriber.poll(1.0))
            return any(getattr(each, "values", None) == {"id": 1, "n": 1, "m": 2} for each in heard)

        until(is_heard, "the row as it is now, by the changefeed", seen=lambda: str(heard))
        checker = as_user(cluster, "check", guarded_port)
        with ClusterWatch(checker) as watch:
            assert watch.wait_for(lambda view: len(view.tables) == 1, SOON_S)
            checked = ask_check(checker, EVERY_TABLE)
            reports = 2 * 2  # of each node, on the table and on roles
            assert watch.wait_for(lambda view: len(view.checks.get(checked, ())) == reports, SOON_S)
        feed = Feeds(as_user(cluster, "orderer", guarded_port))
        fed = feed.create(Definition(table="public.t", transactions=True), SOON_S)
        assert fed["status"] == "on", fed
        sql.execute("insert into t (id) values (2)")
        sql.execute("drop table t")
        until(
            lambda: feed.states()["public.t"]["status"] == "ended",
            "the end of the feed",
            seen=lambda: str(feed.states()),
        )
    with ClusterWatch(as_user(cluster, "watcher", guarded_port)) as watch:
        assert watch.wait_for(lambda view: {"m1", "r1"} <= view.nodes.keys(), SOON_S)
        assert not watch.view.unreachable
    doctor = KIND_NAMED["doctor"]
    facts = gather(as_user(cluster, "physician", guarded_port), SettingsSeen(), doctor, SOON_S)
    findings = examine(facts, CHECKS)
    unseen = [each for each in findings if each.verdict is Verdict.UNSEEN]
    assert unseen == [], unseen
    rights = [each.verdict for each in findings if each.check == "rights"]
    assert rights == [Verdict.OK]
    lacking = examine(replace(facts, kind=KIND_NAMED["master"]), CHECKS)
    words = [each.words for each in lacking if each.check == "rights"]
    assert any(each.startswith(f"Write on {DATABASE}.log is not allowed") for each in words), words


def test_a_database_is_backed_up_and_comes_back_with_the_documented_rights(
    cluster: LocalCluster, guarded_port: int, denials: list[str], tmp_path: Path
) -> None:
    """One user reads the log, another one makes the new database, and nothing of the old one."""
    saver = to_environment(settings_of_user("saver", guarded_port))
    restorer = to_environment(settings_of_user(RESTORER, guarded_port))
    place, store = str(tmp_path / "backups"), str(tmp_path / "store.db")
    code, made = run_command(cluster, saver, "backup", "create", place)
    assert (code, made["made"]["kind"]) == (0, "full"), made
    with ChangeProducer(as_user(cluster, "writer", guarded_port)) as producer:
        table = "CREATE TABLE kept (id int PRIMARY KEY, n int)"
        row = {"table": "kept", "op": "insert", "key": {"id": 1}, "values": {"n": 1}}
        for request in ({"sql": table}, row):
            assert producer.submit(request).result(SOON_S).lsn
    code, made = run_command(cluster, saver, "backup", "create", place)
    assert (code, made["made"]["kind"]) == (0, "log"), made
    code, told = setup_acls(cluster, "--restore", f"User:{RESTORER}", database=RESTORED)
    assert code == 0, told
    words = ("backup", "restore", place, "--database", RESTORED, "--store", store)
    code, done = run_command(cluster, restorer, *words)
    assert code == 0, done
    assert done["published_rows"] == sum(table["rows"] for table in done["tables"]) >= 1


@pytest.mark.parametrize(
    ("user", "operation"),
    [("writer", "DESCRIBE"), ("check", "WRITE"), ("node", "WRITE"), ("feed", "WRITE")],
)
def test_nobody_but_masters_writes_to_the_log(
    cluster: LocalCluster, guarded_port: int, denials: list[str], user: str, operation: str
) -> None:
    """That is where rows come from: barriers and checks are asked of the master."""
    about = f"on resource = Topic:LITERAL:{DATABASE}.log"
    denials.append(
        f"Principal = User:{user} is Denied operation = {operation} from host = {LOOPBACK} {about}"
    )
    writer = TopicWriter(settings_of_user(user, guarded_port), "t", delivery_timeout_ms=2_000)
    writer.send(f"{DATABASE}.log", 0, None, b"x", token=1)
    writer.flush(SOON_S)
    (delivery,) = writer.deliveries()
    assert f"access denied as user {user}" in (delivery.error or "")
    writer.close(1)


def test_set_up_again_changes_nothing_and_takes_away_only_what_it_is_told_to(
    cluster: LocalCluster,
) -> None:
    nothing: dict[str, Any] = {"given": [], "taken": [], "beyond": [], "others": [], "wider": []}
    nothing |= {"redis_users": []}
    assert setup_acls(cluster) == (0, {**nothing, "dry_run": False})
    assert setup_acls(cluster, *PRINCIPALS, "--dry-run") == (0, {**nothing, "dry_run": True})
    more = [*PRINCIPALS, "--audit", "User:writer"]
    code, told = setup_acls(cluster, *more, "--dry-run")
    names = {(each["principal"], each["name"], each["operation"]) for each in told["given"]}
    audit = {("User:writer", "demo.audit", each) for each in ("Read", "Describe")}
    assert (code, names) == (1, audit)
    assert setup_acls(cluster, *PRINCIPALS)[1]["beyond"] == []  # a dry run gives nothing
    assert setup_acls(cluster, *more)[0] == 0
    assert len(setup_acls(cluster)[1]["beyond"]) == 2
    assert setup_acls(cluster, "--audit", "User:other")[0] == 0
    code, told = setup_acls(cluster, *PRINCIPALS, "--prune")
    assert (code, len(told["taken"]), told["others"]) == (0, 2, ["User:other"])
    assert setup_acls(cluster, "--master", "User:*")[0] == 2
