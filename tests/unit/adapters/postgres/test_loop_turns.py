"""Goal: who needs little of the loop waits for little, however many need much; nobody waits without
an end; what clients are told leaves with each round.

Method: clients that ask again as soon as they have been served, and one that thinks in between, on
a loop whose clock goes on by what turns take.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from leasehold.adapters.postgres.loop_turns import ROUND_S, STRETCH, LoopTurn, LoopTurns

DEAR_S, CHEAP_S, THINKS_S = 0.0007, 0.00006, 0.0021
CROWD = 32
KNOWN_S = 0.3
"""From here on everybody had some ten turns: what they need is known."""


class Client:
    """Asks for a turn, which takes `takes_s`, `thinks_s` after the one before."""

    def __init__(self, loop: Loop, takes_s: float, thinks_s: float = 0.0) -> None:
        self.loop, self.takes_s, self.thinks_s = loop, takes_s, thinks_s
        self.turn = LoopTurn(self.take)
        self.asked_s = 0.0
        self.waits_s: list[float] = []
        loop.clients.append((0.0, self))

    def ask(self) -> None:
        self.asked_s = self.loop.now_s
        self.loop.turns.ask(self.turn)

    def take(self) -> None:
        if self.loop.now_s > KNOWN_S:
            self.waits_s.append(self.loop.now_s - self.asked_s)
        self.loop.now_s += self.takes_s
        self.loop.clients.append((self.loop.now_s + self.thinks_s, self))


class Loop:
    """A loop on a clock of its own: it looks who has come, then makes the calls that are due."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.calls: list[Callable[[], None]] = []
        self.clients: list[tuple[float, Client]] = []
        self.rounds = 0
        self.turns = LoopTurns(self.calls.append, self.end_round, self.clock, self.clock)

    def clock(self) -> float:
        return self.now_s

    def end_round(self) -> None:
        self.rounds += 1

    def run(self, until_s: float) -> None:
        while self.now_s < until_s:
            come = [client for at_s, client in self.clients if at_s <= self.now_s]
            self.clients = [(at_s, c) for at_s, c in self.clients if at_s > self.now_s]
            for client in come:
                client.ask()
            calls, self.calls[:] = list(self.calls), []
            if not calls:
                self.now_s = min(at_s for at_s, _ in self.clients)
            for call in calls:
                call()


def test_who_needs_little_waits_for_one_turn_of_who_needs_much() -> None:
    loop = Loop()
    crowd = [Client(loop, DEAR_S) for _ in range(CROWD)]
    reader, writer = Client(loop, CHEAP_S), Client(loop, 2 * CHEAP_S, THINKS_S)
    loop.run(2.0)
    for client in (reader, writer):
        assert max(client.waits_s) <= DEAR_S + ROUND_S
        assert len(client.waits_s) > 500
    served = [len(client.waits_s) for client in crowd]
    assert max(served) - min(served) <= 1


def test_nobody_is_overtaken_for_longer_than_the_stretch() -> None:
    loop = Loop()
    for _ in range(CROWD):
        Client(loop, CHEAP_S)
    dear = Client(loop, DEAR_S)
    loop.run(2.0)
    assert len(dear.waits_s) > 20
    # Behind what is due before, each of the others may be due at the same moment.
    assert max(dear.waits_s) <= STRETCH * DEAR_S + CROWD * CHEAP_S + ROUND_S


def test_clients_alike_come_in_the_order_of_asking() -> None:
    loop = Loop()
    crowd = [Client(loop, CHEAP_S) for _ in range(CROWD)]
    loop.run(0.5)
    assert max(max(client.waits_s) for client in crowd) <= CROWD * CHEAP_S + ROUND_S


@pytest.mark.parametrize("seed", range(20))
def test_any_crowd_is_served(seed: int) -> None:
    """Whatever they need: everybody waits for STRETCH of his own turns at most, and for those who
    were due before."""
    chance = random.Random(seed)
    loop = Loop()
    crowd = [
        Client(
            loop, 10 ** chance.uniform(-5, -3), chance.choice((0.0, 10 ** chance.uniform(-5, -2)))
        )
        for _ in range(chance.randrange(2, 50))
    ]
    loop.run(3.0)
    all_once_s = sum(client.takes_s for client in crowd)
    for client in crowd:
        most_s = STRETCH * client.takes_s + all_once_s * 2 + ROUND_S
        assert max(client.waits_s, default=3.0) <= most_s, (client.takes_s, most_s)


def test_a_round_ends_and_tells() -> None:
    """The loop looks at its sockets, and what was said leaves, after ROUND_S and one turn more."""
    loop = Loop()
    taken: list[float] = []

    def take() -> None:
        loop.now_s += ROUND_S * 0.4
        taken.append(loop.now_s)

    for _ in range(5):
        loop.turns.ask(LoopTurn(take))
    calls, loop.calls[:] = list(loop.calls), []
    (serve,) = calls
    serve()
    assert (len(taken), loop.rounds, len(loop.calls)) == (3, 1, 1)
    loop.calls.pop()()
    assert (len(taken), loop.rounds, len(loop.calls)) == (5, 2, 0)


def test_a_defect_in_one_turn_leaves_others_theirs() -> None:
    loop = Loop()
    taken: list[int] = []

    def fail() -> None:
        raise ZeroDivisionError

    loop.turns.ask(LoopTurn(fail))
    loop.turns.ask(LoopTurn(lambda: taken.append(1)))
    with pytest.raises(ZeroDivisionError):
        loop.calls.pop()()
    assert loop.rounds == 1
    loop.calls.pop()()
    assert taken == [1]
