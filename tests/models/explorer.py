"""Breadth-first explicit-state explorer: every reachable state, or the shortest way to a harm.

States are hashable values (tuples of small integers are fastest). The visited set keeps only
64-bit hashes (hash compaction, as in SPIN's and TLC's fingerprint sets); states live as long as
they wait in the frontier. A counter-example is rebuilt by running the model again along the path,
so a clash of hashes could only ever hide a state, never invent a harm; with n states the chance of
any clash is below n² / 2^64, which the report names.

Where parts of a model are alike, states that differ by their names alone are one: `canonical` gives
the one that stands for all of them (symmetry reduction, as in Murphi's scalar sets). That is right
where renaming is a symmetry of the model: what can happen in the renamed state is what can happen
in the state, renamed, and the invariant holds in both or in neither. Then each state that can be
reached is visited by way of its own name or another, and the shortest way to a harm is as long.

`find_stuck` looks for states from which a goal can't be reached any more, or might never be.
"""

from __future__ import annotations

import gc
import random
from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

S = TypeVar("S", bound=Hashable)
Successors = Callable[[S], Iterable[tuple[str, S]]]
Invariant = Callable[[S], str | None]
Canonical = Callable[[S], S]
Goal = Callable[[S], bool]


@dataclass(frozen=True, slots=True)
class Trace(Generic[S]):
    """`steps`: (what happened, state after it), the initial state first, the broken one last."""

    harm: str
    steps: tuple[tuple[str, S], ...]

    def words(self, show: Callable[[S], str] | None = None) -> str:
        lines: list[str] = []
        shown = ""
        for number, (label, state) in enumerate(self.steps):
            lines.append(f"{number:3}. {label}")
            now = "" if show is None else show(state)
            if now != shown:
                lines.append(f"       → {now}")
                shown = now
        lines.append(f"HARM: {self.harm}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Report(Generic[S]):
    """`exhausted`: every reachable state was visited. `depth`: steps of the longest shortest path.

    `ends`: visited states without a successor; a model that must always come to an end compares
    them with what it expects.
    """

    states: int
    transitions: int
    depth: int
    exhausted: bool
    violation: Trace[S] | None
    ends: tuple[S, ...] = ()

    @property
    def clash_chance(self) -> float:
        return self.states**2 / 2.0**64


def _reduced(successors: Successors[S], canonical: Canonical[S]) -> Successors[S]:
    def reduced(state: S) -> Iterator[tuple[str, S]]:
        for label, after in successors(state):
            yield label, canonical(after)

    return reduced


@contextmanager
def no_collections() -> Iterator[None]:
    """States wait in the frontier by hundreds of thousands and refer to no state in a circle:
    looking through them again and again takes a third of a model's time and finds nothing."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@no_collections()
def explore(
    starts: Sequence[tuple[str, S]],
    successors: Successors[S],
    invariant: Invariant[S],
    *,
    states_max: int,
    seed: int | None = None,
    canonical: Canonical[S] | None = None,
) -> Report[S]:
    """Visit states breadth first until all are seen, `invariant` names a harm, or the bound.

    `starts`: (label, state) of the states to begin with. `seed` shuffles the order of
    successors, so that a bounded run may see another part of the space; None keeps the model's.
    `canonical`: which state stands for those that are alike; names in a trace are then those of
    the states that stand for others, and may change from one step to the next.
    """
    if canonical is not None:
        successors = _reduced(successors, canonical)
        starts = [(label, canonical(state)) for label, state in starts]
    shuffle = random.Random(seed).shuffle if seed is not None else None
    seen: dict[int, int] = {}
    parents = array("q")
    frontier: list[S] = []
    ends: list[S] = []
    transitions = depth = 0

    def rebuild(last: int, harm: str) -> Trace[S]:
        path = []
        while last >= 0:
            path.append(last)
            last = parents[last]
        path.reverse()
        numbers = {index: mark for mark, index in seen.items()}
        steps = [next(s for s in starts if hash(s[1]) == numbers[path[0]])]
        for index in path[1:]:
            wanted = numbers[index]
            steps.append(next(s for s in successors(steps[-1][1]) if hash(s[1]) == wanted))
        return Trace(harm, tuple(steps))

    def visit(state: S, mark: int, parent: int) -> str | None:
        seen[mark] = len(parents)
        parents.append(parent)
        frontier.append(state)
        return invariant(state)

    def report(violation: Trace[S] | None, exhausted: bool) -> Report[S]:
        return Report(len(parents), transitions, depth, exhausted, violation, tuple(ends))

    for _, state in starts:
        mark = hash(state)
        if mark not in seen and (harm := visit(state, mark, -1)) is not None:
            return report(rebuild(len(parents) - 1, harm), False)
    while frontier:
        level, frontier = frontier, []
        first = len(parents) - len(level)
        for number, state in enumerate(level):
            following = successors(state)
            if shuffle is not None:
                following = list(following)
                shuffle(following)
            count = 0
            for _, after in following:
                count += 1
                mark = hash(after)
                if mark in seen:
                    continue
                harm = visit(after, mark, first + number)
                if harm is not None:
                    transitions += count
                    depth += 1
                    return report(rebuild(len(parents) - 1, harm), False)
            transitions += count
            if count == 0:
                ends.append(state)
            if len(parents) >= states_max:
                return report(None, False)
        if frontier:
            depth += 1
    return report(None, True)


@dataclass(frozen=True, slots=True)
class Liveness(Generic[S]):
    """Of the states behind `starts`. `stuck`: one from which no way leads to the goal, None: from
    each one does. `least`: steps of the shortest way from the state that is furthest from it.
    `most`: steps of the longest way, whatever is chosen, None: there is a circle, which only a
    fair choice leaves."""

    states: int
    exhausted: bool
    stuck: S | None
    least: int
    most: int | None


@no_collections()
def find_stuck(
    starts: Iterable[S],
    successors: Successors[S],
    goal: Goal[S],
    *,
    states_max: int,
    canonical: Canonical[S] | None = None,
) -> Liveness[S]:
    """Look whether a goal is reached from every one of `starts`, which ends the way.

    Where from each state some way leads to it, every fair run reaches it: states are finitely many,
    so a run that did not would come by one of them for ever, and take the first step of its
    shortest way at last, and the next from there (each step that can be taken again and again is
    taken). `most` needs no fairness: no run is longer.
    """
    if canonical is not None:
        successors = _reduced(successors, canonical)
        starts = map(canonical, starts)
    numbers: dict[S, int] = {}
    for state in starts:
        numbers.setdefault(state, len(numbers))
    states = list(numbers)
    before: list[list[int]] = [[] for _ in states]
    after: list[int] = []  # how many successors
    goals: list[int] = []
    number = 0
    while number < len(states) <= states_max:
        state = states[number]
        following = set() if goal(state) else {found for _, found in successors(state)}
        following.discard(state)
        if goal(state):
            goals.append(number)
        after.append(len(following))
        for found in following:
            known = numbers.get(found)
            if known is None:
                known = numbers[found] = len(states)
                states.append(found)
                before.append([])
            before[known].append(number)
        number += 1
    if number < len(states):
        return Liveness(len(states), False, None, 0, None)
    nearest = _distances(goals, before)
    stuck = next((s for n, s in enumerate(states) if n not in nearest), None)
    furthest = max(nearest.values(), default=0)
    return Liveness(len(states), True, stuck, furthest, _longest(before, after))


def _distances(goals: list[int], before: list[list[int]]) -> dict[int, int]:
    """Return the steps to the nearest goal, of each that leads to one."""
    nearest = dict.fromkeys(goals, 0)
    waiting = list(goals)
    for number in waiting:
        for earlier in before[number]:
            if earlier not in nearest:
                nearest[earlier] = nearest[number] + 1
                waiting.append(earlier)
    return nearest


def _longest(before: list[list[int]], after: list[int]) -> int | None:
    """Return the steps of the longest way, None where there is a circle."""
    left, steps = list(after), [0] * len(after)
    waiting = [number for number, count in enumerate(after) if not count]
    for number in waiting:
        for earlier in before[number]:
            steps[earlier] = max(steps[earlier], steps[number] + 1)
            left[earlier] -= 1
            if not left[earlier]:
                waiting.append(earlier)
    return max(steps, default=0) if len(waiting) == len(after) else None
