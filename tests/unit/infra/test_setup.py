"""`make setup` where what is missing may not be installed: one sentence with the exact command.

Method: the script itself in a scratch project, on a PATH that holds nothing but what a minimal
Debian has, and an `id` that says: not root.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
MINIMAL = ("awk", "bash", "cat", "cut", "dirname", "grep", "head", "sed", "sha256sum")
COMMAND = "apt-get install -y --no-install-recommends "


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of nothing but the scripts, beside `bin`, the only folder of the PATH."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in MINIMAL:
        found = shutil.which(name)
        assert found is not None, name
        (programs / name).symlink_to(found)
    program(programs / "id", "echo 1000")
    scratch = tmp_path / "project"
    shutil.copytree(ROOT / "infra", scratch / "infra", ignore=lambda *_: ["__pycache__"])
    return scratch


def program(path: Path, text: str) -> None:
    path.write_text(f"#!{shutil.which('bash')}\n{text}\n")
    path.chmod(0o755)


def run(project: Path, script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(project / "infra" / script)],
        env={"PATH": str(project.parent / "bin")},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_whoever_is_not_root_is_told_one_command(project: Path) -> None:
    ended = run(project, "setup.sh")
    assert ended.returncode == 1
    assert ended.stdout == ""
    (line,) = ended.stderr.splitlines()
    assert line.startswith("setup: missing: Python 3.11, JDK 17, Maven, redis-server. Run as root:")
    assert f"{COMMAND}python3.11 python3.11-venv openjdk-17-jdk-headless maven redis-server" in line


def test_sudo_is_named_where_there_is_one(project: Path) -> None:
    program(project.parent / "bin" / "sudo", "exit 1")
    (line,) = run(project, "setup.sh").stderr.splitlines()
    assert "Run: sudo apt-get update && sudo apt-get install" in line


def test_only_what_is_missing_is_named(project: Path) -> None:
    programs = project.parent / "bin"
    program(programs / "python3", "exit 0")  # 3.11, with venv and ensurepip
    program(programs / "java", "echo 'openjdk version \"21.0.4\" 2024-07-16' >&2")
    program(programs / "redis-server", "exit 0")
    (line,) = run(project, "setup.sh").stderr.splitlines()
    assert line.startswith("setup: missing: Maven.")
    assert f"{COMMAND}maven; then" in line


@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_402"])
def test_an_old_java_counts_as_missing(project: Path, version: str) -> None:
    program(project.parent / "bin" / "java", f"echo 'openjdk version \"{version}\"' >&2")
    assert "JDK 17" in run(project, "setup.sh").stderr


def test_a_venv_of_another_folder_is_not_taken_for_ours(project: Path) -> None:
    """Moved or copied with the project, it would run the other folder's code."""
    programs = project.parent / "bin"
    program(programs / "python3", "[[ $2 != *ensurepip* ]]")  # 3.11 without the venv module
    folder = project / ".venv" / "bin"
    folder.mkdir(parents=True)
    for name in ("python", "pip"):
        program(folder / name, "exit 0")
    settings = folder.parent / "pyvenv.cfg"
    settings.write_text(f"command = python3 -m venv {project}/.venv\n")
    assert "venv module" not in run(project, "setup.sh").stderr
    settings.write_text("command = python3 -m venv /somewhere/else/.venv\n")
    assert "python3.11-venv" in run(project, "setup.sh").stderr


def test_the_lock_needs_a_set_up_project(project: Path) -> None:
    ended = run(project, "lock.sh")
    assert (ended.returncode, ended.stderr) == (1, "lock: there is no .venv yet; run: make setup\n")
