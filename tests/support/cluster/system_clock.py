"""Processes whose wall clock a test moves while they run, in an instant and by any time.

`wall_clock.c` is preloaded into them, made with the machine's C compiler. Why not libfaketime: as
Debian has it (0.9.10) it loops in Redis's allocator, and with the monotonic clock left alone (a
date that somebody sets moves no boot-time clock) it breaks CPython's sleep and librdkafka's waits.
"""

from __future__ import annotations

import mmap
import shutil
import struct
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from infra.local_cluster import LocalCluster
from infra.ports import Ports
from tests.support.cluster.secure_suite import secrets_of

SOURCE: Final = Path(__file__).with_name("wall_clock.c")
SKIPPED: Final = (
    "SKIPPED: no C compiler, so no test of clock jumps on real parts; install one:"
    " apt-get install -y --no-install-recommends gcc libc6-dev"
)
REDIS: Final = "redis"


class WallClock:
    """The wall clock of one process, as many seconds ahead of the host's as was said last."""

    def __init__(self, path: Path, library: Path) -> None:
        path.write_bytes(struct.pack("q", 0))
        self.environment = {"LD_PRELOAD": str(library), "WALL_CLOCK_FILE": str(path)}
        with path.open("r+b") as file:
            self._page = mmap.mmap(file.fileno(), 8)

    def ahead(self, seconds: int) -> None:
        self._page[:8] = struct.pack("q", seconds)


class ClockedCluster(LocalCluster):
    """A cluster with wall clocks of its own for `clocks`' processes, Redis among them."""

    def __init__(
        self, data: Path, environ: Mapping[str, str], clocks: Mapping[str, WallClock]
    ) -> None:
        ports = Ports.free()
        super().__init__(data, ports, environ, secure=secrets_of(data, ports, environ))
        self.clocks = clocks

    def env(self, name: str) -> dict[str, str]:
        clock = self.clocks.get(name)
        return {**super().env(name), **(clock.environment if clock else {})}

    def server_env(self, name: str) -> dict[str, str]:
        clock = self.clocks.get(name)
        return {**super().server_env(name), **(clock.environment if clock else {})}


@contextmanager
def clocked(
    folder: Path, services: Sequence[str], others: Sequence[str], environ: Mapping[str, str]
) -> Iterator[ClockedCluster]:
    """Kafka by the host's clock; Redis, the services and the processes `others`, which a test
    starts itself, by clocks of their own."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip(SKIPPED)
    library = folder / "wall_clock.so"
    made = [compiler, "-shared", "-fPIC", "-O2", "-Wall", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(made, check=True, timeout=60)
    names = (REDIS, *services, *others)
    clocks = {name: WallClock(folder / f"{name}.clock", library) for name in names}
    cluster = ClockedCluster(folder / "cluster", environ, clocks)
    with cluster:
        cluster.start_servers()
        cluster.create_topics()
        for name in services:
            cluster.start(name)
        yield cluster
