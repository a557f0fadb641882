"""Makes and removes backups."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from leasehold.adapters.objects.place import open_objects
from leasehold.adapters.os.clock import unix_us
from leasehold.backup.chain import newest
from leasehold.backup.create import Made, create_full, create_increment
from leasehold.backup.manifest import Manifest
from leasehold.backup.repository import Repository
from leasehold.backup.sources import FileSource, KafkaLog, NodeSource, Source
from leasehold.backup.told import Told
from leasehold.cli.backups.progress import shown
from leasehold.cli.backups.shared import pace_of, repository_of, summary
from leasehold.cli.exit_code import ExitCode
from leasehold.cli.output import Output
from leasehold.model.errors import ConfigurationError, LogStopped
from leasehold.settings.client import ClientSettings


def create(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    repository = repository_of(args)
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
    pace, topics, cluster = pace_of(args), settings.topics, settings.cluster
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


def prune(args: argparse.Namespace, _: ClientSettings, output: Output) -> int:
    removed = Repository(open_objects(args.place)).prune(args.keep, unix_us())
    if output.as_json:
        output.json({"removed": removed})
    else:
        output.table(("removed",), [[each] for each in removed], "there was nothing to remove")
    return ExitCode.OK
