"""Job: one schema change on its way through the states, as the log keeps it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from leasehold.catalog.edits import Edit, edit_from_wire
from leasehold.model.records.log import CheckSlice, FindingsDecided

NO_WAY_BACK: Final = -1
"""The `point` of a job whose request can't be undone without it."""


class Phase(StrEnum):
    """Where the current step stands. Each is written to the log before what it names is done."""

    PUBLISHING = "publishing"  # intent is in the log; the ledger is asked to publish (D2)
    DRAINING = "draining"  # the descriptor is in the log; leases below it run out (D4)
    BACKFILLING = "backfilling"  # min_version (the fence) is in the log; Spark fills (D5)
    VALIDATING = "validating"  # Spark looks for rows that break a constraint; the master confirms
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


@dataclass(frozen=True, slots=True)
class Step:
    """One published descriptor version: elements are edited; then, fenced, the work.

    `fills`: elements whose pairs the backfill makes for the rows there are, one run each, in this
    order. `validates`: constraints whose rows of before are then looked through. `verifies`:
    element ids that every coherent node at last checks as if they were public.
    """

    edits: tuple[Edit, ...]
    fills: tuple[int, ...] = ()
    verifies: tuple[int, ...] = ()
    validates: tuple[int, ...] = ()

    @property
    def backfill(self) -> bool:
        return bool(self.fills)

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
    """`steps[step]` is being done. `versions`: table id → version the current step publishes.

    `subject` names what is changed, for people: `index flights_by_day`. `point`: the step whose
    publication is the point of no return; NO_WAY_BACK: that was its request. `fill`: which of the
    step's fills is running.
    `run` counts runs of a step's work; a chunk of another run is refused (⚠ late chunks).
    `needs`: tables that must stay as they are meanwhile (D9).
    Several tables move together: each step publishes a version of every one of `tables`, except
    of those that only join in: of `joins` a step publishes those that it edits.
    `dropped`: findings of the validation that the master did not confirm; `verdict`: which rows
    break the constraint or have no value to be filled in, in words; `code`: its SQLSTATE, and that
    of `error`, "" = no other than that the job has failed.
    `fence_lsn` is the LSN of the current step's `min_version`. `marks`: (step, phase, unix µs) for
    the times of every step. `rows`: the table's when the job was made, -1 where it was not counted.
    `look`: the slice that a verification is at, None = it looks at all in one pass; `looked`: rows
    and entries in the slices before it.
    `settings`: rows_per_second (0 = no limit), chunk_rows, postpone (1:
    the point of no return waits), cancel_blockers_after_ms (0 = leases are waited for).
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
    fill: int = 0
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

    @property
    def current(self) -> Step:
        return self.steps[self.step]

    @property
    def tables(self) -> tuple[int, ...]:
        """Tables that the job changes (D9), its own first; another may be one that it makes."""
        return (self.table_id, *sorted(self.versions.keys() - {self.table_id}))

    def publishes(self, table_id: int) -> bool:
        """Does the current step make a version of that one of its tables?"""
        return table_id not in self.joins or bool(self.edits_of(table_id))

    def edits_of(self, table_id: int) -> tuple[Edit, ...]:
        """Of the current step, of one of the tables."""
        edits = self.current.edits
        return tuple(e for e in edits if (e.table_id or self.table_id) == table_id)

    @property
    def postponed(self) -> bool:
        """Does it stand before its point of no return, and is that to wait?"""
        return (
            bool(self.settings.get("postpone"))
            and self.step == self.point
            and self.phase is Phase.PUBLISHING
            and self.status is Status.RUNNING
        )

    @property
    def awaits_run(self) -> bool:
        """Does it wait now for a run over the rows, a backfill's or a validation's?"""
        if self.status is not Status.RUNNING or self.chunks_ended:
            return False
        work = {Phase.BACKFILLING: self.current.fills, Phase.VALIDATING: self.current.validates}
        return bool(work.get(self.phase))

    @property
    def element_id(self) -> int:
        """The element that is being filled, 0 for none."""
        fills = self.current.fills if self.step < len(self.steps) else ()
        return fills[self.fill] if self.fill < len(fills) else 0

    @property
    def filling(self) -> Edit | None:
        """The edit that made the element being filled writable."""
        edits = self.current.edits if self.element_id else ()
        return next((edit for edit in edits if edit.element_id == self.element_id), None)

    def counted(self, rows: int, applied: int, end: bool) -> Job:
        """After a decided chunk of the job's run."""
        return replace(
            self,
            rows_read=self.rows_read + rows,
            rows_applied=self.rows_applied + applied,
            chunks_ended=self.chunks_ended or end,
        )

    def validated(self, decided: FindingsDecided) -> Job:
        """After the decided findings of the job's run, which has ended with them."""
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
        return {
            "id": self.job_id,
            "sql": self.sql,
            "table_id": self.table_id,
            "table": self.table,
            "request_id": self.request_id,
            "kind": self.kind,
            "subject": self.subject,
            "steps": [
                [
                    [edit.to_wire() for edit in s.edits],
                    list(s.fills),
                    list(s.verifies),
                    list(s.validates),
                ]
                for s in self.steps
            ],
            "point": self.point,
            "step": self.step,
            "fill": self.fill,
            "phase": self.phase.value,
            "status": self.status.value,
            "versions": dict(self.versions),
            "run": self.run,
            "fence_lsn": self.fence_lsn,
            "rows_read": self.rows_read,
            "rows_applied": self.rows_applied,
            "chunks_ended": self.chunks_ended,
            "error": self.error,
            "findings": [list(f) for f in self.findings],
            "dropped": self.dropped,
            "verdict": self.verdict,
            "settings": dict(self.settings),
            "needs": list(self.needs),
            "joins": list(self.joins),
            "created_us": self.created_us,
            "marks": [list(m) for m in self.marks],
            "rows": self.rows,
            "look": list(self.look) if self.look is not None else None,
            "looked": self.looked,
            **({"code": self.code} if self.code else {}),
        }


def job_from_wire(body: Mapping[str, Any]) -> Job:
    return Job(
        job_id=body["id"],
        sql=body["sql"],
        table_id=body["table_id"],
        table=body["table"],
        request_id=body["request_id"],
        kind=body["kind"],
        subject=body["subject"],
        steps=tuple(
            # A step of an older writer has no list of constraints to validate.
            Step(tuple(map(edit_from_wire, edits)), *map(tuple, work))
            for edits, *work in body["steps"]
        ),
        point=body["point"],
        step=body["step"],
        fill=body["fill"],
        phase=Phase(body["phase"]),
        status=Status(body["status"]),
        versions={int(t): v for t, v in body["versions"].items()},
        run=body["run"],
        fence_lsn=body["fence_lsn"],
        rows_read=body["rows_read"],
        rows_applied=body["rows_applied"],
        chunks_ended=body["chunks_ended"],
        error=body["error"],
        findings=tuple(tuple(f) for f in body["findings"]),
        dropped=body.get("dropped", 0),
        verdict=body.get("verdict", ""),
        settings=body["settings"],
        needs=tuple(body.get("needs", ())),
        joins=tuple(body.get("joins", ())),
        created_us=body["created_us"],
        marks=tuple((s, p, t) for s, p, t in body["marks"]),
        rows=body.get("rows", -1),
        look=_slice_from_wire(body.get("look")),
        looked=body.get("looked", 0),
        code=body.get("code", ""),
    )


def _slice_from_wire(body: Sequence[Any] | None) -> CheckSlice | None:
    if body is None:
        return None
    part, after, rows_max = body
    return CheckSlice(part, tuple(after), rows_max)
