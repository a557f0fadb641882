"""The whole of one database as a person wants to see it. PURE: `fold(view, event, now_us)`.

The command and the dashboard read the same view, so they can never tell two stories. Everything is
taken from what travels anyway (log headers, acks, version and job events, the ledger's snapshot):
looking asks nothing of the master. Times are unix µs, for people; nothing is decided by them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

from leasehold.catalog.descriptor import Descriptor, from_wire
from leasehold.catalog.job import Job, Status, job_from_wire
from leasehold.catalog.states import State
from leasehold.events.version_diff import ElementChange, diff
from leasehold.lease.replies import Holding, SnapshotReport
from leasehold.model.errors import MalformedRequest
from leasehold.model.records.acks import AccessReport, Ack, CheckReport, HoldingReport
from leasehold.model.records.events import VersionEvent
from leasehold.model.records.jobs import ChangefeedReport, JobEvent, JobProgress, SparkReport
from leasehold.model.records.log import Grant, JobForgotten
from leasehold.replication.coherency import GIVEN_UP
from leasehold.replication.log.truncation import CHANGEFEED_ROLE, COPY_ROLE

RECENT_EVENTS_MAX: Final = 50
RECENT_CHECKS_MAX: Final = 64
"""Each with its report of every table on every node: an answer is there whole, or forgotten."""
RATE_SECONDS_MAX: Final = 60
HELD_BACK_MAX: Final = 1_000
OPEN_NODES_MAX: Final = 1_000
COPIES_MAX: Final = 1_000
OPEN_KNOWN_FOR_US: Final = 30_000_000
"""Several of its words. A node that asks since it was started anew says nothing more of it."""
SILENT_AFTER_US: Final = 3_000_000
"""A node acknowledges several times a second; one that has not for so long is called silent."""

# ---------------------------------------------------------------- what is folded


class LogSeen(NamedTuple):
    """A Decisions record of the current epoch, without its body. `offset` is its own."""

    offset: int
    epoch: int
    sequence: int
    lsn: int  # last LSN up to and with this record
    commit_us: int
    commits: int
    refusals: int
    dead_letters: int
    decided_through: Mapping[str, int]
    answered_through: int
    grants: tuple[Grant, ...] = ()
    closed_us: int = 0
    id_horizon_us: int = 0
    reset_us: int = 0


class ClaimSeen(NamedTuple):
    """A Claim in the log. Only a reader of the whole log knows whether it counts (L1); the next
    Decisions record of its epoch settles it."""

    offset: int
    epoch: int
    node: str


class TopicEnds(NamedTuple):
    """Next offsets of topics: "log", queues, "dead-letter" and `rows/<table id>` (records kept)."""

    ends: Mapping[str, int]


class LedgerSeen(NamedTuple):
    """The ledger's report. `holders`: table id → who holds a lease on it, as far as the ledger
    names them."""

    report: SnapshotReport
    holders: Mapping[int, tuple[Holding, ...]]


class Unreachable(NamedTuple):
    """A part that can't be reached: `what` is "kafka" or "ledger", `why` one sentence."""

    what: str
    why: str


class Reachable(NamedTuple):
    what: str


class TopicsRead(NamedTuple):
    """A round of reading has ended. `left`: topics that were never read to their ends yet, and how
    many records are left of each, about (-1: not known)."""

    left: Mapping[str, int]


Event: TypeAlias = (
    LogSeen
    | ClaimSeen
    | TopicEnds
    | Ack
    | AccessReport
    | HoldingReport
    | CheckReport
    | VersionEvent
    | JobEvent
    | JobForgotten
    | JobProgress
    | SparkReport
    | ChangefeedReport
    | LedgerSeen
    | Unreachable
    | Reachable
    | TopicsRead
)

# ---------------------------------------------------------------- what is shown


@dataclass(frozen=True, slots=True)
class LogView:
    """How far the log is: `end` is its next offset, and `seen_us` when its newest record was read.

    `time_us` is the log's time: no commit up to here is later, and every later one is.
    """

    end: int = 0
    epoch: int = 0
    master: str = ""
    lsn: int = 0
    commit_us: int = 0
    seen_us: int = 0
    decided_through: Mapping[str, int] = field(default_factory=dict)
    answered_through: int = 0
    time_us: int = 0
    id_horizon_us: int = 0


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node by its own last acknowledgement. `since_us`: coherent, or not, since then."""

    ack: Ack
    since_us: int

    def silent(self, now_us: int) -> bool:
        return now_us - self.ack.sent_us > SILENT_AFTER_US


class SessionSeen(NamedTuple):
    """An agent's session by its count of renewals; `moved_us`: when that was last seen to rise,
    0 as long as it was not (a look of its own tells nothing)."""

    renewals: int
    moved_us: int


@dataclass(frozen=True)
class TableView:
    """The newest published version of a table."""

    event: VersionEvent

    @cached_property
    def descriptor(self) -> Descriptor:
        return from_wire(self.event.body)


@dataclass(frozen=True)
class VersionChange:
    """A version with what it changed, seen from the one known `before` it, if one was."""

    after: TableView
    before: TableView | None

    @property
    def event(self) -> VersionEvent:
        return self.after.event

    @cached_property
    def changes(self) -> tuple[ElementChange, ...]:
        before = None if self.before is None else self.before.descriptor
        return diff(before, self.after.descriptor)


@dataclass(frozen=True)
class JobView:
    """A job as the log has it. One that has ended is decoded when it is looked at: of thousands few
    ever are."""

    event: JobEvent

    @cached_property
    def job(self) -> Job:
        return job_from_wire(self.event.body)

    @property
    def status(self) -> Status:
        return Status(self.event.body["status"])

    @cached_property
    def readable(self) -> bool:
        """Whether it can be decoded; a job that has not ended can."""
        try:
            return self.job.job_id == self.event.job_id
        except Exception:  # noqa: BLE001 - of a body that is no job anything may come
            return False


class Second(NamedTuple):
    """Decisions seen in one second of unix time."""

    at: int
    committed: int
    refused: int
    dead_lettered: int


@dataclass(frozen=True, slots=True)
class ClusterView:
    """Everything seen so far. `unreachable`: "kafka" | "ledger" → why; both absent = both fine.

    `held_back`: an agent's newest word on an older version, by agent, table id and version; whether
    it still holds it only the ledger tells. `checks`: by subject, the one heard of last at the end,
    then each node's newest report by name and table id. `open_nodes`: each node's newest word that
    it lets clients in without asking. `copies`: the newest word for each copy of a store that a
    node takes or has taken, by `copy_name`. `sessions`: by id. `committed`, `refused`
    and `dead_lettered` count since the view began to look. `not_read`: topics that were never read
    to their ends yet (see `TopicsRead`), so that what they say is not known yet; `read_us`: when
    topics were last read, 0 for a view that is told of everything at once.
    """

    log: LogView = field(default_factory=LogView)
    nodes: Mapping[str, NodeView] = field(default_factory=dict)
    tables: Mapping[int, TableView] = field(default_factory=dict)
    jobs: Mapping[int, JobView] = field(default_factory=dict)
    progress: Mapping[int, JobProgress] = field(default_factory=dict)  # newest by job
    spark: SparkReport | None = None
    changefeed: ChangefeedReport | None = None
    recent: tuple[VersionChange, ...] = ()  # newest last
    checks: dict[bytes, dict[tuple[str, int], CheckReport]] = field(default_factory=dict)
    held_back: Mapping[tuple[str, int, int], HoldingReport] = field(default_factory=dict)
    open_nodes: Mapping[str, AccessReport] = field(default_factory=dict)
    copies: Mapping[str, Ack] = field(default_factory=dict)
    sessions: Mapping[int, SessionSeen] = field(default_factory=dict)
    ledger: LedgerSeen | None = None
    ledger_us: int = 0
    ends: Mapping[str, int] = field(default_factory=dict)
    unreachable: Mapping[str, str] = field(default_factory=dict)
    not_read: Mapping[str, int] = field(default_factory=dict)
    read_us: int = 0
    seconds: tuple[Second, ...] = ()  # newest last, seconds without a record left out
    committed: int = 0
    refused: int = 0
    dead_lettered: int = 0

    def as_of_us(self, now_us: int) -> int:
        """The moment that what the topics say is of: nobody is silent because this view was not
        read on."""
        return min(now_us, self.read_us) if self.read_us else now_us

    def gaps(self, now_us: int) -> list[str]:
        """Sentences on what this view can't tell yet, or no longer tells; none as a rule."""
        found = [
            f"topic {topic} is still being read"
            + (f", about {records:,} records are left" if records >= 0 else "")
            for topic, records in sorted(self.not_read.items())
        ]
        behind_us = now_us - self.as_of_us(now_us)
        if behind_us > SILENT_AFTER_US:
            found.append(f"the topics were last read {behind_us // 1_000_000} s ago")
        return found


# ---------------------------------------------------------------- the fold


def fold(view: ClusterView, event: Event, now_us: int) -> ClusterView:
    """The view after one event. Repeats and old news change nothing (readers may begin twice)."""
    match event:
        case LogSeen():
            return _log_seen(view, event, now_us)
        case ClaimSeen():
            return _claim_seen(view, event, now_us)
        case TopicEnds():
            return replace(view, ends={**view.ends, **event.ends})
        case Ack():
            return _ack(view, event)
        case AccessReport():
            return _told_open(view, event)
        case HoldingReport():
            return _held_back(view, event)
        case VersionEvent() | JobEvent() | JobForgotten() | JobProgress() | CheckReport():
            return fold_all(view, (event,), now_us)
        case SparkReport():
            return replace(view, spark=event)
        case ChangefeedReport():
            return replace(view, changefeed=event)
        case LedgerSeen():
            view = _reached(view, "ledger")
            sessions = _sessions_seen(view, event.report, now_us)
            return replace(view, ledger=event, ledger_us=now_us, sessions=sessions)
        case Unreachable():
            return replace(view, unreachable={**view.unreachable, event.what: event.why})
        case Reachable():
            return _reached(view, event.what)
        case TopicsRead():
            return replace(view, not_read=dict(event.left), read_us=now_us)


_TOLD: Final = (VersionEvent, JobEvent, JobForgotten, JobProgress, CheckReport)


def fold_all(
    view: ClusterView,
    events: Iterable[Event],
    now_us: int,
    unusable: Callable[[Event, Exception], None] | None = None,
) -> ClusterView:
    """Return the view after those events. What is kept of each table and each job is copied once
    for all of them, not once for each: a first look reads thousands. An event that can't be used is
    left out and given to `unusable`, with what it raised; where that is None this is raised."""
    told: _Told | None = None
    for event in events:
        try:
            if isinstance(
                event, VersionEvent | JobEvent | JobForgotten | JobProgress | CheckReport
            ):
                told = told or _Told(view)
                told.take(event)
            else:
                view = fold(view, event, now_us)
        except Exception as error:
            if unusable is None:
                raise
            unusable(event, error)
    return view if told is None else told.in_view(view)


class _Told:
    """What is kept of each table and each job, to be added to."""

    def __init__(self, view: ClusterView) -> None:
        self.tables = dict(view.tables)
        self.recent = list(view.recent)
        self.jobs = dict(view.jobs)
        self.progress = dict(view.progress)
        self.checks = dict(view.checks)
        self._own_checks: set[bytes] = set()  # subjects whose reports are no longer the view's

    def take(
        self, event: VersionEvent | JobEvent | JobForgotten | JobProgress | CheckReport
    ) -> None:
        match event:
            case VersionEvent():
                self.version(event)
            case JobEvent():
                self.job(event)
            case JobForgotten(job_id):
                self.jobs.pop(job_id, None)
                self.progress.pop(job_id, None)
            case JobProgress():
                self.progressed(event)
            case CheckReport():
                self.checked(event)

    def in_view(self, view: ClusterView) -> ClusterView:
        return replace(
            view,
            tables=self.tables,
            recent=tuple(self.recent[-RECENT_EVENTS_MAX:]),
            jobs=self.jobs,
            progress=self.progress,
            checks=self.checks,
        )

    def version(self, event: VersionEvent) -> None:
        known = self.tables.get(event.table_id)
        if known is not None and event.version <= known.event.version:
            return
        table = TableView(event)
        descriptor = table.descriptor  # ⚠ What can't be decoded raises here, not where it is shown.
        self.recent.append(VersionChange(table, known))
        if descriptor.state is State.ABSENT:
            self.tables.pop(event.table_id, None)
        else:
            self.tables[event.table_id] = table

    def job(self, event: JobEvent) -> None:
        known = self.jobs.get(event.job_id)
        if known is None or event.lsn >= known.event.lsn:
            seen = JobView(event)
            if not seen.status.ended and seen.job.job_id != event.job_id:
                raise MalformedRequest(f"an event of job {event.job_id} is about another one")
            self.jobs[event.job_id] = seen

    def checked(self, report: CheckReport) -> None:
        said = self.checks.pop(report.subject, {})
        if report.subject not in self._own_checks:
            self._own_checks.add(report.subject)
            said = dict(said)
        said[report.node, report.table_id] = report
        self.checks[report.subject] = said
        if len(self.checks) > RECENT_CHECKS_MAX:
            oldest = next(iter(self.checks))
            del self.checks[oldest]
            self._own_checks.discard(oldest)

    def progressed(self, progress: JobProgress) -> None:
        # Kept beside the jobs: in a compacted topic a job's progress may stand before its state.
        known = self.progress.get(progress.job_id)
        if known is None or (progress.run, progress.sent_us) >= (known.run, known.sent_us):
            self.progress[progress.job_id] = progress


def _told_open(view: ClusterView, report: AccessReport) -> ClusterView:
    known = view.open_nodes.get(report.node)
    if known is not None and report.sent_us < known.sent_us:
        return view
    open_nodes = {**view.open_nodes, report.node: report}
    if len(open_nodes) > OPEN_NODES_MAX:
        del open_nodes[min(open_nodes, key=lambda each: open_nodes[each].sent_us)]
    return replace(view, open_nodes=open_nodes)


def _held_back(view: ClusterView, report: HoldingReport) -> ClusterView:
    name = (report.agent, report.table_id, report.version)
    known = view.held_back.get(name)
    if known is not None and report.sent_us < known.sent_us:
        return view
    held_back = {**view.held_back, name: report}
    if len(held_back) > HELD_BACK_MAX:
        del held_back[min(held_back, key=lambda each: held_back[each].sent_us)]
    return replace(view, held_back=held_back)


def _sessions_seen(
    view: ClusterView, report: SnapshotReport, now_us: int
) -> dict[int, SessionSeen]:
    found = {}
    for status in report.sessions:
        known = view.sessions.get(status.session)
        if known is None:
            found[status.session] = SessionSeen(status.counter, 0)
        elif known.renewals < status.counter:
            found[status.session] = SessionSeen(status.counter, now_us)
        else:
            found[status.session] = known
    return found


def _reached(view: ClusterView, what: str) -> ClusterView:
    if what not in view.unreachable:
        return view
    return replace(view, unreachable={k: v for k, v in view.unreachable.items() if k != what})


def _is_foreign(view: ClusterView, epoch: int) -> bool:
    """Return whether no node can be so far: somebody else has written that to the log. (Which
    records count only a reader of the whole log can tell.)"""
    epochs = [node.ack.epoch for node in view.nodes.values()]
    return bool(epochs) and epoch > max(*epochs, view.log.epoch) + 1


def _log_seen(view: ClusterView, seen: LogSeen, now_us: int) -> ClusterView:
    log = view.log
    if seen.offset < log.end or seen.epoch < log.epoch or _is_foreign(view, seen.epoch):
        return view
    # Without its Claim in sight the master's name comes from the acks.
    master = log.master if seen.epoch == log.epoch else _master_by_ack(view, seen.epoch)
    log = LogView(
        end=seen.offset + 1,
        epoch=seen.epoch,
        master=master or _master_by_ack(view, seen.epoch),
        lsn=max(seen.lsn, log.lsn),
        commit_us=seen.commit_us or log.commit_us,
        seen_us=now_us,
        # A record tells of the queues that it decided something of, and of no other (L3).
        decided_through={**log.decided_through, **seen.decided_through},
        answered_through=max(seen.answered_through, log.answered_through),
        time_us=max(0 if seen.reset_us else log.time_us, seen.commit_us, seen.closed_us),
        id_horizon_us=seen.id_horizon_us or log.id_horizon_us,
    )
    return replace(
        view,
        log=log,
        seconds=_counted(view.seconds, seen, now_us),
        committed=view.committed + seen.commits,
        refused=view.refused + seen.refusals - seen.dead_letters,
        dead_lettered=view.dead_lettered + seen.dead_letters,
    )


def _counted(seconds: tuple[Second, ...], seen: LogSeen, now_us: int) -> tuple[Second, ...]:
    # By the master's clock: what a watcher reads at its start was not all decided just now.
    at = (seen.commit_us or now_us) // 1_000_000
    refused = seen.refusals - seen.dead_letters
    if seen.reset_us:
        seconds = ()  # of a time that is still to come
    if seconds and seconds[-1].at >= at:
        last = seconds[-1]
        counted = Second(
            last.at,
            last.committed + seen.commits,
            last.refused + refused,
            last.dead_lettered + seen.dead_letters,
        )
        return (*seconds[:-1], counted)
    kept = tuple(second for second in seconds if second.at > at - RATE_SECONDS_MAX)
    return (*kept, Second(at, seen.commits, refused, seen.dead_letters))


def _claim_seen(view: ClusterView, claim: ClaimSeen, now_us: int) -> ClusterView:
    log = view.log
    # Of several Claims for one epoch the first wins, and none counts for an old one (L1).
    late = claim.offset < log.end or claim.epoch <= log.epoch
    if late or _is_foreign(view, claim.epoch):
        return view
    log = replace(log, end=claim.offset + 1, epoch=claim.epoch, master=claim.node, seen_us=now_us)
    return replace(view, log=log)


def _master_by_ack(view: ClusterView, epoch: int) -> str:
    named = [
        node.ack.node
        for node in view.nodes.values()
        if node.ack.role == "master" and node.ack.epoch == epoch
    ]
    return named[0] if named else ""


def _ack(view: ClusterView, ack: Ack) -> ClusterView:
    if ack.role == CHANGEFEED_ROLE:
        return view  # somebody for whom the log is kept, but no node that applies it
    if ack.role == COPY_ROLE:
        return _copied(view, ack)
    known = view.nodes.get(ack.node)
    if known is not None and ack.sent_us < known.ack.sent_us:
        return view
    if ack.asked_ns == GIVEN_UP:
        # It has said goodbye: nobody need wait for it, and nothing is wrong with it.
        return replace(view, nodes={n: node for n, node in view.nodes.items() if n != ack.node})
    same = known is not None and known.ack.coherent == ack.coherent
    since_us = known.since_us if known is not None and same else ack.sent_us
    view = replace(view, nodes={**view.nodes, ack.node: NodeView(ack, since_us)})
    if ack.role == "master" and ack.epoch == view.log.epoch and not view.log.master:
        view = replace(view, log=replace(view.log, master=ack.node))
    return view


def _copied(view: ClusterView, ack: Ack) -> ClusterView:
    known = view.copies.get(ack.node)
    if known is not None and ack.sent_us < known.sent_us:
        return view
    copies = {**view.copies, ack.node: ack}
    if len(copies) > COPIES_MAX:
        del copies[min(copies, key=lambda each: copies[each].sent_us)]
    return replace(view, copies=copies)
