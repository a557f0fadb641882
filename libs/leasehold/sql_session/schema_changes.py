"""Schema changes of a SQL session: handed to the master, and followed to their end as is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Final

from leasehold.adapters.os.clock import new_request_id
from leasehold.catalog.edits import Kind
from leasehold.catalog.element_forms import COLUMN_FORM
from leasehold.catalog.elements import Column
from leasehold.catalog.job import Job, Status
from leasehold.model.errors import (
    CanceledUnderWay,
    LeaseholdError,
    NotCoherent,
    OutcomeUnknown,
    QueryCanceled,
    Refused,
    UnknownTable,
    refused,
)
from leasehold.model.ids import is_sequence_id
from leasehold.model.records.requests import ChangeRequest, OnConflict, Outcome
from leasehold.pgwire.session import Notice
from leasehold.replica.serving_node import SqlNode
from leasehold.rows.duplicated_keys import read_detail
from leasehold.schema_change.plan.answers import read_all_told, read_jobs
from leasehold.sql.functions.system.session import Caller
from leasehold.sql.syntax.object_statements import (
    Comment,
    DropAbsent,
    EnumStatement,
    MakeBuiltIn,
    NamespaceStatement,
    ViewStatement,
)
from leasehold.sql.syntax.roles.grant_statements import RoleStatement
from leasehold.sql.syntax.session_statements import SchemaStatement, SessionStatement
from leasehold.sql.syntax.statements import (
    AddCheck,
    AddColumn,
    AddForeignKey,
    AddPrimaryKey,
    AddUnique,
    AlterIdentity,
    AlterSequence,
    AlterTable,
    CreateIndex,
    CreateSequence,
    CreateTable,
    DropIndex,
    DropSequence,
    DropTable,
    Explain,
    OwnSequence,
    RenameIndex,
    RenameSequence,
    RestartSequence,
    SetNotNull,
    SetSchema,
    Truncate,
)
from leasehold.values.time_zone import UTC

ANSWER_TIMEOUT_S: Final = 30.0
LOOK_S: Final = 0.5
"""How often a statement's limit of time is looked at while nothing happens."""
_TAGS: Final[dict[type, str]] = {
    CreateTable: "CREATE TABLE",
    DropTable: "DROP TABLE",
    Truncate: "TRUNCATE TABLE",
    CreateIndex: "CREATE INDEX",
    DropIndex: "DROP INDEX",
    RenameIndex: "ALTER INDEX",
    AlterTable: "ALTER TABLE",
    CreateSequence: "CREATE SEQUENCE",
    DropSequence: "DROP SEQUENCE",
    RestartSequence: "ALTER SEQUENCE",
    OwnSequence: "ALTER SEQUENCE",
    RenameSequence: "ALTER SEQUENCE",
    AlterSequence: "ALTER SEQUENCE",
    Comment: "COMMENT",
}
CANCELLED: Final = "57014"
FAILED: Final = "55000"
EXHAUSTED: Final = "2200H"
BROKEN: Final = "23000"
MISSING: Final = "23502"
_BROKEN: Final[dict[type, str]] = {
    CreateIndex: "23505",
    AddUnique: "23505",
    AddCheck: "23514",
    AddForeignKey: "23503",
    SetNotNull: "23502",
}


def tag_of(statement: SchemaStatement) -> str:
    if statement.explains:
        return "EXPLAIN"
    change = statement.change
    known = (
        RoleStatement | DropAbsent | ViewStatement | EnumStatement | NamespaceStatement | SetSchema
    )
    if isinstance(change, known):
        return change.tag
    if isinstance(change, MakeBuiltIn):
        return f"CREATE {change.kind.upper()}"
    return _TAGS[type(change)]


def submit_change(
    node: SqlNode,
    statement: SessionStatement,
    caller: Caller,
    stopped: Callable[[], bool],
    mark: Callable[[ChangeRequest], ChangeRequest],
) -> Outcome:
    """Submit a schema change, in the time zone and as the role of `caller`, and return its outcome.
    `mark` gives a request what it is to have of the session.

    Raises what the master refused with, OutcomeUnknown; CanceledUnderWay once `stopped`.
    """
    zones = () if caller.zone is UTC else (caller.zone.key,)
    principal, as_role = caller.asks_as
    request = ChangeRequest(
        new_request_id(),
        sql=statement.text,
        on_conflict=OnConflict.FAIL,
        time_zones=zones,
        principal=principal,
        as_role=as_role,
        fence=caller.fence(),
    )
    try:
        outcome = node.submit(mark(request), ANSWER_TIMEOUT_S, stopped)
    except QueryCanceled as error:
        meaning = statement.meaning
        if isinstance(meaning, SchemaStatement) and meaning.explains:
            raise
        raise CanceledUnderWay(
            error.message,
            detail="The schema change was sent to the master already: it may be made all the same.",
            hint="`leasehold jobs` and the catalog show it.",
        ) from None
    if not outcome.lsn:
        raise outcome.make_error()
    return outcome


def return_sequence_values(node: SqlNode, change: object, stopped: Callable[[], bool]) -> None:
    """Give back what this node has left of sequences whose options `change` alters: the next number
    is then the one after the last that it has told, as in PostgreSQL. Raises QueryCanceled."""
    # ⚠ Of any other change nothing is looked at here: the master executes it, and one behind a
    # large COPY comes while this replica is not coherent.
    match change:
        case AlterSequence(name):
            table, columns = name, None
        case AlterTable(table, actions):
            columns = [a.column for a in actions if isinstance(a, AlterIdentity)]
            if not columns:
                return
        case _:
            return
    found: list[int] = []
    with suppress(Refused, NotCoherent), node.single_read().snapshot() as snapshot:
        descriptor = snapshot.newest(table)
        if columns is None:
            found.append(descriptor.table_id)
        else:
            found += (descriptor.column(each).draws_from for each in columns)
    for sequence_id in filter(is_sequence_id, found):
        with suppress(NotCoherent, UnknownTable):
            node.sequence_values.give_back(node.sequence_values.find(sequence_id), stopped)


def notices_of(outcome: Outcome) -> list[Notice]:
    return [Notice(*told) for told in read_all_told(outcome.answer)]


def plan_lines(outcome: Outcome) -> list[tuple[str]]:
    """Return the rows of EXPLAIN of a schema change, a line for a step."""
    steps = outcome.answer["plan"] if isinstance(outcome.answer, dict) else ()
    lines = []
    for step in steps:
        rows = f", {step['rows']} rows" if step["rows"] > 0 else ""
        end = " · point of no return" if step["point_of_no_return"] else ""
        waits = f"; then waits for {step['waits_for']}" if step["waits_for"] else ""
        head = f"step {step['step']}, version {step['version']}"
        lines.append((f"{head}: {step['changes']}{rows}{waits}{end}",))
    return lines or [("nothing to do",)]


def follow_jobs(
    node: SqlNode, outcome: Outcome, statement: SchemaStatement, stop: Callable[[], bool]
) -> bool:
    """Wait until the jobs that were begun have ended and reads here see what they did; False: told
    to stop before. Raises the Refused of one that failed, OutcomeUnknown where this node stops."""
    for job_id in read_jobs(outcome.answer):
        try:
            ended = _await_end(node, job_id, stop)
        except LeaseholdError as error:  # T5: it was begun, and may succeed all the same
            raise OutcomeUnknown(
                f"job {job_id} was begun and goes on: `leasehold jobs` shows what comes of it, this"
                f" node does not: {error.message}"
            ) from None
        if not ended:
            return False
        job = node.jobs()[job_id]
        if job.status is not Status.SUCCEEDED:
            raise _failure(job, _code_of(job, statement), _broken_by_rows(node, job))
    return True


def job_warnings(node: SqlNode, outcome: Outcome, stop: Callable[[], bool]) -> Iterator[str]:
    """Yield words for each job of a COMMIT that has not ended as it should: what was committed is,
    whatever becomes of it."""
    for job_id in read_jobs(outcome.answer):
        try:
            ended = _await_end(node, job_id, stop)
        except LeaseholdError as error:  # T5: this node has stopped, the transaction is committed
            yield f"job {job_id} goes on: `leasehold jobs` shows it; {error.message}"
            continue
        if not ended:
            yield f"job {job_id} goes on: `leasehold jobs` shows it"
            continue
        job = node.jobs()[job_id]
        if job.status is not Status.SUCCEEDED:
            words = job.error or f"it was {job.status.value}"
            yield f"job {job_id} on table {job.table!r}: {words}"


def _await_end(node: SqlNode, job_id: int, stop: Callable[[], bool]) -> bool:
    while not node.wait(lambda: stop() or _ended(node, job_id), LOOK_S):
        pass
    return not stop()


def _ended(node: SqlNode, job_id: int) -> bool:
    job = node.jobs().get(job_id)
    return job is not None and job.status.ended and node.is_settled()


def explain_failure(node: SqlNode, job: Job) -> Refused:
    """Return the error of a transaction whose job has failed."""
    return _failure(job, job.code or FAILED, _broken_by_rows(node, job))


def _failure(job: Job, code: str, broken: Mapping[str, str]) -> Refused:
    words = job.error or f"it was {job.status.value}"
    code = CANCELLED if job.status is Status.CANCELLED else code
    drawn = _left_without(job)
    if drawn and code in (FAILED, MISSING):
        code, words = EXHAUSTED, f"{drawn} has no number left for all rows; {words}"
    detail = {"table": job.table, **broken}
    return refused(code, f"job {job.job_id} on table {job.table!r}: {words}", detail)


def _broken_by_rows(node: SqlNode, job: Job) -> dict[str, str]:
    """Return which constraint, or column, the first row that was found breaks, and which key it has
    that another one has, too; {}: none was."""
    if not job.findings:
        return {}
    detail = read_detail(job.findings[0][3])
    return _broken_element(node, job) | ({"detail": detail} if detail else {})


def _broken_element(node: SqlNode, job: Job) -> dict[str, str]:
    element_id = job.findings[0][1]
    table_id = job.failed_table
    own = (edit for step in job.steps for edit in job.edits_in(step, table_id))
    made = next((edit for edit in own if edit.element_id == element_id), None)
    if made is not None:
        return {"column" if made.kind is Kind.COLUMN else "constraint": made.name}
    # What is only validated has not been edited yet.
    with suppress(LeaseholdError), node.single_read().snapshot() as snapshot:
        element = snapshot.newest(job.table).element(element_id)
        if element is not None and not isinstance(element, Column):
            return {"constraint": element.name}
    return {}


def _left_without(job: Job) -> str:
    """Return the default of a column that the job has added, and in which rows lack what it draws;
    "": there is none. The only way to that is a sequence that has come to its end."""
    lacking = {found[1] for found in job.findings}
    for edit in (edit for step in job.steps for edit in step.edits if edit.kind is Kind.COLUMN):
        if edit.element_id in lacking and edit.after is not None:
            column = COLUMN_FORM.from_wire(edit.after)
            if column.draws_from:
                return column.default_expression
    return ""


def _code_of(job: Job, statement: SchemaStatement) -> str:
    """Return the SQLSTATE of a failed job: what the rows break. One of an earlier release does not
    say it: then the statement does, as far as that can be told."""
    if job.code:
        return job.code
    change = statement.change
    if not job.verdict or isinstance(change, Explain):
        return FAILED
    parts = change.actions if isinstance(change, AlterTable) else (change,)
    if any(isinstance(p, AddPrimaryKey) or (isinstance(p, AddColumn) and p.key) for p in parts):
        # Two equal keys break the index over them, a NULL the column.
        edits = [edit for step in job.steps for edit in step.edits]
        indexes = {edit.element_id for edit in edits if edit.kind is Kind.INDEX}
        return "23505" if any(found[1] in indexes for found in job.findings) else "23502"
    codes = {_BROKEN[type(part)] for part in parts if type(part) in _BROKEN}
    return codes.pop() if len(codes) == 1 else BROKEN
