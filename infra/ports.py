"""The ports of one cluster, and free ones for tests."""

from __future__ import annotations

import random
import socket
from dataclasses import dataclass

LOOPBACK = "127.0.0.1"
SQL_PORTS = (54331, 54332, 54333)
METRICS_PORTS = tuple(range(9461, 9469))

# In containers, which have addresses of their own.
KAFKA_PORT = 9092
REDIS_PORT = 6379
SQL_PORT = 5432
METRICS_PORT = 9461

# Below the range from which systems give ports to outgoing connections (Linux: from 32768), so that
# a port found free is not taken by one of those before its server binds it.
_LOWEST = 18000
_HIGHEST = 31999
_TRIES_MAX = 1000


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports of a local cluster's listeners, all on the loopback address."""

    kafka: int = 19092
    kafka_controller: int = 19093
    redis: int = 16379
    dashboard: int = 8080
    sql: tuple[int, ...] = SQL_PORTS
    """One for each replicant."""
    kafka_trusted: int = 19094
    """In secure mode: where the broker takes certificates, of itself and of its administrator."""
    prometheus: int = 9090
    metrics: tuple[int, ...] = METRICS_PORTS
    """One for each service, where the cluster is observed."""

    @classmethod
    def free(cls) -> Ports:
        """Ports that nothing listens on now; random, so that two runs hardly ever meet."""
        found: set[int] = set()
        while len(found) < 6 + len(SQL_PORTS) + len(METRICS_PORTS):
            found.add(find_free_port())
        kafka, controller, redis, dashboard, trusted, prometheus, *more = found
        sql, metrics = more[: len(SQL_PORTS)], more[len(SQL_PORTS) :]
        return cls(
            *(kafka, controller, redis, dashboard),
            sql=tuple(sql),
            kafka_trusted=trusted,
            prometheus=prometheus,
            metrics=tuple(metrics),
        )


def find_free_port() -> int:
    """A port that can be bound now. Raises OSError if a thousand tries find none."""
    for _ in range(_TRIES_MAX):
        port = random.SystemRandom().randint(_LOWEST, _HIGHEST)
        if can_bind(port):
            return port
    raise OSError(f"No free port between {_LOWEST} and {_HIGHEST}.")


def can_bind(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True
