"""One fast path, and a user that does with it whatever its rules allow at any time.

What is real: the state machine (`FastPath`). What the model adds is the user, who counts, probes,
publishes, restarts it for another peer and leaves it for any reason, and takes each word about what
he has published as `FastAcks` does; and the world, in which such a word comes at any time, in any
order, again, for what was given up long ago, or never, and says anything.

Beside the machine stands what its promises P1 to P4 say of the same story, written down in another
way. Time is a small number of milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from leasehold.model.time_units import NS_PER_MS
from leasehold.replication.fast_path.state_machine import FastPath, Pause
from tests.models.frozen import Frozen

FIRST_MS: Final = 1
MOST_MS: Final = 2
ROW_MIN: Final = 2
BEGIN_MS: Final = 10


@dataclass(frozen=True, slots=True)
class Bounds:
    """`ticks` of time; `runs` of numbers, `numbers` of each; `unconfirmed` at a time;
    `restarts` for another peer."""

    ticks: int = 4
    runs: int = 2
    numbers: int = 2
    unconfirmed: int = 2
    restarts: int = 1

    def words(self) -> str:
        return (
            f"{self.ticks} ticks, {self.runs} runs of {self.numbers} numbers,"
            f" {self.unconfirmed} unconfirmed, {self.restarts} restarts"
        )


class Story(NamedTuple):
    """`shut_until`: the path may not be tried before. `pause`: after the last fault, 0 = none that
    counts. `good_since`: when it was last entered or could be tried again. `wanted`: the number
    that is next in the run. `unconfirmed`: (run, number). `harm`: what broke a promise."""

    shut_until: int = 0
    pause: int = 0
    good_since: int = 0
    wanted: int = 0
    unconfirmed: tuple[tuple[int, int], ...] = ()
    harm: str = ""


class World(NamedTuple):
    path: Frozen
    now: int
    story: Story
    published: frozenset[tuple[int, int]]  # whatever is heard of them
    restarts: int


def made(kind: type[FastPath] = FastPath) -> FastPath:
    return kind(pause_ms=FIRST_MS, pause_ms_max=MOST_MS, row_min=ROW_MIN, apart_ms=1, answer_ms=1)


@dataclass
class Model:
    kind: type[FastPath] = FastPath
    bounds: Bounds = Bounds()

    def starts(self) -> list[tuple[str, World]]:
        world = World(Frozen(made(self.kind)), BEGIN_MS, Story(), frozenset(), 0)
        return [("nothing has come yet", world)]

    def invariant(self, world: World) -> str | None:
        path, story = world.path.of, world.story
        if story.harm:
            return story.harm
        if path.taken and path.probing:
            return "it is taken, and probed still"
        if not path.taken and not path.probing:
            if path.overdue_at_ns() is not None:
                return "P2: it was left, and something is unconfirmed"
            later_ns = (world.now + MOST_MS) * NS_PER_MS
            if not path.is_ready(later_ns, missing=ROW_MIN):
                return "P3: it is never tried again"
        return None

    # ------------------------------------------------------------ what may happen

    def successors(self, world: World) -> Iterator[tuple[str, World]]:
        if world.story.harm:
            return
        path, now_ns = world.path.of, world.now * NS_PER_MS
        if world.now < BEGIN_MS + self.bounds.ticks:
            yield "time passes", world._replace(now=world.now + 1)
        if path.row < ROW_MIN or path.last_ns != now_ns:  # more of them change nothing
            yield "one comes", self._after(world, _lengthen_row)
        if path.is_ready(now_ns):
            yield "it is entered", self._enters(world)
            if path.run < self.bounds.runs:
                yield "it is probed", self._probes(world)
        few = len(world.story.unconfirmed) < self.bounds.unconfirmed
        few = few and world.story.wanted < self.bounds.numbers
        if (path.taken or path.probing) and few:
            yield "something is published", self._publishes(world)
        for run, number in sorted(world.published):
            for received in (True, False):
                yield (
                    f"{number} of run {run} was {'' if received else 'not '}received",
                    self._hears(world, run, number, received=received),
                )
        if path.taken or path.probing:
            for pause in Pause:
                yield f"it is left: {pause.value}", self._leaves(world, pause)
        if path.is_overdue(now_ns) != self._is_overdue(world):
            yield "it is overdue", self._harmed(world, "what is overdue is not, or the reverse")
        if world.restarts < self.bounds.restarts:
            yield "another peer", self._restarts(world)

    def _is_overdue(self, world: World) -> bool:
        """By what the path says when its oldest publication was made; that it is one that is
        unconfirmed `_hears` watches."""
        overdue_ns = world.path.of.overdue_at_ns()
        return bool(world.story.unconfirmed) and overdue_ns <= world.now * NS_PER_MS

    def _after(self, world: World, act: Any, *arguments: Any) -> World:
        path = world.path.opened()
        try:
            act(path, world.now * NS_PER_MS, *arguments)
        except AssertionError as error:
            return self._harmed(world, f"{error}: asserted")
        return world._replace(path=Frozen(path))

    def _harmed(self, world: World, harm: str) -> World:
        return world._replace(story=world.story._replace(harm=harm))

    def _tries(self, world: World) -> World:
        if world.now < world.story.shut_until:
            return self._harmed(world, "P1: it is tried before its back-off is over")
        return world

    def _enters(self, world: World) -> World:
        world = self._after(self._tries(world), type(world.path.of).enter)
        return world._replace(story=world.story._replace(good_since=world.now))

    def _probes(self, world: World) -> World:
        world = self._after(self._tries(world), _begin_probe)
        return world._replace(story=world.story._replace(wanted=0))

    def _publishes(self, world: World) -> World:
        path, story = world.path.opened(), world.story
        number = path.publish(world.now * NS_PER_MS)
        name = path.run, number
        if number != story.wanted:
            return self._harmed(world, f"P4: {number} is published where {story.wanted} is next")
        story = story._replace(wanted=number + 1, unconfirmed=(*story.unconfirmed, name))
        return world._replace(path=Frozen(path), story=story, published=world.published | {name})

    def _hears(self, world: World, run: int, number: int, *, received: bool) -> World:
        """As the users do: a word of another run is passed over."""
        path, story = world.path.opened(), world.story
        if run != path.run:
            return world
        known = path.confirm(number)
        if known != ((run, number) in story.unconfirmed):
            return self._harmed(world, f"P2: {number} of run {run} is known: {known}")
        left = tuple(name for name in story.unconfirmed if name[1] > number)
        after = world._replace(path=Frozen(path), story=story._replace(unconfirmed=left))
        if not known:
            return after
        if not received:
            return self._leaves(after, Pause.FAULT)
        if not path.taken:
            after = self._enters(after)
        after = self._after(after, _forgive)
        return after._replace(story=after.story._replace(pause=0))

    def _leaves(self, world: World, pause: Pause) -> World:
        story = world.story._replace(unconfirmed=())
        if pause is Pause.ONCE:
            shut = max(story.shut_until, world.now + FIRST_MS)
            story = story._replace(shut_until=shut)
        elif pause is Pause.FAULT:
            soon = world.now - max(story.good_since, story.shut_until) < MOST_MS
            length = min(2 * story.pause, MOST_MS) if story.pause and soon else FIRST_MS
            story = story._replace(pause=length, shut_until=world.now + length)
        return self._after(world._replace(story=story), type(world.path.of).leave, pause)

    def _restarts(self, world: World) -> World:
        story = world.story._replace(shut_until=world.now, pause=0, unconfirmed=())
        world = world._replace(story=story, restarts=world.restarts + 1)
        return self._after(world, type(world.path.of).restart)


def _lengthen_row(path: FastPath, now_ns: int) -> None:
    path.count(now_ns)
    path.row = min(path.row, ROW_MIN)


def _begin_probe(path: FastPath, now_ns: int) -> None:
    path.begin_run()
    path.probe(now_ns)


def _forgive(path: FastPath, _now_ns: int) -> None:
    path.forgive()
