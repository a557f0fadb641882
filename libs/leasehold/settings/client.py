"""Settings of what users import: how to reach the parts, and the limits of a client."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from leasehold.lease.agent.session import MARGINS_PER_TTL, RENEWALS_PER_TTL
from leasehold.model.signatures import Signer
from leasehold.model.topics import Topics
from leasehold.settings.environment import (
    ClusterSettings,
    KafkaSettings,
    RedisSettings,
    from_environment,
)
from leasehold.settings.replica import ReplicaSettings
from leasehold.settings.request_key import RequestKeySettings
from leasehold.settings.schema_registry import SchemaRegistrySettings
from leasehold.settings.snapshot import SnapshotSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """The settings of a process that uses the library. `ClientSettings.read()` takes those of the
    environment; every field may be given instead.

    `in_flight_max`: requests without an outcome; the next submit waits (back-pressure).
    `outcome_timeout_ms`: after it a request's outcome counts as unknown until asked again (T5).
    `close_timeout_ms`: how long closing waits for outcomes under way.
    """

    kafka: KafkaSettings = field(default_factory=KafkaSettings)
    redis: RedisSettings = field(default_factory=RedisSettings)
    cluster: ClusterSettings = field(default_factory=ClusterSettings)
    snapshot: SnapshotSettings = field(default_factory=SnapshotSettings)
    requests: RequestKeySettings = field(default_factory=RequestKeySettings)
    registry: SchemaRegistrySettings = field(default_factory=SchemaRegistrySettings)
    replica: ReplicaSettings = field(default_factory=ReplicaSettings)
    in_flight_max: int = 10_000
    outcome_timeout_ms: int = 120_000
    close_timeout_ms: int = 10_000
    session_ttl_ms: int = 15_000
    renew_every_ms: int = 5_000
    lease_margin_ms: int = 500

    def __post_init__(self) -> None:
        assert self.in_flight_max >= 1, self.in_flight_max
        assert 0 < self.renew_every_ms < self.session_ttl_ms, "a session must outlive a renewal"

    @classmethod
    def read(cls, environ: Mapping[str, str] | None = None) -> ClientSettings:
        """Read the environment. Raises ConfigurationError, which names the variable."""
        source = os.environ if environ is None else environ
        cluster = from_environment(ClusterSettings, source)
        return cls(
            kafka=from_environment(KafkaSettings, source),
            redis=from_environment(RedisSettings, source),
            cluster=cluster,
            snapshot=from_environment(SnapshotSettings, source),
            requests=from_environment(RequestKeySettings, source),
            registry=from_environment(SchemaRegistrySettings, source),
            replica=from_environment(ReplicaSettings, source),
            session_ttl_ms=cluster.session_ttl_ms,
            renew_every_ms=cluster.session_ttl_ms // RENEWALS_PER_TTL,
            lease_margin_ms=cluster.session_ttl_ms // MARGINS_PER_TTL,
        )

    def signer(self) -> Signer:
        """Return what signs this process's change requests. Raises ConfigurationError."""
        return self.requests.signer(self.cluster.database)

    @property
    def topics(self) -> Topics:
        return Topics(self.cluster.database, self.cluster.replication_factor)
