"""What `cluster_report` tells, as rows of the schema `leasehold`. PURE.

One report for the command, the dashboard and SQL, so that they can never tell three stories.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from leasehold.admin.job_report import jobs_report
from leasehold.admin.report import event_report, leases_report, node_report, table_report
from leasehold.admin.view import ClusterView
from leasehold.values import jsonb

Row = dict[str, Any]
_NODE: Final = ("node", "role", "coherency", "for_ms", "lsn", "epoch", "lag_lsn", "lag_records")
_JOB: Final = (
    *("job", "table_id", "sql", "kind", "subject", "status", "phase", "step", "steps", "doing"),
    *("point_of_no_return", "fraction", "rows_total", "rows_per_second", "eta_s", "ends_in_s"),
    *("attempts", "error", "age_ms"),
)
_HOLDER: Final = ("state", "held_ms", "old_ms")


def nodes_rows(view: ClusterView, now_us: int) -> Iterator[Row]:
    for _, node in sorted(view.nodes.items()):
        told = node_report(view, node, now_us)
        yield _picked(told, _NODE) | {
            "log_offset": told["offset"],
            "heard_ms": told["age_ms"],
            "serves": int(bool(told["serves"])),
        }


def leases_rows(view: ClusterView, now_us: int) -> Iterator[Row]:
    """Yield a row for each holder; one for all holders of a version that the ledger did not
    name."""
    for table in leases_report(view, now_us):
        for version in table["versions"]:
            row = {
                "table_name": table["table"],
                "table_id": table["table_id"],
                "version": version["version"],
                "is_old": int(version["old"]),
                "min_version": table["min_version"],
            }
            holders = {holder["session"]: holder for holder in version["holders"]}
            named = list(zip(version["agents"], version["sessions"], strict=True))
            for agent, session in named:
                told = holders.get(session, {})
                row_of_holder = row | {"agent": agent, "session": session}
                row_of_holder |= _picked(told, [name for name in _HOLDER if name in told])
                if told.get("work"):
                    row_of_holder["work"] = jsonb.text_of(told["work"])
                yield row_of_holder
            if not named:
                yield row


def jobs_rows(view: ClusterView, now_us: int) -> Iterator[Row]:
    for told in jobs_report(view, now_us):
        yield _picked(told, _JOB) | {
            "table_name": told["table"],
            "target": told["to"],
            "can_cancel": int(told["can_cancel"]),
            "postponed": int(told["postponed"]),
            "waits_for": "; ".join(told["waits_for"]),
            "rows_done": told["rows"],
            "findings": jsonb.text_of(told["findings"]),
            "created": told["created_us"],
            "changed": told["changed_us"],
            "settings": jsonb.text_of(told["settings"]),
            "blockers": jsonb.text_of(told["blockers"]),
            "rows_applied": told["rows_applied"],
            "phase_ms": told["phase_ms"],
            "ended": told["ended_us"],
            "dismissed": int(told["dismissed"]),
            "asked_by": told["asked_by"],
        }


def versions_rows(view: ClusterView, now_us: int) -> Iterator[Row]:
    """The newest version of each table, and the changes seen of late, newest first."""
    changes = {(c.event.table_id, c.event.version): c for c in view.recent}
    for table_id, table in sorted(view.tables.items()):
        change = changes.pop((table_id, table.event.version), None)
        told = table_report(view, table)
        words = "" if change is None else "; ".join(event_report(change)["words"])
        yield {
            "table_name": told["table"],
            "table_id": table_id,
            "version": told["version"],
            "is_newest": 1,
            "lsn": told["lsn"],
            "committed": told["commit_us"],
            "job": table.event.job_id,
            "step": table.event.job.get("step", 0),
            "changes": words,
        }
    for change in sorted(changes.values(), key=lambda each: -each.event.lsn):
        told = event_report(change)
        yield _picked(told, ("table_id", "version", "lsn", "job")) | {
            "table_name": told["table"],
            "is_newest": 0,
            "committed": told["commit_us"],
            "step": told["job_step"],
            "changes": "; ".join(told["words"]),
        }


def _picked(told: Mapping[str, Any], names: Any) -> Row:
    return {name: told[name] for name in names}


CLUSTER_ROWS: Final[Mapping[str, Callable[[ClusterView, int], Iterator[Row]]]] = {
    "nodes": nodes_rows,
    "leases": leases_rows,
    "jobs": jobs_rows,
    "versions": versions_rows,
}
"""By the relation's name."""
