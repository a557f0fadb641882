"""Goal: whoever does what a tutorial says sees what it shows.

Method: each document's blocks are run in their order, on a database in this process that listens
for PostgreSQL clients; those that need real servers are run by tests/integration/test_documents.py.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.documents.blocks import Block, blocks, commands, is_as_shown, needs_cluster
from tests.support.documents.document_run import ROOT, run_document
from tests.support.postgres.dev_server import dev_server

TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
HOW_TO = [ROOT / "docs" / "how-to" / f"{name}.md" for name in ("connect", "declare-a-schema")]
IN_PROCESS = [*HOW_TO, *[path for path in TUTORIALS if not needs_cluster(path)]]


@pytest.mark.parametrize("document", IN_PROCESS, ids=lambda path: path.stem)
def test_a_tutorial_shows_what_happens(document: Path, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    with dev_server(tmp_path / "data") as server:
        environ = {
            **{name: value for name, value in os.environ.items() if "LEASEHOLD" not in name},
            "LEASEHOLD_SQL_PORT": str(server.port),
            "LEASEHOLD_DATABASE": server.database,
        }
        assert run_document(document, tmp_path / "work", environ)


def test_no_block_is_left_out_without_a_reason() -> None:
    """A mark that is misspelt would be a comment, and its block would be run or not by chance."""
    for document in [ROOT / "README.md", *HOW_TO, *TUTORIALS]:
        text = document.read_text("utf-8")
        marks = sum(1 for block in blocks(document) if block.mark)
        assert marks == text.count("<!-- not run:") + text.count("<!-- file:"), document.name


@pytest.mark.parametrize(
    ("printed", "shown", "same"),
    [
        ("a\n", ["a"], True),
        ("a  \n", ["a"], True),
        ("a\nb\n", ["a"], False),
        ("", ["a"], False),
        ("took 12 ms\n", ["took … ms"], True),
        ("took 12 s\n", ["took … ms"], False),
        ("a\nb\nc\n", ["a", "…"], True),
        ("a\n", ["a", "…"], True),
        ("b\nc\n", ["a", "…"], False),
        ("(1 + 1)\n", ["(1 + 1)"], True),
        ("", [], True),
        ("a\n", [], False),
    ],
)
def test_what_is_printed_is_held_against_what_is_shown(
    printed: str, shown: list[str], same: bool
) -> None:
    assert is_as_shown(printed, shown) == same


def test_a_console_block_is_commands_with_what_each_prints() -> None:
    text = "$ cat > f <<'END'\n> a\n> END\n$ cat f\na\n"
    assert [tuple(command) for command in commands(Block("console", text, 10))] == [
        ("cat > f <<'END'\na\nEND", (), 10),
        ("cat f", ("a",), 13),
    ]
    text = "$ echo a \\\n    b \\\n>   c\na b c\n"
    assert [tuple(command) for command in commands(Block("console", text, 10))] == [
        ("echo a \\\n    b \\\n  c", ("a b c",), 10),
    ]
    with pytest.raises(ValueError, match="line 10 belongs to no command"):
        list(commands(Block("console", "what\n", 10)))


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        ("$ echo a \\\n    b", "a b\n"),
        ("$ cat <<'END'\n> a\n> END", "a\n"),
    ],
)
def test_a_command_of_several_lines_is_one(command: str, printed: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"```console\n{command}\n{printed}```\n", "utf-8")
    assert run_document(page, tmp_path, os.environ) == 1


def test_one_that_lacks_its_end_is_told_at_once(tmp_path: Path) -> None:
    """The shell does not wait for its rest."""
    page = tmp_path / "page.md"
    page.write_text("```console\n$ echo 'a\n```\n", "utf-8")
    with pytest.raises(AssertionError, match="unexpected EOF"):
        run_document(page, tmp_path, {**os.environ, "LC_ALL": "C"})
