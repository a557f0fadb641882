"""The cluster of a harness: every process reaches each server by a link of its own, and has a wall
clock and a disk of its own where the machine has a C compiler.

Kafka tells a client where its brokers are, so the broker has a listener for each process, which
names that process's proxy, and of several brokers each has one for its peers. Nodes tell each other
where their stores can be copied: the port of a proxy, behind which they listen at another address.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from infra.local_cluster import ROOT, LocalCluster
from infra.ports import LOOPBACK, BrokerPorts, Ports
from leasehold.adapters.kafka.whole_topic import read_to_end
from leasehold.model.topics import Topics
from tests.faults.kinds import SESSION_TTL_MS
from tests.faults.links import Address, Links
from tests.faults.parts import COPIES, KAFKA, PEERS, QUORUM, REDIS, SQL, Parts
from tests.support.cluster import system_clock, system_disk
from tests.support.cluster.preloaded import find_compiler, joined, make_library
from tests.support.cluster.system_clock import WallClock
from tests.support.cluster.system_cluster import until
from tests.support.cluster.system_disk import FaultyDisk

ENVIRON: Final[Mapping[str, str]] = {
    "LEASEHOLD_SESSION_TTL_MS": str(SESSION_TTL_MS),
    "LEASEHOLD_DROPPED_MS": "120000",
    "LEASEHOLD_HISTORY_MS": "60000",
    "LEASEHOLD_ROW_HISTORY_MS": "60000",
}
"""What is dropped goes after two minutes, so that a cluster of many rounds does not grow."""
COMPILER: Final = "cc"
BEHIND: Final = "127.0.0.2"
"""Where nodes listen for those who copy their stores. Others are told 127.0.0.1 and the same port,
which is that of a proxy."""


@dataclass(frozen=True, slots=True)
class Preloads:
    """What is preloaded into processes, by their names; nothing where there is no C compiler."""

    clocks: Mapping[str, WallClock]
    disks: Mapping[str, FaultyDisk]

    def environment(self, name: str) -> list[Mapping[str, str]]:
        """Return what each wants in the environment of a process."""
        found = (self.clocks.get(name), self.disks.get(name))
        return [each.environment for each in found if each is not None]


class FaultCluster(LocalCluster):
    """The processes of `parts`, behind `links`. `libs`: a folder with another `leasehold`, which
    then runs interpreted."""

    def __init__(
        self,
        data: Path,
        parts: Parts,
        links: Links,
        preloads: Preloads,
        libs: Path | None = None,
    ) -> None:
        self.parts = parts
        self.links = links
        self.clocks, self.disks = preloads.clocks, preloads.disks
        self._preloads = preloads
        self._libs = libs
        self._listeners = {
            f"{name}-{broker}": links.reserve(f"{name}-{broker}-listener")
            for name in parts.processes
            for broker in parts.broker_names
        }
        environ = {**os.environ, **ENVIRON}
        super().__init__(
            data, Ports.free(), environ, parts.services, brokers=parts.brokers, redis=parts.redis
        )

    def _settings_of_broker(self, ports: BrokerPorts) -> dict[str, str]:
        """A listener for each process, whose clients are told the address of its own link."""
        several = self.ports.brokers(self.parts.brokers)
        place = several.index(ports)
        broker, processes = self.parts.broker_names[place], self.parts.processes
        inner = f"PLAINTEXT://{LOOPBACK}:{ports.clients}"
        own = [
            f"{name.upper()}://{LOOPBACK}:{self._listeners[f'{name}-{broker}']}"
            for name in processes
        ]
        proxied = [
            f"{name.upper()}://{LOOPBACK}:{self.links.reserve(f'{name}-{broker}')}"
            for name in processes
        ]
        names = ["PLAINTEXT", "CONTROLLER", *(name.upper() for name in processes)]
        peers: dict[str, str] = {}
        if len(several) > 1:
            names.append(PEERS.upper())
            own.append(f"{PEERS.upper()}://{LOOPBACK}:{self.links.reserve(f'{broker}-listener')}")
            proxied.append(
                f"{PEERS.upper()}://{LOOPBACK}:{self.links.reserve(f'{PEERS}-{broker}')}"
            )
            voters = (
                f"{number}@{LOOPBACK}:{self.links.reserve(f'{QUORUM}-{name}')}"
                for number, name in enumerate(self.parts.broker_names, 1)
            )
            peers = {
                "inter.broker.listener.name": PEERS.upper(),
                "controller.quorum.voters": ",".join(voters),
            }
        controller = f"CONTROLLER://{LOOPBACK}:{ports.controller}"
        return {
            **super()._settings_of_broker(ports),
            **peers,
            "num.network.threads": "1",  # of each listener
            "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in names),
            "listeners": ",".join([inner, *own, controller]),
            "advertised.listeners": ",".join([inner, *proxied]),
        }

    def addresses(self, name: str) -> dict[str, str]:
        """Return where the servers are for `name`: at its own links, or directly for clients."""
        found = super().addresses(name)
        if name not in self.parts.processes:
            return found
        kafka = (self.links.reserve(link) for link in self.parts.links_of(f"{name}-{KAFKA}"))
        found["LEASEHOLD_KAFKA"] = ",".join(f"{LOOPBACK}:{port}" for port in kafka)
        if REDIS in self.parts.servers:
            redis = self.links.reserve(f"{name}-{REDIS}")
            found["LEASEHOLD_REDIS"] = f"redis://{LOOPBACK}:{redis}/0"
        return found

    def env(self, name: str) -> dict[str, str]:
        own = super().env(name)
        if name in self.parts.copied:
            own["LEASEHOLD_LISTEN"] = BEHIND
            own["LEASEHOLD_SNAPSHOT_PORT"] = str(self.links.reserve(f"{name}-{COPIES}"))
        own["PYTHONPATH"] = f"{self._libs or ROOT / 'libs'}{os.pathsep}{ROOT}"
        service = self.services.get(name)
        if self._libs is None and (service is None or service.compiled):
            own |= self._compiled()
        return joined(own, *self._preloads.environment(name))

    def server_env(self, name: str) -> dict[str, str]:
        return joined(super().server_env(name), *self._preloads.environment(name))

    def start_links(self) -> None:
        """Start the proxies, which hold nothing up yet."""
        ports = dict(self._listeners)
        if REDIS in self.parts.servers:
            ports |= {f"{name}-{REDIS}": self.ports.redis for name in self.parts.processes}
        for name in self.parts.replicants:
            ports[f"{name}-{SQL}"] = self.sql_port(name)
        for link in self.parts.peer_links:
            peers, quorum = self.parts.links_of(link)
            name = link.removeprefix(f"{PEERS}-")
            ports[peers] = self.links.reserve(f"{name}-listener")
            ports[quorum] = self.brokers.ports[name].controller
        upstream: dict[str, Address] = {link: (LOOPBACK, port) for link, port in ports.items()}
        for name in self.parts.copied:
            link = f"{name}-{COPIES}"
            upstream[link] = (BEHIND, self.links.reserve(link))
        self.links.start(self, upstream)

    def sql_port(self, name: str) -> int:
        """Return where a replicant listens for PostgreSQL clients, behind its link."""
        place = self.services[name].sql
        assert place is not None, name
        return self.ports.sql[place]

    def pid(self, name: str) -> int | None:
        """Return the process id of `name`; None while it does not run."""
        record = self.processes.find(name)
        return None if record is None else record.identity.pid


@contextmanager
def started(folder: Path, parts: Parts, libs: Path | None = None) -> Iterator[FaultCluster]:
    """A cluster of `parts` with everything ready, ended on the way out."""
    folder.mkdir(parents=True, exist_ok=True)
    preloads = make_preloads(folder, parts)
    cluster = FaultCluster(folder / "cluster", parts, Links(), preloads, libs)
    with cluster:
        cluster.start_links()
        try:
            cluster.start_servers()
            cluster.create_topics()
            for name in parts.processes:
                cluster.start(name, wait=name == parts.masters[0])
            for name in parts.processes:
                cluster.wait_ready(name)
            if parts.counting:  # it begins with what happens once it is there
                until(lambda: bool(read_windows(cluster)), "somebody to count")
            yield cluster
        finally:
            cluster.links.close()


def read_windows(cluster: FaultCluster) -> list[dict[str, Any]]:
    """Return what was told of windows of a second and of a minute, in its order."""
    topics = Topics(cluster.cluster_settings.database)
    records = read_to_end(cluster.kafka_settings, "activity-judge", topics.activity.name)
    return [json.loads(record.value) for record in records if record.value]


def make_preloads(folder: Path, parts: Parts) -> Preloads:
    """Return a wall clock and a disk for each process that may have one, made in `folder`."""
    compiler = find_compiler()
    if compiler is None:
        return Preloads({}, {})
    clock = make_library(compiler, system_clock.SOURCE, folder)
    disk = make_library(compiler, system_disk.SOURCE, folder)
    clocked = (*parts.processes, *parts.redis_names, *parts.broker_names)
    return Preloads(
        {name: WallClock(folder / f"{name}.clock", clock) for name in clocked},
        {name: FaultyDisk(folder / f"{name}.disk", disk) for name in parts.disk_names},
    )
