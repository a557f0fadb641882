"""Follows the log by the rule of every reader (L1, L2), from a backup's place on: to know where a
segment ends, and to bring a restored store to the target. PURE.

A target may lie within a record, which is a batch of decisions: then of this record only the
commits up to it are applied, and none of its refusals (those ids are decided anew when they are
asked again). The database goes on from there in a log of its own, so nobody misses the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from leasehold.backup.chain import NEWEST, Target
from leasehold.backup.manifest import Place
from leasehold.catalog.catalog import Catalog
from leasehold.model.ports import StoreWriter
from leasehold.model.records.log import Commit, Decisions, LogPosition, LogRecord, Unreadable
from leasehold.replication.log.admission import Verdict, admit
from leasehold.replication.log.apply import apply_record
from leasehold.replication.log.foreign import ForeignRecords
from leasehold.replication.log.retention import HistorySettings
from leasehold.replication.outcomes import OutcomeSettings

RECORDS_PER_COMMIT: Final = 200
"""Of the store: one for each record would cost more than what it holds."""
_FOREVER_NS: Final = 1 << 62


def place_of(position: LogPosition) -> Place:
    """Return what a manifest says of a position."""
    return Place(position.offset, position.lsn, position.time_us)


class LogFollower:
    """Judges records of the log in their order. `position` is that behind the last one that counts;
    what stands behind it is in doubt, or nothing."""

    def __init__(self, position: LogPosition) -> None:
        self.position = position
        self._at = position
        self._foreign = ForeignRecords()

    def take(self, record: LogRecord | Unreadable, offset: int, digest: bytes) -> Verdict:
        """Return what becomes of the record at `offset`. Raises LogStopped where one that counts
        can't be read."""
        verdict, self._at = self._foreign.judge(admit, self._at, offset, record, digest, 0)
        if not self._foreign.in_doubt:
            self.position = self._at
        return verdict

    def check(self) -> None:
        """Raise LogStopped if a chain of records stands behind `position` that does not follow: for
        who has read the log to its end, and waits for nobody."""
        self._foreign.check(_FOREVER_NS)


class Replay:
    """Applies records to a store up to a target. The store is committed every
    RECORDS_PER_COMMIT, and by `end`."""

    def __init__(self, store: StoreWriter, target: Target = NEWEST) -> None:
        """Begin at the store's position."""
        self._store = store
        self._target = target
        self.catalog = Catalog.of_store(store.catalog())
        self.position = store.position()
        self._foreign = ForeignRecords()
        self._outcomes, self._history = OutcomeSettings(), HistorySettings()
        self._uncommitted = 0
        self._cut = False  # part of a record was left out: nothing follows it
        store.keep_rows(self._history.rows_ms > 0)

    @property
    def is_done(self) -> bool:
        """Return whether nothing behind this position belongs to the target."""
        return self._cut or self._target.is_reached(self.position.lsn, self.position.time_us)

    def take(self, record: LogRecord | Unreadable, offset: int, digest: bytes) -> None:
        """Apply the record, or of it what lies before the target. Raises LogStopped, and what a
        store raises."""
        if self.is_done or offset < self.position.offset:
            return
        whole = record
        if isinstance(record, Decisions):
            record = self._up_to_target(record)
        verdict, after = self._foreign.judge(admit, self.position, offset, record, digest, 0)
        if verdict in (Verdict.APPLY, Verdict.CLAIMED) and not self._uncommitted:
            self._store.begin()
        if verdict is Verdict.APPLY:
            assert isinstance(record, Decisions)
            self._cut = record is not whole
            apply_record(record, after, self.catalog, self._store, self._outcomes, self._history)
        self.position = after
        if verdict in (Verdict.APPLY, Verdict.CLAIMED):
            self._uncommitted += 1
            if self._uncommitted >= RECORDS_PER_COMMIT:
                self._commit(after)

    def end(self, change: Callable[[LogPosition], LogPosition] = lambda position: position) -> None:
        """Commit what is open; `change` gives the position to store."""
        if not self._uncommitted:
            self._store.begin()
        self.position = change(self.position)
        self._commit(self.position)

    def _commit(self, position: LogPosition) -> None:
        self._store.commit(position)
        self._uncommitted = 0

    def _up_to_target(self, record: Decisions) -> Decisions:
        """Return the record with the commits alone that belong to the target."""
        kept = tuple(
            commit
            for number, commit in enumerate(record.commits)
            if self._belongs(record.first_lsn + number, commit)
        )
        if len(kept) == len(record.commits):
            return record
        # ⚠ Its closed time is that of all its commits: the log of the restored database goes on
        # behind it either way.
        return record._replace(commits=kept, refusals=())

    def _belongs(self, lsn: int, commit: Commit) -> bool:
        if self._target.lsn is not None:
            return lsn <= self._target.lsn
        return self._target.time_us is None or commit.commit_us <= self._target.time_us
