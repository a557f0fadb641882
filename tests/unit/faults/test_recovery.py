"""Goal: the longest wait is the longest time without an answer, also before the first one and
behind the last."""

from __future__ import annotations

import pytest

from tests.faults.kinds import KINDS
from tests.faults.recovery import MS, Recovery, Waits, lateness, longest_gap_ms
from tests.faults.workload.history import Op, Told


def counts(*ends_ms: int, told: Told = Told.YES) -> list[Op]:
    return [Op("c", n, "count", 0, ms * MS, told, "", {}) for n, ms in enumerate(ends_ms)]


@pytest.mark.parametrize(
    ("ends_ms", "gap_ms"),
    [((10, 30, 90), 60), ((50, 90), 50), ((5, 40), 60), ((), 100), ((10, 120), 90)],
)
def test_the_longest_gap(ends_ms: tuple[int, ...], gap_ms: int) -> None:
    assert longest_gap_ms(counts(*ends_ms), 0, 100 * MS) == gap_ms


def test_a_refusal_is_no_answer() -> None:
    assert longest_gap_ms(counts(50, told=Told.NO), 0, 100 * MS) == 100


def test_the_table_has_middle_and_worst_and_adds_up_over_runs() -> None:
    first, second = Recovery(), Recovery()
    for ms in (1, 9, 3):
        first.add(["kill"], Waits(ms, 2, 30))
    second.add(["kill", "cut"], Waits(7, 7, 7))
    second.take(first.as_json())
    table = "\n".join(second.lines())
    assert "| kill | 3 | 3 / 9 (" in table
    assert "| two or more | 1 | 7 / 7 (–)" in table


def test_only_a_fault_alone_is_late_and_only_beyond_its_promise() -> None:
    slow = Waits(60_000, 10, 10)
    assert "a writer waited 60000 ms" in lateness(["kill"], slow)
    assert lateness(["kill", "cut"], slow) == ""
    assert lateness(["broker_kill"], slow) == "", "nothing is promised while there is no broker"
    assert "coherent after 60000 ms" in lateness(["kill"], Waits(100, 100, 60_000))
    assert lateness(["kill"], Waits(100, 100, 10_000)) == ""


def test_every_kind_promises_when_all_is_coherent() -> None:
    for kind in KINDS.values():
        assert kind.coherent_ms > 0
        assert "coherent after" in lateness([kind.name], Waits(0, 0, kind.coherent_ms + 1))
        assert lateness([kind.name], Waits(0, 0, kind.coherent_ms)) == ""
