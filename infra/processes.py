"""Starts, finds and ends the processes of one run folder, by whoever started them.

Every process gets a session of its own, a log file, and a record of its identity; so another
command, after any crash, can find and end it. Two things make `stop_all` complete:

- All processes inherit LEASEHOLD_RUN with this folder's token. A process that was started but not
  recorded (the starter died in between), or a grandchild whose parent is gone (Spark's JVM and its
  Python workers leave their process group but not their environment), is found by it.
- A record is matched by pid, start time and boot: a recycled pid is never signalled.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from infra.process_table import (
    Identity,
    all_entries,
    entry_of,
    has_in_environment,
    is_running,
    send_signal,
    wait_until_ended,
)

RUN_VARIABLE = "LEASEHOLD_RUN"
STOP_DEADLINE_S = 15.0
KILL_DEADLINE_S = 5.0
LOG_BYTES_MAX = 32 * 1024 * 1024
TAIL_BYTES_MAX = 256 * 1024


def _stand_back(pid: int, niceness: int) -> None:
    """Set the niceness of a process that leads a session.

    ⚠ Where the kernel groups tasks by session (sched_autogroup), niceness counts among those of one
    session only, and every service is a session: the group's own weight has to be set, too. Where
    the kernel has none of it, or lets us not, the process runs like any other.
    """
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, niceness)
    with suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text(str(niceness), encoding="ascii")


class ProcessFailure(Exception):
    """A process could not be started, became not ready, or would not end. Says what to do."""


@dataclass(frozen=True, slots=True)
class Record:
    """What is kept about a started process, in <folder>/<name>.json."""

    name: str
    identity: Identity
    command: tuple[str, ...]
    log: str
    log_offset: int
    """Where in the log file this start begins."""


class Processes:
    """The processes of one folder. `folder` holds records, `logs` the log files."""

    def __init__(self, folder: Path, logs: Path) -> None:
        self.folder = folder.absolute()
        self.logs = logs.absolute()
        self._children: dict[int, subprocess.Popen[bytes]] = {}

    @contextmanager
    def exclusively(self) -> Iterator[None]:
        """Keep other commands on this folder out; raises ProcessFailure if one is at work."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ProcessFailure(
                    f"Another command is starting or stopping the cluster of {self.folder}; "
                    "wait for it to end."
                ) from None
            yield

    def start(
        self,
        name: str,
        command: Sequence[str],
        environ: Mapping[str, str],
        cwd: Path,
        niceness: int = 0,
    ) -> Record:
        """Start `command` in a session of its own; raises ProcessFailure if that is impossible.

        `niceness`: 0 to 19, of the process and all that it will start."""
        assert self.find(name) is None, f"{name} is already running"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.logs.mkdir(parents=True, exist_ok=True)
        log = self.logs / f"{name}.log"
        if log.exists() and log.stat().st_size > LOG_BYTES_MAX:
            log.replace(log.with_suffix(".log.1"))
        with log.open("ab") as output:
            offset = output.tell()
            try:
                child = subprocess.Popen(
                    list(command),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env={**environ, RUN_VARIABLE: self._token()},
                    cwd=cwd,
                    start_new_session=True,
                )
            except OSError as error:
                raise ProcessFailure(
                    f"{name} could not be started ({command[0]}: {error.strerror}); run: make setup"
                ) from error
        self._children[child.pid] = child
        if niceness:
            _stand_back(child.pid, niceness)
        entry = entry_of(child.pid)
        assert entry is not None, "an uncollected child always has an entry"
        record = Record(name, entry.identity, tuple(command), str(log), offset)
        self._write(record)
        return record

    def find(self, name: str) -> Record | None:
        """The record of `name` if that process still runs."""
        record = self._read(self.folder / f"{name}.json")
        return record if record is not None and is_running(record.identity) else None

    def running(self) -> dict[str, Record]:
        records = (self._read(path) for path in sorted(self.folder.glob("*.json")))
        return {r.name: r for r in records if r is not None and is_running(r.identity)}

    def stop(self, name: str, deadline_s: float = STOP_DEADLINE_S) -> bool:
        """SIGTERM, wait, SIGKILL for what is left of its session. Whether it was running."""
        record = self._read(self.folder / f"{name}.json")
        if record is None:
            return False
        was_running = is_running(record.identity)
        if was_running:
            send_signal(record.identity, signal.SIGTERM)
            send_signal(record.identity, signal.SIGCONT)  # a paused process can't end by itself
            wait_until_ended(record.identity, deadline_s)
        self._kill_all(self._members(record))
        self._forget(record)
        return was_running

    def signal(self, name: str, number: signal.Signals) -> None:
        """Send `number` to `name`; what can't be handled goes to its whole session.

        Raises ProcessFailure if it isn't running.
        """
        record = self.find(name)
        if record is None:
            raise ProcessFailure(f"{name} is not running, so it can't be sent {number.name}.")
        if number == signal.SIGKILL:
            self._kill_all(self._members(record))
            self._forget(record)
        elif number in (signal.SIGSTOP, signal.SIGCONT):
            for identity in self._members(record):
                send_signal(identity, number)
        else:
            send_signal(record.identity, number)

    def stop_all(self, deadline_s: float = STOP_DEADLINE_S) -> list[str]:
        """End everything that was ever started under this folder and still runs, newest first.

        Returns the names (or `pid N` for what was never recorded). Raises ProcessFailure if a
        process outlives SIGKILL.
        """
        records = [self._read(path) for path in self.folder.glob("*.json")]
        known = sorted((r for r in records if r), key=lambda r: r.identity.start_ticks)
        ended = [r.name for r in reversed(known) if self.stop(r.name, deadline_s)]
        strays = self._strays()
        self._kill_all(strays)
        for child in self._children.values():
            child.poll()  # someone else may have ended it
        return ended + [f"pid {stray.pid}" for stray in strays]

    def leave_running(self) -> None:
        """Let what was started here outlive this process: somebody else ends it, by the records."""
        for child in self._children.values():
            # Python warns of a process that nobody has waited for, and nobody here will.
            child.returncode = 0
        self._children.clear()

    def tail(self, name: str, lines: int = 30) -> str:
        """The last lines that `name` logged since its newest start."""
        path = self.logs / f"{name}.log"
        if not path.exists():
            return ""
        record = self._read(self.folder / f"{name}.json")
        with path.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(size - TAIL_BYTES_MAX, record.log_offset if record else 0, 0))
            text = log.read(TAIL_BYTES_MAX).decode("utf-8", errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def exit_code(self, record: Record) -> int | None:
        """The exit code if it was our child and has ended."""
        child = self._children.get(record.identity.pid)
        return None if child is None else child.poll()

    def _members(self, record: Record) -> list[Identity]:
        """All living processes of its session.

        While the leader lives, its session is ours. Once it is gone the number may have been given
        away, so then only the inherited token counts.
        """
        leader_lives = is_running(record.identity)
        token = self._token()
        return [
            entry.identity
            for entry in all_entries()
            if entry.session == record.identity.pid
            and not entry.ended
            and (leader_lives or has_in_environment(entry.identity.pid, RUN_VARIABLE, token))
        ]

    def _strays(self) -> list[Identity]:
        token = self._token()
        return [
            entry.identity
            for entry in all_entries()
            if entry.identity.pid != os.getpid()
            and not entry.ended
            and has_in_environment(entry.identity.pid, RUN_VARIABLE, token)
        ]

    def _kill_all(self, identities: Sequence[Identity]) -> None:
        for identity in identities:
            send_signal(identity, signal.SIGKILL)
        give_up = time.monotonic() + KILL_DEADLINE_S
        for identity in identities:
            if not wait_until_ended(identity, give_up - time.monotonic()):
                raise ProcessFailure(f"Process {identity.pid} does not end, even by SIGKILL.")

    def _forget(self, record: Record) -> None:
        child = self._children.pop(record.identity.pid, None)
        if child is not None:
            # Its first thread is gone (that is what "ended" looks at), others may still be ending;
            # until then the kernel does not give the exit code out.
            with suppress(subprocess.TimeoutExpired):
                child.wait(KILL_DEADLINE_S)
        (self.folder / f"{record.name}.json").unlink(missing_ok=True)

    def _token(self) -> str:
        """Return this folder's token, made once; links are atomic, so two makers agree."""
        path = self.folder / "token"
        if not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            unfinished = self.folder / f"token.{uuid.uuid4().hex}"
            unfinished.write_text(uuid.uuid4().hex)
            try:
                os.link(unfinished, path)
            except FileExistsError:
                pass
            finally:
                unfinished.unlink()
        return path.read_text()

    def _write(self, record: Record) -> None:
        path = self.folder / f"{record.name}.json"
        unfinished = path.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(asdict(record)))
        unfinished.replace(path)

    def _read(self, path: Path) -> Record | None:
        try:
            stored = json.loads(path.read_text())
        except FileNotFoundError:
            return None
        except json.JSONDecodeError:
            # Records are written whole; a broken disk is left to the token in stop_all.
            return None
        identity = Identity(**stored["identity"])
        return Record(
            stored["name"], identity, tuple(stored["command"]), stored["log"], stored["log_offset"]
        )
