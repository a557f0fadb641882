"""What a reader makes of answers about the ends of a partition."""

from __future__ import annotations

from typing import Any

import pytest

from leasehold.adapters.kafka.client import ASK_SLICE_S
from leasehold.adapters.kafka.reader import TopicReader
from leasehold.model.errors import BusUnavailable
from leasehold.settings.environment import KafkaSettings

INVALID = -1001
"""librdkafka's OFFSET_INVALID."""


class Consumer:
    """The consumer of a reader, whose answers a test gives."""

    def __init__(self, *answers: tuple[int, int]) -> None:
        self.answers = list(answers)
        self.learned: list[tuple[str, ...]] = []
        """Of each question who leads, the topics that it named."""

    def get_watermark_offsets(self, *_: Any, **__: Any) -> tuple[int, int]:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def list_topics(self, *topic: str, timeout: float) -> None:
        assert 0 <= timeout <= ASK_SLICE_S
        self.learned.append(topic)

    def poll(self, _: float) -> None:
        pass

    def close(self) -> None:
        pass


def reader_of(*answers: tuple[int, int]) -> TopicReader:
    reader = TopicReader(KafkaSettings(bootstrap="127.0.0.1:1"), "test")
    reader._consumer.close()
    reader._consumer = Consumer(*answers)  # type: ignore[assignment]
    return reader


@pytest.mark.parametrize("half", [(3, INVALID), (INVALID, 9), (INVALID, INVALID)])
def test_l2_an_end_that_is_not_known_is_no_end(half: tuple[int, int]) -> None:
    """Else a log whose leader has just died would seem to have lost all of it."""
    assert reader_of(half, half, (3, 9)).offsets("t", 0) == (3, 9)


def test_an_end_that_stays_unknown_is_told_as_a_broker_that_is_away() -> None:
    with pytest.raises(BusUnavailable, match="asking for the end of t failed"):
        reader_of((3, INVALID)).offsets("t", 0, timeout_s=0.05)


def test_l2_who_leads_is_asked_before_a_question_is_asked_again() -> None:
    """Else a leader that has died before it was connected to is asked alone, for minutes."""
    reader = reader_of((3, INVALID), (3, INVALID), (3, 9))
    reader.offsets("t", 0)
    consumer: Any = reader._consumer
    assert consumer.learned.count(("t",)) == 2
