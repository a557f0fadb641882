"""What Redis says of itself: memory, what it keeps over a restart, its clock. By INFO alone, which
every user may ask that reads the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import redis

from leasehold.adapters.os.clock import unix_us
from leasehold.adapters.redis.client import make_client
from leasehold.model.errors import ConfigurationError, LedgerUnavailable
from leasehold.settings.environment import RedisSettings

TIMEOUT_S: Final = 3.0
REFUSE_TIMEOUT_S: Final = 1.0
NO_CLUSTER: Final = (
    "a Redis Cluster, which Leasehold does not support: a failover of it would go unnoticed. Name"
    " one server in LEASEHOLD_REDIS, or Sentinels (redis+sentinel://…)."
)


class RedisSeen(NamedTuple):
    """A Redis at one moment. `memory_max` 0: it has no limit. `appends`: whether it keeps an
    append-only file; `append_fails`: whether the last write to it, or its last rewrite, failed.
    `ahead_us`: how far its clock is ahead of this host's, None where it does not tell its time.
    `evicted`: keys that it has given up for want of memory since it started. `clustered`: it is a
    node of a Redis Cluster. `replicas`: servers that have its data from it now."""

    version: str
    memory: int
    memory_max: int
    policy: str
    appends: bool
    append_fails: bool
    evicted: int
    ahead_us: int | None
    clustered: bool = False
    replicas: int = 0


def look_at_redis(settings: RedisSettings, timeout_s: float = TIMEOUT_S) -> RedisSeen:
    """Ask Redis of itself. Raises LedgerUnavailable."""
    client = make_client(settings, timeout_s, decode_responses=True)
    try:
        client.ping()  # so that the way to it is not taken for a difference of clocks
        asked_us = unix_us()
        told: Mapping[str, Any] = client.info()
        return read_info(told, (asked_us + unix_us()) // 2)
    except (redis.RedisError, OSError) as error:
        raise LedgerUnavailable(
            f"Redis at {settings.where} did not tell of itself ({error}).", ledger=settings.where
        ) from error
    finally:
        client.close()


def read_info(told: Mapping[str, Any], now_us: int) -> RedisSeen:
    """Return what INFO says, asked at `now_us` of this host."""
    # Of a database that is still loaded, or of an older release, some of it is missing.
    at_us = told.get("server_time_usec")
    outcomes = ("aof_last_write_status", "aof_last_bgrewrite_status")
    return RedisSeen(
        version=str(told.get("redis_version", "")),
        memory=int(told.get("used_memory", 0)),
        memory_max=int(told.get("maxmemory", 0)),
        policy=str(told.get("maxmemory_policy", "")),
        appends=bool(int(told.get("aof_enabled", 0))),
        append_fails=any(told.get(name, "ok") != "ok" for name in outcomes),
        evicted=int(told.get("evicted_keys", 0)),
        ahead_us=None if at_us is None else int(at_us) - now_us,
        clustered=bool(int(told.get("cluster_enabled", 0))),
        replicas=int(told.get("connected_slaves", 0)),
    )


def refuse_cluster(settings: RedisSettings, timeout_s: float = REFUSE_TIMEOUT_S) -> None:
    """Raise ConfigurationError where LEASEHOLD_REDIS names a Redis Cluster. One that is away may be
    anything."""
    try:
        seen = look_at_redis(settings, timeout_s)
    except LedgerUnavailable:
        return
    if seen.clustered:
        raise ConfigurationError(f"Redis at {settings.where} is {NO_CLUSTER}")
