"""EXPLAIN of a schema change: what a plan will do, step by step, without doing it."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from leasehold.catalog.edits import Kind
from leasehold.catalog.element_forms import derived_from_wire
from leasehold.catalog.job import Job, Step
from leasehold.model.ids import is_sequence_id
from leasehold.schema_change.job.estimate import Pace
from leasehold.schema_change.plan.primary_key import KEY_CHANGE, KEY_DROP
from leasehold.schema_change.plan.results import (
    CreateTablePlan,
    JobPlan,
    NothingToDo,
    Plan,
    RestartPlan,
    TruncatePlan,
)
from leasehold.values.types import type_from_wire

_AS_A_WRITE: Final = "nothing: at one LSN, like a write"


class ExplainRow(NamedTuple):
    """A row of EXPLAIN, which is one step. `step` counts from 1, 0: nothing is done; `waits_for` in
    plain words; `rows`: how many its work goes over (of each backfill, or of a verification alone);
    `seconds`: about how long it takes by what recent jobs took; each -1 where nobody knows."""

    step: int
    version: int
    changes: str
    waits_for: str
    rows: int
    point_of_no_return: bool
    seconds: float = 0.0

    def to_wire(self) -> dict[str, Any]:
        return self._asdict()


def explain(planned: Plan, rows: int = -1, pace: Pace | None = None) -> tuple[ExplainRow, ...]:
    """Return the steps of a plan; `rows` are the table's now, `pace` what recent jobs took."""
    match planned:
        case NothingToDo(notice):
            return (ExplainRow(0, 0, notice, "nothing", 0, False),)
        case CreateTablePlan(descriptor):
            kind = "table" if descriptor.sequence is None else "sequence"
            words = f"{kind} {descriptor.name} → public"
            return (ExplainRow(1, 1, words, "nothing: nobody can have used it", 0, True),)
        case RestartPlan(sequence, start):
            words = f"sequence {sequence.name}: goes on from {start}"
            return (ExplainRow(1, sequence.version, words, _AS_A_WRITE, 0, True),)
        case TruncatePlan(tables):
            return tuple(
                ExplainRow(
                    1,
                    table.version,
                    f"table {table.name}: every row goes, the version stays",
                    _AS_A_WRITE,
                    0,
                    True,
                )
                for table in tables
            )
        case JobPlan(job):
            return tuple(
                _step(job, number, rows, pace or Pace()) for number in range(len(job.steps))
            )


def _step(job: Job, number: int, rows: int, pace: Pace) -> ExplainRow:
    step = job.steps[number]
    version = job.versions[job.table_id] + number
    waits = [f"leases below version {version - 1} to end"] if version > 2 else []
    waits.append(f"leases below version {version} to end")
    if step.backfills:
        waits.append("the backfill of the rows there are")
    if step.verifies:
        waits.append("every coherent node to verify")
    passes = len(step.backfills) or int(bool(step.verifies))
    return ExplainRow(
        number + 1,
        version,
        describe_changes(step, job.table_id, mirrors=job.kind in (KEY_CHANGE, KEY_DROP)),
        "; ".join(waits),
        rows * passes if rows >= 0 else -min(passes, 1),
        number == job.point,
        pace.step_seconds(step, rows),
    )


def describe_changes(step: Step, table_id: int = 0, *, mirrors: bool = False) -> str:
    """Return a step's changes in words: `column a → write-only; index i → absent`. `mirrors`: the
    other table is the same one under its new key."""
    found = []
    for edit in step.edits:
        fields = "" if edit.before is None or edit.after is None else _fields(edit)
        made = edit.after if edit.before is None and edit.after is not None else {}
        if len(made.get("missing") or ()) > 2:
            fields = f"{edit.state}, every row has its default"
        table = edit.kind is Kind.TABLE
        kind = "sequence" if table and is_sequence_id(edit.table_id or table_id) else edit.kind
        mirror = mirrors and kind is Kind.TABLE and edit.table_id
        other = " with the other key" if mirror else ""
        name = edit.name or "(hidden key)"
        found.append(f"{kind} {name}{other} → {fields or edit.state}")
    return "; ".join(found) or "nothing: validation only"


def _fields(edit: Any) -> str:
    """Return what changes beside the state, where the state stays."""
    before, after = edit.before, edit.after
    column = edit.kind is Kind.COLUMN
    if before["state"] != after["state"]:
        return ""
    said = []
    if before["name"] != after["name"]:
        resolves = f", {after['alias']} still resolves" if after["alias"] else ""
        said.append(f"named {after['name']}{resolves}")
    elif before.get("alias") and not after.get("alias"):
        said.append(f"{before['alias']} resolves no more")
    if column:
        said += _types(before, after)
    if before.get("nullable") != after.get("nullable"):
        said.append("nullable" if after["nullable"] else "NOT NULL")
    elif before.get("not_null_enforced") != after.get("not_null_enforced"):
        said.append("NOT NULL enforced" if after["not_null_enforced"] else "NOT NULL dropped")
    if before.get("unique_enforced") != after.get("unique_enforced"):
        said.append("UNIQUE enforced" if after["unique_enforced"] else "UNIQUE dropped")
    if _default(before) != _default(after):
        said.append("default set" if _default(after)[0] else "default dropped")
    if _own(after) - _own(before):
        said.append("has its sequence for its own")
    elif _own(before) - _own(after):
        left = len(_own(after))
        many = f"{left} sequence{'s' * (left > 1)}"
        said.append(f"has {many if left else 'none'} for its own")
    if _identity(before) and _identity(after) and _identity(before) != _identity(after):
        said.append("BY DEFAULT" if _identity(after) == "d" else "ALWAYS")
    if before.get("filled") != after.get("filled"):
        said.append("every row has its default")
    texts = ("expression", "expressions", "predicate")
    if any(before.get(text) != after.get(text) for text in texts):
        said.append("reworded")
    if before.get("locks") != after.get("locks"):
        said.append("under both locks" if len(after["locks"]) > 1 else "under its new lock alone")
    if before.get("lock_moves") != after.get("lock_moves"):
        said.append("new locks take over what the old ones know")
    if before.get("twin", 0) != after.get("twin", 0):
        said.append("followed by the other" if after["twin"] else "on its own")
    if before.get("implied", False) != after.get("implied", False):
        said.append("for a foreign key alone" if after.get("implied") else "shown")
    if before.get("parent") != after.get("parent"):
        said.append("refers to the table with the other key")
    if before.get("sequence") != after.get("sequence"):
        said.append("other options")
    if before.get("derived") != after.get("derived"):
        said.append(_derived(before["derived"], after["derived"]))
    return ", ".join(said)


def _types(before: Any, after: Any) -> list[str]:
    """Return what changes in the values that a column may have."""
    said = []
    retyped = type_from_wire(before) != type_from_wire(after)
    if retyped:
        said.append(f"of type {type_from_wire(after)}")
    held, was = after.get("narrow"), before.get("narrow")
    if held and held != was:
        kind = type_from_wire(held)
        said.append(f"{kind} is written" if retyped else f"what is no {kind} is refused")
    elif was and not held and not retyped:
        said.append(f"every {type_from_wire(after)} is written")
    return said


def _default(body: Any) -> tuple[bool, Any, str]:
    """Return whether there is a default, and which; a record from before there were expressions has
    none."""
    value, expression = body.get("default"), body.get("default_expression", "")
    return value is not None or bool(expression), value, expression


def _own(body: Any) -> set[int]:
    """Return the ids of the sequences that go with a column."""
    found = body.get("numbering")
    return {*body.get("owns", ()), *((found[0],) if found is not None and found[1] else ())}


def _identity(body: Any) -> str:
    found = body.get("numbering")
    return "" if found is None else str(found[2])


def _derived(before: Any, after: Any) -> str:
    if after is None:
        return "computed no more"
    now, was = derived_from_wire(after), derived_from_wire(before)
    if now.expression != was.expression:
        return "reworded"
    if now.loose != was.loose:
        return "its expression is not relied on"
    made = "computed" if now.generated else "converted"
    return f"a value that can't be {made} is refused"
