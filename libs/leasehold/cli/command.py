"""What every subcommand is: a file with `register(subparsers)`; the parser carries its `run`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import wrap
from typing import Any, Final, TypeAlias

from leasehold.cli.output import Output
from leasehold.model.errors import ConfigurationError
from leasehold.settings.client import ClientSettings

Subparsers: TypeAlias = Any  # argparse has no public name for what add_subparsers() gives

HELP_COLUMNS: Final = 78

Run: TypeAlias = Callable[[argparse.Namespace, ClientSettings, Output], int]


SUMMARIES: Final[Mapping[str, str]] = {
    "status": "show log, master, nodes, ledger, jobs and queues",
    "doctor": "check settings, topics, durability, clocks, disks, rights; say what to do",
    "versions": "list tables with their version, columns and indexes; diff two versions; show"
    " history",
    "top": "watch nodes, commits, jobs and tables live",
    "leases": "list leases per table and version, with their agents and sessions",
    "jobs": "list schema changes and what they wait for; watch, steer or cancel them",
    "upgrade": "show what release each process is of; end an upgrade",
    "clock": "show the log's time and the master's clock; set the log's time back",
    "submit": "send the change requests of a file and tell what became of them",
    "ddl": "change the schema while everything runs",
    "schema": "compare the schema with a file that declares it, and change it to that",
    "check": "have every live node check its tables at one log position",
    "dead-letter": "list, explain and resubmit what was not applied",
    "feed": "list, make and drop feeds of tables in Debezium's form, and ask for snapshots",
    "intake": "make change requests of other systems' events, and tell how far that is",
    "sql": "run SQL on a node, from a text, a file or by hand",
    "import": "copy schema and rows of a PostgreSQL, or rows of a file",
    "export": "write tables and queries as CSV, Parquet or SQL",
    "backup": "make, list, verify and restore backups, beside the running nodes",
    "user": "list and change who may come to the SQL port",
    "role": "print and revoke the keys that roles sign change requests with",
    "audit": "show who came, was refused, or changed what others may do",
    "topics": "create the topics of a database, and tell where existing ones differ",
    "setup-acls": "give each kind of process its rights on Kafka and Redis, and no others",
    "master": "run a node that may become master, until SIGTERM",
    "replicant": "run a replicant, until SIGTERM",
    "changefeed": "publish the log on topics that others read, until SIGTERM",
    "dashboard": "serve one page that shows the database live, until SIGTERM",
    "init": "write a file of settings, and say what to do next",
    "completion": "print a script by which bash, zsh or fish completes these commands",
    "dev": "a whole database in this process, fed by lines (no servers)",
}
"""All subcommands as `leasehold --help` lists them, which imports none of their files."""

IN_ACCESS: Final = frozenset({"user", "role", "audit", "setup-acls"})
"""Those whose files are in `cli/access`."""
IN_TRANSFER: Final = {"import": "importing", "export": "exporting"}
"""The names of files in `cli/transfer`."""


def module_of(name: str) -> str:
    """Return the module of one of SUMMARIES."""
    if name == "doctor":
        return "leasehold.cli.doctor.command"
    if name in IN_TRANSFER:
        return f"leasehold.cli.transfer.{IN_TRANSFER[name]}"
    if name == "backup":
        return "leasehold.cli.backups.backup"
    package = "leasehold.cli.access" if name in IN_ACCESS else "leasehold.cli"
    return f"{package}.{name.replace('-', '_')}"


def add(subparsers: Subparsers, name: str, run: Run, more: str = "") -> Any:
    """Return a parser for one of SUMMARIES, with `--json`."""
    parser = _add(subparsers, name, more)
    parser.add_argument("--json", action="store_true", help=JSON_HELP)
    parser.set_defaults(run=run)
    return parser


def add_process(subparsers: Subparsers, name: str, run: Callable[[], int], more: str) -> None:
    """Add one of SUMMARIES that answers nothing: it runs a process until SIGTERM."""
    parser = _add(subparsers, name, more)
    parser.set_defaults(run=lambda args, settings, output: run(), json=False)


def _add(subparsers: Subparsers, name: str, more: str) -> Any:
    summary = SUMMARIES[name]
    return subparsers.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.\n\n{wrap_paragraphs(more)}".strip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def wrap_paragraphs(text: str) -> str:
    """Return the text with its paragraphs broken at HELP_COLUMNS; those that are indented, such as
    lines to be typed, stay as they are."""
    wrapped = (
        paragraph if paragraph[:1] == " " else "\n".join(wrap(paragraph, HELP_COLUMNS))
        for paragraph in text.strip().split("\n\n")
    )
    return "\n\n".join(wrapped)


def finish(parser: argparse.ArgumentParser, run: Run) -> argparse.ArgumentParser:
    """Give an action of a subcommand its `--json`, which is taken before and after its name, and
    its `run`."""
    parser.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help=JSON_HELP)
    parser.set_defaults(run=run)
    return parser


JSON_HELP = "print JSON for programs"


def add_timeout(parser: argparse.ArgumentParser, default_s: float, words: str) -> None:
    """Give a subcommand its `--timeout`; `words` says what is waited for."""
    parser.add_argument(
        "--timeout",
        type=positive_seconds,
        default=default_s,
        metavar="SECONDS",
        help=f"longest wait for {words} (default: {default_s:g})",
    )


_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "": 1.0}


def seconds(text: str) -> float:
    """Return a time of 0 to a day in seconds: ``30``, ``30s``, ``500ms``, ``2m``."""
    digits = text.rstrip("ms")
    unit = _UNITS.get(text[len(digits) :])
    try:
        found = float(digits) * unit if unit is not None else -1.0
    except ValueError:
        found = -1.0
    if not 0 <= found <= 86_400:
        raise argparse.ArgumentTypeError("expected a time like 30s, 500ms or 2m, at most a day")
    return found


def positive_seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds <= 86_400:
        raise argparse.ArgumentTypeError("expected seconds, more than 0 and at most 86400")
    return seconds


def read_text_file(name: str) -> str:
    """Return the text of a file. Raises ConfigurationError if it can't be read."""
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigurationError(f"{name} can't be read: {why}") from error
