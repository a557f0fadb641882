"""Goal: what is remembered of requests is bounded by what a day brings, however busy the log is.

Method: records are applied one by one to both stores, an hour's worth in one, with a horizon of a
minute instead of a day.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.catalog.catalog import Catalog
from leasehold.model.ids import request_id
from leasehold.model.records.log import Commit, Decisions, LogPosition
from leasehold.replication.log.apply import COLLECT_EVERY_RECORDS, apply_record
from leasehold.replication.log.retention import HistorySettings
from leasehold.replication.outcomes import OutcomeSettings
from tests.support.memory_store.store import MemoryStore

START_MS = 1_700_000_000_000
KEPT_MS = 60_000


class Applied:
    """Records of `commits` each, `every_ms` apart."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self.ms = START_MS
        self.position = LogPosition()
        self._settings = OutcomeSettings(horizon_ms=KEPT_MS, collected_per_record_max=50)

    def records(self, count: int, commits: int, every_ms: int) -> None:
        for _ in range(count):
            self.ms += every_ms
            lsn = self.position.lsn
            made = tuple(
                Commit(self._id(lsn + n), 1, self.ms * 1_000 + n, {}, (), 1)
                for n in range(1, commits + 1)
            )
            horizon_us = (self.ms - KEPT_MS) * 1_000
            record = Decisions(1, b"", 1, b"", lsn + 1, made, (), {}, 0, (), 0, horizon_us)
            self.position = self.position._replace(
                sequence=self.position.sequence + 1,
                lsn=lsn + commits,
                commit_us=self.ms * 1_000 + commits,
                id_horizon_us=horizon_us,
            )
            self.store.begin()
            apply_record(
                record,
                self.position,
                Catalog(),
                self.store,
                self._settings,
                HistorySettings(rows_ms=0),
            )
            self.store.commit(self.position)

    def _id(self, lsn: int) -> bytes:
        return request_id(self.ms, lsn.to_bytes(10, "big"))

    @property
    def remembered(self) -> int:
        return len(self.store.oldest_outcomes(1_000_000))


@pytest.fixture(params=["memory", "sqlite"])
def applied(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Applied]:
    if request.param == "memory":
        yield Applied(MemoryStore())
        return
    store = SqliteStore(tmp_path / "node.db", cache_mb=1)
    yield Applied(store)
    store.close()


def test_l5_a_busy_log_forgets_as_much_as_comes(applied: Applied) -> None:
    """Twenty commits a record, two records a second: 2,400 in the time that is remembered."""
    applied.records(120, 20, 500)
    assert applied.remembered == pytest.approx(2_400, abs=20)
    applied.records(240, 20, 500)
    assert applied.remembered <= 2_440


def test_l5_what_gathered_while_the_log_was_idle_goes_when_it_is_busy(applied: Applied) -> None:
    """Heartbeats take some away now and then; each decision two."""
    applied.records(100, 20, 100)
    before = applied.remembered
    applied.records(2 * COLLECT_EVERY_RECORDS, 0, 60_000)
    assert before - 100 <= applied.remembered < before
    applied.records(100, 20, 10)
    assert applied.remembered <= 2_000
