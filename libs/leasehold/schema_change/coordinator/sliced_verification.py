"""How a coordinator leads a verification through a table: whose reports it has, which slice comes
next, and who was clean and equal in all of them. All of it may be lost: then it starts over.

The walk: one slice at a time, each at the position of its own record, the next one only when every
node that is wanted has reported on the one before. DESIGN.md has the argument.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.elements import ALL_ROWS, Index
from leasehold.catalog.job import Job
from leasehold.model.records.acks import CheckReport
from leasehold.model.records.log import CheckSlice
from leasehold.model.time_units import NS_PER_MS, NS_PER_S
from leasehold.schema_change.coordinator.verification import (
    list_parts,
    next_slice,
    parse_subject,
    slice_rows,
)


@dataclass(frozen=True, slots=True)
class WalkSettings:
    """A table of more than `whole_max` rows is looked at in slices of at most `rows_max` rows or
    entries, made smaller where one takes a node longer than `slice_ms`. One pass holds a snapshot
    for about 2 µs a row; slices take two to three times as long in all. Beside users, to whom a
    node's look gives way, one pass would hold it ten times as long, and sixty times on a machine
    at a third of its speed: then the limit is `whole_beside_max`, the first slice, whose time
    nobody knows, has `first_beside_max`, and `rest_ms` after a slice comes the next, in which the
    WAL starts over. Where indexes alone are looked at, one pass adds up two sums, for a fifth of
    what slices cost, and holds its snapshot no longer than writers can bear for up to
    `sums_beside_max` rows."""

    whole_max: int = 1_000_000
    whole_beside_max: int = 20_000
    sums_beside_max: int = 1_000_000
    rows_max: int = 100_000
    first_beside_max: int = 5_000
    slice_ms: int = 500
    rest_ms: int = 100


@dataclass(slots=True)
class Walked:
    """A verification's way so far. `nodes` were clean and equal in each slice before `look`; None:
    there is none before. `tries`: how often `look` was asked for, `rounds`: how often the first
    slice was."""

    look: CheckSlice | None
    nodes: frozenset[str] | None = None
    tries: int = 1
    rounds: int = 1


class Step(NamedTuple):
    """The step after a slice that is clean: `look` is next, None = that was the last one, of which
    the nodes `absent` have not looked at every slice. `keys`: rows and entries of this slice, which
    took the slowest node `took_ms`."""

    look: CheckSlice | None
    keys: int
    took_ms: int
    nodes: frozenset[str]
    absent: frozenset[str]


class VerificationWalk:
    def __init__(
        self,
        catalog: Catalog,
        settings: WalkSettings,
        rows_about: Callable[[int], int],
        users: Callable[[], bool],
    ) -> None:
        """Begin without reports. `rows_about`: how many rows a table has now, -1 = not known.
        `users`: whether some write meanwhile."""
        self._catalog = catalog
        self._settings = settings
        self._rows_about = rows_about
        self._users = users
        self._reports: dict[tuple[int, int], dict[str, CheckReport]] = {}  # (job, run) → by node
        self._walked: dict[tuple[int, int], Walked] = {}

    # ------------------------------------------------------------ reports

    def take(self, report: CheckReport) -> None:
        """Keep a node's newest report on a run that is being verified, or is about to be."""
        about = parse_subject(report.subject)
        job = self._catalog.jobs.get(about[0]) if about else None
        if about is None or job is None or job.status.ended or job.run != about[1]:
            return
        kept = self._reports.setdefault(about, {})
        before = kept.get(report.node)
        if before is None or before.offset <= report.offset:
            kept[report.node] = report

    def reports(self, job: Job) -> Mapping[str, CheckReport]:
        return self._reports.get((job.job_id, job.run), {})

    def forget_ended(self) -> None:
        for about in [a for a in self._reports if self._catalog.has_ended(a[0])]:
            del self._reports[about]
        for about in [a for a in self._walked if self._catalog.has_ended(a[0])]:
            del self._walked[about]

    # ------------------------------------------------------------ where it stands

    def find_first(self, job: Job) -> CheckSlice | None:
        """Return the slice that a verification begins with; None: the table is looked at in one
        pass."""
        whole_max, rows_max = self._settings.whole_max, self._settings.rows_max
        if self._users():
            sums = self._are_told_by_sums(job)
            beside_max = self._settings.sums_beside_max if sums else self._settings.whole_beside_max
            whole_max = min(whole_max, beside_max)
            rows_max = min(rows_max, self._settings.first_beside_max)
        whole_max = self._limit_rows(job, whole_max)
        # A row and its mirror may lie in slices of different positions.
        if ALL_ROWS in job.current.verifies or 0 <= self._rows_about(job.worked_table) <= whole_max:
            return None
        return CheckSlice(self._parts(job)[0], (), self._limit_rows(job, rows_max))

    def find_resumed(self, job: Job) -> CheckSlice | None:
        """Return the slice that a verification goes on with whose reports may have passed us by:
        the same one when it is known who was clean in those before, else the first."""
        walked = self._walked.get((job.job_id, job.run))
        if walked is not None and walked.look is not None and walked.look == job.look:
            return job.look
        return self.find_first(job)

    def find_clean_nodes(self, job: Job) -> frozenset[str] | None:
        """Return the nodes that were clean in each slice before the one that the job is at, as
        `Walked` has it."""
        walked = self._walked.get((job.job_id, job.run))
        return walked.nodes if walked is not None and walked.look == job.look else None

    def note_asked(self, job: Job, nodes: frozenset[str] | None) -> None:
        """Note that the record that asks for `job.look` was read back; `nodes`: see `Walked`."""
        walked = Walked(job.look, nodes)
        before = self._walked.get((job.job_id, job.run))
        if before is not None:
            again = before.look == job.look
            walked.tries = before.tries + again
            walked.rounds = before.rounds + (nodes is None)
        self._walked[job.job_id, job.run] = walked

    def count_tries(self, job: Job) -> int:
        """Return how often the same was asked for already."""
        walked = self._walked.get((job.job_id, job.run))
        return max(walked.tries, walked.rounds) if walked is not None else 1

    def _rows_max(self, job: Job) -> int:
        return self._limit_rows(job, self._settings.rows_max)

    def _limit_rows(self, job: Job, rows: int) -> int:
        """Return `rows`, but no more than a second's: a rate that was set holds for the nodes'
        look, too."""
        rate = job.settings.get("rows_per_second", 0)
        return min(rows, rate) if rate else rows

    def pause_ns(self, job: Job, step: Step) -> int:
        """Return how long after a slice was asked for the next one, which is `step`, may be."""
        rate = job.settings.get("rows_per_second", 0)
        rest_ms = step.took_ms + self._settings.rest_ms if self._users() else 0
        rest_ms *= 2 if job.gentle else 1
        return max(rest_ms * NS_PER_MS, step.keys * NS_PER_S // rate if rate else 0)

    def _are_told_by_sums(self, job: Job) -> bool:
        """Say whether plain indexes alone are verified: of others each row is computed."""
        newest = self._catalog.newest(job.worked_table)
        elements = [newest.element(e) for e in job.current.verifies]
        return all(isinstance(each, Index) and not each.computed for each in elements)

    def _parts(self, job: Job) -> tuple[int, ...]:
        return list_parts(job, self._catalog.newest(job.worked_table))

    # ------------------------------------------------------------ the next slice

    def step(self, job: Job, nodes: frozenset[str]) -> Step:
        """Return what follows now that the slice `job.look` is clean on `nodes`, and the same on
        all."""
        assert job.look is not None, "one pass has no next slice"
        kept = self._walked[job.job_id, job.run]
        assert kept.look == job.look, "a walk stands where its job does"
        whole = nodes if kept.nodes is None else kept.nodes & nodes
        reports = [self.reports(job)[node] for node in sorted(nodes)]
        took_ms = max(report.took_ms for report in reports)
        target_ms = self._settings.slice_ms // (2 if job.gentle else 1)
        rows_max = slice_rows(job.look, took_ms, target_ms, self._rows_max(job))
        look = next_slice(self._parts(job), job.look, reports[0].until, rows_max)
        keys = reports[0].rows + sum(reports[0].entries.values())
        return Step(look, keys, took_ms, whole, absent=nodes - whole)
