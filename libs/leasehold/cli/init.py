"""The command `leasehold init`: a file of settings to begin with, and what to do next."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from leasehold.cli.command import Subparsers, add
from leasehold.cli.exit_code import ExitCode
from leasehold.cli.output import Output
from leasehold.model.errors import ConfigurationError
from leasehold.settings.client import ClientSettings
from leasehold.settings.environment import (
    ClusterSettings,
    KafkaSettings,
    RedisSettings,
    from_environment,
)
from leasehold.settings.sql_address import SqlAddress

FILE: Final = "leasehold.env"
GROUPS: Final[tuple[tuple[str, type], ...]] = (
    ("The database, and where a process stands", ClusterSettings),
    ("Kafka", KafkaSettings),
    ("Redis", RedisSettings),
    ("The node that leasehold sql, schema, import and export ask", SqlAddress),
)
OPTIONS: Final[Mapping[str, tuple[str, str]]] = {
    "database": ("LEASEHOLD_DATABASE", "name of the database"),
    "kafka": ("LEASEHOLD_KAFKA", "brokers, host:port with commas"),
    "redis": ("LEASEHOLD_REDIS", "redis://host:port/number"),
    "sql_host": ("LEASEHOLD_SQL_HOST", "node that SQL is asked of"),
    "sql_port": ("LEASEHOLD_SQL_PORT", "its port"),
    "user": ("LEASEHOLD_SQL_USER", "as whom"),
}
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./:,@%+=-]*")
"""What a shell, make, Docker and systemd all read as it is written."""
HELP: Final = """\
Writes a file of settings with a comment for each, which a shell (set -a; . ./leasehold.env), make,
docker --env-file and systemd's EnvironmentFile read alike. What the options or the environment say
is set; the rest stands there as a comment with its default. Secrets are never written: name a file
that holds one (LEASEHOLD_…_FILE). A file that is there is left alone, unless --force is said.

  leasehold init --database bookings --kafka broker1:9092 --redis redis://cache:6379/0"""


def register(subparsers: Subparsers) -> None:
    parser = add(subparsers, "init", run, HELP)
    parser.add_argument("--file", type=Path, default=Path(FILE), help=f"to be written ({FILE})")
    parser.add_argument("--force", action="store_true", help="also where it is there already")
    for option, (variable, words) in OPTIONS.items():
        parser.add_argument(
            f"--{option.replace('_', '-')}", metavar="…", help=f"{words} ({variable})"
        )


def run(args: argparse.Namespace, _: ClientSettings, output: Output) -> int:
    given = {variable: getattr(args, option) for option, (variable, _) in OPTIONS.items()}
    found = {**os.environ, **{name: said for name, said in given.items() if said is not None}}
    text, said = make_file(found)
    _write(args.file, text, force=args.force)
    steps = next_steps(args.file)
    if output.as_json:
        output.json({"file": str(args.file), "settings": said, "next": [s for s, _ in steps]})
        return ExitCode.OK
    output.line(f"wrote {args.file}: {len(said)} set, the rest as comments", "green")
    output.line("next:")
    width = max(len(step) for step, _ in steps)
    for step, words in steps:
        output.line(f"  {step.ljust(width)}  # {words}")
    return ExitCode.OK


def next_steps(file: Path) -> list[tuple[str, str]]:
    """Return commands with what they do, in the order in which they are needed."""
    path = str(file) if file.is_absolute() else f"./{file}"
    return [
        (f"set -a; . {path}; set +a", "have this shell use it"),
        ("leasehold topics", "create the database's topics (Kafka has to run: make up)"),
        ("leasehold master", "run a node that may become master; replicants and others beside it"),
        ("leasehold status", "see whether all is well"),
        ("leasehold schema apply schema.sql", "make the tables that a file declares"),
    ]


def make_file(environ: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Return the text of the file and the settings that it sets, of those that an environment has.
    Raises ConfigurationError for a value that is not accepted, or that not all readers of such
    files take for the same."""
    lines = ["# Settings of Leasehold, written by leasehold init (docs/reference/settings.md)."]
    said: dict[str, str] = {}
    for title, group in GROUPS:
        from_environment(group, environ)
        lines += ["", f"# {title}", ""]
        for each in fields(group):
            lines += _lines(each, environ, said)
    return "\n".join(lines) + "\n", said


def _lines(each: Field[Any], environ: Mapping[str, str], said: dict[str, str]) -> Iterator[str]:
    name, words = each.metadata["env"], each.metadata["help"]
    yield f"# {words}"
    if each.metadata["secret"]:
        file = f"{name}_FILE"
        if file in environ:
            yield _set(file, environ[file], said)
        else:
            yield f"# {file}=/path/to/a/file/that/holds/it"
        return
    value = environ.get(name)
    if value is not None and urlsplit(value).password:
        yield f"# {name} holds a password and is not written; say {name}_PASSWORD_FILE"
    elif value is not None:
        yield _set(name, value, said)
    else:
        default = "" if each.default in (None, MISSING) else each.default
        yield f"# {name}={default}"


def _set(name: str, value: str, said: dict[str, str]) -> str:
    if not _PLAIN.fullmatch(value):
        raise ConfigurationError(
            f"{name}: {value!r:.80} has characters that a shell, make and Docker read each in its"
            " own way; set it where the process is started"
        )
    said[name] = value
    return f"{name}={value}"


def _write(path: Path, text: str, *, force: bool) -> None:
    flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if force else os.O_EXCL)
    try:
        with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ConfigurationError(f"{path} is there already; --force writes it anew") from None
    except OSError as error:
        raise ConfigurationError(f"{path} can't be written: {error.strerror}") from error
