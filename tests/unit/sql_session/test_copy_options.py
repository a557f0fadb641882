"""Options of COPY FROM that name columns, and tableoid: in sessions of a whole database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from leasehold.dev.database import DevDatabase
from leasehold.model.errors import LeaseholdError
from tests.support.sql_session.sql_client import SqlClient


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlClient]:
    dev = DevDatabase(Path(tmp_path_factory.mktemp("copy")))
    dev.wait_ready()
    made = SqlClient(dev)
    made.ask("create table t (id int primary key, b text)")
    made.ask("create table u (id int primary key, t int)")
    made.ask("insert into t values (1, 'x'), (2, 'y'); insert into u values (1, 2)")
    yield made
    made.session.close()
    dev.close()


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ("format csv, force_null (id, b), force_not_null (b)", "00000"),
        ("format csv, header match", "00000"),
        ("force_null (b)", "0A000"),
        ("force_not_null (b)", "0A000"),
        ("format csv, force_null (zz)", "42703"),
        ("format csv, force_null (b, b)", "42701"),
        ("format csv, force_not_null *", "22023"),
        ("format csv, force_null (b), force_null (b)", "42601"),
        ("header perhaps", "42601"),
    ],
)
def test_options_that_name_columns(client: SqlClient, options: str, code: str) -> None:
    assert client.code(f"copy t from stdin with ({options})") == code


def test_a_column_that_is_not_read_can_have_no_null_of_its_own(client: SqlClient) -> None:
    with pytest.raises(LeaseholdError) as caught:
        client.ask("copy t (id) from stdin csv force null b")
    assert (caught.value.sqlstate, caught.value.detail["position"]) == ("42P10", 39)


def test_tableoid_is_the_number_in_pg_class(client: SqlClient) -> None:
    ((number, same),) = client.ask(
        "select tableoid, tableoid = (select oid from pg_class where relname = 't') from t limit 1"
    )
    assert (number > 0, same) == (True, 1)
    assert client.ask("select distinct tableoid::regclass::text from u") == [("u",)]
    joined = "select t.tableoid::regclass::text, u.tableoid::regclass::text from t left join u"
    assert client.ask(f"{joined} on u.t = t.id order by t.id") == [("t", None), ("t", "u")]
    full = "select a.id, c.tableoid is null from t a left join (u b full join t c on c.id = b.t)"
    assert client.ask(f"{full} on b.id = a.id order by a.id") == [(1, 0), (2, 1)]
    found = "select tableoid::regclass::text from pg_language union select tableoid::regclass::text"
    assert ("pg_class",) in client.ask(f"{found} from pg_class")
    assert client.ask("select * from u") == [(1, 2)]
    assert client.code("select tableoid from t, u") == "42702"
    assert client.code("select tableoid from (select * from t) as s") == "42703"


def test_a_column_may_have_that_name(client: SqlClient) -> None:
    asked = "select tableoid, s.tableoid from (select id as tableoid from u) as s"
    assert client.ask(asked) == [(1, 1)]
