"""Goal: with the rights that docs/how-to/secure.md names, and no others, everybody can work.

Method: one broker that asks for a password and denies what no ACL allows. The ACLs are made from
the table of that document. A master, a replicant and a changefeed run as users of their own; a
producer, a subscriber and SQL write, change a table and read. What the broker denies it logs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

import psycopg
import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from infra.deployment import KAFKA, service_named
from infra.local_cluster import ROOT, LocalCluster
from infra.ports import LOOPBACK, Ports, find_free_port
from leasehold import ChangeProducer, Subscriber
from leasehold.adapters.kafka.topic_creation import ensure_topics
from leasehold.adapters.kafka.writer import TopicWriter
from leasehold.admin.watch import ClusterWatch
from leasehold.cli.check import EVERY_TABLE
from leasehold.model.topics import Topics
from leasehold.replica.barrier import ask_check
from leasehold.settings.client import ClientSettings
from leasehold.settings.environment import to_environment
from tests.support.cluster.guarded_kafka import guarded_broker, settings_of_user
from tests.support.cluster.system_cluster import SOON_S, logged, settings_of, until

DATABASE: Final = "demo"
ROWS: Final[Mapping[str, str]] = {
    "topics": "`leasehold topics`",
    "master": "candidates for master",
    "node": "replicants, embedded replicas",
    "feed": "changefeed",
    "writer": "`ChangeProducer`, `leasehold submit`, `ddl`",
    "reader": "`Subscriber`",
    "status": "dashboard, `leasehold status`, `jobs`, `leases`",
    "check": "`leasehold check`",
}
"""User → the row of the table that says what it may do."""
SERVICES: Final = {"m1": "master", "r1": "node", "changefeed": "feed"}
_NAME: Final = re.compile(r"`([^`]+)`")
_BESIDE: Final = re.compile(
    r"(?P<operations>[A-Z]\w+(?:(?:, | and )[A-Z]\w+)*) on (?P<what>the transactional id )?"
    r"(?P<names>`[^`]+`(?:(?:, | and )`[^`]+`)*)"
)
"""As `Create and Delete on `rows.*``."""


AS_STATUS: Final = "as `status`"
ALL_BUT_ROWS: Final = "all but `rows.*`"
_GROUP: Final = re.compile(r"everybody Describe on the group `([^`]+)`")


def document() -> str:
    return (ROOT / "docs/how-to/secure.md").read_text("utf-8")


def documented() -> Mapping[str, tuple[str, str, str]]:
    """Return what each row of the table says: reads, writes, besides."""
    table = document().partition("| who | reads | writes | besides |")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return {row[0]: (row[1], row[2], row[3]) for row in rows if len(row) == 4}


def acl(user: str, operation: str, name: str, kind: ResourceType) -> AclBinding:
    """Return the right of `user` to do that with the topic, or with what `kind` says."""
    if kind is ResourceType.TOPIC and not name.startswith(f"{DATABASE}."):
        name = f"{DATABASE}.{name}"
    pattern = ResourcePatternType.PREFIXED if name.endswith("*") else ResourcePatternType.LITERAL
    return AclBinding(
        kind,
        name.rstrip("*"),
        pattern,
        f"User:{user}",
        "*",
        AclOperation[re.sub(r"(?<=[a-z])(?=[A-Z])", "_", operation).upper()],
        AclPermissionType.ALLOW,
    )


def names_in(cell: str) -> list[str]:
    if cell == AS_STATUS:
        cell = documented()[ROWS["status"]][0]
    if cell != ALL_BUT_ROWS:
        return _NAME.findall(cell)
    return [topic.name.partition(".")[2] for topic in Topics(DATABASE).all_static()]


def rights(user: str, row: tuple[str, str, str]) -> Iterator[AclBinding]:
    reads, writes, beside = row
    for operation, cell in (("Read", reads), ("Write", writes)):
        for name in names_in(cell):
            yield acl(user, operation, name, ResourceType.TOPIC)
            yield acl(user, "Describe", name, ResourceType.TOPIC)
    for group in _GROUP.findall(document()):
        yield acl(user, "Describe", group, ResourceType.GROUP)
    for found in _BESIDE.finditer(beside):
        kind = ResourceType.TRANSACTIONAL_ID if found["what"] else ResourceType.TOPIC
        for operation in re.findall(r"[A-Z]\w+", found["operations"]):
            for name in _NAME.findall(found["names"]):
                yield acl(user, operation, name, kind)


@pytest.fixture(scope="module")
def guarded_port() -> int:
    return find_free_port()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, guarded_port: int) -> Iterator[LocalCluster]:
    ports = Ports.free()
    guarded = guarded_broker(ports.kafka, ports.kafka_controller, guarded_port, ROWS)
    folder, environ = (
        tmp_path_factory.mktemp("acls"),
        {**os.environ, "LEASEHOLD_DATABASE": DATABASE},
    )
    with LocalCluster(folder, ports, environ, broker_settings=guarded) as made:
        made.start_servers()
        table = documented()
        acls = [each for user, row in ROWS.items() for each in rights(user, table[row])]
        admin = AdminClient(made.kafka_settings.librdkafka())
        for made_acl in admin.create_acls(list(dict.fromkeys(acls))).values():
            made_acl.result(SOON_S)
        ensure_topics(settings_of_user("topics", guarded_port), Topics(DATABASE).all_static())
        for name, user in SERVICES.items():
            environment = to_environment(settings_of_user(user, guarded_port))
            made.services[name] = replace(service_named(name), environment=environment)
            made.start(name)
        yield made


@pytest.fixture
def denials(cluster: LocalCluster) -> Iterator[list[str]]:
    """What the broker has denied, filled as the test ends: nothing, or what the test wants."""
    before = len(denied(cluster))
    wanted: list[str] = []
    yield wanted
    found = [line for line in denied(cluster)[before:] if not any(w in line for w in wanted)]
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
        heard: list[object] = []

        def is_heard() -> bool:
            heard.extend(subscriber.poll(1.0))
            return any(getattr(each, "values", None) == {"id": 1, "n": 1, "m": 2} for each in heard)

        until(is_heard, "the row as it is now, by the changefeed", seen=lambda: str(heard))
        checker = as_user(cluster, "check", guarded_port)
        with ClusterWatch(checker) as watch:
            assert watch.wait_for(lambda view: len(view.tables) == 1, SOON_S)
            checked = ask_check(checker, EVERY_TABLE)
            assert watch.wait_for(lambda view: len(view.checks.get(checked, ())) == 2, SOON_S)
        sql.execute("drop table t")
    with ClusterWatch(as_user(cluster, "status", guarded_port)) as watch:
        assert watch.wait_for(lambda view: {"m1", "r1"} <= view.nodes.keys(), SOON_S)
        assert not watch.view.unreachable


@pytest.mark.parametrize(
    ("user", "operation"),
    [("writer", "DESCRIBE"), ("check", "WRITE"), ("node", "WRITE"), ("feed", "WRITE")],
)
def test_nobody_but_masters_writes_to_the_log(
    cluster: LocalCluster, guarded_port: int, denials: list[str], user: str, operation: str
) -> None:
    """That is where rows come from: barriers and checks are asked of the master."""
    denials.append(f"Principal = User:{user} is Denied operation = {operation}")
    writer = TopicWriter(settings_of_user(user, guarded_port), "t", delivery_timeout_ms=2_000)
    writer.send(f"{DATABASE}.log", 0, None, b"x", token=1)
    writer.flush(SOON_S)
    (delivery,) = writer.deliveries()
    assert f"access denied as user {user}" in (delivery.error or "")
    writer.close(1)
