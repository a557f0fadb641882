"""The whole model once nothing is broken any more: does the job end, and is everybody coherent.

From any state that faults can lead to: the newest master goes on, messages of those before arrive,
the follower's agent renews, its user ends. Messages come before timers (maximal progress), in any
order among themselves; a replicant without a lease asks when nothing else would change anything,
and then time passes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from tests.models.model_whole import Model
from tests.models.whole_masters import LAST_VERSION, Step
from tests.models.whole_world import BEGIN, TTL, Bounds, Rules, World, now_ns

NOBODY_CLAIMS: Final = -1
RECORDS: Final = 100
PATIENCE_TICKS: Final = 5 * TTL
"""So long the job has to end."""


class LiveModel(Model):
    """Faulty until it is told to calm down; both have the same objects."""

    def __init__(self, rules: Rules, bounds: Bounds) -> None:
        super().__init__(rules, bounds)
        self.is_calm = False

    def calm_down(self) -> None:
        calm = replace(
            self.bounds,
            takeovers=NOBODY_CLAIMS,
            records=RECORDS,
            acks=0,
            mute=False,
            steady=False,
        )
        self.is_calm, self._asks = True, self.bounds.acks > 0
        self.bounds = self.masters._bounds = self.followers._bounds = calm

    def goal(self, world: World) -> bool:
        """Return whether both versions are published, what is in the log is answered, and the
        follower shows all of it."""
        follower = world.follower
        if world.net or follower.read < len(world.log):
            return False
        if self.schemas.at(world.log).newest < LAST_VERSION:
            return False
        if self.records.known(world.log).requests and not world.answered:
            return False
        return not self._asks or now_ns(world) < follower.until_ns

    def _steps(self, world: World) -> Iterator[Step]:
        if not self.is_calm:
            yield from super()._steps(world)
            return
        found = [*self.masters.steps(world), *self.followers.steps(world)]
        found = [(label, after) for label, after in found if after != world]
        follower, now = world.follower, now_ns(world)
        if not found and self._asks and now >= follower.until_ns and now not in follower.asks:
            found.append(self.followers.asks(world))
        yield from found
        if not found and world.now < BEGIN + self.bounds.ticks + PATIENCE_TICKS:
            yield "time passes", world._replace(now=world.now + 1)
