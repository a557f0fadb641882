"""Goal: no command waits for ever for a broker that refuses it, or says nothing: it ends, and tells
what happened, to what, and what to do.

Method: one broker that asks for a password, and a listener that takes connections and never
answers. Every command that comes to Kafka is run as a process, some at once: by somebody whose
password is wrong, by somebody who may do nothing, and with the silent one.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from infra.ports import LOOPBACK
from leasehold.cli.command import SUMMARIES
from leasehold.settings.environment import KafkaSettings, to_environment
from tests.support.cluster.guarded_kafka import PASSWORD, guarded_broker_in
from tests.support.cluster.redis_server import redis_in

pytestmark = pytest.mark.long("some ninety processes, each of which gives up after some seconds")

DEADLINE_S: Final = 120.0
"""Longer than the longest wait that a command has unless told otherwise; none may use it up."""
AT_ONCE: Final = 4
WRONG: Final = "not-the-password"
TABLE: Final = "create table t (id integer primary key)"
COMMANDS: Final[Sequence[str]] = (
    "status",
    "status --json",
    "doctor",
    "versions",
    "top --once",
    "leases",
    "jobs",
    "jobs watch 1",
    "jobs pause 1",
    "upgrade status",
    "upgrade finalize --yes",
    "clock",
    "clock reset --yes",
    "submit requests",
    "ddl TABLE",
    "check",
    "dead-letter",
    "dead-letter explain 1",
    "dead-letter resubmit 1",
    "feed",
    "feed create t",
    "feed drop t",
    "feed snapshot t",
    "intake",
    "backup create PLACE",
    "audit",
    "audit --follow",
    "topics",
    "setup-acls --master User:m --dry-run",
    "setup-acls --master User:m",
)
SHOWS_THE_REST: Final = "top --once"
"""Names the part that is away, and ends as well as ever."""
ELSEWHERE: Final[Mapping[str, str]] = {
    "sql": "comes to a node",
    "schema": "comes to a node",
    "export": "comes to a node",
    "import": "comes to a node first",
    "role": "comes to a node, or to nobody",
    "user": "changes a file",
    "init": "writes a file",
    "completion": "prints a text",
    "dev": "is all of it in one process",
    "master": "a service: test_kafka_access",
    "replicant": "a service: test_kafka_access",
    "changefeed": "a service: test_kafka_access",
    "dashboard": "a service: test_kafka_access",
}


class Ended(NamedTuple):
    code: int | None
    """None: it had to be killed."""
    said: str
    after_s: float


def test_each_command_is_run_or_comes_to_no_broker() -> None:
    assert {each.split()[0] for each in COMMANDS} | ELSEWHERE.keys() == SUMMARIES.keys()
    assert not {each.split()[0] for each in COMMANDS} & ELSEWHERE.keys()


@pytest.fixture(scope="module")
def ada(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaSettings]:
    with guarded_broker_in(tmp_path_factory.mktemp("secured"), "ada", "bob") as settings:
        yield settings


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with redis_in(tmp_path_factory.mktemp("redis")) as server:
        yield server.url


@pytest.fixture(scope="module")
def silent() -> Iterator[int]:
    """Return a port where connections are taken by the system, and nobody ever reads."""
    with socket.socket() as listener:
        listener.bind((LOOPBACK, 0))
        listener.listen(1024)
        yield listener.getsockname()[1]


def run_all(settings: KafkaSettings, redis_url: str) -> dict[str, Ended]:
    """Run every command; return how each has ended."""
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(AT_ONCE) as threads:
        folder = Path(name)
        (folder / "requests").write_text('{"table": "t", "op": "insert", "values": {"id": 1}}\n')
        others = {name: value for name, value in os.environ.items() if "LEASEHOLD" not in name}
        environ = {
            **others,
            **to_environment(settings),
            "LEASEHOLD_REDIS": redis_url,
            "LEASEHOLD_DATABASE": "demo",
            "LEASEHOLD_DATA": str(folder / "data"),
            "LEASEHOLD_SNAPSHOT_TOKEN": "0123456789abcdef",
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        ended = threads.map(lambda each: run(each, folder, environ), COMMANDS)
        return dict(zip(COMMANDS, ended, strict=True))


def run(command: str, folder: Path, environ: Mapping[str, str]) -> Ended:
    places = {"TABLE": TABLE, "PLACE": str(folder / "backups")}
    words = [places.get(word, word) for word in command.split()]
    begun = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "leasehold.cli.main", *words],
        env=environ,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        said, _ = process.communicate(timeout=DEADLINE_S)
        code: int | None = process.returncode
    except subprocess.TimeoutExpired:
        process.kill()
        said, _ = process.communicate()
        code = None
    return Ended(code, said, time.monotonic() - begun)


def wrong_among(ended: Mapping[str, Ended], words: str) -> list[str]:
    """Return which commands have not ended, or have not said `words`, with what they said."""
    return [
        f"{command}: {each.code} after {each.after_s:.0f} s: {each.said}"
        for command, each in ended.items()
        if each.code is None
        or (each.code == 0 and command != SHOWS_THE_REST)
        or "Traceback" in each.said
        or not re.search(words, each.said, re.DOTALL)
    ]


def test_who_has_a_wrong_password_is_told_so(ada: KafkaSettings, redis_url: str) -> None:
    ended = run_all(replace(ada, password=WRONG), redis_url)
    assert wrong_among(ended, r"access denied as user ada .*LEASEHOLD_KAFKA_PASSWORD") == []
    assert not any(WRONG in each.said or PASSWORD in each.said.split() for each in ended.values())


def test_who_may_do_nothing_is_told_so(ada: KafkaSettings, redis_url: str) -> None:
    ended = run_all(replace(ada, username="bob"), redis_url)
    assert wrong_among(ended, r"access denied as user bob .*access control lists") == []


def test_a_broker_that_says_nothing_is_named(silent: int, redis_url: str) -> None:
    address = f"{LOOPBACK}:{silent}"
    ended = run_all(KafkaSettings(bootstrap=address), redis_url)
    shown = ended.pop(SHOWS_THE_REST)
    assert f"kafka can't be reached: Kafka at {address}" in shown.said
    assert wrong_among(ended, f"Kafka at {address}.*LEASEHOLD_KAFKA") == []
