"""A producer's two roads, with a Kafka, a Redis and a clock that the test moves: what goes where,
in which order it is asked again, which answers are handed on (L5;
`client/request_transport.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from leasehold.adapters.kafka.request_transport import KafkaRequestTransport
from leasehold.adapters.redis.requests import Request
from leasehold.client import request_transport
from leasehold.client.request_transport import LISTEN_SLICE_S, FastRequestTransport
from leasehold.model.errors import BusUnavailable, RequestTooLarge
from leasehold.model.records.requests import Outcome, Result
from leasehold.replication.fast_path.log import NOBODY, Term
from leasehold.replication.fast_path.requests import FORGOTTEN_NS, FastRequestSettings
from leasehold.settings.environment import RedisSettings

TERM: Term = (3, b"master")
JSON = "application/json"
MS = 1_000_000
SETTINGS = FastRequestSettings()
FIRST = [b"1", b"2", b"3", b"4"]


class Kafka:
    def __init__(self, world: World) -> None:
        self.world = world
        self.sent: list[bytes] = []
        self.gathered: list[bytes] = []
        self.given: list[Result] = []
        self.failed: list[tuple[bytes, str]] = []
        self.trouble: Exception | None = None
        self.term = TERM
        self.closed = False

    def send(self, key: bytes, content_type: str, body: bytes) -> None:
        assert (content_type, body) == (JSON, b"body of " + key)
        if self.trouble is not None:
            raise self.trouble
        self.sent.append(key)

    def gather(self, key: bytes, content_type: str, body: bytes) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.gathered.append(key)

    def send_gathered(self) -> None:
        self.sent += self.gathered
        self.gathered = []

    def results(self, timeout_s: float) -> list[Result]:
        found, self.given = self.given, []
        if not found:
            self.world.ns += int(timeout_s * 1e9)
        return found

    def failures(self) -> list[tuple[bytes, str]]:
        found, self.failed = self.failed, []
        return found

    def close(self, timeout_s: float) -> None:
        self.closed = True


class Redis:
    """Speaker and ear. `open` makes the connection at once."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.up = False
        self.away = False
        self.breaks = False
        self.told: list[list[bytes]] = []
        self.unheard: list[tuple[tuple[int, int], bool]] = []
        self.given: list[Result] = []
        self.closed = 0

    def open(self) -> bool:
        self.up = not self.away
        return self.up

    def publish_requests(
        self, term: Term, run: int, number: int, requests: Sequence[Request]
    ) -> bool:
        if self.away or self.breaks:
            self.up = False
            return False
        assert term == TERM
        self.told.append([body.removeprefix(b"body of ") for _, body in requests])
        self.unheard.append(((run, number), True))
        return True

    def outcomes(self) -> list[tuple[tuple[int, int], bool]]:
        found, self.unheard = self.unheard, []
        return found

    def results(self) -> list[Result]:
        found, self.given = self.given, []
        return found

    def wait(self, timeout_s: float) -> None:
        self.world.ns += int(timeout_s * 1e9)

    def close(self) -> None:
        self.closed += 1


class World:
    def __init__(self) -> None:
        self.ns = 1_000 * MS
        self.kafka = Kafka(self)
        self.redis = Redis(self)
        self.handed_on: list[bytes] = []
        kafka = cast(KafkaRequestTransport, self.kafka)
        self.roads = FastRequestTransport(SETTINGS, kafka, RedisSettings(), "t", bytes(16))

    def lose_redis(self) -> None:
        self.redis.away, self.redis.up = True, False

    def send(self, *keys: bytes) -> None:
        for key in keys:
            self.roads.send(key, JSON, b"body of " + key)

    def gather(self, *keys: bytes) -> None:
        for key in keys:
            self.roads.gather(key, JSON, b"body of " + key)
        self.roads.send_gathered()

    def publish(self, *keys: bytes) -> bool:
        return self.roads.publish([(key, JSON, b"body of " + key) for key in keys])

    def by_kafka(self, *keys: bytes, timeout_s: float = 0.0, **outcome: Any) -> None:
        self.kafka.given += (result(key, **outcome) for key in keys)
        self.take(timeout_s)

    def told(self, *keys: bytes, timeout_s: float = 0.0, **outcome: Any) -> None:
        self.redis.given += (result(key, **outcome) for key in keys)
        self.take(timeout_s)

    def take(self, timeout_s: float = 0.0) -> None:
        self.handed_on += (one.request_id for one in self.roads.results(timeout_s))

    @property
    def bodies(self) -> set[bytes]:
        return set(self.roads._bodies)


def result(key: bytes, attempt: int = 1, lsn: int = 7) -> Result:
    return Result(key, 1, Outcome(attempt, lsn, 1, 0, lsn > 0))


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> World:
    """Asks again and again, by Kafka: the next one goes both ways."""
    made: list[World] = []
    monkeypatch.setattr(request_transport, "boottime_ns", lambda: made[0].ns if made else 0)
    monkeypatch.setattr(request_transport, "RequestPublisher", lambda *_: None)
    monkeypatch.setattr(request_transport, "AnswerSubscriber", lambda *_: None)
    world = World()
    made.append(world)
    roads: Any = world.roads
    roads._publisher = roads._subscriber = world.redis
    for key in FIRST:
        world.send(key)
        world.by_kafka(key)
    world.take()
    assert world.handed_on == world.kafka.sent == FIRST
    assert world.redis.up
    assert not world.redis.told
    world.kafka.sent.clear()
    world.handed_on.clear()
    return world


@pytest.fixture
def world(slow: World) -> World:
    """Tells its requests."""
    slow.send(b"trial")
    assert slow.kafka.sent == [b"trial"]
    assert slow.redis.told == [[b"trial"]]
    slow.told(b"trial")
    slow.by_kafka(b"trial")
    assert slow.handed_on == [b"trial"]
    slow.kafka.sent.clear()
    slow.redis.told.clear()
    slow.handed_on.clear()
    return slow


def test_what_can_be_told_alone_goes_at_once_and_is_asked_on_as_any_other(world: World) -> None:
    assert world.publish(b"a", b"b")
    assert world.redis.told == [[b"a", b"b"]]
    assert world.bodies == {b"a", b"b"}
    world.told(b"a", b"b")
    assert world.handed_on == [b"a", b"b"]
    world.redis.away = True
    assert world.publish(b"c"), "it may have been heard"
    assert not world.kafka.sent
    world.take()
    assert world.kafka.sent == [b"c"]


def test_what_would_wait_for_anything_is_not_told(slow: World) -> None:
    assert not slow.publish(b"a"), "it would be the trial, both ways"
    slow.send(b"trial")
    assert not slow.publish(b"a"), "nobody knows yet whether telling works"
    slow.told(b"trial")
    slow.by_kafka(b"trial")
    with slow.roads._lock:
        assert not slow.publish(b"a"), "another thread is at it"
    slow.lose_redis()
    assert not slow.publish(b"a")
    assert slow.redis.told == [[b"trial"]]
    assert (slow.kafka.sent, slow.bodies) == ([b"trial"], set())


def test_what_is_told_is_not_on_the_topic_and_its_body_is_kept_until_it_is_answered(
    world: World,
) -> None:
    world.send(b"a", b"b")
    world.gather(b"c", b"d")
    assert world.redis.told == [[b"a"], [b"b"], [b"c", b"d"]]
    assert not world.kafka.sent
    assert world.bodies == {b"a", b"b", b"c", b"d"}
    world.told(b"a", b"c")
    assert world.bodies == {b"b", b"d"}
    world.told(b"b", b"d")
    assert world.bodies == set()
    assert world.handed_on == [b"a", b"c", b"b", b"d"]


def test_a_redis_that_goes_while_it_is_told_all_is_asked_in_order_each_once(world: World) -> None:
    world.send(b"a", b"b", b"c")
    world.redis.away = True
    world.send(b"d", b"e")
    assert world.kafka.sent == [b"a", b"b", b"c", b"d", b"e"]


@pytest.mark.parametrize("together", [False, True])
def test_what_was_told_is_asked_before_what_comes_then(world: World, together: bool) -> None:
    world.gather(b"a", b"b")
    world.redis.up = False
    if together:
        world.gather(b"c", b"d")
    else:
        world.send(b"c", b"d")
    assert world.kafka.sent == [b"a", b"b", b"c", b"d"]


def test_nobody_listened_it_is_asked_at_once(world: World) -> None:
    world.send(b"a", b"b")
    world.redis.unheard = [(name, False) for name, _ in world.redis.unheard]
    world.take()
    assert world.kafka.sent == [b"a", b"b"]


def test_no_answer_for_too_long_it_is_asked_and_asked_on_till_there_is_one(world: World) -> None:
    world.send(b"a", b"b")
    world.redis.outcomes()
    world.take(timeout_s=0.6)
    world.take(timeout_s=0.6)
    assert world.kafka.sent == [b"a", b"b"]
    assert world.bodies == {b"a", b"b"}
    world.by_kafka(b"a")
    for _ in range(20):
        world.take(timeout_s=0.1)
    assert world.kafka.sent == [b"a", b"b", b"b"], "a master that died may have decided it (L7)"
    world.told(b"b")
    world.by_kafka(b"b")
    assert world.handed_on == [b"a", b"b"]
    assert world.bodies == set()


@pytest.mark.parametrize("first", ["told", "kafka"])
def test_asked_twice_is_answered_once(world: World, first: str) -> None:
    world.send(b"a")
    world.lose_redis()
    world.take()
    assert world.kafka.sent == [b"a"]
    for give in (world.told, world.by_kafka) if first == "told" else (world.by_kafka, world.told):
        give(b"a")
    assert world.handed_on == [b"a"]


def test_r1_the_next_attempt_is_handed_on(world: World) -> None:
    """It comes through Kafka, and must not lie there while nothing is told."""
    world.send(b"a", b"b")
    world.told(b"a", lsn=0)
    before_ns = world.ns
    world.by_kafka(b"a", attempt=2, timeout_s=0.1)
    assert world.handed_on == [b"a", b"a"]
    assert world.ns - before_ns <= 2 * LISTEN_SLICE_S * 1e9


def test_an_old_answer_again_leaves_the_body_of_what_is_asked_now(world: World) -> None:
    world.send(b"a")
    world.told(b"a", lsn=0)
    world.send(b"a")
    world.by_kafka(b"a", lsn=0)
    world.lose_redis()
    world.take()
    assert world.kafka.sent == [b"a"]


# ---------------------------------------------------------------- what is held back


@pytest.fixture
def busy(slow: World) -> World:
    """Kafka carries a request of a requester that could tell the next ones, which are held back."""
    slow.lose_redis()
    for _ in range(5):
        slow.ns += 40 * MS
        slow.send(b"before")
        slow.by_kafka(b"before")
    slow.kafka.sent.clear()
    slow.handed_on.clear()
    slow.send(b"under way")
    slow.redis.away, slow.redis.up = False, True
    slow.send(b"a", b"b")
    slow.gather(b"c")
    assert slow.kafka.sent == [b"under way"]
    assert slow.redis.told == []
    return slow


def test_what_is_held_back_goes_both_ways_when_kafka_has_answered(busy: World) -> None:
    busy.by_kafka(b"under way")
    assert busy.redis.told == [[b"a", b"b", b"c"]]
    assert busy.kafka.sent == [b"under way", b"a", b"b", b"c"]
    busy.send(b"d")
    busy.told(b"a", b"b", b"c")
    assert busy.redis.told == [[b"a", b"b", b"c"], [b"d"]]
    busy.by_kafka(b"a", b"b", b"c")
    busy.told(b"d")
    assert busy.handed_on == [b"under way", b"a", b"b", b"c", b"d"]
    assert busy.kafka.sent == [b"under way", b"a", b"b", b"c"]
    assert busy.bodies == set()


def test_what_was_held_too_long_goes_through_kafka_in_order(busy: World) -> None:
    busy.take(timeout_s=0.01)
    assert busy.kafka.sent == [b"under way"]
    for _ in range(SETTINGS.hold_ms):
        busy.take(timeout_s=0.01)
    assert busy.kafka.sent == [b"under way", b"a", b"b", b"c"]
    busy.send(b"d")
    assert busy.kafka.sent[4:] == [b"d"]
    assert busy.redis.told == []


@pytest.mark.parametrize("together", [False, True])
def test_what_was_held_goes_before_what_comes_then(busy: World, together: bool) -> None:
    busy.lose_redis()
    if together:
        busy.gather(b"d", b"e")
    else:
        busy.send(b"d", b"e")
    assert busy.kafka.sent == [b"under way", b"a", b"b", b"c", b"d", b"e"]
    assert not busy.roads.failures()


def test_while_it_is_held_it_is_looked_after_often(busy: World) -> None:
    before_ns = busy.ns
    busy.take(timeout_s=5.0)
    assert busy.ns - before_ns <= LISTEN_SLICE_S * 1e9


def test_what_was_held_and_does_not_go_is_a_failure(busy: World) -> None:
    busy.kafka.trouble = BusUnavailable("no room")
    busy.lose_redis()
    busy.take()
    assert busy.roads.failures() == [(b"a", "no room"), (b"b", "no room"), (b"c", "no room")]


def test_l5_what_was_held_and_told_is_never_said_to_be_nowhere(busy: World) -> None:
    busy.kafka.trouble = BusUnavailable("no room")
    busy.by_kafka(b"under way")
    assert busy.redis.told == [[b"a", b"b", b"c"]]
    assert busy.roads.failures() == []
    busy.told(b"a", b"b", b"c")
    assert busy.handed_on == [b"under way", b"a", b"b", b"c"]


def test_a_redis_that_goes_as_it_is_told_what_was_held_is_no_loss(busy: World) -> None:
    busy.redis.breaks = True
    busy.by_kafka(b"under way")
    assert busy.kafka.sent == [b"under way", b"a", b"b", b"c"]


def test_a_redis_that_goes_as_it_is_told_what_waited_for_a_trial_is_no_loss(busy: World) -> None:
    busy.by_kafka(b"under way")
    busy.told(b"a")
    busy.send(b"d")
    busy.redis.breaks = True
    busy.told(b"b", b"c")
    assert busy.kafka.sent == [b"under way", b"a", b"b", b"c", b"d"]


def test_what_is_held_when_it_is_closed_still_goes(busy: World) -> None:
    busy.roads.close(1.0)
    assert busy.kafka.sent == [b"under way", b"a", b"b", b"c"]


# ---------------------------------------------------------------- what fails


def test_l5_what_was_told_too_is_never_said_to_be_surely_nowhere(slow: World) -> None:
    """Whoever hears that nothing was sent may send it again under another id."""
    slow.kafka.trouble = BusUnavailable("the queue is full")
    slow.send(b"trial")
    assert slow.redis.told == [[b"trial"]]
    slow.told(b"trial")
    assert slow.handed_on == [b"trial"]


def test_one_that_goes_nowhere_keeps_no_other_from_being_told(slow: World) -> None:
    slow.lose_redis()
    for trouble in (BusUnavailable("no room"), RequestTooLarge("large")):
        slow.kafka.trouble = trouble
        with pytest.raises(type(trouble)):
            slow.send(b"a")
    slow.kafka.trouble = None
    slow.redis.away = False
    slow.take()
    slow.send(b"trial")
    assert slow.redis.told == [[b"trial"]]


def test_kafka_takes_no_more_when_it_is_asked_again_that_is_a_failure(world: World) -> None:
    world.send(b"a", b"b")
    world.kafka.trouble = BusUnavailable("no room")
    world.lose_redis()
    world.take()
    assert world.roads.failures() == [(b"a", "no room"), (b"b", "no room")]
    assert world.roads.failures() == []


def test_of_those_gathered_each_that_does_not_go_is_a_failure(slow: World) -> None:
    slow.redis.up = False
    slow.kafka.trouble = BusUnavailable("no room")
    slow.gather(b"a", b"b")
    assert slow.roads.failures() == [(b"a", "no room"), (b"b", "no room")]
    slow.kafka.trouble = None
    slow.gather(b"c")
    assert slow.kafka.sent == [b"c"]


def test_what_kafka_did_not_confirm_is_a_failure_and_awaited_by_nobody(world: World) -> None:
    world.redis.up = False
    world.send(b"a")
    world.kafka.failed.append((b"a", "Kafka did not confirm it"))
    assert world.roads._ways.awaits_kafka
    assert world.roads.failures() == [(b"a", "Kafka did not confirm it")]
    assert not world.roads._ways.awaits_kafka


# ---------------------------------------------------------------- its masters


def test_a_master_that_does_not_listen_is_not_told(world: World) -> None:
    world.send(b"a")
    world.kafka.term = NOBODY
    world.by_kafka(b"of another requester")
    assert world.kafka.sent == [b"a"]
    world.send(b"b")
    assert world.redis.told == [[b"a"]]
    assert world.kafka.sent == [b"a", b"b"]


def test_while_kafka_owes_an_answer_nothing_is_told(world: World) -> None:
    world.redis.up = False
    world.send(b"a")
    world.redis.up = True
    world.ns += 200 * MS
    world.send(b"b", b"c", b"d", b"e", b"f", b"g")
    assert world.redis.told == []
    world.ns += FORGOTTEN_NS
    world.take()
    world.ns += FORGOTTEN_NS
    world.take()
    for key in (b"h", b"i", b"j", b"k"):
        world.send(key)
        world.by_kafka(key)
    assert world.redis.told == [[b"k"]], "one that gets no answer keeps nobody away for ever"


def test_closed_all_of_it_is(world: World) -> None:
    world.roads.close(1.0)
    assert world.kafka.closed
    assert world.redis.closed == 2
