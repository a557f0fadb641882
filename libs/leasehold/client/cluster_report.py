"""A ClusterView as plain data: what `--json` prints, tables show and the dashboard draws. PURE.

Every name of the result is part of the command's promise to programs: add names, never change one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from leasehold.client.cluster_view import (
    RATE_SECONDS_MAX,
    ClusterView,
    JobView,
    NodeView,
    TableView,
    VersionChange,
)
from leasehold.client.version_diff import element_words
from leasehold.lease.replies import Holding
from leasehold.model.ids import format_request_id
from leasehold.model.records import CheckReport, Lane
from leasehold.schema.descriptor import Descriptor, Element
from leasehold.schema.job import Job, Phase, Status
from leasehold.schema.job_moves import can_turn_back
from leasehold.schema.types import to_json

BEHIND_LSN_SAID: Final = 1_000
"""Acks come several times a second, so a node that keeps up is seen a little behind."""
RATE_WINDOW_SECONDS: Final = 5
_WORK: Final = {
    Phase.PUBLISHING: "publishing the next version",
    Phase.DRAINING: "waiting until nobody holds the older version",
    Phase.BACKFILLING: "filling rows",
    Phase.VERIFYING: "every coherent node compares rows and element",
    Phase.DONE: "done",
}


def report(view: ClusterView, now_us: int) -> dict[str, Any]:
    """The whole view. Ages and lags are computed for `now_us`."""
    return {
        "now_us": now_us,
        "unreachable": dict(view.unreachable),
        "log": log_report(view, now_us),
        "rates": rates_report(view, now_us),
        "nodes": [node_report(view, node, now_us) for node in _by_name(view)],
        "ledger": ledger_report(view, now_us),
        "tables": [table_report(view, table) for _, table in sorted(view.tables.items())],
        "leases": leases_report(view, now_us),
        "jobs": [job_report(view, job, now_us) for _, job in sorted(view.jobs.items())],
        "lanes": lanes_report(view),
        "versions": [event_report(change) for change in reversed(view.recent)],
        "checks": [check_report(check) for check in reversed(view.checks)],
        "dead_letters": view.ends.get("dead-letter", 0),
    }


def _by_name(view: ClusterView) -> Iterable[NodeView]:
    return (view.nodes[name] for name in sorted(view.nodes))


def log_report(view: ClusterView, now_us: int) -> dict[str, Any]:
    """`master_silent_ms`: since the newest record was read; a master writes even when idle."""
    log = view.log
    return {
        "offset": max(log.end, view.ends.get("log", 0)),
        "lsn": log.lsn,
        "epoch": log.epoch,
        "master": log.master,
        "commit_us": log.commit_us,
        "master_silent_ms": (now_us - log.seen_us) // 1_000 if log.seen_us else None,
        "answered_through": log.answered_through,
    }


def rates_report(view: ClusterView, now_us: int) -> dict[str, Any]:
    """Per second over the last whole seconds, and one bar per second for a small chart."""
    at = now_us // 1_000_000
    window = [s for s in view.seconds if at - RATE_WINDOW_SECONDS <= s.at < at]
    by_second = {second.at: second for second in view.seconds}
    bars = [by_second.get(second) for second in range(at - RATE_SECONDS_MAX, at)]
    return {
        "committed_per_second": sum(s.committed for s in window) / RATE_WINDOW_SECONDS,
        "refused_per_second": sum(s.refused for s in window) / RATE_WINDOW_SECONDS,
        "dead_lettered_per_second": sum(s.dead_lettered for s in window) / RATE_WINDOW_SECONDS,
        "committed": view.committed,
        "refused": view.refused,
        "dead_lettered": view.dead_lettered,
        "last_minute": [
            [bar.committed, bar.refused, bar.dead_lettered] if bar else [0, 0, 0] for bar in bars
        ],
    }


def node_report(view: ClusterView, node: NodeView, now_us: int) -> dict[str, Any]:
    """`coherency`: coherent, incoherent, silent, or follows (a standby, which serves nobody);
    `for_ms` since when it is so."""
    ack = node.ack
    silent = node.silent(now_us)
    is_master = ack.node == view.log.master and ack.role == "master"
    # A master serves from the store it decides on: it has nothing to wait for.
    coherent = ack.coherent or is_master
    since_us = ack.sent_us if silent else node.since_us
    return {
        "node": ack.node,
        "role": ack.role,
        "coherency": _coherency(ack.role, silent, coherent),
        "for_ms": max(0, now_us - since_us) // 1_000,
        "offset": ack.offset,
        "lsn": ack.lsn,
        "epoch": ack.epoch,
        "lag_records": max(0, view.log.end - ack.offset),
        "lag_lsn": max(0, view.log.lsn - ack.lsn),
        "age_ms": max(0, now_us - ack.sent_us) // 1_000,
        "serves": ack.serves,
    }


def _coherency(role: str, silent: bool, coherent: bool) -> str:
    if silent:
        return "silent"
    if coherent:
        return "coherent"
    return "follows" if role == "standby" else "incoherent"


def ledger_report(view: ClusterView, now_us: int) -> dict[str, Any]:
    """`state`: unknown, away, closed (not seeded), grace (seeded, not ready) or ready (D6)."""
    if "ledger" in view.unreachable:
        state = "away"
    elif view.ledger is None:
        state = "unknown"
    elif not view.ledger.report.seeded:
        state = "closed"
    else:
        state = "ready" if view.ledger.report.ready else "grace"
    found = view.ledger.report if view.ledger else None
    return {
        "state": state,
        "run_id": found.run_id if found else "",
        "epoch": found.epoch if found else 0,
        "age_ms": (now_us - view.ledger_us) // 1_000 if found else None,
        "sessions": [
            {
                "session": s.session,
                "agent": s.agent,
                "renewals": s.counter,
                "leases": s.held,
                "expiring": s.expiring,
            }
            for s in (found.sessions if found else ())
        ],
    }


def table_report(view: ClusterView, table: TableView) -> dict[str, Any]:
    descriptor = table.descriptor
    return {
        "table_id": descriptor.table_id,
        "table": descriptor.name,
        "version": descriptor.version,
        "lsn": table.event.lsn,
        "commit_us": table.event.commit_us,
        "state": descriptor.state.label,
        "former_name": descriptor.alias or None,
        "primary_key": [column.name for column in descriptor.key_columns],
        "columns": elements_report(descriptor, descriptor.columns),
        "indexes": elements_report(descriptor, descriptor.indexes),
        "checks": elements_report(descriptor, descriptor.checks),
        "locks": elements_report(descriptor, descriptor.row_locks),
        "foreign_keys": elements_report(descriptor, descriptor.foreign_keys),
        "rows_about": view.ends.get(f"rows/{descriptor.table_id}", 0),
    }


def elements_report(descriptor: Descriptor, elements: Iterable[Element]) -> list[dict[str, Any]]:
    return [
        {
            "id": element.element_id,
            "name": element.name,
            "state": element.state.label,
            "definition": element_words(descriptor, element),
        }
        for element in elements
    ]


def leases_report(view: ClusterView, now_us: int) -> list[dict[str, Any]]:
    """Per table: current and lowest version, and who holds which."""
    if view.ledger is None:
        return []
    found = []
    for status in view.ledger.report.tables:
        known = view.tables.get(status.table)
        holders = view.ledger.holders.get(status.table, ())
        found.append(
            {
                "table_id": status.table,
                "table": known.event.name if known else f"table {status.table}",
                "current": status.current,
                "min_version": status.min_version,
                "versions": [
                    {
                        "version": version,
                        "leases": count,
                        "old": version < status.current,
                        "agents": [h.agent for h in holders if h.version == version],
                        "sessions": [h.session for h in holders if h.version == version],
                    }
                    for version, count in status.leases
                ],
            }
        )
    return found


def job_report(view: ClusterView, seen: JobView, now_us: int) -> dict[str, Any]:
    """`fraction` is 0 to 1 over all steps; `eta_s` of the backfill under way, None = not known.

    `point_of_no_return`: the step (from 1) that publishes what can't be taken back; `can_cancel`:
    it is not published yet. `findings`: which rows a failed verification blames.
    """
    job = seen.job
    progress = view.progress.get(job.job_id)
    current = progress if progress is not None and progress.run == job.run else None
    total = view.ends.get(f"rows/{job.table_id}", 0)
    rows = max(job.rows_read, current.rows if current else 0)
    filling = job.phase is Phase.BACKFILLING and not job.status.ended
    rate = current.rows_per_second if current and filling else 0.0
    left = max(0, total - rows)
    return {
        "job": job.job_id,
        "sql": job.sql,
        "table": job.table,
        "table_id": job.table_id,
        "kind": job.kind,
        "subject": job.subject,
        "status": job.status.value,
        "phase": job.phase.value,
        "step": min(job.step + 1, len(job.steps)),
        "steps": len(job.steps),
        "to": job.current.label if job.step < len(job.steps) else "",
        "point_of_no_return": job.point + 1,
        "can_cancel": can_turn_back(job),
        "postponed": job.postponed,
        "doing": _doing(job),
        "waits_for": blockers(view, job),
        "fraction": _fraction(job, rows, total),
        "run": job.run,
        "rows": rows,
        "rows_applied": job.rows_applied,
        "rows_total": max(total, rows) if total else 0,
        "rows_per_second": rate,
        "eta_s": round(left / rate, 1) if rate > 0 and total else None,
        "settings": dict(job.settings),
        "error": job.error,
        "findings": [
            {
                "condition": condition,
                "element": element,
                "key": _key_report(view.tables.get(job.table_id), key),
                "words": words,
            }
            for condition, element, key, words in job.findings
        ],
        "created_us": job.created_us,
        "age_ms": max(0, seen.event.commit_us - job.created_us) // 1_000
        if job.status.ended
        else max(0, now_us - job.created_us) // 1_000,
        "changed_us": seen.event.commit_us,
        "marks": [list(mark) for mark in job.marks],
    }


def _key_report(table: TableView | None, key: Iterable[Any]) -> list[Any]:
    """A primary key in its JSON form; as text while nothing is known of the table."""
    columns = table.descriptor.key_columns if table is not None else ()
    values = list(key)
    if len(columns) != len(values):  # a finding may be about no row
        return [str(value) for value in values]
    return [to_json(column.type, v) for column, v in zip(columns, values, strict=True)]


def _doing(job: Job) -> str:
    if job.status.ended:
        return job.error or job.status.value
    if job.status is Status.PAUSED:
        return "paused; leasehold jobs resume " + str(job.job_id)
    words = _WORK[job.phase]
    return f"rolling back: {words}" if job.status is Status.ROLLING_BACK else words


def _fraction(job: Job, rows: int, total: int) -> float:
    """Steps count alike; within a step publishing, draining, filling and verifying do."""
    if job.status is Status.SUCCEEDED:
        return 1.0
    if not job.steps or job.step >= len(job.steps):
        return 0.0
    backfill = job.current.backfill
    within = {
        Phase.PUBLISHING: 0.0,
        Phase.DRAINING: 0.05 if backfill else 0.5,
        Phase.BACKFILLING: 0.1 + 0.8 * min(1.0, rows / total if total else 0.0),
        Phase.VERIFYING: 0.9,
        Phase.DONE: 1.0,
    }[job.phase]
    # A backfill is the long part: it gets the room of four steps.
    weights = [4.0 if step.backfill else 1.0 for step in job.steps]
    done = sum(weights[: job.step]) + weights[job.step] * within
    return round(done / sum(weights), 4)


def blockers(view: ClusterView, job: Job) -> list[str]:
    """What a job waits for, each with what one can do about it; empty when nothing is in its way.

    What blocks a publish is always visible: agent, version, session.
    """
    if job.status.ended:
        return []
    if job.status is Status.PAUSED:
        return [f"a person paused it (leasehold jobs resume {job.job_id})"]
    if job.phase is Phase.VERIFYING:
        return [
            f"node {n.ack.node} is {view.log.lsn - n.ack.lsn:,} transactions behind"
            for n in _by_name(view)
            if n.ack.coherent and view.log.lsn - n.ack.lsn > BEHIND_LSN_SAID
        ]
    if job.phase not in (Phase.PUBLISHING, Phase.DRAINING):
        return []
    if job.postponed:
        return [f"a person postponed it (leasehold jobs complete {job.job_id})"]
    if "ledger" in view.unreachable:
        return ["the lease ledger is away; schema changes wait for it, reads and writes go on"]
    if view.ledger is None:
        return []
    if not view.ledger.report.ready:
        return ["the ledger's grace after a restart: agents register again what they hold (D6)"]
    return [
        _holding_words(holding, job)
        for table_id, version in sorted(job.versions.items())
        for holding in view.ledger.holders.get(table_id, ())
        if _in_the_way(holding, version, job.phase)
    ]


def _in_the_way(holding: Holding, version: int, phase: Phase) -> bool:
    # Draining waits until nobody is below the version just published; publishing it needs only
    # that nobody is below the one before (D2).
    return holding.version < (version if phase is Phase.DRAINING else version - 1)


def _holding_words(holding: Holding, job: Job) -> str:
    return (
        f"agent {holding.agent} holds {job.table} version {holding.version} "
        f"(session {holding.session}); it lets go when its work on it ends"
    )


def lanes_report(view: ClusterView) -> list[dict[str, Any]]:
    """Work that waits for the master, per lane; None where no record seen tells of the lane."""
    found = []
    for lane in Lane:
        end = view.ends.get(lane, 0)
        decided = view.log.decided_through.get(lane, None if end else 0)
        waiting = None if decided is None else max(0, end - decided)
        found.append(
            {"lane": lane.value, "offset": end, "decided_through": decided, "waiting": waiting}
        )
    return found


def event_report(change: VersionChange) -> dict[str, Any]:
    event = change.event
    return {
        "table": event.name,
        "table_id": event.table_id,
        "version": event.version,
        "lsn": event.lsn,
        "commit_us": event.commit_us,
        "job": event.job_id,
        "step": event.step,
        "job_subject": event.job.get("subject", ""),
        "job_step": event.job.get("step", 0),
        "job_steps": event.job.get("steps", 0),
        "changes": [each.to_json() for each in change.changes],
        "words": [str(each) for each in change.changes],
    }


def subject_words(subject: bytes) -> str:
    """A barrier's id as a UUID; `job:7:1` as it is."""
    if subject.startswith(b"job:"):
        return subject.decode("ascii", "replace")
    return format_request_id(subject) if len(subject) == 16 else subject.hex()


def check_report(check: CheckReport) -> dict[str, Any]:
    return {
        "subject": subject_words(check.subject),
        "node": check.node,
        "table_id": check.table_id,
        "version": check.version,
        "offset": check.offset,
        "lsn": check.lsn,
        "rows": check.rows,
        "entries": {str(index): count for index, count in check.entries.items()},
        "checksum": check.checksum.hex(),
        "findings_total": check.findings_total,
        "findings": [list(finding) for finding in check.findings],
        "took_ms": check.took_ms,
        "error": check.error,
    }
