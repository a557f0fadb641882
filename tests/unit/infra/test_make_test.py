"""`make test` compiles beside what needs no compiled code, and fails with whatever fails.

Method: the real Makefile in a folder where set-up, Python and the linter only note that they ran.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
NOTES = """#!/bin/bash
said="$(basename "$0") $*"
echo "begins $said" >> notes
if [ "$said" = "setup.sh " ] && [ -p wait ]; then read -r < wait && rm wait; fi
[[ -z "$FAILS" || "$said" != $FAILS ]] || exit 3
echo "ends $said" >> notes
[[ "$said" != *"pytest"*"tests/unit"* || ! -p wait ]] || echo done > wait
"""
SETUP = "setup.sh "
CHECK = "python -m mypy"
IN_PROCESS = "tests/unit"
INTEGRATION = "tests/integration"


def make_test(folder: Path, fails: str = "") -> tuple[int, list[str]]:
    """Return the exit code and what began and ended, in its order. `fails`: a shell's pattern of
    what does. Set-up waits for the tests in process, unless something fails."""
    shutil.copy(ROOT / "Makefile", folder)
    for name in ("infra/setup.sh", ".venv/bin/python", ".venv/bin/lint-imports"):
        program = folder / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(NOTES)
        program.chmod(0o755)
    for name in ("tests/unit", "tests/integration"):
        (folder / name).mkdir(parents=True)
    if not fails:
        os.mkfifo(folder / "wait")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(
        ["make", "test"],
        cwd=folder,
        env={**clean, "FAILS": fails},
        capture_output=True,
        check=False,
        timeout=60,
    )
    return done.returncode, (folder / "notes").read_text().splitlines()


def place_of(notes: list[str], what: str, words: str) -> int:
    (found,) = [n for n, note in enumerate(notes) if note.startswith(what) and words in note]
    return found


def test_it_is_compiled_beside_what_starts_no_service(tmp_path: Path) -> None:
    code, notes = make_test(tmp_path)
    assert code == 0
    whole = notes.index(f"ends {SETUP}")
    assert place_of(notes, "ends", CHECK) < place_of(notes, "begins", IN_PROCESS)
    assert place_of(notes, "ends", IN_PROCESS) < whole, "nothing in process waits for it"
    assert whole < place_of(notes, "begins", INTEGRATION)


@pytest.mark.parametrize("fails", [SETUP, f"*{CHECK}*", f"*{IN_PROCESS}*"])
def test_whatever_fails_it_fails_and_nothing_is_started(tmp_path: Path, fails: str) -> None:
    code, notes = make_test(tmp_path, fails)
    assert code != 0
    assert not [note for note in notes if INTEGRATION in note]
