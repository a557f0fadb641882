"""Tables and queries of a whole database in this process written as files, and read again."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from math import inf
from pathlib import Path
from typing import Any, Final, NamedTuple

import psycopg
import pyarrow.parquet as pq
import pytest

from leasehold.adapters.postgres.client import SqlConnection
from leasehold.cli.exit_code import ExitCode
from leasehold.cli.output import Output
from leasehold.cli.sql_script import whole
from leasehold.cli.transfer import exporting
from leasehold.model.errors import ConfigurationError, LeaseholdError
from leasehold.settings.sql_address import SqlAddress
from leasehold.transfer import export
from leasehold.transfer.target import TargetReader
from tests.support.postgres.dev_server import dev_server

TABLES: Final = """
create table places (code varchar(4) primary key, name text unique);
create table t (id serial primary key, place varchar(4) references places, ok boolean,
  n numeric(9,2) check (n > 0), d double precision, day date, at timestamptz, seen timestamp,
  body jsonb, raw bytea, note text, twice integer generated always as (id * 2) stored);
create table numbered (id bigint generated always as identity primary key, note text);
create index by_note on t (lower(note));
insert into places values ('P', 'a ''place''');
insert into t (place, ok, n, d, day, at, seen, body, raw, note) values
  ('P', true, 1.50, 'inf', '2020-01-02', '2020-01-02 03:04:05.000006+00', '2020-01-02 03:04:05',
   '{"a": [1]}', '\\x00ff', E'a,"b"\\n\\\\'),
  (null, null, null, null, null, null, null, null, null, '');
insert into numbered (note) select 'x' from generate_series(1, 30)
"""


class Node(NamedTuple):
    port: int
    database: str
    run: Callable[..., int]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with dev_server(tmp_path_factory.mktemp("node"), TABLES) as served:

        def connect() -> SqlConnection:
            return SqlConnection(SqlAddress(port=served.port), served.database)

        def run(*options: str) -> int:
            parser = argparse.ArgumentParser()
            exporting.register(parser.add_subparsers())
            args = parser.parse_args(["export", *options])
            exporting.check(args)
            with TargetReader(connect) as reader:
                return exporting.export(args, reader, Output(as_json=True))

        yield Node(served.port, served.database, run)


def test_csv_is_as_copy_writes_it(node: Node, tmp_path: Path) -> None:
    assert node.run("t", "--to", str(tmp_path / "new")) == ExitCode.OK
    assert (tmp_path / "new" / "t.csv").read_bytes() == (
        b"id,place,ok,n,d,day,at,seen,body,raw,note,twice\n"
        b"1,P,t,1.50,Infinity,2020-01-02,2020-01-02 03:04:05.000006+00,2020-01-02 03:04:05,"
        b'"{""a"": [1]}",\\x00ff,"a,""b""\n\\",2\n'
        b'2,,,,,,,,,,"",4\n'
    )


def test_parquet_has_the_types_of_the_columns(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "GROUP_ROWS", 7)
    assert node.run("--to", str(tmp_path), "--format", "parquet", "--together") == ExitCode.OK
    table = pq.read_table(tmp_path / "t.parquet")
    first, second = table.to_pylist()
    assert first == {
        "id": 1, "place": "P", "ok": True, "n": Decimal("1.50"), "d": inf,
        "day": date(2020, 1, 2), "at": datetime(2020, 1, 2, 3, 4, 5, 6, UTC),
        "seen": datetime.fromisoformat("2020-01-02 03:04:05"),
        "body": '{"a": [1]}', "raw": b"\x00\xff",
        "note": 'a,"b"\n\\', "twice": 2,
    }  # fmt: skip
    assert {name for name, value in second.items() if value is None} == set(second) - {
        *("id", "note", "twice")
    }
    assert pq.ParquetFile(tmp_path / "numbered.parquet").metadata.num_row_groups == 5
    query = "select day, count(*) as n from t group by day order by day"
    asked = ("--query", query, "--name", "days", "--to", str(tmp_path), "--format", "parquet")
    assert node.run(*asked) == ExitCode.OK
    assert pq.read_table(tmp_path / "days.parquet").to_pylist() == [
        {"day": date(2020, 1, 2), "n": 1},
        {"day": None, "n": 1},
    ]


def rows_of(port: int, database: str) -> list[Any]:
    """Of all tables, and the next number of each sequence."""
    dsn = f"host=127.0.0.1 port={port} user=postgres dbname={database}"
    with psycopg.connect(dsn, autocommit=True) as client:
        queries = ["select * from places", "select * from t order by id"]
        queries.append("select * from numbered order by id")
        found: list[Any] = [client.execute(query.encode()).fetchall() for query in queries]
        found.append(client.execute("select conname from pg_constraint order by 1").fetchall())
        insert = "insert into numbered (note) values ('new') returning id"
        found.append(client.execute(insert).fetchall())
        return found


def test_sql_makes_the_same_database(node: Node, tmp_path: Path) -> None:
    """Goal: types, constraints, generated columns, identity and numbers, in the order that the help
    says."""
    assert node.run("--to", str(tmp_path), "--format", "sql") == ExitCode.OK
    with dev_server(tmp_path / "other") as served:
        dsn = f"host=127.0.0.1 port={served.port} user=postgres dbname={served.database}"
        with psycopg.connect(dsn, autocommit=True) as client:
            for name in ("schema", "places", "t", "numbered", "indexes"):
                for statement in whole((tmp_path / f"{name}.sql").read_text()):
                    client.execute(statement.text.encode())
        assert rows_of(served.port, served.database) == rows_of(node.port, node.database)


def test_a_file_that_is_there_stays_unless_it_is_to_be_replaced(node: Node, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("mine")
    with pytest.raises(ConfigurationError, match="--replace"):
        node.run("t", "--to", str(tmp_path))
    assert (tmp_path / "t.csv").read_text() == "mine"
    assert node.run("t", "--to", str(tmp_path), "--replace") == ExitCode.OK
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_a_file_that_does_not_get_whole_is_none(node: Node, tmp_path: Path) -> None:
    with pytest.raises(LeaseholdError, match="22012"):
        node.run("--query", "select 1 / (id - 2) from t", "--name", "q", "--to", str(tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("nope",), "'nope' does not exist"),
        (("--query", "select 1"), "--name"),
        (("--query", "select 1", "--name", "q", "--format", "sql"), "csv or parquet"),
    ],
)
def test_what_can_not_be_exported_is_told(
    node: Node, tmp_path: Path, options: tuple[str, ...], words: str
) -> None:
    with pytest.raises(LeaseholdError, match=words):
        node.run("--to", str(tmp_path), *options)


def test_a_name_of_a_table_can_not_lead_out_of_the_folder() -> None:
    assert exporting.file_name("../a b") == "%2e%2e%2fa b" or ".." not in exporting.file_name(
        "../a"
    )
    assert "/" not in exporting.file_name("../a")


def test_what_lies_beside_public_is_not_left_out_unsaid(node: Node, tmp_path: Path) -> None:
    dsn = f"host=127.0.0.1 port={node.port} dbname={node.database}"
    with psycopg.connect(dsn, autocommit=True) as asker:
        asker.execute("create schema app; create table app.t (id int primary key)")
        asker.execute("insert into app.t values (7)")
        try:
            with pytest.raises(ConfigurationError, match="and schema app has others"):
                node.run("--to", str(tmp_path))
            assert node.run("places", "--to", str(tmp_path)) == ExitCode.OK
            query = ("--query", "select id from app.t", "--name", "app.t")
            assert node.run(*query, "--to", str(tmp_path)) == ExitCode.OK
            assert (tmp_path / "app%2et.csv").read_text() == "id\n7\n"
        finally:
            asker.execute("drop table app.t; drop schema app")
