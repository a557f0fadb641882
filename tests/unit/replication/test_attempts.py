"""What a process that lives on has said in its terms is held against no message (L10)."""

from __future__ import annotations

import random
from typing import Final

import pytest

from leasehold.model.records.log import Attempt, Decisions, LogPosition
from leasehold.model.records.requests import Queue
from leasehold.replication.master.attempts import Attempts, Spared, attempts_after

RUNS: Final = 2_000
TERMS: Final = 6
BY_ANOTHER: Final = Attempt(Queue.BACKFILL.value, 7, 0, 1)
"""Left by a process that has died over that message."""
MESSAGES: Final = ((Queue.REQUESTS, 3, 0), (Queue.BACKFILL, 7, 0), (Queue.BACKFILL, 7, 40))
"""Another part of a chunk is said of as another message."""


def saying(attempts: list[Attempt]) -> Decisions:
    return Decisions(1, b"m1", 1, b"", 1, (), (), {}, 0, (), attempts=tuple(attempts))


class LivingProcess:
    """A master whose appends fail: `known` is what the log says, `spared` what the process knows
    beside that."""

    def __init__(self, rng: random.Random, known: tuple[Attempt, ...]) -> None:
        self.rng = rng
        self.known = known
        self.spared: list[Spared] = []

    def serve_term(self) -> Attempts:
        """Say something of some messages and read that back, until an append fails, of which
        nobody knows whether it has landed. Return what the term knew."""
        term = Attempts(LogPosition(attempts=self.known), self.spared)
        while True:
            record = saying(term.say(*self.rng.choice(MESSAGES)))
            fate = self.rng.choice(("read back", "read back", "landed", "lost"))
            if fate != "lost":
                self.known = attempts_after(self.known, record)
            if fate != "read back":
                self.spared = term.spared()
                return term
            term.read_back(record, ())


@pytest.mark.parametrize("known", [(), (BY_ANOTHER,)])
def test_l10_appends_that_fail_are_held_against_no_message(known: tuple[Attempt, ...]) -> None:
    others = {(Queue(a.queue), a.offset, a.rows): a.lost for a in known}
    for seed in range(RUNS):
        process = LivingProcess(random.Random(seed), known)
        for term in range(TERMS):
            served = process.serve_term()
            for message in MESSAGES:
                held = served.lost_over(*message)
                assert held <= others.get(message, 0), (seed, term, message)


def test_l10_what_another_process_has_left_is_held_on() -> None:
    """Whatever this one has said of it: the next one to die over it is the last."""
    process = LivingProcess(random.Random(0), (BY_ANOTHER,))
    term = Attempts(LogPosition(attempts=process.known))
    for _ in range(TERMS):
        said = term.say(Queue.BACKFILL, 7)
        process.known = attempts_after(process.known, saying(said))
        term.read_back(saying(said), ())
        term = Attempts(LogPosition(attempts=process.known), term.spared())
        assert term.lost_over(Queue.BACKFILL, 7) == 1
    assert Attempts(LogPosition(attempts=process.known)).is_refused(Queue.BACKFILL, 7)
