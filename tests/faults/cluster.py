"""The cluster of a harness: every process reaches each server by a link of its own, and has a wall
clock of its own where the machine has a C compiler.

Kafka tells a client where its brokers are, so the broker has a listener for each process, which
names that process's proxy.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from infra.local_cluster import ROOT, LocalCluster
from infra.ports import LOOPBACK, BrokerPorts, Ports
from tests.faults.kinds import SESSION_TTL_MS
from tests.faults.links import Links
from tests.faults.parts import KAFKA, REDIS, SQL, Parts
from tests.support.cluster.system_clock import SOURCE, WallClock

ENVIRON: Final[Mapping[str, str]] = {
    "LEASEHOLD_SESSION_TTL_MS": str(SESSION_TTL_MS),
    "LEASEHOLD_DROPPED_MS": "120000",
    "LEASEHOLD_HISTORY_MS": "60000",
    "LEASEHOLD_ROW_HISTORY_MS": "60000",
}
"""What is dropped goes after two minutes, so that a cluster of many rounds does not grow."""
COMPILER: Final = "cc"


def find_compiler() -> str | None:
    """Return the machine's C compiler; None without one."""
    return shutil.which("cc") or shutil.which("gcc")


class FaultCluster(LocalCluster):
    """The processes of `parts`, behind `links`. `libs`: a folder with another `leasehold`, which
    then runs interpreted."""

    def __init__(
        self,
        data: Path,
        parts: Parts,
        links: Links,
        clocks: Mapping[str, WallClock],
        libs: Path | None = None,
    ) -> None:
        self.parts = parts
        self.links = links
        self.clocks = clocks
        self._libs = libs
        self._listeners = {name: links.reserve(f"{name}-listener") for name in parts.processes}
        environ = {**os.environ, **ENVIRON}
        super().__init__(data, Ports.free(), environ, parts.services)

    def _settings_of_broker(self, ports: BrokerPorts) -> dict[str, str]:
        """A listener for each process, whose clients are told the address of its own link."""
        inner = f"PLAINTEXT://{LOOPBACK}:{ports.clients}"
        own = [f"{name.upper()}://{LOOPBACK}:{port}" for name, port in self._listeners.items()]
        proxied = [
            f"{name.upper()}://{LOOPBACK}:{self.links.reserve(f'{name}-{KAFKA}')}"
            for name in self.parts.processes
        ]
        names = ("PLAINTEXT", "CONTROLLER", *(name.upper() for name in self._listeners))
        controller = f"CONTROLLER://{LOOPBACK}:{ports.controller}"
        return {
            **super()._settings_of_broker(ports),
            "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in names),
            "listeners": ",".join([inner, *own, controller]),
            "advertised.listeners": ",".join([inner, *proxied]),
        }

    def addresses(self, name: str) -> dict[str, str]:
        """Return where the servers are for `name`: at its own links, or directly for clients."""
        if name not in self._listeners:
            return super().addresses(name)
        kafka, redis = (self.links.reserve(f"{name}-{server}") for server in (KAFKA, REDIS))
        return {
            "LEASEHOLD_KAFKA": f"{LOOPBACK}:{kafka}",
            "LEASEHOLD_REDIS": f"redis://{LOOPBACK}:{redis}/0",
        }

    def env(self, name: str) -> dict[str, str]:
        clock = self.clocks.get(name)
        own = super().env(name)
        own["PYTHONPATH"] = f"{self._libs or ROOT / 'libs'}{os.pathsep}{ROOT}"
        if self._libs is None:
            own |= self._compiled()
        return {**own, **(clock.environment if clock else {})}

    def server_env(self, name: str) -> dict[str, str]:
        clock = self.clocks.get(name)
        return {**super().server_env(name), **(clock.environment if clock else {})}

    def start_links(self) -> None:
        """Start the proxies, which hold nothing up yet."""
        upstream: dict[str, int] = {}
        for name in self.parts.processes:
            upstream[f"{name}-{KAFKA}"] = self._listeners[name]
            upstream[f"{name}-{REDIS}"] = self.ports.redis
        for name in self.parts.replicants:
            upstream[f"{name}-{SQL}"] = self.sql_port(name)
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
    clocks = _clocks(folder, (*parts.processes, REDIS))
    cluster = FaultCluster(folder / "cluster", parts, Links(), clocks, libs)
    with cluster:
        cluster.start_links()
        try:
            cluster.start_servers()
            cluster.create_topics()
            for name in parts.processes:
                cluster.start(name, wait=name == parts.masters[0])
            for name in parts.processes:
                cluster.wait_ready(name)
            yield cluster
        finally:
            cluster.links.close()


def _clocks(folder: Path, names: tuple[str, ...]) -> dict[str, WallClock]:
    compiler = find_compiler()
    if compiler is None:
        return {}
    library = folder / "wall_clock.so"
    command = [compiler, "-shared", "-fPIC", "-O2", "-Wall", "-o", str(library), str(SOURCE)]
    subprocess.run([*command, "-ldl"], check=True, timeout=60)
    return {name: WallClock(folder / f"{name}.clock", library) for name in names}
