"""The audit log of a process: events wait in a bounded queue for a thread that writes them down.

Whoever has an event waits for nothing. What finds no room, or can't be written, is counted; that is
said in the process's own log, and in the audit log itself once it can be written again.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from leasehold.adapters.audit.lines import encode_line
from leasehold.adapters.audit.repeats import Repeats
from leasehold.adapters.os.clock import boottime_ns, unix_us
from leasehold.model.audit import Audited, AuditEvent
from leasehold.model.errors import AuditUnavailable, LeaseholdError

QUEUED_MAX: Final = 10_000
LINES_AT_ONCE_MAX: Final = 500
POLL_S: Final = 0.1
REPEATS_S: Final = 1.0
SAY_EVERY_NS: Final = 60_000_000_000
CLOSE_S: Final = 5.0
LOG: Final = logging.getLogger("leasehold.audit")


class AuditPlace(Protocol):
    """A place where lines are written: a file, a topic."""

    def write(self, lines: Sequence[bytes]) -> None:
        """Raises OSError."""
        ...

    @property
    def waits(self) -> bool:
        """Whether it will be known later what became of some of them."""
        ...

    def poll(self) -> int:
        """Return how many lines were lost since the last call, of those that waited."""
        ...

    @property
    def why(self) -> str:
        """Return by what the last ones of those were lost."""
        ...

    def close(self) -> None: ...


class AuditWriter:
    """An `AuditLog`. `required`: while an event may be lost, `record` raises AuditUnavailable; the
    event is written all the same, as soon as that can be done."""

    def __init__(
        self,
        node: str,
        places: Sequence[AuditPlace],
        *,
        required: bool = False,
        queued_max: int = QUEUED_MAX,
        clock_us: Callable[[], int] = unix_us,
    ) -> None:
        assert places, "else nobody reads what is recorded"
        self._node = node
        self._places = places
        self._required = required
        self._queued_max = queued_max
        self._clock_us = clock_us
        self._changed = threading.Condition()
        self._queue: deque[bytes] = deque()
        self._repeats = Repeats()
        self._lost = 0  # since it was written down last
        self._said_ns = -SAY_EVERY_NS
        self._why = ""
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="leasehold-audit", daemon=True)
        self._thread.start()

    @property
    def why(self) -> str:
        """Return why events are lost at the moment; "" where none are."""
        return self._why

    def record(self, event: AuditEvent) -> None:
        with self._changed:
            if self._closed:
                return
            self._put(self._repeats.take(event, boottime_ns()))
            why = self._why
        if self._required and why:
            raise AuditUnavailable(
                f"the audit log takes no event ({why}), and LEASEHOLD_AUDIT_REQUIRED says that"
                " nothing happens without a trace; see the log of this process"
            )

    def _put(self, events: Sequence[AuditEvent]) -> None:
        """Queue events as lines of now. The lock is held."""
        for event in events:
            if len(self._queue) >= self._queued_max:
                self._lose(event.times, f"{self._queued_max} events wait already")
            else:
                self._queue.append(encode_line(event, self._node, self._clock_us()))
        if events:
            self._changed.notify()

    def close(self) -> None:
        """Write what waits, for some seconds at most."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(CLOSE_S)

    # ------------------------------------------------------------ the thread

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._queue and not self._closed:
                    self._changed.wait(self._wait_s())
                self._put(self._repeats.due(boottime_ns(), all_of_them=self._closed))
                lines = [
                    self._queue.popleft() for _ in range(min(len(self._queue), LINES_AT_ONCE_MAX))
                ]
                if not lines and self._closed:
                    break
            self._write(lines)
        for place in self._places:
            place.close()

    def _wait_s(self) -> float | None:
        """Return how long nothing need be looked at; None: until something comes."""
        if any(place.waits for place in self._places):
            return POLL_S
        return REPEATS_S if self._repeats else None

    def _write(self, lines: list[bytes]) -> None:
        lost, why = 0, ""
        for place in self._places:
            try:
                if lines:
                    place.write(lines)
            except (OSError, LeaseholdError) as error:
                lost, why = max(lost, len(lines)), str(error)
            failed = place.poll()
            if failed:
                lost, why = max(lost, failed), place.why
        with self._changed:
            if lost:
                self._lose(lost, why)
            elif lines:
                self._recover()

    def _lose(self, lines: int, why: str) -> None:
        """Count lines that are not written everywhere. The lock is held."""
        self._lost += lines
        self._why = why
        now_ns = boottime_ns()
        if now_ns - self._said_ns >= SAY_EVERY_NS:
            self._said_ns = now_ns
            LOG.error("%d events of the audit log are lost so far: %s", self._lost, why)

    def _recover(self) -> None:
        """Write down how many were lost. The lock is held."""
        self._why = ""
        if self._lost and len(self._queue) < self._queued_max:
            event = AuditEvent(Audited.LOST, words="events of this node", times=self._lost)
            self._queue.append(encode_line(event, self._node, self._clock_us()))
            LOG.warning("the audit log is written again; %d events of it are lost", self._lost)
            self._lost = 0
            self._said_ns = -SAY_EVERY_NS
