"""Chooses where the folders of tests lie: in memory, where there is enough of it.

Most of what tests wait for is a disk: a store of SQLite's that is opened, made durable and thrown
away, hundreds of times. In memory they take a third of the time. Nothing is shown by the disk: what
a power cut leaves is another test's, which cuts files itself.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

MEMORY: Final = Path("/dev/shm")
ROOT_NAME: Final = "PYTEST_DEBUG_TEMPROOT"
"""pytest's own variable for the folder in which it makes those of each run."""
FREE_BYTES_MIN: Final = 8 << 30
"""Of the folder, and of the machine's memory: a run of all tests takes two gigabytes."""
MEMORY_INFO: Final = Path("/proc/meminfo")


def choose_root(
    environ: Mapping[str, str], folder: Path = MEMORY, memory_info: Path = MEMORY_INFO
) -> Path | None:
    """Return the folder in memory for what tests write, None where pytest's own is to stay: its
    user has named one, or this machine has none, no room in it, or lets nothing in it be run."""
    if environ.get(ROOT_NAME) or not os.access(folder, os.W_OK):
        return None
    if os.statvfs(folder).f_flag & os.ST_NOEXEC:
        return None  # compiled modules and made environments are run where they are made
    free = min(shutil.disk_usage(folder).free, _available_bytes(memory_info))
    return folder if free >= FREE_BYTES_MIN else None


def _available_bytes(memory_info: Path) -> int:
    """Return how much memory the machine has for new processes, 0 where it does not say."""
    try:
        lines = memory_info.read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    for line in lines:
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) << 10
    return 0
