"""Processes whose disk a test makes slow, or lets fail, while they run; and files of a store as a
power cut leaves them.

`disk_faults.c` is preloaded into them. Why not a file system of its own (FUSE, `dm-flakey`): to
mount one takes a superuser or a program more, and would be one for all processes of a machine.
"""

from __future__ import annotations

import mmap
import os
import random
import struct
import sys
from pathlib import Path
from typing import Final, NamedTuple

SOURCE: Final = Path(__file__).with_name("disk_faults.c")
_PAGE: Final = struct.Struct("4q2Q")
"""`struct page` of `disk_faults.c`."""
_SET: Final = struct.Struct("4q")


class Befallen(NamedTuple):
    """How many calls of a process a fault of its disk has befallen: late ones, failed ones."""

    late: int
    failed: int


class FaultyDisk:
    """The disk of one process, sound until something else is said."""

    def __init__(self, path: Path, library: Path) -> None:
        path.write_bytes(bytes(_PAGE.size))
        self.environment = {"LD_PRELOAD": str(library), "DISK_FAULTS_FILE": str(path)}
        with path.open("r+b") as file:
            self._page = mmap.mmap(file.fileno(), _PAGE.size)

    def be(
        self,
        *,
        sync_ms: int = 0,
        write_us: int = 0,
        syncs_fail: bool = False,
        writes_fail: bool = False,
    ) -> None:
        """Let each sync and each write be so much later, or fail, from now on."""
        said = _SET.pack(sync_ms * 1_000, write_us, int(syncs_fail), int(writes_fail))
        self._page[: _SET.size] = said

    def mend(self) -> None:
        """Let it be sound."""
        self.be()

    @property
    def befallen(self) -> Befallen:
        """Return how many calls were late, and have failed, so far."""
        *_, late, failed = _PAGE.unpack(self._page[:])
        return Befallen(late, failed)


# ---------------------------------------------------------------- a power cut

WAL_HEADER_BYTES: Final = 32
_FRAME_HEADER_BYTES: Final = 24
_SECTOR_BYTES: Final = 512
_SALTS: Final = slice(16, 24)
"""Of the WAL's header."""
_SHM_SALTS: Final = slice(32, 40)
_SHM_FRAMES_AT: Final = 16
_SHM_COPYING_AT: Final = 128
"""Up to that frame a checkpoint copies, which has synced it before (`nBackfillAttempted`)."""
_SHM_BYTES: Final = 136
LOST_MAX: Final = 60


def cut_end(path: Path, most_bytes: int) -> int:
    """Cut so many bytes, or as many as there are, from the end of a file; return how many."""
    there = path.stat().st_size
    lost = min(most_bytes, there)
    os.truncate(path, there - lost)
    return lost


def tear_wal(store: Path, rng: random.Random) -> int:
    """Leave the WAL of a store that nobody has open as a power cut may: of the frames at its end
    that nothing has synced, one lacks a sector, and others behind it, too. Return how many frames
    are lost; 0 where all are synced."""
    wal, shm = store.with_name(f"{store.name}-wal"), store.with_name(f"{store.name}-shm")
    if not wal.exists() or not shm.exists():
        return 0
    index = shm.read_bytes()[:_SHM_BYTES]
    with wal.open("r+b") as file:
        header = file.read(WAL_HEADER_BYTES)
        if len(index) < _SHM_BYTES or header[_SALTS] != index[_SHM_SALTS]:
            return 0
        frames, copied = (_number_at(index, at) for at in (_SHM_FRAMES_AT, _SHM_COPYING_AT))
        if frames <= copied:
            return 0
        first = rng.randint(max(copied + 1, frames - LOST_MAX + 1), frames)
        frame_bytes = _FRAME_HEADER_BYTES + int.from_bytes(header[8:12], "big")
        for number in range(first, frames + 1):
            if number == first or rng.random() < 0.5:
                sector = rng.randrange(frame_bytes // _SECTOR_BYTES) * _SECTOR_BYTES
                file.seek(WAL_HEADER_BYTES + (number - 1) * frame_bytes + sector)
                file.write(rng.randbytes(_SECTOR_BYTES))
    return frames - first + 1


def _number_at(index: bytes, at: int) -> int:
    return int.from_bytes(index[at : at + 4], sys.byteorder)
