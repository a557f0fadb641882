"""Group wire: SQL over the wire of one replicant, and of a PostgreSQL in the same run.

pgbench, which costs little processor time itself, is the client of both; each of its transactions
is in a log of its own, so that percentiles are of all of them. The two servers take turns.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.bench.bench_settings import BenchSettings
from tests.bench.figure import Figure, percentile
from tests.bench.pgbench import Server, both_servers, run_script
from tests.bench.postgres import connected
from tests.bench.stand import Stand, say

CLIENTS: Final = 16
ROWS: Final = 10_000
BRANCHES: Final = 16
TELLERS: Final = 10 * BRANCHES
ACCOUNTS: Final = 50_000
ROWS_A_STATEMENT: Final = 5_000
TABLES: Final = (
    "CREATE TABLE t (id int PRIMARY KEY, v int NOT NULL, note text)",
    "CREATE TABLE branches (bid int PRIMARY KEY, bbalance int NOT NULL)",
    "CREATE TABLE tellers (tid int PRIMARY KEY, bid int NOT NULL, tbalance int NOT NULL)",
    """CREATE TABLE accounts
        (aid int PRIMARY KEY, bid int NOT NULL, abalance int NOT NULL, filler text)""",
    """CREATE TABLE history
        (id uuid PRIMARY KEY, tid int, bid int, aid int, delta int, mtime timestamp)""",
)
FILLED: Final = {
    "t": (ROWS, "g, 0, 'note ' || g"),
    "branches": (BRANCHES, "g, 0"),
    "tellers": (TELLERS, "g, 1 + (g - 1) / 10, 0"),
    "accounts": (ACCOUNTS, f"g, 1 + (g - 1) % {BRANCHES}, 0, 'filler'"),
}
"""Table → number of rows, values of row g."""
SCRIPTS: Final = {
    "read": f"\\set id random(1, {ROWS})\nSELECT v FROM t WHERE id = :id;\n",
    "update": f"\\set id random(1, {ROWS})\nUPDATE t SET v = v + 1 WHERE id = :id;\n",
    "select_only": f"\\set aid random(1, {ACCOUNTS})\n"
    "SELECT abalance FROM accounts WHERE aid = :aid;\n",
    "tpcb": f"""\\set aid random(1, {ACCOUNTS})
\\set bid random(1, {BRANCHES})
\\set tid random(1, {TELLERS})
\\set delta random(-5000, 5000)
BEGIN;
UPDATE accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM accounts WHERE aid = :aid;
UPDATE tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO history (id, tid, bid, aid, delta, mtime)
    VALUES (gen_random_uuid(), :tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;
""",
}


def measure(settings: BenchSettings) -> Iterator[Figure]:
    with both_servers(settings, SCRIPTS) as made:
        for server in made.servers:
            _backfill(server)
        yield from _figures(made.where, made.servers, made.folder, settings.seconds)


def _figures(where: Stand, servers: list[Server], folder: Path, seconds: int) -> Iterator[Figure]:
    for server in servers:
        alone = run_script(where, server, folder, "read", 1, seconds)
        yield Figure(f"wire_read_p50{server.suffix}", percentile(alone.took_us, 0.5), "µs")
    for name, script in (("wire_read", "read"), ("wire_select_only", "select_only")):
        for server in servers:
            found = run_script(where, server, folder, script, CLIENTS, seconds)
            yield Figure(f"{name}_rate{server.suffix}", found.rate, "queries/s")
    for name, script in (("wire_update", "update"), ("wire_tpcb", "tpcb")):
        for server in servers:
            found = run_script(where, server, folder, script, CLIENTS, seconds)
            yield Figure(f"{name}_rate{server.suffix}", found.rate, "txn/s")
            for share in (50, 99):
                ms = percentile(found.took_us, share / 100) / 1e3
                yield Figure(f"{name}_p{share}{server.suffix}", ms, "ms")


def _backfill(server: Server) -> None:
    say(f"tables{server.suffix}")
    with connected(server.port, server.database, server.user) as connection:
        for text in TABLES:
            connection.execute(text)
        for table, (rows, values) in FILLED.items():
            for first in range(1, rows + 1, ROWS_A_STATEMENT):
                last = min(first + ROWS_A_STATEMENT - 1, rows)
                connection.execute(
                    f"INSERT INTO {table} SELECT {values} FROM generate_series({first}, {last}) g"
                )
        if server.suffix:
            connection.execute("VACUUM ANALYZE")
