"""A database inside this process: requests, schema changes, coherent reads, checks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from leasehold.adapters.sqlite.access import MEMBERSHIP, OBJECT, ROLE
from leasehold.catalog.job import Status
from leasehold.dev.database import DevDatabase
from leasehold.model.errors import InvalidText, MalformedRequest, UnknownTable
from leasehold.model.ids import format_request_id

TABLE = {"sql": "create table t (id bigint primary key, n bigint not null)"}


def insert(key: int, n: int = 0) -> dict[str, object]:
    return {"table": "t", "op": "insert", "key": {"id": key}, "values": {"n": n}}


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def database(tmp_path: Path, told: list[str]) -> Iterator[DevDatabase]:
    dev = DevDatabase(tmp_path, told.append)
    try:
        dev.wait_ready()
        yield dev
    finally:
        dev.close()


def test_requests_are_answered_and_read(database: DevDatabase) -> None:
    assert database.ask(TABLE).committed
    assert database.ask(insert(1, 5)).committed
    assert database.get("t", (1,)) == {"id": 1, "n": 5}
    assert database.get("t", {"id": 2}) is None
    again = database.ask(insert(1, 6))
    assert (again.committed, again.outcome.code) == (False, "23505")
    with pytest.raises(UnknownTable):
        database.get("nope", (1,))


def test_the_same_id_gets_the_same_answer(database: DevDatabase) -> None:
    database.ask(TABLE)
    request_id = format_request_id(database.cluster.fresh_id())
    first = database.ask({**insert(1), "id": request_id})
    second = database.ask({**insert(1), "id": request_id})
    assert first == second
    assert first.request_id == request_id
    with pytest.raises(InvalidText):
        database.ask({**insert(1), "id": "7"})


@pytest.mark.parametrize("number", [1 << 70, -(1 << 70), 1 << 63])
def test_a_number_of_more_than_64_bits_is_refused(database: DevDatabase, number: int) -> None:
    row = {"table": "t", "op": "insert", "key": {"id": number}, "values": {}}
    try:
        assert database.ask(row).outcome.code == "08P01"
    except MalformedRequest:
        assert abs(number) > 1 << 64, "it has no form in MessagePack"


def test_a_conflict_is_retried_by_the_pipeline(database: DevDatabase) -> None:
    database.ask(TABLE)
    database.ask(insert(1, 5))
    added = {"table": "t", "op": "update", "key": {"id": 1}, "values": {"n": {"expr": "n + 1"}}}
    answer = database.ask({**added, "expect": 1})
    assert answer.committed
    assert answer.outcome.attempt == 2
    assert database.get("t", (1,)) == {"id": 1, "n": 6}


def test_a_schema_change_is_told_step_by_step(database: DevDatabase, told: list[str]) -> None:
    database.ask(TABLE)
    for key in range(20):
        database.ask(insert(key, key))
    answer = database.ask(
        {"sql": "alter table t add column gate uuid not null default gen_random_uuid()"}
    )
    job = database.wait_job(answer.outcome.answer["job"])
    assert job is not None
    assert job.status is Status.SUCCEEDED
    assert job.rows_applied == 20
    gates = {(database.get("t", (key,)) or {}).get("gate") for key in range(20)}
    assert (len(gates), None in gates) == (20, False)
    assert [line for line in told if "gate" in line] == [
        "t version 2: column gate added, delete-only (uuid not null default gen_random_uuid())",
        "t version 3: column gate: delete-only → write-only",
        "t version 4: column gate: write-only → public",
    ]
    assert told[-1] == "job 1 succeeded, 20 rows"


def test_the_master_decides_defaults_and_computes_what_is_generated(
    database: DevDatabase,
) -> None:
    """Old rows have the statement's time and a value each; new ones their commit's; all follow."""
    database.ask(TABLE)
    for key in range(5):
        database.ask(insert(key, key))
    answer = database.ask(
        {
            "sql": "alter table t add column at timestamptz not null default now(),"
            " add column u uuid default gen_random_uuid() unique,"
            " add column twice bigint generated always as (n * 2) stored"
        }
    )
    job = database.wait_job(answer.outcome.answer["job"])
    assert job is not None
    assert (job.status, job.error) == (Status.SUCCEEDED, "")
    database.ask(insert(5, 5))
    database.ask({"table": "t", "op": "update", "key": {"id": 1}, "values": {"n": 7}})
    rows = [database.get("t", (key,)) or {} for key in range(6)]
    times = [row["at"] for row in rows]
    assert len({*times[:5]}) == 1
    assert times[5] > times[0]
    assert len({row["u"] for row in rows} - {None}) == 6
    assert [row["twice"] for row in rows] == [0, 14, 4, 6, 8, 10]
    assert database.check().differences == ()


def test_a_request_may_make_a_table_and_put_rows_whose_values_the_master_decides(
    database: DevDatabase,
) -> None:
    """One moment for all of its rows; statements on a table of its own take all steps at once."""
    answer = database.ask(
        {
            "sql": "create table x (id bigint primary key, at timestamptz default now());"
            " alter table x add column u uuid not null default gen_random_uuid(),"
            " add column g date generated always as ((at at time zone 'UTC')::date) stored",
            "transaction": [
                {"table": "x", "op": "insert", "key": {"id": n}, "values": {}} for n in (1, 2)
            ],
        }
    )
    assert answer.committed, answer.outcome.message
    one, two = (database.get("x", (n,)) or {} for n in (1, 2))
    assert one["at"] == two["at"]
    assert one["u"] != two["u"]
    assert one["g"] == one["at"].date()
    assert database.check().differences == ()


def test_a_check_compares_every_node(database: DevDatabase) -> None:
    database.ask(TABLE)
    database.ask(insert(1, 5))
    assert database.check() == (3, 1, 1, ())
    damaged = database._stores["r2"]
    with database._pace.held():
        damaged._connection.execute("update t1 set c2 = 6")
    found = database.check()
    assert found.differences == ("t: m1 and r2 hold different rows",) or (
        found.differences == ("t: r1 and r2 hold different rows",)
    )


def test_a_check_compares_roles_and_privileges(database: DevDatabase) -> None:
    """A node on which a role may more than on the others was told to be right."""
    for sql in ("create role reader", "create role writer in role reader", TABLE["sql"],
                "grant select on t to reader"):  # fmt: skip
        assert database.ask({"sql": sql}).committed
    assert database.check().differences == ()
    damaged = database._stores["r2"]._connection
    for kind in (ROLE, MEMBERSHIP, OBJECT):
        with database._pace.held():
            damaged.execute("update access set first = first + 5000 where kind = ?", (kind,))
        (differs,) = database.check().differences
        assert differs.startswith("roles and privileges: ")
        assert "r2" in differs
        with database._pace.held():
            damaged.execute("update access set first = first - 5000 where kind = ?", (kind,))
        assert database.check().differences == ()


def test_what_ends_the_thread_reaches_the_caller(database: DevDatabase) -> None:
    def fails() -> None:
        raise RuntimeError("for this test")

    with database._pace.held():
        database.cluster.scheduler.later(0, fails)
    with pytest.raises(RuntimeError, match="for this test"):
        database.ask(TABLE)
