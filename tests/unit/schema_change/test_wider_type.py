"""Goal: a column is widened where it stands under what says the same of its values in both types,
and under nothing else. Method: the plan of ALTER TYPE on tables with constraints over the column,
and the meaning of conditions under two descriptors.
"""

from __future__ import annotations

import pytest

from leasehold.model.errors import FeatureNotSupported
from leasehold.schema_change.plan.results import JobPlan
from leasehold.sql.expressions.expression import means_the_same
from tests.schema_change.changes import catalog_of, planned, standing

COLUMNS = {
    "a": ("smallint", "bigint"),
    "b": ("integer", "bigint"),
    "s": ("varchar(3)", "text"),
    "n": ("numeric(4,1)", "numeric(9,1)"),
    "d": ("double precision", "double precision"),
}
SAME = (
    "a > 5",
    "a between -1 and 70000 and b is not null",
    "a in (1, 2, 70000) or not a = 3",
    "a <> b",
    "a is distinct from b",
    "a = '7'",
    "a > 1.5::numeric",
    "a < d",
    "coalesce(a, b, 0) > 0",
    "greatest(a, b) < 10",
    "nullif(a, 0) > 0",
    "case when a > 0 then b else a end > 0",
    "s = 'x' or s > 'abcd'",
    "length(s) > 1 and upper(s) = s and s like 'a%' and s ~ '^a'",
    "s || 'y' <> 'xy'",
    "n > 5 and n < 7.5::numeric",
    "n * 2 + 1 > 5",
)
OTHER = (
    "a + 1 > 5",
    "-a < 5",
    "abs(b) > 5",
    "a * b > 5",
    "b::integer > 5",
    "coalesce(a, b) + 1 > 0",
    "s::varchar(2) = 'x' or a + b > 0",
)


def table(kind: int, *constraints: str) -> tuple[str, ...]:
    columns = ", ".join(f"{name} {types[kind]}" for name, types in COLUMNS.items())
    return (
        f"CREATE TABLE t (id integer PRIMARY KEY, {columns}, UNIQUE (b))",
        *(f"ALTER TABLE t ADD CONSTRAINT k{n} {c}" for n, c in enumerate(constraints)),
    )


def refusal(sql: str, *constraints: str) -> str:
    with pytest.raises(FeatureNotSupported) as refused:
        planned(sql, catalog_of(standing(*table(0, *constraints))))
    return refused.value.message


@pytest.mark.parametrize("condition", [*SAME, *OTHER])
def test_a_condition_means_the_same_where_the_same_functions_compute_it(condition: str) -> None:
    narrow, wide = standing(*table(0)), standing(*table(1))
    assert means_the_same(condition, narrow, narrow)
    assert means_the_same(condition, narrow, wide) is (condition in SAME)


@pytest.mark.parametrize(
    ("column", "constraint"),
    [
        ("a", "CHECK (a > 5 AND a < b)"),
        ("b", "CHECK (b IN (1, 2))"),
        ("s", "CHECK (length(s) > 1)"),
        ("a", "FOREIGN KEY (a) REFERENCES t (b) ON UPDATE CASCADE"),
        ("b", "FOREIGN KEY (a) REFERENCES t (b) ON UPDATE CASCADE"),
    ],
)
def test_it_is_widened_where_it_stands(column: str, constraint: str) -> None:
    wide = COLUMNS[column][1]
    sql = f"ALTER TABLE t ALTER {column} TYPE {wide}"
    made = planned(sql, catalog_of(standing(*table(0, constraint))))
    assert isinstance(made, JobPlan)
    assert not any(step.backfills or step.validates or step.verifies for step in made.job.steps)
    assert len(made.job.steps) == 2


def test_what_would_compute_something_else_is_made_anew_with_the_column() -> None:
    given = table(0, "CHECK (a > 5)", "CHECK (a + 1 > 5)")
    made = planned("ALTER TABLE t ALTER a TYPE bigint", catalog_of(standing(*given)))
    assert isinstance(made, JobPlan)
    assert any(step.backfills for step in made.job.steps)
    new = [path.element.name for path in made.paths if path.new]
    assert new == ["a", "k0", "k1"]


def test_what_would_compute_something_else_is_named() -> None:
    """A foreign key keeps the column where it stands."""
    given = ("CHECK (a > 5)", "CHECK (a + 1 > 5)", "FOREIGN KEY (a) REFERENCES t (b)")
    said = refusal("ALTER TABLE t ALTER a TYPE bigint", *given)
    assert said == (
        "the type of column 'a' can't be changed while check k1 (which does not compute with bigint"
        " what it does with smallint) rests on it: drop that first, add it again after"
    )


def test_all_columns_that_a_statement_widens_count() -> None:
    """Each alone changes nothing: the sum is out of the smaller type's range as before."""
    check = "CHECK (a + b < b)"  # of integers whether a is a smallint or an integer
    planned("ALTER TABLE t ALTER a TYPE integer", catalog_of(standing(*table(0))))
    both = "ALTER TABLE t ALTER a TYPE integer, ALTER b TYPE bigint"
    assert "check k0" in refusal(both, check)


def test_a_generated_column_is_in_the_way_as_in_postgresql() -> None:
    given = "CREATE TABLE t (id int PRIMARY KEY, a int, g int GENERATED ALWAYS AS (a) STORED)"
    with pytest.raises(FeatureNotSupported, match="generated column g rests on it"):
        planned("ALTER TABLE t ALTER a TYPE bigint", catalog_of(standing(given)))
