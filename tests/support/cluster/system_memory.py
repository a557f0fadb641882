"""Takes the memory from a process that runs, and gives it back: no superuser is needed for it."""

from __future__ import annotations

import resource
from contextlib import suppress
from pathlib import Path


def take_memory(pid: int, room_bytes: int) -> None:
    """Let a process have no more than so many bytes beside what it has; one that has ended needs
    none."""
    with suppress(OSError):
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + room_bytes
        _, hard = resource.prlimit(pid, resource.RLIMIT_AS)
        resource.prlimit(pid, resource.RLIMIT_AS, (limit, hard))
