"""Group neighbours: a point read and an UPDATE beside clients of the same node whose statements
compute without an end, or are planned anew each time, or read whole tables; and the same on a
PostgreSQL in the same run.

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
    "plan": "\\set n random(1, 1000000000)\n"
    "SELECT a.v + :n, b.note FROM t AS a JOIN t AS b ON b.id = a.v WHERE a.id = :n AND b.v < :n;\n",
    "stream": "SELECT * FROM t;\n",
}
BESIDE: Final = {"compute": "", "plan": "_plan", "stream": "_stream"}
"""The scripts of neighbours, and what figures beside them end with."""
FIGURES: Final = tuple(
    f"{what}{of}" for of in BESIDE.values() for what in ("p50_beside", "p99_beside", "ratio")
)
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
            for script, of in BESIDE.items():
                end = of + server.suffix
                say(f"{READERS} clients of {script}")
                with _neighbours(server, made.folder, script):
                    for name in ("read", "update"):
                        run = run_script(made.where, server, made.folder, name, 1, settings.seconds)
                        p50 = percentile(run.took_us, 0.5)
                        yield Figure(f"neighbours_{name}_p50_beside{end}", p50, "µs")
                        p99 = percentile(run.took_us, 0.99)
                        yield Figure(f"neighbours_{name}_p99_beside{end}", p99, "µs")
                        yield Figure(f"neighbours_{name}_ratio{end}", p50 / found[name], "×")


@contextmanager
def _neighbours(server: Server, folder: Path, script: str) -> Iterator[None]:
    """Let clients run that script for as long as the block lasts."""
    command = ["pgbench", "-n", "-h", "127.0.0.1", "-p", str(server.port), "-U", server.user]
    command += ["-c", str(READERS), "-j", "1", "-T", "3600", "-f", str(folder / f"{script}.sql")]
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
