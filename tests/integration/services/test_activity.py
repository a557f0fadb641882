"""Goal: what the dashboard counts is what was committed, also when it is killed between.

Method: a master and a dashboard on real Kafka; transactions are committed before, while and after
the dashboard is away. Its topic is read as any other program would read it.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from infra.local_cluster import LocalCluster
from leasehold import ChangeProducer
from leasehold.adapters.kafka.reader import TopicReader
from leasehold.adapters.os.clock import boottime_ns
from leasehold.model.topics import ACTIVITY_MINUTES, ACTIVITY_SECONDS, Topics
from tests.support.cluster.secure_suite import IS_SECURE
from tests.support.cluster.system_cluster import SOON_S, Beside, settings_of

ROUND = 200

pytestmark = [
    pytest.mark.long("a group's session has to end before another member counts"),
    pytest.mark.skipif(IS_SECURE, reason="its reader comes as no user that may read the counts"),
]


class Windows:
    """The windows of a database as a program that subscribes has them: the later one holds."""

    def __init__(self, cluster: LocalCluster, topics: Topics) -> None:
        self._reader = TopicReader(cluster.kafka_settings, "tester")
        for partition in (ACTIVITY_SECONDS, ACTIVITY_MINUTES):
            self._reader.start(topics.activity.name, partition, 0)
        self.told: dict[bytes, dict[str, Any]] = {}

    def read_until(self, wanted: Any, why: str) -> None:
        give_up_ns = boottime_ns() + int(2 * SOON_S * 1e9)
        while not wanted(self):
            assert boottime_ns() < give_up_ns, f"{why}: {list(self.told.values())[-5:]}"
            for record in self._reader.read(1_000, 0.2):
                self.told[record.key or b""] = json.loads(record.value or b"{}")

    def commits(self, window_s: int = 1) -> int:
        return sum(one["commits"] for one in self.of(window_s))

    def of(self, window_s: int, what: str = "writes") -> list[dict[str, Any]]:
        return [o for o in self.told.values() if (o["what"], o["window_s"]) == (what, window_s)]

    def close(self) -> None:
        self._reader.close()


def test_every_commit_counts_once_whenever_the_dashboard_was_killed(beside: Beside) -> None:
    with beside.running("activity", ("m1", "r1", "dashboard")) as cluster:
        topics = Topics(cluster.cluster_settings.database)
        windows = Windows(cluster, topics)
        windows.read_until(lambda seen: seen.of(1), "it counts")
        with ChangeProducer(settings_of(cluster, "setup")) as producer:
            sql = "CREATE TABLE t (id integer PRIMARY KEY, n integer)"
            assert producer.submit({"sql": sql}).result(SOON_S).lsn

            def commit(begin: int) -> int:
                fields = {"table": "t", "op": "insert"}
                asked = [
                    producer.submit({**fields, "values": {"id": begin + number, "n": 1}})
                    for number in range(ROUND)
                ]
                return max(each.result(SOON_S).lsn for each in asked)

            commit(0)
            cluster.kill("dashboard")
            commit(ROUND)
            cluster.start("dashboard")
            commit(2 * ROUND)
            refused = producer.submit({"table": "t", "op": "insert", "values": {"id": 1, "n": 1}})
            assert refused.result(SOON_S).code == "23505"
            last = commit(3 * ROUND)
        rows = {"t": 4 * ROUND}
        windows.read_until(lambda seen: seen.commits() >= rows["t"], "all are counted")
        end_s = max(one["from_s"] for one in windows.of(1))
        windows.read_until(
            lambda seen: max(one["from_s"] for one in seen.of(1)) > end_s + 2, "it goes on"
        )
        by_table = [held for one in windows.of(1) for held in one["tables"].values()]
        assert sum(commits for commits, _ in by_table) == rows["t"]
        assert sum(number for _, number in by_table) == rows["t"]
        assert windows.commits() <= last, "a commit of DDL counts, too"
        assert sum(one["refused"].get("23505", 0) for one in windows.of(1)) == 1
        assert windows.of(1)[-1]["coherent"] == ["r1"]
        busy = [one["decided_ms"] for one in windows.of(1) if one["commits"]]
        assert all(0 <= one["p50"] <= one["p95"] <= one["p99"] for one in busy)
        windows.read_until(lambda seen: seen.commits(60) >= rows["t"], "by the minute, too")
        of_tables = [held for one in windows.of(60) for held in one["tables"].values()]
        assert sum(commits for commits, _ in of_tables) == rows["t"]
        windows.close()
