"""Judges transactions over registers, each level by itself. PURE.

Who writes a register has read it in the same transaction, and values are unique: so which value was
overwritten by which is known, and with it the edges between transactions (`tests/isolation`), whose
cycles are anomalies. Two that have overwritten the same value are a lost update. Beside cycles: a
read that began after a write was acknowledged shows none that it has overwritten, at any level.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.faults.checkers.appends import MAY, NEVER
from tests.faults.workload.history import Op, Told
from tests.isolation.cycles import Edge, Kind, find_cycles

FIRST: Final = 0
"""What a register holds that nobody has written."""
LOST: Final = "lost update"
MAY_LOSE: Final = frozenset({"default", "read committed"})
"""Levels at which a write may rest on a read that is no longer so."""
Place = tuple[int, int]
"""(register, value)."""


@dataclass(slots=True)
class Move:
    """A transaction. `reads`: what it was shown; `writes`: what it wrote."""

    number: int
    client: str
    begun: int
    ended: int
    told: Told
    reads: dict[int, int] = field(default_factory=dict)
    writes: dict[int, int] = field(default_factory=dict)
    committed: bool = False


def judge_moves(ops: Iterable[Op], final: Mapping[int, int]) -> list[str]:
    """Return what contradicts the promises; `final`: what each register holds in the end."""
    by_level: dict[str, list[Move]] = {}
    for number, op in enumerate(ops):
        if op.kind == "move":
            by_level.setdefault(op.value["level"], []).append(_move(number, op))
    return [
        f"registers, {level}: {words}"
        for level, moves in by_level.items()
        for words in _judge(level, moves, final)
    ]


def _move(number: int, op: Op) -> Move:
    told = op.told if op.ended_ns else Told.UNKNOWN
    ended = op.ended_ns if told is Told.YES else NEVER
    made = Move(number, op.client, op.begun_ns, ended, told)
    for what, key, value in op.value["steps"]:
        (made.reads if what == "read" else made.writes)[key] = value
    return made


def _judge(level: str, moves: Sequence[Move], final: Mapping[int, int]) -> Iterator[str]:
    writer = {(key, value): m for m in moves for key, value in m.writes.items()}
    own = {key for key, _ in writer}
    shown = {(key, value) for key, value in final.items() if key in own}
    shown |= {place for m in moves if m.told is Told.YES for place in m.reads.items()}
    shown = {(key, value) for key, value in shown if value != FIRST}
    strange = [place for place in sorted(shown) if place not in writer]
    if strange:
        yield f"values that nobody wrote: {strange[:5]}"
        return
    refused = [place for place in sorted(shown) if writer[place].told is Told.NO]
    if refused:
        yield f"G1a was seen: values of transactions that were refused: {refused[:5]}"
        return
    _conclude(moves, writer, shown)
    committed = [m for m in moves if m.committed]
    followers = _followers(committed)
    if level not in MAY_LOSE:
        yield from _lost(followers, committed, final)
    edges = _edges(committed, writer, followers)
    if level == "linearizable":
        edges["rt"] = {(a.number, b.number) for a in committed for b in committed if _before(a, b)}
    yield from (f"{name} was seen" for name in sorted(find_cycles(edges) - MAY[level]))
    yield from _outdated(moves, followers)


def _before(one: Move, other: Move) -> bool:
    return one.ended < other.begun


def _conclude(moves: Sequence[Move], writer: Mapping[Place, Move], shown: set[Place]) -> None:
    """Say which are committed: who was told so, and whose values somebody has seen, as others that
    are committed did who wrote behind them."""
    for move in moves:
        move.committed = move.told is Told.YES
    waiting = [writer[place] for place in shown]
    while waiting:
        move = waiting.pop()
        if not move.committed:
            move.committed = True
            seen = ((k, v) for k, v in move.reads.items() if v != FIRST and (k, v) in writer)
            waiting += [writer[place] for place in seen]


def _followers(committed: Sequence[Move]) -> Mapping[Place, list[Move]]:
    """Return who has overwritten each value."""
    found: dict[Place, list[Move]] = defaultdict(list)
    for move in committed:
        for key in move.writes:
            if key in move.reads:
                found[key, move.reads[key]].append(move)
    return found


def _lost(
    followers: Mapping[Place, list[Move]], committed: Sequence[Move], final: Mapping[int, int]
) -> Iterator[str]:
    for (key, value), its in followers.items():
        if len(its) > 1:
            clients = ", ".join(move.client for move in its)
            yield f"{LOST} was seen: value {value} of register {key} was overwritten by {clients}"
    for move in committed:
        for key, value in move.writes.items():
            if not followers.get((key, value)) and final.get(key) != value:
                yield f"{move.client} wrote {value} to register {key}, which has {final.get(key)}"


def _edges(
    committed: Sequence[Move], writer: Mapping[Place, Move], followers: Mapping[Place, list[Move]]
) -> dict[Kind, set[Edge]]:
    edges: dict[Kind, set[Edge]] = defaultdict(set)
    for move in committed:
        for place in move.reads.items():
            if place in writer:
                edges["wr"].add((writer[place].number, move.number))
                if place[0] in move.writes:
                    edges["ww"].add((writer[place].number, move.number))
            edges["rw"] |= {(move.number, after.number) for after in followers.get(place, ())}
    return {kind: {(a, b) for a, b in found if a != b} for kind, found in edges.items()}


def _outdated(moves: Sequence[Move], followers: Mapping[Place, list[Move]]) -> Iterator[str]:
    """C1: nothing that was overwritten before a transaction began, acknowledged, is read in it."""
    for move in moves:
        if move.told is Told.YES:
            for key, value in move.reads.items():
                if any(_before(after, move) for after in followers.get((key, value), ())):
                    yield f"{move.client} read {value} of register {key}, overwritten before"
