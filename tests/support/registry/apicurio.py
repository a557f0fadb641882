"""A real schema registry for long tests: Apicurio's, in memory, with Confluent's API."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Final

from infra.java import java

ROOT: Final = Path(__file__).resolve().parents[3]
FOLDER: Final = ROOT / ".leasehold" / "registry"
API: Final = "/apis/ccompat/v7"
DEADLINE_S: Final = 270.0
"""Of its start and the first answer, which took 81 s on two cores that many other tests shared."""
LOOK_AGAIN_S: Final = 0.1


@contextmanager
def apicurio(folder: Path) -> Iterator[str]:
    """The URL of a registry that is gone behind the block; its log stands in `folder`."""
    jars = sorted(FOLDER.glob("*-runner.jar"))
    assert jars, "no registry is here: run `make feed-tools`"
    port = _free_port()
    log = folder / "registry.log"
    command = [
        java(os.environ),
        *("-Xmx400m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"-Djava.io.tmpdir={folder}"),
        *(f"-Dquarkus.http.port={port}", "-Dquarkus.http.host=127.0.0.1"),
        *("-Dapicurio.storage.kind=sql", "-Dapicurio.storage.sql.kind=h2"),
        *("-jar", str(jars[0])),
    ]
    with log.open("ab") as output:
        process = subprocess.Popen(command, cwd=FOLDER, stdout=output, stderr=output)
        try:
            give_up = time.monotonic() + DEADLINE_S
            while not _answers(port):
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < give_up, log.read_text()
                time.sleep(LOOK_AGAIN_S)
            yield f"http://127.0.0.1:{port}{API}"
        finally:
            process.kill()
            process.wait()


def _answers(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", f"{API}/subjects")
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
