"""A PostgreSQL imported into a real cluster by the command itself, which is killed on its way.

Method: rows enough that it takes a while; killed as soon as some have come, and given again.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from infra.local_cluster import ROOT, LocalCluster
from tests.support.cluster.secure_suite import dsn_of, not_in_secure_mode
from tests.support.cluster.system_cluster import (
    Beside,
    Said,
    assert_consistent,
    until,
)
from tests.support.postgres.postgres_server import installed, running

pytestmark = not_in_secure_mode("who imports owns tables that the SQL user has to be granted")

NODES: Final = ("m1", "r1", "changefeed")
ROWS: Final = 150_000
DDL: Final = f"""
create table flights (id bigserial primary key, city text, day date not null, price numeric(9,2));
insert into flights (city, day, price)
  select 'city ' || n % 1000, date '2020-01-01' + n % 1000, n / 7.0
  from generate_series(1, {ROWS}) n;
create table lines (line text);
insert into lines select 'line ' || n from generate_series(1, 2000) n;
analyze
"""


@pytest.fixture(scope="module")
def cluster(beside: Beside) -> Iterator[LocalCluster]:
    with beside.running("import", NODES) as made:
        yield made


@pytest.fixture(scope="module")
def source() -> Iterator[str]:
    programs = installed()
    if programs is None:
        pytest.skip("NOT TESTED against PostgreSQL: it is not installed (apt install postgresql)")
    with running(programs, "fsync=off", "wal_level=logical") as port:
        address = f"postgresql://postgres@127.0.0.1:{port}/postgres"
        with psycopg.connect(address, autocommit=True) as client:
            client.execute(DDL.encode())
        yield address


def environment(cluster: LocalCluster) -> dict[str, str]:
    return {**cluster.env("command"), "LEASEHOLD_SQL_PORT": str(cluster.ports.sql[0])}


def begin(cluster: LocalCluster, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "leasehold.cli.main", *arguments],
        env=environment(cluster),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
    )


def heed_interrupts() -> None:
    """Be interrupted by SIGINT, also where the tests run in a shell's background, which ignores
    it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def end(process: subprocess.Popen[str]) -> Said:
    out, err = process.communicate(timeout=300)
    assert "Traceback" not in err, err
    return Said(process.returncode, out, err)


def count(cluster: LocalCluster, table: str) -> int:
    """0 where it is not there yet."""
    with psycopg.connect(dsn_of(cluster, 0), autocommit=True) as client:
        try:
            found: Any = client.execute(f"select count(*) from {table}".encode()).fetchone()
        except psycopg.errors.UndefinedTable:
            return 0
        return int(found[0])


def ready(cluster: LocalCluster) -> bool:
    with psycopg.connect(dsn_of(cluster, 0), autocommit=True) as client:
        query = b"select place from leasehold_imports where import = 'default' and part = ''"
        return any('"ready"' in place for (place,) in client.execute(query))


@pytest.mark.long("a minute; postgres_compat/test_import_postgres imports each kind of rows")
def test_a_killed_import_goes_on_follows_and_cuts_over(
    cluster: LocalCluster, source: str, tmp_path: Path
) -> None:
    """Goal: killed twice while rows come, then followed, with the source changing all along; each
    row is there once, and both sides are equal at the cut-over."""
    words = ("import", source, "--exclude", "lines", "--follow")
    for rows in (1, ROWS // 3):
        killed = begin(cluster, *words)
        until(lambda rows=rows: count(cluster, "flights") >= rows, "rows")  # type: ignore[misc]
        killed.kill()
        killed.communicate()
        assert count(cluster, "flights") < ROWS
        with psycopg.connect(source, autocommit=True) as client:
            client.execute("update flights set price = -price where id % 100 = 7")
            client.execute("insert into flights (city, day) values ('new', '2021-01-01')")
    follows = begin(cluster, *words)
    until(lambda: ready(cluster), "all rows, and what has changed since")
    assert count(cluster, "flights") == ROWS + 2
    with psycopg.connect(source, autocommit=True) as client:
        client.execute("delete from flights where id % 50 = 0")
        client.execute("update flights set id = -id where id < 100")
    until(lambda: count(cluster, "flights") == ROWS + 2 - ROWS // 50, "the deletion")
    follows.send_signal(signal.SIGINT)
    assert end(follows).code == 0
    said = end(begin(cluster, "import", source, "--exclude", "lines", "--cut-over", "--json"))
    assert said.code == 0, said
    (told,) = said.json["tables"]
    assert (told["equal"], told["target_rows"]) == (True, ROWS + 2 - ROWS // 50)
    with psycopg.connect(source, autocommit=True) as client:
        left = client.execute("select count(*) from pg_replication_slots").fetchone()
    assert left == (0,)
    assert_consistent(cluster, ("m1", "r1"))


def test_a_table_is_exported_and_a_file_imported(
    cluster: LocalCluster, source: str, tmp_path: Path
) -> None:
    said = end(begin(cluster, "import", source, "--table", "lines", "--name", "lines", "--json"))
    assert (said.code, said.json["equal"]) == (0, True), said
    assert end(begin(cluster, "export", "lines", "--to", str(tmp_path))).code == 0
    path = tmp_path / "lines.csv"
    assert len(path.read_text().splitlines()) == 2_001
    assert end(begin(cluster, "import", str(path), "--table", "lines")).code == 0
    assert count(cluster, "lines") == 4_000
    assert [each.name for each in tmp_path.iterdir()] == ["lines.csv"]
