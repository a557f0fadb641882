"""What a master says at its start of how acknowledged writes could be lost."""

from __future__ import annotations

import logging

import pytest

from leasehold.adapters.kafka.cluster_look import PartitionSeen, TopicSeen
from leasehold.adapters.redis.server_look import RedisSeen
from leasehold.model.errors import BusUnavailable, LedgerUnavailable
from leasehold.model.topics import Topics
from leasehold.node import durability_check
from leasehold.settings.environment import KafkaSettings, RedisSettings

SAFE = TopicSeen(
    partitions=(PartitionSeen(1, 3, 3),),
    settings={"min.insync.replicas": "2", "unclean.leader.election.enable": "false"},
)
ALONE = TopicSeen(partitions=(PartitionSeen(1, 1, 1),), settings={"min.insync.replicas": "1"})
REDIS = RedisSeen("7.4", 10 << 20, 100 << 20, "noeviction", True, False, 0, 0)
SENTINELS = RedisSettings(url="redis+sentinel://a:1,b:1,c:1/leasehold/0")


class Looker:
    """Kafka as a test has it."""

    brokers_seen = 3
    topic = SAFE
    away = False

    def __init__(self, settings: KafkaSettings, timeout_s: float) -> None:
        if self.away:
            raise BusUnavailable("Kafka is away")

    def brokers(self, topic: str) -> int:
        return self.brokers_seen

    def topics(self, names: list[str]) -> dict[str, TopicSeen]:
        return dict.fromkeys(names, self.topic)

    def close(self) -> None:
        pass


def said(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    looker: type[Looker],
    redis: RedisSeen | None,
    *,
    factor: int = 3,
    settings: RedisSettings = SENTINELS,
) -> list[tuple[int, str]]:
    def look(_: RedisSettings) -> RedisSeen:
        if redis is None:
            raise LedgerUnavailable("Redis is away")
        return redis

    monkeypatch.setattr(durability_check, "TopicLooker", looker)
    monkeypatch.setattr(durability_check, "look_at_redis", look)
    caplog.set_level(logging.INFO, "leasehold.durability")
    durability_check.check_durability(Topics("demo", factor), KafkaSettings(), settings)
    return [(record.levelno, record.getMessage()) for record in caplog.records]


def test_nothing_is_said_where_nothing_can_be_lost(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert said(monkeypatch, caplog, Looker, REDIS._replace(replicas=1)) == []


def test_one_broker_of_several_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Made(Looker):
        topic = ALONE

    lines = said(monkeypatch, caplog, Made, REDIS._replace(replicas=1))
    assert [level for level, _ in lines] == [logging.WARNING] * 2
    assert "demo.log is on one broker of 3" in lines[0][1]
    assert "LEASEHOLD_REPLICATION_FACTOR=3" in lines[0][1]


def test_who_has_asked_for_one_broker_is_told_and_not_warned(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Made(Looker):
        topic = ALONE
        brokers_seen = 1

    own = RedisSettings()
    lines = said(monkeypatch, caplog, Made, REDIS, factor=1, settings=own)
    assert [level for level, _ in lines] == [logging.INFO] * 2


def test_a_ledger_without_a_replica_is_a_warning_also_where_kafka_is_away(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Made(Looker):
        away = True

    ((level, words),) = said(monkeypatch, caplog, Made, REDIS)
    assert level == logging.WARNING
    assert "the ledger could be lost: Redis has no replica now" in words
    caplog.clear()
    assert said(monkeypatch, caplog, Made, None) == []
