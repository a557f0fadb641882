"""Partial, expression and covering indexes in plans: refused, kept, dropped, reworded."""

from __future__ import annotations

from dataclasses import replace

import pytest

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.element_forms import INDEX_FORM
from leasehold.catalog.elements import EXPRESSION, Index
from leasehold.catalog.job import Status
from leasehold.model.errors import Refused
from leasehold.rows.index_entries import entry_of, exact_entry
from leasehold.schema_change.plan.explain import describe_changes
from leasehold.schema_change.plan.plan import plan
from leasehold.sql.ddl.schema_statements import parse_ddl
from leasehold.sql.expressions.key_types import key_types
from leasehold.sql.syntax.statements import (
    Change,
    CreateTable,
    Explain,
)
from leasehold.values.types import Type
from tests.support.schema_change.made_statements import catalog_with, run_to_end

ID, A, B, C, RAW = 1, 2, 3, 4, 5
TABLE = "create table t (id bigint primary key, a int, b text, c int default 1, raw bytea)"


def parsed(sql: str) -> Change:
    statement = parse_ddl(sql)
    assert not isinstance(statement, Explain)
    return statement


def planned(catalog: Catalog, *statements: str) -> Descriptor:
    for sql in statements:
        assert run_to_end(parsed(sql), catalog).status is Status.SUCCEEDED
    return catalog.newest(1)


def beginning(table: str = TABLE) -> Catalog:
    statement = parsed(table)
    assert isinstance(statement, CreateTable)
    return catalog_with(statement)


def made(sql: str) -> Index:
    (index,) = planned(beginning(), sql).indexes
    return index


def refusal(sql: str, *given: str) -> Refused:
    catalog = beginning()
    planned(catalog, *given)
    with pytest.raises(Refused) as caught:
        plan(parsed(sql), catalog)
    return caught.value


# ------------------------------------------------------------------ what is kept


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        ("(lower(b))", Index(6, "i", (EXPRESSION,), expressions=("lower(b)",), mentioned=(B,))),
        ("(a) where c > 1", Index(6, "i", (A,), predicate="c > 1", mentioned=(C,))),
        ("(a) include (b, raw)", Index(6, "i", (A,), included=(B, RAW))),
        (
            "((a + c), id, lower(t.b)) include (raw) where a > 1 and b is not null",
            Index(
                6,
                "i",
                (EXPRESSION, ID, EXPRESSION),
                expressions=("(a + c)", "lower(b)"),
                predicate="a > 1 and b is not null",
                included=(RAW,),
                mentioned=(A, B, C),
            ),
        ),
        ("('x')", None),
        ("(('x'))", Index(6, "i", (EXPRESSION,), expressions=("('x')",))),
        ("(a) where true", Index(6, "i", (A,), predicate="true")),
        ("((a))", Index(6, "i", (A,))),
    ],
)
def test_what_an_index_is(rest: str, expected: Index | None) -> None:
    if expected is None:
        with pytest.raises(Refused):
            parse_ddl(f"create index i on t {rest}")
        return
    index = made(f"create index i on t {rest}")
    assert index == expected
    assert INDEX_FORM.from_wire(INDEX_FORM.to_wire(index)) == index


def test_an_index_of_an_earlier_log_is_one_of_columns() -> None:
    index = Index(6, "i", (A,), unique=True)
    added = ("expressions", "predicate", "included", "mentioned")
    old = {name: value for name, value in INDEX_FORM.to_wire(index).items() if name not in added}
    assert INDEX_FORM.from_wire(old) == index
    assert not index.computed


def test_what_keys_are_compared_as() -> None:
    index = made("create index i on t ((a + 1), lower(b), a, (a > c), cast(a as varchar(3)))")
    kinds = ("integer", "text", "integer", "boolean")
    catalog = beginning()
    assert key_types(catalog.newest(1), index) == (*map(Type, kinds), Type("varchar", 3))


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("sql", "sqlstate", "position"),
    [
        ("create index i on t (nothing)", "42703", 22),
        ("create index i on t (a, nothing)", "42703", 25),
        ("create index i on t (lower(nothing))", "42703", 22),
        ("create index i on t (a, (nothing + 1))", "42703", 26),
        ("create index i on t (a) include (b, nothing)", "42703", 37),
        ("create index i on t (a) where nothing > 1", "42703", 31),
        ("create index i on t (a) where a + 1", "42804", 31),
        ("create index i on t (a) where b", "42804", 31),
        ("create index i on t ((a + b))", "42883", 23),
        ("create index i on t (lower(a))", "42883", 22),
        ("create index i on t ((b::jsonb))", "0A000", 23),
        ("create index i on t (('{}'::jsonb))", "0A000", 23),
        ("create index i on t (md6(b))", "42883", 22),
        ("create index i on t ((select 1))", "42601", 23),
        ("create index i on t (a) where exists (select 1)", "0A000", 31),
    ],
)
def test_refused_where_it_stands(sql: str, sqlstate: str, position: int) -> None:
    error = refusal(sql)
    assert (error.sqlstate, error.detail["position"]) == (sqlstate, position), error


def test_limits() -> None:
    long = " or ".join(f"b = '{'x' * 300}'" for _ in range(12))
    error = refusal(f"create index i on t ((lower('{'y' * 600}'))) where {long}")
    assert error.sqlstate == "22003"
    assert "at most 4096" in error.message
    columns = ", ".join(f"c{n} int" for n in range(101))
    catalog = beginning(f"create table t (id int primary key, {columns})")
    every = ", ".join(f"c{n}" for n in range(101))
    with pytest.raises(Refused, match="name 101 columns"):
        plan(parsed(f"create index i on t (coalesce({every}))"), catalog)


# ------------------------------------------------------------------ columns that it rests on

OVER_A = (
    "create index i on t ((a + 1))",
    "create index i on t (b) where a > 1",
    "create index i on t (b) include (a)",
    "create unique index i on t (lower(b), a) where c > 1",
)
COMPUTED_FROM_A = OVER_A[:2]


@pytest.mark.parametrize("sql", OVER_A)
def test_it_goes_with_a_column_that_it_rests_on(sql: str) -> None:
    catalog = beginning()
    planned(catalog, sql)
    assert planned(catalog, "alter table t drop column a").indexes == ()


@pytest.mark.parametrize("sql", OVER_A)
def test_it_is_made_anew_over_a_column_of_another_type(sql: str) -> None:
    catalog = beginning()
    (before,) = planned(catalog, sql).indexes
    after = planned(catalog, "alter table t alter column a type double precision")
    (index,) = after.indexes
    assert index.over & {after.column("a").element_id}
    texts = (before.name, before.expressions, before.predicate, before.unique)
    assert (index.name, index.expressions, index.predicate, index.unique) == texts


def test_it_can_be_widened_where_an_entry_has_its_value_alone() -> None:
    for sql in OVER_A:
        catalog = beginning()
        there = planned(catalog, sql)
        wide = planned(catalog, "alter table t alter column a type bigint")
        assert wide.column("a").type.name == "bigint"
        stays = wide.indexes == there.indexes
        assert stays is (sql not in COMPUTED_FROM_A), "else it is made anew with the column"


def test_the_column_is_there_as_long_as_entries_are_computed_from_it() -> None:
    """Each version on the way of the drop, and back, can compute what it maintains."""
    for column in ("a", "c"):
        catalog = beginning()
        planned(catalog, "create index i on t ((a + c)) where a > c")
        planned(catalog, f"alter table t drop column {column}")
        maintained = 0
        for version in catalog.versions(1):
            for index in version.indexes:
                assert exact_entry(version, index)({A: 5, C: 2}) == (7,)
                assert entry_of(version, index)({A: 1, C: 2}) is None
                maintained += 1
        assert maintained > 4


def test_a_new_name_of_a_column_is_in_its_texts() -> None:
    catalog = beginning()
    planned(catalog, "create index i on t (lower(b), (a + c)) include (raw) where a > 1 or b = 'a'")
    before = catalog.newest(1)
    table = planned(catalog, 'alter table t rename column a to "A"')
    (index,) = table.indexes
    assert index == replace(
        before.indexes[0],
        expressions=("lower(b)", '("A" + c)'),
        predicate="\"A\" > 1 or b = 'a'",
    )
    for version in catalog.versions(1):
        for each in version.indexes:
            assert exact_entry(version, each)({A: 2, B: "X", C: 3, RAW: b""}) == ("x", 5, b"")
    job = max(catalog.jobs.values(), key=lambda job: job.job_id)
    assert "index i → reworded" in describe_changes(job.steps[0])


def test_a_new_name_of_a_column_that_no_text_names_changes_nothing() -> None:
    catalog = beginning()
    planned(catalog, "create index i on t (a) include (raw) where c > 1")
    before = catalog.newest(1).indexes
    assert planned(catalog, "alter table t rename column raw to cooked").indexes == before
    assert planned(catalog, "alter table t rename column a to d").indexes == before


# ------------------------------------------------------------------ what it is not


@pytest.mark.parametrize(
    "sql",
    ["create unique index i on t (a) where c > 1", "create unique index i on t ((a + 0))"],
)
def test_no_foreign_key_refers_to_rows_by_it(sql: str) -> None:
    error = refusal("alter table t add foreign key (c) references t (a)", sql)
    assert error.sqlstate == "42830"


def test_a_foreign_key_finds_its_rows_by_no_partial_index() -> None:
    catalog = beginning()
    planned(catalog, "create index i on t (c) where a > 1")
    table = planned(catalog, "alter table t add foreign key (c) references t")
    assert len(table.indexes) == 2
    assert table.foreign_keys[0].index == table.indexes[1].element_id


def test_a_foreign_key_may_refer_by_a_covering_unique_index() -> None:
    catalog = beginning()
    planned(catalog, "create unique index i on t (a) include (b)")
    table = planned(catalog, "alter table t add foreign key (c) references t (a)")
    assert table.foreign_keys[0].parent_index == table.indexes[0].element_id
