"""GENERATED ALWAYS AS (…) STORED and defaults that change from call to call: what a statement comes
to, and what a write makes of them.

Goal: an expression that can't be kept right is refused before anything is written, at its place in
the statement; what is kept is the same whoever computes it. Method: real statements on a catalog;
images composed under each version that a job publishes.
"""

from __future__ import annotations

from typing import Any

import pytest

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor, from_wire
from leasehold.catalog.edits import apply_edits
from leasehold.catalog.element_forms import COLUMN_FORM
from leasehold.catalog.elements import Column, CommitContext, Derived
from leasehold.model.errors import DivisionByZero, LeaseholdError, Refused
from leasehold.model.records.log import ChangeKind
from leasehold.rows.defaults import default_of_old_rows
from leasehold.rows.key_values import compose
from leasehold.schema_change.plan.explain import explain
from leasehold.schema_change.plan.plan import plan
from leasehold.schema_change.plan.results import JobPlan, NothingToDo
from leasehold.sql.ddl.schema_statements import parse_ddl
from leasehold.sql.syntax.statements import (
    Explain,
)
from tests.schema_change.changes import catalog_of, standing

TABLE = "CREATE TABLE t (id integer PRIMARY KEY, a integer, b text, c integer NOT NULL)"
GENERATED = TABLE.replace("b text", "g integer GENERATED ALWAYS AS (a + c) STORED, b text")
INT = "int GENERATED ALWAYS AS"
AT = CommitContext(1_700_000_000_000_000, b"seed")
ID, A, G, B, C = 1, 2, 3, 4, 5  # element ids of GENERATED


def planned(sql: str, *given: str, in_place: bool = True) -> Any:
    catalog = catalog_of(standing(*given)) if given else Catalog()
    statement = parse_ddl(sql)
    assert not isinstance(statement, Explain)
    return plan(statement, catalog, context=AT, in_place=in_place)


def versions(sql: str, *given: str, in_place: bool = True) -> list[Descriptor]:
    """Those that the job publishes, one after the other, from the one before it."""
    made = planned(sql, *given, in_place=in_place)
    assert isinstance(made, JobPlan)
    found = [standing(*given)]
    for step in made.job.steps:
        found.append(apply_edits(found[-1], step.edits))
    return found


REFUSED = [
    ("ADD COLUMN g int GENERATED ALWAYS AS (a + x) STORED", "42703", "x)"),
    ("ADD COLUMN g int GENERATED ALWAYS AS (b) STORED", "42804", "b)"),
    ("ADD COLUMN g int GENERATED ALWAYS AS (g + 1) STORED", "42703", "g +"),
    ("ADD COLUMN d int, ADD COLUMN g int GENERATED ALWAYS AS (d) STORED", "0A000", "d) STORED"),
    ("ADD COLUMN g int GENERATED ALWAYS AS (a) STORED, DROP COLUMN a", "2BP01", "DROP"),
    ("ADD COLUMN g int GENERATED ALWAYS AS (a) STORED, ALTER a TYPE bigint", "0A000", "a) STORED"),
    ("ALTER a TYPE bigint, ADD COLUMN g int GENERATED ALWAYS AS (a) STORED", "0A000", None),
    ("ADD COLUMN g int GENERATED ALWAYS AS (a) STORED, ALTER g SET DEFAULT 1", "42601", "ALTER g"),
    ("ADD COLUMN g int GENERATED ALWAYS AS (a) STORED, ALTER g DROP EXPRESSION", "0A000", "ALTER"),
    ("ALTER a DROP EXPRESSION", "55000", "ALTER a"),
]
REFUSED_ON_GENERATED = [
    ("ADD COLUMN h int GENERATED ALWAYS AS (g + 1) STORED", "42P17", "g + 1"),
    ("DROP COLUMN a", "2BP01", "DROP"),
    ("DROP COLUMN a, DROP COLUMN b", "2BP01", "DROP"),
    ("DROP COLUMN a, ALTER g DROP EXPRESSION", "2BP01", "DROP"),
    ("ALTER a TYPE bigint", "0A000", "ALTER a"),
    ("ALTER g TYPE bigint", "0A000", "ALTER g"),
    ("ALTER g SET DEFAULT 1", "42601", "ALTER g"),
    ("ALTER g DROP DEFAULT", "42601", "ALTER g"),
    ("ALTER g DROP EXPRESSION, DROP COLUMN g", "0A000", "DROP COLUMN"),
    ("ALTER g DROP EXPRESSION, ALTER g TYPE bigint", "0A000", "ALTER g TYPE"),
]


@pytest.mark.parametrize(
    ("given", "actions", "code", "at"),
    [(TABLE, *each) for each in REFUSED] + [(GENERATED, *each) for each in REFUSED_ON_GENERATED],
)
def test_refused(given: str, actions: str, code: str, at: str | None) -> None:
    sql = f"ALTER TABLE t {actions}"
    with pytest.raises(Refused) as caught:
        planned(sql, given)
    assert (type(caught.value).sqlstate, bool(caught.value.message)) == (code, True)
    if at is not None:
        position = caught.value.detail["position"]
        assert isinstance(position, int)
        assert sql[position - 1 :].startswith(at), (position, caught.value.message)


@pytest.mark.parametrize(
    ("column", "code", "at"),
    [
        ("g int GENERATED ALWAYS AS (x) STORED", "42703", "x)"),
        (
            f"g {INT} (h) STORED, h {INT} (1) STORED",
            "42P17",
            "h)",
        ),
        ("g int GENERATED ALWAYS AS (g) STORED", "42P17", "g)"),
        ("g bool GENERATED ALWAYS AS (a + 1) STORED", "42804", "a +"),
    ],
)
def test_refused_in_a_new_table(column: str, code: str, at: str) -> None:
    sql = f"CREATE TABLE t (id int PRIMARY KEY, {column}, a int)"
    with pytest.raises(Refused) as caught:
        planned(sql)
    position = caught.value.detail["position"]
    assert isinstance(position, int)
    assert type(caught.value).sqlstate == code
    assert sql[position - 1 :].startswith(at), (position, caught.value.message)


def test_a_new_table_may_name_columns_that_follow() -> None:
    table = standing(
        "CREATE TABLE t (id int PRIMARY KEY, g int GENERATED ALWAYS AS (t.a + 1) STORED NOT NULL"
        " UNIQUE CHECK (g > 0), a int)"
    )
    column = table.column("g")
    assert column.derived == Derived((3,), "a + 1", strict=True, generated=True)
    assert (column.nullable, column.generated) == (False, True)
    assert from_wire(table.to_wire()) == table


def test_a_written_row_has_what_its_expression_says() -> None:
    table = standing(GENERATED)
    row = compose(table, ChangeKind.INSERT, None, {ID: 1, A: 2, C: 3})
    assert row == {ID: 1, A: 2, C: 3, G: 5}
    assert compose(table, ChangeKind.UPDATE, row, {C: 4}) == {ID: 1, A: 2, C: 4, G: 6}
    assert compose(table, ChangeKind.UPDATE, row, {A: None}) == {ID: 1, C: 3}
    assert compose(table, ChangeKind.UPDATE, row, {B: "x"}) == {**row, B: "x"}


def test_it_is_kept_right_by_writers_who_do_not_know_it() -> None:
    """Under every version from write-only on, of rows with and without its pair; one that only
    deletes it takes away what is not right any more."""
    sql = "ALTER TABLE t ADD COLUMN g integer GENERATED ALWAYS AS (a + c) STORED"
    _, deleting, filling, strict, public = versions(sql, TABLE)
    g = public.column("g").element_id
    row = {1: 1, 2: 2, 4: 3}
    for version in (filling, strict, public):
        assert compose(version, ChangeKind.INSERT, None, row)[g] == 5
        assert compose(version, ChangeKind.UPDATE, {**row, g: 5}, {2: 7})[g] == 10
    for version in (filling, strict):
        assert compose(version, ChangeKind.UPDATE, row, {3: "x"})[g] == 5
        assert compose(version, ChangeKind.BACKFILL, row, {})[g] == 5
    assert g not in compose(deleting, ChangeKind.UPDATE, {**row, g: 5}, {2: 7})
    assert compose(deleting, ChangeKind.UPDATE, {**row, g: 5}, {3: "x"})[g] == 5


def test_what_cannot_be_computed_is_left_to_the_verification_first_then_refused() -> None:
    sql = "ALTER TABLE t ADD COLUMN g integer GENERATED ALWAYS AS (c / a) STORED"
    _, _, filling, strict, public = versions(sql, TABLE)
    row = {1: 1, 2: 0, 4: 3}
    assert compose(filling, ChangeKind.INSERT, None, row) == row
    for version in (strict, public):
        with pytest.raises(DivisionByZero, match="generated column 'g' can't be computed"):
            compose(version, ChangeKind.INSERT, None, row)
    # It was there before: what is written elsewhere makes nothing worse.
    assert compose(strict, ChangeKind.UPDATE, row, {3: "x"}) == {**row, 3: "x"}


def test_not_null_is_enforced_only_where_the_column_is_seen() -> None:
    sql = "ALTER TABLE t ADD COLUMN g integer GENERATED ALWAYS AS (a + c) STORED NOT NULL"
    made = versions(sql, TABLE)
    states = [(c.state.label, c.refuses_null) for v in made for c in v.columns if c.name == "g"]
    assert states == [
        ("delete-only", False),
        ("write-only", False),
        ("write-only", False),
        ("public", True),
        ("public", True),
    ]
    assert not made[-1].column("g").nullable


def test_what_it_is_computed_from_goes_no_earlier_than_itself() -> None:
    index = "CREATE INDEX i ON t (g)"
    for given in ((GENERATED,), (GENERATED, index)):
        for sql in ("DROP COLUMN a, DROP COLUMN g", "DROP COLUMN g, DROP COLUMN a"):
            for version in versions(f"ALTER TABLE t {sql}", *given):
                there = {c.name: c for c in version.columns}
                if "g" in there and there["g"].generated:
                    assert there["a"].state.label == "public"
                if "a" in there and there["a"].state.label != "public":
                    assert "g" not in there or there["g"].state.label == "delete-only"


def test_a_renamed_source_keeps_it_right() -> None:
    last = versions("ALTER TABLE t RENAME COLUMN a TO z", GENERATED)[-1]
    derived = last.column("g").derived
    assert derived is not None
    assert derived.expression == "z + c"
    assert compose(last, ChangeKind.INSERT, None, {ID: 1, A: 2, C: 3})[G] == 5


def test_drop_expression_leaves_the_values() -> None:
    before, loose, last = versions("ALTER TABLE t ALTER g DROP EXPRESSION", GENERATED)
    row = {ID: 1, A: 2, C: 3, G: 5}
    assert compose(before, ChangeKind.UPDATE, row, {A: 3})[G] == 6
    assert compose(loose, ChangeKind.UPDATE, row, {A: 3})[G] == 6
    assert compose(last, ChangeKind.UPDATE, row, {A: 3})[G] == 5
    assert compose(last, ChangeKind.INSERT, None, {ID: 1, A: 2, C: 3, G: 9})[G] == 9
    made = planned("ALTER TABLE t ALTER a DROP EXPRESSION IF EXISTS", GENERATED)
    assert isinstance(made, NothingToDo)
    assert "not a generated column" in made.notice


def test_explain_says_what_becomes_of_an_expression() -> None:
    rows = explain(planned("ALTER TABLE t ALTER g DROP EXPRESSION", GENERATED))
    assert [row.changes for row in rows] == [
        "column g → its expression is not relied on",
        "column g → computed no more",
    ]
    rows = explain(planned("ALTER TABLE t RENAME COLUMN a TO z", GENERATED))
    assert rows[0].changes == "column z → named z, a still resolves; column g → reworded"
    added = "ALTER TABLE t ADD COLUMN g int GENERATED ALWAYS AS (a) STORED"
    assert [row.changes for row in explain(planned(added, TABLE))] == [
        "column g → delete-only",
        "column g → write-only",
        "column g → a value that can't be computed is refused",
        "column g → public",
    ]


def test_records_from_before_are_read() -> None:
    """ALTER TYPE's columns named one source by its number; nothing was said of the rest."""
    body = COLUMN_FORM.to_wire(Column(3, "a", standing(TABLE).column("a").type))
    for name in ("default_expression", "moment"):
        del body[name]
    body["derived"] = [2, "a", True, False]
    read = COLUMN_FORM.from_wire(body)
    assert read.derived == Derived((2,), "a", strict=True)
    assert (read.default_expression, read.moment, read.generated) == ("", None, False)


# ------------------------------------------------------------------ defaults


@pytest.mark.parametrize("null", ["", " NOT NULL"])
def test_old_rows_have_the_default_as_of_the_statement(null: str) -> None:
    """Whoever is first to write it, the backfill or an update; a new row has its own."""
    sql = f"ALTER TABLE t ADD COLUMN d timestamptz DEFAULT now(){null}"
    hidden = versions(sql, TABLE)[1]
    d = hidden.columns[-1].element_id
    later = CommitContext(AT.now_us + 1, b"other")
    assert compose(hidden, ChangeKind.INSERT, None, {1: 1}, later) == {1: 1, d: AT.now_us}
    filling = versions(sql, TABLE, in_place=False)[2]
    d = filling.columns[-1].element_id
    row = {1: 1, 4: 3}
    later = CommitContext(AT.now_us + 1, b"other")
    assert compose(filling, ChangeKind.BACKFILL, row, {})[d] == AT.now_us
    assert compose(filling, ChangeKind.UPDATE, row, {3: "x"}, later)[d] == AT.now_us
    assert compose(filling, ChangeKind.INSERT, None, row, later)[d] == later.now_us


def test_each_old_row_has_its_own_random_value() -> None:
    sql = "ALTER TABLE t ADD COLUMN u uuid NOT NULL DEFAULT gen_random_uuid()"
    filling = versions(sql, TABLE)[2]
    u = filling.columns[-1].element_id
    made = {key: compose(filling, ChangeKind.BACKFILL, {1: key, 4: 3}, {})[u] for key in range(9)}
    assert len(set(made.values())) == 9
    for key, value in made.items():
        # A chunk that comes again, or an update that comes first, makes the same of it.
        assert compose(filling, ChangeKind.BACKFILL, {1: key, 4: 4}, {})[u] == value
        assert compose(filling, ChangeKind.UPDATE, {1: key, 4: 3}, {3: "x"}, AT)[u] == value


def test_a_node_that_applies_decides_nothing() -> None:
    table = standing("CREATE TABLE t (id int PRIMARY KEY, d timestamptz DEFAULT now())")
    assert compose(table, ChangeKind.INSERT, None, {1: 1}) == {1: 1}
    assert compose(table, ChangeKind.INSERT, None, {1: 1}, AT) == {1: 1, 2: AT.now_us}
    assert compose(table, ChangeKind.INSERT, None, {1: 1, 2: None}, AT) == {1: 1}


def test_what_all_old_rows_show() -> None:
    def column(definition: str) -> Column:
        return versions(f"ALTER TABLE t ADD COLUMN d {definition}", TABLE)[-1].column("d")

    assert default_of_old_rows(column("timestamptz DEFAULT now()")) == AT.now_us
    assert default_of_old_rows(column("uuid DEFAULT gen_random_uuid()")) is None
    assert default_of_old_rows(column("int DEFAULT 1 + 2")) == 3


def test_set_default_changes_what_new_rows_have() -> None:
    given = TABLE.replace("b text", "b timestamp DEFAULT now()")
    constant = versions("ALTER TABLE t ALTER b SET DEFAULT '2020-01-01'", given)[-1]
    assert (constant.column("b").default is None, constant.column("b").default_expression) == (
        False,
        "",
    )
    gone = versions("ALTER TABLE t ALTER b DROP DEFAULT", given)[-1]
    assert not gone.column("b").has_default
    back = versions("ALTER TABLE t ALTER a SET DEFAULT length(gen_random_uuid()::text)", TABLE)[-1]
    assert compose(back, ChangeKind.INSERT, None, {1: 1, 4: 3}, AT)[2] == 36
    made = planned("ALTER TABLE t ALTER b SET DEFAULT now()", given)
    assert isinstance(made, NothingToDo)


def test_a_type_may_change_under_a_default_that_fits() -> None:
    given = TABLE.replace("b text", "b timestamp DEFAULT now()")
    changed = versions("ALTER TABLE t ALTER b TYPE timestamptz", given)[-1].column("b")
    assert (changed.default_expression, changed.moment) == ("now()", None)
    with pytest.raises(LeaseholdError, match="DROP DEFAULT first"):
        planned("ALTER TABLE t ALTER b TYPE varchar(3) USING CAST(b AS varchar(3))", given)


def test_defaults_come_before_what_is_computed_from_them() -> None:
    table = standing(
        "CREATE TABLE t (id int PRIMARY KEY,"
        " g date GENERATED ALWAYS AS ((d AT TIME ZONE 'UTC')::date) STORED,"
        " d timestamptz DEFAULT now())"
    )
    assert compose(table, ChangeKind.INSERT, None, {1: 1}, AT)[2] == 19_675
