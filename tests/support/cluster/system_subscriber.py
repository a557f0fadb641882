"""A service that follows a table under leases, as a process: `python -m
tests.support.cluster.system_subscriber table`. It prints a JSON line per row, as `Follower.rows`
reads it. What a test pauses is then a real agent with a session of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from infra.local_cluster import ROOT, LocalCluster
from leasehold import Subscriber
from leasehold.events.rows import RowEvent
from leasehold.settings.client import ClientSettings


class Following:
    """`process` is the service, `rows` what it has decoded so far."""

    def __init__(self, process: subprocess.Popen[bytes], out: Path) -> None:
        self.process = process
        self._out = out

    @property
    def rows(self) -> list[dict[str, Any]]:
        *lines, _unfinished = self._out.read_text().split("\n")
        return [json.loads(line) for line in lines]


@contextmanager
def following(cluster: LocalCluster, name: str, table: str, out: Path) -> Iterator[Following]:
    with out.open("wb") as stdout:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.cluster.system_subscriber", table],
            env=cluster.env(name),
            cwd=ROOT,
            stdout=stdout,
        )
        try:
            yield Following(process, out)
        finally:
            process.kill()
            process.wait()


def main(table: str) -> None:
    with Subscriber(ClientSettings.read(), tables=[table]) as news:
        for each in news:
            if isinstance(each, RowEvent):
                row = {"version": each.version, "made_under": each.made_under}
                print(json.dumps({**row, "values": each.values}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
