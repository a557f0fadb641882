"""Goal: the health check of our images says what the process says of itself.

Method: the program is run as a container has it, beside a server in this process.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from infra.ports import find_free_port
from leasehold.adapters.metrics.exposition import Exposition
from leasehold.adapters.metrics.server import MetricsServer

PROGRAM: Final = Path(__file__).parents[3] / "infra" / "ask_ready.py"


@pytest.fixture
def exposition() -> Exposition:
    return Exposition()


@pytest.fixture
def port(exposition: Exposition) -> Iterator[str]:
    server = MetricsServer(exposition, host="127.0.0.1", port=0)
    yield server.address.rpartition(":")[2]
    server.close()


def ask(port: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(PROGRAM)],
        env={"LEASEHOLD_METRICS_PORT": port},
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stdout


def test_it_is_as_well_as_the_process_is_ready(port: str, exposition: Exposition) -> None:
    assert ask(port) == (1, "it is starting\n")
    exposition.health.ready_when(lambda: "")
    assert ask(port) == (0, "it is ready\n")
    exposition.health.ready_when(lambda: "it holds no coherency lease")
    assert ask(port) == (1, "it holds no coherency lease\n")


def test_where_nobody_answers_it_is_not_well() -> None:
    port = find_free_port()
    code, words = ask(str(port))
    assert (code, words.startswith(f"port {port} does not answer: ")) == (1, True)
