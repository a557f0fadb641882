"""What becomes of a schema: statements that the planner takes, and each thing that is not kept."""

from __future__ import annotations

import pytest

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.elements import CommitContext
from leasehold.schema_change.plan.statement_batch import StatementBatch
from leasehold.sql.ddl.schema_statements import parse_statements
from leasehold.sql.syntax.statements import (
    Explain,
)
from leasehold.transfer.schema_plan import Kind, Plan, plan_schema
from leasehold.transfer.source_tables import (
    SourceColumn,
    SourceConstraint,
    SourceIndex,
    SourceSchema,
    SourceSequence,
    SourceTable,
)

NUMBERS = SourceSequence("t_id_seq", "integer", 1, 1, 1, 2147483647, 1, False, "t", "id")
T = SourceTable(
    "t",
    [
        SourceColumn("note", "text", False, "'x'::text"),
        SourceColumn("id", "integer", True, "nextval('t_id_seq'::regclass)"),
        SourceColumn("n", "numeric(8,2)", False, "1.5"),
        SourceColumn("made", "timestamp with time zone", True, "CURRENT_TIMESTAMP"),
        SourceColumn("half", "integer", False, "(id / 2)", generated=True),
    ],
    ("id",),
    [
        SourceConstraint("positive", "c", "CHECK (n > 0::numeric)"),
        SourceConstraint("one_note", "u", "UNIQUE (note)"),
    ],
    [SourceIndex("by_note", "CREATE INDEX by_note ON t USING btree (lower(note))")],
)


def column(kind: str, default: str | None = None) -> SourceTable:
    return SourceTable("t", [SourceColumn("c", kind, False, default)])


def planned(*tables: SourceTable, **options: object) -> Plan:
    return plan_schema(SourceSchema(tables, [NUMBERS]), **options)  # type: ignore[arg-type]


def said(plan: Plan) -> list[tuple[str, str]]:
    return [(finding.kind.value, finding.what) for finding in plan.findings]


def take_all(plan: Plan) -> StatementBatch:
    """Every statement of the plan, as the master would take it."""
    batch = StatementBatch.on(Catalog())
    texts = [text for table in plan.tables for text in table.before]
    texts += [text for table in plan.tables for text in table.after.values()]
    for text in texts:
        for statement, sql in parse_statements(text):
            assert not isinstance(statement, Explain)
            batch.take(statement, sql, bytes(16), CommitContext(1, bytes(16)), lambda _: 0)
    return batch


def test_a_table_keeps_its_columns_defaults_checks_and_indexes() -> None:
    """Goal: nothing of a plain table is lost; the key comes first among what is copied, and what
    the target computes is not copied."""
    plan = planned(T)
    assert plan.findings == []
    (table,) = plan.tables
    assert [each.name for each in table.copied] == ["id", "note", "n", "made"]
    assert table.after.keys() == {"one_note", "by_note"}
    made = next(t for t in take_all(plan).made.values() if t.name == "t")
    assert [c.name for c in made.by_name.values()] == ["note", "id", "n", "made", "half"]
    assert plan.sequences == [NUMBERS]


def test_foreign_keys_come_behind_the_keys_that_they_need() -> None:
    child = SourceTable(
        "a_child",
        [SourceColumn("id", "bigint", True), SourceColumn("t", "integer", False)],
        ("id",),
        [SourceConstraint("to_t", "f", "FOREIGN KEY (t) REFERENCES t(id) ON DELETE CASCADE")],
    )
    plan = planned(child, T)
    assert plan.findings == []
    assert [list(table.after) for table in plan.tables] == [["to_t"], ["one_note", "by_note"]]


def test_a_foreign_key_to_a_table_that_stays_behind_is_left_out() -> None:
    child = SourceTable(
        "child",
        [SourceColumn("t", "integer", False)],
        constraints=[SourceConstraint("to_t", "f", "FOREIGN KEY (t) REFERENCES t(id)")],
    )
    assert said(planned(child, T, exclude=["t"])) == [("left out", "table child, to_t")]


@pytest.mark.parametrize(
    ("kind", "becomes", "read"),
    [
        ("oid", "bigint", '"c"::bigint'),
    ],
)
def test_a_type_that_is_not_known_becomes_one_that_holds_its_values(
    kind: str, becomes: str, read: str
) -> None:
    plan = planned(column(kind))
    assert said(plan) == [("changed", "table t, column c")]
    assert plan.tables[0].columns[0][:3] == ("c", becomes, read)


def test_enum_types_are_made_before_the_first_table_of_them() -> None:
    mood = SourceColumn("c", "mood", False, "'a'::mood", labels=("a", "it's"))
    many = SourceColumn("d", "mood[]", False, labels=("a", "it's"))
    plan = planned(SourceTable("t", [mood, many]), SourceTable("u", [mood]))
    assert said(plan) == []
    first, second = plan.tables
    assert first.before[0] == "CREATE TYPE mood AS ENUM ('a', 'it''s')"
    assert [column.type for column in first.columns] == ["mood", "mood[]"]
    assert not any("CREATE TYPE" in text for text in second.before)
    assert "DEFAULT 'a'::mood" in second.before[0]


def test_labels_of_an_enum_that_can_not_be_made_become_a_check() -> None:
    long = SourceColumn("c", "money", False, labels=("a", "it's"))
    plan = planned(SourceTable("t", [long]))
    assert said(plan) == [("changed", "table t, column c")]
    assert "IN ('a', 'it''s')" in plan.tables[0].before[-1]


def test_a_type_without_a_counterpart_is_refused_or_taken_as_text() -> None:
    """Goal: nothing is turned into text unasked."""
    refused = planned(column("int4range"))
    assert refused.tables == []
    assert said(refused) == [("refused", "table t, column c")]
    assert "--as-text" in refused.findings[0].words
    taken = planned(column("int4range"), as_text=True)
    assert said(taken) == [("changed", "table t, column c")]
    assert taken.tables[0].columns[0].type == "text"


def test_what_goes_with_rows_and_can_not_be_kept_is_left_out_by_name() -> None:
    table = SourceTable(
        "t",
        [SourceColumn("id", "integer", True, "next_number()"), SourceColumn("c", "text", False)],
        ("id",),
        [SourceConstraint("odd", "c", "CHECK (own_function(c))")],
        [SourceIndex("words", "CREATE INDEX words ON t USING gin (c)")],
        more=["trigger audit"],
    )
    plan = plan_schema(SourceSchema([table], [], ["view v"]))
    assert [finding.kind for finding in plan.findings] == [Kind.LEFT_OUT] * 5
    assert [finding.what for finding in plan.findings] == [
        "table t, column id, default",
        "table t, check odd",
        "table t, trigger audit",
        "table t, words",
        "view v",
    ]
    take_all(plan)


def test_names_that_are_not_there_and_names_of_our_own_are_refused() -> None:
    own = SourceTable("leasehold_imports", [SourceColumn("c", "text", False)])
    assert said(planned(own, T, exclude=["nope"])) == [
        ("refused", "table nope"),
        ("refused", "table leasehold_imports"),
    ]


def test_which_tables_can_not_be_followed() -> None:
    keyless = SourceTable("a", [SourceColumn("c", "text", False)])
    other = T._replace(replica_identity="n")
    own = SourceColumn("g", "integer", False, "own(id)", generated=True)
    lost = T._replace(name="u", columns=[T.columns[1], own], constraints=(), indexes=())
    refusals = [t.follow_refusal for t in planned(keyless, other, lost).tables]
    assert ["primary key" in refusals[0], "REPLICA IDENTITY" in refusals[1]] == [True, True]
    assert "generated" in refusals[2]


def test_the_digest_changes_with_the_schema() -> None:
    wider = T._replace(columns=[*T.columns, SourceColumn("more", "text", False)])
    assert planned(T).digest == planned(T).digest != planned(wider).digest
