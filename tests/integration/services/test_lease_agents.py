"""Goal: agents in Go and in Java hold the newest version of a table through a schema change, which
waits for each of them, and for one that hangs only until its session has died.

Method: the real master, changefeed and ledger; the programs that the documents show, as processes
of their own, that know nothing of Leasehold but its documents.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from infra.java import java
from infra.local_cluster import LocalCluster
from leasehold import ChangeProducer
from leasehold.adapters.redis import ledger
from leasehold.admin.watch import ClusterWatch
from leasehold.settings.client import ClientSettings
from tests.support.cluster.secure_suite import not_in_secure_mode
from tests.support.cluster.system_cluster import Beside, command, settings_of, until
from tests.support.cluster.system_jobs import begin, ended

pytestmark = [
    pytest.mark.long("a Go compiler, and libraries of Java; `make feed-tools`"),
    not_in_secure_mode("the programs are thin, and speak neither TLS nor SASL"),
]
ROOT: Final = Path(__file__).resolve().parents[3]
EXAMPLES: Final = ROOT / "services" / "examples"
JARS: Final = ROOT / ".leasehold" / "lease_agent"
SCRIPT: Final = Path(ledger.__file__).with_name("ledger.lua")
BUILD_S: Final = 280
LANGUAGES: Final = ("go", "java")


@pytest.fixture(scope="module")
def cluster(beside: Beside) -> Iterator[LocalCluster]:
    with beside.running("agents", ("m1", "changefeed")) as made:
        yield made


@pytest.fixture(scope="module")
def settings(cluster: LocalCluster) -> ClientSettings:
    return settings_of(cluster, "tester")


@pytest.fixture(scope="module")
def producer(settings: ClientSettings) -> Iterator[ChangeProducer]:
    with ChangeProducer(settings) as made:
        yield made


class Agent:
    """A program that holds a lease, and what it has printed."""

    def __init__(self, process: subprocess.Popen[bytes], out: Path) -> None:
        self.process = process
        self._out = out

    @property
    def told(self) -> list[dict[str, Any]]:
        lines = self._out.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    @property
    def versions(self) -> list[int]:
        return [each["version"] for each in self.told if "version" in each]

    def errors(self) -> str:
        return self._out.with_suffix(".err").read_text()[-2000:]


def program(language: str, folder: Path) -> list[str]:
    if language == "java":
        assert JARS.is_dir(), "its libraries are not here: run `make feed-tools`"
        source = EXAMPLES / "lease_agent_java" / "LeaseAgent.java"
        return [java(os.environ), "-Xmx200m", "-cp", f"{JARS}/*", str(source)]
    made = folder / "lease_agent"
    subprocess.run(
        ["go", "build", "-mod=readonly", "-o", str(made), "."],
        cwd=EXAMPLES / "lease_agent_go",
        check=True,
        timeout=BUILD_S,
    )
    return [str(made)]


@contextmanager
def running(settings: ClientSettings, language: str, table: str, folder: Path) -> Iterator[Agent]:
    out = folder / f"{language}.out"
    words = (
        *(settings.kafka.bootstrap, settings.cluster.database, settings.redis.url),
        *(str(SCRIPT), table, str(settings.cluster.session_ttl_ms)),
    )
    with out.open("wb") as output, out.with_suffix(".err").open("wb") as errors:
        process = subprocess.Popen(
            [*program(language, folder), *words], stdout=output, stderr=errors
        )
        try:
            yield Agent(process, out)
        finally:
            process.kill()
            process.wait()


def holders(cluster: LocalCluster, table: str) -> dict[int, list[str]]:
    """Who holds a lease on which version, as people are shown it."""
    found = command(cluster, "leases", table, "--json").json["leases"]
    return {each["version"]: each["agents"] for told in found for each in told["versions"]}


@pytest.mark.parametrize("language", LANGUAGES)
def test_it_goes_along_with_schema_changes_and_holds_them_up(
    cluster: LocalCluster,
    settings: ClientSettings,
    producer: ChangeProducer,
    tmp_path: Path,
    language: str,
) -> None:
    table, name = f"t_{language}", f"{language}-agent"
    sql = f"CREATE TABLE {table} (id bigint PRIMARY KEY, a text)"
    assert producer.submit({"sql": sql}).result(90).lsn
    until(lambda: command(cluster, "versions", "history", table).code == 0, "a version of it")
    with running(settings, language, table, tmp_path) as agent, ClusterWatch(settings) as watch:
        watch.first_look(30)

        def has(version: int) -> bool:
            assert agent.process.poll() is None, agent.errors()
            return agent.versions[-1:] == [version]

        until(partial(has, 1), "it holds version 1", seen=agent.errors)
        until(lambda: holders(cluster, table) == {1: [name]}, "the ledger has its lease")
        ended(watch, begin(producer, f"ALTER TABLE {table} ADD COLUMN b text"))
        newest = command(cluster, "versions", table, "--json").json["version"]
        until(partial(has, newest), "it holds the newest version", seen=agent.errors)
        assert agent.versions == list(range(1, newest + 1)), "it was never two behind"
        assert agent.told[-1]["columns"] == ["id", "a", "b"]
        assert not any("lapsed" in each for each in agent.told)
        until(lambda: holders(cluster, table) == {newest: [name]}, "it has the newest alone")

        agent.process.send_signal(signal.SIGSTOP)
        job = begin(producer, f"ALTER TABLE {table} RENAME COLUMN a TO c")
        until(partial(_waits_for, cluster, job, name), "people are told whom it waits for")
        ended(watch, job)  # once its session has died
        agent.process.send_signal(signal.SIGCONT)
        newest = command(cluster, "versions", table, "--json").json["version"]
        until(partial(has, newest), "it goes on with the newest", seen=agent.errors)
        assert any("lapsed" in each for each in agent.told), "it knew that its lease had run out"
        assert agent.told[-1]["columns"] == ["id", "c", "b"]


def _waits_for(cluster: LocalCluster, job: int, name: str) -> bool:
    jobs: list[dict[str, Any]] = command(cluster, "jobs", "--json").json
    (told,) = [each for each in jobs if each["job"] == job]
    return any(name in words for words in told["waits_for"])
