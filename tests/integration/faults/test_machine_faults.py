"""Goal: what `disk_faults.c` says of a disk befalls the process that it is preloaded into, a torn
WAL is what SQLite finds after a power cut, memory that is taken is missing, and a store whose disk
fails a sync is used no more.

Method: processes that write files and stores; the library counts what it did.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Final

import apsw
import pytest

from infra.local_cluster import ROOT
from leasehold.adapters.sqlite.store import SqliteStore
from tests.support.cluster.preloaded import find_compiler, joined, make_library
from tests.support.cluster.system_disk import (
    SOURCE,
    Befallen,
    FaultyDisk,
    cut_end,
    tear_wal,
)
from tests.support.cluster.system_memory import take_memory

SKIPPED: Final = (
    "SKIPPED: no C compiler, so no test of disks that fail; install one:"
    " apt-get install -y --no-install-recommends gcc libc6-dev"
)
DEADLINE_S: Final = 120
SYNC_MS: Final = 300
ROWS: Final = 40

WRITES = """
import os, sys
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
reader, writer = os.pipe()
for call in (
    lambda: os.write(writer, b"a pipe is no disk"),
    lambda: os.write(file, b"x"),
    lambda: os.pwrite(file, b"y", 1),
    lambda: os.writev(file, [b"z"]),
    lambda: os.fsync(file),
    lambda: os.fdatasync(file),
):
    try:
        call()
        print("done")
    except OSError as error:
        print(error.errno)
"""

COMMITS = """
import sys
from leasehold.adapters.sqlite.layout import sqlite_errors
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.model.errors import StoreUnwritable
from leasehold.model.records.log import LogPosition
from tests.unit.adapters.sqlite.test_writer import FLIGHTS, insert
with sqlite_errors(sys.argv[1]):
    store = SqliteStore(sys.argv[1], cache_mb=1)
    made = store._checkpoints
    made.pages = made._due = made.restart_pages = 20
    if sys.argv[2] == "writer":  # no thread copies, since nobody tidies
        made.pages_max = made._must = 20
    store.begin(); store.prepare(FLIGHTS); store.commit(LogPosition(1, lsn=1))
print("begun", flush=True)
sys.stdin.readline()
try:
    with sqlite_errors(sys.argv[1]):
        for number in range(2, 20_000):
            store.begin()
            store.change(FLIGHTS, insert(number), number, 0, None)
            store.commit(LogPosition(number, lsn=number))
            if sys.argv[2] == "thread":
                store.tidy()
    print("it went on")
except StoreUnwritable as error:
    print(number, error.message)
"""

ROWS_OF_COMMITS = """
import os, sys
import apsw
connection = apsw.Connection(sys.argv[1])
connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL")
connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, content BLOB)")
for number in range(int(sys.argv[2])):
    if number == 5:
        connection.execute("PRAGMA wal_checkpoint").fetchall()
    connection.execute("INSERT INTO rows VALUES (?, randomblob(2000))", (number,))
os._exit(0)
"""


ALLOCATES = """
import sys
kept = []
for _ in range(2):
    try:
        kept.append(bytearray(64 << 20))
        print("bytes", len(kept[-1]), flush=True)
    except MemoryError:
        print("MemoryError")
    sys.stdin.readline()
"""


def run(
    program: str, *arguments: str, environment: dict[str, str] | None = None
) -> subprocess.Popen[str]:
    own = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'libs'}"}
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        env=joined(own, environment or {}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def disk(tmp_path: Path) -> FaultyDisk:
    compiler = find_compiler()
    if compiler is None:
        pytest.skip(SKIPPED)
    return FaultyDisk(tmp_path / "disk", make_library(compiler, SOURCE, tmp_path))


def said(program: subprocess.Popen[str], told: str = "") -> list[str]:
    """What it prints until it ends, once it was told something."""
    out, _ = program.communicate(told, timeout=DEADLINE_S)
    assert program.returncode == 0
    return out.split()


def written(disk: FaultyDisk, folder: Path) -> list[str]:
    return said(run(WRITES, str(folder / "file"), environment=disk.environment))


def test_a_sound_disk_is_left_alone(disk: FaultyDisk, tmp_path: Path) -> None:
    assert written(disk, tmp_path) == ["done"] * 6
    assert (tmp_path / "file").read_bytes() == b"xz", "what is written behind x is written over"
    assert disk.befallen == Befallen(0, 0)


def test_syncs_fail_and_writes_do_not(disk: FaultyDisk, tmp_path: Path) -> None:
    disk.be(syncs_fail=True)
    assert written(disk, tmp_path) == ["done"] * 4 + ["5", "5"]
    assert disk.befallen == Befallen(0, 2)


def test_writes_fail_to_files_alone(disk: FaultyDisk, tmp_path: Path) -> None:
    disk.be(writes_fail=True)
    assert written(disk, tmp_path) == ["done", "5", "5", "5", "done", "done"]
    assert (tmp_path / "file").read_bytes() == b""
    disk.mend()
    assert written(disk, tmp_path) == ["done"] * 6


def test_a_slow_disk_is_late(disk: FaultyDisk, tmp_path: Path) -> None:
    disk.be(sync_ms=SYNC_MS, write_us=1_000)
    begun = time.monotonic()
    assert written(disk, tmp_path) == ["done"] * 6
    assert time.monotonic() - begun >= 2 * SYNC_MS / 1e3
    assert disk.befallen == Befallen(5, 0)


@pytest.mark.parametrize("who", ["thread", "writer"])
def test_l6_a_store_whose_disk_fails_a_sync_is_used_no_more(
    disk: FaultyDisk, tmp_path: Path, who: str
) -> None:
    """Commits sync nothing: only copying of the WAL does. Whoever goes on would let it grow, and
    would be told by the next sync that all is well."""
    path = tmp_path / "store.db"
    program = run(COMMITS, str(path), who, environment=disk.environment)
    assert program.stdout is not None
    assert program.stdout.readline() == "begun\n"
    disk.be(syncs_fail=True)
    number, *words = said(program, "go on\n")
    assert disk.befallen.failed > 0
    assert "make room on its disk" in " ".join(words)
    assert int(number) < 5_000, "soon"
    disk.mend()
    with closing(SqliteStore(path)) as store:
        assert store.position().lsn >= int(number) - 1, "nothing that was committed is lost"


def test_l6_a_torn_wal_has_the_commits_before_it(tmp_path: Path) -> None:
    path = tmp_path / "rows.db"
    run(ROWS_OF_COMMITS, str(path), str(ROWS)).communicate(timeout=DEADLINE_S)
    found = set()
    for seed in range(30):
        folder = tmp_path / str(seed)
        folder.mkdir()
        for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
            shutil.copy(tmp_path / name, folder / name)
        assert tear_wal(folder / path.name, random.Random(seed)) > 0
        with closing(apsw.Connection(str(folder / path.name))) as connection:
            assert connection.pragma("integrity_check") == "ok"
            rows = [number for (number,) in connection.execute("SELECT id FROM rows ORDER BY id")]
        assert rows == list(range(len(rows)))
        assert 5 <= len(rows) < ROWS, "what a checkpoint has synced stays, what is torn is lost"
        found.add(len(rows))
    assert len(found) > 5, "at different commits"


def test_the_end_of_a_file_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"abcdef")
    assert cut_end(path, 2) == 2
    assert path.read_bytes() == b"abcd"
    assert cut_end(path, 9) == 4
    assert path.read_bytes() == b""


def test_memory_is_taken_from_a_process_that_runs() -> None:
    program = run(ALLOCATES)
    assert program.stdout is not None
    assert program.stdout.readline() == "bytes 67108864\n"
    take_memory(program.pid, 1 << 20)
    assert said(program, "go on\n") == ["MemoryError"]
    take_memory(program.pid, 0)  # it has ended


def test_nothing_is_torn_of_what_was_synced(tmp_path: Path) -> None:
    path = tmp_path / "rows.db"
    assert tear_wal(path, random.Random(0)) == 0, "there is no store"
    run(ROWS_OF_COMMITS, str(path), "4").communicate(timeout=DEADLINE_S)
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("PRAGMA wal_checkpoint").fetchall()
        assert tear_wal(path, random.Random(0)) == 0
