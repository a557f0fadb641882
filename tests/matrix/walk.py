"""Every case of an item: the job is walked once, and at each place each disturbance goes on from
there in a process of its own, a copy of this one. So nobody runs the way to a place twice."""

from __future__ import annotations

import gc
import json
import os
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from leasehold.catalog.job import Phase
from tests.matrix.definition import Definition, names
from tests.matrix.disturbances import Disturbance, can_turn_back, chosen, disturbances
from tests.matrix.finish import finish
from tests.matrix.told import demand_told
from tests.matrix.world import Place, World
from tests.simulation.harm import Harm

FIRST: Final = Place(0, Phase.PUBLISHING)
THEN: Final = "; "


@dataclass(slots=True)
class Walked:
    """`cases`: how many; `wrong`: case → what went wrong, and its history."""

    cases: int = 0
    wrong: dict[str, str] = field(default_factory=dict)


def walked(definition: Definition, *, every: bool = False) -> Walked:
    """All cases of an item; `every`: also those that are otherwise done by turns."""
    made = Walked()
    _walk(begun(definition, every=every), made)
    return made


def begun(definition: Definition, *, every: bool = False) -> World:
    known = names()
    # Items begin at different turns, so that together they do each thing at each kind of place.
    origin = known.index(definition.name) if definition.name in known else 0
    world = World(definition, origin, every=every)
    world.begin()
    return world


def replay(definition: Definition, case: str) -> None:
    """One case in this process, by the name that a failure has. Raises what it raised."""
    world = begun(definition)
    try:
        for part in case.split(THEN):
            place = world.next_place()
            while place is not None and not part.startswith(f"{place}: "):
                place = world.next_place()
            if place is None:
                raise KeyError(f"{definition.name} has no place for {part!r}")
            name = part.removeprefix(f"{place}: ")
            next(d for d in disturbances(world, place) if d.name == name).act(world)
        finish(world)
    finally:
        print("\n".join(world.history))


def _walk(world: World, made: Walked, before: str = "") -> None:
    """To the end of the job; `before` names the disturbance that this way began with."""
    while (place := world.next_place()) is not None:
        if place == FIRST:
            world.demand_plan()
        world.demand_shown()
        for each in chosen(world, place):
            _in_a_copy(lambda each=each, place=place: _case(world, place, each, before), made)  # type: ignore[misc]
    finish(world)
    demand_told(world)
    made.cases += 1


def _case(world: World, place: Place, disturbance: Disturbance, before: str) -> Walked:
    """One case; the last cancel that is possible walks all the way back, unless the job will go
    that way by itself."""
    made = Walked()
    name = f"{before}{place}: {disturbance.name}"
    last = place.step == world.definition.point and can_turn_back(world, place)
    walks = disturbance.turns and last and world.definition.ends != "failed"
    try:
        disturbance.act(world)
        if walks:
            _walk(world, made, name + THEN)
        else:
            finish(world)
            made.cases += 1
    except Exception:  # noqa: BLE001  the other cases go on
        made.cases += 1
        made.wrong[name] = "\n".join((*world.history, traceback.format_exc()))
    return made


def _in_a_copy(case: Callable[[], Walked], made: Walked) -> None:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        # The copy must never come back into whoever called: its last act is to be gone.
        try:
            gc.disable()
            done = case()
            with os.fdopen(writer, "w") as out:
                json.dump([done.cases, done.wrong], out)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as source:
        told = source.read()
    os.waitpid(child, 0)
    if not told:
        raise Harm("matrix: a case ended without a word")
    cases, wrong = json.loads(told)
    made.cases += cases
    made.wrong |= wrong
