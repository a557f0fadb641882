"""DDL as the master answers it: what a plan or a new job says of rows and time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import from_wire
from leasehold.catalog.job import Phase, Status, job_from_wire
from leasehold.model.errors import FeatureNotSupported, NotNullViolation
from leasehold.model.features import Feature, FeatureGate
from leasehold.model.ports import Now
from leasehold.model.records.log import JobWrite
from leasehold.model.records.requests import ChangeRequest
from leasehold.replication.master.schema_changes import SchemaChanges, SchemaSettings
from tests.support.schema_change.made_statements import (
    catalog_with,
    column,
    create_index,
    create_table,
    job_plan,
    put_job,
)

ROWS = 50_000
SQL = "CREATE INDEX i ON t (a)"


def changes(catalog: Catalog) -> SchemaChanges:
    counted = {1: ROWS}
    return SchemaChanges(SchemaSettings(), "m1", catalog, 1, rows_about=counted.__getitem__)


def table() -> Catalog:
    return catalog_with(create_table("t", column("a")))


def test_explain_says_how_many_rows_and_writes_nothing() -> None:
    decision = changes(table()).decide(ChangeRequest(b"", sql=f"EXPLAIN {SQL}"), Now(1, 1))
    assert decision.writes == ()
    plan = decision.answer["plan"]
    assert [row["rows"] for row in plan] == [0, ROWS, 0]
    assert {row["seconds"] for row in plan} == {-1.0}, "no job has ended yet"


def test_explain_says_what_the_table_is_like_behind_a_change_that_its_readers_see() -> None:
    made = changes(table())
    shown = {}
    for sql in (SQL, "ALTER TABLE t DROP COLUMN a"):
        answer = made.decide(ChangeRequest(b"", sql=f"EXPLAIN {sql}"), Now(1, 1)).answer
        shown[sql] = [list(from_wire(each).by_name) for each in answer["tables"]]
    assert shown == {SQL: [], "ALTER TABLE t DROP COLUMN a": [["id"]]}


@pytest.mark.parametrize("action", ["ADD COLUMN c int DEFAULT 7", "ALTER a TYPE bigint"])
def test_no_row_is_touched_once_every_process_knows_how(action: str) -> None:
    made = changes(table())
    counted = []
    for knows in (True, False):
        made.features = FeatureGate(lambda number, now_ns, reads=knows: reads)  # type: ignore[misc]
        for sql in (f"ALTER TABLE t {action}", f"EXPLAIN ALTER TABLE t {action}"):
            decision = made.decide(ChangeRequest(b"r", sql=sql), Now(1, 1))
            bodies = [write.body for write in decision.writes if isinstance(write, JobWrite)]
            steps = [step for body in bodies for step in job_from_wire(body).steps]
            rows = [row["rows"] for row in decision.answer.get("plan", ())]
            counted.append(any(step.backfills for step in steps) or any(rows))
    assert counted == [False, False, True, True]


@pytest.mark.parametrize(
    "action", ["ADD c int GENERATED ALWAYS AS (a + 1) STORED", "ALTER a TYPE text"]
)
@pytest.mark.parametrize(
    ("known", "told", "computed"),
    [
        (Feature.COMPUTED_BACKFILLS, False, True),
        (Feature.COMPUTED_BACKFILLS - 1, False, False),
        (Feature.COMPUTED_BACKFILLS, True, False),
    ],
    ids=["all_know", "one_of_before", "told_by_images"],
)
def test_a_column_that_follows_others_is_computed_once_every_process_knows_how(
    action: str, known: int, told: bool, computed: bool
) -> None:
    """Beside one of an earlier release, and where an operator wants them, images tell; so they do
    in a transaction, of whose versions nobody knows the numbers yet."""
    settings = SchemaSettings(columns_by_images=told)
    made = SchemaChanges(settings, "m1", table(), 1, rows_about=lambda _: ROWS)
    made.features = FeatureGate(lambda number, now_ns: number <= known)
    for held in (False, True):
        request = ChangeRequest(b"r", sql=f"ALTER TABLE t {action}", held=held)
        (write,) = (w for w in made.decide(request, Now(1, 1)).writes if isinstance(w, JobWrite))
        steps = job_from_wire(write.body).steps
        edits = [edit.after for step in steps for edit in step.edits if edit.after is not None]
        assert any(step.backfills for step in steps)
        assert any(body.get("missing") for body in edits) == (computed and not held)


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE u (id int PRIMARY KEY, a real)",
        "ALTER TABLE t ADD COLUMN c float4",
        "ALTER TABLE t ALTER a TYPE real",
        "ALTER TABLE t ADD CHECK (a::real > 1)",
        "ALTER TABLE t ADD CHECK (CAST(a AS float4) > 1)",
        "ALTER TABLE t ADD CHECK (a > real '1')",
        "ALTER TABLE t ADD CHECK (time(3) '10:20' > '09:00' or a > 1)",
        "ALTER TABLE t ADD CHECK (cardinality('{1}'::int[]) > a)",
        "ALTER TABLE t ADD COLUMN c int[]",
        "CREATE INDEX i ON t ((a::float4))",
    ],
)
def test_a_type_waits_until_every_process_knows_it(sql: str) -> None:
    made = changes(table())
    assert made.decide(ChangeRequest(b"r", sql=sql), Now(1, 1)).writes
    made = changes(table())
    made.features = FeatureGate(lambda number, now_ns: number < Feature.COLUMN_TYPES)
    with pytest.raises(FeatureNotSupported, match="earlier release"):
        made.decide(ChangeRequest(b"r", sql=sql), Now(1, 1))
    plain = "ALTER TABLE t ADD COLUMN \"real\" text DEFAULT 'as real'"
    assert made.decide(ChangeRequest(b"r", sql=plain), Now(1, 1)).writes


def test_explain_says_how_long_by_the_jobs_that_have_ended() -> None:
    catalog = table()
    job = job_plan(create_index("earlier", "t", "a"), catalog).job
    marks = [(0, Phase.PUBLISHING, 0), (1, Phase.PUBLISHING, 200_000)]
    marks += [(1, Phase.BACKFILLING, 400_000), (1, Phase.VERIFYING, 2_400_000)]
    marks += [(2, Phase.PUBLISHING, 3_400_000), (2, Phase.DONE, 3_600_000)]
    written = tuple((step, phase.value, at_us) for step, phase, at_us in marks)
    done = replace(job, rows=10_000, marks=written, status=Status.SUCCEEDED, phase=Phase.DONE)
    put_job(catalog, done)
    decision = changes(catalog).decide(ChangeRequest(b"", sql=f"EXPLAIN {SQL}"), Now(1, 1))
    assert [row["seconds"] for row in decision.answer["plan"]] == [0.2, 0.2 + 10.0 + 5.0, 0.2]


def test_a_job_keeps_how_many_rows_there_were() -> None:
    decision = changes(table()).decide(ChangeRequest(b"r", sql=SQL), Now(1, 1))
    (write,) = decision.writes
    assert isinstance(write, JobWrite)
    assert job_from_wire(write.body).rows == ROWS


def test_a_job_of_an_earlier_program_is_read() -> None:
    body = job_plan(create_index("i", "t", "a"), table()).job.to_wire()
    del body["rows"]
    assert job_from_wire(body).rows == -1


@pytest.mark.parametrize(
    ("before", "empty", "taken"),
    [("", False, False), ("", True, True), ("TRUNCATE t; ", False, True)],
)
def test_a_column_that_rows_must_have_is_taken_where_there_are_none(
    before: str, empty: bool, taken: bool
) -> None:
    """A job that no row of before can outlast is not begun."""
    made = SchemaChanges(SchemaSettings(), "m1", table(), 1, is_empty=lambda _: empty)
    request = ChangeRequest(b"r", sql=f"{before}ALTER TABLE t ADD COLUMN x integer NOT NULL")
    if not taken:
        with pytest.raises(NotNullViolation, match='"x" of relation "t" contains null values'):
            made.decide(request, Now(1, 1))
        return
    written = [w for w in made.decide(request, Now(1, 1)).writes if isinstance(w, JobWrite)]
    assert [step.label for step in job_from_wire(written[0].body).steps] == [
        "delete-only",
        "public",
        "public",
    ]
