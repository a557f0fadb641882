"""The WAL goes into the store's file beside the writer, which would otherwise stop for it.

SQLite's own way is that the commit which makes the WAL long enough copies its pages to where they
belong, and syncs both files. Meanwhile the node applies nothing, and every user's answer waits for
it (C1): 20 ms for 16 MB, most of a second after a check whose snapshot held the WAL back. Here a
thread does that, with a connection of its own (PASSIVE: it waits for nobody and nobody for it). The
WAL begins anew only when all of it is copied, and there is always something that was committed
meanwhile: when little is left, the next commit copies that itself.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Final

import apsw

from leasehold.adapters.sqlite_layout import connect

PAGES_BEFORE_COPY: Final = 12_000
"""48 MB: a page that is written often is copied once, and a commit stops so much more seldom."""
PAGES_LEFT_MAX: Final = 400
"""What a commit copies itself: a few milliseconds."""
PAGES_MAX: Final = 100_000
"""400 MB: the thread does not keep up, and commits wait for it as they would for SQLite."""
ROUNDS_MAX: Final = 8
CACHE_MB: Final = 2


class WalCopier:
    """For the writer's `connection` to the file `path`; made and closed by its thread.

    `pages`: of the WAL, as of the last commit.
    """

    def __init__(
        self,
        connection: apsw.Connection,
        path: Path,
        pages_before_copy: int = PAGES_BEFORE_COPY,
    ) -> None:
        self.pages = 0
        self._path = path
        self._pages_before_copy = pages_before_copy
        self._at_work = Event()
        self._copied = 0  # pages of the WAL that the thread left copied
        self._closing = Event()
        self._thread: Thread | None = None
        self._connection = connection
        connection.set_wal_hook(self._committed)  # in the place of SQLite's own

    def close(self) -> None:
        self._closing.set()
        self._connection.set_wal_hook(None)
        if self._thread is not None:
            self._at_work.set()
            self._thread.join()

    def _committed(self, connection: apsw.Connection, _name: str, pages: int) -> int:
        self.pages = pages
        if pages < self._copied:
            self._copied = 0  # it has begun anew
        if not self._at_work.is_set() and pages >= self._pages_before_copy:
            if self._copied and pages - self._copied <= PAGES_LEFT_MAX:
                copy(connection)
                self._copied = 0
            else:
                if self._thread is None:
                    self._thread = Thread(target=self._work, name="store-wal", daemon=True)
                    self._thread.start()
                self._at_work.set()
        elif pages >= PAGES_MAX:
            copy(connection)
        return apsw.SQLITE_OK

    def _work(self) -> None:
        connection = connect(self._path, cache_mb=CACHE_MB, read_only=False)
        try:
            while True:
                self._at_work.wait()
                if self._closing.is_set():
                    return
                before = -1
                for _ in range(ROUNDS_MAX):
                    there, copied = copy(connection)
                    if copied in (there, before):  # all, or all that readers let it
                        break
                    before = copied
                self._copied = max(0, copied)
                self._at_work.clear()
                # Said while it was at work, and its signal is cleared with that.
                if self._closing.is_set():
                    return
        finally:
            connection.close()


def copy(connection: apsw.Connection) -> tuple[int, int]:
    """→ pages in the WAL, and how many of them are in the file now; -1 when another copies, or the
    disk refuses. The latter is no harm to what is committed, stands in the WAL and is copied some
    day, so it is not told here but by the write that finds no room."""
    with suppress(apsw.Error):
        return connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
    return -1, -1
