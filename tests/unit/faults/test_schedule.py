"""Goal: a schedule is the same for a seed, travels through JSON unchanged, and gets smaller.

Method: hundreds of seeds; files that hold no schedule.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from dataclasses import replace

import pytest

from tests.faults.kinds import KINDS, LOSE_RECORDS, OF_SEVERAL_BROKERS
from tests.faults.parts import LIGHT, SETS, WHOLE, Parts
from tests.faults.schedule import SPAN_MS, NotASchedule, draw, read_schedule, smaller

SEEDS = range(400)
EACH_SET = pytest.mark.parametrize("parts", SETS.values(), ids=SETS)


@EACH_SET
def test_a_seed_draws_one_schedule_which_travels_as_json(parts: Parts) -> None:
    for seed in SEEDS:
        schedule = draw(seed, parts)
        assert schedule == draw(seed, parts)
        assert read_schedule(schedule.to_json()) == schedule


@EACH_SET
def test_every_kind_is_drawn_and_befalls_whom_it_may(parts: Parts) -> None:
    drawn: Counter[str] = Counter()
    for seed in SEEDS:
        for event in draw(seed, parts).events:
            drawn[event.kind] += 1
            assert event.who in KINDS[event.kind].whom(parts)
    assert drawn.keys() == {name for name, kind in KINDS.items() if kind.whom(parts)}


def test_each_kind_is_of_a_set() -> None:
    for kind in KINDS.values():
        assert any(kind.whom(parts) for parts in SETS.values()), kind.name


def test_beside_a_lost_disk_no_other_broker_is_away() -> None:
    """A record is on two of three disks: with one lost and its other holder away it would be
    gone."""
    lost = 0
    for seed in SEEDS:
        kinds = [event.kind for event in draw(seed, WHOLE).events]
        if LOSE_RECORDS & set(kinds):
            lost += 1
            assert len([kind for kind in kinds if kind in OF_SEVERAL_BROKERS]) == 1
    assert lost > 20


def test_brokers_are_away_one_at_a_time() -> None:
    for seed in SEEDS:
        events = [e for e in draw(seed, WHOLE).events if e.kind in OF_SEVERAL_BROKERS]
        for before, after in itertools.pairwise(events):
            assert after.at_ms > before.end_ms


def test_a_link_to_all_brokers_is_that_to_each() -> None:
    assert WHOLE.links_of("m1-kafka") == ("m1-kafka-1", "m1-kafka-2", "m1-kafka-3")
    assert LIGHT.links_of("m1-kafka") == ("m1-kafka",)
    for link in ("m1-kafka-2", "r1-sql"):
        assert WHOLE.links_of(link) == (link,)


@EACH_SET
def test_nobody_has_two_faults_at_a_time_and_different_ones_do(parts: Parts) -> None:
    together = 0
    for seed in SEEDS:
        events = draw(seed, parts).events
        for place, one in enumerate(events):
            for other in events[place + 1 :]:
                overlap = one.at_ms <= other.end_ms and other.at_ms <= one.end_ms
                both = set(parts.links_of(one.who)) & set(parts.links_of(other.who))
                assert not (overlap and both), (seed, one, other)
                together += overlap
    assert together > len(SEEDS) // 4, "two faults at once are drawn often"


def test_what_the_machine_lacks_is_not_drawn() -> None:
    for seed in SEEDS:
        for event in draw(seed, LIGHT, without=("cc", "kill")).events:
            assert KINDS[event.kind].needs != "cc"
            assert event.kind != "kill"
    assert all(len(draw(seed, LIGHT, events=1).events) == 1 for seed in SEEDS)


def test_many_faults_have_more_time() -> None:
    for seed in SEEDS[:20]:
        events = draw(seed, LIGHT, events=20).events
        assert len(events) == 20
        assert events[len(events) // 2].at_ms > SPAN_MS


def test_smaller_ones_lose_events_or_time_and_end() -> None:
    schedule = next(s for s in (draw(seed, LIGHT) for seed in SEEDS) if len(s.events) == 4)
    weight_ms = sum(event.for_ms for event in schedule.events)
    made = list(smaller(schedule))
    assert {len(less.events) for less in made} == {2, 3, 4}
    for less in made:
        assert sum(event.for_ms for event in less.events) <= weight_ms
        assert less != schedule
    tiny = replace(schedule, events=(replace(schedule.events[0], for_ms=100),))
    assert list(smaller(tiny)) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": 2}, "reads 1"),
        ({"parts": "huge"}, "no set of parts 'huge'"),
        ({"events": [{"at_ms": 0}]}, "no schedule"),
        ({"events": 7}, "no schedule"),
    ],
)
def test_a_file_without_a_schedule_is_named(change: dict[str, object], words: str) -> None:
    body = {**json.loads(draw(1, LIGHT).to_json()), **change}
    with pytest.raises(NotASchedule, match=words):
        read_schedule(json.dumps(body))


@pytest.mark.parametrize(("kind", "who"), [("flood", "r1"), ("redis_kill", "r1")])
def test_a_fault_that_there_is_not_is_named(kind: str, who: str) -> None:
    body = json.loads(draw(1, LIGHT).to_json())
    body["events"] = [{"at_ms": 0, "kind": kind, "who": who, "for_ms": 1, "detail": {}}]
    with pytest.raises(NotASchedule, match=kind):
        read_schedule(json.dumps(body))
