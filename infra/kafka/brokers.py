"""The brokers of one local cluster: one, or three that elect a controller and keep each record
thrice. Each is started, stopped, killed, paused and emptied by its name."""

from __future__ import annotations

import json
import signal
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from infra.deployment import KAFKA
from infra.kafka.broker import Broker
from infra.ports import LOOPBACK, BrokerPorts
from infra.processes import STOP_DEADLINE_S, Processes, ProcessFailure
from leasehold.settings.environment import KafkaSettings
from leasehold.settings.private_files import make_private_file

ONE: Final = 1
THREE: Final = 3
CLUSTER_ID: Final = "kafka-cluster-id"
"""A file of the data folder: brokers are formatted one by one, for one cluster."""
CLIENTS: Final = "clients"
TRUSTED: Final = "trusted"
QUORUM_STATE: Final = "__cluster_metadata-0/quorum-state"
ASK_S: Final = 5.0
END_DEADLINE_S: Final = 5.0
"""Of several that end at once. What was acknowledged is in the files of a majority."""

Environ = Callable[[str], Mapping[str, str]]
"""Gives the environment that a server is started with, by its name."""


def broker_names(count: int) -> tuple[str, ...]:
    """Return the names of the processes, by their node ids."""
    return (KAFKA,) if count == ONE else tuple(f"{KAFKA}-{n}" for n in range(1, count + 1))


def brokers_in(data: Path) -> int:
    """Return how many brokers have kept their records in a data folder; 0: none so far."""
    for count in (THREE, ONE):
        if (data / broker_names(count)[0]).is_dir():
            return count
    return 0


def choose_brokers(data: Path, wanted: int) -> int:
    """Return how many brokers a cluster has: as many as its folder, `wanted` where that is new or
    nothing is wished (0). Raises ProcessFailure where both differ."""
    there = brokers_in(data)
    if wanted not in (0, ONE, THREE):
        raise ProcessFailure(f"A local cluster has {ONE} broker or {THREE}, not {wanted}.")
    if wanted and there and wanted != there:
        raise ProcessFailure(
            f"The cluster of {data} has {there} broker(s), and its topics as many replicas: "
            f"for {wanted} take another folder (LEASEHOLD_DATA), or delete it first (make clean)."
        )
    return there or wanted or ONE


class Brokers:
    """The brokers of a data folder. Methods that start raise ProcessFailure.

    `names` are theirs by node id, from 1 on. What is done to one of them is done by its name."""

    def __init__(
        self,
        data: Path,
        jars: Path,
        ports: Sequence[BrokerPorts],
        processes: Processes,
        environ: Environ,
        *,
        folder: Path,
        heap_mb: int,
        settings: Callable[[BrokerPorts], Mapping[str, str]] = lambda ports: {},
        lasting: bool = False,
        java_options: Sequence[str] = (),
        format_options: Sequence[str] = (),
    ) -> None:
        """Describe as many brokers as `ports` are given. `folder`: where they are started in.
        `settings`: of each, beside its own."""
        self.names = broker_names(len(ports))
        self.ports = dict(zip(self.names, ports, strict=True))
        self.lasting = lasting
        self._data = data
        self._processes = processes
        self._environ = environ
        self._folder = folder
        controllers = [each.controller for each in ports] if len(ports) > 1 else []
        self.by_name = {
            name: Broker(
                data / name,
                jars,
                own.clients,
                own.controller,
                heap_mb,
                settings(own),
                lasting=lasting,
                java_options=java_options,
                format_options=format_options,
                node_id=node_id,
                controllers=controllers,
            )
            for node_id, (name, own) in enumerate(self.ports.items(), 1)
        }

    def bootstrap(self, listener: str = CLIENTS, names: Sequence[str] = ()) -> str:
        """Return the addresses of one listener, a field of `BrokerPorts`, of brokers (default: of
        all), as clients take them."""
        ports = (getattr(self.ports[name], listener) for name in names or self.names)
        return ",".join(f"{LOOPBACK}:{port}" for port in ports)

    def start(self, *names: str) -> None:
        """Start brokers (default: all) that do not run. They are not ready for work then."""
        away = [name for name in names or self.names if self._processes.find(name) is None]
        if len(self.names) > 1:
            identity = self._cluster_id()
            for name in away:
                self.by_name[name].cluster_id = identity
        with ThreadPoolExecutor(max(1, len(away))) as side_by_side:
            list(side_by_side.map(self._prepare, away))
        for name in away:
            command = self.by_name[name].command()
            self._processes.start(name, command, self._environ(name), self._folder)

    def stop(self, *names: str, deadline_s: float = STOP_DEADLINE_S) -> None:
        """Stop brokers (default: all), which hand over what they lead."""
        for name in names or self.names:
            self._processes.stop(name, deadline_s)

    def end(self) -> list[str]:
        """End all brokers at once: the last ones of them wait in vain for a controller. Returns
        those that ran."""
        running = self.running()
        for name in running:
            self._processes.signal(name, signal.SIGTERM)
        for name in self.names:
            self._processes.stop(name, END_DEADLINE_S if len(self.names) > 1 else STOP_DEADLINE_S)
        return running

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal: SIGKILL, or SIGSTOP and SIGCONT for a pause."""
        self._processes.signal(name, number)

    def empty(self, name: str) -> None:
        """Take away all that a broker has on its disk, as a new disk would. It must not run."""
        if self._processes.find(name) is not None:
            raise ProcessFailure(f"{name} runs: stop it before its disk is emptied.")
        self.by_name[name].empty()

    def is_running(self, name: str) -> bool:
        return self._processes.find(name) is not None

    def running(self) -> list[str]:
        return [name for name in self.names if self.is_running(name)]

    def pid(self, name: str) -> int:
        """Return the process of a broker that runs."""
        record = self._processes.find(name)
        if record is None:
            raise ProcessFailure(f"{name} does not run.")
        return record.identity.pid

    def leader_of(self, topic: str, kafka: KafkaSettings, partition: int = 0) -> str:
        """Return the name of the broker that leads a partition, "" where none does. Raises
        KafkaException."""
        found = _quiet_client(kafka).list_topics(topic, timeout=ASK_S)
        return self._named(found.topics[topic].partitions[partition].leader)

    def in_sync(self, topic: str, kafka: KafkaSettings, partition: int = 0) -> set[str]:
        """Return who has all of a partition. Raises KafkaException."""
        found = _quiet_client(kafka).list_topics(topic, timeout=ASK_S)
        return {self._named(n) for n in found.topics[topic].partitions[partition].isrs}

    def active_controller(self) -> str:
        """Return the broker whose controller is active, "" where none is known. Brokers tell
        clients any of them: it is read from what they keep of their elections."""
        found = [self._election(name) for name in self.names]
        epoch, leader = max(found, default=(0, 0))
        return self._named(leader) if epoch else ""

    def all_in_sync(self, kafka: KafkaSettings) -> bool:
        """Return whether each partition of each topic has all its replicas."""
        try:
            found = _quiet_client(kafka).list_topics(timeout=ASK_S)
        except KafkaException:
            return False
        return all(
            len(partition.isrs) == len(partition.replicas)
            for topic in found.topics.values()
            for partition in topic.partitions.values()
        )

    def _election(self, name: str) -> tuple[int, int]:
        """Return the newest epoch of controllers that a broker knows of, and its leader."""
        try:
            told = json.loads((self.by_name[name].data / QUORUM_STATE).read_text("utf-8"))
            return int(told["leaderEpoch"]), int(told["leaderId"])
        except (OSError, ValueError, KeyError):
            return 0, 0

    def _named(self, node_id: int) -> str:
        return self.names[node_id - 1] if 1 <= node_id <= len(self.names) else ""

    def _prepare(self, name: str) -> None:
        self.by_name[name].prepare(self._environ(name))

    def _cluster_id(self) -> str:
        file = self._data / CLUSTER_ID
        if not file.exists():
            make_private_file(file)
            file.write_text(uuid.uuid4().hex[:22], "ascii")
        return file.read_text("ascii").strip()


def _quiet_client(kafka: KafkaSettings) -> AdminClient:
    """Return a client that does not print each broker that is away."""
    return AdminClient({**kafka.librdkafka(), "log_level": 0})
