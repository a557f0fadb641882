"""Messages that no master survives: deciding one takes longer than an election, or ends it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from leasehold.in_process.node import MemoryNode
from leasehold.replication.master.batch import Batch
from tests.simulation.simulation import MS
from tests.simulation.stage import Stage

BUSY_MS = 23_000
RESTART_MS = 300
Fate = Callable[[MemoryNode], None]


class Died(Exception):
    """The process is gone."""


class Steps:
    """Whose step is running, and the end of those that die in one."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.node: MemoryNode | None = None
        for node in stage.cluster.nodes.values():
            self._wrap(node)

    def _wrap(self, node: MemoryNode) -> None:
        run = node.run

        def wrapped(action: Callable[[], None]) -> None:
            before, self.node = self.node, node
            try:
                run(action)
            except Died:
                node.crash()
                self._stage.scheduler.later(RESTART_MS * MS, node.start)
            finally:
                self.node = before

        node.run = wrapped  # type: ignore[method-assign]


def takes_long(stage: Stage) -> Fate:
    """Nothing else is done meanwhile, and what was decided goes out when it is over."""

    def fate(node: MemoryNode) -> None:
        hops = stage.scripted[node.settings.name]
        hops.produce_ms = BUSY_MS
        node.pause(stage.scheduler.now_ns + BUSY_MS * MS)
        stage.scheduler.later((BUSY_MS - 100) * MS, lambda: setattr(hops, "produce_ms", 1))

    return fate


def ends_it(_: MemoryNode) -> None:
    raise Died


@contextmanager
def hard(
    stage: Stage, method: str, is_hard: Callable[..., bool], fate: Fate, owner: type = Batch
) -> Iterator[list[str]]:
    """While it lasts that method of a batch meets its fate for what `is_hard`; the masters that
    did so far, by name."""
    steps, met = Steps(stage), list[str]()
    real = getattr(owner, method)

    def wrapped(batch: object, *arguments: Any, **named: Any) -> Any:
        node = steps.node
        if node is not None and is_hard(*arguments):
            met.append(node.settings.name)
            fate(node)
        return real(batch, *arguments, **named)

    with patch.object(owner, method, wrapped):
        yield met


def writes(value: int) -> Callable[..., bool]:
    """Of `Batch.decide`: does it put that into t.a?"""
    return lambda _, request: any(o.values.get("a") == value for o in request.operations)
