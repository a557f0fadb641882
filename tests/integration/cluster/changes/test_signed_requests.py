"""S8 on real processes: requests are signed on Kafka and on Redis, so are Spark's chunks and next
attempts, and what nobody has signed is refused.

Goal: with a master key everything works that worked without, each in its own name, and a stranger
who may write to every queue does nothing. Method: a cluster that signs all by one key; a producer
with a role's key, and one with none.
"""

from __future__ import annotations

from dataclasses import replace

import psycopg
import pytest

from infra.local_cluster import LocalCluster
from infra.ports import LOOPBACK
from leasehold import ChangeProducer
from leasehold.admin.audit_trail import AuditFilter, AuditTrail
from leasehold.admin.dead_letters import DeadLetters
from leasehold.admin.watch import ClusterWatch
from leasehold.catalog.job import Status
from leasehold.model.signatures import derive_role_key
from leasehold.settings.client import ClientSettings
from leasehold.settings.request_key import RequestKeySettings
from tests.integration.cluster.changes import REQUEST_KEY
from tests.support.cluster.secure_suite import not_in_secure_mode
from tests.support.cluster.system_cluster import SOON_S, settings_of, until

pytestmark = not_in_secure_mode(
    "the mode signs with a key of its own, by which every other file is asked; this one knows the"
    " key, and has a role that logs in without a password"
)


@pytest.fixture(scope="module", autouse=True)
def table(cluster: LocalCluster) -> None:
    with ChangeProducer(settings_of(cluster, "setup")) as producer:
        for sql in (
            "create table signed (id bigint primary key, n int)",
            "create role till login",
            "grant select, insert, update on signed to till",
        ):
            assert producer.submit({"sql": sql}).result(SOON_S).lsn, sql


def connect(cluster: LocalCluster, user: str) -> psycopg.Connection[tuple[object, ...]]:
    name = cluster.cluster_settings.database
    port = cluster.ports.sql[0]
    return psycopg.connect(host=LOOPBACK, port=port, user=user, dbname=name, autocommit=True)


def till_key(cluster: LocalCluster) -> str:
    with connect(cluster, "leasehold") as sql:
        found = sql.execute("select rolconfig[1] from pg_roles where rolname = 'till'").fetchone()
    assert found is not None
    number = str(found[0]).partition("=")[2]
    database = cluster.cluster_settings.database
    return derive_role_key(REQUEST_KEY.encode(), database, "till", number).to_text()


def with_key(cluster: LocalCluster, key: str | None, role: str | None = None) -> ClientSettings:
    return replace(settings_of(cluster, "p"), requests=RequestKeySettings(key=key, role=role))


def test_s8_a_role_s_requests_are_signed_on_both_ways(cluster: LocalCluster) -> None:
    """One after the other, so that they come to go through Redis; and a right that it lacks."""
    with ChangeProducer(with_key(cluster, till_key(cluster), "till")) as producer:
        for number in range(300):
            row = {"table": "signed", "op": "upsert", "key": {"id": number}, "values": {"n": 0}}
            assert producer.submit(row).result(SOON_S).lsn, number
        delete = {"table": "signed", "op": "delete", "key": {"id": 1}, "on_conflict": "fail"}
        assert producer.submit(delete).result(SOON_S).code == "42501"


def test_s8_who_has_no_key_is_refused(cluster: LocalCluster) -> None:
    with ChangeProducer(with_key(cluster, None)) as stranger:
        outcome = stranger.submit({"sql": "drop table signed"}).result(SOON_S)
        assert (outcome.code, outcome.final) == ("28000", True)
    with ChangeProducer(with_key(cluster, None, "leasehold")) as stranger:
        assert stranger.submit({"sql": "drop table signed"}).result(SOON_S).code == "28000"
    letters = DeadLetters(settings_of(cluster, "p"))
    until(lambda: [each.code for _, each in letters.read()].count("28000") >= 2, "dead letters")


def test_s8_spark_fills_and_retries_in_the_name_of_who_asked(cluster: LocalCluster) -> None:
    with ChangeProducer(with_key(cluster, till_key(cluster), "till")) as producer:
        row = {"table": "signed", "op": "upsert", "key": {"id": 7}, "values": {"n": 1}}
        assert producer.submit(row).result(SOON_S).lsn
        stale = {**row, "op": "update", "values": {"n": {"expr": "n + 1"}}, "expect": 9}
        outcome = producer.submit(stale).result(SOON_S)
        assert (outcome.attempt, outcome.lsn > 0) == (2, True), outcome
    with connect(cluster, "leasehold") as sql:
        sql.execute("create index signed_n on signed (n)")
        job = "select status from leasehold.jobs where sql like 'create index signed_n on %'"
        assert sql.execute(job).fetchall() == [(Status.SUCCEEDED,)]
        assert sql.execute("select n from signed where id = 7").fetchone() == (2,)


def test_s14_it_leaves_a_trace(cluster: LocalCluster, watch: ClusterWatch) -> None:
    with connect(cluster, "till") as sql, pytest.raises(psycopg.errors.InsufficientPrivilege):
        sql.execute("delete from signed")
    with connect(cluster, "leasehold") as sql:
        sql.execute("create role guest")
    trail = AuditTrail(settings_of(cluster, "p"))
    master = watch.view.log.master
    wanted = {
        ("log-in", "till", "r1"),
        ("refused", "till", "r1"),
        ("role", "leasehold", master),
        ("schema", "leasehold", master),
    }

    def told() -> set[tuple[str, str, str]]:
        return {
            (str(each["kind"]), str(each.get("user") or each.get("role")), str(each["node"]))
            for each in trail.read(AuditFilter())
        }

    until(lambda: wanted <= told(), "events of the audit log", seen=lambda: str(told()))
    refused = trail.read(AuditFilter(frozenset({"refused"}), refused=True))
    assert {str(each["outcome"]) for each in refused} == {"42501", "28000"}
    assert REQUEST_KEY not in str(trail.read(AuditFilter()))
