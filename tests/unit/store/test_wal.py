"""The WAL is copied into the file beside the writer, begins anew, and nothing is lost by it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

import apsw
import pytest

from leasehold.adapters import sqlite_wal
from leasehold.adapters.sqlite_layout import connect, make_writer
from leasehold.adapters.sqlite_wal import WalCopier, copy

COMMITS_MAX = 20_000
BEFORE_COPY = 50


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def writer(path: Path) -> Iterator[apsw.Connection]:
    connection = connect(path, cache_mb=1, read_only=False)
    make_writer(connection, "normal")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v)")
    yield connection
    connection.close()


def write(connection: apsw.Connection, number: int) -> None:
    connection.execute("INSERT INTO t VALUES (?, ?)", (number, "x" * 3_000))


def begun_anew(connection: apsw.Connection, copier: WalCopier, first: int) -> int:
    """Commits until the WAL has begun anew; → how many rows there are then."""
    most = 0
    for number in range(first, first + COMMITS_MAX):
        write(connection, number)
        if copier.pages < most:
            return number + 1
        most = copier.pages
    raise AssertionError(f"after {COMMITS_MAX} commits it still goes on: {most} pages")


def rows(path: Path) -> int:
    other = connect(path, cache_mb=1, read_only=True)
    found = other.execute("SELECT count(*) FROM t").get
    other.close()
    assert type(found) is int
    return found


def test_it_begins_anew_again_and_again(path: Path, writer: apsw.Connection) -> None:
    copier = WalCopier(writer, path, BEFORE_COPY)
    number = 0
    for _ in range(5):
        number = begun_anew(writer, copier, number)
        assert copier.pages < BEFORE_COPY
    copier.close()
    assert rows(path) == number


def test_what_a_reader_needs_stays_until_it_has_gone(path: Path, writer: apsw.Connection) -> None:
    copier = WalCopier(writer, path, BEFORE_COPY)
    write(writer, 0)
    reader = connect(path, cache_mb=1, read_only=True)
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM t").get == 1
    for number in range(1, 300):
        write(writer, number)
    assert copier.pages > 300, "it can't begin anew"
    assert reader.execute("SELECT count(*) FROM t").get == 1
    reader.execute("COMMIT")
    reader.close()
    number = begun_anew(writer, copier, 300)
    copier.close()
    assert rows(path) == number


def test_should_the_thread_not_keep_up_commits_copy(
    path: Path, writer: apsw.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_wal, "PAGES_MAX", 200)
    copier = WalCopier(writer, path, BEFORE_COPY)
    copier._at_work.set()  # and stays so: there is no thread
    number = begun_anew(writer, copier, 0)
    assert 50 < number <= 210
    copier.close()


def test_closed_it_leaves_the_writer_alone(path: Path, writer: apsw.Connection) -> None:
    copier = WalCopier(writer, path, BEFORE_COPY)
    begun_anew(writer, copier, 0)
    assert copier._thread is not None
    copier.close()
    assert not copier._thread.is_alive()
    pages = copier.pages
    for number in range(COMMITS_MAX, COMMITS_MAX + 200):
        write(writer, number)
    assert copier.pages == pages


def test_closed_while_it_copies_the_thread_ends(
    path: Path, writer: apsw.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    copier = WalCopier(writer, path, BEFORE_COPY)
    closed = Event()

    def close_meanwhile(connection: apsw.Connection) -> tuple[int, int]:
        if not closed.is_set():
            closer.start()
            closer.join(0.2)  # it waits for this thread, and has said so by now
            closed.set()
        return copy(connection)

    closer = Thread(target=copier.close)
    monkeypatch.setattr(sqlite_wal, "copy", close_meanwhile)
    for number in range(BEFORE_COPY + 1):
        write(writer, number)
    assert closed.wait(10)
    closer.join(10)
    assert not closer.is_alive()


def test_a_disk_that_refuses_the_copy_refuses_no_commit(
    path: Path, writer: apsw.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        def wal_checkpoint(self, **_: object) -> tuple[int, int]:
            raise apsw.FullError("database or disk is full")

    monkeypatch.setattr(sqlite_wal, "PAGES_MAX", 100)
    monkeypatch.setattr(sqlite_wal, "copy", lambda _: copy(Full()))  # type: ignore[arg-type]
    copier = WalCopier(writer, path, BEFORE_COPY)
    for number in range(300):
        write(writer, number)
    copier.close()
    assert rows(path) == 300
