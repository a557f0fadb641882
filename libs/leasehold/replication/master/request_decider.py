"""Takes requests from their queue and has a batch decide them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from leasehold.catalog.access import check_group
from leasehold.catalog.catalog import Catalog
from leasehold.catalog.roles import STEER_JOBS
from leasehold.model.errors import InsufficientPrivilege, Refused
from leasehold.model.ports import Now
from leasehold.model.records.requests import BarrierRequest, ChangeRequest, Queue
from leasehold.model.time_units import NS_PER_MS
from leasehold.replication.effects import NOWHERE, QueueRead
from leasehold.replication.log.clock import LogClock
from leasehold.replication.master.attempts import Attempts, no_master_survives
from leasehold.replication.master.batch import NOTHING_MADE, Batch, Made
from leasehold.replication.master.batch_limits import LOOK_OPERATIONS, BatchSettings
from leasehold.replication.master.large_request import WORK_MS_MAX, OversizedRequest
from leasehold.replication.master.record_draft import Full
from leasehold.replication.master.refusals import internal_failure
from leasehold.replication.master.request_queue import RequestQueue
from leasehold.replication.master.schema_changes import Decision, SchemaChanges

_REQUESTS: Final = Queue.REQUESTS  # a member of an enum costs as much as a call


class RequestDecider:
    """Decides in the order of the queue; a request leaves it only when it is decided.

    The first message of the queue in this term has a record of its own, once the log says so (L10).
    While a large request is verified, over several turns, nothing else is decided."""

    def __init__(
        self,
        queue: RequestQueue,
        attempts: Attempts,
        changes: SchemaChanges,
        catalog: Catalog,
        log_clock: LogClock,
        settings: BatchSettings,
        clock_ns: Callable[[], int],
    ) -> None:
        """Begin without a request. `clock_ns`: see `Node`."""
        self._queue = queue
        self._attempts = attempts
        self._changes = changes
        self._catalog = catalog
        self._log_clock = log_clock
        self._settings = settings
        self._clock_ns = clock_ns
        self._large: OversizedRequest | None = None
        self.taken_ns: int | None = None
        """When a request was last taken, by the host's monotonic clock."""

    # ------------------------------------------------------------ while a record travels

    def read_ahead(self) -> None:
        if self.may_read_ahead():
            self._queue.read_ahead(self._settings.requests_max)

    def may_read_ahead(self) -> bool:
        if self._attempts.is_alone(_REQUESTS):
            return False  # L10: nothing is looked into before the log says so
        return self._queue.may_read_ahead(self._settings.requests_max)

    # ------------------------------------------------------------ a large request

    @property
    def verifies_large(self) -> bool:
        return self._large is not None

    def verify_large(self) -> OversizedRequest | None:
        """Verify some slices more; return the request when all is known of it."""
        large = self._large
        if large is None or large.goes_on(self._clock_ns):
            return None
        self._large = None
        return large

    def settle_large(self, large: OversizedRequest, batch: Batch) -> None:
        large.settle(batch)
        self._queue.pop()

    def drop_large(self) -> None:
        self._large = None

    def _begin_large(
        self, batch: Batch, message: QueueRead, request: ChangeRequest, now: Now
    ) -> None:
        """Raises Full, unless it is refused for its DDL."""
        if not batch.draft.is_empty:
            raise Full  # it has a record of its own
        made, catalog = NOTHING_MADE, self._catalog
        if request.sql is not None:
            try:
                decision = self._changes.decide(request, now, self._actor_of(request))
            except Refused:
                return  # at once, as any
            catalog, request = decision.catalog, _with_opening(request, decision)
            made = _made(decision)
        slices = batch.verify_slices(request, made, catalog)
        slices_max = max(1, self._settings.slice_operations // LOOK_OPERATIONS)
        lsn = batch.draft.next_lsn
        self._large = OversizedRequest(
            message, request, made, catalog, now.wall_us, lsn, slices, slices_max
        )
        raise Full

    # ------------------------------------------------------------ requests

    def take(self, batch: Batch, now: Now) -> None:
        """Decide as many requests as can be in a moment, in a turn of the master's loop: while it
        decides, no heartbeat and no grant go out. Raises Full."""
        queue, settings, draft = self._queue, self._settings, batch.draft
        if not queue:
            return
        self.taken_ns = now.mono_ns
        alone = self._attempts.is_alone(_REQUESTS)
        requests_max = self._attempts.limit_requests(settings.requests_max)
        operations_max = settings.operations_max
        clock_ns, operations = self._clock_ns, 0
        until_ns = clock_ns() + WORK_MS_MAX * NS_PER_MS
        while queue and draft.requests_taken < requests_max and not draft.closed:
            if alone and queue.next().offset != NOWHERE:
                self._take_alone(batch, queue.next(), now)
                return
            operations += self._take_next(batch, now)
            draft.requests_taken += 1
            if operations >= operations_max or clock_ns() >= until_ns:
                break

    def _take_next(self, batch: Batch, now: Now) -> int:
        """Decide the next request; return how many operations it has. Raises Full."""
        message, decoded = self._queue.first()
        request = batch.open(message, decoded)
        operations = 0
        if request is not None:
            operations = len(request.operations)
            if operations > self._settings.large_operations:
                self._begin_large(batch, message, request, now)
            if request.reset_clock:
                self._reset_clock(batch, message, request)
            elif request.barrier is not None:
                self._pass_barrier(batch, message, request, request.barrier)
            elif request.sql is None and request.control is None:
                batch.decide(message, request)
            else:
                self._decide_schema_change(batch, message, request, now)
        self._queue.pop()
        return operations

    def _decide_schema_change(
        self, batch: Batch, message: QueueRead, request: ChangeRequest, now: Now
    ) -> None:
        """Raises Full."""
        try:
            decision = self._changes.decide(request, now, self._actor_of(request))
        except Refused as error:
            batch.refuse(message, request, error)
            return
        except Exception as error:  # noqa: BLE001 - planning changes nothing
            batch.refuse(message, request, internal_failure(error))
            return
        request = _with_opening(request, decision)
        if request.operations:
            made = _made(decision)
            batch.decide(message, request, made, decision.catalog)
        else:
            batch.write_catalog(decision.writes, message, request, decision.answer)

    def _actor_of(self, request: ChangeRequest) -> int:
        """Return the role whose rights the request has. Raises InvalidPrincipal,
        InsufficientPrivilege."""
        return self._catalog.access.actor_of(request.principal, request.as_role)

    def _pass_barrier(
        self, batch: Batch, message: QueueRead, request: ChangeRequest, asked: BarrierRequest
    ) -> None:
        """Let whoever may log in have a barrier, and who steers jobs have stores checked: each node
        reads all of its rows for it. Raises Full."""
        try:
            actor = self._actor_of(request)
            if asked.check is not None:
                check_group(self._catalog.access, actor, STEER_JOBS, "check the stores of nodes")
        except Refused as error:
            batch.refuse(message, request, error)
            return
        batch.pass_barrier(message, request)

    def _reset_clock(self, batch: Batch, message: QueueRead, request: ChangeRequest) -> None:
        """Raises Full."""
        try:
            if not self._catalog.access.roles.is_superuser(self._actor_of(request)):
                raise InsufficientPrivilege("must be superuser to set the log's clock back")
        except Refused as error:
            batch.refuse(message, request, error)
            return
        if not batch.draft.is_empty:
            raise Full  # its record begins with it
        batch.reset_clock(message, request, self._log_clock.reset())

    # ------------------------------------------------------------ the first of a term

    def _take_alone(self, batch: Batch, message: QueueRead, now: Now) -> None:
        """Decide the first message of the queue in this term, in a record of its own, once the log
        says so (L10). Raises Full."""
        attempts, offset, draft = self._attempts, message.offset, batch.draft
        if not attempts.is_said(_REQUESTS, offset):
            draft.attempts += attempts.say(_REQUESTS, offset)
            draft.closed = True
            return
        if not draft.is_empty:
            raise Full
        if attempts.is_refused(_REQUESTS, offset):
            self._refuse_attempted(batch, message)
        else:
            self._take_next(batch, now)
        draft.requests_taken += 1
        draft.closed = True

    def _refuse_attempted(self, batch: Batch, message: QueueRead) -> None:
        """Read it to know who waits for an answer, unless that has ended a master, too."""
        attempts, offset = self._attempts, message.offset
        error = no_master_survives(attempts.lost_over(_REQUESTS, offset))
        if attempts.is_refused_unread(_REQUESTS, offset):
            batch.dead_letter(message, error)
        else:
            request = batch.open(*self._queue.first())
            if request is not None:
                batch.dead_letter(message, error, request)
        self._queue.pop()


def _made(decision: Decision) -> Made:
    opening = len(decision.opening)
    return Made(decision.writes, decision.answer, decision.empty, opening)


def _with_opening(request: ChangeRequest, decision: Decision) -> ChangeRequest:
    if not decision.opening:
        return request
    return request._replace(operations=(*decision.opening, *request.operations))
