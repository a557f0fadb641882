"""Barriers: a place in the log behind all that was answered before (T6), which the master gives.

A master of an earlier release knows no such request. For as long as it is master a barrier is
appended here, as that release's replicas do; it takes the right to write to the log.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from leasehold.adapters.os.clock import new_request_id
from leasehold.client.change_producer import ChangeProducer
from leasehold.client.pending import Pending
from leasehold.model.errors import BusUnavailable, MalformedRequest, OutcomeUnknown
from leasehold.model.records.log import Barrier, CheckSlice
from leasehold.model.records.requests import BarrierRequest, ChangeRequest, OnConflict, Outcome
from leasehold.replication.fast_path.log import Term
from leasehold.settings.client import ClientSettings

APPEND_TIMEOUT_S: Final = 10.0
ASK_AGAIN_S: Final = 2.0
"""Longest that an answer is waited for: a master that ended before it gave it told nobody else."""
ASKS_MAX: Final = 5
PLACES_UNKNOWN_MAX: Final = 3
"""Barriers in a row that the broker has taken and can't say where: each takes a batch that was sent
again so late that the broker had forgotten the first one."""


def ask_check(
    settings: ClientSettings,
    check: int | None,
    repair: str = "",
    part: CheckSlice | None = None,
) -> bytes:
    """Ask every node for a check, wait until the log has it, and return the subject of the reports.
    `check`: table id, -1 every table; `repair`: the node that is to repair that table; `part`: the
    slice to check. Raises BusUnavailable, OutcomeUnknown, and what the master refuses it with."""
    asked = BarrierRequest(check, repair, part)
    request_id = new_request_id()
    with ChangeProducer(settings) as changes:
        outcome = ask(changes.submit, asked, request_id)
    if not is_of_older_master(outcome):
        _check_passed(outcome)
        return request_id
    barriers = AppendedBarriers(settings)
    try:
        barriers.put(Barrier(request_id, *asked))
    finally:
        barriers.close()
    return request_id


def ask(
    submit: Callable[[ChangeRequest], Pending], asked: BarrierRequest, request_id: bytes
) -> Outcome:
    """Return the master's answer. Raises OutcomeUnknown, BusUnavailable."""
    pending = submit(ChangeRequest(request_id, on_conflict=OnConflict.FAIL, barrier=asked))
    for _ in range(ASKS_MAX - 1):
        try:
            return pending.result(ASK_AGAIN_S)
        except OutcomeUnknown:
            pending.ask_again()
    return pending.result(ASK_AGAIN_S)


def is_of_older_master(outcome: Outcome) -> bool:
    """Return whether a master refused it that does not know such requests."""
    return outcome.code == MalformedRequest.sqlstate


def _check_passed(outcome: Outcome) -> None:
    """Raise BusUnavailable unless the master has let it pass."""
    if outcome.code:
        raise BusUnavailable(f"the master refused a barrier: {outcome.message}")


class AppendsBarriers(Protocol):
    """Appends barriers, as `AppendedBarriers` does."""

    def append(self) -> int: ...
    def close(self) -> None: ...


class Barriers:
    """Passes barriers, one after the other. Each returns what a node has to have seen."""

    def __init__(
        self,
        submit: Callable[[ChangeRequest], Pending],
        term: Callable[[], Term],
        appends: Callable[[], AppendsBarriers],
        sees_below: Callable[[int], bool],
        has_committed: Callable[[int], bool],
    ) -> None:
        """Begin. `submit` sends a request, `term` is that of the node, `appends` makes what appends
        barriers; the last two are the node's own (`replication/node.py`)."""
        self._submit = submit
        self._term = term
        self._make_appends = appends
        self._appends: AppendsBarriers | None = None
        self._sees_below = sees_below
        self._has_committed = has_committed
        self._older: Term | None = None

    def ask(self) -> Callable[[], bool]:
        """Return whether this node has read all that was answered before the call, as a question to
        be asked until it has. Raises BusUnavailable."""
        term = self._term()
        if term != self._older:
            try:
                outcome = ask(self._submit, BarrierRequest(), new_request_id())
            except OutcomeUnknown as error:
                raise BusUnavailable(
                    f"no master has answered a barrier in {ASKS_MAX * ASK_AGAIN_S:g} s; see"
                    " `leasehold status`"
                ) from error
            if not is_of_older_master(outcome):
                _check_passed(outcome)
                return partial(self._sees_below, outcome.lsn)
            self._older = term
        if self._appends is None:
            self._appends = self._make_appends()
        return partial(self._has_committed, self._appends.append())

    def close(self) -> None:
        if self._appends is not None:
            self._appends.close()


class AppendedBarriers:
    """Appends barriers to the log, one after the other."""

    def __init__(self, settings: ClientSettings) -> None:
        from leasehold.adapters.kafka.writer import TopicWriter

        self._log = settings.topics.log.name
        self._writer = TopicWriter(
            settings.kafka, "leasehold-barrier", delivery_timeout_ms=9_000, topic=self._log
        )

    def append(self) -> int:
        """Append a barrier, and return its offset in the log, which has it now. Raises
        BusUnavailable.

        ⚠ T6: one that stands nobody knows where is none: a node would wait for nothing. Any later
        one serves as well."""
        for _ in range(PLACES_UNKNOWN_MAX):
            offset = self.put(Barrier(new_request_id()))
            if offset >= 0:
                return offset
        raise BusUnavailable("Kafka took the barrier into the log and does not know where")

    def put(self, barrier: Barrier) -> int:
        """Append this barrier, and return its offset in the log, which has it now; -1: the broker
        no longer knows. Raises BusUnavailable."""
        from leasehold.adapters.codec.records import MessagePackCodec

        self._writer.deliveries()  # of one that was not waited for any longer
        data = MessagePackCodec().encode(barrier)
        self._writer.send(self._log, 0, None, data, token=barrier.id)
        self._writer.flush(APPEND_TIMEOUT_S)
        told = [delivery for delivery in self._writer.deliveries() if delivery.token == barrier.id]
        if not told or told[0].error is not None:
            why = told[0].error if told else f"no confirmation in {APPEND_TIMEOUT_S:g} s"
            raise BusUnavailable(f"Kafka did not take the barrier into the log: {why}")
        return told[0].offset

    def close(self) -> None:
        self._writer.close(0)
