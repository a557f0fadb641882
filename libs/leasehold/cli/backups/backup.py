"""The options of `leasehold backup`, and which file has each action."""

from __future__ import annotations

import argparse
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from leasehold.cli.backups.looking_at import list_backups, verify
from leasehold.cli.backups.making import create, prune
from leasehold.cli.backups.restoring import restore
from leasehold.cli.command import Subparsers, add, finish
from leasehold.cli.exit_code import ExitCode
from leasehold.cli.output import Output
from leasehold.settings.client import ClientSettings

RATE_MB_MAX: Final = 100_000
MORE: Final = """\
PLACE is a folder, or the URL of an object store (s3://bucket/path, gs://, az://; with its own
environment variables, such as AWS_ENDPOINT_URL; pip install 'leasehold[backup]').

A full backup is the store of one node at one LSN; an increment is the log since the backup before.
Nothing is stopped for either.

  leasehold backup create /backups
  leasehold backup verify /backups
  leasehold backup restore /backups --database flights2 --to-lsn 1200"""


def register(subparsers: Subparsers) -> None:
    parser = add(subparsers, "backup", no_action, MORE)
    parser.set_defaults(refuse=parser.error)
    actions = parser.add_subparsers(metavar="ACTION")
    created = actions.add_parser(
        "create", help="make an increment, or a full backup where none can go on"
    )
    _add_place(created, key="encrypt with the key in this file (32 bytes or more)")
    _add_work(created)
    created.add_argument("--full", action="store_true", help="make a full backup in any case")
    created.add_argument(
        "--store",
        type=Path,
        metavar="FILE",
        help="take the store.db of a node on this machine, which may run; else one is fetched from"
        " a replicant that serves snapshots",
    )
    created.add_argument("--node", default="", help="fetch the store of this node")
    created.add_argument(
        "--keep",
        type=positive_number,
        metavar="N",
        help="afterwards keep the newest N full backups with what rests on them, remove the rest",
    )
    finish(created, create)
    listed = actions.add_parser("list", help="list what lies there")
    listed.add_argument("place", metavar="PLACE", help="of backups")
    finish(listed, list_backups)
    verified = actions.add_parser(
        "verify", help="read everything back, and compare digests and the checksums of tables"
    )
    _add_place(verified, key="the key that they were made with")
    _add_work(verified)
    verified.add_argument("--id", help="only this backup with what it rests on (all)")
    finish(verified, verify)
    restored = actions.add_parser(
        "restore", help="bring a database back under a new name, or one table beside the living one"
    )
    _add_place(
        restored,
        key="the key that it was made with",
        place="of backups; or the store.db of a stopped node, where there is no backup",
    )
    into = restored.add_mutually_exclusive_group(required=True)
    into.add_argument("--database", metavar="NAME", help="the new one, on LEASEHOLD_KAFKA")
    into.add_argument(
        "--table",
        metavar="TABLE",
        help="only this table, into a new one of the running LEASEHOLD_DATABASE (--name): columns,"
        " primary key and rows",
    )
    restored.add_argument("--name", help="of the new table")
    restored.add_argument(
        "--store",
        type=Path,
        action="append",
        metavar="FILE",
        help="where a node of it will have its store; may be given for several nodes (default:"
        " LEASEHOLD_DATA/LEASEHOLD_NODE/store.db)",
    )
    _add_work(restored)
    target = restored.add_mutually_exclusive_group()
    target.add_argument("--to-lsn", type=positive_number, metavar="LSN", help="up to this LSN")
    target.add_argument(
        "--to-time",
        type=moment,
        metavar="TIME",
        help="up to this time of the log, such as 2026-11-28T21:15:00Z",
    )
    restored.add_argument("--id", help="by this backup with what it rests on (the best one)")
    finish(restored, restore)
    pruned = actions.add_parser("prune", help="remove old backups, and what was left unfinished")
    pruned.add_argument("place", metavar="PLACE", help="of backups")
    pruned.add_argument(
        "--keep",
        type=positive_number,
        required=True,
        metavar="N",
        help="keep the newest N full backups with what rests on them",
    )
    finish(pruned, prune)


def _add_place(parser: argparse.ArgumentParser, key: str, place: str = "of backups") -> None:
    """Give an action that reads or writes data what all such have."""
    parser.add_argument("place", metavar="PLACE", help=place)
    parser.add_argument("--key-file", type=Path, metavar="FILE", help=key)
    parser.add_argument(
        "--rate", type=rate, metavar="MB/S", help="move no more than that of the data (no limit)"
    )


def _add_work(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--work",
        type=Path,
        metavar="FOLDER",
        help="for a copy of the store meanwhile (the system's for temporary files; of a restored"
        " database it is where the store will be)",
    )


def positive_number(text: str) -> int:
    """Return the number. Raises ArgumentTypeError."""
    if not text.isdecimal() or not 1 <= int(text) < 1 << 63:
        raise argparse.ArgumentTypeError("expected a whole number, 1 or more")
    return int(text)


def rate(text: str) -> float:
    """Return megabytes a second. Raises ArgumentTypeError."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 < found <= RATE_MB_MAX:
        raise argparse.ArgumentTypeError("expected megabytes a second, such as 20 or 0.5")
    return found


def moment(text: str) -> int:
    """Return a time as unix µs; without an offset it is this machine's. Raises
    ArgumentTypeError."""
    try:
        return round(datetime.fromisoformat(text).astimezone(UTC).timestamp() * 1_000_000)
    except (ValueError, OverflowError, OSError) as error:
        raise argparse.ArgumentTypeError(
            "expected a time such as 2026-11-28T21:15:00Z or 2026-11-28 22:15:00.25"
        ) from error


def no_action(args: argparse.Namespace, _: ClientSettings, __: Output) -> int:
    args.refuse("an action is wanted: create, list, verify, restore or prune")
    return ExitCode.USAGE
