"""Job: one schema change on its way through the states, as the log keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from typing import Any, Final

from leasehold.catalog.edits import Edit, edit_from_wire
from leasehold.catalog.elements import ALL_ROWS
from leasehold.catalog.wire_form import AS_LIST, Field, WireForm, required, sparse, unless_none
from leasehold.model.errors import MalformedRequest
from leasehold.model.keys import Key
from leasehold.model.records.log import CheckSlice, FindingsDecided

NO_WAY_BACK: Final = -1
"""The `point` of a job whose request can't be undone without it."""


class Phase(StrEnum):
    """The phases of a step. Each is written to the log before what it names is done."""

    PUBLISHING = "publishing"  # intent is in the log; the ledger is asked to publish (D2)
    DRAINING = "draining"  # the descriptor is in the log; leases below it run out (D4)
    BACKFILLING = "backfilling"  # min_version (the fence) is in the log; Spark fills (D5)
    VALIDATING = "validating"  # in jobs of an earlier release: Spark looks for what breaks one
    VERIFYING = "verifying"  # every coherent node checks the elements at one position
    DONE = "done"


class Status(StrEnum):
    RUNNING = "running"
    PAUSED = "paused"
    ROLLING_BACK = "rolling back"
    SUCCEEDED = "succeeded"
    FAILED = "failed"  # rolled back; the descriptor is as before
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        return self in (Status.SUCCEEDED, Status.FAILED, Status.CANCELLED)


class Hold(IntEnum):
    """Whether a job waits for the rows of its transaction, which then are one commit with the step
    that shows what it has made."""

    NONE = 0  # nobody holds it
    HELD = 1
    READY = 2  # and all before that is done: the ledger has the versions of the step


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a job, which is one published descriptor version: elements are edited; then,
    fenced, the work.

    `backfills`: elements whose pairs the backfill makes for the rows there are, one run each, in
    this order. `verifies`: element ids that every coherent node at last checks as if they were
    public. `validates`: constraints that Spark looks through the rows for ahead of that, in jobs
    that an earlier release has planned. `table_id`: whose elements all of these are, 0 = those of
    the job's own table.
    """

    edits: tuple[Edit, ...]
    backfills: tuple[int, ...] = ()
    verifies: tuple[int, ...] = ()
    validates: tuple[int, ...] = ()
    table_id: int = 0

    @property
    def backfill(self) -> bool:
        return bool(self.backfills)

    @property
    def has_work(self) -> bool:
        """Whether rows are filled or looked at behind its fence."""
        return bool(self.backfills or self.validates or self.verifies)

    @property
    def label(self) -> str:
        """The states that the step brings elements to, for people: `write-only`."""
        return ", ".join(dict.fromkeys(edit.state for edit in self.edits)) or "unchanged"

    @property
    def reversed(self) -> Step:
        """The way back; rows need no work on it."""
        return Step(tuple(edit.reversed for edit in reversed(self.edits)))


@dataclass(frozen=True, slots=True)
class Job:
    """A schema-change job. `steps[step]` is being done. `versions`: table id → version the current
    step publishes.

    `subject` names what is changed, for people: `index flights_by_day`. `point`: the step whose
    publication is the point of no return; NO_WAY_BACK: that was its request. `backfill`: which of
    the step's backfills is running. `run` counts runs of a step's work; a chunk of another run is
    refused (⚠ late chunks). `needs`: tables that must stay as they are meanwhile (D9). Several
    tables move together: each step publishes a version of every one of `tables`, except of those
    that only join in: of `joins` a step publishes those that it edits. `dropped`: findings of the
    validation that the master did not confirm; `verdict`: which rows break the constraint or have
    no value to be filled in, in words; `code`: its SQLSTATE, and that of `error`, "" = no other
    than that the job has failed. `fence_lsn` is the LSN of the current step's `min_version`.
    `marks`: (step, phase, unix µs) for the times of every step. `rows`: the table's when the job
    was made, -1 where it was not counted. `look`: the slice that a verification is at, None = it
    looks at all in one pass;
    `looked`: rows and entries in the slices before it. `settings`: rows_per_second (0 = no limit),
    chunk_rows, postpone (1: the point of no return waits), cancel_blockers_after_ms (0 = leases are
    waited for), gentle (1: users are to feel half of it). `principal`: the role that asked for it,
    "" = the bootstrap role. `by_range`: the run fills ranges of keys, of which the log has those up
    to `through`, () = none yet. `hold`: whether it waits for its transaction at the point of no
    return. `renames`: the id and the new name of a schema, which gets it with the first step, and
    is found under the one of before until the last step is fenced; () = of none.
    """

    job_id: int
    sql: str
    table_id: int
    table: str
    request_id: bytes
    kind: str
    subject: str
    steps: tuple[Step, ...]
    point: int
    step: int = 0
    backfill: int = 0
    phase: Phase = Phase.PUBLISHING
    status: Status = Status.RUNNING
    versions: Mapping[int, int] = field(default_factory=dict)
    run: int = 0
    fence_lsn: int = 0
    rows_read: int = 0
    rows_applied: int = 0
    chunks_ended: bool = False
    error: str = ""
    findings: tuple[Any, ...] = ()
    dropped: int = 0
    verdict: str = ""
    settings: Mapping[str, int] = field(default_factory=dict)
    needs: tuple[int, ...] = ()
    joins: tuple[int, ...] = ()
    created_us: int = 0
    marks: tuple[tuple[int, str, int], ...] = ()
    rows: int = -1
    look: CheckSlice | None = None
    looked: int = 0
    code: str = ""
    principal: str = ""
    by_range: bool = False
    through: Key = ()
    hold: Hold = Hold.NONE
    renames: tuple[int, str] | tuple[()] = ()

    @property
    def current(self) -> Step:
        return self.steps[self.step]

    @property
    def tables(self) -> tuple[int, ...]:
        """The tables that the job changes (D9), its own first; another may be one that it makes."""
        return (self.table_id, *sorted(self.versions.keys() - {self.table_id}))

    def publishes(self, table_id: int) -> bool:
        """Say whether the current step makes a version of that one of its tables."""
        return table_id not in self.joins or bool(self.edits_of(table_id))

    def edits_of(self, table_id: int) -> tuple[Edit, ...]:
        """Return the edits that the current step makes in one of the tables."""
        return self.edits_in(self.current, table_id)

    def edits_in(self, step: Step, table_id: int) -> tuple[Edit, ...]:
        """Return the edits that a step makes in one of the tables."""
        return tuple(e for e in step.edits if (e.table_id or self.table_id) == table_id)

    @property
    def gentle(self) -> bool:
        return bool(self.settings.get("gentle"))

    @property
    def postponed(self) -> bool:
        """Whether it stands before its point of no return, and that is to wait."""
        return (
            bool(self.settings.get("postpone"))
            and self.step == self.point
            and self.phase is Phase.PUBLISHING
            and self.status is Status.RUNNING
        )

    @property
    def worked_table(self) -> int:
        """The table whose rows the current step works on."""
        return self.current.table_id or self.table_id

    @property
    def failed_table(self) -> int:
        """The table of the rows that `findings` name: that of the step which was turned back."""
        turned = self.status in (Status.ROLLING_BACK, Status.FAILED)
        step = self.steps[len(self.steps) // 2 - 1] if turned and self.steps else self.current
        return step.table_id or self.table_id

    @property
    def held(self) -> bool:
        """Whether it stands where only its transaction lets it go on."""
        return (
            self.hold is not Hold.NONE
            and self.step == self.point
            and self.phase is Phase.PUBLISHING
            and self.status is Status.RUNNING
        )

    @property
    def awaits_run(self) -> bool:
        """Whether it waits now for a run of Spark over the rows, a backfill's or a
        validation's."""
        if self.status is not Status.RUNNING or self.chunks_ended or self.copies_rows:
            return False
        work = {Phase.BACKFILLING: self.current.backfills, Phase.VALIDATING: self.current.validates}
        return bool(work.get(self.phase))

    @property
    def copies_rows(self) -> bool:
        """Whether the run copies rows under another key by ranges, of which the log has those up to
        `through`. The master reads and cuts them by himself."""
        return self.by_range and self.element_id == ALL_ROWS

    @property
    def element_id(self) -> int:
        """The element that is being filled, 0 for none."""
        backfills = self.current.backfills if self.step < len(self.steps) else ()
        return backfills[self.backfill] if self.backfill < len(backfills) else 0

    @property
    def backfilling(self) -> Edit | None:
        """The edit that made the element being filled writable."""
        edits = self.edits_of(self.worked_table) if self.element_id else ()
        return next((edit for edit in edits if edit.element_id == self.element_id), None)

    def counted(self, rows: int, applied: int, end: bool, through: Key = ()) -> Job:
        """Return the job after a decided chunk of its run, or range up to `through`."""
        return replace(
            self,
            rows_read=self.rows_read + rows,
            rows_applied=self.rows_applied + applied,
            chunks_ended=self.chunks_ended or end,
            through=through or self.through,
        )

    def validated(self, decided: FindingsDecided) -> Job:
        """Return the job after the decided findings of its run, which has ended with them."""
        return replace(
            self,
            rows_read=max(self.rows_read, decided.rows),
            chunks_ended=True,
            dropped=decided.dropped,
            verdict=decided.words,
            findings=decided.findings,
            code=decided.code,
        )

    def to_wire(self) -> dict[str, Any]:
        """Return plain data for the log, job events and the store."""
        return _JOB_FORM.to_wire(self)


def _step_to_wire(step: Step) -> list[Any]:
    edits = [edit.to_wire() for edit in step.edits]
    work = [edits, list(step.backfills), list(step.verifies), list(step.validates)]
    return [*work, step.table_id] if step.table_id else work


def _step_from_wire(body: Any) -> Step:
    # A step of an older writer has no list of constraints to validate.
    edits, *work = body
    table_id = work.pop() if len(work) > 3 else 0
    made = (*map(tuple, work), (), (), ())
    return Step(tuple(map(edit_from_wire, edits)), made[0], made[1], made[2], table_id)


def _slice_from_wire(body: Any) -> CheckSlice:
    part, after, rows_max = body
    return CheckSlice(part, tuple(after), rows_max)


_JOB_FORM: Final = WireForm(
    Job,
    required("job_id", "id"),
    required("sql"),
    required("table_id"),
    required("table"),
    required("request_id"),
    required("kind"),
    required("subject"),
    required(
        "steps",
        "",
        lambda steps: list(map(_step_to_wire, steps)),
        lambda steps: tuple(map(_step_from_wire, steps)),
    ),
    required("point"),
    required("step"),
    required("backfill", "fill"),
    required("phase", "", lambda phase: phase.value, Phase),
    required("status", "", lambda status: status.value, Status),
    required("versions", "", dict, lambda body: {int(t): v for t, v in body.items()}),
    required("run"),
    required("fence_lsn"),
    required("rows_read"),
    required("rows_applied"),
    required("chunks_ended"),
    required("error"),
    required(
        "findings",
        "",
        lambda findings: list(map(list, findings)),
        lambda findings: tuple(map(tuple, findings)),
    ),
    Field("dropped"),
    Field("verdict"),
    required("settings", "", dict),
    Field("needs", "", *AS_LIST),
    Field("joins", "", *AS_LIST),
    required("created_us"),
    required(
        "marks",
        "",
        lambda marks: list(map(list, marks)),
        lambda marks: tuple((step, phase, at_us) for step, phase, at_us in marks),
    ),
    Field("rows"),
    Field("look", "", unless_none(list), unless_none(_slice_from_wire)),
    Field("looked"),
    sparse("code"),
    sparse("principal"),
    sparse("by_range"),
    sparse("through", "", *AS_LIST),
    sparse("hold", "", int, Hold),
    sparse("renames", "", *AS_LIST),
)
job_from_wire: Final = _JOB_FORM.from_wire


def read_job(body: Any) -> Job:
    """Return what `job_from_wire` makes of a body that came from outside. Raises MalformedRequest,
    and nothing else, for what is no job."""
    try:
        return job_from_wire(body)
    except Exception as error:  # whatever it is: nobody can read this body
        words = f"a job's description can't be read ({type(error).__name__}: {str(error)[:200]})"
        raise MalformedRequest(words) from error
