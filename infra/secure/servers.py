"""The servers of a Compose file: one broker and one Redis, or three brokers and a Redis with a
replica and Sentinels."""

from __future__ import annotations

from typing import Final, NamedTuple

from infra.deployment import KAFKA, REDIS
from infra.ports import KAFKA_PORT, REDIS_PORT
from infra.secure import given
from infra.secure import secret_files as files
from infra.secure.users import REPLICATION, SENTINELS

MOUNTED: Final = "/run/secrets"
CONTROLLER_PORT: Final = 9093
SENTINEL_PORT: Final = 26379
WATCHED: Final = "leasehold"
"""The name under which Sentinels know the servers of Redis."""
CLUSTER_ID: Final = "TGVhc2Vob2xkLXRocmVlLQ"
"""Of several brokers; one alone has that of its image."""
HEALTHY: Final = {"condition": "service_healthy"}
REDIS_REPLICATION: Final = "redis-replication.conf"
SENTINEL_FILE: Final = "sentinel.conf"
SENTINEL_PROBE: Final = "sentinel-probe"
"""The password of Sentinels, for who looks after one in its container."""


class Servers(NamedTuple):
    """The containers of Kafka and Redis, by their names."""

    brokers: tuple[str, ...] = (KAFKA,)
    redis: tuple[str, ...] = (REDIS,)
    sentinels: tuple[str, ...] = ()

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{name}:{KAFKA_PORT}" for name in self.brokers)

    @property
    def ledger(self) -> str:
        """Return what stands in LEASEHOLD_REDIS between user and database number."""
        if not self.sentinels:
            return f"{self.redis[0]}:{REDIS_PORT}"
        return ",".join(f"{name}:{SENTINEL_PORT}" for name in self.sentinels) + f"/{WATCHED}"

    @property
    def healthy(self) -> dict[str, dict[str, str]]:
        """Return what whoever needs Redis waits for."""
        return {name: dict(HEALTHY) for name in (*self.redis, *self.sentinels)}


ONE: Final = Servers()
THREE: Final = Servers(
    tuple(f"{KAFKA}-{n}" for n in (1, 2, 3)),
    tuple(f"{REDIS}-{n}" for n in (1, 2)),
    tuple(f"sentinel-{n}" for n in (1, 2, 3)),
)


def replication_lines(password: str) -> list[str]:
    """Return the lines by which a server of Redis comes to its master."""
    return [f"masteruser {REPLICATION}", f"masterauth {password}"]


def sentinel_lines(servers: Servers, password: str) -> list[str]:
    """Return the file of a Sentinel that takes a password by TLS, and comes to servers and to other
    Sentinels by one."""
    settings = given.redis_settings(SENTINEL_PORT, lambda name: f"{MOUNTED}/{files.mounted(name)}")
    del settings["aclfile"]
    settings |= {"tls-replication": "yes", "requirepass": password, "dir": "/data"}
    lines = [f"{setting} {value}" for setting, value in settings.items()]
    watched = (
        f"monitor {WATCHED} {servers.redis[0]} {REDIS_PORT} 2",
        f"down-after-milliseconds {WATCHED} 5000",
        f"failover-timeout {WATCHED} 60000",
        f"parallel-syncs {WATCHED} 1",
        f"auth-user {WATCHED} {SENTINELS}",
        f"auth-pass {WATCHED} {password}",
        f"sentinel-pass {password}",
    )
    by_name = ("resolve-hostnames yes", "announce-hostnames yes")
    return [*lines, *(f"sentinel {each}" for each in (*by_name, *watched))]
