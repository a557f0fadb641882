"""The manifest of a backup: the one description of what lies at a place, and in which form.

    <place>/<backup id>/store-00000 …     parts of one store's file, of a full backup
    <place>/<backup id>/log-00000 …       records of the log, of an increment
    <place>/<backup id>/manifest          written last: without it there is no backup

A manifest is JSON with a line of its digest behind it, so that a damaged byte is seen, and names
each object with size and digest. What says something of the data (names of tables, the place in the
log) stands in its own object, `private`, which is sealed where there is a key: a manifest can be
listed and removed by who has none. PURE: texts and values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from leasehold.model.errors import BackupDamaged, ConfigurationError

FORMAT: Final = 1
"""Raised when an older release must not read what a newer one has made. A field that an older one
may pass over needs no new format: what is not known is left out when it is read."""
MANIFEST: Final = "manifest"
PRIVATE: Final = "private"
DIGEST_BYTES: Final = 32
ID_DIGITS: Final = 6


class Kind(StrEnum):
    """What a backup holds."""

    FULL = "full"  # a whole store
    LOG = "log"  # records of the log since its parent


class StoredObject(NamedTuple):
    """An object of a backup. `size_bytes` and `digest` (BLAKE2b, hex) are of what is stored,
    `plain_bytes` is what it holds."""

    name: str
    size_bytes: int
    plain_bytes: int
    digest: str


class Place(NamedTuple):
    """A place in the log: next offset, LSN, and the log's time there (unix µs)."""

    offset: int
    lsn: int
    time_us: int


class Segment(NamedTuple):
    """Records of the log from `begin` up to `end`, in one object."""

    object: StoredObject
    begin: Place
    end: Place
    records: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """A backup. `parent` is the backup whose end an increment goes on from, `root` the full one
    that its chain begins with (itself, of a full one). `begin` is `end` of a full backup. `layout`
    is that of the store's file, `store_digest` (BLAKE2b, hex) its checksum. `salt` and `key_check`
    are "" without a key."""

    id: str
    kind: Kind
    parent: str
    root: str
    database: str
    source: str
    program: str
    made_us: int
    begin: Place
    end: Place
    private: StoredObject
    parts: tuple[StoredObject, ...] = ()
    segments: tuple[Segment, ...] = ()
    layout: int = 0
    store_bytes: int = 0
    store_digest: str = ""
    salt: str = ""
    key_check: str = ""

    @property
    def objects(self) -> tuple[StoredObject, ...]:
        """Return all objects but the manifest itself."""
        return (self.private, *self.parts, *(segment.object for segment in self.segments))

    @property
    def size_bytes(self) -> int:
        return sum(each.size_bytes for each in self.objects)

    @property
    def is_encrypted(self) -> bool:
        return bool(self.salt)


class TableSum(NamedTuple):
    """What a check of a table said at the backup's LSN: checksums as hex, as `leasehold check` has
    them; table 0: roles and privileges."""

    table_id: int
    name: str
    rows: int
    checksum: str


class Private(NamedTuple):
    """What a manifest says of the data. `position` is a LogPosition in the wire form, as of `end`;
    `tables` is empty of an increment."""

    position: bytes
    tables: tuple[TableSum, ...]


def backup_id(made_us: int, kind: Kind, random: bytes) -> str:
    """Return the id of a backup, whose order is that of time. `random` tells two of one second
    apart."""
    at = datetime.fromtimestamp(made_us // 1_000_000, UTC).strftime("%Y%m%dT%H%M%SZ")
    return f"{at}-{kind.value}-{random.hex()[:ID_DIGITS]}"


def manifest_name(backup: str) -> str:
    return f"{backup}/{MANIFEST}"


def digest_of(data: bytes) -> str:
    return blake2b(data, digest_size=DIGEST_BYTES).hexdigest()


def write_manifest(manifest: Manifest) -> bytes:
    """Return the manifest as it is stored."""
    body = {
        "format": FORMAT,
        **{f.name: _plain(getattr(manifest, f.name)) for f in fields(Manifest)},
    }
    text = json.dumps(body, indent=1, sort_keys=True).encode()
    return text + b"\n" + digest_of(text).encode() + b"\n"


def read_manifest(data: bytes, where: str) -> Manifest:
    """Return the manifest that stands at `where`. Raises BackupDamaged, and ConfigurationError for
    the format of a newer release."""
    text, _, digest = data.rstrip(b"\n").rpartition(b"\n")
    if digest.decode("ascii", "replace") != digest_of(text) or not data.endswith(b"\n"):
        raise BackupDamaged(
            f"{where} is damaged: its digest is not that of its text; that backup can't be used",
            object=where,
        )
    try:
        body = json.loads(text)
        newest = int(body["format"])
        if newest > FORMAT:
            raise ConfigurationError(
                f"{where} has format {newest}, this program reads {FORMAT} at most: use the release"
                " that made it, or a newer one"
            )
        return _manifest(body)
    except (KeyError, TypeError, ValueError) as error:
        raise BackupDamaged(f"{where} is no manifest: {error!r:.200}", object=where) from error


def _plain(value: Any) -> Any:
    """Return named tuples as mappings, so that a field more or less is seen by its name."""
    if isinstance(value, Segment | Place | StoredObject):
        return {name: _plain(each) for name, each in value._asdict().items()}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value


def _manifest(body: Mapping[str, Any]) -> Manifest:
    known = {field.name: body[field.name] for field in fields(Manifest) if field.name in body}
    known["kind"] = Kind(known["kind"])
    known["begin"], known["end"] = _place(known["begin"]), _place(known["end"])
    known["private"] = _object(known["private"])
    known["parts"] = tuple(map(_object, known["parts"]))
    known["segments"] = tuple(map(_segment, known["segments"]))
    return Manifest(**known)


def _place(body: Mapping[str, Any]) -> Place:
    return Place(int(body["offset"]), int(body["lsn"]), int(body["time_us"]))


def _object(body: Mapping[str, Any]) -> StoredObject:
    """An object lies in the folder of its backup: a manifest that somebody else has written can
    have none read or removed that lies elsewhere."""
    name = str(body["name"])
    if not name or "/" in name or "\\" in name or name.startswith("."):
        raise ValueError(f"{name!r:.100} is the name of no object")
    size_bytes, plain_bytes = int(body["size_bytes"]), int(body["plain_bytes"])
    return StoredObject(name, size_bytes, plain_bytes, str(body["digest"]))


def _segment(body: Mapping[str, Any]) -> Segment:
    begin, end = _place(body["begin"]), _place(body["end"])
    return Segment(_object(body["object"]), begin, end, int(body["records"]))


def write_private(private: Private) -> bytes:
    """Return what stands in the object of that name, before it is sealed."""
    tables = [list(table) for table in private.tables]
    return json.dumps({"position": private.position.hex(), "tables": tables}).encode()


def read_private(data: bytes, where: str) -> Private:
    """Return what `write_private` wrote. Raises BackupDamaged."""
    try:
        body = json.loads(data)
        tables: Sequence[Any] = body["tables"]
        sums = tuple(TableSum(int(t[0]), str(t[1]), int(t[2]), str(t[3])) for t in tables)
        return Private(bytes.fromhex(body["position"]), sums)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise BackupDamaged(f"{where} can't be read: {error!r:.200}", object=where) from error
