"""Restores a database under a new name: its store first, in a file nobody runs on; then its topics;
last the store's place. Whatever fails before that leaves nothing behind.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

from leasehold.adapters.os.clock import random_bytes
from leasehold.adapters.sqlite.layout import WriterLock
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.backup.manifest import TableSum
from leasehold.backup.new_log import NewLog, check_unused, position_in_new_log
from leasehold.backup.rebuild import Rebuilt
from leasehold.backup.store_file import open_file
from leasehold.backup.told import NOBODY, Told
from leasehold.model.errors import ConfigurationError, LeaseholdError, StoreUnwritable
from leasehold.model.records.log import LogPosition
from leasehold.model.topics import Topics
from leasehold.settings.environment import KafkaSettings, RedisSettings
from leasehold.settings.private_files import FOLDER_MODE, SIDE_FILES, make_private_file

LOG: Final = logging.getLogger("leasehold.backup")


class Restored(NamedTuple):
    """A database that was restored: as of which place, its tables, how many rows were published,
    and the files of its stores."""

    position: LogPosition
    tables: tuple[TableSum, ...]
    published: int
    stores: tuple[Path, ...]


def restore_database(
    rebuild: Callable[[Path], Rebuilt],
    stores: Sequence[Path],
    kafka: KafkaSettings,
    redis: RedisSettings,
    topics: Topics,
    *,
    told: Told = NOBODY,
) -> Restored:
    """Make the new database of `topics` of a store, with the same one for each file of `stores`,
    which must not be there; return what it is. `rebuild` brings the store into a file.

    Raises ConfigurationError where there is such a database, or such a file; what `rebuild` raises;
    BusUnavailable, LedgerUnavailable, StoreUnwritable. Then no topic and no file of it is left.
    """
    assert stores, "a database has a store"
    with ExitStack() as held:
        for path in stores:
            held.callback(_take_place(path).close)
        check_unused(kafka, redis, topics)
        work = stores[0].with_name(f".{stores[0].name}-restore-{random_bytes(4).hex()}")
        work.mkdir(mode=FOLDER_MODE)
        held.callback(shutil.rmtree, work, ignore_errors=True)
        path = work / "store.db"
        position, sums = rebuild(path)
        log = NewLog(kafka, topics, told)
        held.callback(log.close)
        try:
            told.step("making topics")
            begun = position_in_new_log(position, log.create())
            _put_position(path, begun)
            with open_file(path) as snapshot:
                published = log.publish(snapshot, begun)
            _put_in_place(path, stores)
        except BaseException:
            for each in stores:
                each.unlink(missing_ok=True)
            _drop(log, topics)
            raise
        return Restored(begun, sums, published, tuple(stores))


def _take_place(path: Path) -> WriterLock:
    """Make the folder of a store that is to come, and keep nodes off its place meanwhile. Raises
    ConfigurationError."""
    try:
        path.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        lock = WriterLock(path)
    except OSError as error:
        raise ConfigurationError(f"{path} can't be made: {error.strerror or error}") from error
    there = next((s for s in ("", *SIDE_FILES) if path.with_name(path.name + s).exists()), None)
    if there is not None:
        lock.close()
        raise ConfigurationError(
            f"{path}{there} is there: a restore puts a new store in its place. Move it away, or"
            " name another folder"
        )
    return lock


def _put_position(path: Path, position: LogPosition) -> None:
    store = SqliteStore(path, synchronous="full")
    try:
        store.begin()
        store.commit(position)
    finally:
        store.close()


def _put_in_place(path: Path, stores: Sequence[Path]) -> None:
    """Put the finished store into each place: copies first, then the file itself."""
    for side in SIDE_FILES:
        assert not path.with_name(path.name + side).exists(), "a closed store has no side files"
    first, *others = stores
    try:
        for place in others:
            part = place.with_name(f".{place.name}-restore-{random_bytes(4).hex()}")
            try:
                make_private_file(part)
                shutil.copyfile(path, part)
                _sync(part)
                part.replace(place)
            finally:
                part.unlink(missing_ok=True)
            _sync(place.parent)
        path.replace(first)
        _sync(first.parent)
    except OSError as error:
        raise StoreUnwritable(
            f"the restored store can't be put in its place ({error}): make room on that disk"
        ) from error


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _drop(log: NewLog, topics: Topics) -> None:
    try:
        log.drop()
    except LeaseholdError as error:
        LOG.warning("topics of %s are left: %s; delete them", topics.database, error.message)
