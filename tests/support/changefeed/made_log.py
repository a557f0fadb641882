"""A synthetic log, as a master would write it, and what a changefeed must make of it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.catalog.job import Job
from leasehold.model.ids import genid, request_id
from leasehold.model.records.log import (
    Barrier,
    CatalogWrite,
    ChangeKind,
    ChunkDecided,
    Claim,
    Commit,
    Decisions,
    DescriptorWrite,
    Disposition,
    Grant,
    JobWrite,
    LogRecord,
    Refusal,
    RowChange,
)
from leasehold.values.types import Type
from tests.support.schema_change.made_job import index_job

CODEC = MessagePackCodec()


def descriptor_body(table_id: int, version: int = 1) -> dict[str, Any]:
    columns = (Column(1, "id", Type("bigint"), False), Column(2, "n", Type("bigint")))
    return Descriptor(table_id, f"table_{table_id}", version, columns, (1,)).to_wire()


def job(job_id: int, table_id: int, version: int, **fields: Any) -> Job:
    return index_job(
        job_id, table_id, table=f"table_{table_id}", versions={table_id: version}, **fields
    )


class MadeLog:
    """Appends records that count; `records` are (bytes, record), the offset being the index.

    `rows`: every (table id, key, LSN, value or None) that must be published, in order.
    """

    def __init__(self, seed: int = 0) -> None:
        self.random = random.Random(seed)
        self.records: list[tuple[bytes, LogRecord]] = []
        self.rows: list[tuple[int, tuple[int, ...], int, Mapping[int, Any] | None]] = []
        self.lsn = 0
        self.commit_us = 1_000_000
        self.epoch = 0
        self.sequence = 0
        self.incarnation = b""
        self.digest = b""
        self._genids: dict[tuple[int, int], int] = {}

    def put(self, record: LogRecord, *, counts: bool = True) -> bytes:
        data = CODEC.encode(record)
        self.records.append((data, record))
        if counts:
            self.digest = CODEC.digest(data)
        return data

    def claim(self) -> None:
        self.epoch += 1
        self.sequence = 0
        self.incarnation = b"master%d" % self.epoch
        self.put(Claim(self.epoch, self.incarnation, self.digest, "m1"))

    def barrier(self) -> None:
        self.put(Barrier(b"b"), counts=False)

    def decide(
        self, commits: tuple[Commit, ...], refusals: tuple[Refusal, ...] = (), grants: int = 0
    ) -> Decisions:
        self.sequence += 1
        first = self.lsn - len(commits) + 1
        record = Decisions(
            self.epoch,
            self.incarnation,
            self.sequence,
            self.digest,
            first,
            commits,
            refusals,
            {"requests": len(self.records)},
            0,
            tuple([Grant("r1", b"i", 1, 500)] * grants),
        )
        self.put(record)
        return record

    def commit(
        self, changes: tuple[RowChange, ...] = (), catalog: tuple[CatalogWrite, ...] = ()
    ) -> Commit:
        self.lsn += 1
        self.commit_us += 10
        self.rows += [(c.table_id, c.key, self.lsn, c.image) for c in changes]
        return Commit(
            request_id(self.lsn, b"0123456789"),
            1,
            self.commit_us,
            {},
            changes,
            len(changes),
            catalog=catalog,
        )

    def change(self, table_id: int, key: int, position: int = 0) -> RowChange:
        """A random right change of one row in the commit that comes next."""
        before = self._genids.get((table_id, key))
        new = genid(self.lsn + 1, position)
        locks: tuple[int, ...] = (0,)
        image = {1: key, 2: self.random.randrange(1_000), 3: f"value {self.lsn}"}
        if before is None:
            kind, genids = ChangeKind.INSERT, {}
            self._genids[table_id, key] = new
        elif self.random.random() < 0.2:
            del self._genids[table_id, key]
            return RowChange(ChangeKind.DELETE, table_id, 1, (key,), None, {0: before}, (0,))
        elif self.random.random() < 0.2:
            kind, genids, locks = ChangeKind.BACKFILL, {0: before}, ()
        else:
            kind, genids = ChangeKind.UPDATE, {0: before}
            self._genids[table_id, key] = new
        return RowChange(kind, table_id, 1, (key,), image, genids, locks)

    def create_table(self, table_id: int) -> None:
        write = DescriptorWrite(table_id, 1, descriptor_body(table_id))
        self.decide((self.commit(catalog=(write,)),))

    def write_rows(self, table_id: int, commits: int, keys: int) -> None:
        made = []
        for _ in range(commits):
            changed = self.random.sample(range(keys), self.random.randint(1, 3))
            changes = tuple([self.change(table_id, k, at) for at, k in enumerate(changed)])
            made.append(self.commit(changes))
        self.decide(tuple(made))

    def forget_rows(self) -> None:
        """Go on after a truncation."""
        self._genids.clear()

    def refuse(self, disposition: Disposition) -> Refusal:
        refusal = Refusal(
            request_id(len(self.records), b"refused..."),
            1,
            disposition,
            "42P01",
            "table 'x' does not exist",
            {"table": "x"},
            self.commit_us,
            -1,
            "requests",
            5,
            "application/json",
            b"{}",
            None,
        )
        self.decide((), (refusal,))
        return refusal

    def stale(self) -> None:
        """What a deposed master and a losing candidate append: it must be read over."""
        change = RowChange(ChangeKind.INSERT, 1, 1, (-1,), {1: -1}, {}, (0,))
        commit = Commit(b"", 1, self.commit_us + 5, {}, (change,), 1)
        self.put(
            Decisions(self.epoch - 1, b"gone", 1, b"", self.lsn + 1, (commit,), (), {}, 0, ()),
            counts=False,
        )
        self.put(Claim(self.epoch, b"late", b"", "m9"), counts=False)

    def run_job(self, job_id: int, table_id: int, chunks: int) -> None:
        """A job's events: begun, version published, chunks counted, ended."""
        begun = job(job_id, table_id, 2)
        self.decide((self.commit(catalog=(JobWrite(job_id, begun.to_wire()),)),))
        body = descriptor_body(table_id, 2)
        self.decide((self.commit(catalog=(DescriptorWrite(table_id, 2, body),)),))
        for number in range(chunks):
            end = number == chunks - 1
            counted = ChunkDecided(job_id, 0, 100, 90, end)
            self.decide((self.commit(catalog=(counted,)),))
