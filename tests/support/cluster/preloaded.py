"""Libraries that are preloaded into processes of a test, made with the machine's C compiler."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

PRELOAD: Final = "LD_PRELOAD"
SECONDS_MAX: Final = 60


def find_compiler() -> str | None:
    """Return the machine's C compiler; None without one."""
    return shutil.which("cc") or shutil.which("gcc")


def make_library(compiler: str, source: Path, folder: Path) -> Path:
    """Make a library of `source` in `folder`; → its path."""
    library = folder / f"{source.stem}.so"
    command = [compiler, "-shared", "-fPIC", "-O2", "-Wall", "-o", str(library), str(source)]
    subprocess.run([*command, "-ldl"], check=True, timeout=SECONDS_MAX)
    return library


def joined(*environments: Mapping[str, str]) -> dict[str, str]:
    """Return one environment of several, with all that each of them preloads."""
    made: dict[str, str] = {}
    for each in environments:
        before = made.get(PRELOAD)
        made |= each
        if before and PRELOAD in each:
            made[PRELOAD] = f"{before}:{each[PRELOAD]}"
    return made
