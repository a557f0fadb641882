"""A process of the bench beside the measuring one: started, told to stop, its answer read.

It says "ready" on a line, works, ends when its standard input does, and its last line is JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Final

from infra.local_cluster import ROOT

STOP_TIMEOUT_S: Final = 600.0


class ChildFailure(Exception):
    """The process ended by itself, or gave no answer."""


class Child:
    def __init__(self, name: str, command: Sequence[str], env: Mapping[str, str]) -> None:
        self.name = name
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=dict(env),
            cwd=ROOT,
            text=True,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_ready(self) -> None:
        """Raises ChildFailure when it ended instead; its error stands on standard error."""
        assert self._process.stdout is not None
        if self._process.stdout.readline().strip() != "ready":
            raise ChildFailure(f"{self.name} did not become ready; its error stands above.")

    def go(self) -> None:
        """A line on its input: for those that wait with their work until all are ready."""
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def answer(self, *, stop: bool) -> Any:
        """Wait for its end and read its last line. `stop`: end its input first.

        Raises ChildFailure.
        """
        assert self._process.stdout is not None
        if stop:
            out, _ = self._process.communicate(timeout=STOP_TIMEOUT_S)
        else:
            out = self._process.stdout.read()
            self._process.wait(STOP_TIMEOUT_S)
        lines = out.strip().splitlines()
        if self._process.returncode or not lines:
            raise ChildFailure(
                f"{self.name} ended with {self._process.returncode}; its error stands above."
            )
        return json.loads(lines[-1])

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None and not stream.closed:
                stream.close()


Starter = Callable[..., Child]
"""(name, module of the bench, its arguments …) → the process, as `start` has it."""


def start(
    stack: ExitStack, env: Mapping[str, str], name: str, module: str, *arguments: object
) -> Child:
    """Another process of the bench; killed with `stack` unless it has ended."""
    child = Child(name, [sys.executable, "-m", f"tests.bench.{module}", *map(str, arguments)], env)
    stack.callback(child.kill)
    return child
