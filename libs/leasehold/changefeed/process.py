"""The changefeed as a process: wires settings and the publisher; decides nothing."""

from __future__ import annotations

import gc
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from threading import Event as Flag
from typing import Final

from leasehold.adapters.kafka.access import AccessDenied
from leasehold.adapters.kafka.transaction import Fenced
from leasehold.adapters.metrics.exposition import Exposition
from leasehold.adapters.metrics.health import AWAY, STOPPING
from leasehold.adapters.metrics.server import serve_metrics
from leasehold.adapters.os.readiness import announce_ready
from leasehold.adapters.service_process import Environment, run_service
from leasehold.changefeed.publisher import Publisher
from leasehold.model import metrics
from leasehold.model.errors import BusUnavailable
from leasehold.model.measures import Measures
from leasehold.model.topics import Topics
from leasehold.settings.changefeed import ChangefeedSettings
from leasehold.settings.environment import ClusterSettings, KafkaSettings, from_environment
from leasehold.settings.schema_registry import SchemaRegistrySettings

RESTART_WAIT_S: Final = 1.0
PATIENCE_S: Final = 120.0
"""Longest that a turn takes: a transaction of Kafka's is given up after a minute."""
GARBAGE_THRESHOLDS: Final = (100_000, 50, 100)
"""Records are tuples without cycles and go by reference counting; with Python's own thresholds the
collector walks over tens of thousands of live ones again and again (a third of all time)."""
LOG: Final = logging.getLogger("leasehold.changefeed")


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    kafka: KafkaSettings
    cluster: ClusterSettings
    publishing: ChangefeedSettings
    registry: SchemaRegistrySettings
    topics: Topics

    @classmethod
    def read(cls, environ: Environment) -> ProcessSettings:
        """Raises ConfigurationError."""
        cluster = from_environment(ClusterSettings, environ)
        return cls(
            from_environment(KafkaSettings, environ),
            cluster,
            from_environment(ChangefeedSettings, environ),
            from_environment(SchemaRegistrySettings, environ),
            Topics(cluster.database, cluster.replication_factor),
        )

    @property
    def groups(self) -> Sequence[object]:
        return self.kafka, self.cluster, self.publishing, self.registry


def run_changefeed() -> int:
    """Publish until SIGTERM or SIGINT; return the exit code, as `run_service` says it."""
    return run_service(LOG.name, ProcessSettings.read, _publish)


def _publish(settings: ProcessSettings, stop: Flag) -> None:
    """Publish until `stop`; anew where Kafka was away. Raises LeaseholdError where that can't go
    on."""
    gc.set_threshold(*GARBAGE_THRESHOLDS)
    with serve_metrics(settings.cluster) as exposition:
        _publish_on(settings, exposition, stop)


def _publish_on(settings: ProcessSettings, exposition: Exposition, stop: Flag) -> None:
    measures = Measures()
    health = exposition.health
    health.watch(PATIENCE_S)
    while not stop.is_set():
        measures.add(metrics.FEED_STARTS)
        try:
            with Publisher(
                settings.kafka,
                settings.topics,
                settings.publishing,
                health.turning(stop.is_set),
                settings.registry,
                measures,
            ) as publisher:
                exposition.add("changefeed", publisher.samples)
                publisher.open()
                announce_ready(settings.cluster.ready_file)
                health.ready_when(lambda: STOPPING if stop.is_set() else "")
                publisher.run()
        except (AccessDenied, Fenced):
            raise
        except BusUnavailable as error:
            # The position is stored with what was published, so starting anew loses nothing.
            if not stop.is_set():
                health.ready_when(partial(AWAY.format, error))
                LOG.warning("%s; starts anew", error)
                stop.wait(RESTART_WAIT_S)
