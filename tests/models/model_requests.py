"""Requests told through Redis and asked through Kafka: one requester, masters one after the other.

What is real: how a request goes and what is asked again (`RequestPath`), what a master takes of
what it is told (`ReceivedRequests`). What the model adds is the world: what is told is heard at any
time, in any order, again or never; Redis says who listened, or says nothing; Kafka keeps its order;
a master is followed by another at any time, which begins in the queue where the log says, gives
again what the log says that somebody waits for on `results` (L7), and knows nothing of who was to
be told, or was to be given a remembered answer.

Time stands still while anything is under way, and is over in one step (`patience`) when nothing is;
only what is held back may have been so for too long at any time, which counts as a loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Final, NamedTuple

from leasehold.model.records.requests import Outcome
from leasehold.model.time_units import NS_PER_MS
from leasehold.replication.fast_path.log import Term
from leasehold.replication.fast_path.requests import (
    Asking,
    FastRequestSettings,
    ReceivedRequests,
    RequestPath,
)
from leasehold.replication.fast_path.state_machine import NOT_PUBLISHED
from tests.models.frozen import Frozen

HOLD_MS: Final = 1
SETTINGS: Final = FastRequestSettings(
    row_min=1, apart_ms=10**6, hold_after_ms=0, hold_ms=HOLD_MS, pause_ms=0, pause_ms_max=0
)
ASKER: Final = b"requester"
PATIENCE_NS: Final = 30_000 * NS_PER_MS
"""So long that all who wait are tired of it."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """`requests` asked one by one; `losses` of what is told and of answers; `terms` of masters;
    `again`: how often something that was told is heard once more."""

    requests: int = 3
    losses: int = 1
    terms: int = 2
    again: int = 1

    def words(self) -> str:
        return ", ".join(f"{value} {name}" for name, value in asdict(self).items() if value)


class Telling(NamedTuple):
    term: int
    run: int
    number: int
    requests: tuple[int, ...]


class Decision(NamedTuple):
    """`waits`: the log says that somebody waits for it on `results`."""

    request: int
    waits: bool


class World(NamedTuple):
    ways: Any  # Frozen
    held: tuple[int, ...]  # back by them
    heard: Any  # Frozen, of the master
    sent: int
    term: int
    told: frozenset[Telling]  # under way
    published: frozenset[Telling]  # Redis has still to say who listened
    topic: tuple[int, ...]  # requests on Kafka
    decided: int  # how many of those are
    log: tuple[Decision, ...]
    to_tell: tuple[int, ...]  # answers that the master is to tell
    to_give: tuple[int, ...]  # and those for `results`
    results: tuple[tuple[int, int], ...]  # (request, term) there, not read
    told_answers: frozenset[int]  # under way
    handed_on: tuple[int, ...]
    losses: int
    again: int
    now: int


def _id(request: int) -> bytes:
    return bytes([request])


class Moved(NamedTuple):
    """What has become of a requester's ways, and what is to be done then, in this order."""

    ways: Frozen
    news: bool
    again: tuple[int, ...]
    asking: Asking | None
    term: int


def _term(number: int) -> Term:
    return number, b"master"


Act = Callable[..., Asking | bool | None]
"""Of a requester, at a time. An answer says whether it is news, a request how all go now."""


def _ask(ways: RequestPath, now: int, request: int) -> Asking:
    return ways.ask((_id(request),), 1, now, connected=True)


def _hear(ways: RequestPath, now: int, run: int, number: int, heard: bool) -> None:
    ways.confirm(run, number, now, received=heard)


def _answer(ways: RequestPath, now: int, request: int, told: bool, term: int) -> bool:
    news = ways.answered(_id(request), Outcome(1, request + 1, 1, 0, True), now, published=told)
    if not told:
        ways.follow(_term(term), now)
    return news


@dataclass
class Model:
    bounds: Bounds = field(default_factory=Bounds)
    _moves: dict[tuple[Any, ...], Moved] = field(default_factory=dict)

    def starts(self) -> list[tuple[str, World]]:
        """The requester knows the master of term 1 from an answer before."""
        ways = RequestPath(SETTINGS)
        ways.follow(_term(1), 1)
        heard = Frozen(ReceivedRequests())
        nothing: frozenset[Any] = frozenset()
        world = World(
            *(Frozen(ways), (), heard, 0, 1, nothing, nothing, (), 0),
            *((), (), (), (), nothing, (), 0, 0, 2),
        )
        return [("the requester knows its master", world)]

    def invariant(self, world: World) -> str | None:
        order = [decision.request for decision in world.log]
        if order != sorted(order):
            return f"requests are decided in the order {order}"
        if len(set(world.handed_on)) != len(world.handed_on):
            return f"an answer is handed on twice: {world.handed_on}"
        return None

    def unanswered(self, world: World) -> str | None:
        """Of a state in which nothing more can happen."""
        missing = set(range(world.sent)) - set(world.handed_on)
        return f"no answer to {sorted(missing)}, ever" if missing else None

    # ------------------------------------------------------------ what may happen

    def successors(self, world: World) -> Iterator[tuple[str, World]]:
        found = list(self._steps(world))
        yield from found
        idle = all(label.startswith(("asks", "another")) for label, _ in found)
        if idle and (world.ways.of.asks or world.ways.of.awaits_kafka):
            now = world.now + PATIENCE_NS
            after = self._requester(world._replace(now=now), RequestPath.tick)
            if after._replace(now=world.now) != world:
                yield "patience is over", after

    def _steps(self, world: World) -> Iterator[tuple[str, World]]:
        if world.sent < self.bounds.requests:
            yield f"asks {world.sent}", self._asks(world)
        if world.held and world.losses < self.bounds.losses:
            now = world.now + HOLD_MS * NS_PER_MS
            after = world._replace(now=now, losses=world.losses + 1)
            yield f"{world.held} is held no longer", self._requester(after, RequestPath.tick)
        for telling in world.told:
            yield f"hears {telling}", self._hears(world, telling, keeps=False)
            if world.again < self.bounds.again:
                more = world._replace(again=world.again + 1)
                yield (
                    f"hears {telling}, not for the last time",
                    self._hears(more, telling, keeps=True),
                )
            if world.losses < self.bounds.losses:
                lost = world._replace(told=world.told - {telling}, losses=world.losses + 1)
                yield f"{telling} is lost", lost
        for telling in world.published:
            yield from self._redis_says(world, telling)
        if world.decided < len(world.topic):
            request = world.topic[world.decided]
            after = world._replace(decided=world.decided + 1)
            yield f"reads {request} from Kafka", self._decides(after, request, told=False)
        for request in dict.fromkeys(world.to_tell):
            yield from self._tells(world, request)
        if world.to_give:
            given = (world.to_give[0], world.term)
            after = world._replace(to_give=world.to_give[1:], results=(*world.results, given))
            yield f"gives the answer to {given[0]}", after
        if world.results:
            request, term = world.results[0]
            after = world._replace(results=world.results[1:])
            yield (
                f"the requester reads {request}",
                self._answered(after, request, told=False, term=term),
            )
        for request in world.told_answers:
            after = world._replace(told_answers=world.told_answers - {request})
            yield (
                f"the requester is told {request}",
                self._answered(after, request, told=True, term=0),
            )
        if world.term < self.bounds.terms:
            yield "another master", self._follows(world)

    def _asks(self, world: World) -> World:
        request = world.sent
        after = world._replace(sent=request + 1, held=(*world.held, request))
        return self._requester(after, _ask, request)

    def _hears(self, world: World, telling: Telling, *, keeps: bool) -> World:
        if not keeps:
            world = world._replace(told=world.told - {telling})
        if telling.term != world.term:
            return world
        heard = world.heard.opened()
        accepted = heard.accepts(ASKER, telling.run, telling.number)
        world = world._replace(heard=Frozen(heard))
        if accepted:
            for request in telling.requests:
                world = self._decides(world, request, told=True)
        return world

    def _redis_says(self, world: World, telling: Telling) -> Iterator[tuple[str, World]]:
        after = world._replace(published=world.published - {telling})
        listens = telling.term == world.term
        words = "somebody" if listens else "nobody"
        yield (
            f"Redis says that {words} listened to {telling}",
            self._requester(after, _hear, telling.run, telling.number, listens),
        )
        if not listens:
            return
        if world.losses < self.bounds.losses:
            gone = after._replace(losses=world.losses + 1, told=world.told - {telling})
            yield (
                f"the connection is lost behind {telling}",
                self._requester(gone, RequestPath.lost),
            )

    def _decides(self, world: World, request: int, *, told: bool) -> World:
        known = {decision.request for decision in world.log}
        if request not in known:  # L5
            world = world._replace(log=(*world.log, Decision(request, not told)))
        if told:
            return world._replace(to_tell=(*world.to_tell, request))
        return world._replace(to_give=(*world.to_give, request))

    def _tells(self, world: World, request: int) -> Iterator[tuple[str, World]]:
        left = list(world.to_tell)
        left.remove(request)
        after = world._replace(to_tell=tuple(left))
        yield (
            f"tells the answer to {request}",
            after._replace(told_answers=world.told_answers | {request}),
        )
        if world.losses < self.bounds.losses:
            yield f"tells nobody of {request}", after._replace(losses=world.losses + 1)

    def _follows(self, world: World) -> World:
        """L3, L7: what the log says. A remembered answer that was asked for is no part of it."""
        waits = [d.request for d in world.log if d.waits]
        given = {request for request, _ in world.results} | set(world.handed_on)
        return world._replace(
            term=world.term + 1,
            heard=Frozen(ReceivedRequests()),
            to_tell=(),
            to_give=tuple(request for request in waits if request not in given),
        )

    # ------------------------------------------------------------ the requester

    def _answered(self, world: World, request: int, *, told: bool, term: int) -> World:
        moved = self._moved(world, _answer, request, told, term)
        handed_on = (*world.handed_on, request) if moved.news else world.handed_on
        return self._after(world._replace(handed_on=handed_on), moved)

    def _requester(self, world: World, act: Act, *arguments: int) -> World:
        return self._after(world, self._moved(world, act, *arguments))

    def _moved(self, world: World, act: Act, *arguments: int) -> Moved:
        """Remembered: a requester is in few states, each of them in very many of the world's."""
        key = (world.ways, world.now, act, arguments)
        if key not in self._moves:
            ways = world.ways.opened()
            said = act(ways, world.now, *arguments)
            asking = said if isinstance(said, Asking) else ways.release(world.now, connected=True)
            again = tuple(request_id[0] for request_id in ways.again)
            ways.again.clear()
            self._moves[key] = Moved(Frozen(ways), said is True, again, asking, ways.term[0])
        return self._moves[key]

    def _after(self, world: World, moved: Moved) -> World:
        """What is to be asked again is, and then what was held back goes."""
        asking, group = moved.asking, world.held
        world = world._replace(ways=moved.ways, topic=(*world.topic, *moved.again))
        if asking is None or asking.held:
            return world
        if asking.number != NOT_PUBLISHED:
            telling = Telling(moved.term, asking.run, asking.number, group)
            world = world._replace(
                told=world.told | {telling}, published=world.published | {telling}
            )
        by_kafka = group if asking.by_kafka else ()
        return world._replace(held=(), topic=(*world.topic, *by_kafka))
