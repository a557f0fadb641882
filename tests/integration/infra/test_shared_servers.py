"""Servers that several processes share start once, and end with the last of them, however it ends.

Method: users are processes of their own, each of which says which Redis it has.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from infra.local_cluster import ROOT
from infra.process_table import Identity, is_running, wait_until_ended
from infra.processes import Processes
from tests.support.cluster.servers_suite import not_with_sentinels

pytestmark = not_with_sentinels("who starts it and who leaves last is the same with one server")

DEADLINE_S = 60.0
USER = """
import sys
from pathlib import Path
from tests.support.cluster.shared_servers import SharedServers
with SharedServers(Path(sys.argv[1])) as servers:
    servers.start_redis()
    print(servers.processes.find("redis").identity.pid, flush=True)
    sys.stdin.readline()
del servers
"""


class User:
    """A process that uses the servers of a folder until it leaves or is killed."""

    def __init__(self, folder: Path, complaints: Path) -> None:
        self.complaints = complaints
        self.pid: int | None = None
        # Not a pipe, which its watchdog would hold open.
        with complaints.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-W", "error", "-c", USER, str(folder)],
                cwd=ROOT,
                env={"PYTHONPATH": f"{ROOT}:{ROOT / 'libs'}", "PATH": "/usr/bin:/bin"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
            )

    def redis(self) -> int:
        """Return the pid of the Redis that it has found or started."""
        if self.pid is None:
            assert self.process.stdout is not None
            self.pid = int(self.process.stdout.readline())
        return self.pid

    def leave(self) -> None:
        self.process.communicate("\n", DEADLINE_S)
        assert (self.process.returncode, self.complaints.read_text()) == (0, "")

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=DEADLINE_S)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "servers"


@pytest.fixture
def users(folder: Path) -> Iterator[list[User]]:
    """Three; the first one has started Redis."""
    made: list[User] = []
    with ExitStack() as started:
        for number in range(3):
            made.append(User(folder, folder.with_name(f"complaints-{number}")))
            started.callback(made[-1].kill)
            made[0].redis()
        yield made


def redis_in(folder: Path) -> Identity:
    record = Processes(folder / "run", folder / "log").find("redis")
    assert record is not None
    return record.identity


def test_they_start_once_and_end_with_the_last_who_leaves(folder: Path, users: list[User]) -> None:
    assert len({user.redis() for user in users}) == 1
    identity = redis_in(folder)
    for user in users[:-1]:
        user.leave()
        assert is_running(identity), "somebody is left"
    users[-1].leave()
    assert not is_running(identity)


def test_they_outlive_whoever_started_them_and_end_when_all_are_killed(
    folder: Path, users: list[User]
) -> None:
    assert len({user.redis() for user in users}) == 1
    identity = redis_in(folder)
    users[0].kill()
    users[1].leave()
    assert is_running(identity), "somebody is left"
    users[2].kill()
    assert wait_until_ended(identity, DEADLINE_S)
