"""A real PostgreSQL of this machine, in a folder of its own, for tests that compare with it."""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

import pytest

from tests.support.memory_folder import ROOT_NAME

FOLDERS = (*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True),)
START_TRIES = 100


def _as_postgres() -> list[str]:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return []
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]


def installed() -> Path | None:
    """The folder of its programs."""
    return FOLDERS[0] if FOLDERS and shutil.which("setpriv") is not None else None


@contextmanager
def postgres_server() -> Iterator[int]:
    """The port on 127.0.0.1 of a new, empty server; user postgres, no password. Skips the test,
    saying so, where none is installed."""
    programs = installed()
    if programs is None:
        pytest.skip("NOT TESTED against PostgreSQL: it is not installed (apt install postgresql)")
    with running(programs, "fsync=off") as port:
        yield port


@contextmanager
def running(programs: Path, *options: str) -> Iterator[int]:
    """The port of a new, empty server with these settings, in UTC."""
    with _folder() as folder:
        _initialise(programs, folder)
        with _started(programs, folder, *options) as port:
            yield port


@contextmanager
def replicated(programs: Path, standbys: int, *options: str) -> Iterator[int]:
    """The port of a new, empty server with so many standbys, each with these settings: a commit is
    answered once every one of them has applied it, hence shows it to readers."""
    names = [f"standby{number}" for number in range(1, standbys + 1)]
    primary = ("synchronous_commit=remote_apply", f"synchronous_standby_names={_every(names)}")
    with ExitStack() as stack:
        folder = stack.enter_context(_folder())
        _initialise(programs, folder)
        port = stack.enter_context(_started(programs, folder, *primary, *options))
        for name in names:
            copy = stack.enter_context(_folder())
            _copy(programs, port, copy, name)
            stack.enter_context(_started(programs, copy, *options))
        yield port


def _every(names: list[str]) -> str:
    return f"{len(names)} ({', '.join(names)})"


@contextmanager
def _folder() -> Iterator[Path]:
    # Where pytest has its own: in memory, if there is room.
    folder = Path(tempfile.mkdtemp(prefix="postgres.", dir=os.environ.get(ROOT_NAME)))
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres", "postgres")
        yield folder
    finally:
        shutil.rmtree(folder)


def _initialise(programs: Path, folder: Path) -> None:
    """Put the files of an empty server into `folder`, as a copy: to make them takes a second."""
    subprocess.run(
        ["cp", "-a", "--reflink=auto", _empty(programs) / "data", folder / "data"], check=True
    )


@cache
def _empty(programs: Path) -> Path:
    """Return the folder of an empty server that never runs; it goes with this process."""
    stack = ExitStack()
    atexit.register(stack.close)
    folder = stack.enter_context(_folder())
    init: list[str | Path] = [*_as_postgres(), programs / "initdb", "-D", folder / "data"]
    init += ["-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8"]
    subprocess.run(init, cwd=folder, check=True, capture_output=True)
    return folder


def _copy(programs: Path, port: int, folder: Path, name: str) -> None:
    """Make the files of a standby of that name."""
    copy: list[str | Path] = [*_as_postgres(), programs / "pg_basebackup", "-D", folder / "data"]
    copy += ["-R", "-c", "fast", "--no-sync"]
    copy += ["-d", f"host=127.0.0.1 port={port} user=postgres application_name={name}"]
    subprocess.run(copy, cwd=folder, check=True, capture_output=True)


@contextmanager
def _started(programs: Path, folder: Path, *options: str) -> Iterator[int]:
    """The port of the server whose data are in `folder`, until the block ends."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    run: list[str | Path] = [*_as_postgres(), programs / "postgres", "-D", folder / "data"]
    run += ["-p", str(port), "-k", folder, "-h", "127.0.0.1"]
    for option in ("timezone=UTC", *options):
        run += ["-c", option]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(run, cwd=folder, stdout=log, stderr=log)
    try:
        ready: list[str | Path] = [programs / "pg_isready", "-h", "127.0.0.1", "-p", str(port)]
        ready += ["-t", "1"]
        for _ in range(START_TRIES):
            if subprocess.run(ready, capture_output=True, check=False).returncode == 0:
                break
            try:  # it says no at once as long as nobody listens
                process.wait(0.1)
                raise AssertionError((folder / "log").read_text())
            except subprocess.TimeoutExpired:
                pass
        else:
            raise AssertionError((folder / "log").read_text())
        yield port
    finally:
        process.send_signal(2)  # fast shutdown
        process.wait(30)
