"""How Redis could lose the lease ledger, by what it says of itself. No write is lost with that:
schema changes wait until agents have taken their leases anew. PURE."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from leasehold.adapters.redis.server_look import NO_CLUSTER, RedisSeen

NO_EVICTION: Final = "noeviction"
SENTINELS_MIN: Final = 3


class RedisWeakness(NamedTuple):
    """What it is, and what to do about it. `breaks`: it fails already."""

    words: str
    to_do: str
    breaks: bool = False


def find_redis_weaknesses(redis: RedisSeen, sentinels: int = 0) -> Iterator[RedisWeakness]:
    """Yield how the ledger could be lost. `sentinels`: how many LEASEHOLD_REDIS names."""
    if redis.clustered:
        yield RedisWeakness(f"Redis is {NO_CLUSTER}", "see docs/how-to/deploy.md", breaks=True)
    if not redis.appends:
        yield RedisWeakness(
            "Redis keeps no append-only file: it forgets the lease ledger when it restarts, and"
            " schema changes wait for a session's time",
            "appendonly yes (docs/how-to/deploy.md)",
        )
    elif redis.append_fails:
        yield RedisWeakness(
            "Redis could not write its append-only file the last time",
            "look at its log and its disk",
            breaks=True,
        )
    if redis.policy not in ("", NO_EVICTION):
        yield RedisWeakness(
            f"Redis gives up keys when its memory is full (maxmemory-policy {redis.policy}): leases"
            " vanish by that while agents hold them",
            "maxmemory-policy noeviction",
        )
    if sentinels and not redis.replicas:
        yield RedisWeakness(
            "Redis has no replica now: with this server the ledger is gone, and schema changes wait"
            " until it is back",
            "look at the replica's log; start it, or another one",
        )
    if 0 < sentinels < SENTINELS_MIN:
        yield RedisWeakness(
            f"LEASEHOLD_REDIS names {sentinels} Sentinel(s): with one of them nobody may be left"
            " who makes a replica master, or says who it is",
            f"name all of them, {SENTINELS_MIN} at least",
        )
    if redis.replicas and not sentinels:
        yield RedisWeakness(
            f"Redis has {redis.replicas} replica(s), and LEASEHOLD_REDIS names this server alone:"
            " after a failover services stay with it, and leases may overlap",
            "name the Sentinels: redis+sentinel://host:port,…/name (docs/how-to/deploy.md)",
        )
