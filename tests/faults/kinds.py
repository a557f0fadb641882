"""The kinds of fault: whom each may befall, for how long, and what is promised then. PURE.

What a kind does is in `injection.py`. A promise is an upper bound in ms, on a machine whose
processors are shared, of the longest wait from the fault's begin until it is over: a writer's, and
a reader's at a replica that the fault does not touch. None: as long as the fault lasts. And of the
time from its end until everything is coherent.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from infra.kafka.brokers import ONE
from infra.kafka.settings import SESSION_MS
from infra.redis.servers import SINGLE
from tests.faults.parts import KAFKA, REDIS, Parts

SESSION_TTL_MS: Final = 3_000
"""Of the harness's clusters: short, as a ledger that has lost its state is waited for so long."""
ELECTION_MS: Final = 2_000
LEASE_MS: Final = 600
"""The duration of a coherency lease and what is added to it (C4)."""
ROOM_MS: Final = 2_500
"""What a machine with two processors and seven services needs beside a protocol's time."""

CONTROLLER: Final = "controller"
"""Whichever of several brokers is that when the fault begins."""
QUORUM_MS: Final = 3_500
"""Until another controller begins, where the broker that is gone was that."""
LED_AGAIN_MS: Final = QUORUM_MS + SESSION_MS + 2_000
"""Until what a broker of several led is led by another one: it is silent for a session of the
controller's, which may be a new one, then the others elect and clients learn of it."""
Detail = Mapping[str, Any]
Draw = Callable[[random.Random], dict[str, Any]]


def _nothing(_: random.Random) -> dict[str, Any]:
    return {}


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of fault.

    `whom`: names or links (`process-server`) of a set that it may befall. `for_ms`: the shortest
    and longest time until it is mended. `writer_ms`, `reader_ms`: the promises. `needs`: what the
    machine must have: `cc` (a C compiler).
    """

    name: str
    weight: int
    whom: Callable[[Parts], Sequence[str]]
    for_ms: tuple[int, int]
    writer_ms: int | None
    reader_ms: int | None
    detail: Draw = _nothing
    needs: str = ""

    @property
    def coherent_ms(self) -> int:
        """Return within how long after it is mended everything is to be coherent again."""
        if self.name == TWO_MASTERS:
            return DEMOTED_MS
        if self.name in COPIES:
            return COPIED_MS
        return STARTED_MS if self.name in STARTS_ANEW else CAUGHT_UP_MS


def _processes(parts: Parts) -> Sequence[str]:
    return parts.processes


def _services(parts: Parts) -> Sequence[str]:
    """Processes of the product alone, without those that have a replica or an agent in them."""
    others = (*parts.embedded, *parts.followers)
    return tuple(name for name in parts.processes if name not in others)


def _nodes(parts: Parts) -> Sequence[str]:
    return parts.nodes


def _links(parts: Parts) -> Sequence[str]:
    return tuple(f"{process}-{server}" for process, server in parts.links)


def _kafka(parts: Parts) -> Sequence[str]:
    """The one broker; none where others go on without one."""
    return (KAFKA,) if parts.brokers == ONE else ()


def _one_broker(parts: Parts) -> Sequence[str]:
    return () if parts.brokers == ONE else parts.broker_names


def _peers(parts: Parts) -> Sequence[str]:
    return parts.peer_links


def _controller(parts: Parts) -> Sequence[str]:
    return () if parts.brokers == ONE else (CONTROLLER,)


def _brokers(parts: Parts) -> Sequence[str]:
    return parts.broker_names


def _redis(_: Parts) -> Sequence[str]:
    return (REDIS,)


def _redis_server(parts: Parts) -> Sequence[str]:
    return parts.redis_names


def _failover(parts: Parts) -> Sequence[str]:
    return () if parts.redis == SINGLE else (REDIS,)


def _stays(parts: Parts) -> Sequence[str]:
    """Who may go on with a Redis that the others take for gone."""
    return () if parts.redis == SINGLE else parts.processes


def _machine(_: Parts) -> Sequence[str]:
    return ("machine",)


def _clocked(parts: Parts) -> Sequence[str]:
    return (*parts.processes, *parts.redis_names)


def _filled(parts: Parts) -> Sequence[str]:
    """The topic by which Spark sends what it fills."""
    return ("backfill",) if parts.has_spark else ()


def _topics(_: Parts) -> Sequence[str]:
    return ("requests", "backfill", "acks", "log")


def _cut(rng: random.Random) -> dict[str, Any]:
    return {"way": rng.choice(("up", "down", "both"))}


def _delay(rng: random.Random) -> dict[str, Any]:
    late_ms = rng.choice((20, 100, 400))
    return {"way": rng.choice(("up", "down", "both")), "late_ms": late_ms, "jitter_ms": late_ms}


def _copied_badly(rng: random.Random) -> dict[str, Any]:
    """How those who hand out copies are disturbed, while somebody needs one."""
    how = rng.choice(("cut", "throttle", "delay", "refuse"))
    return {"how": how, **_DRAWN[how](rng)}


def _bursts(rng: random.Random) -> dict[str, Any]:
    return {"way": rng.choice(("up", "down", "both")), "burst_ms": rng.choice((50, 300, 1_000))}


def _throttle(rng: random.Random) -> dict[str, Any]:
    return {"way": rng.choice(("up", "down", "both")), "kb_per_s": rng.choice((2, 10, 50))}


_DRAWN: Final[Mapping[str, Draw]] = {
    "cut": _cut,
    "throttle": _throttle,
    "delay": _delay,
    "refuse": _nothing,
}


def _jump(rng: random.Random) -> dict[str, Any]:
    return {"ahead_s": rng.choice((-86_400, -600, -40, -2, 2, 40, 600, 86_400))}


def _rate(rng: random.Random) -> dict[str, Any]:
    return {"ppm": rng.choice((-10_000, 10_000))}


def _burners(rng: random.Random) -> dict[str, Any]:
    return {"burners": rng.choice((2, 4, 8))}


def _poison(rng: random.Random) -> dict[str, Any]:
    return {"seed": rng.randrange(1 << 30), "records": rng.choice((1, 5, 40))}


def _slow_disk(rng: random.Random) -> dict[str, Any]:
    return {"sync_ms": rng.choice((20, 100, 400)), "write_us": rng.choice((0, 500, 5_000))}


def _memory(rng: random.Random) -> dict[str, Any]:
    return {"room_mb": rng.choice((0, 2, 16))}


def _tear(rng: random.Random) -> dict[str, Any]:
    return {"seed": rng.randrange(1 << 30)}


def _tail(rng: random.Random) -> dict[str, Any]:
    return {"lost_bytes": rng.choice((1, 300, 20_000))}


def _lag(rng: random.Random) -> dict[str, Any]:
    return {"lag_ms": rng.choice((100, 400, 1_000))}


ANY_MASTER_MS: Final = ELECTION_MS + LEASE_MS + ROOM_MS
"""Whoever is hit may be the master, whose successor begins after an election."""
CAUGHT_UP_MS: Final = 6_000
"""A process that was there all the while: it connects again, is told what it has missed, and gets a
lease; a follower's session may have ended meanwhile, which a ledger waits for once."""
STARTED_MS: Final = 20_000
"""A process that is started anew, interpreted."""
COPIED_MS: Final = 30_000
"""One that takes a copy of a store first, or a broker, which looks through its log."""
DEMOTED_MS: Final = 40_000
"""Sentinels tell a second master that it is a replica once they have seen it as one for 8 s, and
look every 10 s; who goes on with it has no lease until then."""

LED_AGAIN: Final = (LED_AGAIN_MS + ANY_MASTER_MS, LED_AGAIN_MS + ANY_MASTER_MS)
ROOM: Final = (ROOM_MS, ROOM_MS)
DISK_LOST: Final = "broker_disk"
SYNC_FAILS: Final = "sync_fails"
WRITE_FAILS: Final = "write_fails"
SHORT_OF_MEMORY: Final = "short_of_memory"
TAIL_LOST: Final = "broker_tail"
TWO_MASTERS: Final = "redis_two_masters"
"""Everybody but one process loses the master of Redis, and Sentinels make another one."""
COPIED_BADLY: Final = "copied_badly"
"""Somebody has lost its disk, and whoever has a copy for it is hard to reach."""
PEER_KINDS: Final[Mapping[str, str]] = {"peers_cut": "cut", "peers_delay": "delay"}
"""What befalls the links by which brokers reach one of them, and what that is of any link."""
CLOCKS: Final = frozenset({"clock_jump", "broker_clock", "clock_rate"})
"""What moves clocks."""
BROKER_FULL: Final = "broker_full_disk"
ENDS_ITS_PROCESS: Final = frozenset(
    {"full_disk", BROKER_FULL, SYNC_FAILS, WRITE_FAILS, SHORT_OF_MEMORY}
)
"""Who can't write, or has no memory, says so and ends, rather than go on with what it might not
have."""
STARTS_ANEW: Final = frozenset(
    {"kill", "stop", "torn_pages", "redis_kill", "redis_empty", "redis_tail", "redis_sync_fails"}
    | {"redis_failover", *ENDS_ITS_PROCESS}
)
COPIES: Final = frozenset(
    {"older_disk", "empty_disk", COPIED_BADLY, "broker_kill", "one_broker_kill", "controller_kill"}
    | {DISK_LOST, TAIL_LOST, BROKER_FULL, "broker_clock"}
)
LINK_KINDS: Final = ("cut", "delay", "reorder", "throttle", "reset", "refuse")
"""What befalls links."""
LOSE_RECORDS: Final = frozenset({DISK_LOST, TAIL_LOST})
OF_SEVERAL_BROKERS: Final = frozenset(
    {"one_broker_kill", "one_broker_pause", "controller_kill", BROKER_FULL}
    | {*PEER_KINDS, *LOSE_RECORDS}
)

KINDS: Final[Mapping[str, Kind]] = {
    kind.name: kind
    for kind in (
        Kind("kill", 12, _processes, (0, 2_500), ANY_MASTER_MS, LEASE_MS + ROOM_MS),
        Kind("stop", 6, _processes, (0, 2_000), ROOM_MS, ROOM_MS),
        Kind("pause", 12, _processes, (200, 4_500), ANY_MASTER_MS, LEASE_MS + ROOM_MS),
        Kind("cut", 16, _links, (200, 4_500), ANY_MASTER_MS, LEASE_MS + ROOM_MS, _cut),
        Kind("delay", 8, _links, (500, 4_000), ANY_MASTER_MS, LEASE_MS + ROOM_MS, _delay),
        Kind("reorder", 5, _links, (500, 4_000), ANY_MASTER_MS, LEASE_MS + ROOM_MS, _bursts),
        Kind("throttle", 4, _links, (500, 4_000), ANY_MASTER_MS, LEASE_MS + ROOM_MS, _throttle),
        Kind("reset", 6, _links, (200, 300), ANY_MASTER_MS, LEASE_MS + ROOM_MS),
        Kind("refuse", 5, _links, (200, 4_000), ANY_MASTER_MS, LEASE_MS + ROOM_MS),
        Kind("older_disk", 4, _nodes, (0, 1_500), ANY_MASTER_MS, LEASE_MS + ROOM_MS),
        Kind("empty_disk", 4, _nodes, (0, 1_500), ANY_MASTER_MS, LEASE_MS + ROOM_MS),
        Kind(
            COPIED_BADLY,
            3,
            _nodes,
            (2_500, 6_000),
            ANY_MASTER_MS,
            LEASE_MS + ROOM_MS,
            _copied_badly,
        ),
        Kind("full_disk", 3, _nodes, (500, 2_500), ANY_MASTER_MS, LEASE_MS + ROOM_MS),
        Kind(SYNC_FAILS, 4, _nodes, (1_500, 5_000), ANY_MASTER_MS, LEASE_MS + ROOM_MS, needs="cc"),
        Kind(WRITE_FAILS, 2, _nodes, (500, 2_500), ANY_MASTER_MS, LEASE_MS + ROOM_MS, needs="cc"),
        Kind("torn_pages", 4, _nodes, (0, 1_500), ANY_MASTER_MS, LEASE_MS + ROOM_MS, _tear),
        Kind(
            "slow_disk",
            4,
            _nodes,
            (1_000, 4_000),
            ANY_MASTER_MS,
            LEASE_MS + ROOM_MS,
            _slow_disk,
            "cc",
        ),
        Kind("redis_slow_disk", 2, _redis_server, (1_000, 4_000), *ROOM, _slow_disk, "cc"),
        Kind("redis_sync_fails", 2, _redis_server, (1_500, 4_000), *ROOM, needs="cc"),
        Kind("broker_slow_disk", 4, _brokers, (1_000, 5_000), None, None, _slow_disk, "cc"),
        Kind(
            SHORT_OF_MEMORY,
            3,
            _services,
            (500, 2_500),
            ANY_MASTER_MS,
            LEASE_MS + ROOM_MS,
            _memory,
        ),
        Kind("clock_jump", 4, _clocked, (500, 3_000), ROOM_MS, ROOM_MS, _jump, "cc"),
        # Who set it back by much has to start the broker anew (`injection.py`).
        Kind("broker_clock", 2, _brokers, (500, 3_000), None, None, _jump, "cc"),
        Kind("clock_rate", 3, _nodes, (1_000, 4_000), ROOM_MS, ROOM_MS, _rate, "cc"),
        Kind("redis_kill", 3, _redis_server, (0, 2_000), ROOM_MS, ROOM_MS),
        Kind("redis_pause", 3, _redis_server, (200, 4_000), ROOM_MS, ROOM_MS),
        Kind("redis_flush", 3, _redis, (100, 200), ROOM_MS, ROOM_MS),
        Kind("redis_full", 3, _redis_server, (200, 4_000), ROOM_MS, ROOM_MS),
        Kind("redis_empty", 2, _redis_server, (0, 1_000), ROOM_MS, ROOM_MS),
        Kind("redis_tail", 2, _redis_server, (0, 1_000), ROOM_MS, ROOM_MS, _tail),
        Kind("broker_pause", 4, _kafka, (200, 3_500), None, None),
        Kind("broker_kill", 2, _kafka, (0, 1_000), None, None),
        Kind("busy", 3, _machine, (500, 2_500), None, None, _burners),
        Kind("poison", 4, _topics, (100, 200), ROOM_MS, ROOM_MS, _poison),
        Kind("late_chunks", 4, _filled, (500, 6_000), ROOM_MS, ROOM_MS),
        Kind("one_broker_kill", 6, _one_broker, (0, 6_000), *LED_AGAIN),
        Kind("one_broker_pause", 6, _one_broker, (200, 8_000), *LED_AGAIN),
        Kind(DISK_LOST, 3, _one_broker, (0, 3_000), *LED_AGAIN),
        Kind(TAIL_LOST, 3, _one_broker, (0, 3_000), *LED_AGAIN, _tail),
        Kind(BROKER_FULL, 3, _one_broker, (500, 4_000), *LED_AGAIN),
        Kind("peers_cut", 4, _peers, (500, 8_000), None, None, _cut),
        Kind("peers_delay", 2, _peers, (500, 8_000), None, None, _delay),
        Kind("controller_kill", 4, _controller, (0, 6_000), *LED_AGAIN),
        Kind("redis_failover", 6, _failover, (4_000, 8_000), ROOM_MS, ROOM_MS, _lag),
        Kind(TWO_MASTERS, 4, _stays, (4_000, 12_000), ROOM_MS, ROOM_MS),
    )
}
