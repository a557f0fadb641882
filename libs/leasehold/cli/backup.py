"""The command `leasehold backup`: backups made, listed, verified, restored and removed."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from leasehold.adapters.objects.pace import Pace
from leasehold.adapters.objects.place import open_objects
from leasehold.adapters.os.clock import unix_us
from leasehold.backup.chain import NEWEST, Target, newest, plan_restore, usable_chains
from leasehold.backup.create import Made, create_full, create_increment
from leasehold.backup.manifest import Manifest
from leasehold.backup.repository import Repository
from leasehold.backup.restore import restore_database
from leasehold.backup.sealing import key_secret
from leasehold.backup.sources import FileSource, KafkaLog, NodeSource, Source
from leasehold.backup.told import Told
from leasehold.backup.verify import verify_backups
from leasehold.cli.command import Subparsers, add, finish
from leasehold.cli.exit_code import ExitCode
from leasehold.cli.output import Output, clock_time
from leasehold.model.errors import ConfigurationError, LogStopped
from leasehold.model.topics import Topics
from leasehold.settings.client import ClientSettings

MB: Final = 1_000_000
RATE_MB_MAX: Final = 100_000
MORE: Final = """\
PLACE is a folder, or the URL of an object store (s3://bucket/path, gs://, az://; with its own
environment variables, such as AWS_ENDPOINT_URL; pip install 'leasehold[backup]').

A full backup is the store of one node at one LSN; an increment is the log since the backup before.
Nothing is stopped for either.

  leasehold backup create /backups
  leasehold backup verify /backups
  leasehold backup restore /backups --database flights2 --to-lsn 1200"""
_HEADS: Final = ("id", "kind", ">LSN", "up to", ">bytes", "encrypted", "rests on", "state")


def register(subparsers: Subparsers) -> None:
    parser = add(subparsers, "backup", no_action, MORE)
    parser.set_defaults(refuse=parser.error)
    actions = parser.add_subparsers(metavar="ACTION")
    created = actions.add_parser(
        "create", help="make an increment, or a full backup where none can go on"
    )
    _add_place(created, key="encrypt with the key in this file (32 bytes or more)")
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
    listed.add_argument("place", metavar="PLACE")
    finish(listed, list_backups)
    verified = actions.add_parser(
        "verify", help="read everything back, and compare digests and the checksums of tables"
    )
    _add_place(verified, key="the key that they were made with")
    verified.add_argument("--id", help="only this backup with what it rests on (all)")
    finish(verified, verify)
    restored = actions.add_parser("restore", help="bring a database back under a new name")
    _add_place(restored, key="the key that it was made with")
    restored.add_argument(
        "--database", required=True, metavar="NAME", help="the new one, on LEASEHOLD_KAFKA"
    )
    restored.add_argument(
        "--store",
        type=Path,
        action="append",
        metavar="FILE",
        help="where a node of it will have its store; may be given for several nodes (default:"
        " LEASEHOLD_DATA/LEASEHOLD_NODE/store.db)",
    )
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
    pruned.add_argument("place", metavar="PLACE")
    pruned.add_argument(
        "--keep",
        type=positive_number,
        required=True,
        metavar="N",
        help="keep the newest N full backups with what rests on them",
    )
    finish(pruned, prune)


def _add_place(parser: argparse.ArgumentParser, key: str) -> None:
    """Give an action that reads or writes data what all such have."""
    parser.add_argument("place", metavar="PLACE")
    parser.add_argument("--key-file", type=Path, metavar="FILE", help=key)
    parser.add_argument(
        "--rate", type=rate, metavar="MB/S", help="move no more than that of the data (no limit)"
    )
    parser.add_argument(
        "--work",
        type=Path,
        metavar="FOLDER",
        help="for a copy of the store meanwhile (the system's for temporary files)",
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


# -------------------------------------------------------------------- actions


def create(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    repository = _repository(args)
    database = settings.cluster.database
    listing = repository.listing()
    other = next((m for m in listing.manifests if m.database != database), None)
    if other is not None:
        raise ConfigurationError(
            f"{args.place} has backups of the database {other.database}: name another place for"
            f" {database}"
        )
    parent = None if args.full else newest(listing.manifests)
    with shown(output) as told:
        try:
            made = _made(args, repository, parent, settings, told)
        except LogStopped as error:
            if parent is None:
                raise
            output.note(f"no increment can go on from {parent.id}: {error.message}")
            output.note("so a full backup is made")
            made = _made(args, repository, None, settings, told)
    removed = repository.prune(args.keep, unix_us()) if args.keep and made is not None else []
    _show_made(made, removed, output)
    return ExitCode.NOT_RIGHT if made is not None and made.troubles else ExitCode.OK


def _made(
    args: argparse.Namespace,
    repository: Repository,
    parent: Manifest | None,
    settings: ClientSettings,
    told: Told,
) -> Made | None:
    """Make an increment of `parent`, without one a full backup; None where nothing is new."""
    pace, topics, cluster = _pace(args), settings.topics, settings.cluster
    if parent is not None:
        with KafkaLog(settings.kafka, topics) as log:
            return create_increment(repository, parent, log, pace=pace, told=told)
    source: Source = FileSource(args.store)
    if args.store is None:
        source = NodeSource(settings.kafka, topics, settings.snapshot, cluster.data, args.node)
    return create_full(repository, source, cluster.database, work=args.work, pace=pace, told=told)


def _show_made(made: Made | None, removed: Sequence[str], output: Output) -> None:
    if output.as_json:
        told = None if made is None else {**summary(made.manifest), "troubles": made.troubles}
        output.json({"made": told, "removed": removed})
        return
    if made is None:
        output.line("nothing is new since the newest backup", "dim")
    else:
        manifest = made.manifest
        output.line(
            f"{manifest.id}: {manifest.kind} backup up to LSN {manifest.end.lsn:,},"
            f" {manifest.size_bytes:,} bytes, from {manifest.source}"
        )
        for words in made.troubles:
            output.note(f"warning: {words}; look at that node with leasehold check")
    for each in removed:
        output.line(f"removed {each}")


def list_backups(args: argparse.Namespace, _: ClientSettings, output: Output) -> int:
    listing = Repository(open_objects(args.place)).listing()
    whole = {chain[-1].id for chain in usable_chains(listing.manifests)}
    broken = {each.id for each in listing.manifests} - whole
    if output.as_json:
        output.json(
            {
                "backups": [
                    {**summary(each), "usable": each.id in whole} for each in listing.manifests
                ],
                "unfinished": [each._asdict() for each in listing.unfinished],
            }
        )
    else:
        rows: list[list[Any]] = [
            [
                each.id,
                each.kind.value,
                each.end.lsn,
                clock_time(each.end.time_us),
                each.size_bytes,
                "yes" if each.is_encrypted else "no",
                each.parent or "–",
                "what it rests on is missing" if each.id in broken else "whole",
            ]
            for each in listing.manifests
        ]
        for left in listing.unfinished:
            state = left.why or f"unfinished, {len(left.objects)} objects"
            rows.append([left.id, None, None, None, None, None, None, state])
        output.table(_HEADS, rows, f"there is no backup in {args.place}")
    damaged = broken or any(each.why for each in listing.unfinished)
    return ExitCode.NOT_RIGHT if damaged else ExitCode.OK


def verify(args: argparse.Namespace, _: ClientSettings, output: Output) -> int:
    repository = _repository(args)
    listing = repository.listing()
    wanted = [each for each in listing.manifests if args.id in (None, each.id)]
    damaged = [each for each in listing.unfinished if each.why and args.id in (None, each.id)]
    if not wanted and not damaged:
        raise ConfigurationError(f"there is no backup {args.id or ''} in {args.place}".strip())
    with shown(output) as told:
        verdicts = (
            verify_backups(
                repository,
                listing.manifests,
                wanted=wanted,
                work=args.work,
                pace=_pace(args),
                told=told,
            )
            if wanted
            else []
        )
    if output.as_json:
        told_of = [
            {"id": each.manifest.id, "trouble": each.trouble, "tables": each.tables}
            for each in verdicts
        ]
        output.json([*told_of, *({"id": each.id, "trouble": each.why} for each in damaged)])
    else:
        rows: list[list[Any]] = [
            [each.manifest.id, each.manifest.end.lsn, each.trouble or "can be restored"]
            for each in verdicts
        ]
        rows += [[each.id, None, each.why] for each in damaged]
        output.table(("id", ">LSN", "verdict"), rows, "")
    bad = damaged or any(each.trouble for each in verdicts)
    return ExitCode.NOT_RIGHT if bad else ExitCode.OK


def restore(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    repository = _repository(args)
    target = NEWEST
    if args.to_lsn is not None or args.to_time is not None:
        target = Target(args.to_lsn, args.to_time)
    plan = plan_restore(repository.listing().manifests, target, args.id)
    topics = Topics(args.database, settings.cluster.replication_factor)
    stores = args.store or [settings.cluster.folder / "store.db"]
    with shown(output) as told:
        done = restore_database(
            repository,
            plan,
            stores,
            settings.kafka,
            settings.redis,
            topics,
            pace=_pace(args),
            told=told,
        )
    rows = sum(table.rows for table in done.tables)
    if output.as_json:
        output.json(
            {
                "database": args.database,
                "backups": [each.id for each in (plan.full, *plan.increments)],
                "lsn": done.position.lsn,
                "time_us": done.position.time_us,
                "tables": [table._asdict() for table in done.tables],
                "published_rows": done.published,
                "stores": [str(path) for path in done.stores],
            }
        )
    else:
        output.line(
            f"{args.database} is restored as of LSN {done.position.lsn:,}"
            f" ({clock_time(done.position.commit_us)}): {rows:,} rows"
        )
        for path in done.stores:
            output.line(f"store: {path}")
        output.note(
            f"start a node that may become master with LEASEHOLD_DATABASE={args.database} on that"
            " store; all others may begin empty, and fetch a copy"
        )
    return ExitCode.OK


def prune(args: argparse.Namespace, _: ClientSettings, output: Output) -> int:
    removed = Repository(open_objects(args.place)).prune(args.keep, unix_us())
    if output.as_json:
        output.json({"removed": removed})
    else:
        output.table(("removed",), [[each] for each in removed], "there was nothing to remove")
    return ExitCode.OK


# -------------------------------------------------------------------- what actions share


def summary(manifest: Manifest) -> dict[str, Any]:
    """Return what JSON says of a backup."""
    return {
        "id": manifest.id,
        "kind": manifest.kind.value,
        "database": manifest.database,
        "parent": manifest.parent,
        "root": manifest.root,
        "source": manifest.source,
        "made_us": manifest.made_us,
        "begin": manifest.begin._asdict(),
        "end": manifest.end._asdict(),
        "bytes": manifest.size_bytes,
        "records": sum(each.records for each in manifest.segments),
        "encrypted": manifest.is_encrypted,
    }


def _repository(args: argparse.Namespace) -> Repository:
    secret = None
    if args.key_file is not None:
        try:
            secret = key_secret(args.key_file.read_bytes(), str(args.key_file))
        except OSError as error:
            raise ConfigurationError(
                f"the key file {args.key_file} can't be read: {error.strerror}"
            ) from error
    return Repository(open_objects(args.place), secret)


def _pace(args: argparse.Namespace) -> Pace:
    return Pace(None if args.rate is None else args.rate * MB)


class _Bars:
    """Shows how far the work is: a bar for a terminal, a line at each step for a file."""

    def __init__(self, bars: Progress, output: Output) -> None:
        self._bars = bars
        self._output = output
        self._task: TaskID | None = None

    def step(self, words: str) -> None:
        self._show(words, None)

    def begin(self, words: str, total: int) -> None:
        self._show(words, total)

    def add(self, done: int) -> None:
        if self._task is not None:
            self._bars.advance(self._task, done)

    def _show(self, words: str, total: int | None) -> None:
        if not self._output.is_terminal:
            self._output.note(f"{words} …")
            return
        if self._task is not None:
            self._bars.remove_task(self._task)
        self._task = self._bars.add_task(words, total=total)


@contextmanager
def shown(output: Output) -> Iterator[Told]:
    """Draw the bars until the block ends."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with output.progress(*columns) as bars:
        yield _Bars(bars, output)
