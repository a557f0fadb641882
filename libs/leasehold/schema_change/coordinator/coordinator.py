"""The master's driver of schema changes: what the log says is to be done next, and nothing else.

Made at the read-back of a Claim and dropped with the epoch. What it remembers (calls under way,
back-off, reports) may be lost at any moment: the next master's coordinator begins from the catalog
alone. The order of each step is D2 and D5: intent in the log, the ledger's publish, the descriptor
in the log, drained, `min_version` in the log; see DESIGN.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.job import Hold, Job, Phase, Status
from leasehold.lease.commands import (
    HOLDERS_MAX,
    Change,
    Command,
    ExpireAgent,
    Holders,
    Publish,
    SetMinVersion,
)
from leasehold.lease.master.lock_fences import FenceStatus
from leasehold.lease.replies import (
    HolderList,
    Holding,
    LedgerRefused,
    MinVersionSet,
    Published,
    RefusalReason,
    Reply,
)
from leasehold.model.errors import LedgerUnavailable
from leasehold.model.ports import Now
from leasehold.model.records.log import (
    CatalogWrite,
    DescriptorWrite,
    JobWrite,
    LedgerRun,
    MinVersion,
)
from leasehold.model.records.requests import LockFence
from leasehold.model.time_units import NS_PER_MS, NS_PER_US, US_PER_MS
from leasehold.schema_change.coordinator.due_jobs import DueJobs
from leasehold.schema_change.coordinator.effects import (
    Call,
    CatalogChanged,
    CoherentNodes,
    Confirmed,
    Controlled,
    Effect,
    Event,
    LeaseAcked,
    LedgerReplied,
    Reported,
    Tick,
    Wake,
    Write,
)
from leasehold.schema_change.coordinator.job_state import JobMemory, find_place
from leasehold.schema_change.coordinator.ledger import LedgerSide, LedgerSideSettings, Wanted
from leasehold.schema_change.coordinator.sliced_verification import VerificationWalk, WalkSettings
from leasehold.schema_change.coordinator.step_work import (
    RangeProgress,
    StepWork,
    TableHolders,
    WorkSettings,
)
from leasehold.schema_change.job.control import control
from leasehold.schema_change.job.next_versions import find_moving, next_descriptors
from leasehold.schema_change.job.renamed_schema import SchemaNamed
from leasehold.schema_change.job.transitions import (
    record_fenced,
    record_published,
    record_ready,
    turn_back,
)

# ⚠ A ledger that forgot (D6) between a publish and the descriptor's commit was seeded from a log
# without it: it refuses leases on the new version, and those on the old one never end.
POLLS_BEFORE_PUBLISHING_AGAIN: Final = 8


@dataclass(frozen=True, slots=True)
class CoordinatorSettings:
    """Polls that wait for leases to end come after a quarter of the time waited so far, at least
    `poll_ms` and at most `poll_max_ms`; the acknowledgement of an agent whose lease was in use
    cuts it short. Who is in the way is asked for by name when it has been for `names_after_ms`. For
    its transaction's COMMIT a job waits `held_ms`."""

    poll_ms: int = 2
    poll_max_ms: int = 500
    names_after_ms: int = 100
    held_ms: int = 60_000
    ledger_retry_ms: int = 200
    verification_ms: int = 60_000
    verifications_max: int = 5
    walk: WalkSettings = field(default_factory=WalkSettings)
    ledger: LedgerSideSettings = field(default_factory=LedgerSideSettings)


class Sent(NamedTuple):
    """A call under way; job 0: the ledger side's own."""

    job_id: int
    command: Command
    at_ns: int


class Coordinator:
    """The driver of all jobs. `blockers` and `waiting_for` say, for people, what each job waits for
    now."""

    def __init__(
        self,
        catalog: Catalog,
        epoch: int,
        node: str = "master",
        settings: CoordinatorSettings | None = None,
        is_empty: Callable[[int], bool] = lambda table_id: False,
        rows_about: Callable[[int], int] = lambda table_id: -1,
        users: Callable[[], bool] = lambda: False,
    ) -> None:
        """Take up the jobs of `catalog`, which is the node's own and changes under it. `node` is
        the master itself. `is_empty`: whether a table has no row in the master's store now;
        `rows_about`: how many rows it has, -1 = not known; `users`: whether some write now."""
        self._catalog = catalog
        self._epoch = epoch
        self._settings = settings or CoordinatorSettings()
        self._memories: dict[int, JobMemory] = {}
        self._due = DueJobs(catalog)
        self._walk = VerificationWalk(catalog, self._settings.walk, rows_about, users)
        work = WorkSettings(self._settings.verification_ms, self._settings.verifications_max)
        self._step_work = StepWork(node, catalog, self._walk, work, is_empty)
        self._calls: dict[int, Sent] = {}  # by token
        self._token = 0
        self.ledger = LedgerSide(catalog, epoch, self._settings.ledger)

    def follow_ranges(self, ranges: RangeProgress) -> None:
        """Fill by range from here on, where `ranges` says that all nodes know that."""
        self._step_work.ranges = ranges

    def follow_holders(self, holders: TableHolders) -> None:
        """Ask from here on those nodes alone about a table that `holders` says have all of it."""
        self._step_work.holders = holders

    # ------------------------------------------------------------ for people

    def blockers(self, job_id: int) -> tuple[Holding, ...]:
        """Leases that a job waits for, as the ledger named them last."""
        memory = self._memories.get(job_id)
        return memory.blockers if memory else ()

    def judge_fence(self, fence: LockFence) -> FenceStatus:
        """Return where the advisory locks stand under which a request was sent."""
        return self.ledger.judge_fence(fence)

    def waiting_for(self, job_id: int) -> str:
        """Return what a job waits for, in words; "" when that is nothing but its own next step."""
        job = self._catalog.jobs.get(job_id)
        if job is None or job.status.ended:
            return ""
        if job.status is Status.PAUSED:
            return f"a person to resume it (leasehold jobs resume {job_id})"
        memory = self._memories.get(job_id)
        return memory.waiting if memory else ""

    # ------------------------------------------------------------ step

    def step(self, event: Event, now: Now) -> list[Effect]:
        """What to do about `event`. For Controlled it raises what `control` raises, having
        changed nothing; its Write belongs into the commit that answers the request."""
        effects: list[Effect] = []
        match event:
            case Controlled(asked):
                return [self._write_controlled(control(self._catalog, asked, now.wall_us))]
            case CatalogChanged(lsn):
                self._read_back(lsn, now)
                effects += self._send_wanted(self.ledger.catalog_changed(now), now)
            case LedgerReplied(token, reply):
                effects += self._take_reply(token, reply, now)
            case Confirmed(since_ns):
                return self._send_wanted(self.ledger.confirmed(since_ns), now)
            case LeaseAcked(table_id):
                for job in self._catalog.running_at(table_id):
                    self._memory(job).retry_ns = 0
                    self._due.wake(job.job_id)
            case Reported(report):
                self._walk.take(report)
            case CoherentNodes(nodes):
                self._step_work.coherent = nodes
            case Tick():
                pass
        return effects + self._drive(now)

    def _write_controlled(self, job: Job) -> Write:
        return Write(
            job.job_id, (JobWrite(job.job_id, job.to_wire()),), self._catalog.jobs[job.job_id]
        )

    def _memory(self, job: Job) -> JobMemory:
        """What is remembered of a job where it stands now; elsewhere it counts no more."""
        memory = self._memories.get(job.job_id)
        if memory is None or memory.stage != find_place(job):
            memory = self._memories[job.job_id] = JobMemory(find_place(job))
        return memory

    def _drive(self, now: Now) -> list[Effect]:
        effects = self._send_wanted(self.ledger.tick(now), now)
        for job_id in self._due.take(now.mono_ns):
            job = self._catalog.running.get(job_id)
            if job is not None:  # its end is told in a moment
                effects += self._drive_job(job, now)
                self._let_rest(job, now)
        ahead = [self.ledger.due_ns(), self._due.next_ns() or 0]
        ahead = [at_ns for at_ns in ahead if at_ns > now.mono_ns]
        return [*effects, Wake(min(ahead))] if ahead else effects

    def _let_rest(self, job: Job, now: Now) -> None:
        """Look at a job again only when there is something new for it, if nothing else can be meant
        for it before: an answer of the ledger, its own record, a person, or a time."""
        memory = self._memory(job)
        asked = memory.verification
        if asked is not None and asked.deadline_ns > now.mono_ns:
            self._due.wake_at(job.job_id, asked.deadline_ns)
        if memory.retry_ns > now.mono_ns:
            self._due.wake_at(job.job_id, memory.retry_ns)
        elif not (memory.token or memory.expects is not None or job.status is Status.PAUSED):
            return
        self._due.rest(job.job_id)

    def _drive_job(self, job: Job, now: Now) -> list[Effect]:
        memory = self._memory(job)
        if job.status is Status.PAUSED:
            return []
        if memory.expects is not None:
            if memory.expects == job:
                return []  # its Write is on its way
            memory.expects = None
        if memory.token or memory.retry_ns > now.mono_ns:
            return []
        match job.phase:
            case Phase.PUBLISHING:
                return self._publish(job, memory, now)
            case Phase.DRAINING:
                return self._drain(job, memory, now)
            case Phase.BACKFILLING | Phase.VALIDATING | Phase.VERIFYING:
                return self._work(job, memory, now)
            case Phase.DONE:
                raise AssertionError(f"job {job.job_id} is {job.status.value} and done")

    # ------------------------------------------------------------ effects

    def _write(
        self, job: Job, after: Job, *before: CatalogWrite, named: SchemaNamed | None = None
    ) -> list[Effect]:
        memory = self._memory(job)
        memory.expects = job
        memory.wrote = after
        write = JobWrite(after.job_id, after.to_wire())
        return [Write(job.job_id, (*before, write), job, named)]

    def _call(self, job_id: int, command: Command, now: Now) -> list[Effect]:
        self._token += 1
        self._calls[self._token] = Sent(job_id, command, now.mono_ns)
        if job_id:
            self._memories[job_id].token = self._token
        return [Call(self._token, command)]

    def _send_wanted(self, wanted: Iterable[Wanted], now: Now) -> list[Effect]:
        effects: list[Effect] = []
        for each in wanted:
            if isinstance(each, LedgerRun):
                effects.append(Write(0, (each,), None))
            else:
                effects += self._call(0, each, now)
        return effects

    def _wait(self, memory: JobMemory, now: Now, words: str, retry_ms: int) -> None:
        memory.waiting = words
        memory.retry_ns = now.mono_ns + retry_ms * NS_PER_MS

    def _held_up(
        self, job: Job, now: Now, holders: tuple[Holding, ...], total: int
    ) -> list[Effect]:
        """Wait for the leases in the way: while somebody holds the version before, no other one is
        out (D2)."""
        return self._poll(job, now, holders, total)

    def _poll(self, job: Job, now: Now, holders: tuple[Holding, ...], total: int) -> list[Effect]:
        """Leases are in the way: look again later, sooner if an agent acknowledges (D4); after the
        time that the job says, their agents' renewals are refused (D7)."""
        memory = self._memory(job)
        memory.blockers = holders
        memory.blocked_ns = memory.blocked_ns or now.mono_ns
        settings = self._settings
        waited_ms = (now.mono_ns - memory.blocked_ns) // NS_PER_MS
        pause_ms = min(max(settings.poll_ms, waited_ms // 4), settings.poll_max_ms)
        memory.polls += 1
        memory.publish_again = not memory.polls % POLLS_BEFORE_PUBLISHING_AGAIN
        agents = ", ".join(sorted({holder.agent for holder in holders}))
        words = f"{total} leases to end" + (f", of {agents}" if agents else "")
        self._wait(memory, now, words, pause_ms)
        return self._expire(job, memory, now)

    def _expire(self, job: Job, memory: JobMemory, now: Now) -> list[Effect]:
        after_ms = job.settings.get("cancel_blockers_after_ms", 0)
        if not after_ms or now.mono_ns < memory.blocked_ns + after_ms * NS_PER_MS:
            return []
        # Said at every poll: it may have been lost, and a second time it changes nothing.
        effects: list[Effect] = []
        for agent in sorted({holder.agent for holder in memory.blockers}):
            effects += self._call(0, ExpireAgent(self._epoch, agent), now)
        return effects

    # ------------------------------------------------------------ publishing (D2)

    def _publish(self, job: Job, memory: JobMemory, now: Now) -> list[Effect]:
        for table_id in self._tables(job):
            version, newest = job.versions[table_id], self._catalog.newest(table_id).version
            assert version == newest + 1, f"D2: job {job.job_id} publishes {version} after {newest}"
            self._assert_fenced(table_id, newest)
        if self._in_trouble(job, memory, now):
            return []
        if job.hold is Hold.READY and job.held:
            return self._wait_for_rows(job, memory, now)
        if job.postponed:
            memory.waiting = "somebody to let it go on: its point of no return is postponed"
            return []
        # ⚠ From the beginning: what somebody said of the job may have come before the record of
        # what the ledger had; none is left to ask for then, and the ledger may have lost it since.
        memory.waiting, memory.ahead = "", frozenset()
        return self._ask_publish(job, now)

    def _wait_for_rows(self, job: Job, memory: JobMemory, now: Now) -> list[Effect]:
        """Wait for the transaction of a job, whose session may have gone: then it is turned
        back."""
        memory.waiting = "its transaction to be committed"
        left_us = job.marks[-1][2] + self._settings.held_ms * US_PER_MS - now.wall_us
        if left_us <= 0:
            words = f"its transaction was not committed within {self._settings.held_ms} ms"
            return self._write(job, turn_back(job, now.wall_us, words))
        memory.retry_ns = now.mono_ns + left_us * NS_PER_US
        return []

    def _assert_fenced(self, table_id: int, newest: int) -> None:
        assert self._catalog.min_version(table_id) == newest, "D5: published unfenced"

    def _tables(self, job: Job) -> tuple[int, ...]:
        """Return those of the job's tables that move with its step."""
        return find_moving(job, self._catalog)

    def _ask_publish(self, job: Job, now: Now) -> list[Effect]:
        """All tables in one call, which takes all of them or none (D9). The job is the number that
        its publish is known by: one job at a time changes a table (D9), and it publishes each
        version once. Asking again changes nothing. ⚠ All but those that it has already, or it would
        take none of the rest."""
        changes = tuple(
            Change(table_id, job.versions[table_id] - 1, job.versions[table_id])
            for table_id in self._tables(job)
            if table_id not in self._memory(job).ahead
        )
        return self._call(job.job_id, Publish(self._epoch, changes, job.job_id), now)

    def _in_trouble(self, job: Job, memory: JobMemory, now: Now) -> bool:
        words = self.ledger.trouble(now)
        if not words and not all(map(self.ledger.knows, self._tables(job))):
            words = "the ledger (Redis) to take the table in"
        memory.waiting = words or memory.waiting
        return bool(words)

    def _published(self, job: Job, now: Now) -> list[Effect]:
        if job.held:
            return self._write(job, record_ready(job, now.wall_us))
        made = next_descriptors(job, self._catalog)
        assert all(each.version == job.versions[each.table_id] for each in made), "D2"
        # Who takes another's place is told of first: the name is a table's all the time.
        writes = [DescriptorWrite(d.table_id, d.version, d.to_wire()) for d in reversed(made)]
        # All that lies in a schema, and itself, at one LSN.
        named = SchemaNamed(*job.renames) if job.renames and not job.step else None
        return self._write(job, record_published(job, now.wall_us), *writes, named=named)

    # ------------------------------------------------------------ draining (D4, D5)

    def _drain(self, job: Job, memory: JobMemory, now: Now) -> list[Effect]:
        if self._in_trouble(job, memory, now):
            return []
        if memory.publish_again:
            memory.publish_again, memory.ahead = False, frozenset()
            return self._ask_publish(job, now)
        # One table after the other: first nobody is seen below in any. From the ledger's answer to
        # SetMinVersion on nobody can come back, and only those answers count: until them an agent
        # whose store lags may acquire v again (D1).
        tables = self._tables(job)
        turn, position = divmod(memory.drained, len(tables))
        table_id, version = tables[position], job.versions[tables[position]]
        if turn:
            return self._call(job.job_id, SetMinVersion(self._epoch, table_id, version), now)
        names_max = HOLDERS_MAX if self._wants_names(job, memory, now) else 0
        return self._call(job.job_id, Holders(table_id, version, names_max), now)

    def _wants_names(self, job: Job, memory: JobMemory, now: Now) -> bool:
        """Do people, or a setting, want to know by now who is in the way?"""
        after_ms = self._settings.names_after_ms
        expire_ms = job.settings.get("cancel_blockers_after_ms", 0)
        if expire_ms:
            after_ms = min(after_ms, expire_ms)
        waited_ns = now.mono_ns - memory.blocked_ns if memory.blocked_ns else 0
        return waited_ns >= after_ms * NS_PER_MS

    def _fence(self, job: Job, now: Now) -> list[Effect]:
        """Write the fence (D5): everything from this commit on is at the step's version."""
        ranged = self._step_work.find_ranged(job, now)
        after = record_fenced(job, now.wall_us, self._walk.find_first(job), ranged)
        named = SchemaNamed(job.renames[0]) if job.renames and after.status.ended else None
        return self._write(job, after, *self._fences(job), named=named)

    def _fences(self, job: Job) -> Iterable[MinVersion]:
        return (MinVersion(table_id, job.versions[table_id]) for table_id in self._tables(job))

    # ------------------------------------------------------------ the step's work

    def _work(self, job: Job, memory: JobMemory, now: Now) -> list[Effect]:
        after = self._step_work.next(job, memory, now)
        return [] if after is None else self._write(job, after)

    # ------------------------------------------------------------ the ledger

    def _take_reply(self, token: int, reply: Reply | LedgerUnavailable, now: Now) -> list[Effect]:
        sent = self._calls.pop(token, None)
        if sent is None:
            return []
        job_id, command, at_ns = sent
        if not job_id:
            return self._send_wanted(self.ledger.take_reply(command, reply, at_ns, now), now)
        effects = self._send_wanted(self.ledger.note_reply(reply, now), now)
        if self._catalog.has_ended(job_id):
            return effects
        job = self._catalog.jobs[job_id]
        memory = self._memory(job)
        if memory.token != token:
            return effects  # the job has moved on; every command may be repeated or forgotten
        memory.token = 0
        self._due.wake(job_id)
        if job.status is Status.PAUSED or job.postponed:
            return effects  # asked anew once it goes on; the ledger may be ahead by then (D2)
        if isinstance(reply, LedgerUnavailable):
            self._wait(memory, now, self.ledger.trouble(now), self._settings.ledger_retry_ms)
            return effects
        if isinstance(command, Publish):
            return effects + self._publish_answered(job, memory, command, reply, now)
        return effects + self._drain_answered(job, memory, reply, now)

    def _publish_answered(
        self, job: Job, memory: JobMemory, command: Publish, reply: Reply, now: Now
    ) -> list[Effect]:
        told = reply.table if isinstance(reply, LedgerRefused) else 0
        change = next((c for c in command.changes if c.table == told), command.changes[0])
        draining = job.phase is Phase.DRAINING
        match reply:
            case Published() if draining:
                return []  # the ledger knows the version, if it did not before
            case Published():
                return self._published(job, now)
            case LedgerRefused(reason=RefusalReason.VERSION, current=change.to_version):
                # One ahead of the log: that number was published for a job that was turned back
                # before its descriptor was out. It passed the same checks, so it is good (D2). ⚠ Of
                # the job's other tables that says nothing.
                memory.ahead |= {change.table}
                if not memory.ahead.issuperset(self._tables(job)):
                    return self._ask_publish(job, now)
                return [] if draining else self._published(job, now)
            case LedgerRefused(current=change.to_version) if draining:
                return []
            case LedgerRefused(reason=RefusalReason.HOLDERS, holders=holders, holders_total=total):
                return self._held_up(job, now, holders, total)
            case LedgerRefused(reason=RefusalReason.NOT_FENCED):
                # The log has the fence (asserted in _publish); the ledger is told once more.
                fence = SetMinVersion(self._epoch, change.table, change.from_version)
                return self._call(job.job_id, fence, now)
            case LedgerRefused():
                self._refused(job, memory, reply, now)
            case _:
                self._wait(memory, now, "the ledger (Redis)", self._settings.ledger_retry_ms)
        return []

    def _drain_answered(self, job: Job, memory: JobMemory, reply: Reply, now: Now) -> list[Effect]:
        match reply:
            case HolderList(ready=True, holders_total=0):
                memory.drained += 1
            case MinVersionSet(holders_total=0):
                if job.phase is not Phase.DRAINING:
                    return []
                memory.drained += 1
                if memory.drained >= 2 * len(self._tables(job)):
                    return self._fence(job, now)
            case (
                HolderList(holders=holders, holders_total=total)
                | MinVersionSet(holders=holders, holders_total=total)
            ):
                memory.drained = 0
                return self._poll(job, now, holders, total)
            case LedgerRefused():
                memory.publish_again = reply.reason is RefusalReason.FUTURE
                self._refused(job, memory, reply, now)
            case _:
                self._wait(memory, now, "the ledger (Redis)", self._settings.ledger_retry_ms)
        return []

    def _refused(self, job: Job, memory: JobMemory, reply: LedgerRefused, now: Now) -> None:
        """A refusal that the ledger's watch deals with; the job asks again after it."""
        if reply.reason in (RefusalReason.VERSION, RefusalReason.UNKNOWN_TABLE):
            self.ledger.forget(reply.table or job.table_id)
        words = f"the ledger (Redis): it refused with {reply.reason.value!r}"
        self._wait(memory, now, words, self._settings.ledger_retry_ms)

    # ------------------------------------------------------------ the log

    def _read_back(self, lsn: int, now: Now) -> None:
        """A verification is ours if the record that asks for it is: its LSN is known then."""
        changed, ended = self._due.follow()
        for job_id in changed:
            job, memory = self._catalog.running[job_id], self._memories.get(job_id)
            if memory is None or memory.wrote is None or job.phase is not Phase.VERIFYING:
                continue
            if (job.marks, job.look) != (memory.wrote.marks, memory.wrote.look):
                continue
            self._walk.note_asked(job, memory.walked)
            fresh = JobMemory(find_place(job))
            fresh.verification = self._step_work.begin_verification(lsn, now)
            self._memories[job_id] = fresh
        for job_id in ended:
            self._memories.pop(job_id, None)
        if ended:
            self._walk.forget_ended()
