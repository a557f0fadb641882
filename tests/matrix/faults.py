"""What breaks: a process, its network, Redis, the broker, or one copy of the rows.

Every fault comes together with writers: what is acknowledged beside it must be there at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from leasehold.catalog.elements import ALL_ROWS
from leasehold.catalog.job import Phase, Step
from tests.matrix.world import Place, World
from tests.simulation.simulation import MS

AWAY_MS: Final = 750  # longer than a session, a lease and an election take
RESTART_MS: Final = 100
LATE_MS: Final = 20
MASTER: Final = "m1"
NODE: Final = "r2"
BESIDE: Final = ("insert", "update b", "delete", "upsert old")


def _beside(world: World) -> None:
    for write in world.definition.writes:
        if write.name in BESIDE:
            world.write_sometime(write)


def crash_master(world: World) -> None:
    """61, 75. The other candidate takes over from the log alone."""
    world.node(MASTER).crash()
    _beside(world)
    world.passing(1)
    world.until(lambda: world.master is not None, "another master")
    world.restart(MASTER)


def _away(world: World, until: Callable[[int], None]) -> None:
    """`until` takes a node away up to a time, in ns."""
    until(world.scheduler.now_ns + AWAY_MS * MS)
    _beside(world)
    world.passing(AWAY_MS)


def freeze_master(world: World) -> None:
    """An old master: stopped past its epoch, it wakes up."""
    _away(world, world.node(MASTER).pause)


def cut_off_master(world: World) -> None:
    """79. It lives, and nobody hears it."""
    _away(world, world.node(MASTER).isolate)


def crash_replicant(world: World) -> None:
    world.node(NODE).crash()
    _beside(world)
    world.passing(RESTART_MS)
    world.restart(NODE)


def freeze_replicant(world: World) -> None:
    """A paused agent: stopped past its session, with leases."""
    _away(world, world.node(NODE).pause)


def cut_off_replicant(world: World) -> None:
    _away(world, world.node(NODE).isolate)


def crash_spark(world: World) -> None:
    world.cluster.backfill.crash()
    _beside(world)
    world.passing(RESTART_MS)
    world.restart_rest()


def ledger_without_state(world: World) -> None:
    """D6: Redis comes back with another run id and without its data."""
    world.cluster.ledger.restart(lose_state=True)
    _beside(world)


def ledger_flushed(world: World) -> None:
    world.cluster.ledger.flush()
    _beside(world)


def ledger_away(world: World) -> None:
    world.cluster.ledger.reachable = False
    _beside(world)
    world.passing(AWAY_MS)
    world.ledger_back()


def append_lost(world: World) -> None:
    world.scripted[MASTER].fates = ["lost"]
    _beside(world)


def append_unknown(world: World) -> None:
    """The broker takes it late, and the master has been told that it failed."""
    world.scripted[MASTER].fates = ["unknown"]
    world.scripted[MASTER].late_ms = LATE_MS
    _beside(world)


def crash_changefeed(world: World) -> None:
    """No images, no job events: no backfill begins until it is back."""
    world.cluster.changefeed.crash()
    _beside(world)
    world.passing(RESTART_MS)
    world.restart_rest()


# ------------------------------------------------------------------ a copy that is not equal


def damageable(world: World, place: Place) -> bool:
    return place.phase is Phase.VERIFYING and not place.back and bool(_filled(world))


def _filled(world: World) -> set[int]:
    """Of what is verified now, what was filled: it has pairs or entries of its own."""
    job = world.the_job
    step: Step = job.current
    filled = {e for each in job.steps[: job.step + 1] for e in each.backfills}
    return filled & set(step.verifies)


def damage(world: World) -> None:
    """60. One pair of a replicant's is gone: what differs from copy to copy never goes public."""
    held = world.stores.get(NODE).contents
    elements = _filled(world)
    if ALL_ROWS in elements:
        mirror = world.newest.mirror
        row = min(r for r in held.pairs if r[0] == mirror and len(held.pairs[r]) > 1)
        held.pairs[row] = dict(sorted(held.pairs[row].items())[:-1])
        elements = set()
    entry = min((e for e in held.entries if e[1] in elements), default=None, key=repr)
    if entry is not None:
        held.entries.remove(entry)
    elif elements:
        row, element = min((row, e) for row, p in held.pairs.items() for e in p if e in elements)
        held.pairs[row] = {e: v for e, v in held.pairs[row].items() if e != element}
    world.until(lambda: world.the_job.status.ended, "the job's end")
    world.foreseen = "failed"
    world.node(NODE).crash()
    world.restore(NODE, "r1")
    world.restart(NODE)
