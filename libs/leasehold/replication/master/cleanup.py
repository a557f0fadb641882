"""What a master deletes now and then: of the log, and of what the catalog remembers."""

from __future__ import annotations

from leasehold.catalog.catalog import Catalog
from leasehold.model.ports import Now
from leasehold.model.records.log import CatalogWrite, LogPosition
from leasehold.model.time_units import NS_PER_MS
from leasehold.replication.effects import DeleteLogBelow, Effect
from leasehold.replication.log.retention import FORGET_EVERY_MS, forgotten_before_us
from leasehold.replication.log.truncation import LogTruncation
from leasehold.replication.master.settings import MasterSettings
from leasehold.schema_change.job.forgetting import FORGOTTEN_PER_COMMIT_MAX, find_forgettable


class Cleanup:
    """Begins with its first pause: a master that has just come deletes nothing."""

    def __init__(
        self,
        settings: MasterSettings,
        position: LogPosition,
        catalog: Catalog,
        truncation: LogTruncation,
        now_ns: int,
    ) -> None:
        """Begin at `position`, right after the Claim. `truncation`: the candidate's, which outlives
        a term."""
        self._settings = settings
        self._catalog = catalog
        self.truncation = truncation
        self.commit_us = position.commit_us
        """The time of the log's last commit, in unix µs."""
        self._deleted_ns = now_ns
        self._forgot_ns = now_ns

    def forget(self, now: Now) -> tuple[CatalogWrite, ...]:
        """Return the writes that forget tables that were dropped and jobs that ended long ago, by
        the log's time."""
        if now.mono_ns - self._forgot_ns < FORGET_EVERY_MS * NS_PER_MS:
            return ()
        before_us = forgotten_before_us(self.commit_us, self._settings.history)
        writes = find_forgettable(self._catalog, before_us)
        if len(writes) < FORGOTTEN_PER_COMMIT_MAX:
            self._forgot_ns = now.mono_ns
        return writes

    def is_due(self, now_ns: int) -> bool:
        """Whether it is time to delete of the log and the queues' topics; says so once."""
        if now_ns - self._deleted_ns < self._settings.delete_every_ms * NS_PER_MS:
            return False
        self._deleted_ns = now_ns
        return True

    def truncate_log(self, position: LogPosition, now_ns: int) -> list[Effect]:
        floor = self.truncation.floor(position, now_ns)
        return [] if floor is None else [DeleteLogBelow(floor)]
