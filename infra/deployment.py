"""What runs, as data: the one description that the local cluster and docker-compose.yml share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

KAFKA = "kafka"
REDIS = "redis"
TOPICS = "topics"

KAFKA_READY_DEADLINE_S = 60.0
REDIS_READY_DEADLINE_S = 20.0


@dataclass(frozen=True, slots=True)
class Service:
    """A process of Leasehold's own. It writes LEASEHOLD_READY_FILE once it is ready for work."""

    name: str
    module: str
    what: str
    rights: str = ""
    """Its kind in the table of rights (`model/process_rights.py`)."""
    image: str = "services"
    needs: tuple[str, ...] = ()
    """Services that must be ready before this one is started; Kafka, Redis and the topics always
    are."""
    dashboard: bool = False
    keeps_store: bool = False
    """A node: it hands its store to others that begin, and takes theirs."""
    sql: int | None = None
    """Its place among those that PostgreSQL clients reach, from 0."""
    compiled: bool = True
    """It runs what mypyc has made, where that is there. Spark's workers are not known to gain."""
    niceness: int = 0
    """0 to 19: how far it stands back where processors are short, in the kernel's units: each is
    worth about a fifth less."""
    environment: Mapping[str, str] = field(default_factory=dict)
    ready_deadline_s: float = 60.0
    memory_mb: int = 2_048
    """Of its container: what it is ended at, before it takes the machine with it."""

    @property
    def signs(self) -> bool:
        """Whether it signs change requests or verifies them, hence gets the key."""
        return self.keeps_store or self.image == "spark" or self.rights == "intake"

    @property
    def asks_registry(self) -> bool:
        """Whether it registers the schemas of feeds, reads by them, or submits schema changes."""
        return self.rights in ("changefeed", "intake") or self.sql is not None

    @property
    def cpu_shares(self) -> int:
        """Docker's weight for that niceness; it gives 1,024 to who has none."""
        return round(1024 / 1.25**self.niceness)

    @property
    def command(self) -> tuple[str, ...]:
        return ("python", "-m", self.module)


MASTER = Service("m1", "services.master.main", "master", "master", keeps_store=True)
STANDBY = Service(
    # After the master, so that which of the two claims the first epoch is not left to chance.
    "m2",
    "services.master.main",
    "standby master",
    "master",
    needs=("m1",),
    keeps_store=True,
)
REPLICANTS = tuple(
    Service(
        f"r{number}",
        "services.replicant.main",
        "replicant",
        "replicant",
        needs=("m1",),
        keeps_store=True,
        sql=number - 1,
    )
    for number in (1, 2, 3)
)
CHANGEFEED = Service(
    "changefeed", "services.changefeed.main", "changefeed", "changefeed", needs=("m1",)
)
SPARK = Service(
    # Needs Kafka only, and its JVM takes longest: it starts beside the master.
    "spark",
    "spark_streaming.main",
    "Spark driver",
    "spark",
    image="spark",
    compiled=False,
    # A job takes what the writers leave: they wait for it, and nobody waits for a job.
    niceness=2,
    ready_deadline_s=120.0,
    memory_mb=4_096,
)
DASHBOARD = Service(
    "dashboard",
    "services.dashboard.main",
    "dashboard",
    "dashboard",
    needs=("m1",),
    dashboard=True,
)

INTAKE = Service(
    "intake", "services.intake.main", "intake of other systems' events", "intake", needs=("m1",)
)

SERVICES: tuple[Service, ...] = (MASTER, STANDBY, *REPLICANTS, CHANGEFEED, SPARK, DASHBOARD)
OPTIONAL: tuple[Service, ...] = (INTAKE,)
"""Services that run where somebody names what they are to do: in Compose by a profile of their
name."""


def service_named(name: str) -> Service:
    """Raises KeyError for a name that is not in SERVICES."""
    return {service.name: service for service in SERVICES}[name]
