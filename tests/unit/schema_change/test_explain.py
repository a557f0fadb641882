"""EXPLAIN: each step in plain words, what it waits for, and where there is no way back."""

from __future__ import annotations

import json

import pytest

from leasehold.catalog.catalog import Catalog
from leasehold.schema_change.plan.explain import ExplainRow, explain
from leasehold.schema_change.plan.plan import plan
from leasehold.schema_change.plan.results import NothingToDo
from leasehold.sql.syntax.statements import (
    AddLock,
    AlterType,
    Change,
    DropColumn,
    DropNotNull,
    DropTable,
    RenameColumn,
    RenameTable,
    SetDefault,
    SetNotNull,
    ValidateConstraint,
)
from leasehold.values.types import Type
from tests.support.schema_change.made_statements import (
    add_check,
    add_column,
    add_unique,
    alter,
    catalog_with,
    column,
    create_index,
    create_table,
    run_to_end,
)


def beginning() -> Catalog:
    catalog = catalog_with(create_table("t", column("a"), column("b", nullable=False)))
    run_to_end(alter("t", add_check("b > 0", "late", not_valid=True)), catalog)
    return catalog


def explained(statement: Change, rows: int = -1) -> tuple[ExplainRow, ...]:
    return explain(plan(statement, beginning()), rows)


WORDS: list[tuple[Change, list[str]]] = [
    (
        create_index("i", "t", "a"),
        ["index i → delete-only", "index i → write-only", "index i → public"],
    ),
    (
        alter("t", add_unique("a")),
        [
            "index t_a_key → delete-only",
            "index t_a_key → write-only",
            "index t_a_key → UNIQUE enforced",
            "index t_a_key → public",
        ],
    ),
    (
        alter("t", add_column("c", default=1)),
        ["column c → delete-only, every row has its default", "column c → public"],
    ),
    (
        alter("t", add_column("c", "text", default="long" * 99)),
        [
            "column c → delete-only",
            "column c → write-only",
            "column c → every row has its default",
            "column c → public",
        ],
    ),
    (
        alter("t", SetNotNull("a")),
        ["column a → NOT NULL enforced", "column a → NOT NULL"],
    ),
    (alter("t", DropNotNull("b")), ["column b → nullable", "column b → NOT NULL dropped"]),
    (alter("t", SetDefault("a", "1")), ["column a → default set"]),
    (alter("t", ValidateConstraint("late")), ["nothing: validation only", "check late → public"]),
    (
        alter("t", RenameTable("u")),
        ["table u → named u, t still resolves", "table u → t resolves no more"],
    ),
    (
        alter("t", RenameColumn("b", "z")),
        [
            "column z → named z, b still resolves; check late → reworded",
            "column z → b resolves no more",
        ],
    ),
    (DropTable("t"), ["table t → delete-only", "table t → absent"]),
    (
        alter("t", AddLock("l", ("a",))),
        [
            "column a → under both locks; lock l → public",
            (
                "table t → new locks take over what the old ones know;"
                " column a → under its new lock alone"
            ),
        ],
    ),
    (
        alter("t", AlterType("a", Type("text"))),
        [
            "column a → delete-only",
            "column a → write-only",
            "column a → a value that can't be converted is refused",
            "column a → write-only; column a → public",
            "column a → delete-only",
            "column a → absent",
        ],
    ),
]


@pytest.mark.parametrize(("statement", "words"), WORDS)
def test_steps_in_words(statement: Change, words: list[str]) -> None:
    rows = explained(statement)
    assert [row.changes for row in rows] == words
    assert [row.step for row in rows] == list(range(1, len(words) + 1))
    assert [row.version for row in rows] == list(range(3, 3 + len(words)))


def test_each_step_says_whom_it_waits_for() -> None:
    first, backfilling, enforced, last = explained(alter("t", add_unique("a")))
    leases = "leases below version 2 to end; leases below version 3 to end"
    assert first.waits_for == leases
    assert backfilling.waits_for.endswith("version 4 to end; the backfill of the rows there are")
    assert enforced.waits_for.endswith("version 5 to end; every coherent node to verify")
    assert last.waits_for == "leases below version 5 to end; leases below version 6 to end"


def test_the_second_version_has_no_version_before_the_first_to_wait_for() -> None:
    rows = explain(
        plan(alter("t", SetDefault("a", "1")), catalog_with(create_table("t", column("a"))))
    )
    assert [row.waits_for for row in rows] == ["leases below version 2 to end"]


def test_rows_are_those_of_every_fill_or_of_a_verification_alone() -> None:
    both = alter("t", add_column("c", "text", default="long" * 99), add_unique("c"))
    gone_over = [row.rows for row in explained(both, 1_000) if row.rows]
    assert gone_over == [2_000, 1_000]
    assert [row.rows for row in explained(both) if row.rows] == [-1, -1], "nobody knows how many"


@pytest.mark.parametrize(
    ("statement", "point"),
    [
        (create_index("i", "t", "a"), 3),
        (alter("t", DropColumn("a")), 1),
        (alter("t", DropNotNull("b")), 2),
        (DropTable("t"), 1),
    ],
)
def test_point_of_no_return_is_one_step(statement: Change, point: int) -> None:
    assert [row.step for row in explained(statement) if row.point_of_no_return] == [point]


def test_a_new_table_and_nothing_to_do_are_one_row() -> None:
    (created,) = explain(plan(create_table("u"), Catalog()))
    assert (created.changes, created.version) == ("table u → public", 1)
    (nothing,) = explain(NothingToDo("it is there"))
    assert (nothing.step, nothing.changes, nothing.waits_for) == (0, "it is there", "nothing")


def test_rows_can_be_sent() -> None:
    for row in explained(create_index("i", "t", "a")):
        assert ExplainRow(**json.loads(json.dumps(row.to_wire()))) == row
