"""Audit lines in a file of this process's user alone, which begins anew when it is full."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from leasehold.settings.private_files import FILE_MODE, OTHERS, keep_private, make_private_file

OLD_FILES: Final = 9
"""Kept beside the one that is written: `audit.log.1` is the newest of them."""


class AuditFile:
    """A file of lines, for one thread."""

    def __init__(self, path: Path, bytes_max: int) -> None:
        """Open it, behind what is in it. Raises ConfigurationError where that can't be done, or
        where it is another user's."""
        assert bytes_max > 0, bytes_max
        self._path = path
        self._bytes_max = bytes_max
        make_private_file(path)
        self._file = -1

    def write(self, lines: Sequence[bytes]) -> None:
        """Append lines. Raises OSError: then all of them or a part is not there."""
        for line in lines:
            if self._file < 0:
                self._open()
            found = os.fstat(self._file)
            if not found.st_nlink:  # somebody has taken it away
                self.close()
                self._open()
            elif found.st_size + len(line) >= self._bytes_max:
                self._begin_anew()
            data = line + b"\n"
            written = os.write(self._file, data)
            if written < len(data):
                raise OSError(f"{self._path}: {written} of {len(data)} bytes were written")

    @property
    def waits(self) -> bool:
        return False

    @property
    def why(self) -> str:
        return ""

    def poll(self) -> int:
        return 0

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._file = os.open(self._path, flags, FILE_MODE)
        if os.fstat(self._file).st_mode & OTHERS:
            keep_private(self._path)

    def _begin_anew(self) -> None:
        self.close()
        for number in range(OLD_FILES - 1, 0, -1):
            older = self._numbered(number)
            if older.exists():
                older.replace(self._numbered(number + 1))
        self._path.replace(self._numbered(1))
        self._open()

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")
