"""Goal: a service that waits for its broker obeys SIGTERM, and leaves no traceback.

Method: the real processes, with nothing at the addresses they are given; each is told to stop once
it has said that it waits.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.ports import Ports

COMMANDS = (
    ("services.master.main",),
    ("services.replicant.main",),
    ("services.changefeed.main",),
    ("leasehold.cli.main", "master"),
    ("leasehold.cli.main", "replicant"),
    ("leasehold.cli.main", "changefeed"),
    ("spark_streaming.main",),
)
DEADLINE_S = 60.0

Waiting = dict[str, subprocess.Popen[str]]


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[Waiting]:
    ports = Ports.free()
    environ = {
        **{name: value for name, value in os.environ.items() if not name.startswith("LEASEHOLD_")},
        "LEASEHOLD_KAFKA": f"127.0.0.1:{ports.kafka}",
        "LEASEHOLD_REDIS": f"redis://127.0.0.1:{ports.redis}/0",
        "LEASEHOLD_DATA": str(tmp_path),
    }
    started = {
        " ".join(command): subprocess.Popen(
            [sys.executable, "-m", *command],
            env={**environ, "LEASEHOLD_NODE": f"n{number}"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number, command in enumerate(COMMANDS)
    }
    yield started
    for process in started.values():
        process.kill()
        process.communicate()


def test_sigterm_ends_whoever_waits_for_kafka(waiting: Waiting) -> None:
    for command, process in waiting.items():
        assert process.stderr is not None
        said = ""
        for line in process.stderr:
            said += line
            if "Kafka at" in line:
                break
        assert "Kafka at" in said, f"{command} ended: {said}"
        process.send_signal(signal.SIGTERM)
        _, rest = process.communicate(timeout=DEADLINE_S)
        assert process.returncode == 0, f"{command}: {said}{rest}"
        assert "Traceback" not in said + rest
