"""DROP CONSTRAINT t_pkey, ADD PRIMARY KEY: what is planned, what is refused and how."""

from __future__ import annotations

import pytest

from leasehold.model.errors import (
    FeatureNotSupported,
    InvalidDefinition,
    Refused,
    StaleVersion,
    TableBusy,
    UnknownColumn,
)
from leasehold.model.records import DescriptorWrite, JobWrite, MinVersion
from leasehold.schema.catalog import Catalog
from leasehold.schema.descriptor import Descriptor
from leasehold.schema.elements import ALL_ROWS, Moment
from leasehold.schema.explain import explain
from leasehold.schema.job import Job, job_from_wire
from leasehold.schema.job_moves import turned_back
from leasehold.schema.plan import (
    CreateTablePlan,
    JobPlan,
    NothingToDo,
    Plan,
    moves,
    next_descriptors,
    plan,
)
from leasehold.schema.script import Script
from leasehold.schema.states import State
from leasehold.sql.ddl import parse_ddl
from leasehold.sql.statements import Explain

PARENT = "CREATE TABLE p (id integer PRIMARY KEY)"
TABLE = (
    "CREATE TABLE t (id integer PRIMARY KEY REFERENCES p, a integer, b text NOT NULL,"
    " c integer GENERATED ALWAYS AS (a + 1) STORED, d bytea, e numeric, CHECK (a > 0))"
)
CHILD = "CREATE TABLE u (id integer PRIMARY KEY, t integer REFERENCES t)"
CHANGE = "ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY "


def planned(sql: str, catalog: Catalog) -> Plan:
    statement = parse_ddl(sql)
    assert not isinstance(statement, Explain)
    return plan(statement, catalog)


def catalog_of(*statements: str) -> Catalog:
    catalog = Catalog()
    for sql in statements:
        made = planned(sql, catalog)
        assert isinstance(made, CreateTablePlan)
        write = DescriptorWrite(made.descriptor.table_id, 1, made.descriptor.to_wire())
        catalog.apply(write, 0, 0)
    return catalog


def job_of(sql: str, catalog: Catalog) -> Job:
    made = planned(sql, catalog)
    assert isinstance(made, JobPlan)
    return made.job


def step(catalog: Catalog, job: Job, number: int, *, fenced: bool = True) -> Job:
    """Publish a step of the job, and fence it."""
    versions = dict.fromkeys(job.versions, 2 + number)
    job = job_from_wire({**job.to_wire(), "step": number, "versions": versions})
    catalog.apply(JobWrite(job.job_id, job.to_wire()), 0, 0)
    for made in next_descriptors(job, catalog):
        catalog.apply(DescriptorWrite(made.table_id, made.version, made.to_wire()), 0, number + 2)
    if fenced:
        fence(catalog, job)
    return job


def fence(catalog: Catalog, job: Job) -> None:
    for table_id in job.tables:
        if moves(catalog, table_id):
            catalog.apply(MinVersion(table_id, catalog.newest(table_id).version), 0, 0)


def test_the_rows_go_over_to_a_table_with_the_other_key() -> None:
    catalog = catalog_of(PARENT, TABLE)
    job = job_of(CHANGE + "(b, a)", catalog)
    assert (job.kind, job.subject, job.tables) == (
        "change primary key",
        "primary key (b, a)",
        (2, 3),
    )
    assert [(s.label, s.fills, s.verifies) for s in job.steps] == [
        ("delete-only", (), ()),
        ("write-only", (9,), (9,)),
        ("public, write-only, delete-only", (), (9, 2)),
        ("write-only", (ALL_ROWS,), (ALL_ROWS,)),
        ("write-only, public", (), ()),
        ("delete-only", (), ()),
        ("absent, public", (), ()),
    ]
    assert job.point == 4
    assert job_from_wire(job.to_wire()) == job


def test_the_name_means_one_table_at_each_version() -> None:
    catalog = catalog_of(PARENT, TABLE)
    job = job_of(CHANGE + "(b)", catalog)
    for number in range(4):
        step(catalog, job, number)
        assert catalog.resolve("t").table_id == 2, number
    step(catalog, job, 4, fenced=False)
    assert [catalog.resolve("t", version).table_id for version in (5, 6)] == [2, 3]
    assert catalog.resolve("t").table_id == 3
    fence(catalog, job)
    assert catalog.resolve("t", 6).table_id == 3
    with pytest.raises(StaleVersion, match="lowest is 6"):
        catalog.resolve("t", 5)
    step(catalog, job, 5)
    last = step(catalog, job, 6)
    old, new = catalog.newest(2), catalog.resolve("t")
    assert (old.state, old.twin, new.twin, new.former) == (State.ABSENT, 0, 0, 2)
    assert [c.name for c in new.key_columns] == ["b"]
    assert [t.table_id for t in catalog.tables()] == [1, 3]
    assert not moves(catalog, 2), last


def test_elements_keep_their_ids_and_a_foreign_key_gets_an_index() -> None:
    """Its rows were found by the old key."""
    catalog = catalog_of(PARENT, TABLE)
    job = job_of(CHANGE + "(b)", catalog)
    for number in range(3):
        step(catalog, job, number)
    old, new = catalog.newest(2), catalog.newest(3)
    assert [c.element_id for c in new.columns] == [c.element_id for c in old.columns]
    (key,), (index,) = new.foreign_keys, new.indexes
    assert (key.index, index.name, index.columns) == (index.element_id, "t_id_idx", (1,))
    assert {i.element_id for i in old.indexes}.isdisjoint({index.element_id})
    assert new.checks == old.checks
    assert (old.twin, new.twin, new.version) == (3, 2, old.version)


def content(table: Descriptor) -> object:
    wire = table.to_wire()
    return {k: v for k, v in wire.items() if k not in ("version", "next_element_id", "since_lsn")}


@pytest.mark.parametrize("steps", range(1, 5))
def test_turned_back_all_is_as_before(steps: int) -> None:
    catalog = catalog_of(PARENT, TABLE)
    before = catalog.newest(2)
    job = job_of(CHANGE + "(a)", catalog)
    for number in range(steps):
        at = step(catalog, job, number)
    back = turned_back(job_from_wire({**at.to_wire(), "phase": "verifying"}), 1)
    for number in range(steps, len(back.steps)):
        step(catalog, back, number)
    assert content(catalog.newest(2)) == content(before)
    assert [t.table_id for t in catalog.tables()] == [1, 2]


def test_a_table_id_that_a_job_will_give_is_given_to_nobody_else() -> None:
    catalog = catalog_of(PARENT, TABLE)
    job = job_of(CHANGE + "(a)", catalog)
    catalog.apply(JobWrite(job.job_id, job.to_wire()), 0, 0)
    assert catalog.next_table_id() == 4


REFUSED = [
    ("ALTER TABLE t ADD PRIMARY KEY (a)", InvalidDefinition, "DROP CONSTRAINT t_pkey"),
    ("ALTER TABLE t DROP CONSTRAINT t_pkey", FeatureNotSupported, "add the other key"),
    (CHANGE + "(a), ADD PRIMARY KEY (b)", InvalidDefinition, "can have one primary key"),
    (CHANGE + "(a), DROP COLUMN b", FeatureNotSupported, "and nothing else"),
    (CHANGE + "(x)", UnknownColumn, "'x'"),
    (CHANGE + "(c)", InvalidDefinition, "generated"),
    (CHANGE + "(d)", FeatureNotSupported, "bytea"),
    (CHANGE + "(e)", FeatureNotSupported, r"numeric\(precision, scale\)"),
]


@pytest.mark.parametrize(("sql", "error", "words"), REFUSED)
def test_refused(sql: str, error: type[Refused], words: str) -> None:
    with pytest.raises(error, match=words):
        planned(sql, catalog_of(PARENT, TABLE))


def test_refused_under_a_foreign_key_of_another_table() -> None:
    with pytest.raises(FeatureNotSupported, match=r"foreign key 'u_t_fkey' of table 'u'"):
        planned(CHANGE + "(a)", catalog_of(PARENT, TABLE, CHILD))


def test_refused_for_a_column_under_a_lock() -> None:
    catalog = catalog_of(PARENT, TABLE)
    job = job_of("ALTER TABLE t ADD LOCK l COVERING (a)", catalog)
    for number in range(len(job.steps)):
        step(catalog, job, number)
    with pytest.raises(FeatureNotSupported, match="drop the lock first"):
        planned(CHANGE + "(a)", catalog)


def test_the_same_key_is_nothing_to_do() -> None:
    made = planned(CHANGE + "(id)", catalog_of(PARENT, TABLE))
    assert made == NothingToDo("(id) is the primary key already")


def test_both_tables_are_the_jobs() -> None:
    catalog = catalog_of(PARENT, TABLE)
    job = job_of(CHANGE + "(a)", catalog)
    catalog.apply(JobWrite(job.job_id, job.to_wire()), 0, 0)
    for sql in ("CREATE INDEX i ON t (a)", CHILD, CHANGE + "(b)", "DROP TABLE t"):
        with pytest.raises(TableBusy, match="change primary key"):
            planned(sql, catalog)


def test_a_table_of_the_same_request_is_made_with_its_key() -> None:
    script = Script.on(catalog_of(PARENT))
    moment = Moment(1, b"")
    for sql in (TABLE, CHANGE + "(a)"):
        statement = parse_ddl(sql)
        assert not isinstance(statement, Explain)
        if sql == TABLE:
            script.take(statement, sql, b"", moment, lambda _: 0)
            continue
        with pytest.raises(FeatureNotSupported, match="make it with that primary key"):
            script.take(statement, sql, b"", moment, lambda _: 0)


def test_the_plan_in_words() -> None:
    rows = explain(planned(CHANGE + "(a)", catalog_of(PARENT, TABLE)))
    assert [row.changes for row in rows] == [
        "index t_pkey1 → delete-only",
        "index t_pkey1 → write-only",
        (
            "table t → followed by the other; column a → NOT NULL enforced;"
            " index t_pkey1 → UNIQUE enforced; table t with the other key → delete-only"
        ),
        "table t with the other key → write-only",
        "table t → write-only; table t with the other key → public",
        "table t → delete-only",
        "table t → absent; table t with the other key → on its own",
    ]
    assert [row.step for row in rows if row.point_of_no_return] == [5]
