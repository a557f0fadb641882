"""Decides when a store's WAL is copied into its file, and by which thread.

What takes long, to write the pages and to have the disk take them, a thread does by a connection of
its own: the writer goes on meanwhile. Every 16 MB it copies what it finds. But the WAL starts over
only when all of it is copied, and SQLite has the disk take the file's pages only in a copying that
gets to the end. So from 41 MB on the thread does not stop at the end that it saw: what was written
meanwhile is less each time, and once nothing was, the next commit begins the WAL anew. Where the
writer does not pause the thread does not get there. Then the writer copies what is left, which is
little, at a moment when nobody waits for it (`tidy`); and all of it, in the commit that gets there,
where there is no such moment. What somebody's snapshot keeps nobody can copy: the WAL is that much
longer then, and is tried for again when the snapshot ends.

A WAL has its room before it needs it: a commit that makes the file longer waits for whatever the
file system is at. A file that was cut by a hundred megabytes kept its writer waiting for 60 ms, on
a file system that tells its device at once what is free (`discard`). So one that a snapshot made
long is cut a little each time the WAL starts over.

A copying that the disk fails ends the store's use (`raise_failure`). Commits alone would not meet
it: they sync nothing, and have their room in the WAL, which would grow without a word.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Thread
from typing import Final

import apsw

from leasehold.adapters.os.scheduling import take_short_turns
from leasehold.adapters.sqlite.layout import WAL_BYTES_KEPT_MAX
from leasehold.adapters.sqlite.wal_read_ahead import WalReadAhead
from leasehold.model import metrics
from leasehold.model.measures import Measures

WAL_PAGES_COPIED: Final = 4_000
"""Copied when so many are not: 16 MB. Pages are written again and again, and copied once."""
WAL_PAGES_LEFT: Final = 400
"""So many the writer copies itself: some ms, of which the disk takes half."""
WAL_PAGES_RESTART: Final = 10_000
"""Begun anew when so many are there, 41 MB: the commit that does it waits for the disk, and so do
the thread's passes before it, so it is done less often than copying."""
WAL_PAGES_MAX: Final = 24_000
WAL_PAGES_UNRESERVED: Final = 256
"""A store that writes less never has more than its own room: most of those in tests."""
PASSES_MAX: Final = 8
"""Of the thread that is to get to the end. One costs a wait of some ms for the disk."""
WAL_BYTES_CUT: Final = 4 << 20
"""Most at a time, down to `WAL_BYTES_KEPT_MAX`."""
FAILURES: Final = (apsw.IOError, apsw.CorruptError)
"""What a copying ends the store's use with: it goes by no next try."""
_FRAME_BYTES: Final = 4_096 + 24
WAL_SPREAD: Final = 0.25
"""Each store has its own numbers of pages, by as much more or less: all apply the same log, so with
one number all would copy at the same record, on one machine with the same processors and disk."""


class Checkpoints:
    """The copying of one WAL, as the writer's thread drives it. That a disk is full is left to
    commits, which meet it, too; any other failure of it to `raise_failure`."""

    def __init__(self, connection: apsw.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        share = random.uniform(1 - WAL_SPREAD, 1 + WAL_SPREAD)  # noqa: S311 - no secret
        self.pages_after_snapshot = int(WAL_PAGES_COPIED * random.random())  # noqa: S311
        self.pages = int(WAL_PAGES_COPIED * share)
        self.restart_pages = int(WAL_PAGES_RESTART * share)
        self.pages_max = int(WAL_PAGES_MAX * share)
        self._there = 0  # in the WAL
        self._copied = 0  # of those
        self._due = self.pages  # when so many are there
        self._must = self.pages_max  # by the commit that gets there
        self._kept = 0  # bytes that the file is not cut below
        self._restarted = True
        self._reserved = False
        self._copier: _Copier | None = None
        self._failure: apsw.Error | None = None
        self.measures = Measures()
        """What is counted, on the writer's thread."""
        self._ahead = WalReadAhead(path)
        connection.set_wal_hook(self._committed)

    @property
    def pages_there(self) -> int:
        """Return how many pages the WAL holds; for any thread."""
        return self._there

    @property
    def pages_left(self) -> int:
        """Return how many of them are not known to be copied; for any thread."""
        return max(0, self._there - self._copied)

    def raise_failure(self) -> None:
        """Raise the error of SQLite's that a copying has met, of a disk that can't be read or
        written. ⚠ Once a sync has failed, a later one that does not says nothing: the kernel has
        forgotten what it could not write."""
        failure = self._failure or (self._copier.failure if self._copier else None)
        if failure is not None:
            raise failure

    def _committed(self, _connection: apsw.Connection, _schema: str, pages: int) -> int:
        if pages < self._there:  # it has restarted
            self._copied, self._due, self._must = 0, self.pages, self.pages_max
            self._restarted = True
            self.measures.add(metrics.WAL_RESTARTS)
            self._ahead.note_new_begin()
            if self._copier is not None:
                self._copier.take()  # of what was there before
        self._there = pages
        self._ahead.written(pages * _FRAME_BYTES)
        if pages >= self._must:
            self._copy()
            # ⚠ What a snapshot keeps is copied once that is closed: not by the very next commit,
            # but by the thread, which looks sooner.
            self._must = pages + self.pages_max
        return apsw.SQLITE_OK

    def tidy(self) -> None:
        """Do what was put off; to be called between transactions, when nobody waits."""
        if self._restarted or self._there * _FRAME_BYTES > self._kept + WAL_BYTES_CUT:
            self._keep()
        if not self._reserved and self._there >= WAL_PAGES_UNRESERVED:
            self._reserve()
        if self._there < self._due:
            return
        if self._copier is None:
            self._copier = _Copier(self._path)
        copied = self._copier.take()
        if copied is not None:
            self.measures.add(metrics.CHECKPOINTS, 1, ("thread",))
            self._note(copied)
        if self._there < self._due or not self._copier.idle.is_set():
            return
        if self._copied and self._there - self._copied <= WAL_PAGES_LEFT:
            self._copy()
        else:
            self._ahead.restarts_soon()  # where nobody writes meanwhile, also before its end
            self._copier.begin(to_the_end=self._there >= self.restart_pages)

    def released(self) -> None:
        """A snapshot that was held for long has ended, on other nodes at this very moment, too:
        so not all of them go on at once."""
        self._due = min(self._due, max(self.pages, self._there + self.pages_after_snapshot))

    def _keep(self) -> None:
        """A commit that begins the WAL anew cuts its file to the limit that holds then."""
        long = max(self._kept, self._there * _FRAME_BYTES)
        self._kept = max(WAL_BYTES_KEPT_MAX, long - WAL_BYTES_CUT * self._restarted)
        self._restarted = False
        with suppress(apsw.Error):
            self._connection.execute(f"PRAGMA journal_size_limit = {self._kept}")

    def _reserve(self) -> None:
        """Give the file the room that it keeps: it has no blocks to find then, for which a commit
        waited up to 60 ms while others' were written or freed. Nothing is written, and what is
        there stays. Where the file system has no room or can't reserve it, it grows as before."""
        self._reserved = True
        with suppress(OSError):
            descriptor = os.open(f"{self._path}-wal", os.O_RDWR | os.O_CLOEXEC)
            try:
                os.posix_fallocate(descriptor, 0, WAL_BYTES_KEPT_MAX)
            finally:
                os.close(descriptor)

    def _copy(self) -> None:
        self._ahead.restarts_soon()
        with self._noting_failure():
            _, copied = self._connection.wal_checkpoint()
            self.measures.add(metrics.CHECKPOINTS, 1, ("writer",))
            self._note(copied)

    @contextmanager
    def _noting_failure(self) -> Iterator[None]:
        try:
            yield
        except FAILURES as error:
            self._failure = error
        except apsw.Error:
            pass  # somebody is at it, or the disk is full

    def _note(self, copied: int) -> None:
        goes_on = copied > self._copied
        if goes_on:  # the thread may tell of an earlier moment than the writer's last copy
            self._copied = min(copied, self._there)
            self._must = self._copied + self.pages_max
        if self._copied == self._there:
            # It starts over with the next commit, unless somebody reads at that very moment.
            self._due = self._there + WAL_PAGES_LEFT // 2
        elif not goes_on:  # what is left is kept for somebody's snapshot
            self._due = self._there + self.pages // 4
        elif self._there < self.restart_pages:
            self._due = self._copied + self.pages

    def close(self) -> None:
        if self._copier is not None:
            self._copier.close()
        self._ahead.close()


class _Copier:
    """The thread; not `idle` from `begin` until it is done. `failure`: what it has met of a disk
    that fails."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._passes: SimpleQueue[int] = SimpleQueue()  # 0: no more
        self._copied: int | None = None
        self.failure: apsw.Error | None = None
        self.idle = Event()
        self.idle.set()
        self._thread = Thread(target=self._run, name="store-wal", daemon=True)
        self._thread.start()

    def begin(self, *, to_the_end: bool) -> None:
        self.idle.clear()
        self._passes.put(PASSES_MAX if to_the_end else 1)

    def take(self) -> int | None:
        """Pages of the WAL that are copied, told once; None: not known."""
        copied, self._copied = self._copied, None
        return copied

    def close(self) -> None:
        self._passes.put(0)
        self._thread.join()

    def _run(self) -> None:
        take_short_turns()
        connection: apsw.Connection | None = None
        while passes := self._passes.get():
            try:
                if connection is None:
                    connection = apsw.Connection(str(self._path), flags=apsw.SQLITE_OPEN_READWRITE)
                    connection.execute("PRAGMA synchronous = NORMAL")
                    connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()  # opens it
                self._copied = _copied(connection, passes)
            except FAILURES as error:
                self.failure = error
            except apsw.Error:
                pass  # somebody is at it, or the disk is full
            self.idle.set()
        if connection is not None:
            connection.close()


def _copied(connection: apsw.Connection, passes: int) -> int:
    """Pages of the WAL that are copied. The end moves on while they are: `passes` at most."""
    seen = before = -1
    for _ in range(passes):
        there, copied = connection.wal_checkpoint()
        if there <= seen or copied == before:  # nothing was written since, or a snapshot keeps it
            break
        seen, before = there, copied
    return copied
