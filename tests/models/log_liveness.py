"""The log model once nothing is broken any more: does it come to rest, and where.

From any state that faults can lead to: nobody crashes, reboots, loses an append or bids without
need. Messages come before timers (maximal progress), in any order among themselves:

    1  what is sent lands, what has landed is read, what may be appended or answered is
    2  a replicant without a lease asks for one
    3  where there is no master, a candidate bids
    4  time passes
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from tests.models.log_candidate import CandidateSteps
from tests.models.log_world import Bounds, Rules, World, clock_ns
from tests.models.model_log import Model

PATIENCE_TICKS: Final = 8
"""So long they have to come to rest: four times a lease."""


class FaultyModel(Model):
    """All that bounds allow, and nothing is forgotten that the calm behind it needs: one epoch more
    may be claimed there."""

    def __init__(self, rules: Rules, bounds: Bounds) -> None:
        super().__init__(rules, bounds)
        self._keeps = replace(bounds, epochs=bounds.epochs + 1)

    def _without_past(self, world: World) -> World:
        bounds, self.bounds = self.bounds, self._keeps
        try:
            return super()._without_past(world)
        finally:
            self.bounds = bounds

    def calm_down(self) -> CalmModel:
        """Return what may happen from any of its states on."""
        calm = CalmModel(self.rules, self._keeps)
        calm.share(self)
        return calm


class CalmModel(Model):
    """`goal`: one master, which has answered all that is in the log, and replicants that show all
    of it, but for those that have left; nothing is under way."""

    def share(self, other: Model) -> None:
        """Know the other one's records by the same numbers."""
        self.records, self.coherency = other.records, other.coherency
        self.candidates = CandidateSteps(self.rules, self.bounds, self.records, self.coherency)

    def goal(self, world: World) -> bool:
        end = len(world.log)
        masters = [one for one in world.candidates if one.master]
        if world.net or len(masters) != 1:
            return False
        (master,) = masters
        at_rest = master.read == end and master.flight < 0
        answered = self.records.known(world.log).requests <= world.answered
        return (
            at_rest
            and answered
            and all(
                reader.read == end and (reader.left or clock_ns(world, reader) < reader.until_ns)
                for reader in world.readers
            )
        )

    def _steps(self, world: World) -> Iterator[tuple[str, World]]:
        for choice in (self._progress, self._asks, self._bids):
            found = list(choice(world))
            if found:
                yield from found
                return
        if world.now < self.bounds.ticks + PATIENCE_TICKS:
            yield "time passes", world._replace(now=world.now + 1)

    def _progress(self, world: World) -> Iterator[tuple[str, World]]:
        for number in dict.fromkeys(world.net):
            yield from self._lands(world, number)
        steps = self.candidates
        for who, candidate in enumerate(world.candidates):
            if candidate.master and candidate.read < len(world.log):
                yield steps.reads(world, who)
            if candidate.master:
                if candidate.flight < 0:
                    yield from steps.appends(world, who)
                yield from steps.answers(world, who)
            for ack in dict.fromkeys(world.acks[who]):
                yield steps.hears(world, who, ack)
        for which, reader in enumerate(world.readers):
            if reader.read < len(world.log):
                yield self._reader_reads(world, which)

    def _asks(self, world: World) -> Iterator[tuple[str, World]]:
        for which, reader in enumerate(world.readers):
            now = clock_ns(world, reader)
            if now >= reader.until_ns and now not in reader.asks and not reader.left:
                yield self._reader_asks(world, which)

    def _bids(self, world: World) -> Iterator[tuple[str, World]]:
        if not any(candidate.master for candidate in world.candidates):
            for who in range(len(world.candidates)):
                yield from self.candidates.bids(world, who)
