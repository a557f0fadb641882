"""Which rules runs have exercised is counted where they decide something, and said by number."""

from __future__ import annotations

from collections import Counter

from leasehold.replication.log import admission
from tests.simulation.__main__ import Tally, Told, story
from tests.simulation.exercised import ELSEWHERE, NUMBERS, PLACES, counting, summary
from tests.simulation.stage import Stage


def test_every_number_has_its_place_or_is_shown_elsewhere() -> None:
    placed = {place.rule for place in PLACES}
    assert placed <= set(NUMBERS)
    assert placed | ELSEWHERE.keys() == set(NUMBERS)
    assert all(hasattr(place.owner, place.name) for place in PLACES)


def test_a_rule_counts_where_it_decides_and_nothing_stays_behind() -> None:
    kept = admission._admit_decisions
    with counting() as counted:
        stage = Stage()
        before = {rule for rule, _ in counted}
        asked = stage.ask(stage.update(1, 11))
        outcome = stage.answer(asked)
        assert ("L5", "an answer is repeated") not in counted
        stage.settle(stage.update(1, 11, id=asked))
        stage.until(lambda: counted["L5", "an answer is repeated"] == 1, "it again")
        stage.settle(stage.update(1, 12, expect=1, on_conflict="fail"))
    assert outcome.lsn
    assert "T1" not in before
    assert counted["T1", "a verify error"] == 1
    assert "C6" not in {rule for rule, _ in counted}, "nobody was master before"
    assert admission._admit_decisions is kept


def test_the_summary_names_what_was_never_exercised() -> None:
    rule, words, *_ = PLACES[0]
    lines = summary(Counter({(rule, words): 7}), Counter({(rule, words): 2}))
    assert lines[0].split() == [rule, *words.split(), "7", "times", "in", "2", "runs"]
    assert lines[-1].startswith("rules never exercised: L2 (what is lost or twice: tests/models, ")
    assert "L3 (nowhere else named)" in lines[-1]
    assert "D10 (advisory locks" in lines[-1]
    assert f"{rule} (nowhere" not in lines[-1]


def test_a_hunt_adds_up_what_its_pieces_found() -> None:
    tally = Tally(first=5)
    tally.add(Told(5, "", "well", 1.0, 10, {"L1: a": 2}, (1, 2, 3)))
    tally.add(Told(6, "L6: wrong", "", 3.0, 20, {"L1: a": 1, "C1: b": 4}, ()))
    assert (tally.seeds, tally.faults, tally.failing) == (2, 30, [6])
    assert tally.exercised == {"L1: a": 3, "C1: b": 4}
    assert tally.met == {"L1: a": 2, "C1: b": 1}
    lines = list(tally.lines())
    assert any("1 of 2 seeds from 5 on hold, 30 faults, 2.00 s a seed" in line for line in lines)
    assert lines[-1] == "coherent after the last fault: p50 3, p99 3, most 3 ms"


def test_a_seed_tells_what_it_has_exercised() -> None:
    told = story(10_001)
    assert not told.wrong, told.wrong
    assert told.faults > 5
    assert len(told.exercised) > 15
    assert len(told.recovery) == 3
