"""Group levels: what each isolation level costs against default, and what rows of the past cost.

One transaction at a time: it reads a row, and five more by a range, and changes one. It runs on a
replica in this process, and then over the wire of a replicant. What a node pays for old images is
measured on a store alone.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final

from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.model.ids import genid
from leasehold.model.records.log import ChangeKind, LogPosition, RowChange
from leasehold.replica.replica import Replica, open_replica
from leasehold.replica.write_set import WriteSet
from leasehold.transaction.isolation import Level
from leasehold.values.types import Type
from tests.bench.bench_settings import BenchSettings
from tests.bench.figure import Figure, percentile
from tests.bench.postgres import connected
from tests.bench.stand import Stand, say, stand

TRANSACTIONS: Final = 300
ROUNDS: Final = 3
ROWS: Final = 1_000
CHANGES: Final = 50_000
CHANGES_A_COMMIT: Final = 500
Transaction = Callable[[int], None]
"""Of the row with that key."""
SHORT: Final = {level: level.value.replace(" ", "_") for level in Level}
T: Final = Descriptor(
    1, "t", 1, (Column(1, "id", Type("bigint")), Column(2, "n", Type("bigint"))), (1,)
)


def measure(settings: BenchSettings) -> Iterator[Figure]:
    yield from _history()
    with stand(["m1", "r1", "changefeed"], settings.warm_up) as where:
        where.submit({"sql": "CREATE TABLE t (id bigint PRIMARY KEY, n bigint)"})
        for key in range(ROWS):
            row = {"table": "t", "op": "insert", "key": [key], "values": {"n": key}}
            where.producer.submit(row)
        where.producer.wait(60)
        with open_replica(where.named("bench-replica")) as replica:
            yield from _levels("level_p50", lambda level: partial(_embedded, replica, level))
        with ExitStack() as stack:
            yield from _levels("wire_level_p50", lambda level: _over_the_wire(where, stack, level))


def _levels(name: str, transaction: Callable[[Level], Transaction]) -> Iterator[Figure]:
    say(f"{name}: {ROUNDS} × {TRANSACTIONS} transactions at each of {len(Level)} levels")
    runs = {level: transaction(level) for level in Level}
    took: dict[Level, list[float]] = {level: [] for level in Level}
    for _ in range(ROUNDS + 1):  # in turn, so that what else runs here hits all alike
        for level, run in runs.items():
            took[level] += _round(run)
    for level, found in took.items():
        measured = found[TRANSACTIONS:]  # the first round is the warm-up
        yield Figure(f"{name}_{SHORT[level]}", percentile(measured, 0.5), "ms")


def _round(run: Transaction) -> list[float]:
    """Each transaction's time in ms."""
    took = []
    for number in range(TRANSACTIONS):
        begin = time.perf_counter()
        run(number % (ROWS - 10))
        took.append((time.perf_counter() - begin) * 1_000)
    return took


def _embedded(replica: Replica, level: Level, key: int) -> None:
    def work(tx: WriteSet) -> None:
        row = tx.get("t", key)
        beside = list(tx.scan("t", key + 1, key + 6))
        assert row is not None
        tx.update("t", key, {"n": row["n"] + len(beside)})

    replica.transact(work, isolation=level)


def _over_the_wire(where: Stand, stack: ExitStack, level: Level) -> Transaction:
    """psycopg's time is in it: five statements there and back."""
    connection = stack.enter_context(
        connected(where.cluster.ports.sql[0], where.settings.cluster.database, "leasehold")
    )
    connection.prepare_threshold = 0
    connection.execute(f"SET leasehold.isolation = '{level.value}'")

    def run(key: int) -> None:
        with connection.transaction():
            row = connection.execute("SELECT n FROM t WHERE id = %s", (key,)).fetchone()
            beside = connection.execute(
                "SELECT n FROM t WHERE id >= %s AND id < %s", (key + 1, key + 6)
            ).fetchall()
            assert row is not None
            changed = (row[0] + len(beside), key)
            connection.execute("UPDATE t SET n = %s WHERE id = %s", changed)

    return run


def _history() -> Iterator[Figure]:
    """A follower's time for an update of a small row, without old images and with them."""
    say(f"{CHANGES} updates without and with rows of the past")
    for name, keep in (("row_history_off", False), ("row_history_on", True)):
        yield Figure(name, min(_update_us(keep=keep) for _ in range(ROUNDS)), "µs")


def _update_us(*, keep: bool) -> float:
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "store.db")
        store.keep_rows(keep)
        store.begin()
        store.prepare(T)
        store.put_descriptor(1, 1, T.to_wire())
        for key in range(ROWS):
            change = RowChange(ChangeKind.INSERT, 1, 1, (key,), {1: key, 2: 0}, {}, (0,))
            store.change(T, change, 1, key, None)
        store.commit(LogPosition(lsn=1))
        genids = {key: genid(1, key) for key in range(ROWS)}
        begin, lsn = time.process_time(), 1
        for number in range(CHANGES):
            if number % CHANGES_A_COMMIT == 0:
                store.begin()
            lsn, key = lsn + 1, number * 7919 % ROWS
            image, seen = {1: key, 2: lsn}, {0: genids[key]}
            change = RowChange(ChangeKind.UPDATE, 1, 1, (key,), image, seen, (0,))
            store.change(T, change, lsn, 0, None)
            genids[key] = genid(lsn, 0)
            if number % CHANGES_A_COMMIT == CHANGES_A_COMMIT - 1:
                store.commit(LogPosition(lsn=lsn))
        took = time.process_time() - begin
        store.close()
    return took / CHANGES * 1e6
