"""The topic of requests deleted and recreated under a running system, on a real broker.

Goal: nobody ends, the master in office and the next one take what stands in the new topic from its
first offset on, and say what has happened.
"""

from __future__ import annotations

from dataclasses import replace

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from infra.local_cluster import LocalCluster
from leasehold import ChangeProducer
from leasehold.adapters.kafka.admin import TopicAdmin
from leasehold.admin.watch import ClusterWatch
from leasehold.model.errors import BusUnavailable
from leasehold.model.topics import Topics
from leasehold.settings.client import ClientSettings
from tests.integration.faults.masters import MASTERS, NODES, SERVICES
from tests.support.cluster.system_cluster import (
    assert_consistent,
    logged,
    settings_of,
    until,
)
from tests.support.cluster.system_load import add_one


def recreate_requests(cluster: LocalCluster) -> None:
    requests = Topics(cluster.cluster_settings.database).requests
    client = AdminClient(cluster.kafka_settings.librdkafka())
    for deleted in client.delete_topics([requests.name]).values():
        deleted.result()
    admin = TopicAdmin(cluster.kafka_settings, "anew")

    def made() -> bool:
        try:
            return bool(admin.create([requests], 1))
        except (BusUnavailable, KafkaException):
            return False  # the old one is still on its way out

    until(made, "the topic recreated")


def added(settings: ClientSettings) -> None:
    """By a producer of its own each time: one that knew the old topic has its own troubles. What is
    told by Redis needs no topic."""
    by_kafka = replace(settings, redis=replace(settings.redis, fast_requests="off"))
    with ChangeProducer(by_kafka) as producer:
        add_one(producer)


def said(cluster: LocalCluster, words: str) -> bool:
    return any(words in logged(cluster, name) for name in MASTERS)


def test_l3_requests_in_a_topic_that_was_made_anew_are_decided(
    cluster: LocalCluster, watch: ClusterWatch
) -> None:
    settings = settings_of(cluster, "writer")
    for _ in range(5):
        added(settings)
    recreate_requests(cluster)
    until(lambda: said(cluster, "is read from its first offset on, 0"), "the new topic's begin")
    for _ in range(2):
        added(settings)
    assert all(cluster.is_running(name) for name in SERVICES)
    assert not said(cluster, "Rebuild this process")
    assert not said(cluster, "Traceback")
    # And by the next master, which learns from the log which topic it is.
    master = watch.view.log.master
    cluster.kill(master)
    added(settings)
    cluster.start(master)
    assert_consistent(cluster, NODES)


def test_l3_made_anew_while_no_master_runs(cluster: LocalCluster) -> None:
    settings = settings_of(cluster, "writer")
    added(settings)
    for name in MASTERS:
        cluster.stop(name)
    recreate_requests(cluster)
    for name in MASTERS:
        cluster.start(name)
    added(settings)
    assert said(cluster, "topic id")
    assert_consistent(cluster, NODES)
