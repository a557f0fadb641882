"""Processes are found, paused and ended by identity; another process is never hit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.process_table import entry_of, is_running, wait_until_ended
from infra.processes import RUN_VARIABLE, Processes, ProcessFailure, Record

DEADLINE_S = 30.0
SLEEP = [sys.executable, "-c", "import time\nwhile True: time.sleep(3600)"]


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    started = Processes(tmp_path / "run", tmp_path / "log")
    yield started
    started.stop_all(deadline_s=0.0)


def start(processes: Processes, name: str, command: list[str] = SLEEP) -> Record:
    return processes.start(name, command, os.environ, Path.cwd())


def test_a_started_process_is_found_by_another_command(processes: Processes) -> None:
    record = start(processes, "a")
    another = Processes(processes.folder, processes.logs)
    assert another.find("a") == record
    assert another.running() == {"a": record}
    assert another.stop("a")
    assert not is_running(record.identity)
    assert another.find("a") is None
    assert not another.stop("a")


def test_who_stands_back_does_so_as_a_session_too(processes: Processes) -> None:
    """⚠ Niceness alone counts for nothing where the kernel weighs sessions."""
    record = processes.start("a", SLEEP, os.environ, Path.cwd(), niceness=10)
    assert os.getpriority(os.PRIO_PROCESS, record.identity.pid) == 10
    group = Path(f"/proc/{record.identity.pid}/autogroup")
    if group.exists() and group.read_text().strip():
        assert group.read_text().split()[-1] == "10"


def test_a_recycled_pid_is_never_signalled(processes: Processes) -> None:
    """The record names a pid that now belongs to someone else: another start time."""
    record = start(processes, "a")
    path = processes.folder / "a.json"
    stored = json.loads(path.read_text())
    with subprocess.Popen(SLEEP, start_new_session=True) as innocent:
        try:
            entry = entry_of(innocent.pid)
            assert entry is not None
            stored["identity"] |= {
                "pid": innocent.pid,
                "start_ticks": entry.identity.start_ticks - 1,
            }
            path.write_text(json.dumps(stored))

            assert processes.find("a") is None
            with pytest.raises(ProcessFailure):
                processes.signal("a", signal.SIGKILL)
            assert not processes.stop("a")
            assert innocent.poll() is None
        finally:
            innocent.kill()
    assert processes.stop_all() == [f"pid {record.identity.pid}"]


def test_what_ignores_sigterm_is_killed_with_its_children(
    processes: Processes, tmp_path: Path
) -> None:
    """A child that left the process group, as Spark's workers do, ends too."""
    told = tmp_path / "told"
    os.mkfifo(told)
    stubborn = (
        "import os, signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(3600)'],\n"
        "    process_group=0)\n"
        f"open({str(told)!r}, 'w').write(str(child.pid))\n"
        "time.sleep(3600)\n"
    )
    record = start(processes, "stubborn", [sys.executable, "-c", stubborn])
    child = entry_of(int(told.read_text()))
    assert child is not None
    assert processes.stop("stubborn", deadline_s=0.1)
    assert not is_running(record.identity)
    assert not is_running(child.identity)


def test_orphans_of_a_dead_parent_are_ended(processes: Processes, tmp_path: Path) -> None:
    """A grandchild in a session of its own, whose parents are gone, is found by its token."""
    told = tmp_path / "told"
    os.mkfifo(told)
    parent = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(3600)'],\n"
        "    start_new_session=True)\n"
        f"open({str(told)!r}, 'w').write(str(child.pid))\n"
        "child.returncode = 0\n"
    )
    record = start(processes, "parent", [sys.executable, "-c", parent])
    orphan = entry_of(int(told.read_text()))
    assert orphan is not None
    assert wait_until_ended(record.identity, DEADLINE_S)
    assert is_running(orphan.identity)
    assert processes.stop_all() == [f"pid {orphan.identity.pid}"]
    assert not is_running(orphan.identity)


def test_a_paused_process_can_still_end_in_good_order(processes: Processes, tmp_path: Path) -> None:
    """It is woken for its SIGTERM, not left to SIGKILL at the deadline."""
    told, tidied = tmp_path / "told", tmp_path / "tidied"
    os.mkfifo(told)
    tidy = (
        "import signal, sys, time\n"
        "from pathlib import Path\n"
        "def end(*_):\n"
        f"    Path({str(tidied)!r}).touch()\n"
        "    sys.exit()\n"
        "signal.signal(signal.SIGTERM, end)\n"
        f"open({str(told)!r}, 'w').write('ready')\n"
        "time.sleep(3600)\n"
    )
    record = start(processes, "a", [sys.executable, "-c", tidy])
    assert told.read_text() == "ready"
    processes.signal("a", signal.SIGSTOP)
    assert processes.stop("a", DEADLINE_S)
    assert not is_running(record.identity)
    assert tidied.exists()


def test_processes_of_another_folder_are_left_alone(processes: Processes, tmp_path: Path) -> None:
    other = Processes(tmp_path / "other", tmp_path / "log2")
    record = start(other, "a")
    try:
        assert processes.stop_all() == []
        assert is_running(record.identity)
    finally:
        other.stop_all(deadline_s=0.0)


def test_tail_shows_the_newest_start_only(processes: Processes) -> None:
    for word in ("first", "second"):
        say = f"print({word!r}, flush=True)\nimport time\nprint('end', flush=True)"
        record = start(processes, "a", [sys.executable, "-c", say])
        assert wait_until_ended(record.identity, DEADLINE_S)
    assert processes.tail("a") == "second\nend"
    assert processes.tail("a", lines=1) == "end"
    assert processes.tail("unknown") == ""


def test_a_missing_program_is_told(processes: Processes) -> None:
    with pytest.raises(ProcessFailure, match=r"a could not be started \(no-such-program"):
        start(processes, "a", ["no-such-program"])


def test_two_commands_at_once_are_kept_apart(processes: Processes) -> None:
    another = Processes(processes.folder, processes.logs)
    with (
        processes.exclusively(),
        pytest.raises(ProcessFailure, match="Another command"),
        another.exclusively(),
    ):
        pass
    with another.exclusively():
        pass


def test_the_token_is_the_same_for_all_who_ask(processes: Processes, tmp_path: Path) -> None:
    show = f"import os; print(os.environ[{RUN_VARIABLE!r}])"
    for name in ("a", "b"):
        record = start(processes, name, [sys.executable, "-c", show])
        assert wait_until_ended(record.identity, DEADLINE_S)
    token = (processes.folder / "token").read_text()
    assert processes.tail("a") == processes.tail("b") == token
