"""A service with an embedded replica, as a process: `python -m
tests.support.cluster.system_reader`.

It reads one row again and again and prints what it got, one line each: the value of `n`, or
"refused" (C2: not coherent). What a test pauses is then a real process, whose clock runs on.
"""

from __future__ import annotations

import subprocess
import sys
from types import TracebackType
from typing import Final

from infra.local_cluster import ROOT, LocalCluster
from leasehold import open_replica
from leasehold.model.errors import NotCoherent

REFUSED: Final = "refused"


class Reader:
    """The process, seen from a test. Each `ask` is one read, answered in order."""

    def __init__(self, cluster: LocalCluster, name: str, table: str, key: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.cluster.system_reader", table, str(key)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=cluster.env(name),
            cwd=ROOT,
            text=True,
            bufsize=1,
        )
        assert self.answer() == "ready", "the reader did not start; see its error above"

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self) -> None:
        """Ask for one read; `answer` gives what came of it."""
        assert self._process.stdin is not None
        self._process.stdin.write("read\n")
        self._process.stdin.flush()

    def answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def read(self) -> str:
        self.ask()
        return self.answer()

    def __enter__(self) -> Reader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._process.kill()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        assert self._process.wait(60) == 0 or kind is not None


def main(table: str, key: int) -> int:
    with open_replica() as replica:
        print("ready", flush=True)
        for _ in sys.stdin:
            try:
                row = replica.get(table, key)
            except NotCoherent:
                print(REFUSED, flush=True)
                continue
            print("none" if row is None else row["n"], flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
