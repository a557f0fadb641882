"""A Kafka broker and controller in one process, from the jars that set-up fetched."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from infra.java import java
from infra.kafka.settings import SMALL_HEAP_MB, as_properties, jvm_options, local_settings
from infra.kafka.warm_up import COMPILED_EARLY
from infra.ports import is_listening
from infra.processes import ProcessFailure
from leasehold.settings.environment import KafkaSettings

FORMAT_DEADLINE_S = 60
ATTEMPT_S = 5.0
FOR_MINUTES = "-XX:TieredStopAtLevel=1"
LOG_CONFIGURATION = Path(__file__).parent / "log4j2.properties"


class Broker:
    """Files and command line of a broker whose data stand in `folder`."""

    def __init__(
        self,
        folder: Path,
        jars: Path,
        port: int,
        controller_port: int,
        heap_mb: int,
        extra: Mapping[str, str] | None = None,
        *,
        lasting: bool = False,
        java_options: Sequence[str] = (),
        format_options: Sequence[str] = (),
        node_id: int = 1,
        controllers: Sequence[int] = (),
        cluster_id: str = "",
    ) -> None:
        """Describe a broker; `prepare` writes its files.

        `extra`: settings that replace or join those of `local_settings`. `lasting`: it will run for
        longer than a test does, so what the optimising compiler costs at first is paid back.
        `java_options`, `format_options`: more of them, for the broker's JVM and for the one that
        formats its storage. `node_id`, `controllers` (their ports, by node id), `cluster_id`: of
        one among several.
        """
        self.folder = folder.absolute()
        self.jars = jars.absolute()
        self.port = port
        self.controller_port = controller_port
        self.heap_mb = heap_mb
        self.extra = dict(extra or {})
        self.lasting = lasting
        self.java_options = tuple(java_options)
        self.format_options = tuple(format_options)
        self.node_id = node_id
        self.controllers = tuple(controllers)
        self.cluster_id = cluster_id

    @property
    def data(self) -> Path:
        """The folder of its storage: the log's segments, and what it knows of the cluster."""
        return self.folder / "data"

    def prepare(self, environ: Mapping[str, str]) -> None:
        """Write server.properties and format the storage once. Raises ProcessFailure."""
        if not any(self.jars.glob("kafka_*.jar")):
            raise ProcessFailure(f"Kafka's jars are not in {self.jars}; run: make setup")
        shutil.rmtree(self._unpacked, ignore_errors=True)  # by one that was killed
        self._unpacked.mkdir(parents=True, exist_ok=True)
        data = self.data
        own = local_settings(
            self.port, self.controller_port, str(data), self.node_id, self.controllers
        )
        settings = {**own, **self.extra}
        self._properties.write_text(as_properties(settings))
        if (data / "meta.properties").exists():
            return
        # Only a format that died half way leaves a folder without meta.properties.
        shutil.rmtree(data, ignore_errors=True)
        cluster = self.cluster_id or uuid.uuid4().hex[:22]
        command = [
            *self._java(SMALL_HEAP_MB, FOR_MINUTES, *self.format_options),
            "kafka.tools.StorageTool",
            *("format", "--cluster-id", cluster, "--config", str(self._properties)),
        ]
        try:
            done = subprocess.run(
                command,
                env=dict(environ),
                capture_output=True,
                text=True,
                timeout=FORMAT_DEADLINE_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ProcessFailure(f"Kafka's storage could not be formatted: {error}.") from error
        if done.returncode != 0:
            raise ProcessFailure(
                f"Kafka's storage in {data} could not be formatted:\n{done.stdout}{done.stderr}"
            )

    def empty(self) -> None:
        """Take away its storage: it is formatted anew when it starts. For one that does not run."""
        shutil.rmtree(self.data, ignore_errors=True)

    def command(self) -> list[str]:
        # Without the optimising compiler a request costs the same from the first minute on, and a
        # quarter to a half more than with it once that is at rest.
        compiled = COMPILED_EARLY if self.lasting else FOR_MINUTES
        java = self._java(self.heap_mb, compiled, *self.java_options)
        return [*java, "kafka.Kafka", str(self._properties)]

    @property
    def _properties(self) -> Path:
        return self.folder / "server.properties"

    @property
    def _unpacked(self) -> Path:
        """The folder in which its JVM unpacks native libraries. It deletes them when it ends,
        unless it is killed."""
        return self.folder / "tmp"

    def _java(self, heap_mb: int, *options: str) -> list[str]:
        return [
            java(os.environ),
            *jvm_options(heap_mb),
            *options,
            f"-Djava.io.tmpdir={self._unpacked}",
            f"-Dlog4j2.configurationFile={LOG_CONFIGURATION.as_uri()}",
            "-cp",
            f"{self.jars}/*",
        ]


def wait_for_broker(
    kafka: KafkaSettings, deadline_s: float, alive: Callable[[], bool], brokers: int = 1
) -> None:
    """Return once the broker serves producers, groups and transactions, and knows of as many
    `brokers` as there are.

    A listening port is not enough: the first transactional producer is otherwise told
    "coordinator load in progress" for a second or two. Raises ProcessFailure when `alive` says that
    the broker's process has ended, or after `deadline_s` seconds.
    """
    give_up = time.monotonic() + deadline_s
    checks: tuple[Callable[[KafkaSettings], bool], ...] = (
        _listens,
        partial(_serves_metadata, brokers=brokers),
        _serves_groups,
        _serves_transactions,
    )
    for check in checks:
        while not check(kafka):
            if not alive():
                raise ProcessFailure("Kafka ended while it was starting.")
            if time.monotonic() > give_up:
                raise ProcessFailure(f"Kafka was not ready within {deadline_s:g} s.")
            time.sleep(0.05)


def _listens(kafka: KafkaSettings) -> bool:
    """A bare connection; librdkafka would back off longer than a broker needs to start."""
    for address in kafka.bootstrap.split(","):
        host, _, port = address.rpartition(":")
        if not is_listening(host, int(port), ATTEMPT_S):
            return False
    return True


def _quiet(kafka: KafkaSettings) -> dict[str, str | int | float | bool]:
    # Refused connections are expected while a broker starts; librdkafka would print each.
    return {
        **kafka.librdkafka(),
        "log_level": 0,
        "reconnect.backoff.max.ms": 100,
        "retry.backoff.ms": 20,
        "retry.backoff.max.ms": 100,
    }


def _serves_metadata(kafka: KafkaSettings, brokers: int) -> bool:
    try:
        return len(AdminClient(_quiet(kafka)).list_topics(timeout=ATTEMPT_S).brokers) >= brokers
    except KafkaException:
        return False


def _serves_groups(kafka: KafkaSettings) -> bool:
    consumer = Consumer({**_quiet(kafka), "group.id": "leasehold-ready-check"})
    try:
        consumer.committed([TopicPartition("leasehold-ready-check", 0)], timeout=ATTEMPT_S)
    except KafkaException:
        return False
    finally:
        consumer.close()
    return True


def _serves_transactions(kafka: KafkaSettings) -> bool:
    producer = Producer({**_quiet(kafka), "transactional.id": "leasehold-ready-check"})
    try:
        producer.init_transactions(ATTEMPT_S)
    except KafkaException:
        return False
    return True
