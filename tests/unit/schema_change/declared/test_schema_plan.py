"""Plans from one schema to another: each is carried out in memory, and leads where it should.

Method: pairs of texts with the statements between them; random pairs, of which only is asked that
the plan leads from one to the other and that nothing is left then.
"""

from __future__ import annotations

from random import Random
from typing import Final, NamedTuple

import pytest

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.model.errors import FeatureNotSupported, LeaseholdError
from leasehold.schema_change.declared.in_memory import load_catalog, run_request
from leasehold.schema_change.declared.schema_plan import SchemaPlan, plan_schema
from leasehold.schema_change.declared.shapes import shape_of
from leasehold.schema_change.declared.wanted import line_of, read_wanted
from leasehold.values.enums import Enumeration, Label
from leasehold.values.types import enum_type
from tests.support.schema_change.random_schemas import RandomSchema

SEEDS: Final = (1, 5, 9)


def made(text: str) -> Catalog:
    """The catalog of a schema that was applied where nothing was."""
    return after(Catalog(), plan_schema(Catalog(), read_wanted(text)))


def after(catalog: Catalog, plan: SchemaPlan) -> Catalog:
    for request in plan.requests:
        catalog = run_request(catalog, request.sql).catalog
    return catalog


def lead(before: str, wanted: str) -> list[str]:
    """The texts of the requests; what they lead to is what is wanted, and nothing is left."""
    catalog, asked = made(before), read_wanted(wanted)
    plan = plan_schema(catalog, asked)
    there = after(catalog, plan)
    assert shape_of(there) == shape_of(asked.catalog)
    assert plan_schema(there, asked).requests == ()
    return [request.sql for request in plan.requests]


class Case(NamedTuple):
    before: str
    wanted: str
    requests: list[str]


MOOD = "CREATE TYPE mood AS ENUM ('sad', 'ok');"
M = "CREATE TABLE m (id int PRIMARY KEY, a mood DEFAULT 'ok', CHECK (a > 'sad'));"
T: Final = "CREATE TABLE t (id int PRIMARY KEY, a int, b text);"
CASES: Final = {
    "the same in other words": Case(
        T + "CREATE INDEX i ON t (lower(b)) WHERE a>0; ALTER TABLE t ADD CHECK (a > 0)",
        "create table t (id integer, a integer check((A>0)), b text, primary key(id));"
        "create index i on t ((LOWER(b))) where (a > 0)",
        [],
    ),
    "defaults of one value are one, however they are written": Case(
        "CREATE TABLE t (id int PRIMARY KEY, a numeric(10,2) DEFAULT 0.5, b float DEFAULT 1)",
        "CREATE TABLE t (id int PRIMARY KEY, a numeric(10,2) DEFAULT 0.50, b float DEFAULT '1.0')",
        [],
    ),
    "a default is said as it is written": Case(
        "CREATE TABLE t (id int PRIMARY KEY, a numeric(10,2) DEFAULT 0.5)",
        "CREATE TABLE t (id int PRIMARY KEY, a numeric(10,2) DEFAULT .7)",
        ["ALTER TABLE t ALTER COLUMN a SET DEFAULT 0.7"],
    ),
    "a key includes another column, and the one of before goes": Case(
        "CREATE TABLE t (id int, a int, b text, PRIMARY KEY (id) INCLUDE (a))",
        "CREATE TABLE t (id int, b text, PRIMARY KEY (id) INCLUDE (b))",
        [
            (
                "ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (id) INCLUDE (b);"
                " ALTER TABLE t DROP COLUMN a"
            ),
        ],
    ),
    "a column that a key includes is made again": Case(
        "CREATE TABLE t (id int, a int, g int GENERATED ALWAYS AS (a + 1) STORED,"
        " PRIMARY KEY (id) INCLUDE (g, a))",
        "CREATE TABLE t (id int, a int, g int GENERATED ALWAYS AS (a + 2) STORED,"
        " PRIMARY KEY (id) INCLUDE (g, a))",
        [
            (
                "ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (id);"
                " ALTER TABLE t DROP COLUMN g"
            ),
            (
                "ALTER TABLE t ADD COLUMN g integer GENERATED ALWAYS AS (a + 2) STORED;"
                " ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (id) INCLUDE (g, a)"
            ),
        ],
    ),
    "two changes of a table are one job": Case(
        T,
        "CREATE TABLE t (id int PRIMARY KEY, a bigint DEFAULT 1, b text, c date)",
        [
            (
                "ALTER TABLE t ALTER COLUMN a TYPE bigint; ALTER TABLE t ADD COLUMN c date;"
                " ALTER TABLE t ALTER COLUMN a SET DEFAULT 1"
            )
        ],
    ),
    "a hint makes it another name": Case(
        T,
        "-- leasehold: renamed from t\nCREATE TABLE u (id int PRIMARY KEY, a int,\n"
        "c text -- leasehold: renamed from b\n)",
        [
            (
                "ALTER TABLE t RENAME TO u; ALTER TABLE u RENAME COLUMN b TO c;"
                " ALTER TABLE u RENAME CONSTRAINT t_pkey TO u_pkey"
            ),
        ],
    ),
    "a hint that is obeyed says nothing more": Case(
        T.replace(" t ", " u "),
        "-- leasehold: renamed from t\n" + T.replace(" t ", " u "),
        [],
    ),
    "what is the same but for its name is renamed": Case(
        T + "CREATE INDEX i ON t (a); ALTER TABLE t ADD CONSTRAINT n CHECK (a > 0)",
        T + "CREATE INDEX j ON t (a); ALTER TABLE t ADD CONSTRAINT m CHECK (a > 0)",
        ["ALTER INDEX i RENAME TO j; ALTER TABLE t RENAME CONSTRAINT n TO m"],
    ),
    "an index is made anew under another type": Case(
        T + "CREATE INDEX i ON t (b)",
        T.replace("b text", "b char(3)") + "CREATE INDEX i ON t (b)",
        ["ALTER TABLE t ALTER COLUMN b TYPE char(3)"],
    ),
    "and stays under one of some of its values": Case(
        T + "CREATE INDEX i ON t (b)",
        T.replace("b text", "b varchar(3)") + "CREATE INDEX i ON t (b)",
        ["ALTER TABLE t ALTER COLUMN b TYPE varchar(3)"],
    ),
    "an index to which NULLs are equal is another one": Case(
        T + "CREATE UNIQUE INDEX i ON t (a)",
        T + "CREATE UNIQUE INDEX i ON t (a) NULLS NOT DISTINCT",
        ["DROP INDEX i", "CREATE UNIQUE INDEX i ON t (a) NULLS NOT DISTINCT"],
    ),
    "an enum type, said behind what is of it": Case(
        "",
        M + "COMMENT ON TYPE mood IS 'm';" + MOOD,
        [
            (
                "CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE TABLE m (\n    id integer,\n"
                "    a mood DEFAULT 'ok'::mood,\n    PRIMARY KEY (id),\n"
                "    CONSTRAINT m_a_check CHECK (a > 'sad')\n); COMMENT ON TYPE mood IS 'm'"
            )
        ],
    ),
    "labels at the begin, between and at the end": Case(
        MOOD + M,
        "CREATE TYPE mood AS ENUM ('x', 'sad', 'y', 'z', 'ok');"
        " ALTER TYPE mood ADD VALUE 'end';" + M,
        [
            "ALTER TYPE mood ADD VALUE 'x' BEFORE 'sad'",
            "ALTER TYPE mood ADD VALUE 'y' BEFORE 'ok'",
            "ALTER TYPE mood ADD VALUE 'z' BEFORE 'ok'",
            "ALTER TYPE mood ADD VALUE 'end'",
        ],
    ),
    "an enum type under another name, and one less": Case(
        MOOD + M + "CREATE TYPE gone AS ENUM ()",
        "-- leasehold: renamed from mood\n" + (MOOD + M).replace("mood", '"Other mood"'),
        ['ALTER TYPE mood RENAME TO "Other mood"; DROP TYPE gone'],
    ),
    "a column of an enum type in the place of a text": Case(
        MOOD + T,
        MOOD + T.replace("b text", "b mood -- leasehold: using b::mood\n"),
        ["ALTER TABLE t ALTER COLUMN b TYPE mood USING b::mood"],
    ),
    "tables that refer to each other": Case(
        "",
        "CREATE TABLE a (id int PRIMARY KEY); CREATE TABLE b (id int PRIMARY KEY, a int REFERENCES"
        " a); ALTER TABLE a ADD b int; ALTER TABLE a ADD FOREIGN KEY (b) REFERENCES b",
        [
            (
                "CREATE TABLE a (\n    id integer,\n    b integer,\n    PRIMARY KEY (id)\n);"
                " CREATE TABLE b (\n    id integer,\n    a integer,\n    PRIMARY KEY (id),\n"
                "    CONSTRAINT b_a_fkey FOREIGN KEY (a) REFERENCES a(id)\n);"
                " ALTER TABLE a ADD CONSTRAINT a_b_fkey FOREIGN KEY (b) REFERENCES b(id)"
            )
        ],
    ),
    "another key, with what refers to the old one": Case(
        T + "CREATE TABLE c (t int REFERENCES t)",
        "CREATE TABLE t (id int UNIQUE NOT NULL, a int PRIMARY KEY, b text);"
        "CREATE TABLE c (t int REFERENCES t (id))",
        [
            (
                "ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (a),"
                " ADD CONSTRAINT t_id_key UNIQUE (id)"
            )
        ],
    ),
    "when foreign keys are looked at": Case(
        T + "CREATE TABLE c (a int REFERENCES t, b int REFERENCES t DEFERRABLE INITIALLY DEFERRED)",
        T + "CREATE TABLE c (a int REFERENCES t DEFERRABLE, b int REFERENCES t DEFERRABLE INITIALLY"
        " DEFERRED)",
        [
            "ALTER TABLE c DROP CONSTRAINT c_a_fkey",
            "ALTER TABLE c ADD CONSTRAINT c_a_fkey FOREIGN KEY (a) REFERENCES t(id) DEFERRABLE",
        ],
    ),
    "a view is out of the way and comes again": Case(
        T + "CREATE VIEW v AS SELECT a FROM t; COMMENT ON VIEW v IS 'x'",
        T.replace("a int", "a bigint")
        + "CREATE VIEW v AS SELECT a FROM t; COMMENT ON VIEW v IS 'x'",
        [
            "DROP VIEW v",
            "ALTER TABLE t ALTER COLUMN a TYPE bigint",
            "CREATE VIEW v (a) AS SELECT a FROM t; COMMENT ON VIEW v IS 'x'",
        ],
    ),
    "an identity and a sequence": Case(
        T + "CREATE SEQUENCE q",
        "CREATE TABLE t (id int PRIMARY KEY, a int GENERATED ALWAYS AS IDENTITY, b text);"
        "CREATE SEQUENCE q INCREMENT 2 OWNED BY t.b",
        [
            "ALTER TABLE t ALTER COLUMN a SET NOT NULL",
            "ALTER TABLE t ALTER COLUMN a ADD GENERATED ALWAYS AS IDENTITY",
            "ALTER SEQUENCE q INCREMENT BY 2",
            "ALTER SEQUENCE q OWNED BY t.b",
        ],
    ),
    "a constraint that is wanted NOT VALID may be valid": Case(
        T + "ALTER TABLE t ADD CONSTRAINT n CHECK (a > 0) NOT VALID",
        T + "ALTER TABLE t ADD CONSTRAINT n CHECK (a > 0)",
        ["ALTER TABLE t VALIDATE CONSTRAINT n"],
    ),
    "all goes": Case(T + "CREATE SEQUENCE q", "", ["DROP TABLE t", "DROP SEQUENCE q"]),
}


def test_a_plan_is_made_of_these_requests() -> None:
    found = {name: lead(case.before, case.wanted) for name, case in CASES.items()}
    wrong = {name: requests for name, requests in found.items() if requests != CASES[name].requests}
    assert wrong == {}


def walk(seed: int) -> None:
    random = Random(seed)
    first, second = RandomSchema(random).text(), RandomSchema(random).text()
    catalog = made(first)
    assert plan_schema(catalog, read_wanted(first)).requests == (), first
    wanted = read_wanted(second)
    there = after(catalog, plan_schema(catalog, wanted))
    assert plan_schema(there, wanted).requests == (), f"{first}\n----\n{second}"


def test_random_schemas_lead_to_each_other() -> None:
    for seed in SEEDS:
        walk(seed)


@pytest.mark.long("half a minute or more: 60 more pairs of random schemas")
def test_many_random_schemas_lead_to_each_other() -> None:
    for seed in range(100, 160):
        walk(seed)


def test_what_is_lost_may_fail_and_costs_is_told() -> None:
    catalog = made(T)
    wanted = read_wanted(
        "CREATE TABLE t (id int PRIMARY KEY, a int UNIQUE, c int DEFAULT 2); CREATE VIEW v AS"
        " SELECT a FROM t"
    )
    rows = {catalog.resolve("t").table_id: 70}
    plan = plan_schema(catalog, wanted, rows=rows)
    told = [
        (each.sql, each.instant, each.backfills, bool(each.may_fail), each.loses)
        for request in plan.requests
        for each in request.statements
    ]
    assert told == [
        ("ALTER TABLE t ADD COLUMN c integer DEFAULT 2", True, False, False, ""),
        (
            *("ALTER TABLE t DROP COLUMN b", True, False, False),
            "the values of column b of table t",
        ),
        ("ALTER TABLE t ADD CONSTRAINT t_a_key UNIQUE (a)", False, True, True, ""),
        ("CREATE VIEW v (a) AS SELECT a FROM t", True, False, False, ""),
    ]
    assert plan.losses == ["the values of column b of table t"]
    assert [(request.table, request.rows) for request in plan.requests] == [("t", 70), ("", -1)]


def test_another_order_of_columns_is_a_note() -> None:
    plan = plan_schema(made(T), read_wanted("CREATE TABLE t (b text, a int, id int PRIMARY KEY)"))
    assert plan.requests == ()
    assert len(plan.notes) == 1
    assert "another order" in plan.notes[0]


REFUSED: Final = {
    "DROP TABLE t": ("says a step", 1),
    "CREATE TABLE t (a int);\nTRUNCATE t": ("says a step", 2),
    "CREATE TABLE t (a int);\n\nGRANT SELECT ON t TO x": ("owners, roles and privileges", 3),
    "CREATE TABLE t (a int);\nINSERT INTO t VALUES (1)": ("not supported as a schema change", 2),
    "CREATE TABLE t (a int);\nCREATE INDEX i ON u (a)": ("table 'u' does not exist", 2),
    "-- leasehold: renamde from x\nCREATE TABLE t (a int)": ("hint 'renamde from x'", 1),
    "CREATE TABLE t (a int);\n-- leasehold: renamed from x": ("behind everything", 2),
    "-- leasehold: using 1\nCREATE TABLE t (a int)": ("USING is for a column", 1),
    "-- leasehold: renamed from w\nCREATE VIEW v AS SELECT 1": ("needs no hint", 1),
}


def test_what_is_no_declared_schema_is_refused_with_its_line() -> None:
    found = {}
    for text, (words, _) in REFUSED.items():
        with pytest.raises(LeaseholdError) as caught:
            read_wanted(text)
        found[text] = (
            (words if words in caught.value.message else caught.value.message),
            line_of(text, caught.value),
        )
    assert found == REFUSED


def test_where_no_statement_leads_there_it_is_said_which_one_fails() -> None:
    before, wanted = made(T), read_wanted(T.replace("b text", "b int"))
    with pytest.raises(LeaseholdError) as caught:
        plan_schema(before, wanted)
    assert caught.value.detail["statement"] == "ALTER TABLE t ALTER COLUMN b TYPE integer"
    said = T.replace("b text", "b int -- leasehold: using b::int\n")
    assert lead(T, said) == ["ALTER TABLE t ALTER COLUMN b TYPE integer USING b::int"]


def test_no_type_is_made_up() -> None:
    with pytest.raises(LeaseholdError, match='type "mood" does not exist'):
        read_wanted("create table t (id int primary key, m mood)")


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ("CREATE TYPE mood AS ENUM ('ok');" + M.replace("'sad'", "'ok'"), "has the label 'sad'"),
        ("CREATE TYPE mood AS ENUM ('ok', 'sad');" + M, "in another order"),
    ],
)
def test_labels_that_rows_may_have_stay(wanted: str, words: str) -> None:
    with pytest.raises(FeatureNotSupported, match=words):
        lead(MOOD + M, wanted)


@pytest.mark.parametrize(
    "text",
    [
        "DROP TYPE mood",
        "ALTER TYPE mood RENAME TO other",
        "ALTER TYPE mood RENAME VALUE 'ok' TO 'fine'",
    ],
)
def test_a_step_of_a_type_is_no_declaration(text: str) -> None:
    with pytest.raises(FeatureNotSupported, match="says a step"):
        read_wanted(MOOD + text)


def test_a_living_table_with_an_enum_type_is_refused_by_name() -> None:
    """It would be taken for one that the text does not have, and go."""
    mood = enum_type(Enumeration(1, "mood", (Label("a", 1 << 24),)))
    table = Descriptor(1, "t", 1, (Column(1, "m", mood),), ())
    with pytest.raises(FeatureNotSupported, match=r"column t\.m"):
        load_catalog({1: table.to_wire()}, {}, {})
