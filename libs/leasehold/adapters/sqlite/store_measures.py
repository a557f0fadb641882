"""What a store tells of itself to whoever looks at its process: files, WAL, cache, memory, disk."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import apsw

from leasehold.adapters.os.clock import boottime_ns
from leasehold.adapters.sqlite.checkpoints import Checkpoints
from leasehold.adapters.sqlite.statement_memory import StatementMemory
from leasehold.model import metrics
from leasehold.model.measures import Sample
from leasehold.model.metrics import NO_LABELS
from leasehold.model.time_units import NS_PER_S

LOOK_EVERY_NS: Final = NS_PER_S
"""How often the writer's connection is asked, which its own thread alone may do."""


class StoreMeasures:
    """The figures of one store. `look` is for the writer's thread, `samples` for any."""

    def __init__(
        self,
        connection: apsw.Connection,
        path: Path,
        checkpoints: Checkpoints,
        memory: StatementMemory,
    ) -> None:
        """Begin. `connection`: the writer's."""
        self._connection = connection
        self._path = path
        self._checkpoints = checkpoints
        self._memory = memory
        self._look_ns = 0
        self._cache_bytes = self._hits = self._misses = 0

    def look(self) -> None:
        """Ask the connection of its cache, now and then; to be called when nobody waits."""
        now_ns = boottime_ns()
        if now_ns < self._look_ns:
            return
        self._look_ns = now_ns + LOOK_EVERY_NS
        with suppress(apsw.Error):
            status = self._connection.status
            self._cache_bytes = status(apsw.SQLITE_DBSTATUS_CACHE_USED)[0]
            self._hits = status(apsw.SQLITE_DBSTATUS_CACHE_HIT)[0]
            self._misses = status(apsw.SQLITE_DBSTATUS_CACHE_MISS)[0]

    def samples(self) -> Iterator[Sample]:
        """Yield what is known now."""
        checkpoints, memory = self._checkpoints, self._memory
        for metric, path in (
            (metrics.STORE_BYTES, self._path),
            (metrics.WAL_BYTES, Path(f"{self._path}-wal")),
        ):
            with suppress(FileNotFoundError):
                yield Sample(metric, NO_LABELS, path.stat().st_size)
        yield Sample(metrics.WAL_PAGES, NO_LABELS, checkpoints.pages_there)
        yield Sample(metrics.WAL_PAGES_LEFT, NO_LABELS, checkpoints.pages_left)
        yield from checkpoints.measures.samples()
        yield Sample(metrics.CACHE_BYTES, NO_LABELS, self._cache_bytes)
        yield Sample(metrics.CACHE_HITS, NO_LABELS, self._hits)
        yield Sample(metrics.CACHE_MISSES, NO_LABELS, self._misses)
        disk = os.statvfs(self._path.parent)
        yield Sample(metrics.DISK_FREE, NO_LABELS, disk.f_bavail * disk.f_frsize)
        yield Sample(metrics.DISK_BYTES, NO_LABELS, disk.f_blocks * disk.f_frsize)
        yield Sample(metrics.STATEMENT_BYTES, NO_LABELS, memory.pool.held)
        yield Sample(metrics.STATEMENT_BYTES_LIMIT, NO_LABELS, memory.pool.bytes_max)
