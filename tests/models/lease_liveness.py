"""The lease model once nothing is broken any more: does the job end.

From any state that faults can lead to: users end, late calls arrive, the agent finds the ledger
that the master has. Messages come before timers (maximal progress), in any order among themselves;
time passes when nothing else would change anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from tests.models.lease_world import TTL, VERSIONS_MAX, Bounds, World
from tests.models.model_lease import Model

PATIENCE_TICKS: Final = 5 * TTL
"""So long the job has to end."""


class LiveModel(Model):
    """Faulty until it is told to calm down; both have the same objects."""

    def __init__(self, bounds: Bounds) -> None:
        super().__init__(bounds)
        self.is_calm = self.agent_is_dead = False

    def calm_down(self) -> None:
        self.bounds = replace(self.bounds, aways=0)
        self.is_calm = True

    def goal(self, world: World) -> bool:
        """Return whether all versions are published, and fenced."""
        return world.log.current == world.log.min_version == VERSIONS_MAX

    def successors(self, world: World) -> Iterator[tuple[str, World]]:
        if not self.is_calm:
            yield from super().successors(world)
            return
        found = [(label, after) for label, after in self._progress(world) if after != world]
        yield from found
        if not found and world.now < TTL + self.bounds.ticks + PATIENCE_TICKS:
            yield "time passes", world._replace(now=world.now + 1)

    def _progress(self, world: World) -> Iterator[tuple[str, World]]:
        if not self.agent_is_dead:
            yield from self._agent(world)
            if world.using:
                yield from self._users(world)
            yield from self._calls(world)
        yield from self.master.steps(world)
        if world.astray and world.call is None:
            yield "the agent finds the new ledger", world._replace(astray=False)
