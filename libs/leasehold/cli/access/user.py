"""The command `leasehold user`: who may come to a node's port for SQL, with verifiers instead of
passwords."""

from __future__ import annotations

import argparse
import getpass
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Final

from leasehold.adapters.os.clock import random_bytes
from leasehold.cli.command import Subparsers, add, finish, read_text_file
from leasehold.cli.exit_code import ExitCode
from leasehold.cli.output import Output
from leasehold.model.errors import ConfigurationError
from leasehold.pgwire.auth.scram_server import (
    ITERATIONS,
    ITERATIONS_MIN,
    SALT_BYTES,
    Verifier,
    verifier_of_password,
)
from leasehold.settings.client import ClientSettings
from leasehold.settings.sql_port import users

VARIABLE: Final = "LEASEHOLD_SQL_USERS_FILE"
PASSWORD_BYTES_MAX: Final = 1_024
_NAME: Final = re.compile(r"[^\s=\x00-\x1f][^=\x00-\x1f]{0,62}")
ROUNDS: Final = (
    f"rounds of hashing, {ITERATIONS_MIN} or more: what a client computes each time that it"
    f" connects, and whoever has stolen the file for each guess (default: {ITERATIONS}, some 4 ms)"
)
MORE: Final = f"""\
A file of users is what {VARIABLE} names to a replicant: lines of name=SCRAM-SHA-256$…, from which
no password can be found. A replicant reads it again when it changes: sessions of who has gone end,
and a new password holds for the next log-in."""


def register(subparsers: Subparsers) -> None:
    parser = add(subparsers, "user", list_users, MORE)
    actions = parser.add_subparsers(metavar="ACTION")
    listed = actions.add_parser("list", help="names of the users in the file")
    added = actions.add_parser(
        "add", help="give a user a password, asked for or read from a file, never an argument"
    )
    added.add_argument("name", help="the user")
    added.add_argument("--password-file", metavar="FILE", help="holds the password; - = stdin")
    added.add_argument("--iterations", type=int, default=ITERATIONS, help=ROUNDS)
    removed = actions.add_parser("remove", help="take a user out of the file")
    removed.add_argument("name", help="the user")
    printed = actions.add_parser("verifier", help="print the line instead of keeping it")
    printed.add_argument("name", help="the user")
    printed.add_argument("--password-file", metavar="FILE", help="holds the password; - = stdin")
    printed.add_argument("--iterations", type=int, default=ITERATIONS, help=ROUNDS)
    for action, does in ((listed, list_users), (added, add_user), (removed, remove_user)):
        action.add_argument("--file", type=Path, help=f"the file of users (or {VARIABLE})")
        finish(action, does)
    finish(printed, print_verifier)
    parser.set_defaults(file=None)


def list_users(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    names = sorted(_read(_find_file(args)))
    if output.as_json:
        output.json(names)
    else:
        output.table(["user"], [[name] for name in names], "the file has no user yet")
    return ExitCode.OK


def add_user(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    file, made = _find_file(args), _make_verifier(args)
    known = _read(file) if file.exists() else {}
    _write(file, {**known, args.name: made})
    word = "changed" if args.name in known else "added"
    output.note(f"user {args.name} {word} in {file}; replicants take it within seconds")
    return ExitCode.OK


def remove_user(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    file = _find_file(args)
    known = _read(file)
    if args.name not in known:
        output.error(f"there is no user {args.name!r} in {file}")
        return ExitCode.NOT_RIGHT
    _write(file, {name: verifier for name, verifier in known.items() if name != args.name})
    output.note(f"user {args.name} removed from {file}; replicants take it within seconds")
    return ExitCode.OK


def print_verifier(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    made = _make_verifier(args)
    if output.as_json:
        output.json({"user": args.name, "verifier": str(made)})
    else:
        sys.stdout.write(f"{args.name}={made}\n")
    return ExitCode.OK


def _find_file(args: argparse.Namespace) -> Path:
    named = args.file or os.environ.get(VARIABLE)
    if not named:
        raise ConfigurationError(f"name the file of users: --file FILE, or {VARIABLE}")
    return Path(named)


def _read(file: Path) -> dict[str, Verifier]:
    try:
        return dict(users(file.read_text(encoding="utf-8")))
    except OSError as error:
        raise ConfigurationError(f"{file} can't be read: {error.strerror}") from error
    except ValueError as error:
        raise ConfigurationError(f"{file} is no file of users; expected {error}") from error


def _write(file: Path, known: dict[str, Verifier]) -> None:
    """Whole or not at all, for its owner's eyes."""
    try:
        handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as made:  # mkstemp gives 0600
                made.writelines(f"{user}={verifier}\n" for user, verifier in known.items())
                made.flush()
                os.fsync(made.fileno())
            Path(name).replace(file)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ConfigurationError(f"{file} can't be written: {error.strerror}") from error


def _make_verifier(args: argparse.Namespace) -> Verifier:
    """Raises ConfigurationError for a name or a password that can't be one."""
    if not _NAME.fullmatch(args.name) or args.name != args.name.strip():
        raise ConfigurationError(
            f"{args.name!r} can't be a user: 1 to 63 characters, no = and no blank at an end"
        )
    if not ITERATIONS_MIN <= args.iterations <= 1_000_000:
        raise ConfigurationError(f"--iterations: expected {ITERATIONS_MIN} to 1000000")
    password = _ask_password(args)
    if not 0 < len(password.encode()) <= PASSWORD_BYTES_MAX or "\0" in password:
        raise ConfigurationError(f"a password has 1 to {PASSWORD_BYTES_MAX} bytes")
    return verifier_of_password(password, random_bytes(SALT_BYTES), args.iterations)


def _ask_password(args: argparse.Namespace) -> str:
    file = args.password_file
    if file == "-":
        return sys.stdin.readline().rstrip("\r\n")
    if file:
        return read_text_file(file).rstrip("\r\n")
    if not sys.stdin.isatty():
        raise ConfigurationError(
            "nobody can be asked here: give --password-file FILE, or - for stdin"
        )
    given = getpass.getpass(f"password of {args.name}: ")
    if given != getpass.getpass("once more: "):
        raise ConfigurationError("the two passwords differ; nothing was changed")
    return given
