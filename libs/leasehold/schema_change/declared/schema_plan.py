"""A plan that leads a living schema to a declared one: requests of statements, each carried out in
memory before anybody is shown it, so that a plan which is shown leads there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.definitions import columns_of
from leasehold.catalog.job import Job
from leasehold.model.errors import FeatureNotSupported, LeaseholdError, Refused
from leasehold.schema_change.declared.in_memory import Done, GrowingRequest, run_request
from leasehold.schema_change.declared.shapes import Shape, TableShape, shape_of, tables_of
from leasehold.schema_change.declared.situation import Said, Situation
from leasehold.schema_change.declared.stages import STAGES
from leasehold.schema_change.declared.wanted import Wanted
from leasehold.schema_change.job.estimate import NOT_KNOWN, Pace, total

STATEMENTS_MAX: Final = 64
"""Of one request; the master takes twice as many."""
REQUEST_BYTES_MAX: Final = 32 * 1024


class PlannedStatement(NamedTuple):
    """A statement. `backfills`, `looks`: over the rows of which table; `instant`: it touches none.
    `loses` and `may_fail` are sentences' ends, "" = nothing and no row."""

    sql: str
    instant: bool
    backfills: bool
    looks: bool
    loses: str
    may_fail: str


class PlannedRequest(NamedTuple):
    """Statements that are one commit, or one job. `table`: whose job it is, "" = none. `rows`: how
    many the table has, about, and `seconds` what the job takes by recent ones; -1: not known."""

    statements: tuple[PlannedStatement, ...]
    table: str
    rows: int
    seconds: float

    @property
    def sql(self) -> str:
        """The text of the request."""
        return "; ".join(statement.sql for statement in self.statements)


class SchemaPlan(NamedTuple):
    """What is to be done, in order; () where the schemas are equal. `notes`: what differs and is
    left so, since no statement changes it."""

    requests: tuple[PlannedRequest, ...]
    notes: tuple[str, ...]

    @property
    def losses(self) -> list[str]:
        """What the plan loses for good."""
        said = (statement for request in self.requests for statement in request.statements)
        return [statement.loses for statement in said if statement.loses]


def plan_schema(
    catalog: Catalog,
    wanted: Wanted,
    *,
    zone: str = "",
    rows: Mapping[int, int] | None = None,
    pace: Pace | None = None,
) -> SchemaPlan:
    """Return the plan from a catalog to the schema that is wanted. `zone`: the time zone of the
    session that is to run it; `rows`: how many each table has, about, by id.

    Raises what planning a statement raises, with the statement in `detail`: then there is no way by
    statements alone. Raises FeatureNotSupported where they would not lead there.
    """
    steps: list[_Step] = []
    situation = Situation(catalog, wanted, zone)
    for stage in STAGES:
        now = situation.catalog
        for each in stage(situation):
            done = _run(now, each.sql, zone)
            steps.append(_Step(each, done, now))
            now = done.catalog
        if now is not situation.catalog:
            situation = Situation(now, wanted, zone)
    left = differences(situation)
    if left:
        raise FeatureNotSupported(
            f"no statements lead to the schema that is wanted: {left[0]} would stay",
            detail="\n".join(left),
            hint="Make this change by statements of your own (leasehold ddl), then look again.",
        )
    requests = _join(steps, zone)
    found = _describe(catalog, situation.now, requests, zone, rows or {}, pace or Pace())
    if found is None:
        requests = [(step,) for step in steps]
        found = _describe(catalog, situation.now, requests, zone, rows or {}, pace or Pace())
    assert found is not None, "each statement was carried out by itself"
    notes = [step.said.note for step in steps if step.said.note]
    return SchemaPlan(tuple(found), (*notes, *_notes(catalog, wanted)))


class _Step(NamedTuple):
    """A statement that was carried out by itself. `before`: the catalog without it."""

    said: Said
    done: Done
    before: Catalog


def _run(catalog: Catalog, sql: str, zone: str) -> Done:
    try:
        return run_request(catalog, sql, zone)
    except Refused as error:
        detail = {**error.detail, "statement": sql}
        detail.pop("position", None)
        raise type(error)(error.message, **detail) from error


# ------------------------------------------------------------------ requests


class _Open(NamedTuple):
    """A request that grows. `tables`: those that its job changes or needs, () where it is done at
    once, so that all may rest on it."""

    steps: tuple[_Step, ...]
    growing: GrowingRequest
    tables: frozenset[int]
    size: int


def _join(steps: Sequence[_Step], zone: str) -> list[tuple[_Step, ...]]:
    """Return the statements in requests: a statement goes into an earlier request that is done at
    once, or the job of its table, where only what has nothing to do with it stands between."""
    requests: list[_Open] = []
    for step in steps:
        jobs = step.done.jobs
        tables = frozenset(t for job in jobs for t in (*job.tables, *job.needs))
        place = _find_place(requests, tables)
        joined = None if place < 0 else _add(requests[place], step, tables)
        if joined is not None:
            requests[place] = joined
            continue
        fresh = GrowingRequest.on(step.before, zone)
        growing = fresh.with_statement(step.said.sql) or fresh
        requests.append(_Open((step,), growing, tables, len(step.said.sql.encode())))
    return [request.steps for request in requests]


def _find_place(requests: Sequence[_Open], tables: frozenset[int]) -> int:
    """Return the place of the last request that has to do with these tables, -1: there is none."""
    place = len(requests) - 1
    while place >= 0 and tables and requests[place].tables:
        if not tables.isdisjoint(requests[place].tables):
            break
        place -= 1
    return place


def _add(request: _Open, step: _Step, tables: frozenset[int]) -> _Open | None:
    size = request.size + len(step.said.sql.encode())
    if len(request.steps) >= STATEMENTS_MAX or size > REQUEST_BYTES_MAX:
        return None
    growing = request.growing.with_statement(step.said.sql)
    if growing is None:
        return None
    return _Open((*request.steps, step), growing, request.tables | tables, size)


def _describe(
    catalog: Catalog,
    wanted: Shape,
    requests: Sequence[tuple[_Step, ...]],
    zone: str,
    rows: Mapping[int, int],
    pace: Pace,
) -> list[PlannedRequest] | None:
    """Return the requests as they are shown. None: they do not lead where their statements do."""
    found = []
    now, known = catalog, dict(rows)
    try:
        for steps in requests:
            done = run_request(now, "; ".join(step.said.sql for step in steps), zone)
            found.append(_planned(steps, done, known, pace))
            now = done.catalog
            for table in now.tables():
                if table.former in known:  # the same rows under another key
                    known.setdefault(table.table_id, known[table.former])
    except LeaseholdError:
        return None
    return found if shape_of(now) == wanted else None


def _planned(
    steps: Sequence[_Step], done: Done, known: Mapping[int, int], pace: Pace
) -> PlannedRequest:
    statements = []
    for said, alone, _ in steps:
        # What a new table gets in the request that makes it has no row to go over.
        jobs = alone.jobs if done.jobs else ()
        backfills = any(step.backfills for job in jobs for step in job.steps)
        looks = any(step.verifies for job in jobs for step in job.steps)
        may_fail = said.may_fail if backfills or looks else ""
        statements.append(
            PlannedStatement(
                said.sql, not (backfills or looks), backfills, looks, said.loses, may_fail
            )
        )
    job = next(iter(done.jobs), None)
    rows = -1 if job is None else known.get(job.table_id, -1)
    table = "" if job is None else job.table
    return PlannedRequest(tuple(statements), table, rows, _seconds(job, rows, pace))


def _seconds(job: Job | None, rows: int, pace: Pace) -> float:
    if job is None:
        return 0.0
    return total(pace.step_seconds(step, rows) for step in job.steps) if job.steps else NOT_KNOWN


# ------------------------------------------------------------------ what is left


def differences(s: Situation) -> list[str]:
    """Return what of two schemas is not the same, in words."""
    found = []
    for kind, now, wanted in (
        ("table", s.now.tables, s.target.tables),
        ("sequence", s.now.sequences, s.target.sequences),
        ("view", s.now.views, s.target.views),
        ("type", s.now.enums, s.target.enums),
        ("comment on", s.now.comments, s.target.comments),
    ):
        one: Any = now
        other: Any = wanted
        for name in dict.fromkeys((*one, *other)):
            if name not in one or name not in other:
                found.append(f"{kind} {_words(name)}, which is there in one of them alone")
            elif kind == "table":
                found += (f"{what} of table {name}" for what in _in_table(one[name], other[name]))
            elif one[name] != other[name]:
                found.append(f"{kind} {_words(name)}")
    return found


def _in_table(now: TableShape, wanted: TableShape) -> Iterable[str]:
    keys = ((each.key, each.key_name, each.key_included) for each in (now, wanted))
    if len({*keys}) > 1:
        yield "the primary key"
    for kind in ("columns", "indexes", "checks", "foreign_keys", "locks"):
        one, other = getattr(now, kind), getattr(wanted, kind)
        for name in dict.fromkeys((*one, *other)):
            if not _is_settled(one.get(name), other.get(name)):
                words = {"columns": "column", "indexes": "index", "checks": "constraint"}
                yield f"{words.get(kind, kind.removesuffix('s').replace('_', ' '))} {name}"


def _is_settled(now: Any, wanted: Any) -> bool:
    """Say whether they are equal. A constraint that is wanted NOT VALID may be valid."""
    if now != wanted and hasattr(now, "valid") and hasattr(wanted, "valid"):
        return bool(now.valid and now == wanted._replace(valid=True))
    return bool(now == wanted)


def _words(name: Any) -> str:
    return name if isinstance(name, str) else " ".join(filter(None, name))


def _notes(catalog: Catalog, wanted: Wanted) -> Iterable[str]:
    there = tables_of(catalog)
    for name, table in tables_of(wanted.catalog).items():
        if name in there:
            now = [c.name for c in columns_of(there[name])]
            asked = [c.name for c in columns_of(table) if c.name in now]
            if [c for c in now if c in asked] != asked:
                yield f"table {name} has its columns in another order, which no statement changes"
