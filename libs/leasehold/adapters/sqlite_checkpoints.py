"""When a store's WAL is copied into its file, and by whom.

What takes long, to write the pages and to have the disk take them, a thread does by a connection of
its own: the writer goes on meanwhile. But the WAL begins anew only when all of it is copied, and
SQLite has the disk take what was copied only when that is all there is. So the thread does not stop
at the end that it saw: what was written meanwhile is less each time, and once nothing was, the next
commit begins the WAL anew. Where the writer does not pause the thread does not get there. Then the
writer copies what is left, which is little, at a moment when nobody waits for it (`tidy`); and all
of it, in the commit that gets there, where there is no such moment. What somebody's snapshot keeps
nobody can copy: the WAL is that much longer then, and is tried for again when the snapshot ends.

A file that was cut by a hundred megabytes kept its writer waiting for 60 ms, on a file system that
tells its device at once what is free (`discard`). So one that a snapshot made long is cut a little
each time the WAL begins anew.
"""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Thread
from typing import Final

import apsw

from leasehold.adapters.short_turns import take_short_turns
from leasehold.adapters.sqlite_layout import WAL_BYTES_KEPT_MAX

WAL_PAGES_COPIED: Final = 4_000
"""Copied when so many are not: 16 MB. Pages are written again and again, and copied once."""
WAL_PAGES_LEFT: Final = 400
"""So many the writer copies itself: some ms, of which the disk takes half."""
WAL_PAGES_MAX: Final = 16_000
PASSES_MAX: Final = 8
"""Of the thread, each time it is told to copy. One costs a wait of some ms for the disk."""
WAL_BYTES_CUT: Final = 4 << 20
"""Most at a time, down to `WAL_BYTES_KEPT_MAX`."""
_FRAME_BYTES: Final = 4_096 + 24
WAL_SPREAD: Final = 0.25
"""Each store has its own numbers of pages, by as much more or less: all apply the same log, so with
one number all would copy at the same record, on one machine with the same processors and disk."""


class Checkpoints:
    """For the writer's thread. Failures are left to commits, which meet them, too."""

    def __init__(self, connection: apsw.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        share = random.uniform(1 - WAL_SPREAD, 1 + WAL_SPREAD)  # noqa: S311 - no secret
        self.pages = int(WAL_PAGES_COPIED * share)
        self.pages_max = int(WAL_PAGES_MAX * share)
        self._there = 0  # in the WAL
        self._copied = 0  # of those
        self._due = self.pages  # when so many are there
        self._must = self.pages_max  # by the commit that gets there
        self._kept = 0  # bytes that the file is not cut below
        self._begun_anew = True
        self._copier: _Copier | None = None
        connection.set_wal_hook(self._committed)

    def _committed(self, _connection: apsw.Connection, _schema: str, pages: int) -> int:
        if pages < self._there:  # it has begun anew
            self._copied, self._due, self._must = 0, self.pages, self.pages_max
            self._begun_anew = True
            if self._copier is not None:
                self._copier.take()  # of what was there before
        self._there = pages
        if pages >= self._must:
            self._copy()
            # ⚠ What a snapshot keeps is copied once that is closed: not by the very next commit,
            # but by the thread, which looks sooner.
            self._must = pages + self.pages_max
        return apsw.SQLITE_OK

    def tidy(self) -> None:
        """Between transactions, when nobody waits."""
        if self._begun_anew or self._there * _FRAME_BYTES > self._kept + WAL_BYTES_CUT:
            self._keep()
        if self._there < self._due:
            return
        if self._copier is None:
            self._copier = _Copier(self._path)
        copied = self._copier.take()
        if copied is not None:
            self._note(copied)
        if self._there < self._due or not self._copier.idle.is_set():
            return
        if self._copied and self._there - self._copied <= WAL_PAGES_LEFT:
            self._copy()
        else:
            self._copier.begin()

    def released(self) -> None:
        """A snapshot that was held for long has ended."""
        self._due = min(self._due, self.pages)

    def _keep(self) -> None:
        """A commit that begins the WAL anew cuts its file to the limit that holds then."""
        long = max(self._kept, self._there * _FRAME_BYTES)
        self._kept = max(WAL_BYTES_KEPT_MAX, long - WAL_BYTES_CUT * self._begun_anew)
        self._begun_anew = False
        with suppress(apsw.Error):
            self._connection.execute(f"PRAGMA journal_size_limit = {self._kept}")

    def _copy(self) -> None:
        with suppress(apsw.Error):
            _, copied = self._connection.wal_checkpoint()
            self._note(copied)

    def _note(self, copied: int) -> None:
        goes_on = copied > self._copied
        if goes_on:  # the thread may tell of an earlier moment than the writer's last copy
            self._copied = min(copied, self._there)
            self._must = self._copied + self.pages_max
        if self._copied == self._there:
            # It begins anew with the next commit, unless somebody reads at that very moment.
            self._due = self._there + WAL_PAGES_LEFT // 2
        elif not goes_on:  # what is left is kept for somebody's snapshot
            self._due = self._there + self.pages // 4

    def close(self) -> None:
        if self._copier is not None:
            self._copier.close()


class _Copier:
    """The thread; not `idle` from `begin` until it is done."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._wanted: SimpleQueue[bool] = SimpleQueue()
        self._copied: int | None = None
        self.idle = Event()
        self.idle.set()
        self._thread = Thread(target=self._run, name="store-wal", daemon=True)
        self._thread.start()

    def begin(self) -> None:
        self.idle.clear()
        self._wanted.put(True)

    def take(self) -> int | None:
        """Pages of the WAL that are copied, told once; None: not known."""
        copied, self._copied = self._copied, None
        return copied

    def close(self) -> None:
        self._wanted.put(False)
        self._thread.join()

    def _run(self) -> None:
        take_short_turns()
        connection: apsw.Connection | None = None
        while self._wanted.get():
            with suppress(apsw.Error):
                if connection is None:
                    connection = apsw.Connection(str(self._path), flags=apsw.SQLITE_OPEN_READWRITE)
                    connection.execute("PRAGMA synchronous = NORMAL")
                    connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()  # opens it
                self._copied = _copied_to_the_end(connection)
            self.idle.set()
        if connection is not None:
            connection.close()


def _copied_to_the_end(connection: apsw.Connection) -> int:
    """Pages of the WAL that are copied. The end moves on while they are."""
    seen = before = -1
    for _ in range(PASSES_MAX):
        there, copied = connection.wal_checkpoint()
        if there <= seen or copied == before:  # nothing was written since, or a snapshot keeps it
            break
        seen, before = there, copied
    return copied
