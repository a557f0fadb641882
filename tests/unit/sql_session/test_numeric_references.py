"""Foreign keys over numeric: looked up by key and by index, acted on, verified, and kept away from
processes that compare them otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from leasehold.catalog.job import Status
from leasehold.dev.database import DevDatabase
from leasehold.model.features import Feature, FeatureGate

MADE = (
    "create table p (id numeric(9, 0) primary key, u numeric(6, 2) unique);"
    " create table c (id int primary key, p numeric(9, 0) references p on delete cascade,"
    " u numeric(8, 2) references p (u))"
)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[DevDatabase]:
    dev = DevDatabase(tmp_path)
    try:
        dev.wait_ready()
        yield dev
        assert not dev.check().differences
    finally:
        dev.close()


def write(database: DevDatabase, op: str, table: str, key: object, **values: object) -> str:
    fields = {"table": table, "op": op, "key": {"id": key}, "on_conflict": "fail"}
    return database.ask(fields if op == "delete" else {**fields, "values": values}).outcome.code


def change(database: DevDatabase, sql: str) -> Status:
    job = database.wait_job(database.ask({"sql": sql}).outcome.answer["job"])
    assert job is not None
    return job.status


def test_a_value_is_found_whatever_its_digits(database: DevDatabase) -> None:
    assert database.ask({"sql": MADE}).committed
    assert write(database, "insert", "p", 1, u="1.5") == ""
    assert write(database, "insert", "p", "2.0", u="NaN") == ""
    assert write(database, "insert", "c", 1, p="1.2", u="1.504") == ""
    assert write(database, "insert", "c", 2, p=2, u="nan") == ""
    assert write(database, "insert", "c", 3, p=3) == "23503"
    assert write(database, "insert", "c", 3, u="1.51") == "23503"
    assert write(database, "update", "p", 1, u="1.50") == ""
    assert write(database, "update", "p", 1, u="1.51") == "23503"
    assert write(database, "delete", "p", 1) == "", "its child goes with it"
    assert database.get("c", (1,)) is None
    assert write(database, "update", "p", 2, u=7) == "23503", "found by the index of the child"


def test_rows_that_are_there_are_verified(database: DevDatabase) -> None:
    sql = (
        "create table p (id numeric(9, 0) primary key, u numeric(6, 2) unique);"
        " create table c (id int primary key, p numeric(9, 0), u numeric(8, 2))"
    )
    assert database.ask({"sql": sql}).committed
    assert write(database, "insert", "p", 1, u="1.5") == ""
    assert write(database, "insert", "c", 1, p=1, u="1.50") == ""
    for column, to, wrong in (("p", "id", 2), ("u", "u", "1.51")):
        assert write(database, "insert", "c", 2, **{column: wrong}) == ""
        add = f"alter table c add foreign key ({column}) references p ({to})"
        assert change(database, add) is Status.FAILED
        assert write(database, "delete", "c", 2) == ""
        assert change(database, add) is Status.SUCCEEDED
    assert write(database, "insert", "c", 3, u=9) == "23503"


def test_an_earlier_release_keeps_them_away(
    database: DevDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its master would find no row that refers."""
    master = database.cluster.master()
    assert master is not None
    assert master.node is not None
    changes = master.node.master.changes  # type: ignore[union-attr]
    earlier = FeatureGate(lambda number, now_ns: number < Feature.NUMERIC_REFERENCES)
    monkeypatch.setattr(changes, "features", earlier)
    assert database.ask({"sql": MADE}).outcome.code == "0A000"
    sql = "create table p (id numeric(9, 0) primary key, q numeric(9, 0))"
    assert database.ask({"sql": sql}).committed
    answer = database.ask({"sql": "alter table p add foreign key (q) references p"})
    assert (answer.outcome.code, "hint" in answer.outcome.detail) == ("0A000", True)
    monkeypatch.undo()
    assert database.ask({"sql": "alter table p add foreign key (q) references p"}).committed
