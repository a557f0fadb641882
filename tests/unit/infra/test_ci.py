""".ci/run runs `make test`, passes its exit code through and repeats pytest's closing lines."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("closing", "code", "expected"),
    [
        ("==== 3 passed in 0.10s ====", 0, 0),
        ("==== 1 failed, 2 passed in 0.10s ====", 2, 2),
        ("==== no tests ran in 0.01s ====", 0, 5),
    ],
)
def test_exit_code_and_closing_lines(
    tmp_path: Path, closing: str, code: int, expected: int
) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    recipe = f"\t@echo '{closing}'\n\t@echo a later line\n\t@exit {code}\n"
    (tmp_path / "Makefile").write_text(f"test:\n{recipe}")
    done = subprocess.run(
        [tmp_path / ".ci" / "run"], capture_output=True, text=True, check=False, cwd="/"
    )
    assert done.returncode == expected
    end = done.stdout.partition("== closing lines\n")[2]
    assert closing in end
    assert "a later line" not in end


def test_make_alone_names_every_command_in_one_line() -> None:
    done = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    told = {line.split()[1] for line in lines}
    assert {"demo", "test", "check", "unit", "sim", "integration"} <= told
    assert {"setup", "up", "down", "status", "bench", "clean"} <= told
    assert all(len(line.split(maxsplit=2)[2]) > 10 for line in lines)
