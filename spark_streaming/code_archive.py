"""Packs this code as an archive, which Spark hands to executors, who unpack it where they run.

An archive and not `--py-files`: the process from which Python workers are forked has to find it,
too, which Spark starts before it looks at those; and modules that lie in a zip file are read again
for each task. What the code imports of others is in the executors' Python (docs/how-to/deploy.md).
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import leasehold

UNPACKED: Final = "leasehold-code"
"""The folder below an executor's own."""
_DATA: Final = (".json", ".lua", ".txt")
_MADE_AT: Final = (1980, 1, 1, 0, 0, 0)


def write_archive(path: Path) -> Path:
    """Write the archive there; it holds the same bytes whenever the code is the same."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in (Path(leasehold.__file__).parent, Path(__file__).parent):
            for file in _sources(package):
                name = file.relative_to(package.parent).as_posix()
                archive.writestr(
                    zipfile.ZipInfo(name, _MADE_AT), file.read_bytes(), zipfile.ZIP_DEFLATED
                )
    return path


def _sources(package: Path) -> Iterator[Path]:
    """Yield what an interpreter needs: compiled modules are of this machine."""
    for file in sorted(package.rglob("*")):
        if file.suffix == ".py" or (file.suffix in _DATA and file.is_file()):
            yield file
