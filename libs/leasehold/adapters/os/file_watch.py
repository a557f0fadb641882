"""Tells when files have changed, by looking at them once a second.

By their names, so that what is put in a file's place counts, and what a link leads to: that is how
orchestrators and tools for certificates replace them. *Not* inotify: it does not see through links,
nor over a network.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Event, Thread
from typing import Final, TypeAlias

from leasehold.model.errors import LeaseholdError

LOG: Final = logging.getLogger("leasehold.files")
LOOK_S: Final = 1.0
_Seen: TypeAlias = tuple[tuple[int, int, int] | None, ...]


class FileWatch:
    """A thread that calls `read_again` whenever one of `files` is another, and once at its start:
    a file may have changed since it was read. What that raises of the tree of errors is a warning;
    it is called again when the files change again."""

    def __init__(
        self, files: Iterable[Path], read_again: Callable[[], None], look_s: float = LOOK_S
    ) -> None:
        self._files = tuple(files)
        self._read_again = read_again
        self._look_s = look_s
        self._end = Event()
        self._thread = Thread(target=self._run, name="file-watch", daemon=True)
        if self._files:
            self._thread.start()

    def close(self) -> None:
        self._end.set()
        if self._files:
            self._thread.join()

    def _run(self) -> None:
        seen: _Seen | None = None
        while not self._end.is_set():
            found = tuple(map(_identity, self._files))
            if found != seen:
                seen = found
                try:
                    self._read_again()
                except LeaseholdError as error:
                    LOG.warning("%s; what was read before holds on", error.message)
                except Exception as error:  # noqa: BLE001 - a defect must not end the watch
                    names = ", ".join(map(str, self._files))
                    LOG.error(
                        "internal error (%s) while %s was read; please report it",
                        type(error).__name__,
                        names,
                    )
            self._end.wait(self._look_s)


def _identity(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
