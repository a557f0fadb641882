"""Files imported into a whole database in this process; cut off and given again."""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from leasehold.adapters.postgres.client import SqlConnection
from leasehold.cli.exit_code import ExitCode
from leasehold.cli.output import Output
from leasehold.cli.transfer import import_of_file, importing
from leasehold.model.errors import ConfigurationError, LeaseholdError
from leasehold.settings.sql_address import SqlAddress
from leasehold.transfer import file_import
from leasehold.transfer.target import Target
from tests.support.postgres.dev_server import dev_server
from tests.support.transfer.dev_requests import DevRequests

TABLE: Final = """
create table t (id bigint primary key, ok boolean, n numeric(9,2), d double precision, day date,
  at timestamptz, body jsonb, raw bytea, note text);
create table few (id integer, note text not null)
"""
HEAD: Final = "note,id,ok,n,d,day,at,body,raw\n"


class World(NamedTuple):
    target: Target
    requests: DevRequests
    run: Callable[..., int]

    def rows(self, query: str) -> list[tuple[str | None, ...]]:
        return [tuple(row) for row in self.target.rows(query)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with dev_server(tmp_path_factory.mktemp("files"), TABLE) as served:
        requests = DevRequests(served.dev)

        def connect() -> SqlConnection:
            return SqlConnection(SqlAddress(port=served.port), served.database)

        def run(path: Path, *options: str) -> int:
            parser = argparse.ArgumentParser()
            importing.register(parser.add_subparsers())
            args = parser.parse_args(["import", str(path), "--json", *options])
            with Target(requests, connect) as target:
                return import_of_file.import_file(args, target, Output(as_json=True))

        with Target(requests, connect) as target:
            yield World(target, requests, run)
        requests.close()


@pytest.fixture
def world(server: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """With few rows a batch."""
    monkeypatch.setattr(file_import, "BATCH_ROWS", 7)
    server.requests.before = lambda _: None
    server.target.apply((), "TRUNCATE t, few")
    return server


def lines(count: int) -> str:
    return HEAD + "".join(
        f'"a ""{n}"",\nb",{n},{"true" if n % 2 else "f"},{n}.5,{n / 7},2020-01-0{n % 9 + 1},'
        f'2020-01-01T00:00:00Z,"{{""n"": {n}}}",\\x0{n % 10}\n'
        for n in range(count)
    )


ASKED: Final = "select id, ok, n, d, day, at, body, raw, note from t order by id"


@pytest.mark.parametrize("name", ["all.csv", "all.csv.gz"])
def test_rows_of_csv_come_with_their_types(
    world: World, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    data = lines(100).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    assert world.run(path, "--table", "t") == ExitCode.OK
    assert json.loads(capsys.readouterr().out)["came"] == 100
    rows = world.rows(ASKED)
    assert len(rows) == 100
    assert rows[3] == (
        "3", "t", "3.50", repr(3 / 7), "2020-01-04", "2020-01-01 00:00:00+00", '{"n": 3}',
        "\\x03", 'a "3",\nb',
    )  # fmt: skip


class CutOff(Exception):
    """Stands for a process that ends."""


def test_a_file_that_was_cut_off_goes_on(world: World, tmp_path: Path) -> None:
    """Goal: each row once, in a table without a key, too, however often it was cut off."""
    path = tmp_path / "cut.csv"
    path.write_text("id,note\n" + "".join(f"{n},x\n" for n in range(150)))
    room = [0]

    def cut_off(_: Mapping[str, Any]) -> None:
        room[0] -= 1
        if room[0] < 0:
            raise CutOff

    world.requests.before = cut_off
    for more in range(1, 30, 2):
        room[0] = more
        try:
            world.run(path, "--table", "few")
            break
        except CutOff:
            pass
    else:
        raise AssertionError("it never ends")
    counted = world.rows("select count(*), count(distinct id), min(id), max(id) from few")
    assert counted == [("150", "150", "0", "149")]
    path.write_text("id,note\n1,x\n")
    with pytest.raises(ConfigurationError, match="another file"):
        world.run(path, "--table", "few")


def test_parquet_comes_with_its_types(world: World, tmp_path: Path) -> None:
    path = tmp_path / "all.parquet"
    at = datetime(2020, 1, 1, 12, 0, 0, 5, tzinfo=UTC)
    made = {
        "id": pa.array(range(30), pa.int32()),
        "ok": pa.array([True, None, False] * 10),
        "n": pa.array([Decimal("1.50")] * 30),
        "d": pa.array([1.5, float("nan"), float("inf")] * 10),
        "day": pa.array([date(2020, 1, 2)] * 30),
        "at": pa.array([at] * 30, pa.timestamp("ns", "UTC")),
        "body": pa.array([{"a": [1, None]}] * 30),
        "raw": pa.array([b"\x00\xff"] * 30),
    }
    pq.write_table(pa.table(made), path)
    assert world.run(path, "--table", "t") == ExitCode.OK
    rows = world.rows(ASKED)
    assert len(rows) == 30
    assert rows[1] == (
        "1", None, "1.50", "NaN", "2020-01-02", "2020-01-01 12:00:00.000005+00",
        '{"a": [1, null]}', "\\x00ff", None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("data", "options", "words"),
    [
        ("id,nope\n1,2\n", (), "no column 'nope'"),
        ("id,note\n1,a\nx,b\n", (), "row 2, column 'id': 'x'"),
        ("id,note\n1,a\n2\n", (), "row 2 has 1 fields"),
        ("id,note\n1,\n", (), "rows 1 to 1 are refused with 23502"),
        ("1;a\n", ("--columns", "id,note", "--delimiter", ";", "--null", "a"), "23502"),
        ("", (), "is empty"),
    ],
)
def test_a_file_that_can_not_be_read_says_where(
    world: World, tmp_path: Path, data: str, options: tuple[str, ...], words: str
) -> None:
    path = tmp_path / "wrong.csv"
    path.write_text(data)
    with pytest.raises(LeaseholdError) as refused:
        world.run(path, "--table", "few", "--name", f"wrong {words}", *options)
    assert words in refused.value.message
    assert world.rows("select count(*) from few") == [("0",)]


def test_what_is_no_file_and_no_table_is_told(world: World, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"\.csv, \.csv\.gz or \.parquet"):
        world.run(tmp_path / "a.txt", "--table", "t")
    with pytest.raises(ConfigurationError, match="--table"):
        world.run(tmp_path / "a.csv")
    with pytest.raises(ConfigurationError, match="can't be read"):
        world.run(tmp_path / "a.csv", "--table", "t")
    with pytest.raises(LeaseholdError, match="does not exist"):
        world.run(tmp_path / "a.csv", "--table", "none")
