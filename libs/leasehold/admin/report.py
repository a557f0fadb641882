"""A ClusterView as plain data: what `--json` prints, tables show and the dashboard draws. PURE.

Every name of the result is part of the command's promise to programs: add names, never change one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import Any, Final

from leasehold.admin.blocker_report import holding_report
from leasehold.admin.fold import RATE_SECONDS_MAX
from leasehold.admin.job_report import SPARK_SILENT_SAID_MS, count_ended, recent_jobs_report
from leasehold.admin.parts import part_words
from leasehold.admin.sender_clocks import CHANGEFEED, SPARK
from leasehold.admin.view import (
    OPEN_KNOWN_FOR_US,
    SILENT_AFTER_US,
    ClusterView,
    NodeView,
    TableView,
    VersionChange,
)
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Element
from leasehold.events.version_diff import element_name, element_words
from leasehold.model.ids import format_request_id, is_sequence_id
from leasehold.model.records.acks import CheckReport
from leasehold.model.records.requests import Queue
from leasehold.replication.log.truncation import TruncationSettings, copy_parts

RATE_WINDOW_SECONDS: Final = 5
REPORT_KNOWN_FOR_US: Final = 30_000_000
"""Several of a node's words on its disk; one of an earlier release says none."""
CHECKS_TOLD_MAX: Final = 64
CHANGEFEED_SILENT_SAID_MS: Final = 15_000
"""Three of its words."""


def report(view: ClusterView, now_us: int, *, tables_max: int | None = None) -> dict[str, Any]:
    """The whole view; of the jobs those that `recent_jobs_report` tells of, and of the tables at
    most `tables_max`, those first that are being changed, then those that were changed last, with
    the leases on them. `jobs_ended` and `tables_there`: how many there are.

    Ages and lags are those at `as_of_us`, when the topics were last read, and for the ledger those
    at `now_us`. `gaps`: sentences on what can't be told yet, or no longer; as a rule none.
    `dead_letters`: the next offset of their topic, where the ends of transactions have offsets,
    too."""
    asked_us, now_us = now_us, view.as_of_us(now_us)
    tables = [table for _, table in sorted(view.tables.items())]
    leased = None
    if tables_max is not None and len(tables) > tables_max:
        tables = _of_interest(view, tables, tables_max)
        leased = {table.event.table_id for table in tables}
    return {
        "now_us": asked_us,
        "as_of_us": now_us,
        "gaps": view.gaps(asked_us),
        "unreachable": dict(view.unreachable),
        "log": log_report(view, now_us),
        "rates": rates_report(view, now_us),
        "nodes": [node_report(view, node, now_us) for node in _by_name(view)],
        "disks": disks_report(view, now_us),
        "copies": copies_report(view, now_us),
        "ledger": ledger_report(view, asked_us),
        "spark": spark_report(view, now_us),
        "changefeed": changefeed_report(view, now_us),
        "tables": [table_report(view, table) for table in tables],
        "tables_there": len(view.tables),
        "leases": leases_report(view, asked_us, leased),
        "jobs": recent_jobs_report(view, now_us),
        "jobs_ended": count_ended(view),
        "lanes": queues_report(view),
        "versions": [event_report(change) for change in reversed(view.recent)],
        "checks": [check_report(check) for check in islice(_newest_checks(view), CHECKS_TOLD_MAX)],
        "dead_letters": view.ends.get("dead-letter", 0),
    }


def _of_interest(view: ClusterView, tables: list[TableView], most: int) -> list[TableView]:
    """Return the tables that running jobs change, then those with the newest versions."""
    running = [seen.job for seen in view.jobs.values() if not seen.status.ended]
    changing = {table_id for job in running for table_id in job.tables}

    def rank(table: TableView) -> tuple[bool, int]:
        return table.event.table_id not in changing, -table.event.lsn

    return sorted(sorted(tables, key=rank)[:most], key=lambda table: table.event.table_id)


def spark_report(view: ClusterView, now_us: int) -> dict[str, Any] | None:
    """Return how long ago Spark's driver reported, and `trouble`: why its retry stream does not
    run. None where none ever has."""
    if view.spark is None:
        return None
    heard_ms = view.age_us(SPARK, view.spark.sent_us, now_us) // 1_000
    return {
        "heard_ms": heard_ms,
        "silent": heard_ms > SPARK_SILENT_SAID_MS,
        "trouble": view.spark.trouble,
    }


def changefeed_report(view: ClusterView, now_us: int) -> dict[str, Any] | None:
    """Return how far the changefeed is; None where none has ever reported.

    `lag_records` counts records of the log, which it publishes in order. `feeds`: those of tables.
    """
    told = view.changefeed
    if told is None:
        return None
    heard_ms = view.age_us(CHANGEFEED, told.sent_us, now_us) // 1_000
    return {
        "heard_ms": heard_ms,
        "silent": heard_ms > CHANGEFEED_SILENT_SAID_MS,
        "offset": told.offset,
        "lsn": told.lsn,
        "lag_records": max(0, view.log.end - told.offset),
        "feeds": [
            {"table": table, "status": status, "words": words}
            for table, status, words in told.feeds
        ],
    }


def _by_name(view: ClusterView) -> Iterable[NodeView]:
    return (view.nodes[name] for name in sorted(view.nodes))


def log_report(view: ClusterView, now_us: int) -> dict[str, Any]:
    """Return how far the log is, and its master's clock.

    `master_silent_ms` is the age of the newest record; a master writes even when idle. No commit so
    far is later than `time_us`, and every later one is; `ahead_ms` is how far the master's clock is
    ahead of ours (negative: behind). `id_horizon_us` is the newest one of Decisions.
    """
    log = view.log
    master = view.nodes.get(log.master)
    clock_us = master.ack.sent_us if master is not None else None
    return {
        "offset": max(log.end, view.ends.get("log", 0)),
        "lsn": log.lsn,
        "epoch": log.epoch,
        "master": log.master,
        "commit_us": log.commit_us,
        "master_silent_ms": (now_us - log.seen_us) // 1_000 if log.seen_us else None,
        "answered_through": log.answered_through,
        "time_us": log.time_us,
        "id_horizon_us": log.id_horizon_us,
        "master_clock_us": clock_us,
        "ahead_ms": None if clock_us is None else (log.time_us - clock_us) // 1_000,
    }


def rates_report(view: ClusterView, now_us: int) -> dict[str, Any]:
    """Per second over the last whole seconds, and one bar per second for a small chart. The seconds
    are those of the log's time, which stamps commits."""
    at = view.log_now_us(now_us) // 1_000_000
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
    """Return how a node is, and since when.

    `coherency` is coherent, incoherent, silent, or follows (a standby, which serves nobody);
    `for_ms` is how long it has been so. `holds`: the tables of a partial replica, "" = everything.
    """
    ack = node.ack
    silent = view.is_silent(node, now_us)
    is_master = ack.node == view.log.master and ack.role == "master"
    # A master serves from the store it decides on: it has nothing to wait for.
    coherent = ack.coherent or is_master
    since_us = ack.sent_us if silent else node.since_us
    return {
        "node": ack.node,
        "role": ack.role,
        "coherency": _coherency(ack.role, silent, coherent),
        "for_ms": view.age_us(ack.node, since_us, now_us) // 1_000,
        "offset": ack.offset,
        "lsn": ack.lsn,
        "epoch": ack.epoch,
        "lag_records": max(0, view.log.end - ack.offset),
        "lag_lsn": max(0, view.log.lsn - ack.lsn),
        "age_ms": view.age_us(ack.node, ack.sent_us, now_us) // 1_000,
        "serves": ack.serves,
        "open": _open_words(view, ack.node, now_us),
        "holds": part_words(view, ack.node),
        "foreign_records": ack.foreign,
    }


def copies_report(view: ClusterView, now_us: int) -> list[dict[str, Any]]:
    """Return the copies of stores that nodes take to begin from, oldest first, and those just
    taken: the log is kept from `offset`, for `kept_ms` more if no more is heard of one.

    `node`: who takes it ("" = a node of an earlier release, which doesn't say); `source`: whose
    store it is. `lag_records`: what it will have to read of the log afterwards.
    """
    kept_ms = TruncationSettings().copy_away_ms
    found = []
    for name, ack in view.copies.items():
        age_ms = view.age_us(name, ack.sent_us, now_us) // 1_000
        source, taker = copy_parts(name)
        if age_ms < kept_ms:
            found.append(
                {
                    "node": taker,
                    "source": source,
                    "under_way": age_ms * 1_000 <= SILENT_AFTER_US,
                    "offset": ack.offset,
                    "lag_records": max(0, view.log.end - ack.offset),
                    "age_ms": age_ms,
                    "kept_ms": kept_ms - age_ms,
                }
            )
    return sorted(found, key=lambda copy: copy["offset"])


def disks_report(view: ClusterView, now_us: int) -> list[dict[str, Any]]:
    """Return what each node that is there has told of its release and of its store's disk, in
    bytes; `room` is enough, short (a master refuses what needs room) or out (the node leaves)."""
    found = []
    for node, told in sorted(view.node_reports.items()):
        age_us = view.age_us(node, told.sent_us, now_us)
        if node in view.nodes and age_us <= REPORT_KNOWN_FOR_US:
            found.append({**told._asdict(), "age_ms": age_us // 1_000})
    return found


def _open_words(view: ClusterView, node: str, now_us: int) -> str:
    """Return whom the node lets in without asking; "" = nobody, as far as is known."""
    told = view.open_nodes.get(node)
    if told is None or view.age_us(node, told.sent_us, now_us) > OPEN_KNOWN_FOR_US:
        return ""
    return told.words


def _coherency(role: str, silent: bool, coherent: bool) -> str:
    if silent:
        return "silent"
    if coherent:
        return "coherent"
    return "follows" if role == "standby" else "incoherent"


def ledger_report(view: ClusterView, now_us: int) -> dict[str, Any]:
    """Return how the ledger is. `state` is unknown, away, closed (not seeded), grace (seeded, not
    ready) or ready (D6)."""
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
                "renewed_ms": _since_ms(view.sessions[s.session].moved_us, now_us),
            }
            for s in (found.sessions if found else ())
        ],
    }


def _since_ms(unix_us: int, now_us: int) -> int | None:
    return max(0, now_us - unix_us) // 1_000 if unix_us else None


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
        "primary_key": [c.name for c in descriptor.key_columns if not c.hidden],
        "columns": elements_report(descriptor, descriptor.in_place),
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
            "name": element_name(element),
            "state": element.state.label,
            "definition": element_words(descriptor, element),
        }
        for element in elements
    ]


def leases_report(
    view: ClusterView, now_us: int, table_ids: Collection[int] | None = None
) -> list[dict[str, Any]]:
    """Per table, of all or those given: current and lowest version, and who holds which; of old
    ones (`holders`) since when, at what work, and whether the agent answers."""
    if view.ledger is None:
        return []
    found = []
    for status in view.ledger.report.tables:
        if is_sequence_id(status.table) and not status.leases:
            continue  # of one whose rows nobody reads there is nothing to tell
        if table_ids is not None and status.table not in table_ids:
            continue
        known = view.tables.get(status.table)
        holders = view.ledger.holders.get(status.table, ())
        name = known.event.name if known else f"table {status.table}"
        found.append(
            {
                "table_id": status.table,
                "table": name,
                "current": status.current,
                "min_version": status.min_version,
                "versions": [
                    {
                        "version": version,
                        "leases": count,
                        "old": version < status.current,
                        "agents": [h.agent for h in holders if h.version == version],
                        "sessions": [h.session for h in holders if h.version == version],
                        "holders": [
                            holding_report(view, h, name, now_us)
                            for h in holders
                            if h.version == version and version < status.current
                        ],
                    }
                    for version, count in status.leases
                ],
            }
        )
    return found


def queues_report(view: ClusterView) -> list[dict[str, Any]]:
    """Work that waits for the master, per queue; None where no record seen tells of the queue."""
    found = []
    for queue in Queue:
        end = view.ends.get(queue, 0)
        decided = view.log.decided_through.get(queue, None if end else 0)
        waiting = None if decided is None else max(0, end - decided)
        found.append(
            {"lane": queue.value, "offset": end, "decided_through": decided, "waiting": waiting}
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


def _newest_checks(view: ClusterView) -> Iterator[CheckReport]:
    for said in reversed(view.checks.values()):
        yield from reversed(said.values())


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
        "repaired": check.repaired if check.repaired >= 0 else None,
    }
