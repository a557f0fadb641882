"""pgbench against a replicant's PostgreSQL port: set-up, and its built-in scripts in each mode.

Goal: whoever has pgbench may run it as it is. No transaction fails but by serialization, which is
tried again (`--max-tries`); the share of that and the rate stand in the output.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from infra.local_cluster import LocalCluster
from tests.integration.cluster.replicants.test_system_sql import environment, psql
from tests.models.summary import Tell
from tests.support.cluster.system_cluster import SPARK, Beside

NODES = ("m1", "r1", "r2", "changefeed", SPARK)
SECONDS = 2
ACCOUNTS = 100_000
FEW = "INSERT INTO pgbench_accounts SELECT g, 1, 0, '' FROM generate_series(1, 1000) g"
"""Rows that the set-up finds and drops. (All 100,000 take half a minute and show nothing more.)"""
RATE = re.compile(r"tps = ([0-9.]+)")
PROCESSED = re.compile(r"number of transactions actually processed: (\d+)")
FAILED = re.compile(r"number of failed transactions: (\d+)")
RETRIED = re.compile(r"number of transactions retried: (\d+)")

pytestmark = [
    pytest.mark.long("pgbench's own set-up and runs"),
    pytest.mark.skipif(
        shutil.which("pgbench") is None,
        reason="NOT TESTED with pgbench: it is not installed (apt install postgresql-contrib)",
    ),
]


@pytest.fixture(scope="module")
def cluster(beside: Beside) -> Iterator[LocalCluster]:
    with beside.running("pgbench", NODES) as made:
        pgbench(made, "-i", "-I", "dt", "-s", "1")
        psql(made, 0, FEW)
        yield made


def pgbench(cluster: LocalCluster, *options: str) -> str:
    done = subprocess.run(
        ["pgbench", *options],
        env=environment(cluster, 0),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert not done.returncode, f"{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def found(pattern: re.Pattern[str], told: str) -> float:
    match = pattern.search(told)
    return float(match[1]) if match else 0.0


def test_it_sets_up_again(cluster: LocalCluster) -> None:
    """All that `pgbench -i` does: the second time it drops what is there first."""
    told = pgbench(cluster, "-i", "-s", "1")
    assert "done" in told
    for place in (0, 1):
        counted = psql(cluster, place, "SELECT count(*), max(aid) FROM pgbench_accounts")
        assert counted == f"{ACCOUNTS}|{ACCOUNTS}"
        assert psql(cluster, place, "SELECT count(*) FROM pgbench_tellers") == "10"
    keyed = "INSERT INTO pgbench_accounts VALUES (1) ON CONFLICT (aid) DO NOTHING"
    assert psql(cluster, 0, keyed) == "INSERT 0 0"


def test_all_sums_agree(cluster: LocalCluster) -> None:
    """What pgbench's transactions promise: each delta stands in three tables and the history. The
    tables are as the set-up left them: other scripts change some of these only."""
    assert psql(cluster, 0, "SELECT count(*) FROM pgbench_history") == "0"
    pgbench(cluster, "-c", "4", "-T", str(SECONDS), "--max-tries", "1000")
    sums = (
        "SELECT (SELECT sum(delta) FROM pgbench_history), (SELECT sum(abalance) FROM"
        " pgbench_accounts), (SELECT sum(tbalance) FROM pgbench_tellers), (SELECT sum(bbalance)"
        " FROM pgbench_branches)"
    )
    for place in (0, 1):
        assert len(set(psql(cluster, place, sums).split("|"))) == 1


@pytest.mark.parametrize("script", [("-N",), ("-S",), ()], ids=["-N", "-S", "tpcb-like"])
@pytest.mark.parametrize("mode", ["simple", "extended", "prepared"])
def test_it_runs(cluster: LocalCluster, mode: str, script: tuple[str, ...], tell: Tell) -> None:
    options = ("-c", "8", "-j", "2", "-T", str(SECONDS), "-M", mode, "--max-tries", "1000")
    told = pgbench(cluster, *options, *script)
    processed = found(PROCESSED, told)
    assert processed, told
    assert found(FAILED, told) == 0, told
    name = script[0] if script else "tpcb-like"
    retried = found(RETRIED, told) / processed
    tell(f"pgbench {name} {mode}: {found(RATE, told):,.0f} tps, {retried:.1%} tried again")
