"""What Redis says of itself: memory, what it keeps over a restart, its clock. By INFO alone, which
every user may ask that reads the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from leasehold.adapters.os.clock import unix_us
from leasehold.model.errors import LedgerUnavailable
from leasehold.settings.environment import RedisSettings

TIMEOUT_S: Final = 3.0


class RedisSeen(NamedTuple):
    """A Redis at one moment. `memory_max` 0: it has no limit. `appends`: whether it keeps an
    append-only file; `append_fails`: whether the last write to it, or its last rewrite, failed.
    `ahead_us`: how far its clock is ahead of this host's, None where it does not tell its time.
    `evicted`: keys that it has given up for want of memory since it started."""

    version: str
    memory: int
    memory_max: int
    policy: str
    appends: bool
    append_fails: bool
    evicted: int
    ahead_us: int | None


def look_at_redis(settings: RedisSettings, timeout_s: float = TIMEOUT_S) -> RedisSeen:
    """Ask Redis of itself. Raises LedgerUnavailable."""
    client: Any = redis.Redis.from_url(
        settings.url,
        decode_responses=True,
        protocol=2,
        socket_timeout=timeout_s,
        socket_connect_timeout=timeout_s,
        retry=Retry(NoBackoff(), 0),
        **settings.client_options(),
    )
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
    )
