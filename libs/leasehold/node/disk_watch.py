"""Looks at the disk that a node's store lies on, for `replication/disk_room.py` to judge."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from threading import Event as Flag
from typing import Final

from leasehold.model.time_units import NS_PER_S
from leasehold.replication.disk_room import MIB, may_start
from leasehold.replication.effects import DiskSeen

LOOK_EVERY_NS: Final = NS_PER_S
"""A disk takes some hundred MB in that time, which the reserve has room for."""
START_LOOK_S: Final = 2.0
SAID_EVERY_LOOKS: Final = 30
LOG: Final = logging.getLogger("leasehold.node")


class DiskWatch:
    """Looks seldom; for one thread."""

    def __init__(self, file: Path | None) -> None:
        """Begin. `file`: the store's, None: nobody looks."""
        self._file = file
        self._look_ns: int | None = None

    def look(self, now_ns: int) -> DiskSeen | None:
        """Return what the disk has when it is time to look; None when it is not, or when the system
        can't tell."""
        if self._file is None or (self._look_ns is not None and now_ns < self._look_ns):
            return None
        self._look_ns = now_ns + LOOK_EVERY_NS
        return see_disk(self._file)


def see_disk(file: Path) -> DiskSeen | None:
    """Return what the disk has that the store's `file` lies on, or is to; None where that can't be
    told."""
    try:
        disk = os.statvfs(file.parent)
    except OSError:
        return None
    return DiskSeen(
        free=disk.f_bavail * disk.f_frsize,
        whole=disk.f_blocks * disk.f_frsize,
        store=_size(file),
        wal=_size(Path(f"{file}-wal")),
    )


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def await_room(file: Path, reserve_bytes: int, stop: Flag) -> None:
    """Return when a node may begin to write to the store's disk, or after `stop`. A node that was
    started again at once, out of room, would only stop again."""
    looks = 0
    while not stop.is_set():
        seen = see_disk(file)
        if seen is None or may_start(seen, reserve_bytes):
            return
        if looks % SAID_EVERY_LOOKS == 0:
            LOG.warning(
                "not started yet: %s MiB are free in %s, too little of LEASEHOLD_DISK_RESERVE_MB"
                " (%s); make room there",
                f"{seen.free // MIB:,}",
                file.parent,
                f"{reserve_bytes // MIB:,}",
            )
        looks += 1
        stop.wait(START_LOOK_S)
