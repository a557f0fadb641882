"""Which anomalies a history of list-append transactions shows.

Appending makes the order of writes visible: what a read shows is all that was written before, in
order. From it follow the edges between transactions (ww: wrote after; wr: read what was written;
rw: read what was overwritten then), and from cycles of edges the anomalies, by their kinds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, Literal

Kind = Literal["ww", "wr", "rw", "rt"]
Edge = tuple[int, int]
FIRM: Final[tuple[Kind, ...]] = ("ww", "wr")


@dataclass(slots=True)
class Transaction:
    """`appends`: (list, value); `reads`: list → what was shown. `begun`, `ended`: moments of its
    client; an answer had come by `ended`."""

    number: int
    appends: list[tuple[int, int]] = field(default_factory=list)
    reads: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)
    committed: bool = False
    begun: int = 0
    ended: int = 0


def anomalies(
    history: Sequence[Transaction], final: Mapping[int, tuple[int, ...]], *, real_time: bool
) -> set[str]:
    """`final`: what each list holds in the end. With `real_time` a transaction that began after
    another was answered must come after it."""
    found: set[str] = set()
    writer = {value: t for t in history for _, value in t.appends}
    for number, values in final.items():
        if any(not writer[value].committed for value in values):
            found.add("G1a")
        written = {v for t in history if t.committed for key, v in t.appends if key == number}
        if written != set(values) or len(values) != len(set(values)):
            found.add("lost update")
    committed = [t for t in history if t.committed]
    for t in committed:
        found |= _bad_reads(t, writer, final)
    if found:
        return found
    edges = _edges(committed, writer, final)
    if real_time:
        edges["rt"] = _after(committed)
    return find_cycles(edges)


def _bad_reads(
    t: Transaction, writer: Mapping[int, Transaction], final: Mapping[int, tuple[int, ...]]
) -> set[str]:
    found: set[str] = set()
    own = {value for _, value in t.appends}
    for number, seen in t.reads:
        others = tuple(value for value in seen if value not in own)
        if any(not writer[value].committed for value in others):
            found.add("G1a")
        elif others:
            last = writer[others[-1]]
            all_of_last = [value for key, value in last.appends if key == number]
            if others[-1] != all_of_last[-1]:
                found.add("G1b")
        if others != final.get(number, ())[: len(others)] and "G1a" not in found:
            found.add("incompatible order")
    return found


def _edges(
    committed: Iterable[Transaction],
    writer: Mapping[int, Transaction],
    final: Mapping[int, tuple[int, ...]],
) -> dict[Kind, set[Edge]]:
    edges: dict[Kind, set[Edge]] = defaultdict(set)
    for values in final.values():
        for before, after in pairwise(values):
            edges["ww"].add((writer[before].number, writer[after].number))
    for t in committed:
        own = {value for _, value in t.appends}
        for number, seen in t.reads:
            others = tuple(value for value in seen if value not in own)
            if others:
                edges["wr"].add((writer[others[-1]].number, t.number))
            following = final.get(number, ())[len(others) :]
            if following:
                edges["rw"].add((t.number, writer[following[0]].number))
    return {kind: {(a, b) for a, b in found if a != b} for kind, found in edges.items()}


def _after(committed: Sequence[Transaction]) -> set[Edge]:
    return {(a.number, b.number) for a in committed for b in committed if a.ended < b.begun}


def find_cycles(edges: Mapping[Kind, set[Edge]]) -> set[str]:
    """Return the anomalies that cycles of such edges are."""
    found: set[str] = set()
    if _cyclic(edges.get("ww", set())):
        found.add("G0")
    firm = set().union(*(edges.get(kind, set()) for kind in FIRM))
    if _cyclic(firm):
        found.add("G1c")
    if found:
        return found
    reached = _reach(firm)
    if any(a in reached[b] for a, b in edges.get("rw", set())):
        found.add("G-single")
    dependencies = firm | edges.get("rw", set())
    if not found and _cyclic(dependencies):
        found.add("G2-item")
    if not found and _cyclic(dependencies | edges.get("rt", set())):
        found.add("outdated read")
    return found


def _reach(edges: set[Edge]) -> dict[int, set[int]]:
    """Which transactions come after each, over any number of edges."""
    after: dict[int, set[int]] = defaultdict(set)
    for a, b in edges:
        after[a].add(b)
    reached: dict[int, set[int]] = defaultdict(set)
    for start in list(after):
        waiting = list(after[start])
        while waiting:
            at = waiting.pop()
            if at not in reached[start]:
                reached[start].add(at)
                waiting.extend(after.get(at, ()))
    return reached


def _cyclic(edges: set[Edge]) -> bool:
    return any(start in found for start, found in _reach(edges).items())
