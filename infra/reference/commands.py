"""What each command says of itself with `--help`."""

from __future__ import annotations

import argparse
import os
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from infra.reference.markdown import table
from leasehold.cli.command import SUMMARIES
from leasehold.cli.exit_code import ExitCode
from leasehold.cli.main import EPILOG, parser

WIDTH: Final = 90


def commands() -> str:
    """Return the help of every command, and of every action of one."""
    parts: list[str] = []
    with _columns(WIDTH):
        for name in SUMMARIES:
            chosen = _actions(parser(name))[name]
            parts.append(f"### leasehold {name}\n\n{_help(chosen)}")
            parts += [_help(action) for action in _actions(chosen).values()]
    return "\n\n".join(parts)


def exit_codes() -> str:
    """Return what the command's exit codes mean, in its own words."""
    words = " ".join(EPILOG.partition("\n\n")[0].split()).removeprefix("exit codes: ")
    told = [part.strip().partition(" ") for part in words.split("·")]
    assert [int(number) for number, _, _ in told] == [int(c) for c in ExitCode], words
    return table(("code", "meaning"), [(number, meaning) for number, _, meaning in told])


def _actions(found: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the parsers below one, by name; {} where it has none."""
    # argparse has no public way to ask for them.
    for action in found._actions:  # noqa: SLF001
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            return dict(action.choices)
    return {}


def _help(found: argparse.ArgumentParser) -> str:
    lines: list[str] = []
    for line in found.format_help().strip().splitlines():
        lines += textwrap.wrap(line, WIDTH, drop_whitespace=False) if len(line) > WIDTH else [line]
    return "```text\n" + "\n".join(line.rstrip() for line in lines) + "\n```"


@contextmanager
def _columns(width: int) -> Iterator[None]:
    """Make argparse wrap its texts at `width`, whatever terminal this runs in."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(width)
    try:
        yield
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before
