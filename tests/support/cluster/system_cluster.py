"""The whole system as processes, for the tests of this folder: started, asked, looked at, checked.

A module starts one cluster and shares it between its tests; what a test breaks it mends itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Any, Final

import pytest

from infra.local_cluster import ROOT, LocalCluster
from infra.ports import Ports
from leasehold.adapters.kafka.request_transport import KafkaRequestTransport
from leasehold.adapters.os.clock import boottime_ns
from leasehold.admin.view import ClusterView
from leasehold.admin.watch import ClusterWatch
from leasehold.cli.main import parser
from leasehold.cli.output import Output
from leasehold.model.records.acks import Ack
from leasehold.model.records.requests import Outcome, Queue
from leasehold.settings.client import ClientSettings
from tests.support.cli.json_output import check_printed
from tests.support.cluster.secure_suite import secrets_of, tested_mode
from tests.support.cluster.servers_suite import SERVERS

SOON_S: Final = 90.0
"""Deadline of what is awaited. Generous: nothing is measured here, and machines are shared."""
LOOK_AGAIN_S: Final = 0.02
LOOK_AGAIN_S_MAX: Final = 0.2
SPARK: Final = "spark"
TOLD: Final = "the log is told by the master from offset"
READ: Final = "the log is read from Kafka from offset"


@contextmanager
def running(
    folder: Path,
    names: Sequence[str],
    environ: Mapping[str, str] | None = None,
    servers: Mapping[str, Any] = SERVERS,
) -> Iterator[LocalCluster]:
    """Kafka, Redis, the topics, and the named services, each ready for work. `servers`: how many
    there are of each, else as many as the run has."""
    ports = Ports.free()
    secrets = secrets_of(folder, ports, environ, servers)
    with LocalCluster(folder, ports, environ, secure=secrets, **servers) as cluster:
        cluster.start_servers()
        _start_services(cluster, names)
        yield cluster


@dataclass(frozen=True, slots=True)
class Beside:
    """The Kafka and the Redis of `servers`, for who ends, pauses or sets up neither of the two:
    they need not be started once more."""

    servers: LocalCluster
    folders: pytest.TempPathFactory

    @contextmanager
    def running(
        self, folder: str, names: Sequence[str], environ: Mapping[str, str] | None = None
    ) -> Iterator[LocalCluster]:
        """The topics of a database of its own, and the named services, each ready for work."""
        self.servers.start_servers()
        ports = Ports.free().with_servers_of(self.servers.ports)
        database = a_database()
        own = {**(os.environ if environ is None else environ), "LEASEHOLD_DATABASE": database}
        secrets = tested_mode(self.servers)
        secure = False if secrets is None else secrets.of_database(database)
        made = LocalCluster(self.folders.mktemp(folder), ports, own, secure=secure, **SERVERS)
        with made as cluster:
            _start_services(cluster, names)
            yield cluster


def a_database() -> str:
    """A name that no other test has."""
    return f"t{uuid.uuid4().hex[:12]}"


def _start_services(cluster: LocalCluster, names: Sequence[str]) -> None:
    cluster.create_topics()
    if SPARK in names:
        cluster.start(SPARK, wait=False)
    for name in names:
        cluster.start(name)


def settings_of(cluster: LocalCluster, node: str) -> ClientSettings:
    """What a client process named `node` would read from its environment."""
    return ClientSettings.read(cluster.env(node))


def until(
    met: Callable[[], bool], what: str, seconds: float = SOON_S, seen: Callable[[], str] = str
) -> None:
    """Wait until `met`, for what happens in another process and can only be looked at. `seen`: what
    to tell beside it where that does not happen. It is looked at ever more seldom: to look takes
    the processors from what is waited for."""
    begun_ns = boottime_ns()
    pause = threading.Event()
    while not met():
        waited_s = (boottime_ns() - begun_ns) / 1e9
        assert waited_s < seconds, f"waited {seconds:g} s for: {what}\n{seen()}"
        pause.wait(min(max(LOOK_AGAIN_S, waited_s / 10), LOOK_AGAIN_S_MAX))


def seen(watch: ClusterWatch, wanted: Callable[[ClusterView], bool], what: str) -> ClusterView:
    """The first view that is as wanted."""
    assert watch.wait_for(wanted, SOON_S), f"waited {SOON_S:g} s for: {what}; saw {watch.view.log}"
    return watch.view


def await_ack(watch: ClusterWatch, node: str, wanted: Callable[[Ack], bool], what: str) -> None:
    """Until what `node` says of itself is as wanted. A view has no node that has said farewell, or
    nothing yet."""

    def is_wanted(view: ClusterView) -> bool:
        found = view.nodes.get(node)
        return found is not None and wanted(found.ack)

    seen(watch, is_wanted, f"{node} {what}")


def await_coherent(watch: ClusterWatch, node: str, lsn: int = 0) -> None:
    at_least = f"coherent at LSN {lsn} or later"
    await_ack(watch, node, lambda ack: ack.coherent and ack.lsn >= lsn, at_least)


# ---------------------------------------------------------------- raw requests


class Asker:
    """Puts bytes on the requests topic as any stranger could, signed where there is a key, and
    reads what is answered."""

    REPLY_TO: Final = 0

    def __init__(self, settings: ClientSettings) -> None:
        topics = settings.topics
        self._queue = Queue.REQUESTS.value
        self._sign = settings.signer()
        self._transport = KafkaRequestTransport(
            settings.kafka, topics.requests.name, topics.results.name, self.REPLY_TO
        )
        self._heard: dict[bytes, list[Outcome]] = {}

    def send(self, body: bytes, content_type: str = "application/json") -> None:
        self._transport.send(b"", self._sign(self._queue, "", content_type, body), body)

    def answers(self, request_id: bytes, count: int = 1) -> list[Outcome]:
        """The first `count` answers given to this id."""

        def listen() -> bool:
            for result in self._transport.results(0.1):
                self._heard.setdefault(result.request_id, []).append(result.outcome)
            return len(self._heard.get(request_id, ())) >= count

        until(listen, f"{count} answer(s) to {request_id.hex()}")
        return self._heard[request_id]

    def close(self) -> None:
        self._transport.close(5.0)


# ---------------------------------------------------------------- the command


@dataclass(frozen=True, slots=True)
class Said:
    """What a command said: exit code, standard output, standard error."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def command(cluster: LocalCluster, *arguments: str) -> Said:
    """Run `leasehold …` as a process of its own, as a person would."""
    done = subprocess.run(
        [sys.executable, "-m", "leasehold.cli.main", *arguments],
        env=cluster.env("command"),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=2 * SOON_S,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    if "--json" in arguments:
        check_printed(arguments, done.stdout)
    return Said(done.returncode, done.stdout, done.stderr)


def check(cluster: LocalCluster) -> Said:
    """Run `leasehold check --json` in this process: to start another one takes as long again."""
    arguments = parser("check").parse_args(["check", "--json"])
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = arguments.run(arguments, settings_of(cluster, "command"), Output(as_json=True))
    check_printed(("check", "--json"), out.getvalue())
    return Said(int(code), out.getvalue(), err.getvalue())


def assert_consistent(cluster: LocalCluster, nodes: Sequence[str]) -> None:
    """`leasehold check`: every node, at one log position, has all seven conditions of d ⊨ S and
    the same checksums (L6)."""
    said = check(cluster)
    assert said.code == 0, (said.out, said.err)
    told = said.json
    assert told["troubles"] == []
    reports = told["reports"]
    assert {report["node"] for report in reports} >= set(nodes), reports
    sums: dict[tuple[int, int], set[str]] = {}
    for report in reports:
        # By id: a table whose version event has not come yet is checked all the same, without name.
        sums.setdefault((report["table_id"], report["offset"]), set()).add(report["checksum"])
    assert len({table for table, _ in sums}) == len(sums), "all report at one log position"
    assert all(len(found) == 1 for found in sums.values()), reports


# ---------------------------------------------------------------- logs of processes


def logged(cluster: LocalCluster, name: str) -> str:
    """All that the process logged since it was last started (bounded by the tail kept)."""
    return cluster.log_tail(name, 100_000)


def is_told(cluster: LocalCluster, name: str) -> bool:
    """Whether the log is told to it now, by what it logs at level DEBUG."""
    log = logged(cluster, name)
    return log.rfind(TOLD) > log.rfind(READ)


def named(settings: ClientSettings, node: str) -> ClientSettings:
    """The same settings for a client process of another name."""
    return replace(settings, cluster=replace(settings.cluster, node=node))
