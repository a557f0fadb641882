"""Long work in a thread of its own gives way to what users wait for.

A check is a second of pure computing, on every node at the same log position. Where nodes share a
machine, that is more threads than processors, and a write is a chain of a dozen threads in as many
processes that each want a processor for a moment: each of them waits for a turn. So while users
write the work stops every `WORK_NS` and pauses for as long as `pause_ns` says, by how long it was
itself kept from a processor and by how many want one now: with processors to spare it does not
pause at all. The first alone is not enough: the kernel may leave one processor to a thread that
never waits, and all others to the second one for a tenth of a second.

That pauses for whoever wants a processor, and all day on a machine that is always busy. So where
the kernel tells for how long the thread that applies the log was kept from a processor
(`ProcessorWaits`), work pauses by need, for as long as that; and in any case for some parts of what
it has worked, since need is told only behind those who have waited already.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from time import monotonic_ns, thread_time_ns
from typing import Final

WORK_NS: Final = 2_000_000
"""Processor time between two pauses: about what a writer's next thread waits for its turn."""
CHECK_REST: Final = 2
BACKFILL_REST: Final = 4
"""Least pauses by need, in parts of the work before them. Sorting and merging hold up writers in
two ways, by the processor and by the thread that applies the log; a check only by the first, and
each second of it keeps the WAL from being reset."""
WAITS_REPAID: Final = 4
WANTED_REPAID: Final = 2
"""Pauses, in parts of the work before them, for each task that takes the last idle processor, or
waits for one."""
PAUSES_MAX: Final = 9
"""Longest pause, in parts of the work before it: at least a tenth of the time is work, or a machine
that is always busy would never see the end of it."""
PAUSED_IN_ALL_MAX_NS: Final = 20_000_000_000
"""Of one piece of work: its snapshot keeps the WAL from being reset, and who asked for it asks
again after a while (`verification_ms`). From then on it goes as fast as it can."""
STEPS_BETWEEN_LOOKS: Final = 20_000
"""Of SQLite's virtual machine: half a millisecond or so. Each look takes the interpreter lock."""


LOAD: Final = Path("/proc/loadavg")
TASKS: Final = Path("/proc/self/task")
PROCESSORS: Final = os.cpu_count() or 1


def processors_wanted(path: Path = LOAD, there: int = PROCESSORS) -> int:
    """Return how many tasks there are too many for one processor of the machine to be idle, 0 where
    that is not told. Linux counts those that run or want to, of all containers."""
    try:
        running = path.read_bytes().split()[3].partition(b"/")[0]
        return max(0, int(running) - there + 1)
    except (OSError, IndexError, ValueError):
        return 0


def pause_ns(worked_ns: int, took_ns: int, wanted: int = 0, *, gentle: bool = False) -> int:
    """Return how long to pause after `worked_ns` of processor time that took `took_ns` by the
    clock, while `wanted` tasks are too many for the processors. A `gentle` pace is at most half."""
    waits_ns = WAITS_REPAID * max(0, took_ns - worked_ns)
    pause = min(PAUSES_MAX * worked_ns, waits_ns + WANTED_REPAID * wanted * worked_ns)
    return 2 * pause + worked_ns if gentle else pause


class ProcessorWaits:
    """Tells for how long a thread of this process has wanted a processor and had none, as the
    kernel counts it. `folder`: where it does."""

    def __init__(self, thread_id: int, folder: Path = TASKS) -> None:
        self._path = folder / str(thread_id) / "schedstat"
        self._before_ns = self._read_ns()

    def take_ns(self) -> int | None:
        """Return how long since this was asked last; None where the kernel does not tell."""
        now_ns, before_ns = self._read_ns(), self._before_ns
        self._before_ns = now_ns
        return None if now_ns is None or before_ns is None else max(0, now_ns - before_ns)

    def _read_ns(self) -> int | None:
        """Return the second of its numbers: time on a processor, time waiting for one, turns."""
        try:
            return int(self._path.read_bytes().split()[1])
        except (OSError, IndexError, ValueError):
            return None


def pause_by_need_ns(worked_ns: int, waited_ns: int, rest: int, *, gentle: bool = False) -> int:
    """Return how long to pause after `worked_ns` of processor time where, since the last time that
    this was asked, who applies the log has waited for `waited_ns` for a processor: at least `rest`
    parts of the work. A `gentle` pace is at most half."""
    pause = min(PAUSES_MAX * worked_ns, max(rest * worked_ns, WAITS_REPAID * waited_ns))
    return 2 * pause + worked_ns if gentle else pause


@dataclass(slots=True)
class Users:
    """Whether some write meanwhile, and whether a job is to be felt half as much by them.
    `thread_id`: which thread applies the log, 0 = not known yet. Set by one thread, read by
    others."""

    beside: bool = False
    gentle: bool = False
    thread_id: int = 0


class GivesWay:
    """SQLite's progress handler of one piece of work, made in the thread that does it. While
    `users` are beside it somebody waits, so that pauses are made, by need with at least `rest`
    parts of the work, or for whoever wants a processor where need is not told; `closing` ends the
    work, a pause included."""

    def __init__(self, users: Users, closing: Event, rest: int) -> None:
        self._users = users
        self._closing = closing
        self._rest = rest
        self._waits: ProcessorWaits | None = None
        self._since_ns = monotonic_ns()
        self._worked_ns = thread_time_ns()
        self.paused_ns = 0

    def __call__(self) -> bool:
        """Whether the statement is to be interrupted."""
        worked_ns = thread_time_ns() - self._worked_ns
        if worked_ns >= WORK_NS:
            if self._users.beside:
                left_ns = PAUSED_IN_ALL_MAX_NS - self.paused_ns
                pause = min(left_ns, self._pause_ns(worked_ns))
                self.paused_ns += pause
                self._closing.wait(pause / 1e9)
            self._since_ns = monotonic_ns()
            self._worked_ns = thread_time_ns()
        return self._closing.is_set()

    def _pause_ns(self, worked_ns: int) -> int:
        gentle = self._users.gentle
        if self._waits is None and self._users.thread_id:
            self._waits = ProcessorWaits(self._users.thread_id)
        waited_ns = None if self._waits is None else self._waits.take_ns()
        if waited_ns is not None:
            return pause_by_need_ns(worked_ns, waited_ns, self._rest, gentle=gentle)
        took_ns = monotonic_ns() - self._since_ns
        return pause_ns(worked_ns, took_ns, processors_wanted(), gentle=gentle)
