"""Goal: the blocks that a WAL is written over are asked for before a commit needs them.

Method: the real thread on a real file, whose blocks were dropped from the page cache before; random
commits of a real WAL, with what is asked for written down.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import random
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from queue import Queue
from tempfile import TemporaryDirectory
from time import monotonic

import apsw
import pytest

from leasehold.adapters.sqlite import checkpoints, wal_read_ahead
from leasehold.adapters.sqlite.checkpoints import Checkpoints
from leasehold.adapters.sqlite.layout import connect, make_writer
from leasehold.adapters.sqlite.wal_read_ahead import (
    AHEAD_BYTES,
    CALL_BYTES,
    RANGES_MAX,
    STEP_BYTES,
    WalReadAhead,
)

BLOCK = mmap.PAGESIZE
DEADLINE_S = 30.0
DISK = "/var/tmp"


def in_page_cache(path: Path) -> list[bool]:
    """Of each of the file's blocks (mincore)."""
    size = path.stat().st_size
    with path.open("r+b") as file, mmap.mmap(file.fileno(), size) as mapped:
        found = (ctypes.c_ubyte * -(-size // BLOCK))()
        begin = ctypes.addressof(there := ctypes.c_char.from_buffer(mapped))
        libc = ctypes.CDLL(None, use_errno=True)
        code = libc.mincore(ctypes.c_void_p(begin), ctypes.c_size_t(size), found)
        del there  # or the map can't be closed
        assert code == 0, os.strerror(ctypes.get_errno())
    return [bool(each & 1) for each in found]


def drop(path: Path) -> None:
    """What the page cache has of it. The test is skipped where that is all there is of a file."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if any(in_page_cache(path)):
        pytest.skip("this file system keeps all of its blocks in memory")


def wait_until_read(path: Path, size: int) -> None:
    deadline = monotonic() + DEADLINE_S
    while not all(in_page_cache(path)[: size // BLOCK]):
        assert monotonic() < deadline, "the blocks came into the page cache"


@pytest.fixture
def disk_path() -> Iterator[Path]:
    """A folder on a disk: those of other tests may lie in memory (`memory_folder.py`)."""
    with TemporaryDirectory(dir=DISK) as made:
        yield Path(made)


@pytest.fixture
def ahead(disk_path: Path) -> Iterator[WalReadAhead]:
    made = WalReadAhead(disk_path / "a.db")
    yield made
    made.close()
    assert "store-wal-ahead" not in {thread.name for thread in threading.enumerate()}


def test_what_was_dropped_is_read_before_its_turn(disk_path: Path, ahead: WalReadAhead) -> None:
    wal = disk_path / "a.db-wal"
    wal.write_bytes(bytes(2 * AHEAD_BYTES))
    drop(wal)
    ahead.restarts_soon()
    wait_until_read(wal, AHEAD_BYTES)
    assert not any(in_page_cache(wal)[AHEAD_BYTES // BLOCK :]), "and no more than that"
    ahead.note_new_begin()
    ahead.written(STEP_BYTES)
    wait_until_read(wal, AHEAD_BYTES + STEP_BYTES)


def test_a_file_that_is_not_there_is_tried_for_again(disk_path: Path, ahead: WalReadAhead) -> None:
    wal = disk_path / "a.db-wal"
    ahead.restarts_soon()
    assert ahead._reader is not None
    deadline = monotonic() + DEADLINE_S
    while not ahead._reader.ranges.empty():
        assert monotonic() < deadline, "what could not be asked for does not pile up"
    wal.write_bytes(bytes(AHEAD_BYTES))
    drop(wal)
    ahead.restarts_soon()
    wait_until_read(wal, AHEAD_BYTES)


def test_a_disk_that_takes_nothing_is_waited_for_by_nobody_and_nothing_piles_up(
    disk_path: Path, ahead: WalReadAhead, monkeypatch: pytest.MonkeyPatch
) -> None:
    (disk_path / "a.db-wal").write_bytes(bytes(STEP_BYTES))
    answers = threading.Event()
    monkeypatch.setattr(os, "posix_fadvise", lambda *_: answers.wait(DEADLINE_S))
    for _ in range(10 * RANGES_MAX):
        ahead.restarts_soon()
    assert ahead._reader is not None
    assert ahead._reader.ranges.qsize() == RANGES_MAX
    answers.set()


class Noted:
    """In place of the thread: what was asked for since the WAL began anew, or is about to."""

    def __init__(self, _path: Path) -> None:
        self.ranges: Queue[range | None] = Queue()

    def taken(self) -> Iterator[range]:
        while not self.ranges.empty():
            begins = self.ranges.get()
            assert begins is not None
            assert begins.step == CALL_BYTES, "Linux cuts a call that is longer"
            yield range(begins.start, begins.stop)

    def close(self) -> None:
        pass


@pytest.mark.parametrize("seed", range(8))
def test_no_commit_writes_over_what_was_not_asked_for(
    disk_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    print(f"seed {seed}")
    rng = random.Random(seed)
    ahead_bytes, step_bytes = 64 * BLOCK, 8 * BLOCK
    monkeypatch.setattr(wal_read_ahead, "AHEAD_BYTES", ahead_bytes)
    monkeypatch.setattr(wal_read_ahead, "STEP_BYTES", step_bytes)
    monkeypatch.setattr(wal_read_ahead, "_Reader", Noted)
    path = disk_path / "a.db"
    with closing(connect(path, cache_mb=1, read_only=False)) as writer:
        make_writer(writer, "normal")
        writer.execute("CREATE TABLE pages (id INTEGER PRIMARY KEY, content BLOB)")
        made = Checkpoints(writer, path)
        made.pages = made._due = 150
        made.restart_pages = 300
        made.pages_max = made._must = 400
        tidied = rng.choice((0.9, 0.0))  # else a commit copies
        asked: set[int] = set()  # blocks of the WAL as it is
        anew: set[int] = set()  # and as it will be
        end = turns = 0
        reader: apsw.Connection | None = None
        for _ in range(600):
            with writer:
                for _ in range(rng.randint(1, 12)):
                    writer.execute(
                        "INSERT OR REPLACE INTO pages VALUES (?, randomblob(3000))",
                        (rng.randrange(500),),
                    )
            begun, end = end, made._there * checkpoints._FRAME_BYTES
            if end < begun:
                turns += 1
                begun, asked, anew = 0, anew, set()
            if turns:
                assert asked.issuperset(range(begun // BLOCK, end // BLOCK)), "before its turn"
            if rng.random() < tidied:
                made.tidy()
                copier = made._copier
                assert copier is None or copier.idle.wait(DEADLINE_S)
            noted = made._ahead._reader
            assert noted is None or isinstance(noted, Noted)
            for each in () if noted is None else noted.taken():
                assert each.stop <= end + ahead_bytes
                blocks = set(range(each.start // BLOCK, -(-each.stop // BLOCK)))
                if each.start == 0:
                    anew = blocks
                else:
                    assert len(each) >= step_bytes
                    assert len(blocks & asked) <= 1, "once each"
                    asked |= blocks
            if reader is not None and rng.random() < 0.2:
                reader.close()
                reader = None
            elif reader is None and rng.random() < 0.02:
                reader = connect(path, cache_mb=1, read_only=True)
                reader.execute("BEGIN").execute("SELECT count(*) FROM pages").fetchall()
        if reader is not None:
            reader.close()
        made.close()
    assert turns > 3


@pytest.mark.parametrize("killed", [False, True])
def test_a_new_wal_needs_nothing_and_what_a_killed_process_left_does(
    disk_path: Path, monkeypatch: pytest.MonkeyPatch, killed: bool
) -> None:
    path, kept = disk_path / "a.db", 64 * BLOCK
    monkeypatch.setattr(wal_read_ahead, "WAL_BYTES_KEPT_MAX", kept)
    monkeypatch.setattr(wal_read_ahead, "_Reader", Noted)
    with closing(connect(path, cache_mb=1, read_only=False)) as writer:
        make_writer(writer, "normal")
        writer.execute("CREATE TABLE pages (id INTEGER PRIMARY KEY, content BLOB)")
        if killed:
            os.truncate(f"{path}-wal", kept)
        made = Checkpoints(writer, path)
        for row in range(8):
            writer.execute("INSERT INTO pages VALUES (?, randomblob(3000))", (row,))
        asked = made._ahead._reader
        made.close()
    assert (asked is not None) == killed


def test_without_room_for_its_thread_commits_read_for_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", no_room)
    ahead = WalReadAhead(tmp_path / "store.db")
    ahead.restarts_soon()
    ahead.note_new_begin()
    ahead.written(0)
    ahead.close()
