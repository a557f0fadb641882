"""The example services as processes, and what they have printed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from infra.local_cluster import ROOT, LocalCluster
from tests.support.cluster.secure_suite import IS_SECURE

# Faust joins a group and has transactions of its own, for which `follower` has no rights.
EXAMPLES: Final = ("plain_follower",) if IS_SECURE else ("plain_follower", "faust_follower")
STOP_S: Final = 30.0


class Follower:
    """What an example has printed so far."""

    def __init__(self, process: subprocess.Popen[bytes], out: Path, errors: Path) -> None:
        self._process = process
        self._out = out
        self._errors = errors

    @property
    def told(self) -> list[dict[str, Any]]:
        assert self._process.poll() is None, self._errors.read_text()
        *lines, _unfinished = self._out.read_text().split("\n")
        return [json.loads(line) for line in lines]

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [each for each in self.told if "row" in each]


@contextmanager
def following(cluster: LocalCluster, example: str, table: str, out: Path) -> Iterator[Follower]:
    errors = out.with_suffix(".err")
    with out.open("wb") as stdout, errors.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", f"services.examples.{example}", table],
            env=cluster.env(example),
            cwd=ROOT,
            stdout=stdout,
            stderr=stderr,
        )
        try:
            yield Follower(process, out, errors)
            process.terminate()
            assert process.wait(STOP_S) == 0, errors.read_text()
        finally:
            process.kill()
            process.wait()
    assert "Traceback" not in errors.read_text(), errors.read_text()
