"""`leasehold completion`: bash completes by the script for real; the others' syntax is looked at
where their shells are there."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from leasehold.cli.command import SUMMARIES
from leasehold.cli.completion import all_words, make_script

ASK: Final = """
source "$1"; shift
while IFS= read -r line; do
    read -ra COMP_WORDS <<< "$line"
    [[ "$line" == *" " ]] && COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    COMPREPLY=()
    _leasehold
    echo "${COMPREPLY[*]}"
done
"""
TYPED: Final = {
    "leasehold sche": "schema",
    "leasehold schema ": "diff apply",
    "leasehold schema apply --al": "--allow-drop",
    "leasehold --json jobs p": "pause postpone",
    "leasehold export --format ": "csv parquet sql",
    "leasehold export --format p": "parquet",
    "leasehold export --to ": "",  # bash offers folders
    "leasehold sql -c x --fo": "--format",
    "leasehold completion ": "bash zsh fish",
    "leasehold status no": "",
}


def test_bash_completes(tmp_path: Path) -> None:
    script = tmp_path / "leasehold.bash"
    script.write_text(make_script("bash"))
    told = subprocess.run(
        ["bash", "-c", ASK, "bash", str(script)],
        input="\n".join(TYPED) + "\n",
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert told.stderr == ""
    assert dict(zip(TYPED, told.stdout.splitlines(), strict=True)) == TYPED


def test_every_command_is_known_to_each_shell() -> None:
    paths = {words.path for words in all_words()}
    assert paths >= {"", *SUMMARIES, "schema apply", "dead-letter list"}
    for shell in ("bash", "zsh", "fish"):
        script = make_script(shell)
        assert [name for name in SUMMARIES if name not in script] == []


@pytest.mark.parametrize(("shell", "check"), [("zsh", ["-n"]), ("fish", ["--no-execute"])])
def test_the_script_can_be_read(shell: str, check: list[str], tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    script = tmp_path / f"leasehold.{shell}"
    script.write_text(make_script(shell))
    subprocess.run([shell, *check, str(script)], check=True, timeout=60)
