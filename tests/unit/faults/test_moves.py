"""Goal: transactions over registers are judged by what their level prevents.

Method: histories by hand. `r0:1` is a read of register 0 that showed 1, `w0:2` a write of 2.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.faults.checkers.moves import judge_moves
from tests.faults.workload.history import Op, Told

LEVELS = ("default", "read committed", "snapshot", "serializable", "linearizable")


def move(begun: int, ended: int, steps: str, told: Told = Told.YES) -> Op:
    made: list[list[Any]] = []
    for step in steps.split():
        key, _, value = step[1:].partition(":")
        made.append(["read" if step[0] == "r" else "write", int(key), int(value)])
    value_of: dict[str, Any] = {"level": "", "steps": made}
    return Op(f"c{begun}", begun, "move", begun, ended, told, "", value_of)


def judged(level: str, ops: list[Op], final: dict[int, int]) -> list[str]:
    at_level = [op._replace(value={**op.value, "level": level}) for op in ops]
    return judge_moves(at_level, final)


CHAIN = [move(1, 2, "r0:0 w0:1"), move(3, 4, "r0:1 w0:2 r1:0 w1:3"), move(5, 6, "r0:2 r1:3")]


@pytest.mark.parametrize("level", LEVELS)
def test_a_serial_history_passes(level: str) -> None:
    assert judged(level, CHAIN, {0: 2, 1: 3}) == []
    assert judged(level, [], {0: 0}) == []


@pytest.mark.parametrize(("told", "final"), [(Told.YES, 1), (Told.UNKNOWN, 1), (Told.UNKNOWN, 0)])
def test_what_nobody_was_told_may_be_either(told: Told, final: int) -> None:
    assert judged("linearizable", [move(1, 2, "r0:0 w0:1", told)], {0: final}) == []


def test_an_unknown_one_that_others_have_read_is_there_with_what_it_rests_on() -> None:
    ops = [
        move(1, 2, "r0:0 w0:1", Told.UNKNOWN),
        move(3, 4, "r0:1 w0:2", Told.UNKNOWN),
        move(5, 6, "r0:2"),
        move(7, 8, "r0:0 w0:3"),
    ]
    found = judged("snapshot", ops, {0: 2})
    assert any("lost update was seen: value 0 of register 0" in words for words in found)


FORK = [move(1, 5, "r0:0 w0:1"), move(2, 6, "r0:0 w0:2")]
SKEW = [move(1, 5, "r0:0 r1:0 w0:1"), move(2, 6, "r0:0 r1:0 w1:2")]
TORN = [move(1, 9, "r0:0 r1:3"), move(2, 5, "r0:0 w0:2 r1:0 w1:3")]
CIRCLE = [move(1, 9, "r0:4 r1:0 w1:3"), move(2, 9, "r1:3 r0:0 w0:4")]
"""Each has read what the other one wrote."""
LATE = [move(1, 2, "r0:0 w0:1"), move(3, 4, "r0:0")]


@pytest.mark.parametrize(
    ("ops", "final", "words", "prevented_at"),
    [
        (FORK, {0: 2}, "lost update", LEVELS[2:]),
        (SKEW, {0: 1, 1: 2}, "G2-item", LEVELS[3:]),
        (TORN, {0: 2, 1: 3}, "G-single", LEVELS[2:]),
        (CIRCLE, {0: 4, 1: 3}, "G1c", LEVELS),
        (LATE, {0: 1}, "overwritten before", LEVELS),
    ],
    ids=["lost update", "write skew", "read skew", "circular", "late"],
)
def test_each_level_is_held_to_what_it_prevents(
    ops: list[Op], final: dict[int, int], words: str, prevented_at: tuple[str, ...]
) -> None:
    for level in LEVELS:
        found = [told for told in judged(level, ops, final) if words in told]
        assert bool(found) == (level in prevented_at), (level, found)


@pytest.mark.parametrize(
    ("ops", "final", "words"),
    [
        ([move(1, 2, "r0:0 w0:1", Told.NO)], {0: 1}, "G1a"),
        ([move(1, 2, "r0:0 w0:1", Told.NO), move(3, 4, "r0:1")], {0: 0}, "G1a"),
        ([move(1, 2, "r0:0 w0:1"), move(3, 4, "r0:7")], {0: 1}, "nobody wrote"),
    ],
)
@pytest.mark.parametrize("level", LEVELS)
def test_values_of_nobody_are_seen_at_every_level(
    level: str, ops: list[Op], final: dict[int, int], words: str
) -> None:
    assert words in "".join(judged(level, ops, final))


def test_an_acknowledged_write_that_is_gone_is_seen() -> None:
    assert "which has 0" in "".join(judged("snapshot", CHAIN[:1], {0: 0}))


def test_only_linearizable_has_the_order_of_real_time_between_registers() -> None:
    """The second reader came after the first one, whose writer has not been answered yet."""
    ops = [move(1, 20, "r0:0 w0:1"), move(2, 3, "r0:1"), move(6, 7, "r0:0")]
    assert "outdated" in "".join(judged("linearizable", ops, {0: 1}))
    assert judged("serializable", ops, {0: 1}) == []
