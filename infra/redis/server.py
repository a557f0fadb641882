"""A Redis server on the loopback address for the lease ledger."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import redis

from infra.processes import ProcessFailure

MEMORY_MB_MAX = 256


def server_settings() -> dict[str, str]:
    """What holds wherever Redis runs.

    `noeviction`: a lease that memory pressure took away would be a lease that no one released (D6).
    `appendonly` with fsync every second: a restart keeps the ledger; what a power cut loses of the
    last second is caught by the run id rule (D6), since every restart has another run id.
    No snapshots beside it: one that could not be written (no memory for a fork, no room) would have
    Redis refuse every change until one can.
    """
    return {
        "save": "",
        # A replica that begins has what there is at once: until then nobody could take over.
        "repl-diskless-sync-delay": "0",
        "appendonly": "yes",
        "appendfsync": "everysec",
        "maxmemory": f"{MEMORY_MB_MAX}mb",
        "maxmemory-policy": "noeviction",
    }


def local_settings(
    folder: Path, port: int, more: Mapping[str, str] | None = None
) -> dict[str, str]:
    """All settings of a server on the loopback address whose data stand in `folder`. `more`:
    settings that replace or join the others."""
    return {
        "bind": "127.0.0.1",
        "port": str(port),
        "dir": str(folder.absolute()),
        "daemonize": "no",
        # Its default rewrites the memory that holds the environment, by which we find strays.
        "set-proc-title": "no",
        "loglevel": "notice",
        **server_settings(),
        **(more or {}),
    }


def server_command(folder: Path, port: int, more: Mapping[str, str] | None = None) -> list[str]:
    """The command line of a server with `local_settings`; its folder must exist."""
    command = ["redis-server"]
    for name, value in local_settings(folder, port, more).items():
        command += [f"--{name}", value]
    return command


def wait_for_redis(url: str, deadline_s: float, alive: Callable[[], bool], **options: Any) -> None:
    """Return once Redis answers and has loaded its data. `options`: of the client, beside the URL.

    Raises ProcessFailure when `alive` says that its process has ended, or after `deadline_s`.
    """
    give_up = time.monotonic() + deadline_s
    while True:
        try:
            with redis.Redis.from_url(url, socket_timeout=1.0, retry=None, **options) as client:
                client.ping()
            return
        except redis.RedisError as error:
            if not alive():
                raise ProcessFailure("Redis ended while it was starting.") from error
            if time.monotonic() > give_up:
                raise ProcessFailure(f"Redis was not ready within {deadline_s:g} s.") from error
            time.sleep(0.02)
