"""What the statements on one store may take of its process: memory, each and together, and room
for files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final
from weakref import WeakKeyDictionary

import apsw

from leasehold.adapters.os.memory_pool import MemoryPool
from leasehold.adapters.os.temp_room import TempRoom
from leasehold.model.budget import Budget
from leasehold.settings.environment import ClusterSettings

MIB: Final = 1 << 20
TEMP_FOLDER: Final = "temp"
"""Beside the store."""
_STATEMENT: Final = "LEASEHOLD_SQL_MEMORY_MB"
_TOGETHER: Final = "LEASEHOLD_SQL_MEMORY_TOTAL_MB"
_TEMP: Final = "LEASEHOLD_SQL_TEMP_MB"


class StatementMemory:
    """The limits of all statements of one node: of each `statement_bytes_max`, of all together
    `pool` and, in files, `temp`."""

    def __init__(self, statement_bytes_max: int, pool: MemoryPool, temp: TempRoom) -> None:
        self.statement_bytes_max = statement_bytes_max
        self.pool = pool
        self.temp = temp

    def open_budget(self, look: Callable[[], None] | None = None) -> Budget:
        """Return a statement's or a transaction's budget, which is the caller's to close."""
        return Budget(self.statement_bytes_max, self.pool, look, _STATEMENT)


def statement_memory(
    folder: Path | None, settings: ClusterSettings | None = None
) -> StatementMemory:
    """Return the limits of one node, by default those of the settings' defaults. Files are in
    `folder`."""
    given = settings or ClusterSettings()
    return StatementMemory(
        given.sql_memory_mb * MIB,
        MemoryPool(given.sql_memory_total_mb * MIB, _TOGETHER),
        TempRoom(given.sql_temp_mb * MIB, folder, _TEMP),
    )


_OF: Final[WeakKeyDictionary[apsw.Connection, StatementMemory]] = WeakKeyDictionary()
_OTHERS: Final = statement_memory(None)
"""Of connections that are of no store."""


def give_memory(connection: apsw.Connection, memory: StatementMemory) -> None:
    """Let statements on the connection be bounded by `memory`, and spill into its folder."""
    _OF[connection] = memory
    connection.execute("PRAGMA temp_store = FILE")


def use_temp_folder(connection: apsw.Connection, folder: Path | None) -> None:
    """Let SQLite have temporary files in `folder`, unless another store of this process has said
    where: that is the same for all. Where the folder goes, they are where the system has its
    own."""
    there = connection.pragma("temp_store_directory")
    if folder is not None and not (there and Path(there).is_dir()):
        quoted = str(folder.absolute()).replace("'", "''")
        connection.execute(f"PRAGMA temp_store_directory = '{quoted}'")


def memory_of(connection: apsw.Connection) -> StatementMemory:
    """Return what bounds statements on the connection."""
    return _OF.get(connection, _OTHERS)
