"""Turns at computing: who has one, in which order, and that nobody waits for ever."""

from __future__ import annotations

import random
import threading

import pytest

from leasehold.adapters.os.computing_turns import (
    FREE_S,
    RESTED_S,
    SLICE_S,
    ComputingTurns,
    Turn,
    default_at_once,
)

DEADLINE_S = 20.0


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def _never() -> bool:
    return False


def test_a_statement_computes_at_once_for_a_while_if_its_session_has_rested() -> None:
    clock = Clock()
    turns = ComputingTurns(1, clock)
    holder, turn = Turn(), Turn()
    assert turns.ask(holder, clock()) == 0.0
    turns.begin(turn)
    clock.now_s += FREE_S * 0.7
    turns.look(turn, _never)  # returns, though the only turn is another one's
    turns.end(turn)
    assert not turns.has_computed(turn)
    turns.begin(turn)  # its next statement has what is left
    clock.now_s += FREE_S * 0.2
    turns.look(turn, _never)
    clock.now_s += FREE_S * 0.2
    turns.look(turn, lambda: True)  # would wait, were it not cancelled
    turns.end(turn)
    assert turns.has_computed(turn)
    clock.now_s += RESTED_S * 2
    assert not turns.has_computed(turn)
    assert turns.ask(holder, clock()) == 0.0
    turns.begin(turn)
    clock.now_s += FREE_S * 0.9
    turns.look(turn, _never)


class Counted(Turn):
    """Counts how often it is compared with another one, or looked up."""

    looks = 0

    def __eq__(self, other: object) -> bool:
        Counted.looks += 1
        return self is other

    def __hash__(self) -> int:
        Counted.looks += 1
        return id(self)


def test_asking_takes_as_long_whoever_waits() -> None:
    """Each of a thousand that wait asks twenty times a second, under the lock of all."""
    looks = []
    for waiting in (10, 1_000):
        clock = Clock()
        turns = ComputingTurns(1, clock)
        holder, everybody = Counted(), [Counted() for _ in range(waiting)]
        assert turns.ask(holder, clock()) == 0.0
        for turn in everybody:
            turns.ask(turn, clock())
        Counted.looks = 0
        assert turns.ask(everybody[-1], clock()) > 0.0
        turns.leave(everybody[waiting // 2])
        clock.now_s += 2 * SLICE_S
        assert turns.ask(everybody[0], clock()) == 0.0
        assert turns.waiting == waiting - 2
        looks.append(Counted.looks)
    assert looks[0] == looks[1]


@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_no_more_than_so_many_compute_and_each_has_its_turn_in_order(at_once: int) -> None:
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    rng = random.Random(seed)
    clock = Clock()
    turns = ComputingTurns(at_once, clock)
    everybody = [Turn() for _ in range(12)]
    due = {turn: clock() + rng.random() * 0.01 for turn in everybody}
    asked: dict[Turn, int] = {}
    numbers = iter(range(1_000_000))
    given = [0] * len(everybody)
    for _ in range(4_000):
        turn = min(everybody, key=due.__getitem__)
        clock.now_s = max(clock.now_s, due[turn])
        if clock() < turn.until_s and rng.random() < 0.2:
            turns.end(turn)  # its statement is over
            due[turn] = clock() + rng.random() * 0.05
            continue
        left_s = turns.ask(turn, clock())
        if left_s == 0.0:
            number = asked.pop(turn, None)
            assert number is None or number == min([number, *asked.values()]), "out of order"
            given[everybody.index(turn)] += 1
            due[turn] = clock() + SLICE_S
            computing = sum(clock() < each.until_s for each in everybody)
            assert computing <= at_once
        else:
            asked.setdefault(turn, next(numbers))
            due[turn] = clock() + left_s
        for called in everybody:
            if called.called.is_set() and called in asked:
                called.called.clear()
                due[called] = clock()
    assert min(given) > 0.3 * max(given), given


def test_a_turn_that_is_not_given_back_ends_by_the_clock() -> None:
    clock = Clock()
    turns = ComputingTurns(1, clock)
    gone, turn = Turn(), Turn()
    assert turns.ask(gone, clock()) == 0.0  # and it waits for its client from here on
    left_s = turns.ask(turn, clock())
    assert 0.0 < left_s <= SLICE_S
    clock.now_s += left_s
    assert turns.ask(turn, clock()) == 0.0


def test_one_who_is_cancelled_leaves_the_queue() -> None:
    clock = Clock()
    turns = ComputingTurns(1, clock)
    holder, cancelled, behind = Turn(), Turn(), Turn()
    assert turns.ask(holder, clock()) == 0.0
    turns.look(cancelled, lambda: True)
    assert turns.waiting == 0
    assert turns.ask(behind, clock()) > 0.0
    turns.end(holder)
    assert behind.called.is_set()
    assert turns.ask(behind, clock()) == 0.0


def test_threads_that_compute_all_come_to_their_end() -> None:
    turns = ComputingTurns(default_at_once())
    done: list[int] = []

    def compute(number: int) -> None:
        turn = Turn()
        for _ in range(3):
            turns.begin(turn)
            for _ in range(300):
                sum(range(200))
                turns.look(turn, _never)
            turns.end(turn)
        done.append(number)

    threads = [threading.Thread(target=compute, args=(n,), daemon=True) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_S)
    assert sorted(done) == list(range(16))
    assert turns.waiting == 0
