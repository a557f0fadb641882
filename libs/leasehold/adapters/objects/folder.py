"""Objects as files of a folder, each in its place only once it is whole and on the disk."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Final

from leasehold.adapters.os.clock import random_bytes
from leasehold.model.errors import BackupUnavailable
from leasehold.settings.private_files import FILE_MODE, FOLDER_MODE

UNFINISHED: Final = ".unfinished-"
"""How the names of files begin that are being written, or that a killed process has left."""


class FolderObjects:
    """Objects on the folder `root`, which is made with the first one, for its user alone."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def where(self) -> str:
        return str(self._root)

    def put(self, name: str, data: bytes) -> None:
        path = self._path(name)
        with self._told(f"{name} can't be written"):
            path.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            part = path.with_name(f"{UNFINISHED}{path.name}-{random_bytes(4).hex()}")
            try:
                descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
                with os.fdopen(descriptor, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                part.replace(path)
            finally:
                part.unlink(missing_ok=True)
            _sync_folder(path.parent)

    def get(self, name: str) -> bytes | None:
        path = self._path(name)
        with self._told(f"{name} can't be read"):
            try:
                return path.read_bytes()
            except FileNotFoundError:
                return None

    def names(self) -> list[str]:
        with self._told("its files can't be listed"):
            found = (path for path in self._root.rglob("*") if path.is_file())
            return sorted(
                path.relative_to(self._root).as_posix()
                for path in found
                if not path.name.startswith(UNFINISHED)
            )

    def remove(self, name: str) -> None:
        path = self._path(name)
        with self._told(f"{name} can't be removed"):
            path.unlink(missing_ok=True)
            with suppress(OSError):  # others are in it
                path.parent.rmdir()

    def _path(self, name: str) -> Path:
        parts = PurePosixPath(name).parts
        assert parts, "an object has a name"
        assert not {"..", "/"}.intersection(parts), name
        return self._root.joinpath(*parts)

    @contextmanager
    def _told(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise BackupUnavailable(
                f"{self._root}: {what} ({error.strerror or error}); see to the folder and its disk",
                place=self.where,
            ) from error


def _sync_folder(folder: Path) -> None:
    """Write the folder to the disk, so that the new name survives a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
