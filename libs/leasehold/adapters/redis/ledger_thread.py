"""A thread that talks to the ledger, so that a service's loop never waits for Redis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from queue import Full, Queue
from threading import Thread
from typing import Final, Protocol

from leasehold.adapters.os.clock import boottime_ns
from leasehold.lease.commands import Command
from leasehold.lease.replies import Reply
from leasehold.model import metrics
from leasehold.model.errors import LedgerUnavailable
from leasehold.model.measures import Measures
from leasehold.model.time_units import NS_PER_S

QUEUE_MAX: Final = 1_000
CLOSE_DEADLINE_S: Final = 10.0


class Ledger(Protocol):
    """RedisLedger or MemoryLedger."""

    def call(self, command: Command) -> Reply: ...


@dataclass(frozen=True, slots=True)
class Completed:
    """A call and what came of it. `outcome` is the reply, or why its outcome is unknown. Times are
    CLOCK_BOOTTIME."""

    token: object
    command: Command
    outcome: Reply | LedgerUnavailable
    sent_ns: int
    received_ns: int


class LedgerThread:
    """Calls in the order of submission. `completed` runs on this thread: let it only hand over
    (put on a queue, wake a loop), and never raise."""

    def __init__(
        self, ledger: Ledger, completed: Callable[[Completed], None], queue_max: int = QUEUE_MAX
    ) -> None:
        self._ledger = ledger
        self._completed = completed
        self._queue: Queue[tuple[Command, object] | None] = Queue(queue_max)
        self._closing = False
        self.is_away = False
        """Whether the last call was not answered."""
        self.measures = Measures()
        """What it counts, on its own thread."""
        self._thread = Thread(target=self._run, name="ledger", daemon=True)
        self._thread.start()

    def submit(self, command: Command, token: object) -> bool:
        """Queue a command. False means that the queue is full and nothing was taken; treat it as an
        unavailable ledger."""
        if self._closing:
            return False
        try:
            self._queue.put_nowait((command, token))
        except Full:
            return False
        return True

    def close(self) -> None:
        """Carry out what was submitted before, within CLOSE_DEADLINE_S, and end."""
        self._closing = True
        try:
            self._queue.put(None, timeout=CLOSE_DEADLINE_S)
        except Full:
            return  # Redis hangs: the thread is a daemon and ends with the process
        self._thread.join(CLOSE_DEADLINE_S)

    def _run(self) -> None:
        while (task := self._queue.get()) is not None:
            command, token = task
            sent_ns = boottime_ns()
            outcome: Reply | LedgerUnavailable
            became = "answered"
            try:
                outcome = self._ledger.call(command)
            except LedgerUnavailable as error:
                outcome, became = error, "unavailable"
            received_ns = boottime_ns()
            self.is_away = became != "answered"
            self.measures.add(metrics.LEDGER_CALLS, 1, (became,))
            self.measures.observe(metrics.LEDGER_S, (received_ns - sent_ns) / NS_PER_S)
            self._completed(Completed(token, command, outcome, sent_ns, received_ns))
