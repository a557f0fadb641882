"""Does what a document says, block by block, and holds what is printed against what it shows."""

from __future__ import annotations

import os
import select
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from tests.support.documents.blocks import RUN, Block, blocks, commands, is_as_shown

ROOT: Final = Path(__file__).parents[3]
COMMAND_TIMEOUT_S: Final = 120.0
TEXT: Final = "text"


def run_document(document: Path, folder: Path, environ: Mapping[str, str]) -> int:
    """Run the blocks of a document in `folder`; return how many there were.

    A console block is compared command by command; a python or sql block with the text block that
    follows it, if one does. Raises AssertionError where something else is printed than is shown.
    """
    return run_marked(document, folder, {("", ""): environ})


def run_marked(
    document: Path, folder: Path, environs: Mapping[tuple[str, str], Mapping[str, str]]
) -> int:
    """The same for blocks with the marks (and what these say) that `environs` has an environment
    for, each environment with a shell of its own; ("", ""): those without a mark."""
    count = 0
    found = blocks(document)
    with ExitStack() as stack:
        shells = {
            mark: stack.enter_context(_shell(folder, environ, str(number)))
            for number, (mark, environ) in enumerate(environs.items())
        }
        for number, block in enumerate(found):
            shell = shells.get((block.mark, block.said))
            if block.mark == "file":
                (folder / block.said).write_text(block.text, "utf-8")
            elif block.language in RUN and shell is not None:
                behind = found[number + 1] if number + 1 < len(found) else None
                _run(document, block, behind, shell, folder)
                count += 1
    return count


def _run(document: Path, block: Block, behind: Block | None, shell: Shell, folder: Path) -> None:
    if block.language == "console":
        for command in commands(block):
            printed = shell.run(command.text)
            _compare(document, command.line, command.text, printed, command.shown)
        return
    program = folder / ("block.py" if block.language == "python" else "block.sql")
    program.write_text(block.text, "utf-8")
    runs = "python block.py" if block.language == "python" else "leasehold sql block.sql"
    printed = shell.run(runs)
    if behind is not None and behind.language == TEXT:
        _compare(document, block.line, block.text, printed, behind.text.splitlines())
    else:
        assert "Traceback" not in printed, f"{document.name}:{block.line}\n{printed}"
        assert "leasehold:" not in printed, f"{document.name}:{block.line}\n{printed}"


def _compare(
    document: Path, line: int, what: str, printed: str, shown: list[str] | tuple[str, ...]
) -> None:
    told = "\n".join(shown)
    assert "Traceback" not in printed, f"{document.name}:{line}: {what}\n{printed}"
    assert is_as_shown(printed, shown), (
        f"{document.name}:{line}: {what}\n--- printed\n{printed}\n--- shown\n{told}"
    )


class Shell:
    """One bash for a whole document: what runs in the background can be waited for."""

    def __init__(self, folder: Path, environ: Mapping[str, str], name: str) -> None:
        self._folder = folder
        self._name = name
        self._ended, told = os.pipe()
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=environ,
            pass_fds=(told,),
            start_new_session=True,
        )
        self._told = told
        self._count = 0

    def run(self, text: str) -> str:
        """Return what a command prints, as a terminal would show it: errors in their place.

        The shell reads it from a file: one that lacks its end is an error that is shown, and does
        not take what stands behind it for its rest."""
        self._count += 1
        printed = self._folder / f".printed-{self._name}-{self._count}"
        given = self._folder / f".given-{self._name}-{self._count}"
        given.write_text(f"{text}\n", "utf-8")
        assert self._process.stdin is not None
        reads, writes = shlex.quote(str(given)), shlex.quote(str(printed))
        script = f". {reads} > {writes} 2>&1 < /dev/null; echo >&{self._told}\n"
        self._process.stdin.write(script.encode())
        self._process.stdin.flush()
        ready, _, _ = select.select([self._ended], [], [], COMMAND_TIMEOUT_S)
        assert ready, f"it has not ended within {COMMAND_TIMEOUT_S:g} s: {text}"
        os.read(self._ended, 1)
        return printed.read_text("utf-8")

    def close(self) -> None:
        """End the shell and whatever it has left in the background."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        os.close(self._ended)
        os.close(self._told)


@contextmanager
def _shell(folder: Path, environ: Mapping[str, str], name: str) -> Iterator[Shell]:
    programs = folder / f".bin-{name}"
    programs.mkdir()
    for word, runs in (("leasehold", "-m leasehold.cli.main"), ("python", "")):
        program = programs / word
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {runs} "$@"\n', "ascii")
        program.chmod(0o755)
    shell = Shell(
        folder,
        {
            **environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": f"{ROOT / 'libs'}:{ROOT}",
            # What is printed and what is complained of stand in the order of a terminal.
            "PYTHONUNBUFFERED": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "COLUMNS": "100",
        },
        name,
    )
    try:
        yield shell
    finally:
        shell.close()
