"""Group neighbours: a point read and an UPDATE beside clients of the same node whose statements
compute without an end, and the same on a PostgreSQL in the same run.

⚠ The clients are processes of their own on the same processors, PostgreSQL's servers likewise: what
is compared are ratios, each server's beside to its own alone.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.bench import wire
from tests.bench.bench_settings import BenchSettings
from tests.bench.figure import Figure, percentile
from tests.bench.pgbench import Server, both_servers, run_script
from tests.bench.postgres import connected
from tests.bench.stand import say

READERS: Final = 32
TABLE: Final = "CREATE TABLE t (id int PRIMARY KEY, v int NOT NULL, note text)"
FILL: Final = f"INSERT INTO t SELECT g, 0, 'note ' || g FROM generate_series(1, {wire.ROWS}) AS g"
SCRIPTS: Final = {
    "read": wire.SCRIPTS["read"],
    "update": wire.SCRIPTS["update"],
    "compute": "SELECT count(*) FROM generate_series(1, 100000000) AS g"
    " WHERE md5(g::text) = 'x';\n",
}
BESIDE: Final = ("p50_beside", "p99_beside", "ratio")
END_S: Final = 20.0


def measure(settings: BenchSettings) -> Iterator[Figure]:
    with both_servers(settings, SCRIPTS) as made:
        for server in made.servers:
            with connected(server.port, server.database, server.user) as client:
                client.execute(TABLE)
                client.execute(FILL)
            found: dict[str, float] = {}
            for name in ("read", "update"):
                alone = run_script(made.where, server, made.folder, name, 1, settings.seconds)
                found[name] = percentile(alone.took_us, 0.5)
                yield Figure(f"neighbours_{name}_p50{server.suffix}", found[name], "µs")
            say(f"{READERS} clients that compute")
            with _computing(server, made.folder):
                for name in ("read", "update"):
                    run = run_script(made.where, server, made.folder, name, 1, settings.seconds)
                    p50 = percentile(run.took_us, 0.5)
                    yield Figure(f"neighbours_{name}_p50_beside{server.suffix}", p50, "µs")
                    p99 = percentile(run.took_us, 0.99)
                    yield Figure(f"neighbours_{name}_p99_beside{server.suffix}", p99, "µs")
                    ratio = p50 / found[name]
                    yield Figure(f"neighbours_{name}_ratio{server.suffix}", ratio, "×")


@contextmanager
def _computing(server: Server, folder: Path) -> Iterator[None]:
    """Let clients compute for as long as the block lasts."""
    command = ["pgbench", "-n", "-h", "127.0.0.1", "-p", str(server.port), "-U", server.user]
    command += ["-c", str(READERS), "-j", "1", "-T", "3600", "-f", str(folder / "compute.sql")]
    clients = subprocess.Popen(
        [*command, server.database],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        clients.terminate()
        clients.wait(END_S)
