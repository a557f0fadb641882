"""Brings a store's file back from backups: the full one, then the log up to the target. What is
read is held to the digests of its manifest, and the store that comes of it is checked.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from hashlib import blake2b
from pathlib import Path
from typing import Final, NamedTuple

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.objects.pace import Pace
from leasehold.adapters.sqlite.checking.checker import check_file
from leasehold.adapters.sqlite.layout import LAYOUT_VERSION
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.backup.chain import NEWEST, Plan
from leasehold.backup.create import sum_of, table_names, trouble_words
from leasehold.backup.manifest import DIGEST_BYTES, Manifest, Segment, TableSum
from leasehold.backup.replay import Replay, place_of
from leasehold.backup.repository import Repository
from leasehold.backup.sealing import Key
from leasehold.backup.segment import read_frames
from leasehold.backup.sources import FileSource
from leasehold.backup.told import NOBODY, Told
from leasehold.model.errors import BackupDamaged, ConfigurationError
from leasehold.model.records.acks import CheckReport
from leasehold.model.records.log import LogPosition
from leasehold.node.bootstrap import stored_position
from leasehold.settings.private_files import make_private_file

READ_AHEAD: Final = 4
READ_AT_ONCE: Final = 2
CACHE_MB: Final = 256
CODEC: Final = MessagePackCodec()


class Rebuilt(NamedTuple):
    """A store that was brought back: its place in the log, and the sums of its tables."""

    position: LogPosition
    tables: tuple[TableSum, ...]


def rebuild_store(
    repository: Repository,
    plan: Plan,
    path: Path,
    *,
    pace: Pace | None = None,
    told: Told = NOBODY,
) -> Rebuilt:
    """Write the store of a plan to the new file `path`, and check it.

    Raises BackupDamaged, which names the object or the table; ConfigurationError for a key, a
    target that the log does not have, or a layout of a newer release; BackupUnavailable.
    """
    pace = pace or Pace()
    full = plan.full
    if full.layout > LAYOUT_VERSION:
        raise ConfigurationError(
            f"backup {full.id} has a store of layout {full.layout}, this program knows"
            f" {LAYOUT_VERSION} at most: use the release that made it ({full.program})"
        )
    for each in (full, *plan.increments):
        repository.key_of(each)  # before hours of work
    private = repository.private(full)
    told.begin("reading the store", full.store_bytes)
    _write_store(repository, full, path, pace, told)
    sums = _sums_of(path, f"backup {full.id}", told)
    _compare(full, private.tables, sums)
    if plan.increments:
        position = _apply_log(repository, plan, path, pace, told)
        sums = _sums_of(path, f"backup {plan.last.id}", told)
    else:
        position = CODEC.decode_as(LogPosition, private.position)
    target = plan.target
    if target != NEWEST and not target.is_reached(position.lsn, position.time_us):
        raise ConfigurationError(
            f"the backups end at LSN {position.lsn}, before {target.words}: leave the target away"
        )
    return Rebuilt(position, sums)


def _write_store(
    repository: Repository, full: Manifest, path: Path, pace: Pace, told: Told
) -> None:
    total = blake2b(digest_size=DIGEST_BYTES)
    make_private_file(path)
    with path.open("wb") as file:
        for plain in read_objects(repository, full, pace):
            total.update(plain)
            file.write(plain)
            told.add(len(plain))
        file.flush()
        os.fsync(file.fileno())
        size = file.tell()
    if size != full.store_bytes or total.hexdigest() != full.store_digest:
        raise BackupDamaged(
            f"the store of backup {full.id} is not what was stored: {size:,} of"
            f" {full.store_bytes:,} bytes, or another digest",
            backup=full.id,
        )


def read_objects(repository: Repository, full: Manifest, pace: Pace) -> Iterator[bytes]:
    """Yield what the parts of a full backup hold, in their order; some are read ahead."""
    key = repository.key_of(full)
    under_way: deque[Future[bytes]] = deque()
    with ThreadPoolExecutor(READ_AT_ONCE, "backup-read") as readers:
        try:
            for part in full.parts:
                pace.spend(part.size_bytes)
                if len(under_way) >= READ_AHEAD:
                    yield under_way.popleft().result()
                under_way.append(readers.submit(repository.read, full, part, key))
            while under_way:
                yield under_way.popleft().result()
        finally:
            for each in under_way:
                each.cancel()


def rebuild_from_file(source: Path, path: Path, *, told: Told = NOBODY) -> Rebuilt:
    """Copy a node's store to the new file `path`, and check it: for who has no backup, and has lost
    the log. Raises ConfigurationError where it is no store; BackupDamaged, StoreCorrupted."""
    told.step("copying the store")
    FileSource(source).copy_to(path)
    return Rebuilt(stored_position(path), _sums_of(path, str(source), told))


def _sums_of(path: Path, what: str, told: Told) -> tuple[TableSum, ...]:
    """Check the store and return its sums. Raises BackupDamaged for findings of its tables."""
    told.step("checking its tables")
    reports: list[CheckReport] = []
    check_file(path, reports.append)
    names = table_names(path)
    for words in trouble_words(reports, names):
        raise BackupDamaged(f"the store of {what} is not sound: {words}", of=what)
    return tuple(sum_of(report, names) for report in reports)


def _compare(full: Manifest, wanted: Sequence[TableSum], found: Sequence[TableSum]) -> None:
    """Raise BackupDamaged where a table is not what it was when the backup was made."""
    there = {each.table_id: each for each in found}
    for table in wanted:
        other = there.get(table.table_id)
        if other != table:
            rows = "no such table" if other is None else f"{other.rows:,} rows"
            raise BackupDamaged(
                f"table {table.name} of backup {full.id} has another checksum at LSN"
                f" {full.end.lsn} than when it was made ({table.rows:,} rows then, {rows} now)",
                backup=full.id,
                table=table.name,
            )


def _apply_log(
    repository: Repository, plan: Plan, path: Path, pace: Pace, told: Told
) -> LogPosition:
    records = sum(each.records for manifest in plan.increments for each in manifest.segments)
    told.begin("applying the log", records)
    store = SqliteStore(path, cache_mb=CACHE_MB)
    try:
        replay = Replay(store, plan.target)
        for manifest in plan.increments:
            key = repository.key_of(manifest)
            for segment in manifest.segments:
                if replay.is_done:
                    break
                pace.spend(segment.object.size_bytes)
                _apply_segment(repository, manifest, segment, key, replay)
                told.add(segment.records)
        replay.end()
        return replay.position
    finally:
        store.close()


def _apply_segment(
    repository: Repository, manifest: Manifest, segment: Segment, key: Key | None, replay: Replay
) -> None:
    where = f"{manifest.id}/{segment.object.name}"
    if place_of(replay.position) != segment.begin:
        raise BackupDamaged(
            f"{where} begins at LSN {segment.begin.lsn}, offset {segment.begin.offset}, and what is"
            f" before it ends at LSN {replay.position.lsn}, offset {replay.position.offset}",
            object=where,
        )
    for offset, data in read_frames(repository.read(manifest, segment.object, key), where):
        if replay.is_done:
            return
        replay.take(CODEC.read_log(data), offset, CODEC.digest(data))
    if not replay.is_done and place_of(replay.position) != segment.end:
        raise BackupDamaged(
            f"{where} ends at LSN {replay.position.lsn} where its manifest says {segment.end.lsn}",
            object=where,
        )
