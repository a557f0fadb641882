"""Group init: `pgbench -i`, which makes tables, loads them by COPY and gives them their keys then,
on a replicant and on a PostgreSQL."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from typing import Final

from tests.bench.bench_settings import BenchSettings
from tests.bench.figure import Figure, percentile
from tests.bench.pgbench import Server, both_servers
from tests.bench.stand import BenchFailure, say

SPARK: Final = ("changefeed", "spark")
TURNS: Final = 3
TIMEOUT_S: Final = 600


def measure(settings: BenchSettings) -> Iterator[Figure]:
    """Each server in its turn, the first of ours with nothing to drop."""
    with both_servers(settings, {}, beside=SPARK) as stands:
        took: dict[str, list[float]] = {server.suffix: [] for server in stands.servers}
        for _ in range(TURNS):
            for server in stands.servers:
                took[server.suffix].append(_initialize(server))
        for suffix, each in took.items():
            yield Figure(f"pgbench_init{suffix}", percentile(each, 0.5), "s")


def _initialize(server: Server) -> float:
    """Return how many seconds it took. Raises BenchFailure."""
    command = ["pgbench", "-h", "127.0.0.1", "-p", str(server.port), "-U", server.user]
    begin_s = time.monotonic()
    done = subprocess.run(
        [*command, "-i", "-s", "1", server.database],
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    took_s = time.monotonic() - begin_s
    if done.returncode:
        raise BenchFailure(f"pgbench -i: {done.stderr}")
    say(f"pgbench -i{server.suffix}: {done.stderr.strip().splitlines()[-1]}")
    return took_s
