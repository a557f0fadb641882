"""FOREIGN KEY as a plan: what it needs, what needs it, and the steps it takes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.definitions import foreign_key_text
from leasehold.catalog.descriptor import from_wire
from leasehold.catalog.element_forms import FOREIGN_KEY_FORM
from leasehold.catalog.elements import OnChange
from leasehold.catalog.job import Status
from leasehold.catalog.states import State
from leasehold.model.errors import (
    DependentObjects,
    FeatureNotSupported,
    InvalidColumnReference,
    Refused,
    TableBusy,
)
from leasehold.model.records.log import DescriptorWrite, JobWrite, MinVersion
from leasehold.schema_change.plan.foreign_keys import has_numeric_reference
from leasehold.schema_change.plan.plan import plan
from leasehold.schema_change.plan.results import CreateTablePlan, JobPlan, NothingToDo, Plan
from leasehold.sql.ddl.schema_statements import parse_ddl
from leasehold.sql.syntax.statements import (
    Explain,
)
from tests.support.schema_change.next_descriptor import next_descriptor

TABLES = (
    "CREATE TABLE p (id int PRIMARY KEY, u int UNIQUE, v int, w text)",
    """CREATE TABLE c (id int PRIMARY KEY, a int, b bigint, t text, n numeric(9,2),
       h int, g int GENERATED ALWAYS AS (h + 1) STORED)""",
)


def planned(catalog: Catalog, sql: str) -> Plan:
    statement = parse_ddl(sql)
    assert not isinstance(statement, Explain)
    return plan(statement, catalog)


def run(catalog: Catalog, sql: str) -> Any:
    """Plan and take every step, as if rows had been found to agree."""
    made = planned(catalog, sql)
    if isinstance(made, CreateTablePlan):
        table = made.descriptor
        catalog.apply(DescriptorWrite(table.table_id, 1, table.to_wire()), 1, 1)
        return table
    assert isinstance(made, JobPlan), made
    job = made.job
    for number in range(len(job.steps)):
        table = next_descriptor(replace(job, step=number), catalog)
        catalog.apply(DescriptorWrite(table.table_id, table.version, table.to_wire()), 1, 1)
        catalog.apply(MinVersion(table.table_id, table.version), 1, 1)
    return job


@pytest.fixture
def catalog() -> Catalog:
    made = Catalog()
    for sql in TABLES:
        run(made, sql)
    return made


def test_a_new_table_may_refer_to_what_it_makes_unique_itself(catalog: Catalog) -> None:
    text = "REFERENCES tree (code)"
    table = run(
        catalog, f"CREATE TABLE tree (id int PRIMARY KEY, up text {text}, code text UNIQUE)"
    )
    (key,) = table.foreign_keys
    (unique,) = (index for index in table.indexes if index.constraint)
    assert (key.parent, key.parent_columns) == (table.table_id, (3,))
    assert key.parent_index == unique.element_id
    with pytest.raises(Refused, match="nor UNIQUE") as refusal:
        planned(catalog, "CREATE TABLE u (id int PRIMARY KEY, up int REFERENCES u (n), n int)")
    assert refusal.value.sqlstate == "42830"


def test_it_waits_for_its_index_and_is_verified_before_it_is_public(catalog: Catalog) -> None:
    job = run(catalog, "ALTER TABLE c ADD FOREIGN KEY (a) REFERENCES p")
    table = catalog.resolve("c")
    (key,), (index,) = table.foreign_keys, table.indexes
    assert (key.name, key.parent, key.parent_columns, key.parent_index) == ("c_a_fkey", 1, (1,), 0)
    assert (index.name, key.index) == ("c_a_fkey_index", index.element_id)
    states = [
        [(edit.kind.value, edit.state) for edit in step.edits if edit.before != edit.after]
        for step in job.steps
    ]
    assert states == [
        [("index", "delete-only")],
        [("index", "write-only")],
        [("foreign key", "write-only")],
        [("index", "public"), ("foreign key", "public")],
    ]
    assert [step.backfills for step in job.steps] == [(), (index.element_id,), (), ()]
    assert job.steps[2].verifies == (key.element_id,)
    assert job.point == 3
    assert job.needs == (1,)


def test_it_waits_for_the_index_that_its_statement_makes_of_what_it_refers_to(
    catalog: Catalog,
) -> None:
    """Wherever that is said: rows are looked up by it, so it is filled and unique before."""
    key_said, unique_said = "ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES c (h)", "ADD UNIQUE (h)"
    steps = [
        plan_steps(catalog, f"ALTER TABLE c {', '.join(said)}")
        for said in ((key_said, unique_said), (unique_said, key_said))
    ]
    assert steps[0] == steps[1]
    filled = next(n for n, step in enumerate(steps[0]) if ("index", "write-only") in step)
    enforced = next(n for n, step in enumerate(steps[0]) if ("foreign key", "write-only") in step)
    assert filled + 2 == enforced, "after the step that proves it unique"
    run(catalog, f"ALTER TABLE c {key_said}, {unique_said}")
    table = catalog.resolve("c")
    (key,) = table.foreign_keys
    (unique,) = (index for index in table.indexes if index.constraint)
    assert key.parent_index == unique.element_id


def test_one_that_goes_is_nothing_to_refer_to(catalog: Catalog) -> None:
    run(catalog, "ALTER TABLE c ADD CONSTRAINT k UNIQUE (h)")
    with pytest.raises(Refused, match="nor UNIQUE"):
        planned(catalog, "ALTER TABLE c ADD FOREIGN KEY (a) REFERENCES c (h), DROP CONSTRAINT k")


@pytest.mark.parametrize("said", ["FOREIGN KEY (a) REFERENCES p", "CHECK (a > 0)"])
def test_not_valid_and_validated_by_one_statement_is_valid(catalog: Catalog, said: str) -> None:
    begun = f"ALTER TABLE c ADD CONSTRAINT k {said}"
    assert plan_steps(catalog, f"{begun} NOT VALID, VALIDATE CONSTRAINT k") == plan_steps(
        catalog, begun
    )


def plan_steps(catalog: Catalog, sql: str) -> list[list[tuple[str, str]]]:
    """Return the kinds and states of what each step changes, sorted."""
    made = planned(catalog, sql)
    assert isinstance(made, JobPlan), made
    return [
        sorted((edit.kind.value, edit.state) for edit in step.edits if edit.before != edit.after)
        for step in made.job.steps
    ]


def test_what_becomes_of_rows_that_refer_is_kept(catalog: Catalog) -> None:
    """A descriptor from before there were actions says nothing, and means NO ACTION."""
    said = "REFERENCES p ON DELETE SET NULL ON UPDATE CASCADE"
    job = run(catalog, f"ALTER TABLE c ADD FOREIGN KEY (a) {said}")
    table = catalog.resolve("c")
    (key,) = table.foreign_keys
    assert (key.on_delete, key.on_update) == (OnChange.SET_NULL, OnChange.CASCADE)
    assert from_wire(table.to_wire()) == table
    assert job.needs == (1,)
    run(catalog, "ALTER TABLE c ADD FOREIGN KEY (g) REFERENCES p ON DELETE CASCADE")
    run(catalog, "CREATE TABLE k (id int PRIMARY KEY REFERENCES p ON DELETE RESTRICT)")
    (plain,) = catalog.resolve("k").foreign_keys
    assert plain.on_delete is OnChange.RESTRICT
    assert "on_update" not in FOREIGN_KEY_FORM.to_wire(plain)


def test_an_index_that_is_there_is_used(catalog: Catalog) -> None:
    run(catalog, "CREATE INDEX mine ON c (a)")
    job = run(catalog, "ALTER TABLE c ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES p (u)")
    table = catalog.resolve("c")
    assert len(table.indexes) == 1
    assert table.foreign_keys[0].index == table.indexes[0].element_id
    assert table.foreign_keys[0].parent_index == catalog.resolve("p").indexes[0].element_id
    assert len(job.steps) == 2


def test_not_valid_is_enforced_and_validated_later(catalog: Catalog) -> None:
    job = run(catalog, "ALTER TABLE c ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES p NOT VALID")
    assert not any(e in step.verifies for step in job.steps for e in (catalog_key(catalog),))
    assert catalog.resolve("c").foreign_keys[0].state is State.WRITE_ONLY
    assert catalog.references(1) != ()
    job = run(catalog, "ALTER TABLE c VALIDATE CONSTRAINT f")
    assert job.steps[0].verifies == (catalog_key(catalog),)
    assert catalog.resolve("c").foreign_keys[0].state is State.PUBLIC


def catalog_key(catalog: Catalog) -> int:
    return catalog.resolve("c").foreign_keys[0].element_id


def test_a_new_table_brings_its_own_public(catalog: Catalog) -> None:
    run(catalog, "CREATE TABLE k (id int PRIMARY KEY REFERENCES p, up int REFERENCES k)")
    table = catalog.resolve("k")
    assert [key.state for key in table.foreign_keys] == [State.PUBLIC] * 2
    first = table.foreign_keys[0]
    assert (first.parent, first.index) == (1, 0)
    assert [index.unique for index in table.indexes] == [False]


REFUSED = [
    ("ALTER TABLE c ADD FOREIGN KEY (a) REFERENCES x", "42P01"),
    ("ALTER TABLE c ADD FOREIGN KEY (x) REFERENCES p", "42703"),
    ("ALTER TABLE c ADD FOREIGN KEY (a) REFERENCES p (x)", "42703"),
    ("ALTER TABLE c ADD FOREIGN KEY (a) REFERENCES p (v)", "42830"),
    ("ALTER TABLE c ADD FOREIGN KEY (a, b) REFERENCES p", "42830"),
    ("ALTER TABLE c ADD FOREIGN KEY (t) REFERENCES p", "42804"),
    ("ALTER TABLE c ADD FOREIGN KEY (n) REFERENCES p", "42804"),
    ("ALTER TABLE c ADD FOREIGN KEY (g) REFERENCES p ON DELETE SET NULL", "42601"),
    ("ALTER TABLE c ADD FOREIGN KEY (g) REFERENCES p ON DELETE SET DEFAULT", "42601"),
    ("ALTER TABLE c ADD FOREIGN KEY (g) REFERENCES p ON UPDATE CASCADE", "42601"),
]


@pytest.mark.parametrize(("sql", "code"), REFUSED)
def test_it_is_refused(catalog: Catalog, sql: str, code: str) -> None:
    with pytest.raises(Refused) as refusal:
        planned(catalog, sql)
    assert refusal.value.sqlstate == code, refusal.value


NEEDED = [
    "DROP TABLE p",
    "ALTER TABLE p DROP COLUMN u",
    "ALTER TABLE p DROP CONSTRAINT p_u_key",
]


@pytest.mark.parametrize("sql", NEEDED)
def test_what_it_needs_can_not_be_dropped(catalog: Catalog, sql: str) -> None:
    run(catalog, "ALTER TABLE c ADD CONSTRAINT f FOREIGN KEY (b) REFERENCES p (u)")
    with pytest.raises(DependentObjects) as refusal:
        planned(catalog, sql)
    assert "constraint f on table c depends on" in str(refusal.value.detail["detail"])
    run(catalog, "ALTER TABLE c DROP CONSTRAINT f")
    assert not isinstance(planned(catalog, sql), NothingToDo)


def test_no_type_of_other_values_comes_under_it(catalog: Catalog) -> None:
    run(catalog, "ALTER TABLE c ADD FOREIGN KEY (b) REFERENCES p (u)")
    for sql in ("ALTER TABLE p ALTER u TYPE text", "ALTER TABLE c ALTER b TYPE numeric"):
        with pytest.raises(FeatureNotSupported, match="rests on it"):
            planned(catalog, sql)


def test_its_column_takes_it_along(catalog: Catalog) -> None:
    run(catalog, "ALTER TABLE c ADD FOREIGN KEY (a) REFERENCES p")
    run(catalog, "ALTER TABLE c DROP COLUMN a")
    table = catalog.resolve("c")
    assert (table.foreign_keys, table.indexes) == ((), ())
    assert catalog.references(1) == ()


def test_the_parent_stays_as_it_is_meanwhile(catalog: Catalog) -> None:
    """D9: else its unique index could go while the key is on its way."""
    made = planned(catalog, "ALTER TABLE c ADD FOREIGN KEY (a) REFERENCES p")
    assert isinstance(made, JobPlan)
    job = made.job
    catalog.apply(JobWrite(job.job_id, job.to_wire()), 1, 1)
    with pytest.raises(TableBusy):
        planned(catalog, "ALTER TABLE p ADD COLUMN x int")
    ended = replace(job, status=Status.CANCELLED)
    catalog.apply(JobWrite(job.job_id, ended.to_wire()), 1, 1)
    assert isinstance(planned(catalog, "ALTER TABLE p ADD COLUMN x int"), JobPlan)


WIDE = "CREATE TABLE w (x int, y int, PRIMARY KEY (x, y))"


def test_some_columns_of_several(catalog: Catalog) -> None:
    run(catalog, WIDE)
    run(
        catalog,
        "ALTER TABLE c ADD FOREIGN KEY (a, h) REFERENCES w MATCH FULL ON DELETE SET NULL (h)",
    )
    table = catalog.resolve("c")
    (key,) = table.foreign_keys
    assert (key.full, [table.by_id[e].name for e in key.delete_sets]) == (True, ["h"])
    assert from_wire(table.to_wire()).foreign_keys == (key,)
    a, h = key.columns
    assert [
        key.is_mixed({a: x, h: y}) for x, y in ((1, 2), (None, 2), (1, None), (None, None))
    ] == [*(False, True, True, False)]
    text = foreign_key_text(table, key, catalog.resolve("w"))
    assert text == "FOREIGN KEY (a, h) REFERENCES w(x, y) MATCH FULL ON DELETE SET NULL (h)"


def test_a_column_that_is_no_part_of_it(catalog: Catalog) -> None:
    with pytest.raises(InvalidColumnReference, match="'b'"):
        planned(catalog, "ALTER TABLE c ADD FOREIGN KEY (a) REFERENCES p ON DELETE SET NULL (b)")


@pytest.mark.parametrize(
    ("own", "other", "words"),
    [
        ("numeric(9,2)", "numeric(8,2)", ""),
        ("numeric(9,2)", "numeric(9,3)", "as many digits behind the point on both sides"),
        ("numeric", "numeric(9,3)", "a foreign key over it is not supported"),
        ("interval", "interval", "a foreign key over it is not supported"),
    ],
)
def test_numbers_of_one_scale_refer_to_each_other(own: str, other: str, words: str) -> None:
    """Others have several forms of one value, and are compared as they are stored."""
    catalog = Catalog()
    run(catalog, f"CREATE TABLE p (id int PRIMARY KEY, u {other} UNIQUE)")
    child = f"CREATE TABLE c (id int PRIMARY KEY, n {own} REFERENCES p (u))"
    if not words:
        assert has_numeric_reference(run(catalog, child))
        return
    with pytest.raises(FeatureNotSupported, match=words) as refused:
        run(catalog, child)
    assert ("hint" in refused.value.detail) == (own == "numeric")
