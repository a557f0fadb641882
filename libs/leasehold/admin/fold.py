"""How an event changes a view. PURE: `fold(view, event, now_us)`, or many at once by `fold_all`.

Of acknowledgements and reports the one that came last counts, whatever its sender's clock says: a
clock that was set back would hide its node for as long. So a source gives each once, in the order
of its topic. Repeats and old news of everything else change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

from leasehold.admin.view import (
    ClaimSeen,
    ClusterView,
    Event,
    Heard,
    JobView,
    LedgerSeen,
    LogSeen,
    LogView,
    NodeView,
    Reachable,
    Second,
    SessionSeen,
    TableView,
    TopicEnds,
    TopicsRead,
    Unreachable,
    VersionChange,
)
from leasehold.catalog.states import State
from leasehold.lease.replies import SnapshotReport
from leasehold.model.errors import MalformedRequest
from leasehold.model.records.acks import (
    AccessReport,
    Ack,
    CheckReport,
    HoldingReport,
    MergeReport,
    NodeReport,
    PartReport,
    ProcessReport,
)
from leasehold.model.records.events import VersionEvent
from leasehold.model.records.jobs import ChangefeedReport, JobEvent, JobProgress, SparkReport
from leasehold.model.records.log import JobForgotten
from leasehold.replication.coherency import GIVEN_UP
from leasehold.replication.log.truncation import CHANGEFEED_ROLE, COPY_ROLE

NameT = TypeVar("NameT", bound=Hashable)
SentT = TypeVar("SentT", Ack, AccessReport, HoldingReport, NodeReport, PartReport, ProcessReport)

RECENT_EVENTS_MAX: Final = 50
RECENT_CHECKS_MAX: Final = 64
CLAIMS_KEPT_MAX: Final = 16
"""That nobody has said yet to count: candidates claim again every few seconds."""
"""Each with its report of every table on every node: an answer is there whole, or forgotten."""
RATE_SECONDS_MAX: Final = 60
HELD_BACK_MAX: Final = 1_000
MERGING_MAX: Final = 1_000
OPEN_NODES_MAX: Final = 1_000
NODE_REPORTS_MAX: Final = 1_000
COPIES_MAX: Final = 1_000
PROCESSES_MAX: Final = 1_000
CLOCKS_MAX: Final = 4_000


def fold(view: ClusterView, event: Event, now_us: int) -> ClusterView:
    """Return the view after one event. Raises whatever the event leads to."""
    return fold_all(view, (event,), now_us)


def fold_all(
    view: ClusterView,
    events: Iterable[Event],
    now_us: int,
    unusable: Callable[[Event, Exception], None] | None = None,
) -> ClusterView:
    """Return the view after those events. An event that can't be used is left out and given to
    `unusable`, with what it raised; where that is None this is raised."""
    draft = _Draft(view)
    for event in events:
        try:
            _FOLDS[type(event)](draft, event, now_us)
        except Exception as error:
            if unusable is None:
                raise
            unusable(event, error)
    return draft.finish()


class _Draft:
    """A view while events are folded into it: what is kept of each table, job and check is copied
    once for all of them, not once for each, since a first look reads thousands. `view` has the
    rest."""

    def __init__(self, view: ClusterView) -> None:
        self.view = view
        self._kept: _Kept | None = None

    @property
    def kept(self) -> _Kept:
        if self._kept is None:
            self._kept = _Kept(self.view)
        return self._kept

    def finish(self) -> ClusterView:
        return self.view if self._kept is None else self._kept.in_view(self.view)


class _Kept:
    """What is kept of each table, job and check, to be added to."""

    def __init__(self, view: ClusterView) -> None:
        self.tables = dict(view.tables)
        self.recent = list(view.recent)
        self.jobs = dict(view.jobs)
        self.progress = dict(view.progress)
        self.checks = dict(view.checks)
        self.own_checks: set[bytes] = set()  # subjects whose reports are no longer the view's

    def in_view(self, view: ClusterView) -> ClusterView:
        return replace(
            view,
            tables=self.tables,
            recent=tuple(self.recent[-RECENT_EVENTS_MAX:]),
            jobs=self.jobs,
            progress=self.progress,
            checks=self.checks,
        )


# ---------------------------------------------------------------- tables, jobs and checks


def _version(draft: _Draft, event: VersionEvent, _now_us: int) -> None:
    kept = draft.kept
    known = kept.tables.get(event.table_id)
    if known is not None and event.version <= known.event.version:
        return
    table = TableView(event)
    descriptor = table.descriptor  # ⚠ What can't be decoded raises here, not where it is shown.
    kept.recent.append(VersionChange(table, known))
    if descriptor.state is State.ABSENT:
        kept.tables.pop(event.table_id, None)
    else:
        kept.tables[event.table_id] = table


def _job(draft: _Draft, event: JobEvent, _now_us: int) -> None:
    known = draft.kept.jobs.get(event.job_id)
    if known is None or event.lsn >= known.event.lsn:
        seen = JobView(event)
        if not seen.status.ended and seen.job.job_id != event.job_id:
            raise MalformedRequest(f"an event of job {event.job_id} is about another one")
        draft.kept.jobs[event.job_id] = seen


def _job_forgotten(draft: _Draft, event: JobForgotten, _now_us: int) -> None:
    draft.kept.jobs.pop(event.job_id, None)
    draft.kept.progress.pop(event.job_id, None)


def _progressed(draft: _Draft, progress: JobProgress, _now_us: int) -> None:
    # Kept beside the jobs: in a compacted topic a job's progress may stand before its state.
    known = draft.kept.progress.get(progress.job_id)
    if known is None or progress.run >= known.run:
        draft.kept.progress[progress.job_id] = progress


def _checked(draft: _Draft, report: CheckReport, _now_us: int) -> None:
    kept = draft.kept
    said = kept.checks.pop(report.subject, {})
    if report.subject not in kept.own_checks:
        kept.own_checks.add(report.subject)
        said = dict(said)
    said[report.node, report.table_id] = report
    kept.checks[report.subject] = said
    if len(kept.checks) > RECENT_CHECKS_MAX:
        oldest = next(iter(kept.checks))
        del kept.checks[oldest]
        kept.own_checks.discard(oldest)


# ---------------------------------------------------------------- the log


def _log_seen(draft: _Draft, seen: LogSeen, now_us: int) -> None:
    view, log = draft.view, draft.view.log
    if seen.offset < log.end or seen.epoch < log.epoch or _is_foreign(view, seen.epoch):
        return
    master = log.master if seen.epoch == log.epoch else ""
    log = LogView(
        end=seen.offset + 1,
        epoch=seen.epoch,
        master=master or _master_of(view, seen.epoch),
        lsn=max(seen.lsn, log.lsn),
        commit_us=seen.commit_us or log.commit_us,
        seen_us=now_us,
        # A record tells of the queues that it decided something of, and of no other (L3).
        decided_through={**log.decided_through, **seen.decided_through},
        answered_through=max(seen.answered_through, log.answered_through),
        time_us=max(0 if seen.reset_us else log.time_us, seen.commit_us, seen.closed_us),
        id_horizon_us=seen.id_horizon_us or log.id_horizon_us,
        claims=_claims_behind(log, seen.epoch),
    )
    draft.view = replace(
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


def _claim_seen(draft: _Draft, claim: ClaimSeen, now_us: int) -> None:
    """Take note of a Claim. ⚠ It counts only once nodes say so: one that came while records of the
    master's were on their way is passed over (L1), and what the master writes counts as before."""
    view, log = draft.view, draft.view.log
    late = claim.offset < log.end or claim.epoch <= log.epoch
    if late or _is_foreign(view, claim.epoch):
        return
    claims = (*log.claims, claim)[-CLAIMS_KEPT_MAX:]
    log = replace(log, end=claim.offset + 1, seen_us=now_us, claims=claims)
    draft.view = _with_claims_heeded(replace(view, log=log))


def _with_claims_heeded(view: ClusterView) -> ClusterView:
    """Return the view in the term that nodes have acknowledged, where its Claim has been seen."""
    applied = max((node.ack.epoch for node in view.nodes.values()), default=0)
    counting = [claim.epoch for claim in view.log.claims if claim.epoch <= applied]
    if not counting:
        return view
    epoch = max(counting)
    claims = _claims_behind(view.log, epoch)
    log = replace(view.log, epoch=epoch, master=_master_of(view, epoch), claims=claims)
    return replace(view, log=log)


def _claims_behind(log: LogView, epoch: int) -> tuple[ClaimSeen, ...]:
    return tuple(claim for claim in log.claims if claim.epoch > epoch)


def _master_of(view: ClusterView, epoch: int) -> str:
    """Return who has that term: by its own word, or by the first Claim for it that was seen, as
    that wins (L1); "" where nothing is known."""
    claimed = [claim.node for claim in view.log.claims if claim.epoch == epoch]
    return _master_by_ack(view, epoch) or next(iter(claimed), "")


def _is_foreign(view: ClusterView, epoch: int) -> bool:
    """Return whether no node can be so far: somebody else has written that to the log. (Which
    records count only a reader of the whole log can tell.)"""
    epochs = [node.ack.epoch for node in view.nodes.values()]
    return bool(epochs) and epoch > max(*epochs, view.log.epoch) + 1


def _master_by_ack(view: ClusterView, epoch: int) -> str:
    named = [
        node.ack.node
        for node in view.nodes.values()
        if node.ack.role == "master" and node.ack.epoch == epoch
    ]
    return named[0] if named else ""


# ---------------------------------------------------------------- nodes and agents


def _acknowledged(draft: _Draft, ack: Ack, _now_us: int) -> None:
    view = draft.view
    if ack.role == CHANGEFEED_ROLE:
        # Somebody for whom the log is kept, but no node that applies it.
        draft.view = replace(view, changefeed_ack=ack)
        return
    if ack.role == COPY_ROLE:
        _copied(draft, ack)
        return
    known = view.nodes.get(ack.node)
    if ack.asked_ns == GIVEN_UP:
        # It has said goodbye: nobody need wait for it, and nothing is wrong with it.
        left = {n: node for n, node in view.nodes.items() if n != ack.node}
        draft.view = replace(view, nodes=left)
        return
    same = known is not None and known.ack.coherent == ack.coherent
    since_us = known.since_us if known is not None and same else ack.sent_us
    view = replace(view, nodes={**view.nodes, ack.node: NodeView(ack, since_us)})
    if ack.role == "master" and ack.epoch == view.log.epoch and not view.log.master:
        view = replace(view, log=replace(view.log, master=ack.node))
    draft.view = _with_claims_heeded(view)


def _keep_last(
    known: Mapping[NameT, SentT], name: NameT, report: SentT, most: int
) -> Mapping[NameT, SentT]:
    """Return what is known with a report under its name; of more than `most` the one that was heard
    first goes."""
    reports = {each: told for each, told in known.items() if each != name}
    reports[name] = report
    if len(reports) > most:
        del reports[next(iter(reports))]
    return reports


def _copied(draft: _Draft, ack: Ack) -> None:
    copies = _keep_last(draft.view.copies, ack.node, ack, COPIES_MAX)
    draft.view = replace(draft.view, copies=copies)


def _told_open(draft: _Draft, report: AccessReport, _now_us: int) -> None:
    open_nodes = _keep_last(draft.view.open_nodes, report.node, report, OPEN_NODES_MAX)
    draft.view = replace(draft.view, open_nodes=open_nodes)


def _told_of_node(draft: _Draft, report: NodeReport, _now_us: int) -> None:
    reports = _keep_last(draft.view.node_reports, report.node, report, NODE_REPORTS_MAX)
    draft.view = replace(draft.view, node_reports=reports)


def _told_part(draft: _Draft, report: PartReport, _now_us: int) -> None:
    parts = _keep_last(draft.view.parts, report.node, report, NODE_REPORTS_MAX)
    draft.view = replace(draft.view, parts=parts)


def _told_of_process(draft: _Draft, report: ProcessReport, _now_us: int) -> None:
    name = report.process
    processes = _keep_last(draft.view.processes, name, report, PROCESSES_MAX)
    if processes.get(name) is report and report.ended:
        processes = {each: told for each, told in processes.items() if each != name}
    draft.view = replace(draft.view, processes=processes)


def _held_back(draft: _Draft, report: HoldingReport, _now_us: int) -> None:
    name = (report.agent, report.table_id, report.version)
    held_back = _keep_last(draft.view.held_back, name, report, HELD_BACK_MAX)
    draft.view = replace(draft.view, held_back=held_back)


def _merged(draft: _Draft, report: MergeReport, _now_us: int) -> None:
    view = draft.view
    others = {node: told for node, told in view.merging.items() if node != report.node}
    if len(others) >= MERGING_MAX:
        del others[next(iter(others))]
    draft.view = replace(view, merging={**others, report.node: report})


# ---------------------------------------------------------------- the ledger, and who reads


def _ledger_seen(draft: _Draft, seen: LedgerSeen, now_us: int) -> None:
    _reached(draft, "ledger")
    sessions = _sessions_seen(draft.view, seen.report, now_us)
    draft.view = replace(draft.view, ledger=seen, ledger_us=now_us, sessions=sessions)


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


def _heard(draft: _Draft, heard: Heard, _now_us: int) -> None:
    known = draft.view.ahead_us
    ahead_us = {each: us for each, us in known.items() if each != heard.sender}
    ahead_us[heard.sender] = heard.ahead_us
    if len(ahead_us) > CLOCKS_MAX:
        del ahead_us[next(iter(ahead_us))]
    draft.view = replace(draft.view, ahead_us=ahead_us)


def _unreached(draft: _Draft, event: Unreachable, _now_us: int) -> None:
    unreachable = {**draft.view.unreachable, event.what: event.why}
    draft.view = replace(draft.view, unreachable=unreachable)


def _reached(draft: _Draft, what: str) -> None:
    known = draft.view.unreachable
    if what in known:
        left = {each: why for each, why in known.items() if each != what}
        draft.view = replace(draft.view, unreachable=left)


def _topics_read(draft: _Draft, event: TopicsRead, now_us: int) -> None:
    draft.view = replace(draft.view, not_read=dict(event.left), read_us=now_us)


def _topic_ends(draft: _Draft, event: TopicEnds, _now_us: int) -> None:
    draft.view = replace(draft.view, ends={**draft.view.ends, **event.ends})


def _spark_told(draft: _Draft, event: SparkReport, _now_us: int) -> None:
    draft.view = replace(draft.view, spark=event)


def _changefeed_told(draft: _Draft, event: ChangefeedReport, _now_us: int) -> None:
    draft.view = replace(draft.view, changefeed=event)


_FOLDS: Final[Mapping[type, Callable[[_Draft, Any, int], None]]] = {
    LogSeen: _log_seen,
    ClaimSeen: _claim_seen,
    TopicEnds: _topic_ends,
    Ack: _acknowledged,
    AccessReport: _told_open,
    NodeReport: _told_of_node,
    PartReport: _told_part,
    ProcessReport: _told_of_process,
    HoldingReport: _held_back,
    MergeReport: _merged,
    CheckReport: _checked,
    VersionEvent: _version,
    JobEvent: _job,
    JobForgotten: _job_forgotten,
    JobProgress: _progressed,
    SparkReport: _spark_told,
    ChangefeedReport: _changefeed_told,
    LedgerSeen: _ledger_seen,
    Heard: _heard,
    Unreachable: _unreached,
    Reachable: lambda draft, event, _now_us: _reached(draft, event.what),
    TopicsRead: _topics_read,
}
"""What folds each kind of event: all that `Event` names."""
