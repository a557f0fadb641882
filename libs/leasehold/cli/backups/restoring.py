"""Restores a database."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from leasehold.backup.chain import NEWEST, Target, plan_restore
from leasehold.backup.one_table import copy_table
from leasehold.backup.rebuild import Rebuilt, rebuild_from_file, rebuild_store
from leasehold.backup.restore import restore_database
from leasehold.backup.told import Told
from leasehold.cli.backups.progress import shown
from leasehold.cli.backups.shared import pace_of, repository_of
from leasehold.cli.exit_code import ExitCode
from leasehold.cli.output import Output, clock_time
from leasehold.client.change_producer import ChangeProducer
from leasehold.model.errors import ConfigurationError
from leasehold.model.topics import Topics
from leasehold.settings.client import ClientSettings


def restore(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    if (args.table is None) != (args.name is None) or (args.table and args.store):
        raise ConfigurationError("--table goes with --name, and without --store")
    if args.table is not None:
        return _restore_table(args, settings, output)
    topics = Topics(args.database, settings.cluster.replication_factor)
    stores = args.store or [settings.cluster.folder / "store.db"]
    with shown(output) as told:
        rebuild, used = _rebuild(args, told)
        done = restore_database(rebuild, stores, settings.kafka, settings.redis, topics, told=told)
    rows = sum(table.rows for table in done.tables)
    if output.as_json:
        output.json(
            {
                "database": args.database,
                "backups": used,
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


def _restore_table(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    with (
        shown(output) as told,
        tempfile.TemporaryDirectory(prefix="leasehold-restore-", dir=args.work) as folder,
    ):
        store = Path(folder) / "store.db"
        rebuild, _ = _rebuild(args, told)
        rebuild(store)
        with ChangeProducer(settings) as changes:
            done = copy_table(store, args.table, args.name, changes.submit, told=told)
    if output.as_json:
        output.json(done._asdict())
    else:
        output.line(f"{done.name} has {done.rows:,} rows of {args.table} as of LSN {done.lsn:,}")
    return ExitCode.OK


def _rebuild(
    args: argparse.Namespace, told: Told
) -> tuple[Callable[[Path], Rebuilt], Sequence[str]]:
    """Return what brings the store back, and the ids of the backups that it takes: none where PLACE
    is a store's own file."""
    target = NEWEST
    if args.to_lsn is not None or args.to_time is not None:
        target = Target(args.to_lsn, args.to_time)
    file = Path(args.place)
    if file.is_file():
        if target != NEWEST or args.id or args.key_file:
            raise ConfigurationError(
                f"{file} is the file of one store, as of one LSN: a target, an id or a key goes"
                " with the place of backups"
            )
        return partial(rebuild_from_file, file, told=told), ()
    repository = repository_of(args)
    plan = plan_restore(repository.listing().manifests, target, args.id)
    rebuild = partial(rebuild_store, repository, plan, pace=pace_of(args), told=told)
    return rebuild, [each.id for each in (plan.full, *plan.increments)]
