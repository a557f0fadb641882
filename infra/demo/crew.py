"""The demo's writers as processes: started, followed, ended; and what their times come to."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from infra.local_cluster import ROOT

STOP_TIMEOUT_S: Final = 150.0


@dataclass(frozen=True, slots=True)
class Latency:
    """ms; `stall` is the longest time one write took."""

    count: int
    p50: float
    p99: float
    stall: float


def latency(times: Sequence[tuple[int, float]], begin_ns: int, end_ns: int) -> Latency:
    """Return the latency of the writes that ended in [begin, end)."""
    taken = sorted(took for ended, took in times if begin_ns <= ended < end_ns)
    if not taken:
        return Latency(0, 0.0, 0.0, 0.0)
    return Latency(len(taken), taken[len(taken) // 2], taken[int(len(taken) * 0.99)], taken[-1])


class Crew:
    """Four writers of one kind in one process (see writers.py)."""

    def __init__(
        self, kind: str, keys: Sequence[Any], per_second: float, env: Mapping[str, str]
    ) -> None:
        self.kind = kind
        self.tallies: list[dict[str, Any]] = []
        self._process = subprocess.Popen(
            [sys.executable, "-m", "infra.demo.writers", kind, str(per_second)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=dict(env),
            cwd=ROOT,
            text=True,
        )
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(keys) + "\n")
        self._process.stdin.flush()

    def wait_ready(self) -> None:
        """Raises RuntimeError when the process ended instead."""
        assert self._process.stdout is not None
        if self._process.stdout.readline().strip() != "ready":
            raise RuntimeError(f"the {self.kind} writers did not start; see their error above")

    def stop(self) -> None:
        """Stop writing and wait for every outcome. Raises RuntimeError if that fails."""
        out, _ = self._process.communicate(timeout=STOP_TIMEOUT_S)
        if self._process.returncode:
            raise RuntimeError(f"the {self.kind} writers ended with {self._process.returncode}")
        self.tallies = json.loads(out.strip().splitlines()[-1])

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def total(self, name: str) -> int:
        return sum(tally[name] for tally in self.tallies)

    def errors(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for tally in self.tallies:
            for code, count in tally["errors"].items():
                found[code] = found.get(code, 0) + count
        return found

    def times(self) -> list[tuple[int, float]]:
        return [(ended, took) for tally in self.tallies for ended, took in tally["times"]]
