"""The replica of all connections of a process to one store: opened by the first of them, closed
with the last."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from leasehold.model.errors import NotCoherent
from leasehold.replica.serving_node import SqlNode
from leasehold.sql.planning.plan import Plans


class EmbeddedReplica(Protocol):
    @property
    def serving(self) -> SqlNode: ...

    def close(self) -> None: ...


class SharedReplica:
    """A replica that is there between `of` and `leave`. Stores are apart: opening one waits for no
    other."""

    _all: dict[Path, SharedReplica] = {}  # noqa: RUF012 - of the process, on purpose
    _all_lock: Final = threading.Lock()

    def __init__(self, file: Path) -> None:
        self._file = file
        self.users = 0
        self._lock = threading.Lock()
        self._replica: EmbeddedReplica | None = None
        self.plans = Plans()

    @classmethod
    def of(cls, file: Path, opened: Callable[[], EmbeddedReplica]) -> SharedReplica:
        """Return the one of a store, opened by whoever is the first. Raises what `opened` raises;
        the next one then opens it anew."""
        with cls._all_lock:
            found = cls._all.setdefault(file, cls(file))
            found.users += 1
        try:
            found.open(opened)
        except BaseException:
            found.leave()
            raise
        return found

    def open(self, opened: Callable[[], EmbeddedReplica]) -> None:
        with self._lock:
            if self._replica is None:
                self._replica = opened()

    @property
    def node(self) -> SqlNode:
        assert self._replica is not None, "it is open between of() and leave()"
        return self._replica.serving

    def wait_coherent(self, wait_s: float, stopped: Callable[[], bool]) -> None:
        """Return once it is coherent. Raises NotCoherent when that takes longer or is no longer
        wanted, and what stopped the replica."""
        node = self.node
        if wait_s and not node.coherent:
            node.wait(lambda: node.coherent or stopped(), wait_s)
            if not node.coherent:
                raise NotCoherent(
                    f"this replica took longer than {wait_s:g} s to become coherent: is there a"
                    " master? see `leasehold status`"
                )

    def leave(self) -> None:
        """Leave it; the last one closes it. Whoever comes meanwhile waits, and opens it anew."""
        with self._lock:
            with self._all_lock:
                self.users -= 1
                last = not self.users
            if not last:
                return
            try:
                if self._replica is not None:
                    self._replica.close()
            finally:
                self._replica = None
                with self._all_lock:
                    if not self.users:
                        del self._all[self._file]
