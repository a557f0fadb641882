"""The explorer itself: shortest trace, exhaustion, bound, determinism."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from tests.models.explorer import explore, find_stuck


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


def test_states_that_are_alike_are_visited_once() -> None:
    """Of two numbers whose places don't matter."""

    def harm(state: tuple[int, int]) -> str | None:
        return "three and two" if sorted(state) == [2, 3] else None

    def canonical(state: tuple[int, int]) -> tuple[int, int]:
        return min(state), max(state)

    report = explore(START, counter, lambda state: None, states_max=1_000, canonical=canonical)
    assert (report.states, report.depth, report.exhausted) == (55, 18, True)
    found = explore(START, counter, harm, states_max=1_000, canonical=canonical)
    assert found.violation is not None
    assert len(found.violation.steps) == 6
    assert found.violation.steps[-1][1] == (2, 3)


def ways(edges: dict[int, list[int]]) -> Any:
    return lambda state: [("", after) for after in edges[state]]


def test_a_state_without_a_way_to_the_goal_is_found() -> None:
    edges = {0: [1, 2], 1: [3], 2: [4], 3: [], 4: [2]}
    found = find_stuck([0], ways(edges), lambda state: state == 3, states_max=10)
    assert found.stuck in (2, 4)
    edges[4] = [2, 3]
    found = find_stuck([0], ways(edges), lambda state: state == 3, states_max=10)
    assert (found.stuck, found.least, found.most) == (None, 2, None)
    edges[4] = [3]
    found = find_stuck([0], ways(edges), lambda state: state == 3, states_max=10)
    assert (found.stuck, found.least, found.most) == (None, 2, 3)
    assert found.states == 5


def test_an_end_that_is_not_the_goal_is_stuck_and_a_goal_goes_nowhere() -> None:
    edges = {0: [1, 2], 1: [], 2: [0]}
    assert find_stuck([0], ways(edges), lambda state: state == 2, states_max=10).stuck == 1
    found = find_stuck([2], ways(edges), lambda state: state == 2, states_max=10)
    assert (found.states, found.stuck, found.least, found.most) == (1, None, 0, 0)


def test_the_bound_stops_the_look_for_stuck_states() -> None:
    found = find_stuck([(0, 0)], counter, lambda state: state == (9, 9), states_max=10)
    assert not found.exhausted
    found = find_stuck([(0, 0)], counter, lambda state: state == (9, 9), states_max=1_000)
    assert (found.states, found.stuck, found.least, found.most) == (100, None, 18, 18)
