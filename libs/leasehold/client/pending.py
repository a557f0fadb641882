"""A request that was sent and whose outcome may not be known yet."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from enum import StrEnum
from typing import Final

from leasehold.model.errors import OutcomeUnknown, QueryCanceled
from leasehold.model.ids import format_request_id
from leasehold.model.records.requests import OnConflict, Outcome

RESULT_TIMEOUT_S: Final = 30.0
LOOK_S: Final = 0.05


def waited_for(
    wait: Callable[[float], bool], stopped: Callable[[], bool], timeout_s: float, what: str
) -> bool:
    """Did it come in time? `wait(seconds)` tells whether it has. Raises QueryCanceled once
    `stopped`, which is asked every `LOOK_S`."""
    end_s = time.monotonic() + timeout_s
    while not wait(min(LOOK_S, max(end_s - time.monotonic(), 0.0))):
        if stopped():
            raise QueryCanceled(f"the statement that has waited for {what} was ended")
        if time.monotonic() >= end_s:
            return False
    return True


class RequestStatus(StrEnum):
    WAITING = "waiting"
    COMMITTED = "committed"
    REFUSED = "refused"
    DEAD_LETTERED = "dead-lettered"
    UNKNOWN = "unknown"  # T5: it may have been applied, now or later; asking again tells


def status_of(outcome: Outcome) -> RequestStatus:
    if outcome.lsn > 0:
        return RequestStatus.COMMITTED
    return RequestStatus.DEAD_LETTERED if outcome.dead_lettered else RequestStatus.REFUSED


class Pending:
    """The outcome of one request, once it is known. Made by `ChangeProducer.submit`.

    `status`, `outcome` and `trouble` (why nothing is known) may be read at any time.
    """

    __slots__ = (
        "_ask",
        "_lock",
        "_settled",
        "_soon",
        "asked_ns",
        "attempt",
        "body",
        "content_type",
        "on_conflict",
        "outcome",
        "request_id",
        "status",
        "trouble",
    )

    def __init__(
        self,
        request_id: bytes,
        content_type: str,
        body: bytes,
        on_conflict: OnConflict,
        attempt: int,
        lock: threading.Lock,
        ask: Callable[[Pending], None],
    ) -> None:
        self.request_id = request_id
        self.content_type = content_type
        self.body = body
        self.on_conflict = on_conflict
        self.attempt = attempt
        self.status = RequestStatus.WAITING
        self.outcome: Outcome | None = None
        self.trouble = ""
        self.asked_ns = 0
        self._lock = lock
        self._ask = ask
        # Made only for those who wait: most requests of a bulk load are never waited for singly.
        self._settled: threading.Event | None = None
        self._soon: list[Callable[[], None]] = []

    def result(self, timeout_s: float = RESULT_TIMEOUT_S, waited_s: float = 0.0) -> Outcome:
        """The outcome: committed at `outcome.lsn`, or refused (`lsn` 0) with code and message.
        `waited_s`: how long it has been waited for already.

        Raises OutcomeUnknown (08007) when it is not known in time, which says nothing about what
        happened; `ask_again()` and another `result()` tell (T5).
        """
        with self._lock:
            if self.outcome is not None:
                return self.outcome
            if self.status is RequestStatus.UNKNOWN:
                raise self._unknown()
            if self._settled is None:
                self._settled = threading.Event()
            settled = self._settled
        settled.wait(timeout_s)
        with self._lock:
            outcome = self._known()
            if outcome is not None:
                return outcome
            if not self.trouble:
                self.trouble = f"no answer in {waited_s + timeout_s:.3g} s"
            raise self._unknown()

    def result_unless(self, stopped: Callable[[], bool], timeout_s: float) -> Outcome:
        """Return the outcome as `result` does. Raises QueryCanceled once `stopped`, which is asked
        every `LOOK_S`, returns true: what becomes of the request then nobody here learns."""
        settled = threading.Event()
        self.when_settled(settled.set)
        waited_for(settled.wait, stopped, timeout_s, "it")
        return self.result(0.0, timeout_s)

    def when_settled(self, soon: Callable[[], None]) -> None:
        """Call `soon` once the outcome is known, or counts as unknown: at once, or by the
        producer's thread, which it must not hold up."""
        with self._lock:
            if self.status is RequestStatus.WAITING:
                self._soon.append(soon)
                return
        soon()

    def ask_again(self) -> Pending:
        """Send the same request under the same id: its outcome is given again, and nothing is
        applied a second time (L5). Returns itself."""
        self._ask(self)
        return self

    def _known(self) -> Outcome | None:
        return self.outcome

    def _unknown(self) -> OutcomeUnknown:
        name = format_request_id(self.request_id)
        return OutcomeUnknown(
            f"the outcome of request {name} is not known ({self.trouble}): it may have been "
            "applied; ask again under the same id",
            request_id=name,
        )

    def settle(self, status: RequestStatus, outcome: Outcome | None, trouble: str = "") -> None:
        """Called by the producer, which holds the lock."""
        self.status = status
        self.outcome = outcome
        self.trouble = trouble
        if self._settled is not None:
            self._settled.set()
        soon, self._soon = self._soon, []
        for call in soon:
            call()

    def reopen(self, now_ns: int) -> None:
        """Called by the producer, which holds the lock: it is asked (again) from now on."""
        self.status = RequestStatus.WAITING
        self.trouble = ""
        self.asked_ns = now_ns
        self._settled = None

    def __repr__(self) -> str:
        return f"<request {format_request_id(self.request_id)}: {self.status.value}>"
