"""Where a job can stand, by the job's real moves: its record and the versions it has published."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, NamedTuple

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Check, Column, ForeignKey, Index
from leasehold.catalog.job import Job, Phase, Status
from leasehold.catalog.states import State
from leasehold.model.records.log import DescriptorWrite, JobWrite, MinVersion
from leasehold.schema_change.job.transitions import (
    can_turn_back,
    record_fenced,
    record_filled,
    record_published,
    record_validated,
    record_verified,
    turn_back,
)
from tests.schema_change.changes import Change
from tests.schema_change.versions import Version, version_of
from tests.schema_change.world import Row
from tests.support.schema_change.next_descriptor import next_descriptor

JOB: Final = 1


class Run(NamedTuple):
    """A run that has begun: its chunks, or its findings, may arrive at any time from now on."""

    number: int
    element_id: int
    version: int


@dataclass(frozen=True)
class Position:
    """`versions`: all that were published, oldest first. `runs` of the backfill, `looks` of the
    validation. `cleaned`: dead elements are removed."""

    job: Job
    versions: tuple[Descriptor, ...]
    runs: tuple[Run, ...] = ()
    cleaned: bool = False
    looks: tuple[Run, ...] = ()

    @property
    def newest(self) -> Descriptor:
        return self.versions[-1]

    @cached_property
    def used(self) -> tuple[Version, ...]:
        """All versions by content, newest first."""
        return tuple(map(version_of, reversed(self.versions)))

    @cached_property
    def dead(self) -> frozenset[int]:
        """Elements of older versions alone: their pairs wait for the history horizon."""
        if self.cleaned:
            return frozenset()
        ids = [frozenset(e.element_id for e in v.elements) for v in self.versions]
        alive = ids[-1] if self.newest.state is not State.ABSENT else frozenset()
        return frozenset().union(*ids) - alive

    @cached_property
    def can_turn_back(self) -> bool:
        return can_turn_back(self.job)

    @property
    def words(self) -> str:
        if self.job.phase is Phase.DONE:
            return f"{self.job.status.value}{', cleaned' if self.cleaned else ''}"
        return f"{self.job.status.value}, step {self.job.step}, {self.job.phase.value}"

    def catalog(self, low: int) -> Catalog:
        """As the log has made it; the fence is `low` below the newest version (D5)."""
        catalog = Catalog()
        for version in self.versions:
            catalog.apply(DescriptorWrite(1, version.version, version.to_wire()), 0, 0)
        catalog.apply(MinVersion(1, self.newest.version - low), 0, 0)
        catalog.apply(JobWrite(JOB, self.job.to_wire()), 0, 0)
        return catalog


def unfinished(descriptor: Descriptor) -> list[str]:
    """What a job must not leave behind when it has succeeded."""
    found = [descriptor.alias] if descriptor.alias else []
    for element in descriptor.elements:
        match element:
            case Column():
                flags = element.not_null_enforced or element.filled or bool(element.alias)
                flags = flags or element.narrow is not None
            case Index():
                flags = element.unique_enforced or bool(element.alias)
            case _:
                flags = False
        may_stay = isinstance(element, Check | ForeignKey)  # NOT VALID
        stays = may_stay and element.state is State.WRITE_ONLY
        if flags or (element.state is not State.PUBLIC and not stays):
            found.append(element.name)
    return found


class Timeline:
    """Positions by number; 0 is the first. Moves between them are the job's own."""

    def __init__(self, change: Change) -> None:
        self._change = change
        self.all: list[Position] = []
        self._numbers: dict[tuple[object, ...], int] = {}
        self._moved: dict[tuple[int, str], int] = {}
        job = replace(change.job, job_id=JOB, marks=(), versions={1: change.base.version + 1})
        self._intern(Position(job, (change.base,)))

    def _intern(self, position: Position) -> int:
        job = position.job
        place = (job.phase, job.status, job.step, job.backfill, job.run, bool(job.error))
        begun = position.runs, position.looks
        key = (*place, len(job.steps), position.used, *begun, position.cleaned)
        if key not in self._numbers:
            self._numbers[key] = len(self.all)
            self.all.append(position)
        return self._numbers[key]

    def moved(self, at: int, move: str) -> int:
        """The number of the position after a move, one of `_MOVES`."""
        if (at, move) not in self._moved:
            self._moved[at, move] = self._intern(self._after(self.all[at], move))
        return self._moved[at, move]

    def _after(self, position: Position, move: str) -> Position:
        job, versions, runs = position.job, position.versions, position.runs
        if move == "clean":
            return replace(position, cleaned=True)
        if move == "publish":
            made = next_descriptor(job, position.catalog(0))
            assert made.version == job.versions[1], "D2"
            versions = (*versions, made)
        job = replace(_MOVES[move](job), marks=(), fence_lsn=0)
        looks = position.looks
        if job.phase is Phase.BACKFILLING and job.run != position.job.run:
            runs = (*runs, Run(job.run, job.element_id, versions[-1].version))
        if job.phase is Phase.VALIDATING and job.run != position.job.run:
            looks = (*looks, Run(job.run, 0, versions[-1].version))
        return Position(job, versions, runs, looks=looks)

    def harm(self, at: int) -> str:
        """What is wrong with how the job has ended, "" when nothing is."""
        position = self.all[at]
        if position.job.phase is not Phase.DONE:
            return ""
        if position.job.status is not Status.SUCCEEDED:
            same = position.used[0] is position.used[-1]
            return "" if same else f"{position.words}: the descriptor is not as it was before"
        left = unfinished(position.newest)
        return f"succeeded, yet left unfinished: {', '.join(left)}" if left else ""

    @cached_property
    def filled_by_key(self) -> dict[int, int]:
        """Columns whose values the job puts without images → the version that says so."""
        numbered = enumerate(self._change.job.steps, start=self._change.base.version + 1)
        found: dict[int, int] = {}
        for version, step in numbered:
            for edit in step.edits:
                if (edit.after or {}).get("missing"):
                    found.setdefault(edit.element_id, version)
        return found

    @cached_property
    def at_once(self) -> dict[int, Any]:
        """The columns of which every row has a value as soon as they come → the value."""
        bodies = (edit.after or {} for step in self._change.job.steps for edit in step.edits)
        missing = ((body["id"], body.get("missing")) for body in bodies if "id" in body)
        return {e: said[1] for e, said in missing if said and said[2:3] == [True]}

    def without_given(self, row: Row, version: Descriptor) -> Row:
        """`row` as it is to those who do not know a column of which every row has the default: it
        is no pair yet, and goes with its row. Another value is one that somebody has written."""
        unknown = {e: v for e, v in self.at_once.items() if e not in version.by_id}
        if not unknown:
            return row
        pairs = tuple((e, v) for e, v in row.pairs if e not in unknown or unknown[e] != v)
        return row._replace(pairs=pairs)

    def made(self, row: Row, version: int) -> int:
        """`version` of a row's last image as far as it matters to readers: the newest that means
        the same; 0 where the image tells all that is filled by key."""
        if not row.exists or all(row.value(e) is not None for e in self.filled_by_key):
            return 0
        later = [below for below in self.filled_by_key.values() if version < below]
        return min(later) - 1 if later else max(self.filled_by_key.values())

    @property
    def elements(self) -> frozenset[int]:
        """Elements that the job's steps touch."""
        return frozenset(e.element_id for step in self._change.job.steps for e in step.edits)


_MOVES: Final[dict[str, Callable[[Job], Job]]] = {
    "publish": lambda job: record_published(job, 0),
    "fence": lambda job: record_fenced(job, 0),
    "filled": lambda job: record_filled(job.counted(0, 0, True), 0),
    "validated": lambda job: record_validated(job, 0),
    "verified": lambda job: record_verified(job, 0),
    "cancel": lambda job: turn_back(job, 0),
    "refuted": lambda job: turn_back(job, 0, "verification found differences"),
}
