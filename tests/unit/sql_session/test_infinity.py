"""Infinite dates and timestamps as programs give and get them: in requests, in rows read by name,
in PEP 249; and kept away from processes that do not know them.

Method: a whole database in this process; its nodes are compared at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from leasehold.dbapi.module import Connection
from leasehold.dev.database import DevDatabase
from leasehold.model.features import Feature, FeatureGate
from leasehold.sql.planning.plan import Plans
from leasehold.sql_session.session import SqlSession

MADE: Final = (
    "create table t (d date primary key, p timestamp default '-infinity', z timestamptz,"
    " l date[], check (z > '-infinity')); create index on t (z, p)"
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


def ask(database: DevDatabase, op: str, key: Any, **values: Any) -> str:
    fields = {"table": "t", "op": op, "key": {"d": key}, "on_conflict": "fail"}
    answer = database.ask(fields if op == "delete" else {**fields, "values": values})
    return answer.outcome.code


def test_requests_give_and_rows_have_the_word(database: DevDatabase) -> None:
    assert database.ask({"sql": MADE}).committed
    assert ask(database, "insert", "infinity", z="infinity", l=["infinity", "2026-02-28"]) == ""
    assert ask(database, "insert", "infinity") == "23505"
    assert ask(database, "insert", "-infinity", z="-infinity") == "23514"
    assert ask(database, "insert", "2026-02-28", z="2026-02-28T10:00:00+00:00") == ""
    assert ask(database, "insert", "+infinity") == "22P02"
    found = database.get("t", ("infinity",))
    assert found == {
        "d": "infinity",
        "p": "-infinity",
        "z": "infinity",
        "l": ["infinity", date(2026, 2, 28)],
    }
    later = {"expr": "z + interval '1 day'"}
    assert ask(database, "update", "infinity", z=later, p={"expr": "d::timestamp"}) == ""
    found = database.get("t", ("infinity",))
    assert found is not None
    assert (found["p"], found["z"]) == ("infinity", "infinity")
    assert ask(database, "delete", "infinity") == ""
    assert database.get("t", ("infinity",)) is None


def test_pep_249_has_the_word(database: DevDatabase) -> None:
    assert database.ask({"sql": MADE}).committed
    session = SqlSession(database.sql_node(), Plans(), user="me")
    connection = Connection(session, lambda: None)
    row = (date(2026, 2, 28), "infinity", datetime(2026, 2, 28, tzinfo=UTC))
    connection.execute("insert into t values (%s, %s, %s), ('infinity', default, null)", row)
    found = connection.execute("select d, p, z from t order by d").fetchall()
    assert found == [row, ("infinity", "-infinity", None)]
    assert connection.execute("select d from t where d = %s", ("infinity",)).fetchall() == [
        ("infinity",)
    ]
    connection.commit()
    connection.close()


def test_it_waits_until_the_upgrade_is_finalized(
    database: DevDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process of an earlier release would end with it."""
    plain = MADE.replace("default '-infinity'", "").replace(", check (z > '-infinity')", "")
    assert database.ask({"sql": plain}).committed
    master = database.cluster.master()
    assert master is not None
    assert master.node is not None
    changes = master.node.master.changes  # type: ignore[union-attr]
    earlier = FeatureGate(level=lambda: Feature.INFINITE_TIMES - 1)
    monkeypatch.setattr(changes, "features", earlier)
    assert ask(database, "insert", "infinity") == "0A000"
    assert ask(database, "insert", "2026-02-28", z="infinity") == "0A000"
    assert ask(database, "insert", "2026-02-28", l=[None, "-infinity"]) == "0A000"
    assert ask(database, "insert", "2026-02-28", z=None) == ""
    assert ask(database, "update", "2026-02-28", p={"expr": "'infinity'::date"}) == "0A000"
    for text in (
        "alter table t alter p set default 'infinity'",
        "alter table t add column e timestamptz default '-infinity'",
        "alter table t add check (d < 'infinity')",
        "create index on t ((z = 'infinity'::timestamptz))",
        "create table u (id int primary key, d date default 'infinity')",
    ):
        answer = database.ask({"sql": text})
        assert answer.outcome.code == "0A000", text
        assert "finalize" in str(answer.outcome.detail), text
    assert database.ask({"sql": "alter table t alter p set default '2026-02-28'"}).committed
    monkeypatch.undo()
    assert ask(database, "insert", "infinity", z="infinity") == ""


def test_infinity_of_other_types_is_nobodys_business(
    database: DevDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    master = database.cluster.master()
    assert master is not None
    assert master.node is not None
    changes = master.node.master.changes  # type: ignore[union-attr]
    earlier = FeatureGate(level=lambda: Feature.INFINITE_TIMES - 1)
    monkeypatch.setattr(changes, "features", earlier)
    sql = "create table t (d text primary key, f float8 default 'Infinity', b bigint, l bigint[])"
    assert database.ask({"sql": sql}).committed
    number = 1 << 62
    assert ask(database, "insert", "infinity", f="-Infinity", b=number, l=[number]) == ""
