"""Several actions of one ALTER TABLE: a later one sees what an earlier one makes, or is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import CHECKS_MAX, INDEXES_MAX, Descriptor
from leasehold.catalog.elements import Column
from leasehold.catalog.job import Job, Status
from leasehold.model.errors import Refused
from leasehold.sql.syntax.statements import (
    Action,
    AlterType,
    DropColumn,
    DropConstraint,
    DropNotNull,
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
    create_table,
    job_plan,
    run_to_end,
)

TEXT = Type("text")


def beginning() -> Catalog:
    catalog = catalog_with(
        create_table(
            "t",
            column("a", default=1),
            column("b", nullable=False),
            uniques=(add_unique("b", name="u").unique,),
        )
    )
    run_to_end(alter("t", add_check("b > 0", "late", not_valid=True)), catalog)
    return catalog


def first(*actions: Action) -> Job:
    return job_plan(alter("t", *actions), beginning()).job


def altered(*actions: Action) -> Descriptor:
    catalog = beginning()
    assert run_to_end(alter("t", *actions), catalog).status is Status.SUCCEEDED
    return catalog.newest(1)


ENDS: list[tuple[tuple[Action, ...], Callable[[Descriptor], Any], Any]] = [
    ((SetDefault("a", "5"), SetDefault("a", None)), lambda t: t.column("a").default, None),
    ((SetDefault("a", None), SetDefault("a", "1")), lambda t: t.column("a").default, 1),
    ((SetNotNull("a"), DropNotNull("a")), lambda t: t.column("a").nullable, True),
    ((DropNotNull("b"), SetNotNull("b")), lambda t: t.column("b").nullable, False),
    ((add_column("c"), SetDefault("c", "4")), lambda t: t.column("c").default, 4),
    (
        (SetDefault("a", None), AlterType("a", TEXT), SetDefault("a", "'x'")),
        lambda t: (t.column("a").type, t.column("a").default),
        (TEXT, "x"),
    ),
    (
        (SetNotNull("a"), SetDefault("a", "5"), AlterType("a", Type("bigint"))),
        lambda t: (t.column("a").type, t.column("a").nullable, t.column("a").default),
        (Type("bigint"), False, 5),
    ),
    (
        (add_column("a", "text"), DropColumn("a")),
        lambda t: (t.column("a").type, t.column("a").default, len(t.columns)),
        (TEXT, None, 3),
    ),
]


def plain(made: Column) -> tuple[bool, bool]:
    return made.not_null_enforced, made.filled


@pytest.mark.parametrize(("actions", "shown", "expected"), ENDS)
def test_the_last_word_counts(
    actions: tuple[Action, ...], shown: Callable[[Descriptor], Any], expected: Any
) -> None:
    table = altered(*actions)
    assert shown(table) == expected
    assert {plain(c) for c in table.columns} == {(False, False)}


REFUSED: list[tuple[tuple[Action, ...], str]] = [
    ((add_column("c"), add_column("c")), "42701"),
    ((DropColumn("a"), DropColumn("a")), "42703"),
    ((DropColumn("a"), add_column("a", "text"), add_unique("a")), "0A000"),
    ((DropColumn("a"), add_column("a", "text"), SetNotNull("a")), "0A000"),
    ((DropColumn("a"), SetDefault("a", "1")), "42703"),
    ((DropColumn("a"), add_check("a > 0")), "42703"),
    ((add_unique("a"), DropColumn("a")), "2BP01"),
    ((add_check("a > 0"), DropColumn("a")), "2BP01"),
    ((add_unique("a"), AlterType("a", TEXT)), "0A000"),
    ((AlterType("a", TEXT), add_unique("a")), "0A000"),
    ((AlterType("a", TEXT), add_check("a <> ''")), "0A000"),
    ((AlterType("a", TEXT), SetNotNull("a")), "0A000"),
    ((DropConstraint("late"), ValidateConstraint("late")), "42704"),
    ((DropConstraint("u"), DropConstraint("u")), "42704"),
    ((DropColumn("b"), DropConstraint("late")), "42704"),
    ((DropColumn("b"), ValidateConstraint("late")), "42704"),
    ((add_check("a > 0", "same"), add_unique("a", name="same")), "42710"),
]


@pytest.mark.parametrize(("actions", "sqlstate"), REFUSED)
def test_refused_together(actions: tuple[Action, ...], sqlstate: str) -> None:
    for action in actions[:1]:
        first(action)
    with pytest.raises(Refused) as caught:
        first(*actions)
    assert caught.value.sqlstate == sqlstate, caught.value


def test_indexes_and_checks_of_one_statement_count_together() -> None:
    room = INDEXES_MAX - 1
    first(*[add_unique("b") for _ in range(room)])
    with pytest.raises(Refused, match="indexes, the most allowed"):
        first(*[add_unique("b") for _ in range(room + 1)])
    room = CHECKS_MAX - 1
    first(*[add_check("a > 0") for _ in range(room)])
    with pytest.raises(Refused, match="checks, the most allowed"):
        first(*[add_check("a > 0") for _ in range(room + 1)])
