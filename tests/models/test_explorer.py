"""The explorer itself: shortest trace, exhaustion, bound, determinism."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tests.models.explorer import explore


def counter(state: tuple[int, int]) -> Iterator[tuple[str, tuple[int, int]]]:
    left, right = state
    if left < 9:
        yield "left", (left + 1, right)
    if right < 9:
        yield "right", (left, right + 1)


START = [("start", (0, 0))]


def test_all_states_are_visited_once() -> None:
    report = explore(START, counter, lambda state: None, states_max=1_000)
    assert (report.states, report.transitions, report.exhausted) == (100, 180, True)
    assert report.ends == ((9, 9),)
    assert report.depth == 18


def test_the_trace_is_a_shortest_one() -> None:
    def harm(state: tuple[int, int]) -> str | None:
        return "three and two" if state == (3, 2) else None

    for seed in (None, 1, 2):
        report = explore(START, counter, harm, states_max=1_000, seed=seed)
        assert report.violation is not None
        labels = [label for label, _ in report.violation.steps]
        assert labels[0] == "start"
        assert sorted(labels[1:]) == ["left"] * 3 + ["right"] * 2
        assert report.violation.steps[-1][1] == (3, 2)
        assert "HARM: three and two" in report.violation.words(str)
        assert not report.exhausted


def test_the_bound_stops_it_and_says_so() -> None:
    report = explore(START, counter, lambda state: None, states_max=10)
    assert not report.exhausted
    assert 10 <= report.states < 20


def test_two_runs_are_equal() -> None:
    first = explore(START, counter, lambda state: None, states_max=1_000, seed=7)
    second = explore(START, counter, lambda state: None, states_max=1_000, seed=7)
    assert first == second


def test_nothing_is_collected_meanwhile_and_all_is_as_before_behind_it() -> None:
    def broken(state: tuple[int, int]) -> Iterator[tuple[str, tuple[int, int]]]:
        assert not gc.isenabled()
        raise LookupError

    assert gc.isenabled()
    with pytest.raises(LookupError):
        explore(START, broken, lambda state: None, states_max=10)
    assert gc.isenabled()
    gc.disable()
    try:
        explore(START, counter, lambda state: None, states_max=10)
        assert not gc.isenabled()
    finally:
        gc.enable()
