"""Long work in a thread of its own gives way to what users wait for.

A check is a second of pure computing, on every node at the same log position. Where nodes share a
machine, that is more threads than processors, and a write is a chain of a dozen threads in as many
processes that each want a processor for a moment: each of them waits for a turn. So while users
write the work stops every `WORK_NS` and pauses for as long as `pause_ns` says, by how long it was
itself kept from a processor: with processors to spare it does not pause at all.
"""

from __future__ import annotations

from threading import Event
from time import monotonic_ns, thread_time_ns
from typing import Final

WORK_NS: Final = 2_000_000
"""Processor time between two pauses: about what a writer's next thread waits for its turn."""
WAITS_REPAID: Final = 4
PAUSES_MAX: Final = 9
"""Longest pause, in parts of the work before it: at least a tenth of the time is work, or a machine
that is always busy would never see the end of it."""
PAUSED_IN_ALL_MAX_NS: Final = 20_000_000_000
"""Of one piece of work: its snapshot keeps the WAL from being reset, and who asked for it asks
again after a while (`verification_ms`). From then on it goes as fast as it can."""
STEPS_BETWEEN_LOOKS: Final = 20_000
"""Of SQLite's virtual machine: half a millisecond or so. Each look takes the interpreter lock."""


def pause_ns(worked_ns: int, took_ns: int) -> int:
    """After so much processor time, for which it took so long by the clock."""
    return min(PAUSES_MAX * worked_ns, WAITS_REPAID * max(0, took_ns - worked_ns))


class GivesWay:
    """SQLite's progress handler of one piece of work, made in the thread that does it. `beside`:
    somebody waits, so that pauses are made; `closing` ends the work, a pause included."""

    def __init__(self, beside: Event, closing: Event) -> None:
        self._beside = beside
        self._closing = closing
        self._since_ns = monotonic_ns()
        self._worked_ns = thread_time_ns()
        self.paused_ns = 0

    def __call__(self) -> bool:
        """Whether the statement is to be interrupted."""
        worked_ns = thread_time_ns() - self._worked_ns
        if worked_ns >= WORK_NS:
            if self._beside.is_set():
                left_ns = PAUSED_IN_ALL_MAX_NS - self.paused_ns
                pause = min(left_ns, pause_ns(worked_ns, monotonic_ns() - self._since_ns))
                self.paused_ns += pause
                self._closing.wait(pause / 1e9)
            self._since_ns = monotonic_ns()
            self._worked_ns = thread_time_ns()
        return self._closing.is_set()
