"""The migration tools and ORMs that `infra/client_tools.sh` installs, and how tests run them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[3]
INSTALLED: Final = ROOT / ".leasehold" / "client-tools"
PYTHON: Final = INSTALLED / "python" / "bin" / "python"
FILES: Final = ROOT / "tests" / "support" / "tools"
WAIT_S: Final = 300.0
USER: Final = "leasehold"


def need(path: Path, program: str | Path) -> None:
    """Skip where a tool, or the program that runs it, is not installed."""
    if not path.exists() or shutil.which(program) is None:
        pytest.skip(f"NOT TESTED with {path.name}: run infra/client_tools.sh")


def run(
    *words: str | Path,
    cwd: Path = ROOT,
    more: Mapping[str, str] | None = None,
    told: bool = True,
) -> str:
    """Return what a program prints that ends well. `more`: of its environment; `told`: with what it
    tells people beside, which may have the time in it."""
    done = subprocess.run(
        words,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
        env={**os.environ, **(more or {})},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + (done.stderr if told else "")


def url_of(port: int, database: str, user: str = USER) -> str:
    return f"postgres://{user}@127.0.0.1:{port}/{database}?sslmode=disable"


def jdbc_of(port: int, database: str) -> str:
    return f"jdbc:postgresql://127.0.0.1:{port}/{database}"
