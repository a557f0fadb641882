"""A barrier is asked of the master; one of an earlier release has it appended, at a place that is
known (T6)."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from leasehold.adapters.kafka import writer
from leasehold.adapters.kafka.writer import Delivery
from leasehold.client.pending import Pending
from leasehold.model.errors import BusUnavailable, MalformedRequest, OutcomeUnknown
from leasehold.model.records.requests import ChangeRequest, Outcome
from leasehold.replica.barrier import (
    ASKS_MAX,
    PLACES_UNKNOWN_MAX,
    AppendedBarriers,
    Barriers,
)
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
    assert AppendedBarriers(settings).append() == 7
    assert len(set(Writer.sent)) == 2


def test_t6_without_a_place_there_is_no_barrier(settings: ClientSettings) -> None:
    Writer.offsets = deque([-1] * PLACES_UNKNOWN_MAX)
    with pytest.raises(BusUnavailable, match="does not know where"):
        AppendedBarriers(settings).append()


PASSED = Outcome(1, 5, 0, 9, True)
MALFORMED = Outcome(1, 0, 0, 9, True, MalformedRequest.sqlstate, "'barrier' is not a field")


class Master:
    """Answers each request with the next of `answers`; None: not at all."""

    def __init__(self, *answers: Outcome | None) -> None:
        self.answers = deque(answers)
        self.asked: list[ChangeRequest] = []
        self.term = (1, b"m")
        self.appended = 0
        self.closed = 0

    def submit(self, request: ChangeRequest) -> Any:
        self.asked.append(request)
        return self

    def ask_again(self) -> None:
        self.asked.append(self.asked[-1])

    def result(self, _timeout_s: float) -> Outcome:
        answer = self.answers.popleft()
        if answer is None:
            raise OutcomeUnknown("no answer")
        return answer

    def append(self) -> int:
        self.appended += 1
        return 70 + self.appended

    def close(self) -> None:
        self.closed += 1

    def barriers(self) -> Barriers:
        return Barriers(
            self.submit,
            lambda: self.term,
            lambda: self,
            lambda lsn: lsn <= 5,
            lambda offset: offset < 72,
        )


def test_t6_a_barrier_is_asked_of_the_master_and_again_under_its_id() -> None:
    master = Master(PASSED, None, None, PASSED._replace(lsn=6))
    barriers = master.barriers()
    assert barriers.ask()(), "all below its LSN is here"
    assert not barriers.ask()()
    ids = [request.id for request in master.asked]
    assert len(ids) == 4
    assert len(set(ids)) == 2
    assert master.appended == 0, "nobody but a master writes to the log"


def test_without_a_master_nothing_is_seen_and_nothing_appended() -> None:
    master = Master(*[None] * ASKS_MAX)
    with pytest.raises(BusUnavailable, match="no master has answered"):
        master.barriers().ask()
    with pytest.raises(BusUnavailable, match="refused"):
        Master(MALFORMED._replace(code="42501")).barriers().ask()
    assert master.appended == 0


def test_a_master_of_an_earlier_release_is_asked_once_in_its_term() -> None:
    """It keeps each such request as a dead letter."""
    master = Master(MALFORMED, PASSED)
    barriers = master.barriers()
    assert [barriers.ask()() for _ in range(2)] == [True, False], "as its own replicas do"
    assert (len(master.asked), master.appended) == (1, 2)
    master.term = (2, b"n")
    assert barriers.ask()()
    assert (len(master.asked), master.appended) == (2, 2)
    barriers.close()
    assert master.closed == 1


def test_what_waits_for_a_barrier_is_a_pending_request() -> None:
    """`Master` stands for it."""
    assert {"result", "ask_again"} <= set(dir(Pending))
