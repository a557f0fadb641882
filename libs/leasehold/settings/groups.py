"""All settings of the library's processes, and the names of others that stand beside them."""

from __future__ import annotations

from dataclasses import fields
from typing import Final

from leasehold.settings.audit import AuditSettings
from leasehold.settings.changefeed import ChangefeedSettings
from leasehold.settings.dashboard import DashboardSettings
from leasehold.settings.environment import ClusterSettings, KafkaSettings, RedisSettings
from leasehold.settings.request_key import RequestKeySettings
from leasehold.settings.schema_registry import SchemaRegistrySettings
from leasehold.settings.snapshot import SnapshotSettings
from leasehold.settings.sql_address import SqlAddress
from leasehold.settings.sql_port import PgwireSettings
from leasehold.settings.traces import TraceSettings

GROUPS: Final[tuple[tuple[str, type], ...]] = (
    ("Where a process stands: every service and client", ClusterSettings),
    ("Kafka: every service and client", KafkaSettings),
    ("Redis: masters, nodes, agents and clients", RedisSettings),
    ("Copies of a store between nodes: masters, replicants, embedded replicas", SnapshotSettings),
    ("Who asks for changes: masters, SQL nodes, Spark's driver, producers", RequestKeySettings),
    ("The audit log: masters and replicants", AuditSettings),
    ("Traces: masters, replicants, Spark's driver", TraceSettings),
    ("The SQL listener: replicants", PgwireSettings),
    ("`leasehold sql`: the client of that listener", SqlAddress),
    ("The changefeed", ChangefeedSettings),
    ("A schema registry: the changefeed, and who submits schema changes", SchemaRegistrySettings),
    ("The dashboard", DashboardSettings),
)
"""Each dataclass of `setting()` fields, with whose settings they are."""

SPARK_NAMES: Final = frozenset(
    f"LEASEHOLD_{name}"
    for name in (
        *("SPARK_JARS", "SPARK_MASTER", "SPARK_FOLDER", "SPARK_CONF", "SPARK_SECRET"),
        *("SPARK_MEMORY_MB", "SPARK_JAVA_OPTIONS", "SPARK_THREADS"),
        *("BACKFILL_OFFSETS", "BACKFILL_FEW", "BACKFILLS", "RETRY_ATTEMPTS", "RETRY_TRIGGER_MS"),
    )
)
"""Of Spark's driver, whose settings are not installed with the library."""
START_NAMES: Final = frozenset(
    f"LEASEHOLD_{name}"
    for name in ("COMPILED", "CONTAINER_MEMORY", "KAFKA_CONTROLLER_PORT", "PYTHON", "SECRETS")
)
"""Of what starts processes: the Makefile, the Compose files, the build."""


def known_names() -> frozenset[str]:
    """Return all variables that mean something to a process of the system."""
    own = (each.metadata["env"] for _, group in GROUPS for each in fields(group))
    return frozenset(own) | SPARK_NAMES | START_NAMES
