"""pgbench as the client of a node and of a PostgreSQL in the same run: what starts both, and what a
script did on one of them."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from tests.bench.bench_settings import BenchSettings
from tests.bench.cpu import cpu_times, per_unit
from tests.bench.postgres import postgres
from tests.bench.stand import BenchFailure, Stand, replicants, say, stand

WARM_UP_S: Final = 3
TRIES_MAX: Final = 100


class Server(NamedTuple):
    """`suffix` of its metrics; `processes` of the stand that work for it."""

    suffix: str
    port: int
    database: str
    user: str
    processes: tuple[str, ...] = ()


class Run(NamedTuple):
    """Of one pgbench: transactions per second, each one's time from when it was sent."""

    rate: float
    took_us: list[int]


class Stands(NamedTuple):
    """Where the scripts lie, our stand, and the servers that they run on: ours, and PostgreSQL's
    where it is installed. `promising`: ours, and a PostgreSQL that promises what ours does, with as
    many synchronous standbys as there are replicants."""

    folder: Path
    where: Stand
    servers: list[Server]
    promising: list[Server]


@contextmanager
def both_servers(
    settings: BenchSettings,
    scripts: Mapping[str, str],
    *,
    standbys: bool = False,
    beside: Sequence[str] = (),
) -> Iterator[Stands]:
    """Start a stand of one node for SQL, with its neighbours and the processes that are named, and
    a PostgreSQL beside it, with `standbys` one more; write the scripts by name. Raises BenchFailure
    without pgbench."""
    if shutil.which("pgbench") is None:
        raise BenchFailure("pgbench is not installed (apt install postgresql-client)")
    names = replicants(settings.replicants)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="leasehold-pgbench-")))
        for name, text in scripts.items():
            (folder / f"{name}.sql").write_text(text)
        where = stack.enter_context(stand(["m1", *names, *beside], settings.warm_up))
        database = where.settings.cluster.database
        processes = ("kafka", "redis", "m1", *names, *beside)
        servers = [Server("", where.cluster.ports.sql[0], database, "leasehold", processes)]
        promising = list(servers)
        theirs = stack.enter_context(postgres())
        if theirs is not None:
            servers.append(Server("_pg", theirs, "postgres", "postgres"))
        if standbys:
            port = stack.enter_context(postgres(settings.replicants))
            if port is not None:
                promising.append(Server("_sync", port, "postgres", "postgres"))
        yield Stands(folder, where, servers, promising)


def run_script(
    where: Stand,
    server: Server,
    folder: Path,
    script: str,
    clients: int,
    seconds: int,
    per_second: int = 0,
) -> Run:
    """Return what clients of `script` did in so many seconds, `per_second` times at random moments
    or, with 0, as fast as they could. Raises BenchFailure when one of their transactions failed for
    good."""
    pace = f", {per_second}/s" if per_second else ""
    say(f"{script}{server.suffix}: {clients} clients{pace} for {WARM_UP_S} + {seconds} s")
    _pgbench(server, folder, script, clients, WARM_UP_S, per_second)
    before = cpu_times(where.cluster, server.processes)
    took_us = _pgbench(server, folder, script, clients, seconds, per_second)
    after = cpu_times(where.cluster, server.processes)
    if server.processes:
        spent = per_unit(before, after, len(took_us))
        say(f"processor time per transaction, µs: {spent}")
    return Run(len(took_us) / seconds, took_us)


def _pgbench(
    server: Server, folder: Path, script: str, clients: int, seconds: int, per_second: int
) -> list[int]:
    """Each transaction's time in µs, without what it was late."""
    with tempfile.TemporaryDirectory(dir=folder) as logs:
        command = ["pgbench", "-h", "127.0.0.1", "-p", str(server.port), "-U", server.user]
        command += ["-n", "-M", "prepared", "-f", str(folder / f"{script}.sql")]
        command += ["-c", str(clients), "-j", "1", "-T", str(seconds)]
        command += ["-R", str(per_second)] if per_second else []
        command += ["--max-tries", str(TRIES_MAX), "-l", "--log-prefix", f"{logs}/of"]
        done = subprocess.run(
            [*command, server.database], capture_output=True, text=True, check=False
        )
        lines = [
            line.split() for path in Path(logs).iterdir() for line in path.read_text().splitlines()
        ]
    failed = sum(words[2] in ("failed", "skipped") for words in lines)
    if done.returncode or failed or not lines:
        raise BenchFailure(f"pgbench {script}: {failed} transactions failed; {done.stderr}")
    # With -R the seventh is by how much it was sent late, which the third includes.
    return [int(words[2]) - (int(words[6]) if per_second else 0) for words in lines]
