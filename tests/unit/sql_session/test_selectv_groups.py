"""SELECTV whose rows are made of many: each row that FROM and WHERE leave is verified at COMMIT."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from leasehold.dev.database import DevDatabase
from tests.support.sql_session.sql_client import SqlClient, database_with


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevDatabase]:
    with database_with(
        tmp_path_factory,
        "create table t (id int primary key, g int, a int)",
        "create table u (id int primary key, t int)",
    ) as made:
        yield made


@pytest.fixture
def two(database: DevDatabase) -> Iterator[tuple[SqlClient, SqlClient]]:
    one, other = SqlClient(database), SqlClient(database)
    one.ask("insert into t select n, n % 3, n from generate_series(1, 9) as n")
    one.ask("insert into u values (1, 1), (2, 2)")
    yield one, other
    one.ask("rollback; delete from t; delete from u")
    one.session.close()
    other.session.close()


SUMS = "selectv g, sum(a) from t where id < 7 group by g having sum(a) > 0 order by g limit 1"
BOTH = "selectv id from t where id < 3 union select t from u"
LATEST = (
    "selectv t.id, l.id from t left join lateral (select u.id from u where u.t = t.id"
    " order by u.id limit 1) l on true where t.id = 1"
)
ASKED = [
    (SUMS, "update t set a = 0 where id = 2", "40001"),
    (SUMS, "update t set a = 0 where id = 8", "00000"),
    (SUMS, "insert into t values (0, 1, 1)", "00000"),  # rows that come: serializable's
    ("selectv count(*) from t where g = 1", "delete from t where id = 4", "40001"),
    ("selectv count(*) from t where g = 1", "delete from t where id = 5", "00000"),
    ("selectv distinct g from t where id < 3", "update t set a = 9 where id = 1", "40001"),
    ("selectv rank() over (order by a) from t where id < 3", "delete from t where id = 2", "40001"),
    (BOTH.replace("union select", "union selectv"), "delete from t where id = 2", "40001"),
    (BOTH, "delete from u where id = 2", "40001"),
    (BOTH, "delete from t where id = 4", "00000"),
    (
        "selectv g from t where id = 1 union all (select id from u order by id limit 1)",
        "update u set t = 7 where id = 2",
        "40001",
    ),
    ("selectv t from u except values (1) order by 1", "update u set t = 7 where id = 2", "40001"),
    (
        "selectv count(*) from (select * from t where id < 3 union all select 1, 2, 3) as s",
        "update t set a = 0 where id = 2",
        "40001",
    ),
    (
        "selectv s.id, u.id from (select id from t where id < 3) as s, u where u.t = s.id",
        "update u set t = 7 where id = 1",
        "40001",
    ),
    (
        "selectv s.id from (select id from t where id < 3) as s where s.id = 1",
        "delete from t where id = 3",
        "00000",
    ),
    (
        "selectv max(u.id) from t left join u on u.t = t.id where t.id < 5",
        "update u set t = 7 where id = 2",
        "40001",
    ),
    (
        "selectv max(u.id) from t left join u on u.t = t.id where t.id = 1",
        "update u set t = 7 where id = 2",
        "00000",
    ),
    (LATEST, "update u set t = 7 where id = 1", "40001"),
    (LATEST, "update t set a = 0 where id = 1", "40001"),
    (LATEST, "update u set t = 7 where id = 2", "00000"),
    (LATEST, "update t set a = 0 where id = 2", "00000"),
    (LATEST.replace("left join", "join"), "update u set t = 7 where id = 1", "40001"),
]


LEVELS = ("default", "read committed", "snapshot")
CASES = [(*case, level) for case in ASKED for level in LEVELS]
CASES += [(*case[:2], "40001", "serializable") for case in ASKED if case[2] == "40001"]


@pytest.mark.parametrize(("asked", "then", "code", "level"), CASES)
def test_rows_that_were_read_are_verified(
    two: tuple[SqlClient, SqlClient], asked: str, then: str, code: str, level: str
) -> None:
    one, other = two
    one.ask(f"set leasehold.isolation = '{level}'; set verifyretry off; begin")
    one.ask(asked)
    one.ask("insert into t values (100, 1, 1)")
    other.ask(then)
    assert one.code("commit") == code


def test_own_rows_are_verified_by_themselves(two: tuple[SqlClient, SqlClient]) -> None:
    one, other = two
    one.ask("begin; insert into t values (50, 1, 1); update t set a = 100 where id = 1")
    assert one.ask("selectv sum(a) from t where g = 1") == [(112,)]
    other.ask("update t set a = 0 where id = 2")
    one.ask("commit")


def test_what_is_refused(two: tuple[SqlClient, SqlClient]) -> None:
    one, _ = two
    assert one.code("select id from t union select id from u for update") == "0A000"
    assert one.code("select id from t union selectv id from u") == "42601"
    assert one.code("selectv id from t where id in (selectv id from u)") == "42601"
    assert one.code("with s as (select 1) selectv * from s union select 1") == "0A000"
    assert one.code("select count(*) from t for update") == "0A000"
    assert one.code("select distinct g from t for share") == "0A000"
    assert one.code("select s.* from (select * from t) as s for update") == "0A000"
