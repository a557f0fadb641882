"""Goal: each thing that may be wrong with a database is found by its check, named with what to do,
and found by no other check; where all is well nothing is said.

Method: facts where all is well, of which each case spoils one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from leasehold.adapters.kafka.cluster_look import PartitionSeen, TopicSeen
from leasehold.adapters.kafka.topic_span import TopicSpan
from leasehold.admin.view import ClusterView, TopicEnds, Unreachable
from leasehold.catalog.job import Status
from leasehold.cli.doctor.checks import CHECKS
from leasehold.cli.doctor.facts import CertificateSeen, Facts, FileSeen, FolderSeen, NodeClock
from leasehold.cli.doctor.finding import (
    Check,
    Finding,
    Unseen,
    Verdict,
    examine,
    exit_code_of,
    fail,
    warn,
)
from leasehold.model.features import NEWEST
from leasehold.model.process_rights import KIND_NAMED
from leasehold.model.records.acks import AccessReport
from leasehold.model.records.jobs import ChangefeedReport, SparkReport
from leasehold.model.topics import Topics
from tests.support.admin import view_events as events
from tests.support.admin.doctor_facts import (
    GIB,
    GOOD_REDIS,
    TOPICS,
    cluster_of,
    good_facts,
    good_kafka,
    good_view,
    node_report,
    topic_seen,
)

NOW, SECOND = events.NOW, events.SECOND
DAY_US = 24 * 3600 * SECOND
LOG, VERSIONS = TOPICS.log, TOPICS.versions


class Case(NamedTuple):
    """A spoiled part, the check that is to find it, and words of what it says."""

    name: str
    facts: Facts
    check: str
    verdict: Verdict
    words: str
    to_do: str = ""


def with_settings(**changes: Any) -> Facts:
    facts = good_facts()
    return replace(facts, settings=replace(facts.settings, **changes))


def certificate(days: int) -> Facts:
    seen = CertificateSeen("LEASEHOLD_KAFKA_CA", "/c", NOW + days * DAY_US)
    return with_settings(certificates=(seen,))


def with_topic(name: str, **changes: Any) -> Facts:
    kafka = good_kafka()
    topics = {**kafka.topics, name: kafka.topics[name]._replace(**changes)}
    return good_facts(kafka=kafka._replace(topics=topics))


def with_config(topic: Any, **changes: str | None) -> Facts:
    named = {name.replace("_", "."): value for name, value in changes.items()}
    return with_topic(topic.name, settings={**topic.config, **named})


def with_redis(**changes: Any) -> Facts:
    return good_facts(redis=GOOD_REDIS._replace(**changes))


def with_events(*more: Any, now_us: int = NOW, **changes: Any) -> Facts:
    view = events.seen(*VIEW, *more)
    return good_facts(cluster=cluster_of(view, now_us, **changes), now_us=now_us)


def told(**changes: Any) -> Facts:
    """Return facts with parts of the report as they are given."""
    cluster = cluster_of(good_view())
    return good_facts(cluster=replace(cluster, told={**cluster.told, **changes}))


VIEW = (
    events.log(3),
    events.ack("m1", "master", offset=4),
    events.ack("r1"),
    events.ledger({}),
    ChangefeedReport(NOW, 4, 10),
    TopicEnds({"log": 4, "requests": 5, "backfill": 0}),
)
HELD = {
    "agent": "pricing",
    "table": "flights",
    "version": 2,
    "session": 5,
    "state": "running",
    "old_ms": 700_000,
    "users": 1,
    "work": [],
    "heard_ms": 100,
    "session_ends_in_ms": None,
}
WAITING = {
    "job": 7,
    "table": "flights",
    "status": "running",
    "spark_fails": "",
    "phase": "draining",
    "phase_ms": 700_000,
    "waits_for": ["agent pricing"],
    "ended_us": None,
}
FAIL, WARN, UNSEEN = Verdict.FAIL, Verdict.WARN, Verdict.UNSEEN
CASES = (
    Case(
        "a slip in a name",
        with_settings(given=frozenset({"LEASEHOLD_KAFKAS"})),
        *("settings", WARN, "LEASEHOLD_KAFKAS is set", "LEASEHOLD_KAFKA meant"),
    ),
    Case(
        "a name that is like none",
        with_settings(given=frozenset({"LEASEHOLD_COFFEE"})),
        *("settings", WARN, "LEASEHOLD_COFFEE", "unset it"),
    ),
    Case(
        "a secret that others read",
        with_settings(secret_files=(FileSeen("LEASEHOLD_KAFKA_PASSWORD_FILE", "/p", 0o644),)),
        *("secrets", WARN, "/p (mode 644)", "chmod go= /p"),
    ),
    Case(
        "a secret that can't be read",
        with_settings(unreadable=(FileSeen("LEASEHOLD_KAFKA_KEY", "/k", 0, "no such file"),)),
        *("secrets", FAIL, "/k, which can't be read: no such file"),
    ),
    Case(
        "a certificate that ends soon",
        with_settings(
            certificates=(CertificateSeen("LEASEHOLD_KAFKA_CA", "/c", NOW + 29 * DAY_US),)
        ),
        *("certificates", WARN, "ends in 29 days", "renew"),
    ),
    Case(
        "a certificate that has ended",
        with_settings(
            certificates=(CertificateSeen("LEASEHOLD_KAFKA_CA", "/c", NOW - 2 * DAY_US),)
        ),
        *("certificates", FAIL, "has ended 2 days ago"),
    ),
    Case(
        "a topic that is missing",
        with_topic(VERSIONS.name, missing=True, partitions=(), settings=None),
        *("topics", FAIL, "no topic demo.versions", "leasehold topics"),
    ),
    Case(
        "a topic of other partitions",
        with_topic("demo.results", partitions=(PartitionSeen(1, 3, 3),)),
        *("topics", FAIL, "demo.results has 1 partitions, not 8"),
    ),
    Case(
        "a log that is deleted by time",
        with_config(LOG, retention_ms="3600000"),
        *("topics", FAIL, "demo.log has retention.ms=3600000, not -1: the broker may delete"),
    ),
    Case(
        "rows that are not compacted",
        with_topic("demo.rows.7", settings={**TOPICS.rows(7).config, "cleanup.policy": "delete"}),
        *("topics", FAIL, "demo.rows.7 has cleanup.policy=delete"),
    ),
    Case(
        "records that are too large for their topic",
        with_config(LOG, max_message_bytes="1000"),
        *("topics", FAIL, "records that the master makes may be refused", "--add-config"),
    ),
    Case(
        "other segments",
        with_config(VERSIONS, segment_bytes="1073741824"),
        *("topics", WARN, "segment.bytes=1073741824"),
    ),
    Case(
        "settings that nobody may see",
        with_topic(LOG.name, settings=None),
        *("topics", UNSEEN, "not allowed to look at demo.log", "setup-acls"),
    ),
    Case(
        "a partition without a leader",
        with_topic(LOG.name, partitions=(PartitionSeen(-1, 3, 3),)),
        *("replicas", FAIL, "no broker leads a partition of demo.log"),
    ),
    Case(
        "a replica that is away",
        with_topic(LOG.name, partitions=(PartitionSeen(1, 3, 2),)),
        *("replicas", WARN, "a replica of demo.log is away"),
    ),
    Case(
        "one broker",
        with_topic(LOG.name, partitions=(PartitionSeen(1, 1, 1),)),
        *("log's durability", WARN, "acknowledged writes are lost with its disk"),
    ),
    Case(
        "acknowledged by a minority",
        with_config(LOG, min_insync_replicas="1"),
        *("log's durability", WARN, "1 of 3 brokers", "min.insync.replicas=2"),
    ),
    Case(
        "a leader that lacks records",
        with_config(LOG, unclean_leader_election_enable="true"),
        *("log's durability", WARN, "led by a broker that lacks"),
    ),
    Case(
        "a right that is lacking",
        with_topic(LOG.name, allowed=frozenset({"Describe", "DescribeConfigs"})),
        *("rights", FAIL, "Read on demo.log is not allowed", "setup-acls --doctor"),
    ),
    Case(
        "rights that are not told",
        with_topic(LOG.name, allowed=None),
        *("rights", UNSEEN, "do not say what is allowed on demo.log"),
    ),
    Case(
        "a log near its budget",
        good_facts(kafka=good_kafka()._replace(spans={LOG.name: TopicSpan(1, 9, NOW, 8_000)})),
        *("log", WARN, "8 records, about 0 MiB"),
    ),
    Case(
        "a log beyond its budget",
        good_facts(kafka=good_kafka()._replace(spans={LOG.name: TopicSpan(1, 9, NOW, 10_000)})),
        *("log", FAIL, "more than LEASEHOLD_LOG_BUDGET_MB", "who holds it"),
    ),
    Case(
        "a dead letter of today",
        good_facts(kafka=good_kafka()._replace(letter_us=NOW - SECOND)),
        *("dead letters", WARN, "a request became a dead letter", "leasehold dead-letter"),
    ),
    Case(
        "dead letters that nobody may ask for",
        good_facts(kafka=good_kafka()._replace(letter_us=None)),
        *("dead letters", UNSEEN, "not allowed to ask"),
    ),
    Case(
        "a ledger that is forgotten",
        with_redis(appends=False),
        *("ledger's durability", WARN, "no append-only file", "appendonly yes"),
    ),
    Case(
        "a ledger that can't be kept",
        with_redis(append_fails=True),
        *("ledger's durability", FAIL, "could not write its append-only file"),
    ),
    Case(
        "a ledger that is given up",
        with_redis(policy="allkeys-lru"),
        *("ledger's durability", WARN, "allkeys-lru", "noeviction"),
    ),
    Case(
        "a ledger in a cluster",
        with_redis(clustered=True),
        *("ledger's durability", FAIL, "a Redis Cluster, which Leasehold does not support"),
    ),
    Case(
        "a master of Sentinels without a replica",
        replace(good_facts(), sentinels=3),
        *("ledger's durability", WARN, "Redis has no replica now", "start it"),
    ),
    Case(
        "two Sentinels",
        replace(with_redis(replicas=1), sentinels=2),
        *("ledger's durability", WARN, "names 2 Sentinel(s)", "3 at least"),
    ),
    Case(
        "a replica and no Sentinels",
        with_redis(replicas=1),
        *("ledger's durability", WARN, "after a failover services stay with it", "Sentinels"),
    ),
    Case(
        "every broker must have it",
        with_config(LOG, min_insync_replicas="3"),
        *("log's durability", WARN, "takes no record while one of its 3 brokers is away"),
    ),
    Case(
        "memory of Redis that ends",
        with_redis(memory=80 << 20),
        *("memory of Redis", WARN, "80 MiB, 80 %"),
    ),
    Case(
        "memory of Redis that has ended",
        with_redis(memory=95 << 20),
        *("memory of Redis", FAIL, "leases are refused soon"),
    ),
    Case(
        "keys that were given up",
        with_redis(evicted=3),
        *("memory of Redis", FAIL, "given up 3 keys"),
    ),
    Case(
        "no master",
        good_facts(
            cluster=cluster_of(
                ClusterView(
                    ledger=good_view().ledger, ledger_us=NOW, changefeed=ChangefeedReport(NOW, 0, 0)
                )
            )
        ),
        *("master", FAIL, "no node has claimed an epoch"),
    ),
    Case(
        "a node that is not coherent",
        with_events(events.ack("r1", coherent=False, sent_us=NOW + 1)),
        *("nodes", FAIL, "node r1 (replicant) is incoherent", "not-coherent"),
    ),
    Case(
        "a node that lets everybody in",
        with_events(AccessReport("r1", "open to all", NOW)),
        *("nodes", WARN, "open to all", "secure.md"),
    ),
    Case(
        "a queue that is full",
        with_events(TopicEnds({"requests": 90_000})),
        *("queues", WARN, "89,995 messages wait in the queue requests"),
    ),
    Case(
        "nodes of two releases",
        with_events(reports={"m1": node_report("m1"), "r1": node_report("r1", release="1.1")}),
        *("versions", WARN, "1.0: m1; 1.1: r1", "upgrade"),
    ),
    Case(
        "a driver of Spark of another release",
        with_events(releases={"spark host/7": "0.9"}),
        *("versions", WARN, "0.9: spark host/7; 1.0: m1, r1", "upgrade"),
    ),
    Case(
        "a node of an earlier release",
        with_events(reports={"m1": node_report("m1")}),
        *("versions", WARN, "r1 did not say", "upgrade"),
    ),
    Case(
        "an upgrade that is not finalized",
        with_events(reports={n: node_report(n, feature_level=NEWEST - 1) for n in ("m1", "r1")}),
        *("versions", WARN, "the upgrade to release 1.0 is not finalized", "upgrade"),
    ),
    Case(
        "a command of another release",
        replace(good_facts(), release="2.0"),
        *("versions", WARN, "this command is of release 2.0, and the others of 1.0"),
    ),
    Case(
        "a clock that is ahead",
        with_events(clocks=(NodeClock("r1", 2 * SECOND),)),
        *("clocks", WARN, "the clock of node r1 is 2.0 s ahead of this host's", "time servers"),
    ),
    Case(
        "a clock that is far behind",
        with_events(clocks=(NodeClock("r1", -61 * SECOND),)),
        *("clocks", FAIL, "1 min 1 s behind"),
    ),
    Case(
        "the clock of Redis",
        with_redis(ahead_us=-3 * SECOND),
        *("clocks", WARN, "the clock of Redis is 3.0 s behind"),
    ),
    Case(
        "a disk below its reserve",
        with_events(
            reports={
                "m1": node_report("m1", room="short", free_bytes=GIB // 2),
                "r1": node_report("r1"),
            }
        ),
        *("disks", FAIL, "512 MiB are free on the disk of node m1's store", "disk-nearly-full"),
    ),
    Case(
        "a disk with a tenth left",
        with_events(reports={"m1": node_report("m1", free_bytes=9 * GIB), "r1": node_report("r1")}),
        *("disks", WARN, "9,216 MiB are free"),
    ),
    Case(
        "a write-ahead log that grows",
        with_events(reports={"m1": node_report("m1", wal_bytes=2 * GIB), "r1": node_report("r1")}),
        *("disks", WARN, "has 2,048 MiB: somebody reads", "leasehold.transactions"),
    ),
    Case(
        "a data folder that is nearly full",
        good_facts(folder=FolderSeen("data", 9, 100)),
        *("data folder", WARN, "are free in data"),
    ),
    Case(
        "a ledger that is away",
        with_events(Unreachable("ledger", "no connection")),
        *("ledger", FAIL, "the lease ledger is away"),
    ),
    Case(
        "a ledger that is not ready",
        with_events(events.ledger({}, ready=False)),
        *("ledger", WARN, "the lease ledger is grace"),
    ),
    Case(
        "a session that is not renewed",
        with_events(events.ledger({}, sessions=((5, 1, True),))),
        *("leases", WARN, "session 5 of agent pricing is not renewed"),
    ),
    Case(
        "a lease that is held for long",
        told(leases=[{"versions": [{"holders": [HELD]}]}]),
        *("leases", WARN, "agent pricing holds flights version 2", "job-waits"),
    ),
    Case(
        "a lease of an agent that is silent",
        told(leases=[{"versions": [{"holders": [{**HELD, "old_ms": 1, "state": "silent"}]}]}]),
        *("leases", WARN, "not heard of"),
    ),
    Case(
        "a job that stands still",
        told(jobs=[WAITING]),
        *("jobs", WARN, "is in phase draining for 11 min 40 s, and waits for agent pricing"),
    ),
    Case(
        "a job at which Spark fails",
        told(jobs=[{**WAITING, "phase_ms": 1, "spark_fails": "no memory"}]),
        *("jobs", WARN, "Spark fails at job 7 on flights and tries again: no memory"),
    ),
    Case(
        "a job that failed",
        with_events(
            events.version(3),
            events.job(status=Status.FAILED, error="no room", marks=(("x", 0, NOW - SECOND),)),
        ),
        *("jobs", FAIL, "failed: no room", "jobs dismiss"),
    ),
    Case(
        "a changefeed that is silent",
        with_events(ChangefeedReport(NOW - 60 * SECOND, 4, 10)),
        *("followers", FAIL, "the changefeed is silent"),
    ),
    Case(
        "no changefeed",
        told(changefeed=None),
        *("followers", WARN, "no changefeed", "start one"),
    ),
    Case(
        "a feed that failed",
        with_events(ChangefeedReport(NOW, 4, 10, (("t", "failed", "no schema"),))),
        *("followers", FAIL, "the feed of t has failed: no schema", "feed list"),
    ),
    Case(
        "a feed that is held",
        with_events(ChangefeedReport(NOW, 4, 10, (("t", "held", "5 records wait"),))),
        *("followers", WARN, "the feed of t is held: 5 records wait", "registry"),
    ),
    Case(
        "Spark that is silent",
        with_events(SparkReport(NOW - 600 * SECOND, "")),
        *("followers", FAIL, "Spark is silent"),
    ),
)


def problems(facts: Facts) -> list[Finding]:
    return [each for each in examine(facts, CHECKS) if each.verdict is not Verdict.OK]


def test_where_all_is_well_nothing_is_said_and_each_check_names_what_it_looked_at() -> None:
    findings = examine(good_facts(), CHECKS)
    assert problems(good_facts()) == []
    assert [each.check for each in findings] == [check.name for check in CHECKS]
    assert len({check.name for check in CHECKS}) == len(CHECKS)
    assert all(each.looks_at for each in findings)
    assert exit_code_of(findings) == 0


def test_each_thing_that_is_wrong_is_found_by_its_check_alone() -> None:
    for case in CASES:
        found = problems(case.facts)
        assert [(each.check, each.verdict) for each in found] == [(case.check, case.verdict)], (
            case.name,
            found,
        )
        assert case.words in found[0].words, (case.name, found)
        assert case.to_do in found[0].to_do, (case.name, found)
        assert found[0].to_do, case.name


def test_every_check_can_find_something() -> None:
    """`values` is in the tests of what reads them."""
    assert {check.name for check in CHECKS} - {case.check for case in CASES} == {"values"}


def test_a_part_that_is_away_is_said_by_each_check_that_needs_it() -> None:
    for part in ("kafka", "redis", "cluster", "folder"):
        spoiled: dict[str, Any] = {part: Unseen("it is away", "start it")}
        facts = replace(good_facts(), **spoiled)
        for check, finding in zip(CHECKS, examine(facts, CHECKS), strict=True):
            needs = part in check.needs
            assert finding.verdict is (Verdict.UNSEEN if needs else Verdict.OK), (part, finding)
            assert finding.words == ("it is away" if needs else "")


def test_the_exit_code_is_that_of_the_worst() -> None:
    def code(*verdicts: Verdict, strict: bool = False) -> int:
        return exit_code_of([Finding("", "", each, "", "") for each in verdicts], strict=strict)

    ok = Verdict.OK
    assert code(ok, WARN) == 0
    assert code(ok, WARN, strict=True) == 1
    assert code(WARN, UNSEEN) == 3
    assert code(WARN, UNSEEN, FAIL) == 1


def test_the_worst_of_a_check_comes_first() -> None:
    judge: Callable[[Any], Any] = lambda facts: [warn("a", "x"), fail("b", "y"), warn("c", "z")]  # noqa: E731
    found = Check("one", "it", (), judge).findings(None)
    assert [each.words for each in found] == ["b", "a", "c"]


def test_rights_are_those_of_the_kind_that_is_asked_for() -> None:
    facts = with_topic(LOG.name, allowed=frozenset({"Describe", "DescribeConfigs", "Read"}))
    assert problems(facts) == []
    (found,) = problems(replace(facts, kind=KIND_NAMED["master"]))[:1]
    assert found.check == "rights"
    assert "on demo.log is not allowed" in found.words
    assert "candidates for master needs it" in found.words


def test_topics_of_another_database_are_nobodys() -> None:
    other = Topics("other", 3)
    topics = {topic.name: TopicSeen(missing=True) for topic in other.all_static()}
    kafka = good_kafka()._replace(topics=topics)
    found = [each for each in problems(good_facts(kafka=kafka)) if each.check == "topics"]
    assert len(found) == len(TOPICS.all_static()), "all of ours are missing"


def test_one_more_of_a_setting_is_no_drift() -> None:
    more = {**LOG.config, "max.message.bytes": "2147483647"}
    assert problems(with_topic(LOG.name, settings=more)) == []
    assert topic_seen(LOG).settings == LOG.config
