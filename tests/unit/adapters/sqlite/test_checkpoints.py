"""Goal: a store's WAL is copied into its file beside the writer, starts over, and stays bounded.

Method: real files; small numbers of pages; the thread is waited for, and snapshots are held.
"""

from __future__ import annotations

import errno
import os
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path
from time import monotonic
from typing import Any

import apsw
import pytest

from leasehold.adapters.sqlite import checkpoints as sqlite_checkpoints
from leasehold.adapters.sqlite.checkpoints import (
    PASSES_MAX,
    WAL_PAGES_COPIED,
    WAL_PAGES_MAX,
    WAL_PAGES_RESTART,
    WAL_PAGES_UNRESERVED,
    Checkpoints,
)
from leasehold.adapters.sqlite.layout import WAL_BYTES_KEPT_MAX, connect, make_writer
from leasehold.adapters.sqlite.store import SqliteStore

PAGES, LEFT, MOST = 60, 12, 200
FRAME_BYTES = 4_096 + 24
DEADLINE_S = 30.0


class ByHand:
    """A thread that copies at once, and whose end the test tells."""

    def __init__(self, path: Path) -> None:
        self.connection = connect(path, cache_mb=1, read_only=False)
        self.idle = threading.Event()
        self.idle.set()
        self.begun = 0
        self.ends = 0
        self._copied: int | None = None

    def begin(self, *, to_the_end: bool) -> None:
        self.idle.clear()
        self.begun += 1
        self.ends += to_the_end
        _, self._copied = self.connection.wal_checkpoint()

    def take(self) -> int | None:
        if not self.idle.is_set():
            return None
        copied, self._copied = self._copied, None
        return copied

    def close(self) -> None:
        self.connection.close()


@pytest.fixture
def by_hand(made: Written, monkeypatch: pytest.MonkeyPatch) -> ByHand:
    thread = ByHand(made.path)
    monkeypatch.setattr(made.checkpoints, "_copier", thread)
    return thread


class Written:
    """A file whose rows are a page each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.writer = connect(path, cache_mb=1, read_only=False)
        make_writer(self.writer, "normal")
        self.writer.execute("CREATE TABLE pages (id INTEGER PRIMARY KEY, content BLOB)")
        self.checkpoints = Checkpoints(self.writer, path)
        self.copied_at(PAGES, MOST)

    def copied_at(self, pages: int, most: int) -> None:
        """By the thread, and to the end; by a commit."""
        made = self.checkpoints
        made.pages = made.restart_pages = made._due = pages
        made.pages_max = made._must = most
        made.pages_after_snapshot = 0

    def write(self, *rows: int) -> None:
        with self.writer:
            for row in rows:
                self.writer.execute(
                    "INSERT OR REPLACE INTO pages VALUES (?, randomblob(3000))", (row,)
                )

    def tidy(self) -> None:
        """And wait for the thread, if it was told to."""
        self.checkpoints.tidy()
        copier = self.checkpoints._copier
        assert copier is None or copier.idle.wait(DEADLINE_S), "the thread has copied"

    @property
    def waits(self) -> int:
        """Pages of the WAL that are not copied, as SQLite sees it."""
        there: int = self.checkpoints._there
        return there - self.checkpoints._copied

    @property
    def file_bytes(self) -> int:
        return self.path.stat().st_size

    @property
    def wal_stat(self) -> os.stat_result:
        return self.path.with_name(self.path.name + "-wal").stat()

    @property
    def wal_bytes(self) -> int:
        return self.wal_stat.st_size

    def reader(self) -> apsw.Connection:
        found = connect(self.path, cache_mb=1, read_only=True)
        found.execute("BEGIN").execute("SELECT count(*) FROM pages").fetchall()
        return found

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """What is written within is behind all that is there, as if it came while that is copied:
        somebody who reads it keeps the WAL from beginning anew."""
        reader = self.reader()
        yield
        reader.close()

    def close(self) -> None:
        self.checkpoints.close()
        self.writer.close()


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Written]:
    monkeypatch.setattr(sqlite_checkpoints, "WAL_PAGES_LEFT", LEFT)
    written = Written(tmp_path / "a.db")
    yield written
    written.close()
    assert not any(each.name.startswith("store-wal") for each in threading.enumerate())


def test_stores_of_one_log_copy_at_different_records(tmp_path: Path) -> None:
    found, after = [], set()
    for number in range(10):
        store = SqliteStore(tmp_path / f"{number}.db")
        made = store._checkpoints
        found.append((made.pages, made.restart_pages, made.pages_max))
        after.add(made.pages_after_snapshot)
        store.close()
    assert len({pages for pages, _, _ in found}) > 5
    assert len(after) > 5
    assert 0 <= min(after) < max(after) < WAL_PAGES_COPIED
    for pages, anew, most in found:
        assert 0.7 * WAL_PAGES_COPIED < pages < 1.3 * WAL_PAGES_COPIED
        assert anew / pages == pytest.approx(WAL_PAGES_RESTART / WAL_PAGES_COPIED, rel=0.01)
        assert most // pages == WAL_PAGES_MAX // WAL_PAGES_COPIED


def test_below_its_number_of_pages_nothing_is_copied(made: Written) -> None:
    before = made.file_bytes
    while made.checkpoints._there < PAGES - 10:
        made.write(1)
        made.tidy()
    assert made.checkpoints._copier is None
    assert made.file_bytes == before


def test_the_thread_copies_and_the_wal_begins_anew(made: Written) -> None:
    made.write(*range(PAGES))
    assert made.file_bytes < PAGES * 4_096, "no commit copied it"
    made.tidy()
    assert made.file_bytes >= PAGES * 4_096
    made.write(1)
    assert made.checkpoints._there < 10
    assert made.checkpoints._due == PAGES


def test_a_wal_is_copied_now_and_then_and_begun_anew_less_often(
    made: Written, by_hand: ByHand
) -> None:
    """What the thread copies before, the writer does not complete: nobody wants its end yet."""
    made.checkpoints.restart_pages = 2 * PAGES
    left = 0
    for row in range(3 * PAGES):
        there = made.checkpoints._there
        made.write(row)
        if made.checkpoints._there < there:
            break
        with made.going_on():
            made.checkpoints.tidy()
            made.write(row)  # so it is never at the end by itself
        by_hand.idle.set()
        if there < 2 * PAGES - 4:
            left = max(left, made.waits)
            assert not by_hand.ends
    assert PAGES <= left <= PAGES + LEFT
    assert there >= 2 * PAGES - 4, "it went on past what was copied"
    assert (by_hand.begun, by_hand.ends) == (2, 1)


def test_what_was_told_of_a_wal_before_it_began_anew_is_forgotten(
    made: Written, by_hand: ByHand
) -> None:
    for begun in (1, 2):
        made.write(*range(PAGES))
        made.checkpoints.tidy()
        by_hand.idle.set()
        assert by_hand.begun == begun


def test_what_was_written_meanwhile_the_writer_copies(made: Written, by_hand: ByHand) -> None:
    made.write(*range(PAGES))
    with made.going_on():
        made.checkpoints.tidy()
        made.write(1, 2)
    made.checkpoints.tidy()
    assert made.waits > PAGES, "the thread is at it"
    by_hand.idle.set()
    made.checkpoints.tidy()
    assert (made.waits, by_hand.begun) == (0, 1)
    wal_bytes = made.wal_bytes
    for _ in range(PAGES // 4):
        made.write(1)
    assert made.wal_bytes == wal_bytes, "it is written over from its beginning"
    assert made.checkpoints._there < PAGES


def test_what_the_writer_is_far_ahead_with_the_thread_copies_too(
    made: Written, by_hand: ByHand
) -> None:
    made.write(*range(PAGES))
    with made.going_on():
        made.checkpoints.tidy()
        made.write(*range(PAGES, PAGES + 2 * LEFT))
    by_hand.idle.set()
    made.checkpoints.tidy()
    assert (by_hand.idle.is_set(), by_hand.begun) == (False, 2)
    assert made.waits > LEFT
    by_hand.idle.set()
    made.checkpoints.tidy()
    assert (made.waits, by_hand.begun) == (0, 2)


def test_what_a_snapshot_needs_stays_and_is_not_tried_for_at_every_commit(
    made: Written, by_hand: ByHand
) -> None:
    made.write(1)
    reader = made.reader()
    made.write(*range(PAGES))

    def go_on() -> None:
        for row in range(PAGES // 2):
            made.write(row)
            made.checkpoints.tidy()
            by_hand.idle.set()

    go_on()
    pages = made.checkpoints._there - PAGES
    assert 2 <= by_hand.begun <= 2 + pages // (PAGES // 4)
    assert made.waits > PAGES
    reader.close()
    go_on()
    assert made.waits < PAGES


def test_what_a_snapshot_kept_the_next_commit_leaves_to_the_thread(made: Written) -> None:
    made.write(1)
    reader = made.reader()
    made.write(*range(MOST + PAGES))
    reader.close()
    made.write(1)
    assert made.waits > MOST + PAGES, "it would have had to copy all of it"
    made.tidy()
    made.tidy()
    assert made.waits <= LEFT


def test_what_a_snapshot_kept_a_commit_copies_where_nobody_tidies(made: Written) -> None:
    made.write(1)
    reader = made.reader()
    made.write(*range(MOST + PAGES))
    kept = made.waits
    reader.close()
    while made.waits:
        made.write(1)
        assert made.waits <= kept + MOST
    for row in range(2 * MOST):
        made.write(row)
        assert made.waits <= MOST, "from then on as before"


def test_what_the_thread_has_copied_does_not_count_for_a_commit(made: Written) -> None:
    made.write(*range(PAGES))
    with made.going_on():
        made.write(*range(LEFT))
        made.tidy()
        made.tidy()
    copied = made.checkpoints._copied
    assert copied >= PAGES
    while made.checkpoints._there < MOST + PAGES // 2:
        made.write(1)
        assert made.checkpoints._copied == copied


def test_where_nobody_tidies_a_commit_copies_in_the_end(made: Written) -> None:
    for row in range(3 * MOST):
        made.write(row)
        assert made.waits <= MOST
    assert made.wal_bytes <= 1.2 * MOST * FRAME_BYTES


@pytest.mark.parametrize("error", [apsw.IOError, apsw.CorruptError])
@pytest.mark.parametrize("by_thread", [True, False])
def test_a_copying_that_the_disk_fails_is_told_of(
    made: Written, monkeypatch: pytest.MonkeyPatch, error: type[apsw.Error], *, by_thread: bool
) -> None:
    """Commits alone would not meet it: they have their room in the WAL, and sync nothing."""
    fail_copies(made, monkeypatch, error("the disk fails"))
    made.checkpoints.raise_failure()
    made.write(*range(PAGES if by_thread else MOST))
    if by_thread:
        made.tidy()
    with pytest.raises(error, match="the disk fails"):
        made.checkpoints.raise_failure()


@pytest.mark.parametrize("error", [apsw.FullError, apsw.BusyError])
def test_a_full_disk_is_left_to_commits(
    made: Written, monkeypatch: pytest.MonkeyPatch, error: type[apsw.Error]
) -> None:
    fail_copies(made, monkeypatch, error("not now"))
    made.write(*range(PAGES))
    made.tidy()
    made.write(*range(MOST))
    made.checkpoints.raise_failure()


def fail_copies(made: Written, monkeypatch: pytest.MonkeyPatch, error: apsw.Error) -> None:
    """Let the thread's copying, and the writer's, meet an error."""

    class Failing:
        def __getattr__(self, name: str) -> Any:
            return getattr(made.writer, name)

        def wal_checkpoint(self) -> None:
            raise error

    def fail(*_: object) -> int:
        raise error

    monkeypatch.setattr(sqlite_checkpoints, "_copied", fail)
    monkeypatch.setattr(made.checkpoints, "_connection", Failing())


def test_a_wal_that_could_not_begin_anew_is_not_forgotten(made: Written) -> None:
    made.write(*range(PAGES))
    reader = made.reader()  # all of it can be copied, and somebody reads it in the WAL
    made.tidy()
    made.tidy()
    assert made.waits == 0
    made.write(1)
    assert made.checkpoints._there > PAGES, "it goes on"
    reader.close()
    for row in range(LEFT):
        made.write(row)
        made.tidy()
    assert made.checkpoints._there < PAGES


class BesideAWriter:
    """A connection that copies while the writer goes on: meanwhile so many pages more come, each
    of the first times."""

    def __init__(self, made: Written, *pages: int) -> None:
        self._made = made
        self._pages = list(pages)
        self._connection = connect(made.path, cache_mb=1, read_only=False)
        self.passes = 0

    def wal_checkpoint(self) -> tuple[int, int]:
        self.passes += 1
        with self._made.going_on():
            if self._pages:
                self._made.write(*range(self._pages.pop(0)))
            return self._connection.wal_checkpoint()

    def close(self) -> None:
        self._connection.close()


def test_the_thread_goes_on_to_an_end_that_moves_on(made: Written) -> None:
    made.write(*range(PAGES))
    with closing(BesideAWriter(made, 9, 4, 1)) as connection:
        copied = sqlite_checkpoints._copied(connection, PASSES_MAX)  # type: ignore[arg-type]
    assert copied == made.checkpoints._there
    assert connection.passes == 4, "the last one finds that nothing was written since"


def test_the_thread_passes_once_where_the_end_is_not_wanted(
    made: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes: list[int] = []

    def noted(_: apsw.Connection, most: int) -> int:
        passes.append(most)
        return 0

    monkeypatch.setattr(sqlite_checkpoints, "_copied", noted)
    made.checkpoints.restart_pages = 2 * PAGES
    for row in range(3 * PAGES):
        made.write(row)
        made.tidy()
    assert passes[0] == 1
    assert passes[-1] == PASSES_MAX


def test_the_thread_gives_up_behind_a_writer_that_does_not_pause(made: Written) -> None:
    made.write(*range(PAGES))
    with closing(BesideAWriter(made, *[5] * 100)) as connection:
        copied = sqlite_checkpoints._copied(connection, PASSES_MAX)  # type: ignore[arg-type]
    assert connection.passes == PASSES_MAX
    assert copied < made.checkpoints._there


def test_the_thread_does_not_go_on_where_a_snapshot_keeps_the_rest(made: Written) -> None:
    made.write(1)
    with closing(made.reader()):
        made.write(*range(PAGES))
        with closing(BesideAWriter(made, 1, 1, 1)) as connection:
            copied = sqlite_checkpoints._copied(connection, PASSES_MAX)  # type: ignore[arg-type]
    assert connection.passes == 2
    assert copied < PAGES


def test_what_a_snapshot_kept_is_tried_for_when_it_has_ended(
    made: Written, by_hand: ByHand
) -> None:
    made.write(1)
    with closing(made.reader()):
        made.write(*range(PAGES))
        for _ in range(2):
            made.checkpoints.tidy()
            by_hand.idle.set()
    tried = by_hand.begun
    made.checkpoints.tidy()
    assert (by_hand.begun, made.waits) == (tried, made.waits)
    made.checkpoints.released()
    made.checkpoints.tidy()
    by_hand.idle.set()
    made.checkpoints.tidy()
    assert (by_hand.begun, made.waits) == (tried + 1, 0)


def test_what_snapshots_kept_nodes_copy_one_after_the_other(made: Written, by_hand: ByHand) -> None:
    """Checks of one log position end on all nodes at once; each has its own number."""
    made.checkpoints.pages_after_snapshot = LEFT
    made.write(1)
    with closing(made.reader()):
        made.write(*range(PAGES))
        for _ in range(3):
            made.checkpoints.tidy()
            by_hand.idle.set()
        there, tried = made.checkpoints._there, by_hand.begun
    made.checkpoints.released()
    while by_hand.begun == tried:
        assert made.checkpoints._there < there + LEFT
        made.write(1)
        made.checkpoints.tidy()
    assert made.checkpoints._there >= there + LEFT


def test_a_check_that_has_ended_has_its_snapshot_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(tmp_path / "a.db")
    calls: list[int] = []
    monkeypatch.setattr(store._checkpoints, "released", lambda: calls.append(1))
    store.check(b"c", [7], [])
    until = monotonic() + DEADLINE_S
    while not store.checked():
        assert not calls
        assert monotonic() < until
    assert calls == [1]
    store.close()


def test_a_file_that_a_snapshot_made_long_is_cut_a_little_at_a_time(
    made: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, cut = 100 * FRAME_BYTES, 20 * FRAME_BYTES
    monkeypatch.setattr(sqlite_checkpoints, "WAL_BYTES_KEPT_MAX", kept)
    monkeypatch.setattr(sqlite_checkpoints, "WAL_BYTES_CUT", cut)
    made.write(1)
    with closing(made.reader()):
        for row in range(100):
            made.write(row, row + 100, row + 200)
            made.tidy()
    longest = made.wal_bytes
    assert longest > 300 * FRAME_BYTES
    sizes = [longest]
    for row in range(2 * longest // cut * PAGES):
        made.write(row % 300)
        made.tidy()
        sizes.append(made.wal_bytes)
    cuts = [before - after for before, after in pairwise(sizes)]
    assert 0 < max(cuts) <= cut
    assert sizes[-1] <= kept + 2 * FRAME_BYTES


def test_a_wal_has_its_room_before_it_needs_it(made: Written) -> None:
    made.copied_at(10 * WAL_PAGES_UNRESERVED, 10 * WAL_PAGES_UNRESERVED)
    blocks = []
    for row in range(WAL_PAGES_UNRESERVED * 2):
        made.write(row)
        made.tidy()
        blocks.append(made.wal_stat.st_blocks)
    assert made.wal_bytes == WAL_BYTES_KEPT_MAX
    first = blocks.index(blocks[-1])
    assert first < WAL_PAGES_UNRESERVED, "no block was added since"
    assert blocks[first - 1] * 512 <= 2 * WAL_PAGES_UNRESERVED * FRAME_BYTES
    with closing(connect(made.path, cache_mb=1, read_only=True)) as reader:
        assert reader.execute("SELECT count(*) FROM pages").get == len(blocks)


def test_a_wal_that_was_given_room_is_read_again_after_a_kill(
    made: Written, tmp_path: Path
) -> None:
    made.copied_at(10 * WAL_PAGES_UNRESERVED, 10 * WAL_PAGES_UNRESERVED)
    for row in range(WAL_PAGES_UNRESERVED):
        made.write(row)
        made.tidy()
    assert made.wal_bytes == WAL_BYTES_KEPT_MAX
    for end in ("", "-wal"):  # what a killed process leaves: no writer has closed it
        (tmp_path / f"left.db{end}").write_bytes((tmp_path / f"a.db{end}").read_bytes())
    with closing(connect(tmp_path / "left.db", cache_mb=1, read_only=False)) as left:
        assert left.execute("PRAGMA integrity_check").get == "ok"
        assert left.execute("SELECT count(*) FROM pages").get == WAL_PAGES_UNRESERVED


def test_where_no_room_can_be_had_the_wal_grows_as_it_is_written(
    made: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left on the device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    made.copied_at(10 * WAL_PAGES_UNRESERVED, 10 * WAL_PAGES_UNRESERVED)
    for row in range(WAL_PAGES_UNRESERVED):
        made.write(row)
        made.tidy()
    assert 0 < made.wal_bytes < WAL_BYTES_KEPT_MAX


def test_failures_are_left_to_commits_and_tried_again(
    made: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = apsw.Connection

    def away(*_: Any, **__: Any) -> None:
        raise apsw.CantOpenError("the disk is away")

    monkeypatch.setattr(apsw, "Connection", away)
    made.write(*range(PAGES))
    made.tidy()
    made.tidy()
    assert made.waits >= PAGES
    monkeypatch.setattr(apsw, "Connection", opened)
    made.tidy()
    made.tidy()
    assert made.waits == 0


def test_in_a_transaction_nothing_is_tidied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(tmp_path / "a.db")
    calls: list[int] = []
    monkeypatch.setattr(store._checkpoints, "tidy", lambda: calls.append(1))
    store.begin()
    store.tidy()
    assert not calls
    store.rollback()
    store.tidy()
    assert calls == [1]
    store.close()


@pytest.mark.parametrize("seed", range(5))
def test_whatever_happens_the_wal_stays_bounded_and_no_row_is_lost(
    made: Written, seed: int
) -> None:
    print(f"seed {seed}")
    rng = random.Random(seed)
    rows: set[int] = set()
    readers: list[tuple[apsw.Connection, int]] = []
    bound = MOST

    def write() -> None:
        nonlocal bound
        copier = made.checkpoints._copier
        disturbed = bool(readers) or (copier is not None and not copier.idle.is_set())
        some = [rng.randrange(400) for _ in range(rng.randint(1, 20))]
        made.write(*some)
        rows.update(some)
        assert disturbed or made.waits <= bound
        bound = made.waits + MOST if disturbed else max(MOST, min(bound, made.waits + MOST))

    def read() -> None:
        if len(readers) < 3:
            readers.append((made.reader(), len(rows)))

    def leave() -> None:
        if readers:
            reader, seen = readers.pop(rng.randrange(len(readers)))
            assert reader.execute("SELECT count(*) FROM pages").get == seen
            reader.close()

    steps: list[Callable[[], object]] = [
        write,
        write,
        made.checkpoints.tidy,
        made.tidy,
        read,
        leave,
        leave,
    ]
    for _ in range(400):
        rng.choice(steps)()
    for reader, _ in readers:
        reader.close()
    for _ in range(PAGES // 2):
        made.tidy()
        made.write(0)
    assert made.waits <= PAGES
    copied = connect(made.path, cache_mb=1, read_only=True)
    assert {row for (row,) in copied.execute("SELECT id FROM pages")} == rows | {0}
    copied.close()
