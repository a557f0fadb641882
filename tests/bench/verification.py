"""One pass against slices: what a job's verification of a big table costs the store it runs on.

`python -m tests.bench.verification [ROWS [SLICE_ROWS …]]`, without Kafka: one store, its writer
committing ten updated rows at a time at a steady pace, and the check of a UNIQUE index beside it.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final, NamedTuple

from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column, Index
from leasehold.model.ids import genid
from leasehold.model.records.acks import CheckReport
from leasehold.model.records.log import ChangeKind, CheckSlice, LogPosition, RowChange
from leasehold.schema_change.coordinator.sliced_verification import WalkSettings
from leasehold.schema_change.coordinator.verification import next_slice, slice_rows
from leasehold.values.types import Type

ROWS: Final = 1_000_000
COLUMNS: Final = 8
INDEX: Final = 20
COMMIT_ROWS: Final = 10
COMMITS_PER_SECOND: Final = 300
LOADED_AT_ONCE: Final = 20_000
TABLE: Final = Descriptor(
    1,
    "t",
    1,
    (
        Column(1, "id", Type("integer"), nullable=False),
        Column(2, "a", Type("integer"), nullable=False),
        *(Column(3 + n, f"c{n}", Type("text")) for n in range(COLUMNS - 2)),
    ),
    (1,),
    (Index(INDEX, "by_a", (2,), unique=True),),
    30,
)


class Figures(NamedTuple):
    slices: int
    whole_s: float
    longest_ms: float
    wal_mb: float
    commits: int
    commit_max_ms: float


class Bench:
    """A store of `rows` rows whose writer goes on at a steady pace."""

    def __init__(self, path: Path, rows: int) -> None:
        self.rows = rows
        self.wal = path.with_name(path.name + "-wal")
        self.store = SqliteStore(path, cache_mb=64)
        self._lsn = 1
        self._written_lsn = [1] * rows
        self._next_row = 0
        self._load()

    def _change(self, number: int, kind: ChangeKind) -> None:
        image: dict[int, Any] = {1: number, 2: (number * 7_919) % self.rows}
        for column in range(3, COLUMNS + 1):
            image[column] = f"column {column} of row {number}, {self._lsn}"
        before = {0: genid(self._written_lsn[number], number % COMMIT_ROWS)}
        insert = kind is ChangeKind.INSERT
        change = RowChange(kind, 1, 1, (number,), image, {} if insert else before, (0,))
        self.store.change(TABLE, change, self._lsn, number % COMMIT_ROWS, None)
        self._written_lsn[number] = self._lsn

    def _commit(self) -> None:
        self.store.commit(LogPosition(self._lsn, lsn=self._lsn))
        self._lsn += 1

    def _load(self) -> None:
        self.store.begin()
        self.store.prepare(TABLE)
        self.store.put_descriptor(1, 1, TABLE.to_wire())
        for number in range(self.rows):
            self._change(number, ChangeKind.INSERT)
            if number % LOADED_AT_ONCE == LOADED_AT_ONCE - 1:
                self._commit()
                self.store.begin()
        self._commit()

    def write(self) -> float:
        """One commit of updates; → how long it took, in seconds."""
        began = time.perf_counter()
        self.store.begin()
        for _ in range(COMMIT_ROWS):
            self._next_row = (self._next_row + 104_729) % self.rows
            self._change(self._next_row, ChangeKind.UPDATE)
        self._commit()
        return time.perf_counter() - began

    def check(self, part: CheckSlice | None) -> CheckReport:
        self.write()  # the record that asks for it
        self.store.check(b"job:1:1", (1,), (INDEX,), part=part)
        while not (found := self.store.checked()):
            took_s = self.write()
            self.commits.append(took_s)
            time.sleep(max(0.0, 1 / COMMITS_PER_SECOND - took_s))
        assert not found[0].error, found[0].error
        assert not found[0].findings_total, found[0].findings
        return found[0]

    def run(self, rows_max: int) -> Figures:
        """`rows_max` 0: in one pass."""
        self.store._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.commits: list[float] = []
        part = CheckSlice(0, (), rows_max) if rows_max else None
        walk = WalkSettings()
        slices, longest_s, began = 0, 0.0, time.perf_counter()
        while True:
            report = self.check(part)
            longest_s = max(longest_s, report.took_ms / 1e3)
            slices += 1
            if part is None:
                break
            rows = slice_rows(part, report.took_ms, walk.slice_ms, rows_max)
            part = next_slice((0, INDEX), part, report.until, rows)
            if part is None:
                break
        whole_s = time.perf_counter() - began
        wal_mb = self.wal.stat().st_size / 1e6
        longest = max(self.commits, default=0.0)
        return Figures(slices, whole_s, longest_s * 1e3, wal_mb, len(self.commits), longest * 1e3)


def main() -> None:
    wanted = [int(text) for text in sys.argv[1:]]
    rows, sizes = (wanted or [ROWS])[0], wanted[1:] or [WalkSettings().rows_max]
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder) / "store.db", rows)
        for rows_max in (0, *sizes):
            found = bench.run(rows_max)
            way = f"slices of {rows_max:,}" if rows_max else "one pass"
            sys.stdout.write(
                f"{rows:,} rows, {way}: {found.slices} snapshots, the longest"
                f" {found.longest_ms:,.0f} ms; {found.whole_s:.1f} s in all; WAL"
                f" {found.wal_mb:,.1f} MB; {found.commits} commits beside it, the longest"
                f" {found.commit_max_ms:.0f} ms\n"
            )
            sys.stdout.flush()
        bench.store.close()


if __name__ == "__main__":
    main()
