"""Goal: an event that may have been sent before is sent under the id that it had, whatever ended
the processes in between; and an id is not older than what a master knows.

Method: a model of processes that take events of a growing partition, are killed before or after the
end of a transaction, and of a master that sees each message as it is sent.
"""

from __future__ import annotations

import random

import pytest

from leasehold.intake import places
from leasehold.intake.places import (
    EXPIRED_MS,
    FRESH_MS,
    RESERVED,
    Course,
    Place,
    event_id,
    read_place,
)
from leasehold.model.errors import MalformedRequest
from leasehold.model.ids import request_time_ms

NOW_MS = 1_790_000_000_000


class Model:
    """A partition, the place that is stored, and the ids that a master has seen by offset."""

    def __init__(self, source: random.Random) -> None:
        self.random = source
        self.now_ms = NOW_MS
        self.end = 0
        self.there: list[int] = []
        self.stored = Place("topic", 0)
        self.seen: dict[int, bytes] = {}

    def grow(self) -> None:
        for _ in range(self.random.randrange(6)):
            self.end += self.random.choice((1, 1, 1, 2, 5))  # markers take offsets
            self.there.append(self.end - 1)

    def send(self, course: Course, offset: int) -> None:
        named = event_id("i", "t", course.stored, 0, offset)
        assert self.seen.setdefault(offset, named) == named, "the same event, the same id"
        assert self.now_ms - request_time_ms(named) <= EXPIRED_MS

    def store(self, course: Course, place: Place) -> None:
        self.stored = place
        course.store(place)

    def live(self) -> None:
        """One process, until it is killed or ends."""
        course = Course(self.stored, self.end, self.now_ms)
        assert not course.was_expired
        for _ in range(self.random.randrange(1, 8)):
            self.grow()
            self.now_ms += self.random.choice((1, 50, FRESH_MS + 1))
            for offset in [each for each in self.there if each >= course.next][:7]:
                if not course.may_send(offset, self.now_ms):
                    if course.next != course.stored.next:
                        self.store(course, course.place(self.now_ms))
                    self.store(course, course.reserve(offset, self.now_ms))
                    assert course.may_send(offset, self.now_ms)
                self.send(course, offset)
                course.take(offset)
            if self.random.random() < 0.3:
                return  # killed before the transaction's end: the master has seen all of it
            self.store(course, course.place(self.now_ms))
            if self.random.random() < 0.2:
                return
        if self.random.random() < 0.5:
            self.store(course, course.sealed())
            if self.stored.ids_through == self.stored.next:
                self.now_ms += EXPIRED_MS + 1  # who has ended in order may be away for long


@pytest.mark.parametrize("reserved", [3, 10, RESERVED])
def test_whoever_was_killed_the_next_one_sends_the_same(
    reserved: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "RESERVED", reserved)
    seed = random.randrange(1 << 32)
    print("seed", seed)
    source = random.Random(seed)
    for _ in range(300):
        model = Model(source)
        for _ in range(12):
            model.live()
        assert all(offset in model.seen for offset in model.there if offset < model.stored.next)


def test_a_place_left_open_long_ago_is_told() -> None:
    left = Place("topic", 5, NOW_MS - EXPIRED_MS - 1, 100)
    course = Course(left, 50, NOW_MS)
    assert course.was_expired
    assert not course.may_send(5, NOW_MS)
    assert course.reserve(5, NOW_MS).ids_ms == NOW_MS
    assert not Course(left, 5, NOW_MS).was_expired, "nothing was there that it could have sent"
    assert not Course(left._replace(ids_through=5), 50, NOW_MS).was_expired, "it had ended"


def test_ids_differ_by_all_that_makes_an_event_another_one() -> None:
    place = Place("topic", 5, NOW_MS, 100)
    ids = {
        event_id("i", "t", place, 0, 5),
        event_id("j", "t", place, 0, 5),
        event_id("i", "u", place, 0, 5),
        event_id("i", "t", place, 1, 5),
        event_id("i", "t", place, 0, 6),
        event_id("i", "t", place._replace(topic_id="other"), 0, 5),
        event_id("i", "t", place._replace(ids_ms=NOW_MS + 1), 0, 5),
    }
    assert len(ids) == 7


def test_a_place_comes_back_from_its_topic() -> None:
    place = Place("topic", 5, NOW_MS, 100)
    assert read_place(place.to_json()) == place
    for data in (
        b"",
        b"{",
        b"[]",
        b"5",
        b"{}",
        b'{"topic_id":"t","next":-1}',
        place.to_json()[:-3],
    ):
        with pytest.raises(MalformedRequest):
            read_place(data)
    with pytest.raises(MalformedRequest):
        read_place(place.to_json().replace(b"100", b"true"))
