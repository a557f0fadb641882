"""Clients of redis-py for LEASEHOLD_REDIS, whether it names a server or Sentinels.

With Sentinels each new connection asks them which server is the master, so whoever has lost one
comes to the new master by connecting again. A connection to a server that is no longer master ends:
Sentinel has it closed, and a write there is refused.
"""

from __future__ import annotations

from typing import Any, Final

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import Sentinel, SentinelConnectionPool

from leasehold.settings.environment import RedisSettings

TIMEOUT_S: Final = 5.0
SENTINEL_TIMEOUT_S: Final = 1.0
"""For each Sentinel: one that hangs is passed over for the next one."""


_URL_OPTIONS: Final[Any] = redis.connection.parse_url
_SENTINEL: Final[Any] = Sentinel
_POOL: Final[Any] = SentinelConnectionPool
"""redis-py has no types for these."""


class _PoolBySentinels(_POOL):  # type: ignore[misc]
    """Closes what it asks the Sentinels by as well: redis-py leaves that open."""

    def disconnect(self, inuse_connections: bool = True) -> None:
        super().disconnect(inuse_connections)
        if inuse_connections:  # else the master is another one now, which they have just said
            self.sentinel_manager.close()


def connection_pool(settings: RedisSettings, timeout_s: float, **options: Any) -> Any:
    """Return a pool of connections to the server, or to whichever is master. No call is made twice
    by it. `timeout_s`: for connecting, and for each call."""
    options = {
        "protocol": 2,
        "socket_timeout": timeout_s,
        "socket_connect_timeout": timeout_s,
        # What to do after a lost answer is the protocol's to decide, not the client's.
        "retry": Retry(NoBackoff(), 0),
        **options,
        **settings.client_options(),
    }
    if not settings.sentinels:
        return redis.ConnectionPool.from_url(settings.url, **options)
    options |= _URL_OPTIONS(settings.server_url)
    tls = options.pop("connection_class", None) is not None
    for address in ("host", "port"):
        options.pop(address, None)
    wait_s = min(timeout_s, SENTINEL_TIMEOUT_S)
    sentinels = _SENTINEL(
        settings.sentinels,
        sentinel_kwargs={
            "protocol": 2,
            "socket_timeout": wait_s,
            "socket_connect_timeout": wait_s,
            "retry": Retry(NoBackoff(), 0),
            **settings.sentinel_options(),
        },
    )
    return _PoolBySentinels(settings.sentinel_service, sentinels, ssl=tls, **options)


def make_client(settings: RedisSettings, timeout_s: float = TIMEOUT_S, **options: Any) -> Any:
    """Return a client with a pool of its own, closed with it."""
    return redis.Redis.from_pool(connection_pool(settings, timeout_s, **options))
