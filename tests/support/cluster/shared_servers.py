"""The Kafka and the Redis of a run of pytest: its worker processes share one of each.

Whoever needs one first starts it, whoever leaves last ends both. Each user holds a shared lock on a
file as long as it lives, which the kernel lets go of however it ends: so nobody has to count. Tests
on them have a database of their own, by which topics, groups, keys and channels differ; whoever
ends, pauses or sets up a server has one of his own.
"""

from __future__ import annotations

import fcntl
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

import pytest

from infra.local_cluster import ROOT, LocalCluster
from infra.ports import Ports
from leasehold.settings.private_files import make_private_folder
from tests.support.cluster.secure_suite import secrets_of
from tests.support.cluster.servers_suite import SERVERS

FOLDER: Final = "servers"
USERS: Final = "users"
STARTING: Final = "starting"
PORTS: Final = "ports.json"


def folder_of_run(folders: pytest.TempPathFactory, worker: str | None) -> Path:
    """Return the folder of the servers of this run. `worker`: the name that xdist gives this
    process, whose temporary folder then stands in that of the run; None outside of xdist."""
    own = folders.getbasetemp()
    return (own if worker is None else own.parent) / FOLDER


class SharedServers(LocalCluster):
    """A cluster without services, which other processes describe by the same folder.

    As a context manager it is one of the users. Raises ProcessFailure where a server does not
    start."""

    def __init__(self, folder: Path) -> None:
        make_private_folder(folder)
        self._folder = folder
        with _locked(folder / STARTING):
            ports = _ports_in(folder)
        secure = secrets_of(folder, ports)
        super().__init__(folder, ports, services=(), secure=secure, **SERVERS)
        self._users: IO[bytes] | None = None

    def __enter__(self) -> Self:
        self._users = (self._folder / USERS).open("ab")
        fcntl.flock(self._users, fcntl.LOCK_SH)
        self.processes.folder.mkdir(parents=True, exist_ok=True)
        self._watchdog = subprocess.Popen(
            [sys.executable, "-m", "infra.watchdog", str(self._folder), self._users.name],
            stdin=subprocess.PIPE,
            # What is said there has its end with this process, not with the last user.
            stdout=subprocess.DEVNULL,
            cwd=ROOT,
            start_new_session=True,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._users is not None
        assert self._watchdog is not None
        with self._users:
            # Let go of first: of two that leave at once, the second one is then alone.
            fcntl.flock(self._users, fcntl.LOCK_UN)
            try:
                fcntl.flock(self._users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.processes.leave_running()  # others go on
            else:
                self.stop_all()
        self._watchdog.terminate()  # it would wait for the others
        self._watchdog.communicate()

    def start_kafka(self) -> None:
        with _locked(self._folder / STARTING):
            super().start_kafka()

    def start_redis(self) -> None:
        with _locked(self._folder / STARTING):
            super().start_redis()

    def start_servers(self) -> None:
        with _locked(self._folder / STARTING):
            super().start_servers()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keep the run's other processes out."""
    with path.open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _ports_in(folder: Path) -> Ports:
    """Return the ports that the first process chose."""
    path = folder / PORTS
    if not path.exists():
        path.write_text(json.dumps(asdict(Ports.free())))
    told = json.loads(path.read_text())
    ports: dict[str, Any] = {
        name: tuple(port) if isinstance(port, list) else port for name, port in told.items()
    }
    return Ports(**ports)
