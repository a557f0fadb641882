"""What `leasehold dev` shows of its whole database: the view that watchers of a real one fold."""

from __future__ import annotations

from typing import Any

from leasehold.adapters.codec.log_header import LogHeader, read_header
from leasehold.adapters.os.clock import unix_us
from leasehold.admin.fold import fold
from leasehold.admin.view import ClaimSeen, ClusterView, LedgerSeen, LogSeen, TopicEnds
from leasehold.admin.watch import LISTED_TABLES_MAX
from leasehold.in_process.cluster import MemoryCluster
from leasehold.lease.commands import Holders, Snapshot
from leasehold.lease.replies import HolderList, SnapshotReport
from leasehold.model.records.acks import (
    AccessReport,
    Ack,
    CheckReport,
    HoldingReport,
    MergeReport,
    NodeReport,
    PartReport,
)
from leasehold.model.records.events import VersionEvent
from leasehold.model.records.jobs import JobEvent
from leasehold.model.records.log import JobForgotten

_SHOWN = (
    *(AccessReport, Ack, CheckReport, HoldingReport, MergeReport, NodeReport),
    *(JobEvent, JobForgotten, PartReport, VersionEvent),
)


class DevView:
    """Told of everything that is appended; for one thread at a time."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster
        self._view = ClusterView()

    def record(self, record: Any) -> None:
        if isinstance(record, _SHOWN):
            self._view = fold(self._view, record, unix_us())

    def log(self, offset: int, data: bytes) -> None:
        header = read_header(data)
        if isinstance(header, LogHeader):
            self._view = fold(self._view, LogSeen(offset, *header), unix_us())
        elif header is not None:
            claim = ClaimSeen(offset, header.epoch, header.node)
            self._view = fold(self._view, claim, unix_us())

    def newest(self) -> ClusterView:
        """Raises LedgerUnavailable."""
        cluster, topics = self._cluster, self._cluster.topics
        ends = {
            "log": cluster.bus.end(topics.log.name),
            "requests": cluster.bus.end(topics.requests.name),
            "backfill": cluster.bus.end(topics.backfill.name),
            "dead-letter": cluster.bus.end(topics.dead_letter.name),
        }
        report = cluster.ledger.call(Snapshot())
        assert isinstance(report, SnapshotReport), report
        holders = {}
        for status in [each for each in report.tables if each.leases][:LISTED_TABLES_MAX]:
            told = cluster.ledger.call(Holders(status.table))
            if isinstance(told, HolderList):
                holders[status.table] = told.holders
        view = fold(self._view, TopicEnds(ends), unix_us())
        self._view = fold(view, LedgerSeen(report, holders), unix_us())
        return self._view
