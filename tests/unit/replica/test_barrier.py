"""A barrier stands in the log, at a place that is known (T6)."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from leasehold.adapters.kafka import writer
from leasehold.adapters.kafka.writer import Delivery
from leasehold.model.errors import BusUnavailable
from leasehold.replica.barrier import PLACES_UNKNOWN_MAX, Barriers, append_barrier
from leasehold.settings.client import ClientSettings
from leasehold.settings.environment import KafkaSettings


class Writer:
    """As of TopicWriter: what is sent lands at the next of `offsets`."""

    offsets: deque[int]
    sent: list[Any]

    def __init__(self, *_: Any, **__: Any) -> None:
        self._told: list[Delivery] = []

    def send(
        self,
        topic: str,
        partition: int,
        key: bytes | None,
        value: bytes,
        headers: Any = (),
        token: Any = None,
    ) -> None:
        self.sent.append(token)
        self._told.append(Delivery(token, topic, partition, self.offsets.popleft(), None))

    def flush(self, timeout_s: float) -> int:
        return 0

    def deliveries(self) -> list[Delivery]:
        told, self._told = self._told, []
        return told

    def close(self, timeout_s: float) -> None:
        """Nothing is open."""


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> ClientSettings:
    monkeypatch.setattr(writer, "TopicWriter", Writer)
    Writer.sent = []
    return ClientSettings(kafka=KafkaSettings(bootstrap="nowhere:1"))


def test_t6_a_barrier_that_stands_nobody_knows_where_is_followed_by_another(
    settings: ClientSettings,
) -> None:
    """Offset -1 is no place: every node has all that stands before it."""
    Writer.offsets = deque([-1, 7])
    assert Barriers(settings).append() == 7
    assert len(set(Writer.sent)) == 2


def test_t6_without_a_place_there_is_no_barrier(settings: ClientSettings) -> None:
    Writer.offsets = deque([-1] * PLACES_UNKNOWN_MAX)
    with pytest.raises(BusUnavailable, match="does not know where"):
        Barriers(settings).append()


def test_one_that_asks_for_a_check_stands_in_the_log_once(settings: ClientSettings) -> None:
    """Nobody waits for its offset, and a second one would be a second check."""
    Writer.offsets = deque([-1])
    assert append_barrier(settings, check=3) == Writer.sent[0]
