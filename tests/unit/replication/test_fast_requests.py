"""Requests by the fast way: when a requester takes it and leaves it, what it asks again, and what a
master takes of what it is told (L5, L7; `replication/fast_path/requests.py`)."""

from __future__ import annotations

from itertools import pairwise

import pytest

from leasehold.model.records.requests import Outcome
from leasehold.replication.fast_path.log import NOBODY, Term
from leasehold.replication.fast_path.requests import (
    FORGOTTEN_NS,
    REQUESTERS_MAX,
    Asking,
    FastRequestSettings,
    ReceivedRequests,
    RequestPath,
)
from leasehold.replication.fast_path.state_machine import NOT_PUBLISHED

MS = 1_000_000
TERM: Term = (3, b"master")
SETTINGS = FastRequestSettings(
    row_min=4,
    apart_ms=50,
    late_ms=3,
    answer_ms=20,
    patience_ms=500,
    under_way_max=8,
    bytes_max=1_000,
    hold_after_ms=60,
    hold_ms=30,
    hold_behind=3,
    pause_ms=100,
    pause_ms_max=400,
)
HELD = (NOT_PUBLISHED, False, True)
BY_KAFKA = (NOT_PUBLISHED, True, False)


class Asker:
    """Its ways under a clock of its own, in ms. `handed_on`: answers, in the order of it."""

    def __init__(self, settings: FastRequestSettings = SETTINGS) -> None:
        self.ms = 1_000
        self.ways = RequestPath(settings)
        self.handed_on: list[bytes] = []
        self.connected = True

    @property
    def now(self) -> int:
        return self.ms * MS

    def ask(self, *ids: bytes, size: int = 100) -> Asking:
        may = self.ways.may_publish(len(ids), size, connected=self.connected)
        asked = self.ways.ask(ids, size, self.now, connected=self.connected)
        assert may == (asked.number != NOT_PUBLISHED and not asked.by_kafka)
        return asked

    def answered(self, *ids: bytes, attempt: int = 1, lsn: int = 7) -> None:
        for one in ids:
            outcome = Outcome(attempt, lsn, 1, 0, lsn > 0)
            if self.ways.answered(one, outcome, self.now, published=False):
                self.handed_on.append(one)
        self.ways.follow(TERM, self.now)

    def told(self, *ids: bytes, attempt: int = 1, lsn: int = 7) -> None:
        for one in ids:
            outcome = Outcome(attempt, lsn, 1, 0, lsn > 0)
            if self.ways.answered(one, outcome, self.now, published=True):
                self.handed_on.append(one)

    def by_kafka(self, *ids: bytes) -> None:
        for one in ids:
            assert self.ask(one)[1:] == BY_KAFKA
            self.answered(one)

    def released(self) -> Asking | None:
        return self.ways.release(self.now, connected=self.connected)

    def heard(self, asking: Asking, *, heard: bool = True) -> None:
        self.ways.confirm(asking.run, asking.number, self.now, received=heard)

    def tick(self, later_ms: int = 0) -> list[bytes]:
        """What is to be asked again then."""
        self.ms += later_ms
        self.ways.tick(self.now)
        again, self.ways.again = self.ways.again, []
        return again


@pytest.fixture
def requester() -> Asker:
    """Tells its requests."""
    made = Asker()
    made.by_kafka(b"a", b"b", b"c", b"d")
    trial = made.ask(b"e")
    made.heard(trial)
    made.told(b"e")
    made.answered(b"e")
    assert made.ways.fast
    return made


def test_a_row_then_one_goes_both_ways_then_they_are_told() -> None:
    requester = Asker()
    requester.by_kafka(b"a", b"b", b"c", b"d")
    assert requester.ask(b"e") == Asking(1, 0, by_kafka=True)
    requester.told(b"e")
    requester.answered(b"e")
    assert requester.handed_on == [b"a", b"b", b"c", b"d", b"e"], "each answer once"
    assert requester.ask(b"f") == Asking(1, 1, by_kafka=False)
    assert requester.ask(b"g", b"h") == Asking(1, 2, by_kafka=False)
    requester.told(b"g", b"f", b"h")
    assert requester.handed_on[5:] == [b"g", b"f", b"h"]
    assert requester.tick() == []


@pytest.mark.parametrize("first", ["told", "kafka"])
def test_of_a_request_that_went_both_ways_one_answer_is_handed_on(first: str) -> None:
    requester = Asker()
    requester.by_kafka(b"a", b"b", b"c", b"d")
    requester.ask(b"e")
    if first == "told":
        requester.told(b"e")
        requester.answered(b"e")
    else:
        requester.answered(b"e")
        requester.told(b"e")
    assert requester.handed_on.count(b"e") == 1
    assert requester.ways.fast


def test_an_answer_that_is_told_late_does_not_open_the_fast_way() -> None:
    requester = Asker()
    requester.by_kafka(b"a", b"b", b"c", b"d")
    requester.ask(b"e")
    requester.answered(b"e")
    requester.ms += 4
    requester.told(b"e")
    assert not requester.ways.fast
    assert not requester.ways.listens
    assert requester.ask(b"f")[1:] == BY_KAFKA, "not tried again at once"


def test_nobody_is_told_who_is_not_known_to_listen() -> None:
    requester = Asker()
    for number in range(20):
        assert requester.ask(bytes([number])).number == NOT_PUBLISHED
        requester.ways.answered(
            bytes([number]), Outcome(1, 7, 1, 0, True), requester.now, published=False
        )
        requester.ways.follow(NOBODY, requester.now)
    assert not requester.ways.wants


def test_who_asks_now_and_then_uses_kafka() -> None:
    requester = Asker()
    for number in range(20):
        requester.by_kafka(bytes([number]))
        requester.ms += 51


def test_by_default_who_asks_a_few_times_a_second_stays_on_it() -> None:
    """Between two of its requests it does not leave the path, nor is the next awaited elsewhere."""
    settings = FastRequestSettings()
    requester = Asker(settings)
    for number in range(settings.row_min):
        requester.by_kafka(bytes([number]))
        requester.ms += 300
    requester.heard(requester.ask(b"trial"))
    requester.told(b"trial")
    requester.answered(b"trial")
    for number in range(20):
        requester.tick(300)
        asked = requester.ask(bytes([100 + number]))
        assert (asked.by_kafka, asked.held) == (False, False), number
        requester.heard(asked)
        requester.told(bytes([100 + number]))
    assert settings.awaited_ms > settings.apart_ms
    requester.tick(settings.apart_ms)
    assert not requester.ways.listens


def test_off_is_off() -> None:
    requester = Asker(FastRequestSettings(on=False))
    requester.by_kafka(*(bytes([number]) for number in range(20)))


# ---------------------------------------------------------------- what is held back


@pytest.fixture
def busy() -> Asker:
    """Asks more often than Kafka answers, and could tell its requests."""
    made = Asker()
    made.by_kafka(b"a", b"b")
    made.ms += 50
    made.by_kafka(b"c")
    made.ms += 10
    made.ask(b"under way")
    return made


def test_a_trial_waits_until_kafka_carries_nothing_and_what_comes_then_goes_with_it(
    busy: Asker,
) -> None:
    assert busy.ask(b"d", size=900)[1:] == HELD, "it would overtake, or go on for ever"
    assert busy.ask(b"e")[1:] == HELD
    assert busy.ways.listens
    assert not busy.ways.may_publish(1, 1, connected=True)
    assert busy.released() is None
    busy.answered(b"under way")
    assert busy.released() == Asking(1, 0, by_kafka=True)
    assert busy.released() is None, "nothing is held any more"
    busy.told(b"d")
    busy.told(b"e")
    assert busy.ask(b"f", size=1_000) == Asking(1, 1, by_kafka=False)


def test_what_is_held_goes_before_what_comes_when_nothing_is_in_its_way(busy: Asker) -> None:
    assert busy.ask(b"d")[1:] == HELD
    busy.answered(b"under way")
    assert busy.ask(b"e") == Asking(1, 0, by_kafka=True)
    assert busy.released() is None
    busy.told(b"d", b"e")
    assert busy.handed_on[-2:] == [b"d", b"e"]
    assert not busy.ways.awaits_kafka, "d was part of it, too"


def test_what_follows_a_trial_is_held_until_its_end(busy: Asker) -> None:
    busy.answered(b"under way")
    busy.ask(b"trial")
    assert busy.ask(b"d")[1:] == HELD
    busy.answered(b"trial")
    assert busy.ask(b"e")[1:] == HELD, "the told answer may come in time"
    busy.told(b"trial")
    assert busy.released() == Asking(1, 1, by_kafka=False)


def test_what_follows_a_trial_that_fails_goes_through_kafka(busy: Asker) -> None:
    busy.answered(b"under way")
    trial = busy.ask(b"trial")
    assert busy.ask(b"d")[1:] == HELD
    busy.heard(trial, heard=False)
    assert busy.released() == Asking(1, NOT_PUBLISHED, by_kafka=True)
    assert busy.ways.awaits_kafka


def test_nothing_is_held_for_long(busy: Asker) -> None:
    assert busy.ask(b"d")[1:] == HELD
    busy.tick(20)
    assert busy.ask(b"e")[1:] == HELD
    busy.tick(9)
    assert busy.released() is None
    busy.tick(1)
    assert busy.released() == Asking(0, NOT_PUBLISHED, by_kafka=True)
    for _ in range(9):
        busy.tick(10)
        assert busy.ask(b"f")[1:] == BY_KAFKA, "nor again at once"
    busy.answered(b"under way", b"d", b"e", b"f")
    busy.tick(10)
    assert busy.ask(b"g").number == 0


@pytest.mark.parametrize("what", ["too many", "too large", "no connection"])
def test_what_can_no_longer_be_told_together_goes_through_kafka(busy: Asker, what: str) -> None:
    assert busy.ask(b"d", b"e", size=600)[1:] == HELD
    busy.connected = what != "no connection"
    more = [b"%d" % number for number in range(7 if what == "too many" else 1)]
    assert busy.ask(*more, size=401 if what == "too large" else 1)[1:] == BY_KAFKA
    assert busy.released() is None
    busy.connected = True
    busy.answered(b"under way", b"d", b"e", *more)
    for _ in range(2 * SETTINGS.row_min):
        busy.ms += 10
        assert busy.ask(b"f")[1:] == BY_KAFKA, "not held again at once, nor tried"
    busy.answered(b"f")
    assert not busy.ways.awaits_kafka, "those that were held were part of it"


def test_a_connection_that_is_lost_lets_go(busy: Asker) -> None:
    busy.ask(b"d")
    busy.connected = False
    assert busy.released() == Asking(0, NOT_PUBLISHED, by_kafka=True)


def test_another_master_lets_go(busy: Asker) -> None:
    busy.ask(b"d")
    busy.ways.follow((4, b"other"), busy.now)
    assert busy.released() == Asking(0, NOT_PUBLISHED, by_kafka=True)


def test_nothing_of_a_burst_is_held() -> None:
    """Its requester would wait for Kafka twice."""
    requester = Asker()
    requester.by_kafka(b"a")
    for number in range(60):
        requester.ms += 1
        assert requester.ask(b"%d" % number)[1:] == BY_KAFKA
        requester.answered(b"%d" % (number - 2))
    requester.ms += 1
    assert requester.ask(b"x")[1:] == HELD, "it is none any more"


def test_nothing_is_held_behind_many() -> None:
    requester = Asker()
    for number in range(12):
        requester.ms += 8
        requester.ask(b"%d" % number)
        if number == 2:
            requester.answered(b"0")  # a master that listens is known now, and five are asked
    assert requester.ask(b"x")[1:] == BY_KAFKA
    requester.answered(*(b"%d" % number for number in range(1, 10)))
    assert requester.ask(b"y")[1:] == HELD, "three are few"
    assert requester.released() is None


def test_what_follows_a_trial_of_several_waits_for_all_of_them(busy: Asker) -> None:
    busy.ask(b"d")
    busy.ask(b"e")
    busy.answered(b"under way")
    assert busy.released() == Asking(1, 0, by_kafka=True)
    busy.told(b"d")
    assert busy.ways.fast
    assert busy.ask(b"f")[1:] == HELD, "e may not be decided yet"
    busy.told(b"e")
    assert busy.released() == Asking(1, 1, by_kafka=False)


# ---------------------------------------------------------------- when it is left


@pytest.mark.parametrize("large", [False, True])
def test_what_does_not_fit_goes_through_kafka_behind_what_was_told(
    requester: Asker, *, large: bool
) -> None:
    assert not requester.ask(b"f", b"g").by_kafka
    asked = (
        requester.ask(b"h", size=1_001) if large else requester.ask(*(b"h%d" % n for n in range(7)))
    )
    assert asked == Asking(1, NOT_PUBLISHED, by_kafka=True)
    assert requester.tick() == [b"f", b"g"]
    assert not requester.ways.fast


def test_nobody_listened(requester: Asker) -> None:
    asked = requester.ask(b"f")
    requester.ask(b"g")
    requester.heard(asked, heard=False)
    assert requester.tick() == [b"f", b"g"]
    assert not requester.ways.fast
    assert requester.ask(b"h").by_kafka


def test_redis_says_nothing(requester: Asker) -> None:
    requester.ask(b"f")
    assert requester.tick(19) == []
    assert requester.tick(1) == [b"f"]


def test_redis_has_answered_and_the_master_does_not(requester: Asker) -> None:
    requester.heard(requester.ask(b"f"))
    assert requester.tick(499) == []
    assert requester.tick(1) == [b"f"]


def test_the_connection_is_lost(requester: Asker) -> None:
    requester.ask(b"f")
    requester.ways.lost(requester.now)
    assert requester.tick() == [b"f"]
    requester.connected = False
    for number in range(20):
        requester.answered(bytes([number]))
        assert requester.ask(bytes([number])).by_kafka


def test_a_word_of_a_run_that_is_over_changes_nothing(requester: Asker) -> None:
    old = requester.ask(b"f")
    requester.told(b"f")
    requester.ways.lost(requester.now)
    requester.ms += 100
    requester.by_kafka(b"1", b"2", b"3")
    trial = requester.ask(b"5")
    assert trial == Asking(2, 0, by_kafka=True)
    requester.told(b"5")
    requester.heard(old, heard=False)
    assert requester.ways.fast


def test_another_term_ends_it(requester: Asker) -> None:
    requester.ask(b"f")
    requester.ways.follow((4, b"other"), requester.now)
    assert requester.tick() == [b"f"]
    assert requester.ways.term == (4, b"other")
    assert not requester.ways.fast


def test_who_stops_asking_leaves_it(requester: Asker) -> None:
    requester.heard(requester.ask(b"f"))
    requester.tick(60)
    assert requester.ways.fast, "an answer may still be told"
    requester.told(b"f")
    requester.tick()
    assert not requester.ways.listens


def test_what_was_told_is_asked_for_until_it_is_answered(requester: Asker) -> None:
    requester.ask(b"f")
    requester.ways.lost(requester.now)
    assert requester.tick() == [b"f"]
    asked_ms = [requester.ms - 1_000 for _ in range(60_000) if requester.tick(1)]
    assert asked_ms[:4] == [1_000, 3_000, 7_000, 15_000]
    assert max(b - a for a, b in pairwise(asked_ms)) == 10_000
    requester.answered(b"f")
    assert not requester.ways.asks
    assert requester.tick(100_000) == []


def test_an_old_attempts_repeat_is_no_answer_to_the_next(requester: Asker) -> None:
    requester.ask(b"f")
    requester.ways.lost(requester.now)
    assert requester.tick() == [b"f"]
    requester.told(b"f", lsn=0)
    requester.ask(b"f")
    requester.answered(b"f", lsn=0)
    assert requester.handed_on.count(b"f") == 1
    assert requester.ways.awaits_kafka, "attempt 2 is still under way"
    requester.answered(b"f", attempt=2, lsn=9)
    assert requester.handed_on.count(b"f") == 2
    assert not requester.ways.awaits_kafka


def test_faults_in_a_row_pause_longer_and_longer() -> None:
    requester = Asker()
    pauses = []
    for _ in range(4):
        begun_ms = requester.ms
        number = NOT_PUBLISHED
        while number == NOT_PUBLISHED:
            requester.ms += 10
            number = requester.ask(b"x").number
            requester.answered(b"x")
        pauses.append(requester.ms - begun_ms)
        requester.ways.lost(requester.now)
    assert [pause // 100 for pause in pauses] == [0, 1, 2, 4]


def test_a_request_without_an_answer_does_not_keep_it_away_for_ever() -> None:
    requester = Asker()
    requester.by_kafka(b"a", b"b", b"c", b"d")
    requester.ways.ask((b"lost",), 2_000, requester.now, connected=True)
    requester.tick(FORGOTTEN_NS // MS)
    requester.by_kafka(b"e", b"f", b"g")
    assert requester.ask(b"h").number == 0


def test_what_kafka_did_not_take_is_not_waited_for(requester: Asker) -> None:
    requester.ask(b"f", size=2_000)
    assert requester.ways.awaits_kafka
    requester.ways.failed(b"f")
    assert not requester.ways.awaits_kafka


# ---------------------------------------------------------------- the master's side


def test_a_master_takes_one_after_the_other() -> None:
    heard = ReceivedRequests()
    assert heard.accepts(b"a", 1, 0)
    assert heard.accepts(b"a", 1, 1)
    assert not heard.accepts(b"a", 1, 1), "twice"
    assert not heard.accepts(b"a", 1, 3), "behind a gap"
    assert not heard.accepts(b"a", 1, 4)
    assert heard.accepts(b"a", 1, 2)
    assert heard.accepts(b"b", 5, 0)


def test_a_run_is_taken_from_its_beginning_and_ends_those_before() -> None:
    heard = ReceivedRequests()
    assert not heard.accepts(b"a", 2, 1), "this master has not heard the first"
    assert heard.accepts(b"a", 2, 0)
    assert not heard.accepts(b"a", 3, 1)
    assert heard.accepts(b"a", 3, 0)
    assert not heard.accepts(b"a", 2, 1)


def test_askers_are_bounded_and_who_is_forgotten_begins_anew() -> None:
    heard = ReceivedRequests()
    for number in range(REQUESTERS_MAX + 1):
        assert heard.accepts(number.to_bytes(4, "big"), 1, 0)
    assert not heard.accepts((0).to_bytes(4, "big"), 1, 1)
    assert heard.accepts((1).to_bytes(4, "big"), 1, 1)
