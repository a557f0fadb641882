"""Lists and verifies backups."""

from __future__ import annotations

import argparse
from typing import Any, Final

from leasehold.adapters.objects.place import open_objects
from leasehold.backup.chain import usable_chains
from leasehold.backup.repository import Repository
from leasehold.backup.verify import verify_backups
from leasehold.cli.backups.progress import shown
from leasehold.cli.backups.shared import pace_of, repository_of, summary
from leasehold.cli.exit_code import ExitCode
from leasehold.cli.output import Output, clock_time
from leasehold.model.errors import ConfigurationError
from leasehold.settings.client import ClientSettings

_HEADS: Final = ("id", "kind", ">LSN", "up to", ">bytes", "encrypted", "rests on", "state")


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
    repository = repository_of(args)
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
                pace=pace_of(args),
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
