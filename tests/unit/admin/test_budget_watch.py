"""Goal: what grows beside stores is told by its bytes and as a share of its budget; what can't be
seen is absent, and not 0.

Method: a watch with spans and a Redis of the test's, each look by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from leasehold.adapters.kafka.topic_span import TopicSpan
from leasehold.admin.budget_watch import BudgetWatch
from leasehold.model.errors import BusUnavailable, LedgerUnavailable
from leasehold.settings.client import ClientSettings
from leasehold.settings.environment import ClusterSettings
from tests.support.admin.doctor_facts import GOOD_REDIS

MIB = 1 << 20


class Stage:
    """What is seen; None: it is away."""

    def __init__(self) -> None:
        self.spans: dict[str, TopicSpan] | None = {}
        self.redis: Any = None

    def read(self, _: object, names: list[str], *__: object) -> dict[str, TopicSpan]:
        if self.spans is None or not set(names) <= self.spans.keys():
            raise BusUnavailable("no broker")
        return {name: self.spans[name] for name in names}

    def ask(self, *_: object) -> Any:
        if self.redis is None:
            raise LedgerUnavailable("no Redis")
        return self.redis


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture
def watch(stage: Stage) -> Iterator[BudgetWatch]:
    cluster = ClusterSettings(database="demo", log_budget_mb=10)
    with BudgetWatch(replace(ClientSettings(), cluster=cluster), stage.read, stage.ask) as made:
        made._stopping.set()  # looks are made by the test alone
        made._thread.join()
        yield made


def told(watch: BudgetWatch) -> dict[tuple[str, ...], float]:
    watch.look()
    samples = watch.samples()
    return {(each.metric.name, *each.labels): float(each.value) for each in samples}  # type: ignore[arg-type]


def test_sizes_and_shares_are_told(stage: Stage, watch: BudgetWatch) -> None:
    stage.spans = {
        "demo.log": TopicSpan(3, 9, 7_000_000, 9 * MIB),
        "demo.requests": TopicSpan(9, 9, 0, 0),
    }
    stage.redis = GOOD_REDIS
    assert told(watch) == {
        ("leasehold_topic_bytes", "log"): 9 * MIB,
        ("leasehold_topic_first_timestamp_seconds", "log"): 7,
        ("leasehold_topic_budget_ratio", "log"): 0.9,
        ("leasehold_topic_bytes", "requests"): 0,
        ("leasehold_topic_budget_ratio", "requests"): 0,
        ("leasehold_redis_memory_bytes",): 10 * MIB,
        ("leasehold_redis_memory_ratio",): 0.1,
    }


def test_what_is_away_is_absent_and_has_no_last_value(stage: Stage, watch: BudgetWatch) -> None:
    stage.spans = {"demo.log": TopicSpan(3, 9, 7_000_000, 9 * MIB)}
    stage.redis = GOOD_REDIS._replace(memory_max=0)
    assert ("leasehold_redis_memory_ratio",) not in told(watch)
    stage.spans = stage.redis = None
    assert told(watch) == {}
