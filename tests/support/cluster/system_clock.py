"""Processes whose wall clock a test moves while they run, in an instant and by any time.

`wall_clock.c` is preloaded into them, made with the machine's C compiler. Why not libfaketime: as
Debian has it (0.9.10) it loops in Redis's allocator, and with the monotonic clock left alone (a
date that somebody sets moves no boot-time clock) it breaks CPython's sleep and librdkafka's waits.
"""

from __future__ import annotations

import mmap
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from infra.local_cluster import LocalCluster
from infra.ports import Ports
from tests.support.cluster.preloaded import find_compiler, make_library
from tests.support.cluster.secure_suite import secrets_of

SOURCE: Final = Path(__file__).with_name("wall_clock.c")
SKIPPED: Final = (
    "SKIPPED: no C compiler, so no test of clock jumps on real parts; install one:"
    " apt-get install -y --no-install-recommends gcc libc6-dev"
)
REDIS: Final = "redis"
_PAGE_BYTES: Final = 40
"""`struct page` of `wall_clock.c`."""


class WallClock:
    """The clocks of one process: its wall clock as many seconds ahead of the host's as was said
    last, its boot-time clock as much faster or slower."""

    def __init__(self, path: Path, library: Path) -> None:
        path.write_bytes(bytes(_PAGE_BYTES))
        self.environment = {"LD_PRELOAD": str(library), "WALL_CLOCK_FILE": str(path)}
        with path.open("r+b") as file:
            self._page = mmap.mmap(file.fileno(), _PAGE_BYTES)
        self._turn = 0
        self._rate = (0, 0, 0)

    def ahead(self, seconds: int) -> None:
        self._page[:8] = struct.pack("q", seconds)

    def run_at(self, ppm: int) -> None:
        """Let the boot-time clock run faster by so many parts of a million from now on, and from
        what it shows now."""
        host_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        before_ppm, since_ns, offset_ns = self._rate
        offset_ns += (host_ns - since_ns) * before_ppm // 1_000_000
        self._rate = (ppm, host_ns, offset_ns)
        self._turn += 1  # a reader waits until it is even again
        self._page[8:16] = struct.pack("Q", self._turn)
        self._page[16:_PAGE_BYTES] = struct.pack("3q", *self._rate)
        self._turn += 1
        self._page[8:16] = struct.pack("Q", self._turn)


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
    compiler = find_compiler()
    if compiler is None:
        pytest.skip(SKIPPED)
    library = make_library(compiler, SOURCE, folder)
    names = (REDIS, *services, *others)
    clocks = {name: WallClock(folder / f"{name}.clock", library) for name in names}
    cluster = ClockedCluster(folder / "cluster", environ, clocks)
    with cluster:
        cluster.start_servers()
        cluster.create_topics()
        for name in services:
            cluster.start(name)
        yield cluster
