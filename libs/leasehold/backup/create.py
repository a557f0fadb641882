"""Makes a backup: of a whole store, or of the log since the one before.

Nothing of the cluster is stopped. A store comes from a node that serves snapshots, or from a file
beside its node; the log is read from Kafka as every reader reads it. What is made is whole when its
manifest is written, which is last; until then nobody takes it for a backup.
"""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NamedTuple

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.http.snapshot_server import file_checksum
from leasehold.adapters.objects.pace import Pace
from leasehold.adapters.os.clock import random_bytes, unix_us
from leasehold.adapters.os.compiled import version_line
from leasehold.adapters.sqlite.checking.checker import check_file
from leasehold.adapters.sqlite.layout import stored_layout
from leasehold.backup.chain import made_after
from leasehold.backup.manifest import (
    PRIVATE,
    Kind,
    Manifest,
    Private,
    Segment,
    StoredObject,
    TableSum,
    backup_id,
    write_private,
)
from leasehold.backup.replay import LogFollower, place_of
from leasehold.backup.repository import Repository
from leasehold.backup.sealing import SALT_BYTES, Key
from leasehold.backup.segment import frame
from leasehold.backup.sources import LogSource, Source
from leasehold.backup.store_file import open_file
from leasehold.backup.told import NOBODY, Told
from leasehold.model.errors import LogStopped
from leasehold.model.records.acks import ROLES_CHECKED, CheckReport
from leasehold.model.records.log import LogPosition
from leasehold.node.bootstrap import stored_position

PART_BYTES: Final = 8 << 20
"""Of a store's file or of the log, before it is packed: an object of its own. What is damaged is
known to this; and so many of them are in memory."""
DOUBT_BYTES_MAX: Final = 8 * PART_BYTES
PARTS_UNDER_WAY: Final = 4
PACKED_AT_ONCE: Final = 2
CODEC: Final = MessagePackCodec()


class Made(NamedTuple):
    """A backup that was made, and tables of a full one that its check found something in."""

    manifest: Manifest
    troubles: tuple[str, ...] = ()


@dataclass(slots=True)
class _Draft:
    """A backup under way: what it has stored so far, and with which key."""

    repository: Repository
    id: str
    key: Key | None
    salt: bytes
    stored: list[StoredObject] = field(default_factory=list)

    def put(self, name: str, plain: bytes) -> StoredObject:
        made = self.repository.put(self.id, name, plain, self.key)
        self.stored.append(made)
        return made

    def finish(self, manifest: Manifest, private: Private) -> Manifest:
        """Store what is private, then the manifest with it."""
        stored = self.put(PRIVATE, write_private(private))
        whole = replace(
            manifest,
            private=stored,
            salt="" if self.key is None else self.salt.hex(),
            key_check="" if self.key is None else self.key.check,
        )
        self.repository.finish(whole)
        return whole

    def give_up(self) -> None:
        self.repository.give_up(self.id, [each.name for each in self.stored])


def _begin(repository: Repository, kind: Kind, made_us: int) -> _Draft:
    salt = random_bytes(SALT_BYTES)
    key = None if repository.secret is None else Key(repository.secret, salt)
    return _Draft(repository, backup_id(made_us, kind, random_bytes(4)), key, salt)


def create_full(
    repository: Repository,
    source: Source,
    database: str,
    *,
    work: Path | None = None,
    pace: Pace | None = None,
    told: Told = NOBODY,
) -> Made:
    """Make a full backup of a store. Its copy lies in the folder `work` meanwhile (None: the
    system's for temporary files), and is checked there table by table: what the check finds is
    told, and is in the backup all the same.

    Raises what `source` raises, BackupUnavailable, StoreCorrupted.
    """
    pace = pace or Pace()
    made_us = unix_us()
    draft = _begin(repository, Kind.FULL, made_us)
    with tempfile.TemporaryDirectory(prefix="leasehold-backup-", dir=work) as folder:
        path = Path(folder) / "store.db"
        told.step("copying the store")
        name = source.copy_to(path)
        position, layout = stored_position(path), stored_layout(path)
        size_bytes = path.stat().st_size
        told.begin("storing it", size_bytes)
        reports: list[CheckReport] = []
        try:
            with ThreadPoolExecutor(1, "backup-check") as checker:
                checking = checker.submit(check_file, path, reports.append)
                digest = checker.submit(file_checksum, path)
                parts = tuple(_stored(draft, "store", _parts_of(path), pace, told))
                told.step("checking its tables")
                checking.result()
                store_digest = digest.result()
            place = place_of(position)
            manifest = Manifest(
                id=draft.id,
                kind=Kind.FULL,
                parent="",
                root=draft.id,
                database=database,
                source=name,
                program=version_line(),
                made_us=made_us,
                begin=place,
                end=place,
                private=StoredObject(PRIVATE, 0, 0, ""),
                parts=parts,
                layout=layout,
                store_bytes=size_bytes,
                store_digest=store_digest,
            )
            names = table_names(path)
            sums = tuple(sum_of(report, names) for report in reports)
            whole = draft.finish(manifest, Private(CODEC.encode(position), sums))
        except BaseException:
            draft.give_up()
            raise
    return Made(whole, tuple(trouble_words(reports, names)))


def _parts_of(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while part := file.read(PART_BYTES):
            yield part


def _stored(
    draft: _Draft, prefix: str, parts: Iterator[bytes], pace: Pace, told: Told
) -> Iterator[StoredObject]:
    """Store parts as objects, some at a time, and yield each in its order."""
    under_way: deque[Future[StoredObject]] = deque()
    with ThreadPoolExecutor(PACKED_AT_ONCE, "backup-pack") as packers:
        try:
            for number, part in enumerate(parts):
                pace.spend(len(part))
                if len(under_way) >= PARTS_UNDER_WAY:
                    yield under_way.popleft().result()
                under_way.append(packers.submit(draft.put, f"{prefix}-{number:05d}", part))
                told.add(len(part))
            while under_way:
                yield under_way.popleft().result()
        finally:
            for each in under_way:
                each.cancel()


def table_names(path: Path) -> Mapping[int, str]:
    """Return what the tables of a store's file are called."""
    with open_file(path) as snapshot:
        return {table.table_id: table.name for table in snapshot.tables()}


def sum_of(report: CheckReport, names: Mapping[int, str]) -> TableSum:
    """Return what a manifest keeps of a table's check."""
    name = "roles and privileges" if report.table_id == ROLES_CHECKED else names[report.table_id]
    return TableSum(report.table_id, name, report.rows, report.checksum.hex())


def trouble_words(reports: list[CheckReport], names: Mapping[int, str]) -> Iterator[str]:
    """Yield a sentence for each table in which a check found something."""
    for report in reports:
        name = names.get(report.table_id, "roles")
        if report.error:
            yield f"{name} could not be checked: {report.error}"
        elif report.findings_total:
            first = f" ({report.findings[0][3]})" if report.findings else ""
            yield f"the check of {name} has {report.findings_total:,} findings{first}"


# -------------------------------------------------------------------- increments


def create_increment(
    repository: Repository,
    parent: Manifest,
    log: LogSource,
    *,
    pace: Pace | None = None,
    told: Told = NOBODY,
) -> Made | None:
    """Make a backup of the log from where `parent` ends up to where it ends now; None: it has
    nothing more.

    Raises LogStopped where the log does not reach back so far, or is another one;
    ConfigurationError for the parent's key; BusUnavailable, BackupUnavailable.
    """
    pace = pace or Pace()
    position = CODEC.decode_as(LogPosition, repository.private(parent).position)
    made_us = made_after(parent, unix_us())
    draft = _begin(repository, Kind.LOG, made_us)
    try:
        end = log.end_behind(position)
        if end <= position.offset:
            return None
        told.begin("reading the log", end - position.offset)
        follower = LogFollower(position)
        cut = _Segments(draft, follower, pace)
        for offset, data in log.records(position.offset, end):
            cut.take(offset, data)
            told.add(1)
        follower.check()
        segments = cut.end()
        if not segments:
            return None
        manifest = Manifest(
            id=draft.id,
            kind=Kind.LOG,
            parent=parent.id,
            root=parent.root,
            database=parent.database,
            source=log.name,
            program=version_line(),
            made_us=made_us,
            begin=parent.end,
            end=segments[-1].end,
            private=StoredObject(PRIVATE, 0, 0, ""),
            segments=tuple(segments),
        )
        repository.manifest(parent.id)  # it may have gone meanwhile, by retention
        return Made(draft.finish(manifest, Private(CODEC.encode(follower.position), ())))
    except BaseException:
        draft.give_up()
        raise


class _Segments:
    """Cuts the log into segments, each of which ends behind a record that counts, or that surely
    is nobody's."""

    def __init__(self, draft: _Draft, follower: LogFollower, pace: Pace) -> None:
        self._draft = draft
        self._follower = follower
        self._pace = pace
        self._begin = follower.position
        self._taken: list[tuple[int, bytes]] = []
        self._bytes = 0
        self._made: list[Segment] = []

    def take(self, offset: int, data: bytes) -> None:
        self._follower.take(CODEC.read_log(data), offset, CODEC.digest(data))
        self._taken.append((offset, frame(offset, data)))
        self._bytes += len(data)
        if self._bytes >= PART_BYTES:
            self._cut()
        if self._bytes >= DOUBT_BYTES_MAX:
            self._follower.check()
            raise LogStopped(
                f"behind offset {self._follower.position.offset} the log has {self._bytes:,} bytes"
                " of records that do not follow: who else may write to it?"
            )

    def end(self) -> list[Segment]:
        self._cut()
        return self._made

    def _cut(self) -> None:
        at = self._follower.position
        if at.offset == self._begin.offset:
            return
        inside = [framed for offset, framed in self._taken if offset < at.offset]
        self._taken = [each for each in self._taken if each[0] >= at.offset]
        self._bytes = sum(len(framed) for _, framed in self._taken)
        plain = b"".join(inside)
        self._pace.spend(len(plain))
        stored = self._draft.put(f"log-{len(self._made):05d}", plain)
        self._made.append(Segment(stored, place_of(self._begin), place_of(at), len(inside)))
        self._begin = at
