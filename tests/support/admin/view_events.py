"""Events as a view of the cluster gets them, with what a test does not say filled in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from leasehold.admin.view import (
    ClusterView,
    Event,
    LedgerSeen,
    LogSeen,
    fold,
)
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.lease.replies import Holding, SessionStatus, SnapshotReport, TableStatus
from leasehold.model.records.acks import Ack
from leasehold.model.records.events import VersionEvent
from leasehold.model.records.jobs import (
    JobEvent,
)
from leasehold.values.types import Type
from tests.support.schema_change.made_job import index_job

NOW = 1_000_000_000_000_000
SECOND = 1_000_000
JOB = index_job(2, 1, table="flights", versions={}, created_us=NOW)


def seen(*events: Event, now_us: int = NOW) -> ClusterView:
    view = ClusterView()
    for event in events:
        view = fold(view, event, now_us)
    return view


def log(offset: int, *, epoch: int = 1, lsn: int = 10, commits: int = 1, **more: Any) -> LogSeen:
    fields: dict[str, Any] = {
        "commit_us": NOW - SECOND,
        "refusals": 0,
        "dead_letters": 0,
        "decided_through": {"requests": 5},
        "answered_through": 0,
        **more,
    }
    return LogSeen(offset, epoch, 1, lsn, commits=commits, **fields)


def ack(node: str, role: str = "replicant", *, coherent: bool = True, **more: Any) -> Ack:
    fields: dict[str, Any] = {"offset": 4, "epoch": 1, "lsn": 10, "sent_us": NOW, **more}
    return Ack(
        node, b"", role, fields["offset"], fields["epoch"], fields["lsn"], 0, coherent, "",
        fields["sent_us"],
    )  # fmt: skip


def version(number: int, *columns: Column) -> VersionEvent:
    first = Column(1, "id", Type("integer"), nullable=False)
    body = Descriptor(1, "flights", number, (first, *columns), (1,)).to_wire()
    return VersionEvent(1, "flights", number, number, NOW, body, 0, "")


def job(**changes: Any) -> JobEvent:
    changed = replace(JOB, **changes)
    return JobEvent(changed.job_id, changes.get("step", 0) + 5, NOW, changed.to_wire())


def ledger(
    holders: dict[int, tuple[Holding, ...]],
    *,
    ready: bool = True,
    sessions: tuple[tuple[int, int, bool], ...] = (),
) -> LedgerSeen:
    """`sessions`: id, renewals, whether it is expiring."""
    tables = (TableStatus(1, 3, 2, 0, ((2, 1), (3, 4))),)
    seen = tuple(SessionStatus(s, "pricing", count, 1, expiring) for s, count, expiring in sessions)
    return LedgerSeen(SnapshotReport("run", 1, True, ready, seen, tables), holders)
