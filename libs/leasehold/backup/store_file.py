"""A store's file that no node runs on: read, and written by who restores it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from leasehold.adapters.sqlite.snapshot import Readers, SqliteSnapshot
from leasehold.adapters.sqlite.statement_memory import statement_memory

CACHE_MB: Final = 64


@contextmanager
def open_file(path: Path) -> Iterator[SqliteSnapshot]:
    """Open the file to read. Raises StoreCorrupted, ConfigurationError."""
    readers = Readers(path, cache_mb=CACHE_MB, memory=statement_memory(None))
    try:
        with readers.open_snapshot() as snapshot:
            yield snapshot
    finally:
        readers.close()
