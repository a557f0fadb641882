"""A session's time zone: what is read, shown and computed in it, and what never is.

Two sessions on different replicants of a whole database in this process.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from leasehold.dev.database import DevDatabase
from leasehold.pgwire.session import SettingChanged
from leasehold.pgwire.values.encoding import text_of
from leasehold.values.types import Type
from tests.support.sql_session.sql_client import SqlClient

HOUR = 3_600_000_000


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevDatabase]:
    dev = DevDatabase(Path(tmp_path_factory.mktemp("zone")))
    dev.wait_ready()
    SqlClient(dev).ask(
        "create table t (id int primary key, at timestamptz, local timestamp, note text,"
        " day date default current_date, noon timestamptz default '2020-07-01 12:00');"
        " create index t_at on t (at)"
    )
    yield dev
    dev.close()


@pytest.fixture
def one(database: DevDatabase) -> Iterator[SqlClient]:
    client = SqlClient(database, "r1")
    client.ask("truncate t")
    yield client
    client.session.fail()
    client.session.close()


@pytest.fixture
def other(database: DevDatabase, one: SqlClient) -> Iterator[SqlClient]:
    client = SqlClient(database, "r2", timezone="america/new_york")
    yield client
    client.session.close()


def test_it_is_set_shown_and_told(one: SqlClient, other: SqlClient) -> None:
    assert other.ask("show time zone") == [("America/New_York",)]
    assert other.session.zone.key == other.session.settings["TimeZone"] == "America/New_York"
    for said, shown in (
        ("time zone 'europe/berlin'", "Europe/Berlin"),
        ("time zone -7.5", "<-07:30>+07:30"),
        ("time zone interval '+02:00' hour to minute", "<+02>-02"),
        ("timezone to foo3", "FOO3"),
        ("time zone local", "UTC"),
    ):
        one.reports.clear()
        one.ask(f"set {said}")
        assert one.reports == [SettingChanged("TimeZone", shown)]
        assert one.ask("select current_setting('timezone')") == [(shown,)]
    assert one.code("set time zone 'Nowhere/None'") == "22023"


def test_a_zone_lasts_as_long_as_settings_do(one: SqlClient) -> None:
    noon = "select timestamptz '2020-07-01 12:00+00'::text"
    one.ask("begin; set local time zone 'Asia/Tokyo'")
    assert one.ask(noon) == [("2020-07-01 21:00:00+09",)]
    one.ask("set time zone 'Europe/Berlin'")
    assert one.ask(noon + ", current_setting('timezone')") == [
        ("2020-07-01 14:00:00+02", "Europe/Berlin")
    ]
    one.ask("rollback")
    assert one.ask(noon) == [("2020-07-01 12:00:00+00",)]
    one.ask("select set_config('timezone', 'Asia/Tokyo', false)")
    assert one.ask(noon) == [("2020-07-01 21:00:00+09",)]


def test_one_text_means_another_moment_in_each_zone(one: SqlClient, other: SqlClient) -> None:
    one.ask("insert into t (id, at) values (1, '2020-07-01 12:00')")
    other.ask("insert into t (id, at) values (2, '2020-07-01 12:00')")
    ((first,), (second,)) = one.ask("select at from t order by id")
    assert second - first == 4 * HOUR
    same = "select id from t where at = '2020-07-01 12:00'"
    for _ in range(2):  # the plan that was kept serves the zone that it was made for
        assert (one.ask(same), other.ask(same)) == ([(1,)], [(2,)])
    one.ask("set time zone 'America/New_York'")
    assert one.ask(same) == [(2,)]
    shown = text_of(Type("timestamptz"), one.session.zone)
    assert shown(second) == "2020-07-01 12:00:00-04"


def test_a_prepared_statement_is_of_the_zone_in_which_it_runs(one: SqlClient) -> None:
    (statement,) = one.session.statements("select '2020-07-01 12:00'::timestamptz, $1::text")
    prepared = one.session.prepare(statement, (Type("timestamptz"),))
    ((utc, _),) = one.run(prepared, (0,))
    one.session.end_batch()
    one.ask("set time zone 'Asia/Tokyo'")
    assert one.run(prepared, (0,)) == [(utc - 9 * HOUR, "1970-01-01 09:00:00+09")]
    one.session.end_batch()


def test_now_and_its_like(one: SqlClient) -> None:
    one.ask("set time zone 'Pacific/Kiritimati'")  # 14 hours ahead
    ((now, local, today, tomorrow),) = one.ask(
        "select now(), localtimestamp, current_date, (now() at time zone 'UTC')::date"
    )
    assert local - now == 14 * HOUR
    assert today == (now + 14 * HOUR) // (24 * HOUR)
    assert tomorrow == now // (24 * HOUR)


def test_what_a_row_is_given_by_default_is_of_the_session_that_gives_it(one: SqlClient) -> None:
    # At any hour it is another day than UTC's in one of the two.
    for key, zone in enumerate(("Pacific/Kiritimati", "Pacific/Pago_Pago")):
        one.ask(f"set time zone '{zone}'")
        one.ask(f"begin; insert into t (id, at) values ({key}, now()); commit")
        asked = f"select noon = '2020-07-01 12:00+00', day = at::date from t where id = {key}"
        assert one.ask(asked) == [(1, 1)], "a constant is of the session that said the table"


def test_a_zoneless_constant_finds_rows_by_an_index(one: SqlClient) -> None:
    one.ask("set time zone 'Europe/Berlin'")
    explained = one.ask("explain select id from t where at >= '2020-07-01' and at < '2020-08-01'")
    assert "t_at" in "\n".join(line for (line,) in explained)


def test_a_replay_reads_its_texts_in_the_zone_of_then(one: SqlClient, other: SqlClient) -> None:
    one.ask("insert into t (id, local) values (1, '2020-07-01 12:00'), (2, '2020-07-01 12:00')")
    one.ask("begin; set time zone 'Asia/Tokyo'; update t set at = local where id = 1")
    one.ask("set time zone 'Europe/Berlin'; update t set note = local::timestamptz where id = 2")
    other.ask("update t set local = local + interval '1 hour'")
    one.ask("commit; set time zone utc")
    assert one.tags == ["COMMIT", "SET"]
    assert one.ask("select at::text, note from t order by id") == [
        ("2020-07-01 04:00:00+00", None),
        (None, "2020-07-01 13:00:00+02"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "create index on t ((at::date))",
        "create index on t (date_trunc('day', at))",
        "create index on t ((local = at))",
        "create index on t ((at || ''))",
        "create index on t (id) where local::timestamptz > '2020-01-01'",
        "alter table t add column d date generated always as (at) stored",
        "alter table t add column x text generated always as (concat(at, 1)) stored",
        "create table u (at timestamptz, h int generated always as (extract(hour from at)) stored)",
    ],
)
def test_what_is_stored_depends_on_no_session(one: SqlClient, text: str) -> None:
    assert one.code(text) == "42P17"
    assert one.code("begin; " + text) in ("42P17", "0A000")
    one.ask("rollback")


def test_a_zone_that_is_named_may_be_stored(one: SqlClient) -> None:
    one.ask(
        "create table u (at timestamptz check (at::date > '2019-12-31'), day date"
        " generated always as ((at at time zone 'Asia/Tokyo')::date) stored);"
        " create index on u (date_trunc('hour', at, 'Asia/Kolkata'), (at > '2020-01-01'))"
    )
    one.ask("set time zone 'Pacific/Kiritimati'; insert into u values ('2020-01-02 12:00')")
    assert one.ask("select day::text from u") == [("2020-01-02",)]
    # A CHECK is of the zone in which it was said: here it is 2020 already, there it is not.
    assert one.code("insert into u values ('2020-01-01 12:00')") == "23514"
    one.ask("reset time zone; drop table u")


def test_in_a_hurry_a_plan_serves_its_zone_alone(one: SqlClient) -> None:
    one.ask("insert into t (id, at) values (1, '2020-07-01 12:00')")
    text = "select at = '2020-07-01 12:00' from t where id = 1"
    (statement,) = one.session.statements(text)
    prepared = one.session.prepare(statement, ())
    one.session.end_batch()
    for zone, same in (("UTC", 1), ("Asia/Tokyo", 0), ("UTC", 1), ("Asia/Tokyo", 0)):
        one.ask(f"set time zone '{zone}'; {text}")  # so that the plan is made
        one.session.hurried = True
        try:
            assert one.run(prepared, portion=10) == [(same,)]
            one.session.end_batch()
        finally:
            one.session.hurried = False


# ------------------------------------------------------------------ what a schema statement says


@pytest.fixture
def maker(database: DevDatabase) -> Iterator[SqlClient]:
    """In Berlin, on the other replicant than the master's first reader."""
    client = SqlClient(database, "r2", timezone="Europe/Berlin")
    yield client
    client.session.fail()
    client.ask("rollback; drop table if exists v")
    client.session.close()


def test_a_type_is_changed_in_the_zone_of_who_changes_it(
    database: DevDatabase, maker: SqlClient
) -> None:
    maker.ask("create table v (id int primary key, at timestamp, note text)")
    maker.ask("insert into v values (1, '2020-07-01 12:00', ''), (2, '2020-01-01 12:00', '')")
    timestamps = "select at at time zone 'UTC' = timestamp '2020-07-01 10:00' from v where id = 1"
    maker.ask("alter table v alter at type timestamptz, alter note type date using at::date")
    assert maker.ask(timestamps) == [(1,)]
    maker.ask("set time zone 'Asia/Tokyo'")
    maker.ask("alter table v alter at type text using at::text")
    assert maker.ask("select at from v order by id") == [
        ("2020-07-01 19:00:00+09",),
        ("2020-01-01 20:00:00+09",),
    ]
    assert maker.ask("select note::text from v order by id") == [("2020-07-01",), ("2020-01-01",)]
    assert not database.check().differences


def test_a_constant_of_a_schema_statement_is_of_its_zone_for_good(maker: SqlClient) -> None:
    maker.ask(
        "create table v (id int primary key, at timestamptz default '2020-07-01 12:00',"
        " late boolean generated always as (at > '2020-07-01 12:00') stored,"
        " check (at < '2020-07-02'))"
    )
    assert maker.code("alter table v add check (at::date = '2020-07-01')") == "00000"
    maker.ask("set time zone 'Asia/Tokyo'; insert into v (id) values (1)")
    maker.ask("insert into v values (2, '2020-07-01 21:59:59.999999+00')")
    assert maker.code("insert into v values (3, '2020-07-01 22:00+00')") == "23514"
    assert maker.code("insert into v values (3, '2020-06-30 21:59+00')") == "23514"
    noon = "at at time zone 'UTC' = '2020-07-01 10:00'"
    assert maker.ask(f"select id, {noon}, late from v order by id") == [(1, 1, 0), (2, 0, 1)]


def test_each_statement_of_a_block_is_of_its_own_zone(maker: SqlClient) -> None:
    maker.ask("begin; create table v (id int primary key, at timestamptz default '2020-07-01')")
    maker.ask("create table w (at timestamptz); drop table w; set time zone 'Asia/Tokyo'")
    maker.ask("alter table v add column b timestamptz default '2020-07-01'")
    maker.ask("alter table v add check (b < '2020-07-02'); set local time zone 'UTC'")
    maker.ask("alter table v add column c timestamptz default '2020-07-01'")
    maker.ask("insert into v (id) values (1)")
    hours = "select to_char(at, 'HH24'), to_char(b, 'HH24'), to_char(c, 'HH24') from v"
    for _ in range(2):
        maker.ask("set time zone 'UTC'")
        assert maker.ask(hours) == [("22", "15", "00")]
        maker.ask("commit")
    assert maker.code("insert into v (id, b) values (2, '2020-07-01 14:59+00')") == "00000"
    assert maker.code("insert into v (id, b) values (3, '2020-07-01 15:00+00')") == "23514"


@pytest.mark.parametrize(
    "text",
    [
        "create index on v (id) where at > '2020-07-01'",
        "create index on v ((at > '2020-07-01'))",
        "alter table v add column x timestamptz default greatest(now(), '2020-07-01')",
    ],
)
def test_a_constant_that_could_not_be_kept_as_it_is_meant_is_refused(
    maker: SqlClient, text: str
) -> None:
    maker.ask("create table v (id int primary key, at timestamptz)")
    assert maker.code(text) == "0A000"
    assert maker.code(text.replace("2020-07-01", "2020-07-01 00:00+02")) == "00000"
    maker.ask("set time zone 'UTC'")
    assert maker.code(text.replace("add column x", "add column y")) == "00000"
