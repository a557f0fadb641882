"""Which processes a harness has, and by which links they reach the servers. PURE.

A set is a parameter of everything else, so a larger one is one more value here: its schedules are
drawn over its parts, its links have a proxy each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from infra.deployment import (
    CHANGEFEED,
    DASHBOARD,
    MASTER,
    REPLICANTS,
    SPARK,
    STANDBY,
    Service,
)
from infra.kafka.brokers import ONE, THREE, broker_names
from infra.redis.servers import SENTINEL, SINGLE, redis_names

KAFKA: Final = "kafka"
REDIS: Final = "redis"
SQL: Final = "sql"
COPIES: Final = "copies"
PEERS: Final = "peers"
QUORUM: Final = "quorum"

EMBEDDED: Final = tuple(
    Service(
        name,
        "tests.faults.workload.embedded_service",
        "service with an embedded replica",
        "replicant",
        needs=("m1",),
        keeps_store=True,
    )
    for name in ("e1", "e2")
)
FOLLOWER: Final = Service(
    "f1",
    "tests.faults.workload.following_service",
    "service that reads feeds under leases",
    "subscriber",
    needs=("m1", "changefeed"),
)


@dataclass(frozen=True, slots=True)
class Parts:
    """The processes of one harness.

    `masters` are candidates; `replicants` answer PostgreSQL clients; `embedded` have a replica of
    their own and are clients, too; `followers` hold descriptor leases and read feeds; `counting`
    tell what the database does. `brokers`: how many; `redis`: how it is made up.
    """

    name: str
    masters: tuple[str, ...]
    replicants: tuple[str, ...]
    embedded: tuple[str, ...]
    followers: tuple[str, ...]
    services: tuple[Service, ...]
    counting: tuple[str, ...] = ()
    brokers: int = ONE
    redis: str = SINGLE

    @property
    def has_spark(self) -> bool:
        """Return whether Spark is there, which fills what rows need and retries."""
        return SPARK.name in self.processes

    @property
    def nodes(self) -> tuple[str, ...]:
        """Return who keeps a store."""
        return (*self.masters, *self.replicants, *self.embedded)

    @property
    def readers(self) -> tuple[str, ...]:
        """Return who answers reads."""
        return (*self.replicants, *self.embedded)

    @property
    def processes(self) -> tuple[str, ...]:
        """Return every process of Leasehold's own, in the order of their start."""
        return tuple(service.name for service in self.services)

    @property
    def broker_names(self) -> tuple[str, ...]:
        """Return the brokers' processes."""
        return broker_names(self.brokers)

    @property
    def redis_names(self) -> tuple[str, ...]:
        """Return the processes of Redis that hold data."""
        return redis_names(self.redis)

    @property
    def disk_names(self) -> tuple[str, ...]:
        """Return whose disk may ail."""
        return (*self.nodes, *self.redis_names, *self.broker_names)

    @property
    def servers(self) -> tuple[str, ...]:
        """Return what each process has a link to. ⚠ Not Redis where there are Sentinels: they tell
        clients where it is."""
        return (*self.broker_names, *(() if self.redis == SENTINEL else (REDIS,)))

    @property
    def links(self) -> tuple[tuple[str, str], ...]:
        """Return (process, server) for each link that can be disturbed; (replicant, "sql") is
        that of its clients, (node, "copies") that of those who copy its store, (process, "kafka")
        those to all brokers at once."""
        all_brokers = () if self.brokers == ONE else (KAFKA,)
        there = (*all_brokers, *self.servers)
        servers = tuple((name, server) for name in self.processes for server in there)
        return (
            *servers,
            *((name, SQL) for name in self.replicants),
            *((name, COPIES) for name in self.copied),
        )

    @property
    def copied(self) -> tuple[str, ...]:
        """Return who hands out copies of its store."""
        return (*self.masters, *self.replicants)

    @property
    def peer_links(self) -> tuple[str, ...]:
        """Return the links by which brokers reach each other, of each of several: what they fetch
        of it, and its part in the quorum of controllers."""
        return () if self.brokers == ONE else tuple(f"{PEERS}-{name}" for name in self.broker_names)

    def links_of(self, link: str) -> tuple[str, ...]:
        """Return the links that a name stands for: those to all brokers, both of a broker's peers,
        or itself."""
        process, _, server = link.partition("-")
        if process == PEERS:
            return (link, f"{QUORUM}-{server}")
        if server == KAFKA:
            return tuple(f"{process}-{broker}" for broker in self.broker_names)
        return (link,)


LIGHT: Final = Parts(
    "light",
    masters=("m1", "m2"),
    replicants=("r1", "r2"),
    embedded=("e1",),
    followers=("f1",),
    services=(MASTER, STANDBY, *REPLICANTS[:2], CHANGEFEED, EMBEDDED[0], FOLLOWER),
)
WHOLE: Final = Parts(
    "whole",
    masters=("m1", "m2"),
    replicants=("r1", "r2", "r3"),
    embedded=("e1", "e2"),
    followers=("f1",),
    services=(MASTER, STANDBY, *REPLICANTS, CHANGEFEED, *EMBEDDED, FOLLOWER, DASHBOARD),
    counting=("dashboard",),
    brokers=THREE,
    redis=SENTINEL,
)
WITH_SPARK: Final = Parts(
    "spark",
    masters=("m1", "m2"),
    replicants=("r1", "r2"),
    embedded=("e1",),
    followers=("f1",),
    services=(MASTER, STANDBY, *REPLICANTS[:2], CHANGEFEED, EMBEDDED[0], FOLLOWER, SPARK),
)
SETS: Final[Mapping[str, Parts]] = {each.name: each for each in (LIGHT, WHOLE, WITH_SPARK)}
