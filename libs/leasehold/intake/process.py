"""An intake as a process: wires settings and the taker; decides nothing."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from threading import Event as Flag
from typing import Final

from leasehold.adapters.kafka.access import AccessDenied
from leasehold.adapters.kafka.process_reports import ProcessReports
from leasehold.adapters.kafka.transaction import Fenced
from leasehold.adapters.metrics.exposition import Exposition
from leasehold.adapters.metrics.health import AWAY, STOPPING
from leasehold.adapters.metrics.server import serve_metrics
from leasehold.adapters.os.readiness import announce_ready
from leasehold.adapters.service_process import Environment, run_service
from leasehold.intake.decoding import needs_registry
from leasehold.intake.taker import Taker
from leasehold.model import metrics
from leasehold.model.errors import BusUnavailable, LogStopped
from leasehold.model.measures import Measures
from leasehold.model.topics import Topics
from leasehold.settings.environment import ClusterSettings, KafkaSettings, from_environment
from leasehold.settings.intake import IntakeSettings
from leasehold.settings.request_key import RequestKeySettings
from leasehold.settings.schema_registry import SchemaRegistrySettings

RESTART_WAIT_S: Final = 1.0
PATIENCE_S: Final = 120.0
"""Longest that a turn takes: a transaction of Kafka's is given up after a minute."""
LOG: Final = logging.getLogger("leasehold.intake")


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    kafka: KafkaSettings
    cluster: ClusterSettings
    intake: IntakeSettings
    registry: SchemaRegistrySettings
    requests: RequestKeySettings
    topics: Topics

    @classmethod
    def read(cls, environ: Environment) -> ProcessSettings:
        """Raises ConfigurationError."""
        cluster = from_environment(ClusterSettings, environ)
        intake = from_environment(IntakeSettings, environ)
        registry = from_environment(SchemaRegistrySettings, environ)
        intake.tables()
        needs_registry(intake.encoding, registry.urls)
        return cls(
            from_environment(KafkaSettings, environ),
            cluster,
            intake,
            registry,
            from_environment(RequestKeySettings, environ),
            Topics(cluster.database, cluster.replication_factor),
        )

    @property
    def groups(self) -> Sequence[object]:
        return self.kafka, self.cluster, self.intake, self.registry, self.requests


def run_intake() -> int:
    """Take events until SIGTERM or SIGINT; return the exit code, as `run_service` says it."""
    return run_service(LOG.name, ProcessSettings.read, _take)


def _take(settings: ProcessSettings, stop: Flag) -> None:
    """Take events until `stop`; anew where Kafka was away. Raises LeaseholdError where that can't
    go on."""
    with (
        serve_metrics(settings.cluster) as exposition,
        ProcessReports(settings.kafka, settings.topics, "intake", settings.intake.name),
    ):
        _take_on(settings, exposition, stop)


def _take_on(settings: ProcessSettings, exposition: Exposition, stop: Flag) -> None:
    measures = Measures()
    health = exposition.health
    health.watch(PATIENCE_S)
    sign = settings.requests.signer(settings.cluster.database)
    while not stop.is_set():
        measures.add(metrics.INTAKE_STARTS)
        try:
            with Taker(
                settings.kafka,
                settings.topics,
                settings.intake,
                sign,
                health.turning(stop.is_set),
                settings.registry,
                measures,
            ) as taker:
                exposition.add("intake", taker.samples)
                taker.open()
                announce_ready(settings.cluster.ready_file)
                health.ready_when(lambda: STOPPING if stop.is_set() else "")
                taker.run()
        except (AccessDenied, Fenced):
            raise
        except (BusUnavailable, LogStopped) as error:
            # Places are stored with what was sent, so starting anew loses nothing.
            if not stop.is_set():
                health.ready_when(partial(AWAY.format, error))
                LOG.warning("%s; starts anew", error)
                stop.wait(RESTART_WAIT_S)
