"""What is done to a job at a place, one thing at a time; which of it where."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from leasehold.catalog.job import Phase, Step
from tests.matrix import faults
from tests.matrix.definition import SHIFTS, Write
from tests.matrix.world import OK, Place, World
from tests.simulation.harm import demand

WRONG_STATE: Final = "55000"
BUSY: Final = "55006"
PAUSED_MS: Final = 30


@dataclass(frozen=True, slots=True)
class Disturbance:
    """`act` runs from the instant a place is entered until nothing more is done; `fits` says at
    which places it means anything. `turns`: the job goes back from there."""

    name: str
    act: Callable[[World], None]
    fits: Callable[[World, Place], bool] = lambda _world, _place: True
    turns: bool = False


def disturbances(world: World, place: Place) -> list[Disturbance]:
    """All that fit here, the item's own spoilers among them."""
    known = (*EACH_PLACE, *EACH_STEP, *BY_TURNS, *_spoilers(world, place))
    return [each for each in known if each.fits(world, place)]


def chosen(world: World, place: Place) -> list[Disturbance]:
    """Those that are done here; all of them if every case was asked for.

    Rows and a cancel at every place, a pause and the master's crash turn about; the other crashes
    at one place of each step, and one more fault with each step. Fewer, by turns, on the way back,
    and for a job that is to fail, or whose steps are another item's: a way that is walked there.
    """
    fit = disturbances(world, place)
    if world.every:
        return fit
    if place.back or world.definition.ends == "failed" or world.definition.like:
        kept = {"rows", FEWER[world.turn % len(FEWER)]}
    else:
        turn = world.origin + place.step
        others = [*(d.name for d in EACH_STEP), BY_TURNS[turn % len(BY_TURNS)].name]
        count, number = places_of(world.the_job.current), world.place_of_step
        kept = {d.name for d in EACH_PLACE} - {TURN_ABOUT[world.turn % len(TURN_ABOUT)]}
        kept |= {f for n, f in enumerate(others) if (turn + n) % count == number}
    by_turns = {d.name for d in (*EACH_PLACE, *EACH_STEP, *BY_TURNS)} - kept
    return [d for d in fit if d.name not in by_turns]


def places_of(step: Step) -> int:
    """How many places the job comes through in a step."""
    return 2 + 2 * len(step.backfills) + bool(step.validates) + bool(step.verifies)


# ------------------------------------------------------------------ people


def can_turn_back(world: World, place: Place) -> bool:
    """By the definition's own point of no return (62, 67)."""
    point = world.definition.point
    if place.back:
        return False
    return place.step < point or (place.step == point and place.phase is Phase.PUBLISHING)


def _pause(world: World) -> None:
    """59. It stays where it is until it is resumed."""
    place = world.place
    assert place is not None, "the job runs"
    if place.back:
        world.control("pause", WRONG_STATE)
        return
    world.decided(world.control("pause", OK))
    world.passing(PAUSED_MS)
    now = world.place
    assert now is not None, "a paused job has not ended"
    demand(now[:2] == place[:2], "59", f"paused at {place}, it went on to {now}")
    world.control("resume", OK)


def _cancel(world: World) -> None:
    """60, 62, 67. Back before the point of no return, refused behind it."""
    place = world.place
    assert place is not None, "the job runs"
    if can_turn_back(world, place):
        world.control("cancel", OK)
        world.foreseen = "cancelled"
    else:
        world.control("cancel", WRONG_STATE)


def _truncate(world: World) -> None:
    """The table is the job's: its rows may not go beside it."""
    name = world.newest.names[0] if world.newest.names else "m"
    world.expect("TRUNCATE", {"sql": f"TRUNCATE {name}"}, {BUSY}, here=True)


# ------------------------------------------------------------------ rows


def _rows(world: World) -> None:
    """57, 63, 65, 66, 69, 71. Every kind of write under each live version, and below them."""
    for write in world.definition.writes:
        for shift in SHIFTS:
            if not write.stale:
                _under(world, write, shift)
            elif (below := world.live(write.table)[0] - 1) > 0:
                world.write(write, shift, below)


def _under(world: World, write: Write, shift: int) -> None:
    """The newest version by no pin at all; the one before it is live until it is drained. Of
    another table there may be one alone, for the rows of each."""
    lowest, newest = world.live(write.table)
    both = lowest < newest
    alone = world.other(write.table) is not None and not both
    of_this_shift = bool(shift) == write.crossed and (both or not write.crossed)
    if of_this_shift or (alone and world.min_version < world.newest.version):
        world.write(write, shift, None)
    elif both:
        world.write(write, shift, newest - 1)


def _spoilers(world: World, place: Place) -> list[Disturbance]:
    """58, 60, 70. A row that breaks the constraint: refused, or the job fails; healed in time, it
    does not."""
    made = []
    newest = world.newest.version
    versions = {newest, world.min_version} if not place.back else set()
    for write in world.definition.spoilers:
        for version in sorted(versions):
            number = world.content(version)
            # What is held to the constraint only while the job runs harms nobody when it is over.
            over = number > world.definition.point
            accepted = write.foreseen(number) == OK and not over
            name = f"{write.name}, under content {number}"
            made.append(Disturbance(name, _spoiled(write, version, accepted=accepted)))
            if accepted and version == newest and place.phase is not Phase.VERIFYING:
                made.append(Disturbance(f"{name}, healed", _healed(write, version)))
    return made


def _spoiled(write: Write, version: int, *, accepted: bool) -> Callable[[World], None]:
    def act(world: World) -> None:
        world.write(write, 0, version)
        if accepted:
            world.foreseen = "failed"

    return act


def _healed(write: Write, version: int) -> Callable[[World], None]:
    heal = Write("heal", "delete", write.key, write.table, {}, (OK,))

    def act(world: World) -> None:
        world.write(write, 0, version)
        world.write(heal, 0, None)

    return act


SPARKS: Final = (Phase.BACKFILLING, Phase.VALIDATING)
EACH_PLACE: Final = (
    Disturbance("pause and resume", _pause),
    Disturbance("cancel", _cancel, turns=True),
    Disturbance("rows", _rows),
    Disturbance("the master crashes", faults.crash_master),
    Disturbance("Spark crashes", faults.crash_spark, lambda _, p: p.phase in SPARKS),
    Disturbance("a copy is damaged", faults.damage, faults.damageable),
)
EACH_STEP: Final = (
    Disturbance("a replicant crashes", faults.crash_replicant),
    Disturbance("Redis comes back empty", faults.ledger_without_state),
    Disturbance("the broker loses a record", faults.append_lost),
)
BY_TURNS: Final = (
    Disturbance("TRUNCATE", _truncate, lambda world, _: bool(world.newest.names)),
    Disturbance("the master is frozen", faults.freeze_master),
    Disturbance("a replicant is frozen", faults.freeze_replicant),
    Disturbance("Redis is away", faults.ledger_away),
    Disturbance("the master is cut off", faults.cut_off_master),
    Disturbance("the changefeed crashes", faults.crash_changefeed),
    Disturbance("Redis is flushed", faults.ledger_flushed),
    Disturbance("a replicant is cut off", faults.cut_off_replicant),
    Disturbance("the broker takes a record late", faults.append_unknown),
)
TURN_ABOUT: Final = ("pause and resume", "the master crashes")
FEWER: Final = ("the master crashes", "Redis comes back empty", "cancel", "a replicant crashes")
