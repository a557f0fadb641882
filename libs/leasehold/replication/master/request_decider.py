"""Takes requests from their queue and has a batch decide them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from leasehold.catalog.access import check_group
from leasehold.catalog.catalog import Catalog
from leasehold.catalog.roles import STEER_JOBS
from leasehold.lease.master.lock_fences import FenceStatus
from leasehold.model import metrics
from leasehold.model.budget import close_budget, open_budget, spending
from leasehold.model.errors import AdvisoryLockLost, InsufficientPrivilege, Refused, VerifyError
from leasehold.model.features import Feature
from leasehold.model.ids import OPERATIONS_PER_COMMIT_MAX
from leasehold.model.measures import Measures
from leasehold.model.ports import Now
from leasehold.model.records.requests import BarrierRequest, ChangeRequest, Queue
from leasehold.model.time_units import NS_PER_MS, NS_PER_S
from leasehold.replication.disk_room import DiskRoom
from leasehold.replication.effects import NOWHERE, QueueRead
from leasehold.replication.log.clock import LogClock
from leasehold.replication.master.attempts import Attempts, no_master_survives
from leasehold.replication.master.batch import NOTHING_MADE, Batch, Made
from leasehold.replication.master.batch_limits import BatchSettings
from leasehold.replication.master.large_request import WORK_MS_MAX, OversizedRequest
from leasehold.replication.master.record_draft import Full
from leasehold.replication.master.refusals import internal_failure
from leasehold.replication.master.request_budget import RequestBudget, WorkExceeded
from leasehold.replication.master.request_queue import RequestQueue
from leasehold.replication.master.request_traces import RequestTraces
from leasehold.replication.master.schema_changes import Decision, SchemaChanges

_REQUESTS: Final = Queue.REQUESTS  # a member of an enum costs as much as a call
_WORK_NS_MAX: Final = WORK_MS_MAX * NS_PER_MS


class RequestDecider:
    """Decides in the order of the queue; a request leaves it only when it is decided.

    The first message of the queue in this term has a record of its own, once the log says so (L10).
    While a request is read or verified over several turns, nothing else is decided."""

    def __init__(
        self,
        queue: RequestQueue,
        attempts: Attempts,
        changes: SchemaChanges,
        catalog: Catalog,
        log_clock: LogClock,
        settings: BatchSettings,
        clock_ns: Callable[[], int],
        measures: Measures,
        disk: DiskRoom,
        traces: RequestTraces,
    ) -> None:
        """Begin without a request. `clock_ns`: see `Node`."""
        self._disk = disk
        self._traces = traces
        self._measures = measures
        self._arrived_ns = 0  # of those that were decided last
        self._alike = 0  # so many of them have arrived together, and are not counted yet
        self._queue = queue
        self._attempts = attempts
        self._changes = changes
        self._catalog = catalog
        self._log_clock = log_clock
        self._settings = settings
        self._clock_ns = clock_ns
        self._budget = RequestBudget()
        self._large: OversizedRequest | None = None
        self.taken_ns: int | None = None
        """When a request was last taken, by the host's monotonic clock."""

    # ------------------------------------------------------------ while a record travels

    def read_ahead(self, is_over: Callable[[], bool]) -> None:
        if self.may_read_ahead():
            self._queue.read_ahead(self._settings.requests_max, is_over)

    def may_read_ahead(self) -> bool:
        if self._attempts.is_alone(_REQUESTS):
            return False  # L10: nothing is looked into before the log says so
        return self._queue.may_read_ahead(self._settings.requests_max)

    # ------------------------------------------------------------ a large request

    @property
    def verifies_large(self) -> bool:
        return self._large is not None

    @property
    def goes_on(self) -> bool:
        """Whether a request is read or verified in part."""
        return self._large is not None or self._queue.is_reading

    def verify_large(self) -> OversizedRequest | None:
        """Verify some rows more; return the request when all is known of it."""
        large = self._large
        if large is None:
            return None
        with spending(self._budget):
            if large.goes_on(self._clock_ns, self._clock_ns() + _WORK_NS_MAX):
                return None
        self._large = None
        return large

    def settle_large(self, large: OversizedRequest, batch: Batch, now: Now) -> None:
        large.settle(batch)
        self._pop(now)
        self._count_waits(now)

    def _pop(self, now: Now) -> None:
        """Take the oldest message out, which is decided. Those that came in one turn have waited
        equally long, and are counted in one go."""
        taken = self._queue.pop()
        self._traces.decided(taken, now.mono_ns)
        arrived_ns = taken.arrived_ns
        if arrived_ns != self._arrived_ns:
            self._count_waits(now)
            self._arrived_ns = arrived_ns
        self._alike += 1

    def _count_waits(self, now: Now) -> None:
        if self._alike:
            waited_ns = now.mono_ns - self._arrived_ns
            self._measures.observe(
                metrics.QUEUE_S, waited_ns / NS_PER_S, metrics.NO_LABELS, self._alike
            )
            self._alike = 0

    def drop_large(self) -> None:
        self._large = None

    def _decide_rows(
        self,
        batch: Batch,
        message: QueueRead,
        request: ChangeRequest,
        until_ns: int,
        now: Now,
        made: Made = NOTHING_MADE,
        catalog: Catalog | None = None,
    ) -> None:
        """Decide the rows of a request, unless that takes longer than until then: in turns of its
        own it may take its time. Raises Full."""
        catalog = self._catalog if catalog is None else catalog
        operations, settings = len(request.operations), self._settings
        is_large = operations > settings.large_operations
        if is_large and not batch.draft.is_empty:
            raise Full  # it has a record of its own
        self._budget.begin_request()
        slices = batch.verify_slices(message, request, made, catalog)
        rows_max = max(1, settings.slice_operations) if is_large else OPERATIONS_PER_COMMIT_MAX
        lsn = batch.draft.next_lsn
        large = OversizedRequest(
            message, request, made, catalog, now.wall_us, lsn, slices, rows_max, self._budget
        )
        if not is_large and not large.goes_on(self._clock_ns, until_ns):
            large.settle(batch)
            return
        if batch.draft.is_empty:
            self._large = large
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
        until_ns = clock_ns() + _WORK_NS_MAX
        token = open_budget(self._budget)
        try:
            while queue and draft.requests_taken < requests_max and not draft.closed:
                if alone and queue.next().offset != NOWHERE:
                    self._take_alone(batch, queue.next(), until_ns, now)
                    return
                operations += self._take_next(batch, until_ns, now)
                draft.requests_taken += 1
                if operations >= operations_max or clock_ns() >= until_ns:
                    break
        finally:
            close_budget(token)
            self._count_waits(now)

    def _take_next(self, batch: Batch, until_ns: int, now: Now) -> int:
        """Decide the next request; return how many operations it has. Raises Full."""
        queue = self._queue
        if not queue.first_is_read and not queue.read_first(lambda: self._clock_ns() >= until_ns):
            raise Full  # it takes long to read
        message, decoded = queue.first()
        request = batch.open(message, decoded)
        operations = 0
        if request is not None:
            operations = len(request.operations)
            lost = self._lost_lock(request)
            if lost is not None:
                batch.refuse(message, request, lost)
            elif (no_room := self._disk.check_rows(request)) is not None:
                batch.refuse(message, request, no_room)
            elif request.notifications and (unread := self._unread_notifications(now)):
                batch.refuse(message, request, unread)
            elif request.reset_clock:
                self._reset_clock(batch, message, request)
            elif request.feature_level:
                self._finalize(batch, message, request, now)
            elif request.barrier is not None:
                self._pass_barrier(batch, message, request, request.barrier)
            elif request.sql is not None or request.control is not None or request.releases:
                self._decide_schema_change(batch, message, request, until_ns, now)
            elif operations == 1 and not self._catalog.has_actions:
                self._budget.begin_request()
                batch.decide(message, request)
                self._budget.pause()
            else:
                self._decide_rows(batch, message, request, until_ns, now)
        self._pop(now)
        return operations

    def _lost_lock(self, request: ChangeRequest) -> Refused | None:
        """Return why a request comes too late that was sent under an advisory lock (D10), None for
        any other."""
        if request.fence is None:
            return None
        match self._changes.coordinator.judge_fence(request.fence):
            case FenceStatus.HELD:
                return None
            case FenceStatus.LOST:
                return AdvisoryLockLost(
                    "an advisory lock of this transaction was lost before its commit: its node was"
                    " cut off from the ledger for longer than its lease, or the ledger has lost its"
                    " state; nothing was written"
                )
        return VerifyError(
            "could not serialize access: a new master does not know yet whether the advisory locks"
            " of this transaction still stand; run it again"
        )

    def _unread_notifications(self, now: Now) -> Refused | None:
        """Return why notifications can't be in the log yet: somebody would stop at them."""
        try:
            self._changes.features.check_written(Feature.NOTIFICATIONS, now.mono_ns)
        except Refused as error:
            return error
        return None

    def _decide_schema_change(
        self, batch: Batch, message: QueueRead, request: ChangeRequest, until_ns: int, now: Now
    ) -> None:
        """Raises Full."""
        if len(request.operations) > self._settings.large_operations and not batch.draft.is_empty:
            raise Full  # it has a record of its own
        self._budget.begin_request()
        try:
            decision = self._changes.decide(request, now, self._actor_of(request))
        except Refused as error:
            batch.refuse(message, request, error)
            return
        except WorkExceeded as exceeded:
            batch.refuse(message, request, exceeded.as_refusal())
            return
        except Exception as error:  # noqa: BLE001 - planning changes nothing
            batch.refuse(message, request, internal_failure(error))
            return
        finally:
            self._budget.pause()
        request = _with_opening(request, decision)
        if request.operations or decision.demanded:
            made = _made(decision)
            self._decide_rows(batch, message, request, until_ns, now, made, decision.catalog)
        else:
            batch.write_catalog(decision.writes, message, request, decision.answer)

    def _actor_of(self, request: ChangeRequest) -> int:
        """Return the role whose rights the request has. Raises NotAuthentic,
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

    def _finalize(self, batch: Batch, message: QueueRead, request: ChangeRequest, now: Now) -> None:
        """Let a superuser finalize the database, where all who read the log read what it permits.
        Raises Full."""
        features = self._changes.features
        try:
            if not self._catalog.access.roles.is_superuser(self._actor_of(request)):
                raise InsufficientPrivilege("must be superuser to finalize an upgrade")
            features.check_finalizes(request.feature_level, now.mono_ns)
        except Refused as error:
            batch.refuse(message, request, error)
            return
        batch.finalize(message, request, features.level)

    # ------------------------------------------------------------ the first of a term

    def _take_alone(self, batch: Batch, message: QueueRead, until_ns: int, now: Now) -> None:
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
            self._refuse_attempted(batch, message, now)
        else:
            self._take_next(batch, until_ns, now)
        draft.requests_taken += 1
        draft.closed = True

    def _refuse_attempted(self, batch: Batch, message: QueueRead, now: Now) -> None:
        """Read it to know who waits for an answer, unless that has ended a master, too."""
        attempts, offset = self._attempts, message.offset
        error = no_master_survives(attempts.lost_over(_REQUESTS, offset))
        if attempts.is_refused_unread(_REQUESTS, offset):
            batch.dead_letter(message, error)
        else:
            request = batch.open(*self._queue.first())
            if request is not None:
                batch.dead_letter(message, error, request)
        self._pop(now)


def _made(decision: Decision) -> Made:
    opening = len(decision.opening)
    return Made(decision.writes, decision.answer, decision.empty, opening, decision.demanded)


def _with_opening(request: ChangeRequest, decision: Decision) -> ChangeRequest:
    if not decision.opening:
        return request
    return request._replace(operations=(*decision.opening, *request.operations))
