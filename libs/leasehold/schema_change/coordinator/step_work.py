"""The work of a step behind its fence: rows are filled, looked through, and compared on every node.

What becomes of a job there, as far as reports, counts and the clock tell; the coordinator writes
it. What a step waits for before, leases of older versions, is the coordinator's own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple, Protocol

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import ALL_ROWS, Column, Element, Index
from leasehold.catalog.job import Job, Phase
from leasehold.model.errors import Refused
from leasehold.model.keys import Key
from leasehold.model.ports import Now
from leasehold.model.records.log import CheckSlice
from leasehold.model.time_units import NS_PER_MS
from leasehold.rows.row_copies import find_copying_index
from leasehold.schema_change.coordinator.job_state import JobMemory, Verification
from leasehold.schema_change.coordinator.sliced_verification import VerificationWalk
from leasehold.schema_change.coordinator.verification import (
    REQUIRED,
    Judgement,
    judge,
    make_finding,
    tell_no_value,
)
from leasehold.schema_change.job.transitions import (
    ask_verification_again,
    record_filled,
    record_slice,
    record_validated,
    record_verified,
    turn_back,
)

TableHolders = Callable[[int, Iterable[str]], frozenset[str]]
"""Which of these nodes hold all of the table `id`: a partial replica is asked about no other."""


class WorkSettings(NamedTuple):
    """The limits of a verification, as in `CoordinatorSettings`."""

    verification_ms: int
    verifications_max: int


class RangeProgress(Protocol):
    """How far nodes are with backfills by range. `known`: everybody who reads the log knows
    those; `copies_known`: and rows that are copied by range."""

    def known(self, now_ns: int) -> bool: ...
    def copies_known(self, now_ns: int) -> bool: ...
    def still_merging(self, nodes: Collection[str]) -> tuple[str, ...]:
        """Return who of the master and `nodes` has not merged all ranges that are in the log."""
        ...

    def find_failure(self, job: Job) -> tuple[Key, Refused] | None:
        """Return a row that has no value for the column that the job fills, and why."""
        ...


class NoRanges:
    """The progress while nobody says that he knows ranges."""

    def known(self, now_ns: int) -> bool:
        return False

    def copies_known(self, now_ns: int) -> bool:
        return False

    def still_merging(self, nodes: Collection[str]) -> tuple[str, ...]:
        return ()

    def find_failure(self, job: Job) -> tuple[Key, Refused] | None:
        return None


def _is_ranged(element: Element, descriptor: Descriptor) -> bool:
    if isinstance(element, Index):
        return not element.computed
    if not isinstance(element, Column) or element.missing is None:
        return False
    indexed = any(element.element_id in index.over for index in descriptor.indexes)
    return element.missing.computed is not None and not indexed


class StepWork:
    """The work behind a step's fence. `coherent`: the nodes that are so, None = not known yet
    (C4). `next` gives the job as it is to be written; None: it waits, and `memory.waiting` says
    for what."""

    def __init__(
        self,
        node: str,
        catalog: Catalog,
        walk: VerificationWalk,
        settings: WorkSettings,
        is_empty: Callable[[int], bool],
    ) -> None:
        self.coherent: frozenset[str] | None = None
        self.ranges: RangeProgress = NoRanges()
        self.holders: TableHolders = lambda _, nodes: frozenset(nodes)
        self._node = node
        self._catalog = catalog
        self._walk = walk
        self._settings = settings
        self._is_empty = is_empty

    def next(self, job: Job, memory: JobMemory, now: Now) -> Job | None:
        match job.phase:
            case Phase.BACKFILLING:
                return self._backfill(job, memory, now)
            case Phase.VALIDATING:
                return self._validate(job, memory, now)
            case Phase.VERIFYING:
                return self._verify(job, memory, now)
        raise AssertionError(f"job {job.job_id} has no work in {job.phase.value}")

    def begin_verification(self, lsn: int, now: Now) -> Verification | None:
        """Return the verification that the record at `lsn` asks for; None while the coherent nodes
        are not known."""
        if self.coherent is None:
            return None
        deadline_ns = now.mono_ns + self._settings.verification_ms * NS_PER_MS
        return Verification(lsn, now.mono_ns, deadline_ns, self.coherent)

    # ------------------------------------------------------------ filled, looked through

    def find_ranged(self, job: Job, now: Now) -> frozenset[int]:
        """Return the elements of the job's step that are filled by range: plain indexes, whose
        entries SQL tells, and of which no row can compute for long; columns that each node computes
        from its own rows, unless an index gets their entries meanwhile; all rows, under another
        key. Of its own table alone: by that a node finds the job of a range."""
        if job.current.table_id or not self.ranges.known(now.mono_ns):
            return frozenset()
        descriptor = self._catalog.newest(job.table_id)
        elements = map(descriptor.element, job.current.backfills)
        ranged = frozenset(e.element_id for e in elements if e and _is_ranged(e, descriptor))
        return ranged | self._find_copied(job, descriptor, now)

    def _find_copied(self, job: Job, descriptor: Descriptor, now: Now) -> frozenset[int]:
        """Return what stands for all rows, where those are copied under another key by range."""
        if ALL_ROWS not in job.current.backfills or not self.ranges.copies_known(now.mono_ns):
            return frozenset()
        assert descriptor.mirror, "all rows go into the table that follows"
        target = self._catalog.newest(descriptor.mirror)
        index = find_copying_index(descriptor, target)
        return frozenset() if index is None else frozenset((ALL_ROWS,))

    def _backfill(self, job: Job, memory: JobMemory, now: Now) -> Job | None:
        merged = job.by_range and not job.copies_rows
        failed = self.ranges.find_failure(job) if merged else None
        if failed is not None:
            # The job can't succeed any more, so no other row has to be looked at.
            key, error = failed
            column = self._catalog.newest(job.table_id).by_id[job.element_id]
            found = make_finding(REQUIRED, column.element_id, key, error.message)
            words = tell_no_value(column, key, error)
            return turn_back(job, now.wall_us, words, (found,), error.sqlstate)
        if not job.chunks_ended and not self._is_empty(job.worked_table):
            memory.waiting = f"the backfill: {job.rows_read} rows so far"
            return None
        if job.verdict:
            return turn_back(job, now.wall_us, job.verdict, job.findings, job.code)
        if merged and job.chunks_ended:
            if self.coherent is None:
                # ⚠ Of a master's first moments: who serves has ranges left, as far as it knows.
                memory.waiting = "the coherent nodes to be known"
                return None
            asked = self._holders_of(job, self.coherent)
            if merging := self.ranges.still_merging(asked):
                memory.waiting = f"{', '.join(merging)} to merge what was read"
                return None
        first, ranged = self._walk.find_first(job), self.find_ranged(job, now)
        return record_filled(job, now.wall_us, first, ranged)

    def _validate(self, job: Job, memory: JobMemory, now: Now) -> Job | None:
        if not job.chunks_ended and not self._is_empty(job.worked_table):
            memory.waiting = "the validation of the rows there are"
            return None
        if job.verdict:
            return turn_back(job, now.wall_us, job.verdict, job.findings, job.code)
        return record_validated(job, now.wall_us, self._walk.find_first(job))

    # ------------------------------------------------------------ compared on every node

    def _verify(self, job: Job, memory: JobMemory, now: Now) -> Job | None:
        if self.coherent is None:
            memory.waiting = "the coherent nodes to be known"
            return None
        asked = memory.verification
        if asked is None:
            # Asked for by an earlier master, or before a pause: reports may have passed us by.
            return self._ask(job, memory, self._walk.find_resumed(job), now)
        nodes = self._find_wanted(self._holders_of(job, asked.nodes & self.coherent))
        verdict = judge(job, asked.lsn, self._walk.reports(job), nodes)
        memory.waiting = verdict.words
        if verdict.judgement is Judgement.CLEAN:
            if job.look is None:
                return record_verified(job, now.wall_us)
            return self._next_slice(job, memory, asked, nodes, now)
        if verdict.judgement is Judgement.FOUND:
            return turn_back(job, now.wall_us, verdict.words, verdict.findings, verdict.code)
        late = now.mono_ns >= asked.deadline_ns
        if verdict.judgement is Judgement.WAITING and not late:
            return None
        return self._ask_again(job, memory, job.look, verdict.words, now)

    def _find_wanted(self, coherent: frozenset[str]) -> frozenset[str]:
        """Return the nodes whose word is needed: each serves its own rows, of which nobody else can
        tell, and the master decides by his."""
        return coherent | {self._node}

    def _holders_of(self, job: Job, nodes: frozenset[str]) -> frozenset[str]:
        """Return those of the nodes that have all that the job's elements can rest on: of a foreign
        key that is two tables."""
        for table_id in (*job.tables, *job.needs):
            nodes = self.holders(table_id, nodes)
        return nodes

    def _next_slice(
        self,
        job: Job,
        memory: JobMemory,
        asked: Verification,
        nodes: frozenset[str],
        now: Now,
    ) -> Job | None:
        step = self._walk.step(job, nodes)
        if step.look is not None:
            memory.retry_ns = asked.at_ns + self._walk.pause_ns(job, step)
            if memory.retry_ns > now.mono_ns:
                memory.waiting = "its next slice: a rate is set, or users write"
                return None
            memory.walked = step.nodes
            return record_slice(job, step.look, step.keys)
        if step.absent:
            words = f"{', '.join(sorted(step.absent))}, not coherent from the first slice on"
            return self._ask_again(job, memory, self._walk.find_first(job), words, now)
        return record_verified(job, now.wall_us)

    def _ask(self, job: Job, memory: JobMemory, look: CheckSlice | None, now: Now) -> Job:
        memory.walked = self._walk.find_clean_nodes(job) if look == job.look else None
        return ask_verification_again(job, now.wall_us, look)

    def _ask_again(
        self, job: Job, memory: JobMemory, look: CheckSlice | None, words: str, now: Now
    ) -> Job:
        tried = self._walk.count_tries(job)
        if tried < self._settings.verifications_max:
            return self._ask(job, memory, look, now)
        error = f"{job.subject} could not be verified in {tried} tries; the last waited for {words}"
        return turn_back(job, now.wall_us, error)
