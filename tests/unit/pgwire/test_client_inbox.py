"""Goal: whoever is at a connection goes on until nothing is left of what came, and what comes
meanwhile waits where it can be counted: reading pauses, memory has a limit.

Method: a client without a socket or a loop; the test gives each turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from leasehold.adapters.postgres.connection import INBOX_BYTES_MAX, Admission, PgwireClient
from leasehold.pgwire.conversation import HURRIED_MESSAGES_MAX
from tests.support.pgwire.talk import Talk
from tests.support.pgwire.wire_words import SYNC, messages, query

SIZE = 2 * HURRIED_MESSAGES_MAX + 10


class World:
    """`turns`: what waits for the next one."""

    def __init__(self) -> None:
        self.turns: list[PgwireClient] = []
        self.reading = True
        talk = Talk()
        self.said = talk.said
        server: Any = SimpleNamespace(
            now_s=lambda: 0.0,
            resume_soon=self.turns.append,
            call_soon=self._now,
            turns=SimpleNamespace(ask=lambda turn: turn.take()),
            workers=None,
        )
        self.client = PgwireClient(server, 7)
        self.client._admission = Admission("me", "demo", {}, 7)
        self.client._conversation = talk.conversation
        transport: Any = SimpleNamespace(
            pause_reading=lambda: self._read(False),
            resume_reading=lambda: self._read(True),
            is_closing=lambda: False,
        )
        self.client._outlet.transport = transport

    def _read(self, reads: bool) -> None:
        assert self.reading is not reads
        self.reading = reads

    def _now(self, call: Callable[..., Any], *arguments: Any) -> None:
        call(*arguments)

    def give_turn(self) -> None:
        (client,) = self.turns
        self.turns.clear()
        client.resume()

    @property
    def state(self) -> tuple[int, bool]:
        """How many batches were answered, and whether more is read."""
        return self.answers, self.reading

    @property
    def answers(self) -> int:
        said = b"".join(self.said[1:])
        return Counter(kind for kind, _ in messages(said))["Z"]


def test_messages_that_are_there_are_run_though_nothing_more_comes() -> None:
    world = World()
    for batch in range(1, 4):
        world.client.data_received(SYNC * SIZE)
        turns = 1
        while world.turns:
            world.give_turn()
            turns += 1
        assert (world.answers, turns) == (batch * SIZE, 3)


def test_what_comes_while_messages_are_left_waits_until_they_are_run() -> None:
    world = World()
    world.client.data_received(SYNC * SIZE)
    text = query("select 1 -- " + "x" * 9_000)
    count = INBOX_BYTES_MAX // len(text) + 1
    world.client.data_received(text * count)
    assert world.state == (HURRIED_MESSAGES_MAX, False)
    world.give_turn()  # of the first ones 10 are left, and reading goes on only behind them
    assert world.state == (2 * HURRIED_MESSAGES_MAX, False)
    world.give_turn()
    assert world.state[1]
    while world.turns:
        world.give_turn()
    assert world.answers == SIZE + count
