"""The command `leasehold dev`: a whole database in this process, fed by lines; no Kafka, no Redis,
no Spark."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Final, TextIO

from leasehold.adapters.codec.json_text import json_text, parse_json
from leasehold.cli.command import Subparsers, add
from leasehold.cli.exit_code import ExitCode
from leasehold.cli.output import Output, refusal_words
from leasehold.dev.database import Answer, DevDatabase
from leasehold.events.version_diff import column_words, element_name, index_words
from leasehold.model.errors import ConfigurationError, LeaseholdError, OutcomeUnknown
from leasehold.schema_change.plan.answers import read_answers, read_jobs
from leasehold.settings.client import ClientSettings

_KEPT: Final = "surrogateescape"
"""Bytes that are no UTF-8 come through, so that their line is told and the next one is read."""

HELP = """\
Each line is one of

  CREATE TABLE …            a statement of the schema; its job is followed to its end
  {"table": …, "op": …}     a change request, as `leasehold submit` takes them
  .tables                   tables with their columns and indexes
  .get TABLE KEY            a row, as a coherent replicant has it; KEY is JSON or a bare value
  .status                   nodes, and jobs that have not ended
  .check                    every node checks its store; all must hold the same
  .help  .quit

The database lives as long as the command. Before it ends it checks every node.
Exit code 1 if a line was refused or could not be read, a job has failed, or a check has found
anything."""


def register(subparsers: Subparsers) -> None:
    parser = add(subparsers, "dev", run, HELP)
    parser.add_argument(
        "file", metavar="FILE", nargs="*", help="files of lines; none = standard input"
    )


def run(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    with ExitStack() as stack:
        sources = [_open(name, stack) for name in args.file] or [_standard_input()]
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="leasehold-dev-")))
        database = DevDatabase(folder, output.note)
        stack.callback(database.close)
        database.wait_ready()
        interactive = not args.file and sys.stdin.isatty()
        output.note("one master, two replicants; .help tells what can be asked")
        console = DevConsole(database, output)
        for source in sources:
            console.read(_add_prompts(source, output) if interactive else source)
            if console.quits:
                break
        console.check()
        return console.exit_code


def _open(name: str, stack: ExitStack) -> TextIO:
    try:
        return stack.enter_context(Path(name).open(encoding="utf-8", errors=_KEPT))
    except OSError as error:
        raise ConfigurationError(f"{name} can't be read: {error.strerror}") from error


def _standard_input() -> TextIO:
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8", errors=_KEPT)
    return sys.stdin


def _add_prompts(source: Iterable[str], output: Output) -> Iterator[str]:
    """Yield the lines of a terminal, each after a mark on standard error."""
    output.err.print("leasehold> ", end="")
    for line in source:
        yield line
        output.err.print("leasehold> ", end="")


def _is_text(line: str) -> bool:
    try:
        line.encode()
    except UnicodeEncodeError:
        return False
    return True


class DevConsole:
    """Takes lines, tells what became of them."""

    def __init__(self, database: DevDatabase, output: Output) -> None:
        self._database = database
        self._output = output
        self.exit_code = ExitCode.OK
        self.quits = False
        self._commands: dict[str, Callable[[str], None]] = {
            ".tables": self._tables,
            ".get": self._get,
            ".status": self._status,
            ".check": lambda _: self.check(),
            ".help": lambda _: output.line(HELP),
            ".quit": self._quit,
        }

    def read(self, lines: Iterable[str]) -> None:
        """Take lines until they end or one of them says .quit. A line that fails is told; the next
        is read."""
        for line in lines:
            try:
                self.take(line.strip())
            except LeaseholdError as error:
                self._tell_error(error.message, error.sqlstate)
            if self.quits:
                return

    def take(self, line: str) -> None:
        """Do what one line says. Raises LeaseholdError."""
        if not line or line.startswith(("#", "--")):
            return
        if not _is_text(line):
            self._tell_error("this line is no UTF-8 text")
            return
        if line.startswith("."):
            name, _, rest = line.partition(" ")
            command = self._commands.get(name)
            if command is None:
                self._tell_error(f"{name} is not known; .help tells what is")
                return
            command(rest.strip())
        elif line.startswith("{"):
            fields = self._read_json(line)
            if fields is not None:
                self._show_answer(self._database.ask(fields))
        else:
            self._show_answer(self._database.ask({"sql": line.rstrip(";").strip()}))

    def _read_json(self, line: str) -> dict[str, Any] | None:
        try:
            fields = parse_json(line)
        except (ValueError, RecursionError) as error:
            self._tell_error(f"this line is no JSON: {error}")
            return None
        return fields if isinstance(fields, dict) else None

    def _tell_error(self, words: str, sqlstate: str = "") -> None:
        self._output.error(words, sqlstate)
        self.exit_code = ExitCode.NOT_RIGHT

    def _show_answer(self, answer: Answer) -> None:
        outcome = answer.outcome
        if not answer.committed:
            self.exit_code = ExitCode.NOT_RIGHT
        if self._output.as_json:
            self._output.json(
                {
                    "id": answer.request_id,
                    "lsn": outcome.lsn,
                    "rows": outcome.rows_affected,
                    "code": outcome.code,
                    "message": outcome.message,
                    "answer": outcome.answer,
                }
            )
        elif not answer.committed:
            self._output.line(f"refused {outcome.code}: {refusal_words(outcome)}", "red")
        else:
            said = (each.items() for each in read_answers(outcome.answer))
            words = ", ".join(f"{name} {value}" for each in said for name, value in each)
            rows = f"{outcome.rows_affected} row{'' if outcome.rows_affected == 1 else 's'}"
            self._output.line(f"LSN {outcome.lsn}: {words or rows}", "green")
        for job in read_jobs(outcome.answer) if answer.committed else ():
            self._follow(job)

    def _follow(self, job_id: int) -> None:
        job = self._database.wait_job(job_id)
        if job is None or not job.status.ended:
            state = "not begun" if job is None else str(job.status)
            self._output.note(f"job {job_id} is {state}; it goes on")
        elif job.error:
            self._tell_error(f"job {job_id} failed: {job.error}")

    def _tables(self, _: str) -> None:
        for table in self._database.tables():
            if self._output.as_json:
                self._output.json(table.to_wire())
                continue
            self._output.line(f"{table.name} version {table.version}", "bold")
            for column in table.in_place:
                self._output.line(
                    f"  {element_name(column)} {column_words(column)} ({column.state.label})"
                )
            for index in table.indexes:
                words = index_words(table, index)
                self._output.line(f"  {index.name} {words} ({index.state.label})")

    def _get(self, rest: str) -> None:
        table, _, text = rest.partition(" ")
        try:
            key = parse_json(text)
        except ValueError:
            key = text
        if isinstance(key, list):
            key = tuple(key)
        elif not isinstance(key, dict):
            key = (key,)
        row = self._database.get(table, key)
        if self._output.as_json:
            self._output.json(row)
        else:
            self._output.line("no such row" if row is None else json_text(row))

    def _status(self, _: str) -> None:
        nodes = self._database.status()
        if self._output.as_json:
            self._output.json(nodes)
            return
        self._output.table(
            ["node", "role", ">epoch", ">LSN", "reads"],
            [[n["node"], n["role"], n["epoch"], n["lsn"], n["coherent"]] for n in nodes],
            "no node",
        )
        for job in self._database.jobs():
            if not job.status.ended:
                self._output.line(f"job {job.job_id} {job.status}, {job.phase}: {job.sql}")

    def check(self) -> None:
        try:
            found = self._database.check()
        except OutcomeUnknown as error:
            self._tell_error(error.message)
            return
        if self._output.as_json:
            self._output.json(found._asdict())
        elif not found.differences:
            words = f"{found.nodes} nodes hold the same {found.rows} rows of {found.tables} tables"
            self._output.note(words)
        for words in found.differences:
            self._tell_error(words)

    def _quit(self, _: str) -> None:
        self.quits = True
