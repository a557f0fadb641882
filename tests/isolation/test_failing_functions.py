"""A function with a defect costs the one row or the one request, never a node.

Nodes compute what is kept of expressions while they apply the log. What fails there otherwise than
by a refusal would end each of them at one record, at every start.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from leasehold.catalog.job import Status
from leasehold.catalog.states import State
from leasehold.sql.functions.registry import function_for
from leasehold.values.types import Type
from tests.isolation.sql_stage import SqlStage

BAD = "bad"


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[SqlStage]:
    """One whose `upper` fails as no function should, on the row 1 that is there."""
    upper = function_for("upper", [Type("text")])
    right = upper.compute

    def failing(text: str) -> str:
        if text == BAD:
            raise ArithmeticError("a defect")
        return str(right(text))

    object.__setattr__(upper, "compute", failing)
    made = SqlStage(tmp_path)
    made.ask_sql("r1", "create table b (id bigint primary key, t text, a bigint)")
    made.ask_sql("r1", f"insert into b values (1, '{BAD}', 1), (2, 'good', 2)")
    yield made
    made.close()
    object.__setattr__(upper, "compute", right)


def job_of(stage: SqlStage, sql: str) -> int:
    outcome = stage.settle({"sql": sql})
    return int(outcome.answer["job"])


def until_ended(stage: SqlStage, job: int) -> Status:
    stage.until(lambda: stage.job(job).status.ended, "the job's end")
    return Status(stage.job(job).status)


def test_a_backfill_goes_on_and_the_job_names_the_row(stage: SqlStage) -> None:
    """Neither master ends, and the verification says which row has no entry and why."""
    job = job_of(stage, "create index i on b (upper(t))")
    assert until_ended(stage, job) is not Status.SUCCEEDED
    assert "ArithmeticError" in stage.job(job).error
    assert "upper(t)" in stage.job(job).error
    assert stage.settle(stage.update(1, 5)).lsn, "another table is written"


@pytest.mark.parametrize("kind", ["update", "delete"])
def test_a_row_without_an_entry_is_changed_while_the_index_is_delete_only(
    stage: SqlStage, kind: str
) -> None:
    """The record that has to take the old entry away is applied by every node, at each start."""
    stage.ask({"sql": "create index i on b (upper(t))"})
    stage.until(lambda: index_state(stage) is State.DELETE_ONLY, "delete-only")
    values = {"values": {"a": 7}} if kind == "update" else {}
    outcome = stage.settle({"table": "b", "op": kind, "key": {"id": 1}, **values})
    assert outcome.lsn
    for name in ("m1", "r1"):
        stage.node(name).crash()
        stage.node(name).start()
    assert stage.settle(stage.update(1, 5)).lsn


def test_no_row_comes_whose_entry_fails_from_delete_only_on(stage: SqlStage) -> None:
    """A defect in what nobody puts yet is refused, too, with index and expression named."""
    stage.ask({"sql": "create index i on b (upper(t))"})
    stage.until(lambda: index_state(stage) is State.DELETE_ONLY, "delete-only")
    insert = {"table": "b", "op": "insert", "key": {"id": 3}, "values": {"t": BAD}}
    outcome = stage.settle({**insert, "on_conflict": "fail"})
    assert outcome.code == "XX000"
    assert "index 'i'" in outcome.message
    assert "upper(t)" in outcome.message


@pytest.mark.parametrize(
    "sql",
    [
        "alter table b add constraint c check (upper(t) <> 'x')",
        "create index i on b (a) where upper(t) > 'a'",
        "alter table b add column g text generated always as (upper(t)) stored",
        "alter table b alter column t type varchar(100) using upper(t)",
    ],
)
def test_whatever_computes_it_the_job_ends_and_the_nodes_go_on(stage: SqlStage, sql: str) -> None:
    job = job_of(stage, sql)
    assert until_ended(stage, job) is not Status.SUCCEEDED
    assert "upper(t)" in stage.job(job).error
    refused = {"table": "b", "op": "insert", "key": {"id": 3}, "values": {"t": BAD}}
    assert stage.settle({**refused, "on_conflict": "fail"}).lsn, "nothing computes it any more"
    assert stage.settle(stage.update(1, 5)).lsn


def index_state(stage: SqlStage) -> State | None:
    if stage.master is None or stage.master.node is None:
        return None
    (table,) = (t for t in stage.master.node.catalog.tables() if t.name == "b")
    return table.indexes[0].state if table.indexes else None


def test_a_default_that_fails_for_some_rows_ends_the_job_and_no_master(stage: SqlStage) -> None:
    """Of sixteen digits of a UUID six are no number."""
    for key in range(10, 40):
        stage.ask_sql("r1", f"insert into b values ({key}, 'good', 2)")
    digit = "substr(gen_random_uuid()::text, {}, 1)::int"
    for place in range(1, 9):  # the first whose probe is a number
        outcome = stage.settle(
            {"sql": f"alter table b add column n int default {digit.format(place)}"}
        )
        if outcome.lsn:
            break
    assert outcome.lsn, outcome.message
    assert until_ended(stage, int(outcome.answer["job"])) is not Status.SUCCEEDED
    assert stage.settle(stage.update(1, 5)).lsn
