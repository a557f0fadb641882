"""What /proc says about processes, and signals that can't hit the wrong one.

A pid alone names nothing: it is given to another process as soon as its owner is gone. A process is
therefore identified by its pid *and* its start time (in clock ticks since boot) *and* the boot, and
a signal goes through a pidfd that was opened before the identity was checked.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Identity:
    """A process, told from all others for as long as this machine is up."""

    pid: int
    start_ticks: int
    boot: str


@dataclass(frozen=True, slots=True)
class ProcessEntry:
    identity: Identity
    parent: int
    session: int
    state: str
    own_ticks: int
    """User and system time so far."""
    ended_ticks: int
    """That of children which have ended and were waited for, with all below them."""

    @property
    def ended(self) -> bool:
        """Zombies and dying processes do nothing any more."""
        return self.state in "ZXx"


def boot_id() -> str:
    return (PROC / "sys/kernel/random/boot_id").read_text().strip()


def stat_of(folder: Path) -> tuple[str, list[str]]:
    """Name and what follows it (proc(5), from field 3 on) of the process or thread whose folder of
    /proc this is. Raises OSError when it has ended."""
    # The name stands in parentheses and may hold anything; the rest follows the last one.
    name, _, words = (folder / "stat").read_text().rpartition(")")
    return name.partition("(")[2], words.split()


def entry_of(pid: int) -> ProcessEntry | None:
    """The process that has `pid` now, if there is one."""
    try:
        _, words = stat_of(PROC / str(pid))
    except (FileNotFoundError, ProcessLookupError):
        return None
    user, system, ended_user, ended_system = map(int, words[11:15])
    return ProcessEntry(
        identity=Identity(pid, int(words[19]), boot_id()),
        parent=int(words[1]),
        session=int(words[3]),
        state=words[0],
        own_ticks=user + system,
        ended_ticks=ended_user + ended_system,
    )


def is_running(identity: Identity) -> bool:
    entry = entry_of(identity.pid)
    return entry is not None and entry.identity == identity and not entry.ended


def all_entries() -> Iterator[ProcessEntry]:
    for folder in PROC.iterdir():
        if folder.name.isdigit() and (entry := entry_of(int(folder.name))) is not None:
            yield entry


def has_in_environment(pid: int, variable: str, value: str) -> bool:
    """Whether `pid` was started with variable=value; False if we may not look."""
    try:
        environ = (PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return False
    return f"{variable}={value}".encode() in environ.split(b"\0")


@contextlib.contextmanager
def handle_on(identity: Identity) -> Iterator[int | None]:
    """A pidfd on exactly this process, or None if it has ended."""
    try:
        descriptor = os.pidfd_open(identity.pid)
    except ProcessLookupError:
        yield None
        return
    try:
        yield descriptor if is_running(identity) else None
    finally:
        os.close(descriptor)


def send_signal(identity: Identity, number: signal.Signals) -> bool:
    """Whether the process was there to be sent it."""
    with handle_on(identity) as descriptor:
        if descriptor is None:
            return False
        try:
            signal.pidfd_send_signal(descriptor, number)
        except ProcessLookupError:
            return False
        return True


def wait_until_ended(identity: Identity, deadline_s: float) -> bool:
    """Wait for the end of a process, ours or not; False once `deadline_s` seconds have passed."""
    with handle_on(identity) as descriptor:
        if descriptor is not None:
            readable, _, _ = select.select([descriptor], [], [], max(0.0, deadline_s))
            if not readable:
                return False
    _collect(identity.pid)
    return True


def _collect(pid: int) -> None:
    """Take its exit status if it was our child, so that no zombie stays."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
