"""The backups that lie at a place: listed, read and checked against digests, written, removed.

A backup is whole when its manifest is there, and that is written last. What stands at the place
without one is unfinished: of a process that still runs, or was killed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from leasehold.adapters.objects.place import Objects
from leasehold.adapters.os.clock import random_bytes
from leasehold.backup.chain import to_remove
from leasehold.backup.manifest import (
    MANIFEST,
    Manifest,
    Private,
    StoredObject,
    digest_of,
    manifest_name,
    read_manifest,
    read_private,
    write_manifest,
)
from leasehold.backup.sealing import Key, pack, unpack
from leasehold.model.errors import BackupDamaged, ConfigurationError, LeaseholdError

UNFINISHED_KEPT_US: Final = 24 * 3600 * 1_000_000
"""How long what has no manifest is left alone: it may be a backup under way."""


class Unfinished(NamedTuple):
    """Objects at the place that belong to no whole backup. `why`: "" = there is no manifest."""

    id: str
    objects: tuple[str, ...]
    why: str


class Listing(NamedTuple):
    """What lies at a place: whole backups, oldest first, and the rest."""

    manifests: tuple[Manifest, ...]
    unfinished: tuple[Unfinished, ...]


class Repository:
    """Backups on `objects`. `secret`: what the key file holds, if there is one. Every method raises
    BackupUnavailable."""

    def __init__(self, objects: Objects, secret: bytes | None = None) -> None:
        self.objects = objects
        self.secret = secret

    # ------------------------------------------------------------ reading

    def listing(self) -> Listing:
        """Return what lies here. A manifest that can't be read is among `unfinished`, with why.
        Raises ConfigurationError for one of a newer release."""
        by_backup: dict[str, list[str]] = {}
        for name in self.objects.names():
            backup, slash, _ = name.partition("/")
            if slash:
                by_backup.setdefault(backup, []).append(name)
        manifests, unfinished = [], []
        for backup, names in by_backup.items():
            if manifest_name(backup) not in names:
                unfinished.append(Unfinished(backup, tuple(names), ""))
                continue
            try:
                manifests.append(self.manifest(backup))
            except BackupDamaged as error:
                unfinished.append(Unfinished(backup, tuple(names), error.message))
        manifests.sort(key=lambda manifest: (manifest.made_us, manifest.id))
        return Listing(tuple(manifests), tuple(unfinished))

    def manifest(self, backup: str) -> Manifest:
        """Return one manifest. Raises BackupDamaged, ConfigurationError."""
        name = manifest_name(backup)
        data = self.objects.get(name)
        if data is None:
            raise BackupDamaged(f"backup {backup} is gone, or not whole", object=name)
        manifest = read_manifest(data, name)
        if manifest.id != backup:
            raise BackupDamaged(f"{name} is the manifest of {manifest.id}", object=name)
        return manifest

    def key_of(self, manifest: Manifest) -> Key | None:
        """Return the key that opens a backup, None for one that is not encrypted. Raises
        ConfigurationError where there is none, or another one."""
        if not manifest.is_encrypted:
            return None
        if self.secret is None:
            raise ConfigurationError(
                f"backup {manifest.id} is encrypted: give the key file that it was made with"
                " (--key-file)"
            )
        try:
            salt = bytes.fromhex(manifest.salt)
        except ValueError as error:
            raise BackupDamaged(f"the salt of backup {manifest.id} is none") from error
        key = Key(self.secret, salt)
        if not key.is_of(manifest.key_check):
            raise ConfigurationError(
                f"the key file is not the one that backup {manifest.id} was made with"
            )
        return key

    def private(self, manifest: Manifest) -> Private:
        """Return what a backup says of its data. Raises BackupDamaged, ConfigurationError."""
        data = self.read(manifest, manifest.private, self.key_of(manifest))
        return read_private(data, _path(manifest.id, manifest.private.name))

    def read(self, manifest: Manifest, wanted: StoredObject, key: Key | None) -> bytes:
        """Return what an object holds, checked. Raises BackupDamaged, which names it."""
        name = _path(manifest.id, wanted.name)
        data = self.objects.get(name)
        if data is None:
            raise BackupDamaged(f"{name} is missing", object=name)
        if len(data) != wanted.size_bytes or digest_of(data) != wanted.digest:
            raise BackupDamaged(
                f"{name} is damaged: {len(data)} bytes with digest {digest_of(data)[:16]}… where"
                f" {wanted.size_bytes} with {wanted.digest[:16]}… were written",
                object=name,
            )
        return unpack(data, name, key, wanted.plain_bytes)

    # ------------------------------------------------------------ writing

    def put(self, backup: str, name: str, plain: bytes, key: Key | None) -> StoredObject:
        """Store an object of a backup that is being made."""
        path = _path(backup, name)
        data = pack(plain, path, key, random_bytes)
        self.objects.put(path, data)
        return StoredObject(name, len(data), len(plain), digest_of(data))

    def finish(self, manifest: Manifest) -> None:
        """Make a backup whole, of which all objects are stored."""
        self.objects.put(manifest_name(manifest.id), write_manifest(manifest))

    def give_up(self, backup: str, names: Iterable[str]) -> None:
        """Remove what was stored of a backup that will not be finished, as far as that goes."""
        for name in names:
            try:
                self.objects.remove(_path(backup, name))
            except LeaseholdError:
                return  # the place is away: it stays as unfinished

    # ------------------------------------------------------------ retention

    def prune(self, keep: int, now_us: int) -> list[str]:
        """Remove all but the newest `keep` full backups with what rests on them, and what has been
        unfinished for UNFINISHED_KEPT_US; return the ids that went. Manifests go first, so that no
        backup is listed that is not whole."""
        listing = self.listing()
        gone = to_remove(listing.manifests, keep)
        for manifest in gone:
            self._remove(manifest.id, [each.name for each in manifest.objects])
        old = [each for each in listing.unfinished if not each.why and _is_old(each.id, now_us)]
        for each in old:
            for name in each.objects:
                self.objects.remove(name)
        return [*(manifest.id for manifest in gone), *(each.id for each in old)]

    def _remove(self, backup: str, names: Sequence[str]) -> None:
        for name in (MANIFEST, *names):
            self.objects.remove(_path(backup, name))


def _path(backup: str, name: str) -> str:
    return f"{backup}/{name}"


def _is_old(backup: str, now_us: int) -> bool:
    """Return whether the id of a backup says that it was begun long ago; an id of another form is
    nobody's to remove."""
    try:
        begun = datetime.strptime(backup.partition("-")[0], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        return False
    return now_us - int(begun.timestamp() * 1_000_000) > UNFINISHED_KEPT_US
