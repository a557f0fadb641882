"""Facts of a database where all is well, for tests of `leasehold doctor`, which spoil one each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from leasehold.adapters.kafka.cluster_look import KafkaSeen, PartitionSeen, TopicSeen
from leasehold.adapters.kafka.topic_span import TopicSpan
from leasehold.adapters.redis.server_look import RedisSeen
from leasehold.admin.report import report
from leasehold.admin.view import ClusterView, TopicEnds
from leasehold.cli.doctor.facts import ClusterSeen, Facts, FolderSeen, NodeClock, SettingsSeen
from leasehold.model.features import NEWEST
from leasehold.model.process_rights import KIND_NAMED, KINDS, ProcessKind
from leasehold.model.records.acks import NodeReport
from leasehold.model.records.jobs import ChangefeedReport
from leasehold.model.topics import Topic, Topics
from tests.support.admin import view_events as events

GIB = 1 << 30
TOPICS = Topics("demo", 3)
DOCTOR = KIND_NAMED["doctor"]
EVERYTHING = frozenset(
    right.operation for kind in KINDS for right in kind.kafka_rights(TOPICS.database)
)
GOOD_REDIS = RedisSeen("7.4", 10 << 20, 100 << 20, "noeviction", True, False, 0, 0)


def topic_seen(topic: Topic, **changes: Any) -> TopicSeen:
    parts = (PartitionSeen(1, 3, 3),) * topic.partitions
    seen = TopicSeen(partitions=parts, settings=dict(topic.config), allowed=EVERYTHING)
    return seen._replace(**changes)


def good_kafka() -> KafkaSeen:
    topics = {topic.name: topic_seen(topic) for topic in (*TOPICS.all_static(), TOPICS.rows(7))}
    return KafkaSeen(3, topics, {TOPICS.log.name: TopicSpan(10, 20, 1, 1_000)}, 0)


def node_report(node: str, **changes: Any) -> NodeReport:
    sizes = (50 * GIB, 100 * GIB, GIB, 1 * GIB, 1 << 20)
    made = NodeReport(node, "1.0", "enough", *sizes, events.NOW, NEWEST)
    return made._replace(**changes)


def good_view() -> ClusterView:
    return events.seen(
        events.log(3),
        events.ack("m1", "master", offset=4),
        events.ack("r1"),
        events.ledger({}),
        ChangefeedReport(events.NOW, 4, 10),
        TopicEnds({"log": 4, "requests": 5, "backfill": 0}),
    )


def cluster_of(view: ClusterView, now_us: int = events.NOW, **changes: Any) -> ClusterSeen:
    reports = {"m1": node_report("m1"), "r1": node_report("r1")}
    made = ClusterSeen(report(view, now_us), reports, (NodeClock("m1", -5_000),))
    return replace(made, **changes)


def good_facts(**changes: Any) -> Facts:
    kind: ProcessKind = DOCTOR
    facts = Facts(
        now_us=events.NOW,
        topics=TOPICS,
        settings=SettingsSeen(frozenset({"LEASEHOLD_KAFKA"}), frozenset({"LEASEHOLD_KAFKA"})),
        kind=kind,
        release="1.0",
        log_budget_bytes=10_000,
        kafka=good_kafka(),
        redis=GOOD_REDIS,
        cluster=cluster_of(good_view()),
        folder=FolderSeen("data", 50 * GIB, 100 * GIB),
    )
    return replace(facts, **changes)
