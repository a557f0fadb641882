"""What a process says to who asks whether it lives, and whether it can do its work.

An orchestrator starts a process again that does not live, and sends nobody to one that is not
ready. So living means that its loop turns: it holds whatever is away outside, since a new process
would wait for the same. Ready means that its users would be served now.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from leasehold.adapters.os.clock import boottime_ns
from leasehold.model.time_units import NS_PER_S

STARTING: Final = "it is starting"
STOPPING: Final = "it is stopping"
AWAY: Final = "it waits for Kafka, and then starts anew: {}"


class Health:
    """The state of one process, for any thread. Until `watch` it lives: each thing that it does by
    then has an end of its own."""

    def __init__(self, clock_ns: Callable[[], int] = boottime_ns) -> None:
        """Begin with a process that is starting."""
        self._clock_ns = clock_ns
        self._turn_ns = 0
        self._turned_ns: Callable[[], int] = lambda: self._turn_ns
        self._patience_ns = 0
        self._why_not_ready: Callable[[], str] = lambda: STARTING

    def watch(self, patience_s: float, turned_ns: Callable[[], int] | None = None) -> None:
        """Take it that the loop does not turn any more where its last turn is longer ago than
        `patience_s`. `turned_ns`: when that was, 0 = it has not begun; without it `turned` is
        called in each turn."""
        self._turn_ns = self._clock_ns()
        if turned_ns is not None:
            self._turned_ns = turned_ns
        self._patience_ns = int(patience_s * NS_PER_S)

    def turned(self) -> None:
        """Note a turn of the loop."""
        self._turn_ns = self._clock_ns()

    def turning(self, stop: Callable[[], bool]) -> Callable[[], bool]:
        """Return `stop` for a loop that asks it in each turn, and in each wait for a broker: who
        asks has turned."""

        def asked() -> bool:
            self.turned()
            return stop()

        return asked

    def ready_when(self, why_not: Callable[[], str]) -> None:
        """Ask `why_not` from now on, from any thread: "" = it serves."""
        self._why_not_ready = why_not

    def why_not_alive(self) -> str:
        """Return why the process is to be started again, "" = it lives."""
        if not self._patience_ns:
            return ""
        turned_ns = self._turned_ns()
        since_ns = self._clock_ns() - turned_ns
        if not turned_ns or since_ns <= self._patience_ns:
            return ""
        return f"its loop has not turned for {since_ns / NS_PER_S:.0f} s"

    def why_not_ready(self) -> str:
        """Return why nobody is to be sent here, "" = it serves."""
        return self.why_not_alive() or self._why_not_ready()
