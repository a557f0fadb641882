"""The ports of one cluster, and free ones for tests."""

from __future__ import annotations

import random
import socket
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

LOOPBACK = "127.0.0.1"
SQL_PORTS = (54331, 54332, 54333)
METRICS_PORTS = tuple(range(9461, 9469))
BROKERS_MAX = 3
REDIS_SERVERS = 2
SENTINELS = 3

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


class BrokerPorts(NamedTuple):
    """The listeners of one broker. `trusted`: in secure mode, where it takes certificates."""

    clients: int
    controller: int
    trusted: int


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
    more_brokers: tuple[int, ...] = tuple(range(19095, 19101))
    """Where there are three: the second one's three ports, as `BrokerPorts` has them, and the
    third one's."""
    redis_replica: int = 16380
    sentinels: tuple[int, ...] = (16381, 16382, 16383)

    def brokers(self, count: int) -> tuple[BrokerPorts, ...]:
        """Return the ports of each of `count` brokers."""
        assert 1 <= count <= BROKERS_MAX, f"{count} brokers"
        flat = (self.kafka, self.kafka_controller, self.kafka_trusted, *self.more_brokers)
        return tuple(BrokerPorts(*flat[3 * n : 3 * n + 3]) for n in range(count))

    def with_servers_of(self, other: Ports) -> Ports:
        """Return these, with the Kafka and the Redis of another cluster."""
        return replace(
            self,
            kafka=other.kafka,
            kafka_controller=other.kafka_controller,
            kafka_trusted=other.kafka_trusted,
            more_brokers=other.more_brokers,
            redis=other.redis,
            redis_replica=other.redis_replica,
            sentinels=other.sentinels,
        )

    @classmethod
    def free(cls) -> Ports:
        """Ports that nothing listens on now; random, so that two runs hardly ever meet."""
        found: set[int] = set()
        counts = (len(SQL_PORTS), len(METRICS_PORTS), 3 * (BROKERS_MAX - 1), SENTINELS)
        while len(found) < 7 + sum(counts):
            found.add(find_free_port())
        left = iter(found)
        sql, metrics, brokers, sentinels = (tuple(islice(left, count)) for count in counts)
        kafka, controller, redis, dashboard, trusted, prometheus, replica = left
        return cls(
            *(kafka, controller, redis, dashboard),
            sql=sql,
            kafka_trusted=trusted,
            prometheus=prometheus,
            metrics=metrics,
            more_brokers=brokers,
            redis_replica=replica,
            sentinels=sentinels,
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


def is_listening(host: str, port: int, timeout_s: float) -> bool:
    """Return whether somebody takes connections there."""
    try:
        socket.create_connection((host, port), timeout_s).close()
    except OSError:
        return False
    return True
