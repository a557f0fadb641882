"""What a node does with its store between two records: it checks and repairs it, and removes what
is dead, a little at a time, so that no record is delayed noticeably."""

from __future__ import annotations

from typing import Final

from leasehold.catalog.catalog import Catalog
from leasehold.model.ports import Now, StoreWriter
from leasehold.model.records.acks import CheckReport
from leasehold.model.records.log import Decisions, LogPosition
from leasehold.model.time_units import NS_PER_MS
from leasehold.replication.checks import Checks
from leasehold.replication.effects import Effect, Send, Topic, Wake
from leasehold.replication.node_settings import NodeSettings
from leasehold.replication.range_merging import RangeMerging

REMOVED_ROWS_MAX: Final = 1_000
REMOVAL_PAUSE_MS: Final = 50
REMOVAL_LOOK_MS: Final = 1_000


class StoreUpkeep:
    """The upkeep of one store. Its `checks` start by what the log says."""

    def __init__(self, settings: NodeSettings, store: StoreWriter) -> None:
        self._name = settings.name
        self._store = store
        self._users_recent_ns = settings.master.users_recent_ms * NS_PER_MS
        self.checks = Checks(store, settings.name, serving=settings.serving)
        self._merging = RangeMerging(settings.name, store)
        self._removal_ns = 0
        self._users_ns: int | None = None  # when rows that a request wrote were last read
        self.beside_users = False
        """Whether a request has written rows lately."""
        self._gentle = False

    def record_read(self, record: Decisions, now: Now) -> None:
        """Note whether users write, and what there is to be merged."""
        self._merging.record_read(record)
        first = record.commits[0] if record.commits else None  # those of requests come first
        if first is not None and first.request_id and first.changes:
            self._users_ns = now.mono_ns

    def give_way(self, catalog: Catalog, now: Now) -> None:
        """Let checks and merges go as fast as they can while no user waits for what they hold
        up."""
        beside = self._users_ns is not None and now.mono_ns - self._users_ns < self._users_recent_ns
        gentle = catalog.is_gentle()
        if (beside, gentle) != (self.beside_users, self._gentle):
            self.beside_users, self._gentle = beside, gentle
            self._store.give_way(beside_users=beside, gentle=gentle)

    def work(self, catalog: Catalog, position: LogPosition, now: Now) -> list[Effect]:
        """Repair, merge and remove a little; the store is at `position`, and nothing is open in
        it."""
        effects = self._repair(catalog, position, now) + self._merging.work(catalog, now)
        return effects + self._remove_dead(now)

    def reports(
        self, catalog: Catalog, incarnation: bytes, position: LogPosition, now: Now
    ) -> list[Effect]:
        """Return the reports of checks that have ended, and on what is merged at `position`, which
        is committed."""
        reports = [self._report(report) for report in self.checks.take_reports(incarnation)]
        return [*reports, *self._merging.report(catalog, incarnation, position, now)]

    def _repair(self, catalog: Catalog, position: LogPosition, now: Now) -> list[Effect]:
        if not self.checks.repairing:
            return []
        done = self.checks.repair(catalog, position)
        return [self._report(done)] if done is not None else [Wake(now.mono_ns + NS_PER_MS)]

    def _remove_dead(self, now: Now) -> list[Effect]:
        if now.mono_ns < self._removal_ns:
            return []
        more = self._store.remove_dead(REMOVED_ROWS_MAX)
        pause_ms = REMOVAL_PAUSE_MS if more else REMOVAL_LOOK_MS
        self._removal_ns = now.mono_ns + pause_ms * NS_PER_MS
        return [Wake(self._removal_ns)] if more else []

    def _report(self, report: CheckReport) -> Send:
        return Send(Topic.ACKS, 0, self._name.encode(), report, 0)
