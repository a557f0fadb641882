"""A folder of a test as Spark's driver has one, without a JVM."""

from __future__ import annotations

import shutil
from pathlib import Path

from spark_streaming.hadoop_folder import Folder


class DiskFolder(Folder):
    """A `Folder` in a folder of this machine."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def uri(self, path: str) -> str:
        return f"file:{self.path / path}"

    def read(self, path: str) -> bytes | None:
        whole = self.path / path
        return whole.read_bytes() if whole.exists() else None

    def write(self, path: str, content: bytes) -> None:
        whole = self.path / path
        whole.parent.mkdir(parents=True, exist_ok=True)
        whole.write_bytes(content)

    def exists(self, path: str) -> bool:
        return (self.path / path).exists()

    def names(self, path: str) -> list[str]:
        whole = self.path / path
        return sorted(each.name for each in whole.iterdir()) if whole.exists() else []

    def make(self, path: str) -> None:
        (self.path / path).mkdir(parents=True, exist_ok=True)

    def remove(self, path: str) -> None:
        shutil.rmtree(self.path / path, ignore_errors=True)

    def below(self, path: str) -> DiskFolder:
        return DiskFolder(self.path / path)
