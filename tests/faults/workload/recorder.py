"""Writes down what clients do, before they do it and once they know what became of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.faults.workload.history import Op, Told


class Recorder:
    """A file of one process; its threads share it."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a", buffering=1, encoding="utf-8")
        self._file.write("\n")  # behind what a kill may have cut off
        self._lock = threading.Lock()
        self._number = 0

    def begin(self, client: str, kind: str, value: Mapping[str, Any]) -> Op:
        """Write an operation down whose outcome nobody knows yet."""
        with self._lock:
            self._number += 1
            now_ns = time.monotonic_ns()
            op = Op(client, self._number, kind, now_ns, 0, Told.UNKNOWN, "", value)
            self._file.write(op.line())
            return op

    def end(self, op: Op, told: Told, code: str = "", **more: Any) -> None:
        """Write down what became of it. `more` joins its value."""
        done = op._replace(
            ended_ns=time.monotonic_ns(), told=told, code=code, value={**op.value, **more}
        )
        with self._lock:
            self._file.write(done.line())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            self._file.close()
