"""A world whose nodes have rows and entries of one UNIQUE index, which a job makes, and which is
verified in slices of two. Rows are written between any two things that happen.

What is right is known from the outside: an index that went public must be right on every node that
was wanted at the end, and a job may only fail for something that is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from leasehold.catalog.elements import Index
from leasehold.catalog.job import Job, Phase, Status
from leasehold.catalog.states import DELETED, WRITTEN, State
from leasehold.model.records.acks import CheckReport
from leasehold.model.records.log import CatalogWrite, CheckSlice, DescriptorWrite, JobWrite
from leasehold.schema_change.coordinator.effects import CoherentNodes
from leasehold.schema_change.coordinator.sliced_verification import WalkSettings
from leasehold.schema_change.coordinator.verification import as_if_public
from tests.support.schema_change.job_harm import Harm
from tests.support.schema_change.job_story import TABLE, UNIQUE
from tests.support.schema_change.job_world import World
from tests.support.schema_change.made_job import report_of

KEYS, VALUES = 6, 4
WALK = WalkSettings(whole_max=2, rows_max=2)
Entry = tuple[int, int]  # value, key


@dataclass
class Copy:
    """What one node holds."""

    rows: dict[int, int] = field(default_factory=dict)
    entries: set[Entry] = field(default_factory=set)

    def wrong(self, *, unique: bool) -> set[int]:
        """Keys whose rows or entries are not as the index says."""
        right = {(value, key) for key, value in self.rows.items()}
        found = {key for _, key in right ^ self.entries}
        values = list(self.rows.values())
        if unique:
            found |= {key for key, value in self.rows.items() if values.count(value) > 1}
        return found

    def slice(
        self, part: CheckSlice, index_id: int, *, unique: bool
    ) -> tuple[list[tuple[int, ...]], tuple[int, ...] | None, set[int]]:
        """The keys in a slice, the last one if more come, and what a node finds wrong there."""
        lying: list[tuple[int, ...]]
        lying = sorted(self.entries) if part.part == index_id else [(k,) for k in sorted(self.rows)]
        above = [key for key in lying if not part.after or key > tuple(part.after)]
        size = min(part.rows_max, len(above))
        while part.part and unique and 0 < size < len(above):
            if above[size][0] != above[size - 1][0]:
                break
            size += 1
        inside = above[:size]
        if part.part:
            values = [value for value, _ in inside]
            wrong = {k for v, k in inside if self.rows.get(k) != v}
            wrong |= {k for v, k in inside if unique and values.count(v) > 1}
        else:
            wrong = {k for (k,) in inside if (self.rows[k], k) not in self.entries}
        return inside, inside[-1] if size < len(above) else None, wrong


class WalkWorld(World):
    """Rows are written under the newest version or, up to its fence, the one before."""

    def __init__(
        self,
        seed: int,
        nodes: tuple[str, ...] = ("m", "r1"),
        walk: WalkSettings = WALK,
    ) -> None:
        self.copies = {node: Copy() for node in nodes}
        self.damaged = False
        self.took_ms = 0  # a slice, each node
        self.harmless_so_far = True  # nothing was ever wrong on any node since the work began
        super().__init__(seed, 0, nodes, walk)
        self.wanted = self.coherent

    def rows_about(self, table_id: int) -> int:
        return len(self.copies["m"].rows)

    # ------------------------------------------------------------ rows

    def _index(self, version: int) -> Index | None:
        if not self.catalog.tables():
            return None
        return next(iter(self.catalog.version(1, version).indexes), None)

    def perform_row(self) -> bool:
        """One row is inserted, updated, touched or deleted, through the log."""
        newest = self.table().version
        index = self._index(self.random.randint(self.catalog.min_version(1), newest))
        enforced = self._index(newest)
        key, value = self.random.randrange(KEYS), self.random.randrange(VALUES)
        master = self.copies["m"]
        before = master.rows.get(key)
        after = self.random.choice((value, before, None))
        taken = any(v == after and k != key for v, k in master.entries)
        refuses = enforced is not None and (enforced.refuses_duplicates or enforced.unique)
        if after is None and before is None:
            return False
        if refuses and taken and after is not None and after != before:
            return True  # 23505
        self.log.append(())
        state = State.ABSENT if index is None else index.state
        for copy in self.copies.values():
            self._write(copy, key, after, state)
        return True

    def _write(self, copy: Copy, key: int, after: int | None, state: State) -> None:
        before = copy.rows.pop(key, None)
        if state in DELETED and before is not None and before != after:
            copy.entries.discard((before, key))
        if after is not None:
            copy.rows[key] = after
            if state in WRITTEN:
                copy.entries.add((after, key))

    def perform_backfill(self) -> bool:
        filled = super().perform_backfill()
        if filled and self.job().chunks_ended:
            left_out = self.random.choice((None, None, self.random.randrange(KEYS)))
            for copy in self.copies.values():
                copy.entries |= {(v, k) for k, v in copy.rows.items() if k != left_out}
        return filled

    # ------------------------------------------------------------ damage, and what nodes say

    def _damage(self) -> None:
        """A fault of one node, or of all alike, before anybody has looked."""
        if self.damaged or self.random.random() < 0.4:
            return
        self.damaged = True
        nodes = self.random.choice([list(self.copies), [self.random.choice(list(self.copies))]])
        key, value = self.random.randrange(KEYS), self.random.randrange(VALUES)
        kind = self.random.randrange(3)
        for copy in (self.copies[node] for node in nodes):
            if kind == 0:
                copy.entries -= {(v, k) for v, k in copy.entries if k == key}
            elif kind == 1:
                copy.entries.add((value, key))
            elif key in copy.rows:
                copy.rows[key] = value

    def _verify(self, job: Job, lsn: int) -> None:
        if job.phase is not Phase.VERIFYING or job.status is not Status.RUNNING:
            return
        before = [phase for _, phase, _ in job.marks[:-1]]
        if job.look is not None and not job.looked and before[-1:] != ["verifying"]:
            self._damage()
        self.wanted = self.coherent | {"m"}
        table = as_if_public(self.table(), job.current.verifies)
        (index,) = table.indexes
        if any(copy.wrong(unique=index.unique) for copy in self.copies.values()):
            self.harmless_so_far = False
        told = {(*sorted(c.rows.items()), 0, *sorted(c.entries)) for c in self.copies.values()}
        if len(told) > 1:
            self.harmless_so_far = False
        for node, copy in self.copies.items():
            self.reports.append(self._report(job, node, copy, lsn, index))

    def _report(self, job: Job, node: str, copy: Copy, lsn: int, index: Index) -> CheckReport:
        version, unique = self.table().version, index.unique
        parts = [job.look] if job.look else [CheckSlice(p, (), 99) for p in (0, index.element_id)]
        inside: list[tuple[int, ...]] = []
        wrong: set[int] = set()
        until = None
        for part in parts:
            found, until, bad = copy.slice(part, index.element_id, unique=unique)
            inside += found
            wrong |= bad
        # As on the real thing, rows are summed only where a column is verified.
        entries = [key for key in inside if len(key) == 2]
        return report_of(job, node, lsn, version, len(wrong))._replace(
            rows=len(inside) - len(entries),
            entries={index.element_id: len(entries)},
            checksum=repr(entries).encode(),
            until=until,
            took_ms=self.took_ms,
        )

    # ------------------------------------------------------------ harm

    def append(self, *writes: CatalogWrite) -> None:
        for write in writes:
            if isinstance(write, DescriptorWrite) and write.version > 1:
                self._judge()
        super().append(*writes)

    def _judge(self) -> None:
        """A version goes out: what it relies on is right wherever it was to be looked at."""
        job = self.job()
        if job.status is not Status.RUNNING or not job.step:
            return
        verified = job.steps[job.step - 1].verifies
        if not verified:
            return
        index = as_if_public(self.table(), verified).element(verified[0])
        assert isinstance(index, Index)
        for node in sorted((self.wanted & self.coherent) | {"m"}):
            wrong = self.copies[node].wrong(unique=index.unique)
            if wrong:
                raise Harm(f"d ⊨ S: verified, yet {node} is wrong at {sorted(wrong)}")
        if len({frozenset(self.copies[n].entries) for n in self.wanted & self.coherent}) > 1:
            raise Harm("L6: verified, yet two copies differ")

    def judge_end(self) -> None:
        job = self.job()
        wrong = not self.harmless_so_far or "tries" in job.error
        if job.status is Status.FAILED and not wrong:
            raise Harm(f"it failed though every copy was right: {job.error}")

    # ------------------------------------------------------------ runs

    def perform_coherent(self) -> bool:
        """A replicant loses its lease, or has it again."""
        names = frozenset(n for n in self.nodes if n == "m" or self.random.random() < 0.6)
        self.coherent = names
        self.give(CoherentNodes(names))
        return True

    def perform_control(self) -> bool:
        job = self.job()
        if job.phase is not Phase.VERIFYING:
            return False
        if job.status is Status.PAUSED:
            self.control("resume")
        elif job.status is Status.RUNNING:
            action = self.random.choice(("pause", "set"))
            rate = {"rows_per_second": self.random.choice((0, 50))} if action == "set" else {}
            self.control(action, **rate)
        return True

    def begin_job(self) -> None:
        # As a job of an earlier release, whose first walk is one of entries alone.
        job = self.ddl(UNIQUE)
        older = [
            replace(each, verifies=each.backfills or each.verifies, validates=each.verifies)
            for each in job.steps
        ]
        self.append(JobWrite(1, replace(job, steps=tuple(older)).to_wire()))

    def run(self, crash: float, steps: int = 4_000) -> None:
        self.ddl(TABLE)
        self.until_ready()
        for _ in range(self.random.randrange(12)):
            self.perform_row()
        self.begin_job()
        for _ in range(steps):
            if self.job().status.ended:
                self.judge_end()
                return
            draw = self.random.random()
            if draw < 0.3:
                self.perform_row()
            elif draw < 0.32:
                self.perform_coherent()
            elif draw < 0.34:
                self.perform_control()
            else:
                self.one_of_many(crash)
        raise Harm(f"it hangs: {self.coordinator.waiting_for(1)!r}")
