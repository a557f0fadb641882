"""⚠ A column that is filled: its lacking pair is a NULL that somebody has set, and stays one.

While a nullable column with a default becomes public, or goes, two versions live at each step. What
a writer says who sees the column must not be undone by one who does not.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.catalog.job import Phase
from leasehold.catalog.states import State
from leasehold.model.records.log import ChangeKind
from leasehold.rows.key_values import compose
from leasehold.sql.syntax.statements import (
    Change,
    DropColumn,
)
from leasehold.values.types import Type
from tests.support.schema_change.made_statements import (
    add_column,
    advance,
    alter,
    catalog_with,
    column,
    create_table,
    job_plan,
    put_job,
    run_to_end,
)
from tests.support.schema_change.next_descriptor import next_descriptor

INSERT, UPDATE, BACKFILL = ChangeKind.INSERT, ChangeKind.UPDATE, ChangeKind.BACKFILL
ID, A, NEW = 1, 2, 3


def table(state: State, *, filled: bool = False, nullable: bool = True) -> Descriptor:
    new = Column(NEW, "n", Type("integer"), nullable, 7, state, filled=filled)
    key = Column(ID, "id", Type("bigint"), nullable=False)
    return Descriptor(1, "t", 1, (key, Column(A, "a", Type("integer")), new), (ID,))


def image_of(*pairs: int | None) -> dict[int, Any]:
    return {e: v for e, v in zip((ID, A, NEW), pairs, strict=False) if v is not None}


@pytest.mark.parametrize(
    ("descriptor", "after"),
    [
        (table(State.DELETE_ONLY), None),
        (table(State.WRITE_ONLY), 7),
        (table(State.WRITE_ONLY, filled=True), None),
        (table(State.PUBLIC), None),
        (table(State.WRITE_ONLY, nullable=False), 7),
        (table(State.PUBLIC, nullable=False), 7),
    ],
)
def test_update_of_another_column_gives_the_default_while_it_is_being_filled_alone(
    descriptor: Descriptor, after: int | None
) -> None:
    assert compose(descriptor, UPDATE, image_of(1, 5), {A: 6}) == image_of(1, 6, after)


@pytest.mark.parametrize("filled", [False, True])
@pytest.mark.parametrize("state", [State.WRITE_ONLY, State.PUBLIC])
def test_a_new_row_has_the_default_in_every_version_that_writes_it(
    state: State, filled: bool
) -> None:
    version = table(state, filled=filled)
    assert compose(version, INSERT, None, {ID: 1}) == image_of(1, None, 7)


def test_an_explicit_null_of_a_public_version_is_kept() -> None:
    public = table(State.PUBLIC)
    assert compose(public, INSERT, None, {ID: 1, NEW: None}) == image_of(1)
    assert compose(public, UPDATE, image_of(1, 5, 7), {NEW: None}) == image_of(1, 5)


@pytest.mark.parametrize("filled", [False, True])
def test_a_value_that_is_there_is_never_touched(filled: bool) -> None:
    version = table(State.WRITE_ONLY, filled=filled)
    assert compose(version, UPDATE, image_of(1, 5, 50), {A: 6}) == image_of(1, 6, 50)
    assert compose(version, BACKFILL, image_of(1, 5, 50), {NEW: 7}) == image_of(1, 5, 50)


ADD = alter("t", add_column("n", default=7))
DROP = alter("t", DropColumn("n"))


def versions_of(statement: Change, *before: Change, in_place: bool = False) -> list[Descriptor]:
    catalog = catalog_with(create_table("t", column("a")))
    for earlier in before:
        run_to_end(earlier, catalog)
    job = put_job(catalog, job_plan(statement, catalog, in_place=in_place).job)
    made = [catalog.newest(1)]
    while not job.status.ended:
        if job.phase is Phase.PUBLISHING:
            made.append(next_descriptor(job, catalog))
        job = advance(catalog, job)
    return made


@pytest.mark.parametrize(
    "versions", [versions_of(ADD), versions_of(ADD, in_place=True), versions_of(DROP, ADD)]
)
def test_whoever_can_say_null_shares_no_time_with_one_who_would_undo_it(
    versions: list[Descriptor],
) -> None:
    """Of every two neighbours on the way: one sets NULL, the other updates the row."""
    named = 0
    for pair in pairwise(versions):
        for says, other in (pair, pair[::-1]):
            if "n" in says.by_name:
                named += 1
                image = compose(says, UPDATE, image_of(1, 5, 7), {NEW: None})
                assert compose(other, UPDATE, image, {A: 6}) == image_of(1, 6)
    assert named == 1, "the column is named at one end of the way alone"


def test_without_the_step_in_between_the_older_writer_would_undo_it() -> None:
    """The harm: write-only that is not filled, beside public."""
    before_public = versions_of(ADD)[-2]
    assert before_public.by_id[NEW].filled
    unfilled = replace(
        before_public,
        columns=tuple(replace(c, filled=False) for c in before_public.columns),
    )
    assert compose(unfilled, UPDATE, image_of(1, 5), {A: 6}) == image_of(1, 6, 7)
