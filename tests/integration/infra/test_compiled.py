"""Compiled and interpreted nodes are interchangeable, byte for byte.

Method: one process of each kind gets the same requests (good ones, and such as strangers send),
clock and ids. Compared is every byte of the log and of the answers, and every row of both stores'
files; then the log that whole runs of the simulated system end with.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from infra.compiled import ROOT, VARIABLE, Builds, Mode, NotCompiled, mode_of
from infra.local_cluster import LocalCluster
from infra.ports import Ports

pytestmark = pytest.mark.integration
SEEDS = ("1", "6")
RUN_DEADLINE_S = 240
SESSIONS = (
    "sql_session/test_hurried_session",
    "sql_session/test_single_update",
    "pgwire/test_conversation",
    "adapters/kafka/test_missing_topics",
)
OTHER_SESSIONS = (
    "client/test_change_producer",
    "client/test_pending",
    "sql_session/test_cursors",
    "sql_session/test_sql_session",
    "sql_session/test_wire_scenarios",
    "adapters/postgres/test_server",
    "adapters/postgres/test_server_waits",
)
FEEDS = (
    "events/test_feed_encodings",
    "adapters/test_fed_rows",
    "changefeed/test_changefeed_step",
    "changefeed/test_feed_shell",
    "changefeed/test_feeds_of_a_database",
    "changefeed/test_held_feeds",
)


@pytest.fixture(scope="module")
def build() -> Path:
    """Of this very tree; made here if `make setup` has not made it. Only where there is no compiler
    is there none: code that mypyc refuses is a failure."""
    if mode_of(os.environ) is Mode.NEVER:
        pytest.skip(f"{VARIABLE} is never")
    try:
        return Builds().build()
    except NotCompiled as error:
        if "no C compiler" in str(error):
            pytest.skip(str(error))
        raise


def run(folder: Path, path: str) -> subprocess.Popen[str]:
    folder.mkdir()
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.cluster.compiled_run", str(folder), *SEEDS],
        env={**os.environ, "PYTHONPATH": f"{path}:{ROOT}", "PYTHONHASHSEED": "0"},
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def told(process: subprocess.Popen[str]) -> dict[str, Any]:
    said, _ = process.communicate(timeout=RUN_DEADLINE_S)
    assert process.returncode == 0
    answer: dict[str, Any] = json.loads(said)
    return answer


def test_both_make_the_same_bytes_of_the_same_requests(build: Path, tmp_path: Path) -> None:
    processes = [run(tmp_path / "c", str(build)), run(tmp_path / "i", str(ROOT / "libs"))]
    try:
        compiled, interpreted = map(told, processes)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert compiled["version"].endswith(", compiled")
    assert interpreted["version"].endswith(", interpreted")
    found = compiled["found"]
    assert found == interpreted["found"]
    assert found["records"] > 100
    assert found["lsn"] > 150
    assert found["failed inside"] == 0
    assert found["m"] == found["f"]


def test_the_services_of_a_cluster_are_compiled(build: Path, tmp_path: Path) -> None:
    """And say so when they start. Started without a broker: their first lines are enough."""
    cluster = LocalCluster(tmp_path, Ports.free())
    for name, module in (("m1", "services.master.main"), ("r1", "services.replicant.main")):
        (tmp_path / name).mkdir()
        with subprocess.Popen(
            [sys.executable, "-m", module],
            env=cluster.env(name),
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        ) as process:
            assert process.stderr is not None
            try:
                lines = [process.stderr.readline() for _ in range(2)]
            finally:
                process.kill()
        assert any(line.endswith(", compiled\n") for line in lines), lines
    assert cluster.env("m1")["PYTHONPATH"].split(":")[0] == str(build)


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(SESSIONS, id="short"),
        pytest.param(FEEDS, id="feeds", marks=pytest.mark.long("half a minute; feeds' own tests")),
        pytest.param(
            OTHER_SESSIONS,
            id="other",
            marks=pytest.mark.long(
                "a minute and a half; clients of all clusters meet compiled code"
            ),
        ),
    ],
)
def test_sessions_say_the_same(build: Path, names: tuple[str, ...]) -> None:
    """What a client is told, statement by statement, is in the sessions' own tests, and what a feed
    tells in its own."""
    modules = [f"tests/unit/{name}.py" for name in names]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *modules]
    environ = {**os.environ, "PYTHONPATH": f"{build}:{ROOT}"}
    where = "import leasehold.sql_session.session as session; print(session.__file__)"
    found = subprocess.check_output([sys.executable, "-c", where], env=environ, text=True)
    assert found.startswith(str(build))
    assert found.endswith(".so\n")
    done = subprocess.run(
        [*command, "-o", "pythonpath=."],
        env=environ,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=RUN_DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5_000:]
