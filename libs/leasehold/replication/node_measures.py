"""What a node counts of the log that it applies, of its terms and of its coherency lease."""

from __future__ import annotations

from leasehold.model import metrics
from leasehold.model.measures import Measures
from leasehold.model.records.log import Decisions
from leasehold.model.time_units import NS_PER_S


class NodeMeasures:
    """The counters of one node. Times are its monotonic clock, in ns."""

    def __init__(self, measures: Measures, now_ns: int) -> None:
        """Begin, without a lease."""
        self._measures = measures
        self._coherent = False
        self._coherent_ns = now_ns  # when that was noted last
        self.changes: dict[int, int] = {}
        """Row changes by table id, since the process has begun."""
        self.commit_us = 0
        """When the last transaction was committed that was applied here."""

    def applied(self, record: Decisions, took_ns: int = -1) -> None:
        """Count a record that was applied in so long, -1: by its own master."""
        measures, commits = self._measures, record.commits
        measures.add(metrics.RECORDS_APPLIED)
        if took_ns >= 0:
            measures.observe(metrics.APPLY_S, took_ns / NS_PER_S)
        if not commits:
            return
        measures.add(metrics.TRANSACTIONS_APPLIED, len(commits))
        self.commit_us = commits[-1].commit_us
        changes = self.changes
        for commit in commits:
            for change in commit.changes:
                table_id = change.table_id
                changes[table_id] = changes.get(table_id, 0) + 1

    def took_over(self) -> None:
        self._measures.add(metrics.TAKEOVERS)

    def lost_term(self) -> None:
        self._measures.add(metrics.TERMS_LOST)

    def note_coherency(self, now_ns: int, *, holds: bool) -> None:
        """Note whether the node holds its lease, and since the last time that it did not."""
        if not self._coherent:
            self._measures.add(metrics.INCOHERENT_S, (now_ns - self._coherent_ns) / NS_PER_S)
        self._coherent_ns = now_ns
        if holds != self._coherent:
            self._coherent = holds
            self._measures.add(metrics.COHERENCY_GAINED if holds else metrics.COHERENCY_LOST)
