"""What actions of `leasehold backup` share."""

from __future__ import annotations

import argparse
from typing import Any, Final

from leasehold.adapters.objects.pace import Pace
from leasehold.adapters.objects.place import open_objects
from leasehold.backup.manifest import Manifest
from leasehold.backup.repository import Repository
from leasehold.backup.sealing import key_secret
from leasehold.model.errors import ConfigurationError

MB: Final = 1_000_000


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


def repository_of(args: argparse.Namespace) -> Repository:
    """Return the backups at the place, opened with the key. Raises ConfigurationError."""
    secret = None
    if args.key_file is not None:
        try:
            secret = key_secret(args.key_file.read_bytes(), str(args.key_file))
        except OSError as error:
            raise ConfigurationError(
                f"the key file {args.key_file} can't be read: {error.strerror}"
            ) from error
    return Repository(open_objects(args.place), secret)


def pace_of(args: argparse.Namespace) -> Pace:
    return Pace(None if args.rate is None else args.rate * MB)
