"""Goal: a column that numbers itself comes to a table that is there, and its sequence with it.

Method: the versions that a job makes of both, forth and back; what else may be asked meanwhile. How
rows get their numbers: tests/unit/transaction/test_sequence_operations.py; with writers, faults and
roll-backs at every step: tests/matrix.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor, from_wire
from leasehold.catalog.job import Job, Phase, Status
from leasehold.catalog.states import State
from leasehold.events.avro_schema import avro_schema
from leasehold.events.json_schema import json_schema
from leasehold.events.public_reading import decode_event
from leasehold.events.public_schema import encode_event
from leasehold.events.version_diff import diff
from leasehold.model.errors import Refused
from leasehold.model.records.events import VersionEvent
from leasehold.model.records.log import CatalogWrite, DescriptorWrite, JobWrite, MinVersion
from leasehold.schema_change.job.next_versions import next_descriptors
from leasehold.schema_change.job.transitions import turn_back
from leasehold.schema_change.plan.explain import explain
from leasehold.schema_change.plan.plan import plan
from leasehold.schema_change.plan.results import CreateTablePlan, JobPlan, Plan
from leasehold.sql.ddl.schema_statements import parse_ddl
from leasehold.sql.syntax.statements import (
    Explain,
)

SERIAL = "alter table t add c serial"
UNIQUE = "alter table t add c bigint generated always as identity unique check (c > 0)"


class Database:
    """What one statement after the other makes of a catalog; jobs go on when they are told to."""

    def __init__(self, *statements: str) -> None:
        self.catalog = Catalog()
        self.lsn = 0
        for text in statements:
            self.ask(text)

    def planned(self, text: str) -> Plan:
        statement = parse_ddl(text)
        assert not isinstance(statement, Explain)
        return plan(statement, self.catalog, sql=text)

    def ask(self, text: str) -> Job | None:
        planned = self.planned(text)
        if isinstance(planned, CreateTablePlan):
            for made in (*planned.sequences, planned.descriptor):
                self.write(DescriptorWrite(made.table_id, made.version, made.to_wire()))
            return None
        assert isinstance(planned, JobPlan), planned
        self.keep(planned.job)
        return planned.job

    def write(self, *writes: CatalogWrite) -> None:
        self.lsn += 1
        for write in writes:
            self.catalog.apply(write, self.lsn, self.lsn)

    def keep(self, job: Job) -> Job:
        self.write(JobWrite(job.job_id, job.to_wire()))
        return job

    def publish(self, job: Job) -> Job:
        """The version of its step is out, drained and fenced."""
        made = next_descriptors(job, self.catalog)
        self.write(*(DescriptorWrite(d.table_id, d.version, d.to_wire()) for d in made))
        self.write(*(MinVersion(d.table_id, d.version) for d in made))
        return job

    def forth(self, job: Job, steps: int) -> Job:
        for number in range(steps):
            versions = {t: v + bool(number) for t, v in job.versions.items()}
            job = self.publish(replace(job, step=number, versions=versions))
        return job

    def named(self, name: str) -> Descriptor | None:
        found = (table for table in self.catalog.tables() if table.name == name)
        return next(found, None)


@pytest.fixture
def database() -> Database:
    return Database("create table t (id int primary key)")


def states(database: Database) -> tuple[State, State]:
    """Of the column, and of its sequence."""
    table, sequence = database.named("t"), database.named("t_c_seq")
    assert table is not None
    column = next((c for c in table.columns if c.name == "c"), None)
    return (
        State.ABSENT if column is None else column.state,
        State.ABSENT if sequence is None else sequence.state,
    )


@pytest.mark.parametrize("text", [SERIAL, UNIQUE])
def test_who_sees_the_column_can_draw_and_nobody_else(database: Database, text: str) -> None:
    """⚠ A writer that finds the column takes numbers for it, in each of its versions."""
    job = database.ask(text)
    assert job is not None
    seen = []
    for number in range(len(job.steps)):
        job = database.forth(job, 1) if not number else database.publish(advanced(job))
        seen.append(states(database))
    public = [pair for pair in seen if State.PUBLIC in pair]
    assert public == [(State.PUBLIC, State.PUBLIC)] * len(public)
    assert seen[0] == (State.DELETE_ONLY, State.WRITE_ONLY)
    assert seen[1] == (State.WRITE_ONLY, State.WRITE_ONLY), "old rows are numbered"
    assert job.steps[1].backfills, "by a backfill"
    assert public, "in the end"


def advanced(job: Job) -> Job:
    versions = {t: v + 1 for t, v in job.versions.items()}
    return replace(job, step=job.step + 1, versions=versions)


@pytest.mark.parametrize(
    ("text", "taken"), [*((SERIAL, n) for n in (1, 2)), *((UNIQUE, n) for n in (1, 2, 3))]
)
def test_turned_back_it_leaves_nothing(database: Database, text: str, taken: int) -> None:
    before = database.named("t")
    job = database.ask(text)
    assert job is not None
    assert taken <= job.point
    job = database.forth(job, 1)
    for _ in range(taken - 1):
        job = database.publish(advanced(job))
    back = turn_back(replace(job, phase=Phase.BACKFILLING), 1)
    while True:
        database.publish(back)
        if back.step + 1 == len(back.steps):
            break
        back = advanced(back)
    after = database.named("t")
    assert before is not None
    assert after is not None
    assert after.columns == before.columns
    assert database.named("t_c_seq") is None


def test_cancelled_before_its_first_version_it_has_made_nothing(database: Database) -> None:
    job = database.ask(SERIAL)
    assert job is not None
    database.keep(turn_back(job, 1))
    assert states(database) == (State.ABSENT, State.ABSENT)
    again = database.ask(SERIAL)
    assert again is not None
    assert again.tables[1] not in job.tables, "an id is given once"


def test_ids_and_names_are_taken_from_the_statement_on(database: Database) -> None:
    database.ask("create table u (id int primary key)")
    job = database.ask("alter table t add c serial, add d serial")
    assert job is not None
    other = database.ask("alter table u add c serial")
    assert other is not None
    assert len({*job.tables, *other.tables}) == 5
    with pytest.raises(Refused) as error:
        database.ask("create sequence t_c_seq")
    assert error.value.sqlstate == "42P07"


def busy() -> Iterator[tuple[str, ...]]:
    yield SERIAL, "create table u (d bigint default nextval('t_c_seq'))"
    yield SERIAL, "drop sequence t_c_seq"
    yield "alter table t add c int default nextval('s')", "drop sequence s"


@pytest.mark.parametrize(("text", "other"), [*busy()])
def test_what_a_job_draws_from_stays_as_it_is(database: Database, text: str, other: str) -> None:
    """⚠ Turned back, the job takes its sequence away; a default of another table's would draw from
    nothing."""
    database.ask("create sequence s")
    job = database.ask(text)
    assert job is not None
    for number in range(job.point + 1):
        with pytest.raises(Refused) as error:
            database.ask(other)
        assert error.value.sqlstate in ("55006", "42P01"), error.value
        job = database.forth(job, 1) if not number else database.publish(advanced(job))


@pytest.mark.parametrize(
    "text",
    ["alter n drop default", "alter n set default 5", "alter n set default nextval('r')"],
)
def test_what_a_column_drew_from_stays_until_nobody_draws(text: str) -> None:
    """⚠ Whoever is at the version before draws from it still, as long as the job is drained."""
    database = Database(
        "create sequence s", "create sequence r", "create table t (n int default nextval('s'))"
    )
    job = database.ask(f"alter table t {text}")
    assert job is not None
    for place in (job, database.forth(job, 1)):
        assert not place.status.ended
        for other in ("drop sequence s", "drop sequence s cascade"):
            with pytest.raises(Refused) as error:
                database.ask(other)
            assert error.value.sqlstate == "55006", error.value
    database.keep(replace(job, phase=Phase.DONE, status=Status.SUCCEEDED))
    assert database.ask("drop sequence s") is not None


def test_a_default_goes_with_its_column_and_sequence() -> None:
    database = Database("create table t (id int primary key, n serial)")
    planned = database.planned("alter table t alter n drop default, drop n")
    assert isinstance(planned, JobPlan)
    assert planned.job.needs == ()
    assert len(planned.job.tables) == 2


def test_explained(database: Database) -> None:
    first, second, last = explain(database.planned(SERIAL), rows=10)
    assert first.changes == "column c → delete-only; sequence t_c_seq → write-only"
    assert second.changes == "column c → write-only"
    assert second.rows == 10
    assert last.changes == "column c → public; sequence t_c_seq → public"
    assert last.point_of_no_return


WAYS = {
    "drop sequence t_c_seq cascade": (
        "column c → default dropped, has none for its own; column k → default dropped",
        "sequence t_c_seq → delete-only",
        "sequence t_c_seq → absent",
    ),
    "alter sequence t_c_seq rename to r": (
        (
            "sequence r → named r, t_c_seq still resolves; column c → default set;"
            " column k → default set"
        ),
        "sequence r → t_c_seq resolves no more",
    ),
    "alter sequence s owned by t.n": ("column n → has its sequence for its own",),
    "alter sequence t_c_seq owned by u.k": (
        "column k → has its sequence for its own; column c → has none for its own",
    ),
    "alter sequence s cache 3 owned by t.n increment 2 restart with 9": (
        "column n → has its sequence for its own; sequence s → other options",
    ),
    "alter sequence t_c_seq restart owned by u.k": (
        (
            "column k → has its sequence for its own; column c → has none for its own; sequence"
            " t_c_seq → other options"
        ),
    ),
    "alter sequence s owned by t.c": ("column c → has its sequence for its own",),
    "alter sequence s owned by t.i cache 3": (
        "column i → has its sequence for its own; sequence s → other options",
    ),
    "alter sequence t_c_seq owned by t.c cache 3": ("sequence t_c_seq → other options",),
    "alter sequence t_c_seq owned by none": ("column c → has none for its own",),
    "alter table t alter n set default nextval('s')": ("column n → default set",),
    "alter table t alter n add generated always as identity": (
        "sequence t_n_seq → write-only",
        "column n → default set, has its sequence for its own; sequence t_n_seq → public",
    ),
    "alter table t alter i set generated by default": ("column i → BY DEFAULT",),
    "alter table t alter i restart": ("sequence t_i_seq: goes on from 1",),
    "alter table t alter i drop identity": (
        "column i → default dropped, has none for its own",
        "sequence t_i_seq → delete-only",
        "sequence t_i_seq → absent",
    ),
}


@pytest.mark.parametrize("text", WAYS)
def test_what_is_done_to_a_sequence_that_is_there(text: str) -> None:
    """⚠ What draws from one stops before it goes."""
    database = Database(
        "create table t (id int primary key, c bigserial, i int generated always as identity,"
        " n int not null)",
        "create table u (k int default nextval('t_c_seq'))",
        "create sequence s",
    )
    assert tuple(row.changes for row in explain(database.planned(text))) == WAYS[text]


def test_what_is_left_of_several() -> None:
    database = Database("create table t (c serial)", "create sequence s")
    job = database.ask("alter sequence s owned by t.c")
    assert job is not None
    database.keep(replace(database.forth(job, 1), phase=Phase.DONE, status=Status.SUCCEEDED))
    planned = database.planned("alter sequence t_c_seq owned by none")
    (row,) = explain(planned)
    assert row.changes == "column c → has 1 sequence for its own"


def test_version_events_tell_of_the_column_in_every_form(database: Database) -> None:
    """Readers of images need no default for it: each row is told with its number before."""
    job = database.ask(SERIAL)
    assert job is not None
    for number in range(len(job.steps)):
        job = database.forth(job, 1) if not number else database.publish(advanced(job))
    _, *versions = database.catalog.versions(job.table_id)
    for version in versions:
        event = VersionEvent(
            1, "t", version.version, 40, version.modified_us, version.to_wire(), 0, ""
        )
        assert from_wire(decode_event(encode_event(event)).body) == version
    before, after = versions[-2:]
    (change,) = diff(before, after)
    assert change.name == "c"
    assert "not null default nextval('t_c_seq'::regclass)" in change.detail
    assert "default" not in avro_schema(after)["fields"][-1]
    assert json_schema(after)["properties"]["c"]["type"] == "integer"


def test_of_another_sequence_every_row_gets_a_number_too(database: Database) -> None:
    database.ask("create sequence s")
    planned = database.planned("alter table t add c int default nextval('s')")
    assert isinstance(planned, JobPlan)
    assert planned.made == ()
    assert planned.job.steps[1].backfills
    sequence = database.named("s")
    assert sequence is not None
    assert planned.job.needs == (sequence.table_id,)
