"""Breadth-first explicit-state explorer: every reachable state, or the shortest way to a harm.

States are hashable values (tuples of small integers are fastest). The visited set keeps only
64-bit hashes (hash compaction, as in SPIN's and TLC's fingerprint sets); states live as long as
they wait in the frontier. A counter-example is rebuilt by running the model again along the path,
so a clash of hashes could only ever hide a state, never invent a harm; with n states the chance of
any clash is below n² / 2^64, which the report names.
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
) -> Report[S]:
    """Visit states breadth first until all are seen, `invariant` names a harm, or the bound.

    `starts`: (label, state) of the states to begin with. `seed` shuffles the order of
    successors, so that a bounded run may see another part of the space; None keeps the model's.
    """
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
