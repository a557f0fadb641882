"""A real PostgreSQL imported into a whole database in this process: schema, rows, changes, the end.

Method: both sides are asked the same afterwards; an import is cut off at each of its requests and
given again.
"""

from __future__ import annotations

import argparse
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import psycopg
import pytest

from leasehold.adapters.postgres.client import SqlConnection
from leasehold.adapters.postgres.source import Source, SourceFailure
from leasehold.cli.exit_code import ExitCode
from leasehold.cli.output import Output
from leasehold.cli.transfer import import_of_postgres, importing
from leasehold.model.errors import ConfigurationError, LeaseholdError
from leasehold.settings.sql_address import SqlAddress
from leasehold.transfer import batches, following, postgres_import, ranges, stream
from leasehold.transfer.target import Target
from tests.support.postgres.dev_server import dev_server
from tests.support.postgres.postgres_server import installed, running
from tests.support.transfer.dev_requests import DevRequests

pytestmark = pytest.mark.integration

DDL: Final = """
create type mood as enum ('sad', 'ok');
create table places (code varchar(4) primary key, name text not null, about json);
create table flights (
  id bigserial primary key, code varchar(4) references places on delete cascade,
  at timestamptz(3) not null default now(), price numeric(10,2), share real, day date,
  seen timestamp, raw bytea, ok boolean default true, body jsonb, mark char(3), felt mood,
  key uuid default gen_random_uuid(), d double precision,
  total numeric generated always as (price * 2) stored, check (price > 0));
create index by_day on flights (day);
create unique index by_body on flights (key);
create table seats (flight bigint, seat text, n int not null, primary key (flight, seat));
create table loose (line text, n int);
create table numbered (id int generated always as identity primary key, v text);
insert into places select 'P' || n, 'place ' || n, ('{"b": 1, "a": [' || n || ']}')::json
  from generate_series(1, 20) n;
insert into flights (code, price, share, day, seen, raw, ok, body, mark, felt, d)
  select 'P' || (n % 20 + 1), n + 0.5, n / 3.0, date '2020-01-01' + n, timestamp '2020-01-01' + n *
    interval '1.000001 h', decode(md5(n::text), 'hex'), n % 3 = 0, '{"n": 1}', 'x', mood 'ok',
    case n % 4 when 0 then float8 'NaN' when 1 then 'Infinity' else n / 7.0 end
  from generate_series(1, 500) n;
insert into flights (code, price, mark, felt) values (null, null, null, null);
insert into seats select n % 50, 'seat' || E'\\t\\\\' || n, n from generate_series(1, 400) n;
insert into loose select 'line' || (n % 3), null from generate_series(1, 30) n;
insert into numbered (v) select 'v' || n from generate_series(1, 30) n;
analyze;
"""
QUERIES: Final = (
    'select code, name, about::jsonb from places order by code collate "C"',
    "select * from flights order by id",
    'select * from seats order by flight, seat collate "C"',
    "select line, n, count(*) from loose group by line, n order by line",
    "select * from numbered order by id",
)


class World(NamedTuple):
    """A source and a target. `run` gives the command."""

    source: psycopg.Connection[Any]
    target: psycopg.Connection[Any]
    requests: DevRequests
    address: str
    run: Callable[..., int]


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    programs = installed()
    if programs is None:
        pytest.skip("NOT TESTED against PostgreSQL: it is not installed (apt install postgresql)")
    with running(programs, "fsync=off", "wal_level=logical") as made:
        yield made


@contextmanager
def world_with(port: int, folder: Path, ddl: str = DDL) -> Iterator[World]:
    """A database of its own on either side."""
    name = f"d{abs(hash(folder)) % 10**9}"
    with psycopg.connect(f"host=127.0.0.1 port={port} user=postgres", autocommit=True) as admin:
        admin.execute(f"create database {name}".encode())
    address = f"postgresql://postgres@127.0.0.1:{port}/{name}"
    with dev_server(folder) as served, psycopg.connect(address, autocommit=True) as source:
        source.execute(ddl.encode())
        requests = DevRequests(served.dev)
        dsn = f"host=127.0.0.1 port={served.port} user=postgres dbname={served.database}"
        with psycopg.connect(dsn, autocommit=True) as target:

            def connect() -> SqlConnection:
                return SqlConnection(SqlAddress(port=served.port), served.database)

            def run(*options: str) -> int:
                parser = argparse.ArgumentParser()
                importing.register(parser.add_subparsers())
                args = parser.parse_args(["import", address, "--json", *options])
                with Target(requests, connect) as reached:
                    return import_of_postgres.run_import(
                        args, Source(address), reached, Output(as_json=True)
                    )

            yield World(source, target, requests, address, run)
        requests.close()
        assert not served.dev.check().differences


@pytest.fixture
def world(port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """With small ranges and batches, so that there are several of a few rows."""
    monkeypatch.setattr(ranges, "RANGE_ROWS", 150)
    monkeypatch.setattr(batches, "BATCH_ROWS", 40)
    monkeypatch.setattr(stream, "GATHERED_CHANGES", 50)
    monkeypatch.setattr(following, "LOOK_S", 0.01)
    with world_with(port, tmp_path) as made:
        yield made


def check_same(world: World) -> None:
    for query in QUERIES:
        theirs = world.source.execute(query.encode()).fetchall()
        ours = world.target.execute(query.replace(' collate "C"', "").encode()).fetchall()
        assert repr(ours) == repr(theirs), query


def last_json(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_schema_and_rows_come_over(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: rows, keys, defaults, generated columns, CHECKs, UNIQUE, foreign keys and numbers of
    sequences are as in the source."""
    assert world.run() == ExitCode.OK
    told = last_json(capsys)
    assert (told["equal"], told["rows"]) == (True, 20 + 501 + 400 + 30 + 30)
    check_same(world)
    for table, columns in (("flights", "code, price"), ("numbered", "v")):
        text = f"insert into {table} ({columns}) values ({'null, ' * (',' in columns)}null)"
        text = f"{text} returning id"
        assert world.target.execute(text.encode()).fetchone() == (
            world.source.execute(text.encode()).fetchone()
        )
    for text in (
        "insert into flights (price) values (-1)",
        "insert into flights (code) values ('none')",
        "insert into flights (felt) values ('new')",
        "insert into flights (key) select key from flights where key is not null limit 1",
    ):
        with pytest.raises(psycopg.Error) as refused:
            world.target.execute(text.encode())
        assert refused.value.sqlstate in ("23514", "23503", "22P02", "23505")


def test_a_command_that_is_given_again_does_nothing_twice(world: World) -> None:
    assert world.run() == ExitCode.OK
    assert world.run() == ExitCode.OK
    check_same(world)


class CutOff(Exception):
    """Stands for a process that ends."""


def run_by_pieces(world: World, first: int, when: str) -> None:
    """Run the import, cut off again and again: first after `first` requests, then after five more
    each time, `when` = "before" one is sent or "after" that, while it is under way."""
    lock, room = threading.Lock(), [first]

    def cut_off(_: Mapping[str, Any]) -> None:
        with lock:
            room[0] -= 1
            if room[0] < 0:
                raise CutOff

    setattr(world.requests, when, cut_off)
    for more in range(first, 200, 5):
        room[0] = more
        try:
            assert world.run() == ExitCode.OK
            break
        except CutOff:
            pass
    else:
        raise AssertionError("it never ends")


@pytest.mark.parametrize("first", [1, 4, 13])
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_import_that_was_cut_off_goes_on(world: World, first: int, when: str) -> None:
    """Goal: cut off again and again, after some requests more each time, before one is sent or
    while it is under way, it brings each row once; rows without a key, too."""
    run_by_pieces(world, first, when)
    check_same(world)


OTHER_ORDERS: Final = """
create extension citext;
create table lengths (id bigint primary key, v text);
insert into lengths select n * n * n, n from generate_series(1, 600) n;
create table folded (code citext primary key, v text);
insert into folded select case n % 2 when 0 then 'A' else 'a' end || n, n
  from generate_series(1, 600) n;
analyze;
"""
"""Keys whose texts have another order than themselves: numbers of several lengths, and a type that
is read as text and compared otherwise."""


@pytest.mark.parametrize("first", [1, 7])
def test_each_row_comes_once_whatever_order_the_texts_of_keys_have(
    port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    """Goal: ranges are cut, and gone on with behind their last row, in the order in which the
    source compares keys."""
    monkeypatch.setattr(ranges, "RANGE_ROWS", 150)
    monkeypatch.setattr(batches, "BATCH_ROWS", 40)
    with world_with(port, tmp_path, OTHER_ORDERS) as world:
        run_by_pieces(world, first, "before")
        for table in ("lengths", "folded"):
            query = f"select count(*), count(distinct v) from {table}"
            assert world.target.execute(query.encode()).fetchone() == (600, 600)


def test_a_difference_is_named(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert world.run("--no-verify") == ExitCode.OK
    world.target.execute("update seats set n = n + 1000 where flight = 7 and n = 7")
    world.target.execute("delete from places where code = 'P3'")
    world.source.execute("insert into seats values (99, 'new', 1)")
    assert world.run() == ExitCode.NOT_RIGHT
    told = {each["table"]: each for each in last_json(capsys)["tables"]}
    assert [t for t, each in told.items() if not each["equal"]] == ["flights", "places", "seats"]
    assert told["places"]["differences"] == [{"key": "P3", "words": "in the source alone"}]
    assert sorted(d["words"] for d in told["seats"]["differences"]) == [
        "another one in the target",
        "in the source alone",
    ]


def test_what_can_not_be_kept_is_said_before_anything_is_done(world: World) -> None:
    world.source.execute(
        "create table odd (id int primary key, r int4range); create view w as select 1"
    )
    with pytest.raises(postgres_import.PlanRefused, match="odd"):
        world.run()
    with pytest.raises(postgres_import.PlanRefused, match="view w"):
        world.run("--exclude", "odd")
    assert world.target.execute("select count(*) from pg_tables").fetchone() is not None
    with pytest.raises(psycopg.Error):
        world.target.execute("select 1 from flights")
    assert world.run("--exclude", "odd", "--leave-out") == ExitCode.OK
    with pytest.raises(postgres_import.PlanRefused, match="another plan"):
        world.run("--leave-out", "--as-text")


def test_a_password_in_the_address_is_refused_and_not_repeated() -> None:
    for address in (
        "postgresql://u:secret1@h/d",
        "postgresql://h/d?password=secret1",
        "postgresql://h/d?p%61ssword=secret1",
        "postgresql://[u:secret1@h/d",
    ):
        with pytest.raises(ConfigurationError) as refused:
            Source(address)
        assert "secret1" not in refused.value.message


# ---------------------------------------------------------------- following


def is_ready(world: World) -> bool:
    """Whether indexes and constraints are there, too."""
    query = b"select place from leasehold_imports where part = ''"
    return any('"ready"' in place for (place,) in world.target.execute(query))


@contextmanager
def followed(world: World, *options: str) -> Iterator[Callable[[], None]]:
    """The command with --follow in a thread; gives what waits until nothing is behind."""
    ended: list[BaseException] = []
    told, over = threading.Event(), threading.Event()
    lags: list[following.Lag] = []
    made: list[following.Following] = []
    original = following.Following.follow

    def follow(self: following.Following, until: int | None = None) -> None:
        made.append(self)
        if over.is_set():
            self.stop()
        before = self._tell

        def tell(lag: following.Lag) -> None:
            before(lag)
            lags.append(lag)
            told.set()

        self._tell = tell
        original(self, until)

    def run() -> None:
        try:
            world.run("--follow", *options)
        except BaseException as error:  # noqa: BLE001 - raised below
            ended.append(error)
        told.set()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(following.Following, "follow", follow)
        thread = threading.Thread(target=run)
        thread.start()

        def caught_up() -> None:
            (now,) = world.source.execute("select pg_current_wal_lsn()::text").fetchone() or ("",)
            slot = "select min(confirmed_flush_lsn) >= %s::pg_lsn from pg_replication_slots"
            slot += " where database = current_database()"
            while not ended:
                found = world.source.execute(slot.encode(), (now,)).fetchone()
                if found is not None and found[0] and is_ready(world):
                    return
                told.clear()
                told.wait(1)
            raise ended[0]

        try:
            yield caught_up
        finally:
            over.set()
            for each in made:
                each.stop()
            thread.join()
    if ended:
        raise ended[0]


CHANGES: Final = (
    "insert into flights (code, price, felt) values ('P1', 5, 'sad')",
    "update flights set price = price + 1, ok = not ok where id % 7 = 0",
    "update seats set seat = 'moved' || n where flight = 3",
    "delete from places where code = 'P2'",
    "update places set about = '{}', name = E'a\\tb\\\\' where code = 'P5'",
    "begin; delete from seats where flight < 5; insert into seats values (1, 'x', 1); commit",
    "update flights set id = id + 100000 where id < 20",
    "insert into numbered (v) select 'more' from generate_series(1, 300)",
)


def test_changes_are_followed_until_the_cut_over(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: what changes while rows are copied and after is there in the end; nothing of the import
    is left in the source."""
    with followed(world, "--exclude", "loose") as caught_up:
        for text in CHANGES[:4]:
            world.source.execute(text.encode())
        caught_up()
    for text in CHANGES[4:]:
        world.source.execute(text.encode())
    with followed(world, "--exclude", "loose") as caught_up:
        caught_up()
    world.source.execute("truncate numbered; insert into numbered (v) values ('last')")
    with pytest.raises(postgres_import.PlanRefused, match="same options"):
        world.run("--cut-over")
    assert world.run("--cut-over", "--exclude", "loose") == ExitCode.OK
    assert last_json(capsys)["equal"]
    for query in QUERIES:
        if "loose" not in query:
            theirs = world.source.execute(query.encode()).fetchall()
            ours = world.target.execute(query.replace(' collate "C"', "").encode()).fetchall()
            assert repr(ours) == repr(theirs), query
    for catalog in ("pg_replication_slots where database = current_database()", "pg_publication"):
        assert world.source.execute(f"select count(*) from {catalog}".encode()).fetchone() == (0,)
    for again in ("--cut-over", "--follow"):
        assert world.run(again, "--exclude", "loose") == ExitCode.OK
    insert = b"insert into numbered (v) values ('x') returning id"
    assert world.target.execute(insert).fetchone() == world.source.execute(insert).fetchone()


@pytest.mark.long("an import is begun again and again, each time with a database of its own")
@pytest.mark.parametrize("first", [2, 12])
def test_a_following_that_is_cut_off_while_all_changes_goes_on(world: World, first: int) -> None:
    """Goal: ranges are read at different times, changes come twice and in parts; in the end both
    sides are the same."""
    lock, room = threading.Lock(), [first]
    texts = [*CHANGES, "update seats set n = n + 1", "update flights set share = share * 2"]

    def cut_off(_: Mapping[str, Any]) -> None:
        with lock:
            room[0] -= 1
            if room[0] < 0:
                raise CutOff

    world.requests.before = cut_off
    for more in range(first, 200, 4):
        room[0] = more
        if texts:
            world.source.execute(texts.pop(0).encode())
        try:
            with followed(world, "--exclude", "loose") as caught_up:
                caught_up()
            if not texts:
                break
        except CutOff:
            pass
    else:
        raise AssertionError("it never ends")
    world.requests.before = lambda _: None
    assert world.run("--cut-over", "--exclude", "loose") == ExitCode.OK


ODD: Final = """
create schema other;
create table other.large (id int primary key, v text, n int);
alter table other.large alter v set storage external;
insert into other.large select n, repeat(md5(n::text), 200), n from generate_series(1, 60) n;
create table other.words (w text collate "und-x-icu" primary key, n int);
insert into other.words select chr(65 + n % 26) || case when n % 2 = 0 then 'a' else 'B' end || n, n
  from generate_series(1, 400) n;
create table other."By Day" (day date, n int, primary key (day, n)) partition by range (day);
create table other.p1 partition of other."By Day" for values from ('2020-01-01') to ('2020-06-01');
create table other.p2 partition of other."By Day" for values from ('2020-06-01') to ('2021-01-01');
insert into other."By Day" select date '2020-01-01' + n % 366, n from generate_series(1, 500) n;
create table other.watched (id int primary key, a text, b text);
alter table other.watched replica identity full;
insert into other.watched values (1, 'a', 'b'), (2, 'c', 'd');
analyze
"""


@pytest.mark.long("an import is begun again and again, each time with a database of its own")
@pytest.mark.parametrize("first", [100, 12])
def test_large_values_partitions_and_other_orders_are_followed(world: World, first: int) -> None:
    """Goal: values that an update does not send again, under their key and another one; rows that
    go to another partition; keys that the source orders otherwise; also where it is cut off."""
    world.source.execute(ODD.encode())
    options = ("--schema", "other")
    room = [first]

    def cut_off(_: Mapping[str, Any]) -> None:
        room[0] -= 1
        if room[0] == 0:
            raise CutOff

    world.requests.before = cut_off
    for _ in range(2):
        try:
            with followed(world, *options) as caught_up:
                for text in (
                    "update other.large set n = n + 1 where id < 20",
                    "update other.large set id = id + 1000 where id % 5 = 0",
                    "update other.words set w = lower(w) where n % 7 = 0",
                    "update other.\"By Day\" set day = day + 120 where day < '2020-03-01'",
                    "update other.watched set id = id + 10, b = null",
                    "delete from other.watched where a = 'c'",
                ):
                    world.source.execute(text.encode())
                caught_up()
        except CutOff:
            pass
    world.requests.before = lambda _: None
    with followed(world, *options) as caught_up:
        caught_up()
    assert world.run("--cut-over", *options) == ExitCode.OK
    found = world.target.execute("select a, b from watched").fetchall()
    assert found == [("a", None)]


def test_a_slot_that_is_gone_is_told(world: World) -> None:
    """Goal: what has changed meanwhile would be lost without a word."""
    with followed(world, "--exclude", "loose") as caught_up:
        caught_up()
    drop = "select pg_drop_replication_slot(slot_name) from pg_replication_slots"
    world.source.execute(f"{drop} where database = current_database()".encode())
    with pytest.raises(following.SlotGone, match="is gone"):
        world.run("--follow", "--exclude", "loose")
    with pytest.raises(postgres_import.PlanRefused, match="begun with --follow"):
        world.run("--exclude", "loose")
    assert world.run("--abandon") == ExitCode.OK


def test_what_can_not_be_followed_is_refused_with_what_to_do(world: World) -> None:
    with pytest.raises(ConfigurationError, match=r"'loose'.*no primary key"):
        world.run("--follow")
    with pytest.raises(LeaseholdError, match="not ready"):
        world.run("--cut-over", "--exclude", "loose")


def test_a_source_that_is_away_is_told_without_a_password() -> None:
    with pytest.raises(SourceFailure) as away:
        Source("postgresql://someone@127.0.0.1:1/d", "secret1").connect()
    assert "secret1" not in away.value.message
