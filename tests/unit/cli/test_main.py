"""The `leasehold` command as a whole: which subcommands there are, and what each start costs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from leasehold import cli
from leasehold.cli.command import SUMMARIES, module_of
from leasehold.cli.main import main

MODULES: Final = {module_of(name) for name in SUMMARIES}
LOOK: Final = """
import json, sys
from leasehold.cli.main import parser
parser(sys.argv[1])
print(json.dumps([name for name in sys.modules if name.startswith("leasehold.cli.")]))
"""
WATCH: Final = """
import json, sys
from leasehold.cli.main import parser
parser(sys.argv[1])
from leasehold.admin import kafka_events
print(json.dumps([name for name in sys.modules if name.startswith("leasehold.sql")]))
"""
"""What a command loads that looks at a cluster."""


@pytest.mark.parametrize("name", SUMMARIES)
def test_each_subcommand_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert said.startswith(f"usage: leasehold {name} ")
    assert SUMMARIES[name][1:] in said
    assert ("--json" in said) == (name not in ("master", "replicant", "changefeed", "dashboard"))


def test_every_file_of_a_subcommand_has_a_name() -> None:
    """One that was left out would be there for nobody."""
    folder = Path(cli.__file__).parent
    files = (path for path in folder.rglob("*.py") if "\ndef register(" in path.read_text())
    found = {".".join(path.relative_to(folder).with_suffix("").parts) for path in files}
    assert {f"leasehold.cli.{each}" for each in found} == MODULES


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["no-such"], "invalid choice: 'no-such' (choose from 'status', 'doctor', 'versions', "),
        (["--no-such", "status"], "unrecognized arguments: --no-such"),
    ],
)
def test_what_is_no_subcommand_is_wrong_usage(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


def test_the_files_of_other_subcommands_are_not_imported() -> None:
    said = subprocess.run(
        [sys.executable, "-c", LOOK, "user"], capture_output=True, timeout=60, check=True
    )
    assert MODULES.intersection(json.loads(said.stdout)) == {module_of("user")}


@pytest.mark.parametrize("name", ["status", "jobs", "versions", "leases"])
def test_who_only_looks_does_not_wait_for_sql(name: str) -> None:
    """A third of the time of such a command was spent with loading what computes expressions."""
    said = subprocess.run(
        [sys.executable, "-c", WATCH, name], capture_output=True, timeout=60, check=True
    )
    assert json.loads(said.stdout) == []
