"""Goal: a command for Docker on a page names a file and a service that there are.

Method: the commands of all pages are held against the Compose files. That what they start comes up
is shown by `tests/integration/infra/test_composed.py`.
"""

from __future__ import annotations

import shlex
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from ruamel.yaml import YAML

from tests.support.documents.blocks import blocks, commands

ROOT: Final = Path(__file__).parents[3]


@cache
def compose(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = YAML(typ="safe").load((ROOT / name).read_text("utf-8"))
    return loaded


def found() -> list[tuple[str, str]]:
    """Return page and text of each command."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [
        (page.name, command.text)
        for page in pages
        for block in blocks(page)
        if block.language == "console"
        for command in commands(block)
        if command.text.startswith(("docker compose ", "docker build "))
    ]


def check(text: str) -> None:
    """Hold a command against what there is. Raises AssertionError or KeyError."""
    match shlex.split(text):
        case ["docker", "build", "-f", file, "-t", _, "."]:
            assert (ROOT / file).is_file()
        case ["docker", "compose", "-f", file, "up", *_]:
            assert compose(file)["services"]
        case ["docker", "compose", "-f", file, "run", "--rm", *rest]:
            name = next(word for word in rest if not word.startswith("--"))
            service = compose(file)["services"][name]
            assert service["profiles"] == [name], "what is run by hand does not start with the rest"
        case _:
            raise AssertionError(f"nothing holds this against the files: {text}")


def test_there_are_such_commands() -> None:
    files = {word for _, text in found() for word in text.split() if word.endswith(".yml")}
    assert files == {"docker-compose.secure.yml", "docker-compose.three.yml"}


@pytest.mark.parametrize(("page", "text"), found())
def test_a_command_names_what_there_is(page: str, text: str) -> None:
    check(text)


BROKEN: Final = (
    "docker compose -f docker-compose.four.yml up",
    "docker compose -f docker-compose.secure.yml run --rm operators leasehold status",
    "docker compose -f docker-compose.secure.yml run --rm r1",
    "docker build -f infra/images/service.Dockerfile -t x .",
    "docker compose down",
)


@pytest.mark.parametrize("text", BROKEN)
def test_one_that_names_something_else_would_be_seen(text: str) -> None:
    with pytest.raises((AssertionError, KeyError, OSError)):
        check(text)
