"""Several DDL statements in one request: what they come to together."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor, from_wire
from leasehold.catalog.edits import apply_edits
from leasehold.catalog.elements import CommitContext
from leasehold.catalog.job import job_from_wire
from leasehold.catalog.namespaces import NAMESPACES_FROM
from leasehold.catalog.sequence_ownership import list_own_sequences
from leasehold.catalog.states import State
from leasehold.model.errors import (
    DuplicateObject,
    FeatureNotSupported,
    Refused,
    TableBusy,
    UnknownTable,
)
from leasehold.model.records.log import DescriptorWrite, JobWrite, NamespaceWrite
from leasehold.model.records.log import TableTruncated as Truncated
from leasehold.model.records.requests import Operation, OperationKind
from leasehold.schema_change.plan.answers import join_answers
from leasehold.schema_change.plan.statement_batch import StatementBatch
from leasehold.sql.ddl.schema_statements import parse_statements
from leasehold.sql.syntax.statements import (
    Explain,
)
from tests.unit.schema_change.test_foreign_keys import TABLES, run

NEW = "CREATE TABLE n (id int PRIMARY KEY, a int, b text)"


@pytest.fixture
def catalog() -> Catalog:
    made = Catalog()
    for sql in TABLES:
        run(made, sql)
    return made


def script(catalog: Catalog, sql: str) -> tuple[StatementBatch, Any]:
    taken = StatementBatch.on(catalog)
    answers = []
    for statement, text in parse_statements(sql):
        assert not isinstance(statement, Explain)
        answers.append(taken.take(statement, text, b"id", CommitContext(7, b"s"), lambda _: 42))
    return taken, join_answers(tuple(answers))


def made(catalog: Catalog, *sql: str) -> Descriptor:
    """The one table that the statements make, as the log has it."""
    taken, _ = script(catalog, "; ".join(sql))
    (write,) = taken.writes
    assert isinstance(write, DescriptorWrite)
    table = from_wire(write.body)
    assert (table.version, table.table_id) == (write.version, write.table_id) == (1, 3)
    return table


def refusal(catalog: Catalog, sql: str) -> Refused:
    before = catalog.next_job_id(), catalog.next_table_id(), set(catalog.table_names())
    with pytest.raises(Refused) as caught:
        script(catalog, sql)
    assert (catalog.next_job_id(), catalog.next_table_id(), set(catalog.table_names())) == before
    return caught.value


def test_tables_that_refer_to_each_other_are_made_together(catalog: Catalog) -> None:
    sql = f"{NEW}; CREATE TABLE o (id int PRIMARY KEY, n int REFERENCES n);"
    taken, answer = script(catalog, sql)
    assert answer == {"statements": ({"table": 3}, {"table": 4})}
    first, second = (from_wire(w.body) for w in taken.writes if isinstance(w, DescriptorWrite))
    assert second.foreign_keys[0].parent == first.table_id
    assert taken.empty == {3, 4}
    assert taken.catalog.resolve("o").table_id == 4
    assert catalog.table_names() == {"p", "c"}, "the catalog of the log is untouched"


def test_what_follows_on_a_new_table_is_part_of_its_first_version(catalog: Catalog) -> None:
    table = made(
        catalog,
        NEW,
        "CREATE UNIQUE INDEX i ON n (a)",
        "ALTER TABLE n ADD COLUMN c int NOT NULL DEFAULT 7, ADD CHECK (c > a)",
        "ALTER TABLE n ALTER b SET NOT NULL, ADD FOREIGN KEY (a) REFERENCES p",
        "ALTER TABLE n ADD LOCK l COVERING (b)",
        "ALTER TABLE n RENAME b TO z",
        "ALTER TABLE n RENAME TO m",
    )
    assert (table.name, table.alias, table.names) == ("m", "", ("m",))
    assert {e.state for e in table.elements} == {State.PUBLIC}
    index = table.index("i")
    assert index is not None
    assert (index.unique, index.unique_enforced) == (True, False)
    assert (table.column("c").default, table.column("c").filled) == (7, False)
    assert (table.column("z").nullable, table.column("z").alias) == (False, "")
    assert table.column("z").locks == (table.row_locks[0].element_id,)
    assert table.lock_moves == (), "no row is older than the lock"
    assert table.foreign_keys[0].parent == 1


def test_what_a_new_table_loses_again_is_not_there(catalog: Catalog) -> None:
    table = made(catalog, NEW, "CREATE INDEX i ON n (a)", "DROP INDEX i", "ALTER TABLE n DROP b")
    assert [c.name for c in table.columns] == ["id", "a"]
    assert table.indexes == ()
    taken, answer = script(catalog, f"{NEW}; DROP TABLE n; {NEW}; DROP TABLE n")
    assert taken.writes == ()
    assert answer["statements"][1] == {"table": 3}


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE c RENAME t TO r; ALTER TABLE c ADD t text DEFAULT 'x'",
        "ALTER TABLE c RENAME t TO r; ALTER TABLE c ADD t text; ALTER TABLE c RENAME r TO s",
        "ALTER TABLE c RENAME t TO r; ALTER TABLE c ADD t int; ALTER TABLE c DROP r",
        "ALTER TABLE c DROP t; ALTER TABLE c ADD t int NOT NULL DEFAULT 1",
        "ALTER TABLE c DROP n; ALTER TABLE c ADD n timestamptz DEFAULT now()",
        "ALTER TABLE c ADD x int; ALTER TABLE c RENAME x TO y; ALTER TABLE c ADD x int DEFAULT 3",
    ],
)
def test_a_name_means_one_column_in_versions_that_may_be_in_use_together(
    catalog: Catalog, sql: str
) -> None:
    """A column has the name of one that goes, or is called otherwise, when no version that is in
    use finds that one by it."""
    taken, _ = script(catalog, sql)
    (job,) = taken.jobs.values()
    versions = [catalog.newest(job.table_id)]
    for step in job.steps:
        versions.append(apply_edits(versions[-1], job.edits_in(step, job.table_id)))
    for before, after in pairwise(versions):
        for name in ("t", "n", "x", "y", "r", "s"):
            found = {
                version.by_name.get(name) or version.by_alias.get(name)
                for version in (before, after)
            } - {None}
            assert len({column.element_id for column in found if column is not None}) < 2, name
    assert versions[-1].by_name.keys() >= {sql.rpartition(" ADD ")[2].split()[0]}


def test_jobs_on_different_tables_begin_together(catalog: Catalog) -> None:
    taken, answer = script(catalog, "CREATE INDEX i ON p (v); ALTER TABLE c ADD COLUMN e int")
    assert answer == {"statements": ({"job": 1}, {"job": 2})}
    assert [w.job_id for w in taken.writes if isinstance(w, JobWrite)] == [1, 2]
    assert [j.sql for j in taken.jobs.values()] == [
        "CREATE INDEX i ON p (v)",
        "ALTER TABLE c ADD COLUMN e int",
    ]
    assert {j.rows for j in taken.jobs.values()} == {42}
    assert taken.catalog.newest(1).version == catalog.newest(1).version, "rows see it as it is"


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE c ADD FOREIGN KEY (a) REFERENCES p; ALTER TABLE p DROP v",
        "ALTER TABLE p ADD COLUMN e int; TRUNCATE p",
    ],
)
def test_what_two_jobs_of_a_request_can_not_share(catalog: Catalog, sql: str) -> None:
    error = refusal(catalog, sql)
    assert isinstance(error, FeatureNotSupported)
    assert "earlier statement of this request" in error.message


def test_a_job_of_somebody_else_is_named_as_ever(catalog: Catalog) -> None:
    running, _ = script(catalog, "CREATE INDEX i ON p (v)")
    (write,) = running.writes
    catalog.apply(write, 1, 1)
    assert isinstance(refusal(catalog, f"{NEW}; ALTER TABLE p DROP v"), TableBusy)


def test_truncated_and_then_changed(catalog: Catalog) -> None:
    taken, answer = script(catalog, f"{NEW}; TRUNCATE p, c, n; CREATE INDEX i ON p (v); TRUNCATE c")
    assert answer["statements"][1] == {"truncated": ("p", "c", "n")}
    assert [type(w) for w in taken.writes] == [DescriptorWrite, Truncated, Truncated, JobWrite]
    assert taken.empty == {1, 2, 3}
    assert taken.jobs[1].rows == 0


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        (f"{NEW}; {NEW}", DuplicateObject),
        (f"{NEW}; CREATE INDEX i ON n (nothing)", Refused),
        ("CREATE INDEX n ON p (v); " + NEW, DuplicateObject),
        ("ALTER TABLE p RENAME TO n; " + NEW, DuplicateObject),
    ],
)
def test_refused_whole(catalog: Catalog, sql: str, error: type[Refused]) -> None:
    assert isinstance(refusal(catalog, sql), error)


def test_notices_stand_with_their_statement(catalog: Catalog) -> None:
    _, answer = script(catalog, "DROP TABLE IF EXISTS x; TRUNCATE p RESTART IDENTITY")
    first, second = answer["statements"]
    assert "nothing was done" in first["notice"]
    assert "nothing to restart" in second["notice"]


def test_rows_of_a_table_that_is_dropped(catalog: Catalog) -> None:
    taken, _ = script(catalog, "DROP TABLE c")
    row = Operation(OperationKind.INSERT, "c", (1,), {})
    with pytest.raises(UnknownTable, match="dropped by this very request"):
        taken.refuse_dropped((row,))
    taken.refuse_dropped((row._replace(table="p"),))


def test_no_row_of_a_new_table_is_older_than_its_columns(catalog: Catalog) -> None:
    """A NULL that is written at version 1 is one; no image of before means the default."""
    table = made(catalog, NEW, "ALTER TABLE n ADD COLUMN c int DEFAULT 7")
    assert table.by_name["c"].default == 7
    assert table.missing == {}


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE SEQUENCE q; ALTER SEQUENCE q RESTART WITH 5; DROP SEQUENCE q",
        "CREATE TABLE n (id serial PRIMARY KEY); ALTER SEQUENCE n_id_seq RESTART; DROP TABLE n",
    ],
)
def test_a_sequence_that_begins_anew_and_goes_again(catalog: Catalog, sql: str) -> None:
    taken, _ = script(catalog, sql)
    assert (taken.writes, taken.opening) == ((), ())


TOGETHER = {
    "create sequence s; create table n (c int); alter sequence s owned by n.c": (
        ("s", 1, 1),
        ("c", True, ""),
    ),
    "create sequence s; create table n (c int);"
    " alter sequence s increment 2 owned by n.c restart with 7": (("s", 2, 7), ("c", True, "")),
    "create sequence s; create table n (c int default nextval('s'));"
    " alter sequence s rename to r": (
        ("r", 1, 1),
        ("c", False, "nextval('r'::regclass)"),
    ),
    "create table n (c int generated always as identity);"
    " alter table n alter c set increment 3 restart with 8": (
        ("n_c_seq", 3, 8),
        ("c", True, "nextval('n_c_seq'::regclass)"),
    ),
}


@pytest.mark.parametrize("sql", TOGETHER)
def test_a_sequence_and_its_column_that_one_request_makes_are_altered_at_once(sql: str) -> None:
    """As pg_dump writes them, in one transaction."""
    taken, _ = script(Catalog(), sql)
    written = [w for w in taken.writes if isinstance(w, DescriptorWrite)]
    assert len(written) == len(taken.writes) == 2
    tables = [from_wire(w.body) for w in written]
    (sequence,) = [t for t in tables if t.sequence is not None]
    (column,) = [t.columns[0] for t in tables if t.sequence is None]
    assert sequence.sequence is not None
    assert column.numbering is not None
    assert column.numbering.sequence == sequence.table_id
    begins, _ = taken.begun[sequence.table_id]
    assert TOGETHER[sql] == (
        (sequence.name, sequence.sequence.increment, begins),
        (column.name, column.numbering.owned, column.default_expression),
    )
    assert not sequence.alias


GOING_AGAIN = {
    "create table n (c int generated always as identity); alter table n alter c drop identity": {
        "n": ()
    },
    "create sequence s; create table n (c int default nextval('s')); drop sequence s cascade": {
        "n": ()
    },
    "create table n (c serial); alter table n add d int default nextval('n_c_seq');"
    " drop sequence n_c_seq cascade": {"n": ()},
    "create table n (c serial, d int); alter table n drop c": {"n": ()},
    "create sequence s; create table n (c int default nextval('s'));"
    " create table m (d int default nextval('s')); drop sequence s cascade": {"m": (), "n": ()},
    "create sequence s; create table n (c serial); alter sequence s owned by n.c;"
    " alter table n drop c": {"n": ()},
    "create sequence s; create table n (c int generated always as identity);"
    " alter sequence s owned by n.c; alter table n alter c drop identity": {"n": ("s",), "s": ()},
    "create sequence s; create table n (c int generated always as identity);"
    " alter sequence s owned by n.c; drop table n": {},
}


@pytest.mark.parametrize("sql", GOING_AGAIN)
def test_a_sequence_that_one_request_makes_goes_by_another_statement_of_it(sql: str) -> None:
    """What is left, and which sequences go with it."""
    taken, _ = script(Catalog(), sql)
    written = [from_wire(w.body) for w in taken.writes if isinstance(w, DescriptorWrite)]
    assert len(written) == len(taken.writes)
    names = {table.table_id: table.name for table in written}
    assert GOING_AGAIN[sql] == {
        t.name: tuple(names[s] for s in list_own_sequences(t)) for t in written
    }
    assert not any(c.draws_from for t in written for c in t.columns)
    begun = {t.table_id for t in written if t.sequence is not None}
    assert {each.table_id for each in taken.own_sequences} == begun


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        (
            "create table n (c int); alter sequence p_s owned by n.c",
            "'n', which the same request makes, together with 'p', which was there before it",
        ),
        (
            "create table n (a int primary key); alter table n drop constraint n_pkey",
            "make it with that primary key",
        ),
    ],
)
def test_what_one_request_makes_and_changes_together_with_what_was_there(
    sql: str, words: str
) -> None:
    catalog = Catalog()
    before, _ = script(catalog, "create sequence s; create table p (v serial)")
    for write in before.writes:
        catalog.apply(write, 1, 0)
    error = refusal(catalog, sql.replace("p_s", "p_v_seq"))
    assert error.sqlstate == "0A000"
    assert words in error.message


@pytest.mark.parametrize("keeps", [True, False])
def test_that_a_key_is_deferred_is_kept_once_all_read_it(catalog: Catalog, keeps: bool) -> None:
    taken = StatementBatch.on(catalog)
    taken.keeps_deferred = keeps
    sql = (
        "CREATE TABLE n (id int PRIMARY KEY, a int REFERENCES n DEFERRABLE INITIALLY DEFERRED,"
        " b int REFERENCES n, FOREIGN KEY (b) REFERENCES n INITIALLY DEFERRED);"
        " ALTER TABLE n ADD FOREIGN KEY (a) REFERENCES n INITIALLY DEFERRED;"
        " ALTER TABLE n ADD COLUMN c int REFERENCES n INITIALLY DEFERRED"
    )
    for statement, text in parse_statements(sql):
        assert not isinstance(statement, Explain)
        taken.take(statement, text, b"id", CommitContext(7, b"s"), lambda _: 0)
    (write,) = taken.writes
    assert isinstance(write, DescriptorWrite)
    said = [body.get("deferred", False) for body in write.body["foreign_keys"]]
    assert said == ([True, False, True, True, True] if keeps else [False] * 5)
    assert [key.deferred for key in from_wire(write.body).foreign_keys] == said


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("ALTER SCHEMA app RENAME TO new; CREATE TABLE new.u (id int)", "renames schema 'app'"),
        ("ALTER SCHEMA app RENAME TO new; DROP TABLE p", "renames schema 'app'"),
        ("CREATE TABLE app.u (id int); ALTER SCHEMA app RENAME TO new", "changes table"),
        ("ALTER TABLE app.t ADD COLUMN b int; ALTER SCHEMA app RENAME TO new", "changes table"),
    ],
)
def test_a_schema_whose_tables_are_renamed_stands_by_itself(
    catalog: Catalog, sql: str, words: str
) -> None:
    """Its new name is in force when its job has ended, behind this request's commit."""
    catalog.apply(NamespaceWrite(NAMESPACES_FROM + 1, {"name": "app"}), 0, 0)
    run(catalog, "CREATE TABLE app.t (id int PRIMARY KEY)")
    with pytest.raises(FeatureNotSupported, match=words):
        script(catalog, sql)
    taken, answer = script(catalog, "ALTER SCHEMA app RENAME TO new")
    (write,) = taken.writes
    assert isinstance(write, JobWrite)
    assert answer == {"job": write.job_id}
    assert job_from_wire(write.body).renames == (NAMESPACES_FROM + 1, "new")
