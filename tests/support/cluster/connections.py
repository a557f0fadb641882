"""Which TCP connections a process has, as the kernel says it."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

TABLES: Final = ("tcp", "tcp6")
INODE: Final = 9
"""The column of a line of the kernel's table."""


class Connection(NamedTuple):
    """By its ports: this process's, and the other end's."""

    own: int
    other: int


def connections_of(pid: int) -> set[Connection]:
    """Return the connections of a process, without those that it listens by. Raises OSError where
    there is no such process, or it is another user's."""
    process = Path("/proc") / str(pid)
    links = (each.readlink() for each in (process / "fd").iterdir() if each.is_symlink())
    sockets = {str(link) for link in links}
    found = set()
    for table in TABLES:
        for line in (process / "net" / table).read_text("utf-8").splitlines()[1:]:
            words = line.split()
            own, other = (int(words[place].rpartition(":")[2], 16) for place in (1, 2))
            if other and f"socket:[{words[INODE]}]" in sockets:
                found.add(Connection(own, other))
    return found
