"""The room that the statements of one node may take in files: what SQLite puts there while it
sorts and gathers, and rows that wait for clients.

SQLite's files have no names from their first moment on, so nothing is left of them when a process
ends, and their sizes are seen among the open files of the process alone. They are looked at while
statements run, at most once in LOOK_EVERY_S whatever their number. What is beyond the limit ends
those statements that write more of it then; those that read what they have written go on.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Final

from leasehold.pgwire.wire_errors import DiskFull
from leasehold.settings.private_files import make_private_folder

LOOK_EVERY_S: Final = 0.1
GROWTH_BYTES_MIN: Final = 1 << 20
"""Of a thread, while the room is full: less than that is no sort."""
_OPEN_FILES: Final = Path("/proc/self/fd")
_THREAD_COUNTS: Final = Path("/proc/thread-self/io")
_UNNAMED: Final = ("#", "etilqs_")
"""How a file's name begins that never had one, or lost it at once, as SQLite's temporary ones."""
_GONE: Final = " (deleted)"
ROWS_FOLDER: Final = "rows"
"""Of the files of rows that wait, whose bytes are counted as they are written."""


class TempRoom:
    """The room of one node. Used by many threads.

    `folder` is made when it is first asked for; without one files are where the system has its
    temporary ones.
    """

    def __init__(self, bytes_max: int, folder: Path | None = None, setting: str = "") -> None:
        """Begin with nothing taken. `setting` is what `bytes_max` comes from."""
        self.bytes_max = bytes_max
        self._folder = folder
        self._setting = setting
        self._made = self._rows_made = False
        self._kept = 0
        self._gathered = 0
        self._look_again_s = 0.0
        self._lock = threading.Lock()

    @property
    def folder(self) -> Path | None:
        """Return the folder for files, open to nobody else. Raises ConfigurationError, OSError."""
        if self._folder is not None and not self._made:
            make_private_folder(self._folder)
            self._made = True
        return self._folder

    @property
    def rows_folder(self) -> Path | None:
        """Return the folder for rows that wait. Raises what `folder` raises."""
        folder = self.folder
        if folder is None:
            return None
        rows = folder / ROWS_FOLDER
        if not self._rows_made:
            make_private_folder(rows)
            self._rows_made = True
        return rows

    @property
    def kept(self) -> int:
        """Return the bytes of rows that wait for clients."""
        return self._kept

    @property
    def bytes_left(self) -> int:
        """Return what is left, as of the last look at SQLite's files."""
        return self.bytes_max - self._kept - self._gathered

    def take(self, size: int) -> bool:
        """Take `size` bytes for rows; return False, and take nothing, if there are not so many
        left."""
        with self._lock:
            if self._kept + self._gathered + size > self.bytes_max:
                return False
            self._kept += size
            return True

    def give_back(self, size: int) -> None:
        """Return `size` bytes that were taken."""
        with self._lock:
            self._kept -= size

    def is_full(self) -> bool:
        """Return whether all files together are beyond the limit, as of the last look at them."""
        now_s = time.monotonic()
        if now_s >= self._look_again_s:
            self._look_again_s = now_s + LOOK_EVERY_S
            self._gathered = sqlite_temp_bytes()
        return self._kept + self._gathered > self.bytes_max

    def full(self) -> DiskFull:
        """Return the error of a statement that needs more."""
        named = f" ({self._setting})" if self._setting else ""
        return DiskFull(
            f"the statements of this node together would have more than {self.bytes_max >> 20} MB"
            f" in temporary files{named}: let this one sort or gather fewer rows, or try again"
            " when others have ended"
        )


class Growth:
    """Whether the statement that runs on this thread writes more to files."""

    __slots__ = ("_base", "_thread")

    def __init__(self) -> None:
        self._thread = 0
        self._base = 0

    def goes_on(self) -> bool:
        """Return whether the thread has written something worth while since this was first
        asked."""
        written = _bytes_written()
        if written is None:
            return True  # nobody can tell
        thread = threading.get_ident()
        if thread != self._thread:
            self._thread, self._base = thread, written
        return written - self._base >= GROWTH_BYTES_MIN


def sqlite_temp_bytes() -> int:
    """Return the bytes of SQLite's temporary files of this process."""
    found = 0
    try:
        entries = os.scandir(_OPEN_FILES)
    except OSError:
        return 0  # a system that does not tell
    with entries:
        for entry in entries:
            try:
                file = Path(entry.path)
                target = file.readlink()
                if (
                    target.name.startswith(_UNNAMED)
                    and target.name.endswith(_GONE)
                    and target.parent.name != ROWS_FOLDER
                ):
                    found += file.stat().st_size
            except OSError:
                continue  # closed meanwhile
    return found


def _bytes_written() -> int | None:
    """Return the bytes that this thread has written to files and sockets, None: not known."""
    try:
        for line in _THREAD_COUNTS.read_text().splitlines():
            name, _, count = line.partition(": ")
            if name == "wchar":
                return int(count)
    except (OSError, ValueError):
        pass
    return None
