"""Goal: a schedule that fails is kept and made as small as it still fails; each kind has its turn;
what has found a defect is run again as it was.

Method: rounds that are none: a table says which faults are harmful.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.faults.campaign import SHOWN_MAX, Campaign, Wishes
from tests.faults.cluster import COMPILER
from tests.faults.parts import LIGHT
from tests.faults.recovery import Waits
from tests.faults.round import Report
from tests.faults.schedule import Event, Schedule, draw, found_schedules, kinds_of, read_schedule
from tests.faults.tally import Tally

HARMFUL = "redis_flush"


class Judged:
    """Rounds that go wrong when one kind of fault is among theirs."""

    def __init__(self) -> None:
        self.effects: Counter[str] = Counter()

    def run(self, schedule: Schedule) -> Report:
        wrong = ["lost"] if any(event.kind == HARMFUL for event in schedule.events) else []
        return Report(schedule, wrong, Waits(1, 1, 1))


class Ruined(Judged):
    """Each round has more to say than anybody reads."""

    def run(self, schedule: Schedule) -> Report:
        return Report(schedule, [f"row {number} is lost" for number in range(300)], None)


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(Campaign, "_cluster", lambda _: Judged())
    return []


def run(wishes: Wishes, folder: Path, said: list[str]) -> Campaign:
    made = Campaign(wishes, folder, said.append)
    assert made.run() is not bool(made.failed)
    return made


def test_much_that_is_wrong_is_shown_in_part_and_kept_whole(
    tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Campaign, "_cluster", lambda _: Ruined())
    run(Wishes(parts=LIGHT, faults=1, seed=5, events=1), tmp_path, said)
    (told,) = [words for words in said if words.startswith("seed 5: ")]
    assert told.count("is lost") == SHOWN_MAX
    assert told.endswith(f"and {300 - SHOWN_MAX} more")
    kept = (tmp_path / "failed-5-1" / "wrong.txt").read_text()
    assert kept.count("is lost") == 300


def test_what_fails_is_kept_and_made_as_small_as_it_still_fails(
    tmp_path: Path, said: list[str]
) -> None:
    drawn = draw(3, LIGHT, events=5, only=("kill", "pause", "cut")).events
    schedule = Schedule(3, "light", ("default",), (*drawn, Event(900, HARMFUL, "redis", 150)))
    made = run(Wishes(parts=LIGHT, faults=0, schedules=(schedule,), shrink=True), tmp_path, said)
    assert made.failed
    (smallest,) = [words for words in said if words.startswith("smallest that failed")]
    found = read_schedule(smallest.partition("\n")[2])
    assert [event.kind for event in found.events] == [HARMFUL]
    assert read_schedule((tmp_path / "smallest-3.json").read_text()) == found
    kept = tmp_path / "failed-3-1"
    assert read_schedule((kept / "schedule.json").read_text()) == schedule
    assert (kept / "wrong.txt").read_text() == "lost\n"


def test_each_kind_has_its_turn_alone(tmp_path: Path, said: list[str]) -> None:
    there = kinds_of(LIGHT, without=(HARMFUL,))
    wishes: dict[str, Any] = {"parts": LIGHT, "seed": 7, "without": (HARMFUL,), "in_turn": True}
    made = run(Wishes(faults=2 * len(there), **wishes), tmp_path, said)
    needs_none = set(kinds_of(LIGHT, without=(HARMFUL, COMPILER)))
    assert needs_none <= made.tally.kinds.keys() <= set(there)
    assert set(made.tally.recovery.as_json()) == set(made.tally.kinds), (
        "each alone, for the table of waits"
    )


def test_schedules_come_first_and_others_are_drawn_up_to_the_number(
    tmp_path: Path, said: list[str]
) -> None:
    first = draw(1, LIGHT, events=2, without=(HARMFUL,))
    wishes = Wishes(parts=LIGHT, faults=5, seed=9, schedules=(first,), without=(HARMFUL,), events=3)
    made = run(wishes, tmp_path, said)
    assert (made.tally.rounds, made.tally.faults) == (2, 5)
    assert said[1].startswith("seed 1: ")
    assert said[2].startswith("seed 9: ")


def test_figures_add_up_over_runs(tmp_path: Path, said: list[str]) -> None:
    tally = tmp_path / "tally.json"
    wishes = Wishes(parts=LIGHT, faults=6, seed=9, events=3, tally=tally)
    first, second = (run(wishes, tmp_path, said) for _ in range(2))
    whole = Tally()
    whole.take(tally.read_text())
    assert whole.faults == first.tally.faults + second.tally.faults
    assert whole.kinds == first.tally.kinds + second.tally.kinds
    assert whole.failed == first.tally.failed + second.tally.failed
    assert whole.lines() == said[-len(whole.lines()) :]
    with pytest.raises(ValueError, match="format 7"):
        whole.take('{"format": 7}')


def test_what_has_found_a_defect_can_still_befall() -> None:
    found = found_schedules()
    assert {"clock_set_back", "later_topic"} <= found.keys()
    assert all(schedule.events for schedule in found.values())
