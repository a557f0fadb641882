"""How long the past is kept, and its collection: at the same log position on every node."""

from __future__ import annotations

from dataclasses import dataclass

from leasehold.model.ports import StoreWriter
from leasehold.schema.catalog import Catalog

MS_PER_DAY = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class HistorySettings:
    """`keep_ms`: how long after its replacement a descriptor can still be read AS OF a time at
    which it was current; by the commit times of the log, and the same for all nodes."""

    keep_ms: int = MS_PER_DAY
    collected_per_record_max: int = 100


def collect_history(
    commit_us: int, catalog: Catalog, store: StoreWriter, settings: HistorySettings
) -> None:
    """Forget versions that were replaced `keep_ms` before `commit_us`, oldest first. No request can
    name one (D5), and every change that was made under one stands before its fence in the log."""
    before_us = commit_us - settings.keep_ms * 1_000
    for ended in catalog.ended_before(before_us)[: settings.collected_per_record_max]:
        store.collect_descriptor(ended.table_id, ended.version, ended.until_lsn)
        catalog.forget(ended.table_id, ended.version)
