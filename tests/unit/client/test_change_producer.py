"""ChangeProducer over a road that the test drives: what becomes of requests, what is counted."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from leasehold.adapters.codec.request_decoding import decode_request
from leasehold.adapters.os.clock import new_request_id
from leasehold.client import request_group
from leasehold.client.change_producer import ChangeProducer, Statistics
from leasehold.client.pending import Pending, RequestStatus
from leasehold.model import metrics
from leasehold.model.errors import BusUnavailable, InvalidText, MalformedRequest, OutcomeUnknown
from leasehold.model.measures import Distribution
from leasehold.model.records.requests import ChangeRequest, OnConflict, Outcome, Result
from leasehold.settings.client import ClientSettings

UPDATE = {"table": "flights", "op": "update", "key": [7], "values": {"gate": "B4"}}
SOON_S = 10.0


class Road:
    """What was sent, and results as the test puts them."""

    def __init__(self) -> None:
        self.sent: list[tuple[bytes, str, bytes]] = []
        self.closed = False
        self.trouble: BusUnavailable | None = None
        self.tells = False
        self.told: list[tuple[str, int]] = []  # by which thread, how many together
        self._results: deque[Result] = deque()
        self._failures: deque[tuple[bytes, str]] = deque()
        self._something = threading.Condition()

    def put(self, request_id: bytes, outcome: Outcome) -> None:
        with self._something:
            self._results.append(Result(request_id, 1, outcome))
            self._something.notify_all()

    def fail(self, request_id: bytes, why: str) -> None:
        with self._something:
            self._failures.append((request_id, why))
            self._something.notify_all()

    def send(self, key: bytes, content_type: str, body: bytes) -> None:
        if self.trouble is not None:
            raise self.trouble
        with self._something:
            self.sent.append((key, content_type, body))
            self._something.notify_all()

    gather = send

    def send_gathered(self) -> None:
        """What was gathered is sent already."""

    def publish(self, requests: Sequence[tuple[bytes, str, bytes]]) -> bool:
        if self.tells:
            self.told.append((threading.current_thread().name, len(requests)))
            for request in requests:
                self.send(*request)
        return self.tells

    def wait_sent(self, count: int) -> None:
        with self._something:
            assert self._something.wait_for(lambda: len(self.sent) >= count, SOON_S)

    def results(self, timeout_s: float) -> list[Result]:
        with self._something:
            self._something.wait_for(lambda: self._results or self._failures, timeout_s)
            found = list(self._results)
            self._results.clear()
            return found

    def failures(self) -> list[tuple[bytes, str]]:
        found = list(self._failures)
        self._failures.clear()
        return found

    def close(self, timeout_s: float) -> None:
        self.closed = True


@contextmanager
def producing(**limits: Any) -> Iterator[tuple[ChangeProducer, Road]]:
    road = Road()
    settings = ClientSettings(**{"close_timeout_ms": 1, **limits})
    with ChangeProducer(settings, transport=road) as changes:
        yield changes, road
    assert road.closed
    names = {thread.name for thread in threading.enumerate()}
    assert names.isdisjoint({"leasehold-results", "leasehold-group"})


def committed(lsn: int = 5) -> Outcome:
    return Outcome(1, lsn, 1, 1, True)


def refused(*, final: bool = True, dead: bool = False) -> Outcome:
    return Outcome(1, 0, 0, 1, final, "40001", "the row has changed", {}, dead)


def test_a_request_is_sent_under_a_fresh_id_with_the_partition_to_answer_on() -> None:
    with producing() as (changes, road):
        pending = changes.submit(UPDATE)
        road.put(pending.request_id, committed(9))
        assert pending.result(SOON_S).lsn == 9
    key, content_type, body = road.sent[0]
    request = decode_request(content_type, body)
    assert request.id == key == pending.request_id
    assert request.reply_to == changes.reply_to
    assert request.operations[0].values == {"gate": "B4"}


def test_requests_are_counted_by_outcome_and_timed_once_they_are_answered() -> None:
    with producing() as (changes, road):
        first = changes.submit(UPDATE)
        road.put(first.request_id, committed(9))
        first.result(SOON_S)
        lost = changes.submit(UPDATE)
        told = {(s.metric, s.labels): s.value for s in changes.samples()}
        assert told[metrics.REQUESTS, ("committed",)] == 1
        assert told[metrics.IN_FLIGHT, ()] == 1
        road.fail(lost.request_id, "the broker did not take it")
        assert changes.wait(SOON_S)
        told = {(s.metric, s.labels): s.value for s in changes.samples()}
    assert told[metrics.REQUESTS, ("unknown",)] == 1
    times = told[metrics.REQUEST_S, ()]
    assert isinstance(times, Distribution)
    assert sum(times.counts) == 1, "nobody knows how long an unknown outcome takes"


def test_records_and_ids_of_ones_own_are_taken() -> None:
    with producing() as (changes, road):
        first = changes.submit(ChangeRequest(b"", sql="CREATE TABLE t (id integer)"))
        text = "0191f3c4-7a10-7abc-8def-000000000001"
        second = changes.submit({**UPDATE, "id": text, "on_conflict": "fail"})
    assert decode_request(*road.sent[0][1:]).sql == "CREATE TABLE t (id integer)"
    assert len(first.request_id) == 16
    assert decode_request(*road.sent[1][1:]).id == second.request_id
    assert second.on_conflict is OnConflict.FAIL
    assert second.request_id.hex() == text.replace("-", "")


@pytest.mark.parametrize("wrong", [{**UPDATE, "id": "no uuid"}, {**UPDATE, "values": {"a": set()}}])
def test_what_has_no_wire_form_is_refused_at_once_and_counts_nowhere(wrong: Any) -> None:
    with producing() as (changes, road):
        with pytest.raises((MalformedRequest, InvalidText), match=r"not a UUID|wire form"):
            changes.submit(wrong)
        assert changes.statistics == Statistics()
    assert road.sent == []


def test_statistics_account_for_every_request() -> None:
    with producing() as (changes, road):
        five = changes.submit_many([UPDATE] * 5)
        road.put(five[0].request_id, committed())
        road.put(five[1].request_id, refused())
        road.put(five[2].request_id, refused(dead=True))
        road.fail(five[3].request_id, "Kafka did not confirm it")
        for pending in five[:3]:
            pending.result(SOON_S)
        with pytest.raises(OutcomeUnknown, match="did not confirm"):
            five[3].result(SOON_S)
        assert changes.statistics == Statistics(5, 1, 1, 1, 1, 1)
    assert changes.statistics == Statistics(5, 1, 1, 1, 2, 0)
    assert five[4].status is RequestStatus.UNKNOWN


def test_l7_repeats_and_answers_to_others_are_dropped() -> None:
    with producing() as (changes, road):
        mine = changes.submit(UPDATE)
        road.put(b"x" * 16, committed(1))
        road.put(mine.request_id, committed(2))
        road.put(mine.request_id, committed(3))
        other = changes.submit(UPDATE)
        road.put(other.request_id, committed(4))
        other.result(SOON_S)
        assert mine.result(0).lsn == 2
        assert changes.statistics.committed == 2


def test_l7_a_refusal_of_an_attempt_before_is_not_the_answer_to_the_next() -> None:
    """A new master gives it again. A transaction that took it for the answer ran again, saw what it
    had committed itself meanwhile, and told its client that it was refused."""
    with producing() as (changes, road):
        first = changes.submit(ChangeRequest(b"", on_conflict=OnConflict.REPLAY))
        road.put(first.request_id, refused(final=False))
        assert first.result(SOON_S).code == "40001"
        second = changes.submit(
            ChangeRequest(first.request_id, attempt=2, on_conflict=OnConflict.REPLAY)
        )
        road.put(first.request_id, refused(final=False))
        road.put(first.request_id, committed(8))
        assert second.result(SOON_S).lsn == 8


@pytest.mark.parametrize(
    "outcome", [Outcome(2, 0, 0, 0, final=False), Outcome(1, 0, 0, 0, final=True)]
)
def test_its_own_refusal_and_a_final_one_answer_an_attempt(outcome: Outcome) -> None:
    with producing() as (changes, road):
        second = changes.submit(
            {**UPDATE, "attempt": 2, "on_conflict": "replay", "id": new_request_id()}
        )
        road.put(second.request_id, outcome)
        assert second.result(SOON_S) == outcome


def test_a_refusal_that_is_retried_is_not_the_answer() -> None:
    with producing() as (changes, road):
        retried = changes.submit(UPDATE)
        replayed = changes.submit({**UPDATE, "on_conflict": "replay"})
        for pending in (retried, replayed):
            road.put(pending.request_id, refused(final=False))
        assert replayed.result(SOON_S).code == "40001"
        assert retried.status is RequestStatus.WAITING
        road.put(retried.request_id, committed(8))
        assert retried.result(SOON_S).lsn == 8


def test_t5_no_answer_is_unknown_and_asking_again_tells() -> None:
    with producing() as (changes, road):
        pending = changes.submit(UPDATE)
        with pytest.raises(OutcomeUnknown) as unknown:
            pending.result(0)
        assert unknown.value.sqlstate == "08007"
        assert not unknown.value.definite
        road.put(pending.ask_again().request_id, committed(3))
        assert pending.result(SOON_S).lsn == 3
        assert road.sent[0] == road.sent[1]
        assert changes.statistics == Statistics(1, 1)


def test_t5_asking_again_takes_back_that_it_was_unknown() -> None:
    with producing() as (changes, road):
        pending = changes.submit(UPDATE)
        road.fail(pending.request_id, "no confirmation")
        with pytest.raises(OutcomeUnknown):
            pending.result(SOON_S)
        assert changes.statistics.unknown == 1
        road.put(pending.ask_again().request_id, committed())
        pending.result(SOON_S)
        assert changes.statistics == Statistics(1, 1)


def test_an_outcome_that_never_comes_is_unknown_by_itself_and_makes_room() -> None:
    with producing(in_flight_max=1, outcome_timeout_ms=1) as (changes, _):
        first = changes.submit(UPDATE)
        changes.submit(UPDATE, timeout_s=SOON_S)
        assert first.status is RequestStatus.UNKNOWN


def test_back_pressure_waits_for_room_and_says_so() -> None:
    with producing(in_flight_max=2) as (changes, road):
        first, _ = changes.submit_many([UPDATE] * 2)
        with pytest.raises(BusUnavailable, match="2 requests have no outcome"):
            changes.submit(UPDATE, timeout_s=0)
        assert len(road.sent) == 2
        road.put(first.request_id, committed())
        changes.submit(UPDATE, timeout_s=SOON_S)
        assert len(road.sent) == 3


def test_an_answer_wakes_who_waits_for_room(monkeypatch: pytest.MonkeyPatch) -> None:
    with producing(in_flight_max=1) as (changes, road):
        first = changes.submit(UPDATE)
        waits, wait_for = threading.Event(), changes._room.wait_for

        def told(predicate: Callable[[], bool], timeout: float | None = None) -> bool:
            waits.set()  # with the lock held: an answer is taken when the wait has begun
            return wait_for(predicate, timeout)

        monkeypatch.setattr(changes._room, "wait_for", told)
        second = threading.Thread(target=changes.submit, args=(UPDATE,), daemon=True)
        second.start()
        assert waits.wait(SOON_S)
        road.put(first.request_id, committed())
        second.join(SOON_S)
        assert not second.is_alive(), "there is room, and it was not woken"


def test_a_request_that_was_not_queued_leaves_nothing_in_flight() -> None:
    with producing() as (changes, road):
        road.trouble = BusUnavailable("the queue is full")
        with pytest.raises(BusUnavailable):
            changes.submit(UPDATE)
        assert changes.wait(0)
        assert changes.statistics.submitted == 0


def test_who_is_alone_waits_for_nobody() -> None:
    with producing() as (changes, road):
        for number in range(3):
            pending = changes.submit(UPDATE, together=True)
            assert len(road.sent) == number + 1, "by the caller itself"
            road.put(pending.request_id, committed())
            pending.result(SOON_S)
    assert not any(thread.name == "leasehold-group" for thread in threading.enumerate())


def test_requests_gather_while_others_are_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """And then until those who had their answers have come again."""
    monkeypatch.setattr(request_group, "UNDER_WAY_S", SOON_S)
    monkeypatch.setattr(request_group, "COME_AGAIN_S", SOON_S)
    with producing() as (changes, road):
        first = changes.submit(UPDATE, together=True)
        others = [changes.submit(UPDATE, together=True) for _ in range(3)]
        assert len(road.sent) == 1
        road.put(first.request_id, committed())
        road.wait_sent(4)
        late = changes.submit(UPDATE, together=True)
        for pending in others:
            road.put(pending.request_id, committed())
            pending.result(SOON_S)
        again = [changes.submit(UPDATE, together=True) for _ in range(2)]
        assert len(road.sent) == 4, "one of the three has not come again"
        last = changes.submit(UPDATE, together=True)
        road.wait_sent(8)
        for pending in (late, *again, last):
            road.put(pending.request_id, committed())
            pending.result(SOON_S)
    assert changes.statistics.committed == 8


def answered(road: Road, group: list[Pending]) -> None:
    for pending in group:
        road.put(pending.request_id, committed())
        pending.result(SOON_S)


def group_of(changes: ChangeProducer, road: Road, size: int) -> list[Pending]:
    """Sent together by the thread, while their users wait for who was alone before them."""
    first, *group = [changes.submit(UPDATE, together=True) for _ in range(1 + size)]
    answered(road, [first])
    road.wait_sent(1 + size)
    return group


def test_who_comes_last_sends_for_all_if_that_waits_for_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(request_group, "UNDER_WAY_S", SOON_S)
    monkeypatch.setattr(request_group, "COME_AGAIN_S", SOON_S)
    with producing() as (changes, road):
        group = group_of(changes, road, 3)
        road.tells = True
        for sent in (4, 7, 10):
            answered(road, group)
            group = [changes.submit(UPDATE, together=True) for _ in range(2)]
            assert len(road.sent) == sent, "one of the three has not come again"
            group.append(changes.submit(UPDATE, together=True))
            assert len(road.sent) == sent + 3
        assert road.told == [(threading.current_thread().name, 3)] * 3
        answered(road, group)


def test_who_is_alone_after_others_wakes_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_group, "UNDER_WAY_S", SOON_S)
    with producing() as (changes, road):
        answered(road, group_of(changes, road, 2))
        alone = changes.submit(UPDATE, together=True)  # waits for the other one, in vain
        road.wait_sent(4)
        answered(road, [alone])
        woken: list[int] = []
        monkeypatch.setattr(changes._group._changed, "notify", lambda: woken.append(1))
        for _ in range(3):
            answered(road, [changes.submit(UPDATE, together=True)])
        assert not woken
        monkeypatch.undo()


@pytest.mark.parametrize("tells", [True, False])
def test_for_those_who_wait_in_vain_for_others_the_thread_sends(
    monkeypatch: pytest.MonkeyPatch, *, tells: bool
) -> None:
    monkeypatch.setattr(request_group, "UNDER_WAY_S", SOON_S)
    with producing() as (changes, road):
        group = group_of(changes, road, 3)
        road.tells = tells
        for size in (3, 2, 2, 1):
            answered(road, group)
            sent = len(road.sent)
            group = [changes.submit(UPDATE, together=True) for _ in range(size)]
            road.wait_sent(sent + size)
        answered(road, group)
        assert [size for _, size in road.told] == ([3, 2] if tells else [])


@pytest.mark.parametrize("never", ["UNDER_WAY_S", "COME_AGAIN_S"])
def test_what_has_gathered_waits_for_no_answer_for_ever(
    monkeypatch: pytest.MonkeyPatch, never: str
) -> None:
    monkeypatch.setattr(request_group, "UNDER_WAY_S", 0.0 if never == "UNDER_WAY_S" else SOON_S)
    monkeypatch.setattr(request_group, "COME_AGAIN_S", 0.0)
    with producing() as (changes, road):
        first = changes.submit(UPDATE, together=True)
        others = [changes.submit(UPDATE, together=True) for _ in range(2)]
        if never == "COME_AGAIN_S":
            road.put(first.request_id, committed())
        road.wait_sent(3)
        changes.submit(UPDATE, together=True)
        for pending in (first, *others):
            road.put(pending.request_id, committed())
        road.wait_sent(4)


def test_a_gathered_request_that_can_t_be_sent_is_unknown() -> None:
    with producing() as (changes, road):
        first = changes.submit(UPDATE, together=True)
        second = changes.submit(UPDATE, together=True)
        road.trouble = BusUnavailable("away")
        road.put(first.request_id, committed())
        with pytest.raises(OutcomeUnknown, match="away"):
            second.result(SOON_S)
    assert changes.statistics.unknown == 1


def test_a_closed_producer_takes_nothing() -> None:
    with producing() as (changes, road):
        pending = changes.submit(UPDATE)
    with pytest.raises(BusUnavailable, match="closed"):
        changes.submit(UPDATE)
    with pytest.raises(BusUnavailable, match="closed"):
        pending.ask_again()
    assert len(road.sent) == 1
