"""What is broken when: drawn from a seed, written as JSON, shrunk. PURE, but for reading the files
of those that have found something."""

from __future__ import annotations

import json
import random
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from tests.faults.kinds import KINDS, LOSE_RECORDS, OF_SEVERAL_BROKERS, TWO_MASTERS, Kind
from tests.faults.parts import KAFKA, REDIS, SETS, Parts

FORMAT: Final = 1
FOUND: Final = Path(__file__).with_name("found")
"""Schedules that have found a defect: seeds draw others whenever there is a new kind of fault."""
SPAN_MS: Final = 3_000
"""Faults begin within so long after the clients; each ends by itself. More than `EVENTS_MAX` have
as much more time."""
EVENTS_MAX: Final = 4
LEVELS: Final = ("default", "read committed", "snapshot", "serializable", "linearizable")


class NotASchedule(Exception):
    """A file that holds no schedule; says why."""


@dataclass(frozen=True, slots=True)
class Event:
    """A fault of `kind` that befalls `who`, from `at_ms` on for `for_ms`."""

    at_ms: int
    kind: str
    who: str
    for_ms: int
    detail: Mapping[str, Any] = field(default_factory=dict)

    @property
    def end_ms(self) -> int:
        """Return when it is mended."""
        return self.at_ms + self.for_ms

    def __str__(self) -> str:
        more = "".join(f" {name}={value}" for name, value in self.detail.items())
        return f"{self.kind} {self.who} at {self.at_ms} ms for {self.for_ms} ms{more}"


@dataclass(frozen=True, slots=True)
class Schedule:
    """The faults of one round, and what its clients do."""

    seed: int
    parts: str
    levels: tuple[str, ...]
    """Of the list-append transactions: each round has two, so that each has clients enough."""
    events: tuple[Event, ...]

    def to_json(self) -> str:
        """Return it as it is written to a file."""
        events = [
            {
                "at_ms": event.at_ms,
                "kind": event.kind,
                "who": event.who,
                "for_ms": event.for_ms,
                "detail": dict(event.detail),
            }
            for event in self.events
        ]
        body = {"format": FORMAT, "seed": self.seed, "parts": self.parts}
        return json.dumps({**body, "levels": list(self.levels), "events": events}, indent=1)


def kinds_of(
    parts: Parts, without: Collection[str] = (), only: Collection[str] = ()
) -> tuple[str, ...]:
    """Return the kinds of which faults may befall a set."""
    lacking = set(without)
    there = (k for k in KINDS.values() if not {k.name, k.needs} & lacking and k.whom(parts))
    return tuple(kind.name for kind in there if not only or kind.name in only)


def draw(
    seed: int,
    parts: Parts,
    without: Collection[str] = (),
    events: int = 0,
    only: Collection[str] = (),
) -> Schedule:
    """Return the schedule of `seed`. `without`: what the machine lacks (`Kind.needs`), or kinds to
    leave out. `events`: how many, 0 = drawn, too. `only`: of these kinds, () = of all."""
    rng = random.Random(f"{seed}/{parts.name}")
    kinds = [KINDS[name] for name in kinds_of(parts, without, only)]
    # Swarm testing: a round without some kinds reaches states that one with all never does.
    kinds = [kind for kind in kinds if rng.random() < 0.6] or kinds
    count = events or rng.choice((1, 2, 2, 2, 3, EVENTS_MAX))
    span_ms = SPAN_MS * max(1, count // EVENTS_MAX)
    made = (_event(rng, kinds, parts, span_ms) for _ in range(count))
    drawn = sorted(made, key=lambda event: event.at_ms)
    levels = tuple(sorted(rng.sample(LEVELS, 2), key=LEVELS.index))
    return Schedule(seed, parts.name, levels, _apart(_bearable(drawn), parts))


def _event(rng: random.Random, kinds: list[Kind], parts: Parts, span_ms: int) -> Event:
    (kind,) = rng.choices(kinds, [kind.weight for kind in kinds])
    who = rng.choice(list(kind.whom(parts)))
    at_ms = rng.randrange(span_ms)
    return Event(at_ms, kind.name, who, rng.randint(*kind.for_ms), kind.detail(rng))


def _bearable(events: list[Event]) -> list[Event]:
    """Leave out what nobody promises to survive: a record is on two of three disks, so beside one
    that has lost some no other broker may be away."""
    lost = next((event for event in events if event.kind in LOSE_RECORDS), None)
    if lost is None:
        return events
    return [event for event in events if event is lost or event.kind not in OF_SEVERAL_BROKERS]


def _apart(events: list[Event], parts: Parts) -> tuple[Event, ...]:
    """Put off whatever would befall a process, or a link, that another fault still has: what is
    killed can't be paused."""
    free_at: dict[str, int] = {}
    placed = []
    for event in events:
        place = _place_of(event, parts)
        at_ms = max(event.at_ms, free_at.get(place, 0))
        moved = replace(event, at_ms=at_ms)
        free_at[place] = moved.end_ms + 1
        placed.append(moved)
    return tuple(sorted(placed, key=lambda event: event.at_ms))


def _place_of(event: Event, parts: Parts) -> str:
    """Return what a fault has for itself: brokers one at a time, as two of three have to be there
    and in time; of a process's links those to them all or one; of Redis one server, since the other
    one is its replica."""
    process, _, server = event.who.partition("-")
    if event.kind in OF_SEVERAL_BROKERS or event.who in parts.broker_names:
        return KAFKA
    if event.who in parts.redis_names or event.kind == TWO_MASTERS:
        return REDIS
    if process in parts.processes and server.startswith(KAFKA):
        return f"{process}-{KAFKA}"
    return event.who


def read_schedule(text: str) -> Schedule:
    """Return the schedule that was written as `text`. Raises NotASchedule."""
    try:
        body = json.loads(text)
        if body["format"] != FORMAT:
            raise NotASchedule(f"its format is {body['format']!r}, this program reads {FORMAT}")
        events = tuple(
            Event(int(e["at_ms"]), str(e["kind"]), str(e["who"]), int(e["for_ms"]), e["detail"])
            for e in body["events"]
        )
        made = Schedule(int(body["seed"]), str(body["parts"]), tuple(body["levels"]), events)
    except (ValueError, KeyError, TypeError) as error:
        raise NotASchedule(f"it is no schedule ({type(error).__name__}: {error})") from error
    if made.parts not in SETS:
        raise NotASchedule(f"there is no set of parts {made.parts!r}; there are: {', '.join(SETS)}")
    for event in made.events:
        kind = KINDS.get(event.kind)
        if kind is None:
            raise NotASchedule(f"there is no kind of fault {event.kind!r}")
        if event.who not in kind.whom(SETS[made.parts]):
            raise NotASchedule(f"{event.kind} can't befall {event.who!r}")
    return made


def found_schedules() -> dict[str, Schedule]:
    """Return the schedules that have found a defect, by what it was."""
    return {path.stem: read_schedule(path.read_text("utf-8")) for path in FOUND.glob("*.json")}


def smaller(schedule: Schedule) -> Iterator[Schedule]:
    """Yield schedules with less in them, the ones with fewest events first."""
    events = schedule.events
    if len(events) > 2:
        half = len(events) // 2
        yield replace(schedule, events=events[:half])
        yield replace(schedule, events=events[half:])
    if len(events) > 1:
        for left_out in range(len(events)):
            yield replace(schedule, events=events[:left_out] + events[left_out + 1 :])
    for place, event in enumerate(events):
        if event.for_ms > 400:
            shorter = replace(event, for_ms=event.for_ms // 2)
            yield replace(schedule, events=(*events[:place], shorter, *events[place + 1 :]))
