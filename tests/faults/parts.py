"""Which processes a harness has, and by which links they reach the servers. PURE.

A set is a parameter of everything else, so a larger one (three brokers, Spark) is one more value
here: its schedules are drawn over its parts, its links have a proxy each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from infra.deployment import CHANGEFEED, MASTER, REPLICANTS, STANDBY, Service

KAFKA: Final = "kafka"
REDIS: Final = "redis"
SQL: Final = "sql"
SERVERS: Final = (KAFKA, REDIS)

EMBEDDED: Final = Service(
    "e1",
    "tests.faults.workload.embedded_service",
    "service with an embedded replica",
    "replicant",
    needs=("m1",),
    keeps_store=True,
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
    their own and are clients, too; `followers` hold descriptor leases and read feeds.
    """

    name: str
    masters: tuple[str, ...]
    replicants: tuple[str, ...]
    embedded: tuple[str, ...]
    followers: tuple[str, ...]
    services: tuple[Service, ...]

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
    def links(self) -> tuple[tuple[str, str], ...]:
        """Return (process, server) for each link that can be disturbed; (replicant, "sql") is
        that of its clients."""
        servers = tuple((name, server) for name in self.processes for server in SERVERS)
        return (*servers, *((name, SQL) for name in self.replicants))


LIGHT: Final = Parts(
    "light",
    masters=("m1", "m2"),
    replicants=("r1", "r2"),
    embedded=("e1",),
    followers=("f1",),
    services=(MASTER, STANDBY, *REPLICANTS[:2], CHANGEFEED, EMBEDDED, FOLLOWER),
)
SETS: Final[Mapping[str, Parts]] = {LIGHT.name: LIGHT}
