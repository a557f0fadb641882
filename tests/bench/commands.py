"""The command `leasehold`, as somebody at a terminal runs it: how long it takes."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Final

from infra.local_cluster import ROOT
from tests.bench.stand import BenchFailure, Stand

TIMEOUT_S: Final = 120.0
NO_MORE: Final[Mapping[str, str]] = {}


def command_ms(where: Stand, *command: str, timeout_s: float = TIMEOUT_S) -> float:
    """The whole of a command, from its process's start to its end. Raises BenchFailure unless it
    has found all to be well."""
    took_ms, _ = run_command(where, *command, timeout_s=timeout_s)
    return took_ms


def run_command(
    where: Stand,
    *command: str,
    timeout_s: float = TIMEOUT_S,
    more: Mapping[str, str] = NO_MORE,
) -> tuple[float, str]:
    """Return how many ms a command took, and what it has written. `more`: of its environment.
    Raises BenchFailure unless it has found all to be well."""
    words = [sys.executable, "-m", "leasehold.cli.main", *command]
    begin = time.perf_counter()
    ended = subprocess.run(
        words,
        env={**where.cluster.env("bench-command"), **more},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    took_ms = (time.perf_counter() - begin) * 1e3
    if ended.returncode:
        said = (ended.stdout + ended.stderr)[-300:]
        raise BenchFailure(f"{' '.join(command)} ended with {ended.returncode}: {said!r}")
    return took_ms, ended.stdout
