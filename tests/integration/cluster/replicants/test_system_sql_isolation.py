"""Isolation levels over the wire, between the replicants of a real cluster, by psycopg.

Goal: what SQL sessions show in virtual time holds on Kafka and in real time too. Method: the same
stories, each session a connection to another replicant; and list-append transactions of several
threads, their histories checked for cycles.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import psycopg
import pytest

from infra.local_cluster import LocalCluster
from leasehold.model.errors import Refused, refused
from leasehold.transaction.isolation import Level
from tests.isolation.cycles import Transaction, anomalies
from tests.isolation.hermitage import CASES
from tests.isolation.sql_list_append import items_of
from tests.isolation.sql_told import BEGIN, Answered, SqlTold
from tests.isolation.test_hermitage import ALLOWED, table
from tests.isolation.test_list_append import MAY
from tests.models.summary import Tell
from tests.support.cluster.secure_suite import dsn_of

SEED = 1
LISTS = 3
CLIENTS = 4
TRANSACTIONS_EACH = 20
ENDINGS = {"40001"}


def connect(cluster: LocalCluster, place: int) -> psycopg.Connection[Any]:
    return psycopg.connect(dsn_of(cluster, place), autocommit=True)


def said(connection: psycopg.Connection[Any], text: str) -> Answered:
    """Raises Refused with the SQLSTATE that came."""
    try:
        cursor = connection.execute(text)
    except psycopg.Error as error:
        raise refused(error.sqlstate or "XX000", str(error), {}) from error
    return Answered(cursor.statusmessage or "", cursor.fetchall() if cursor.description else [])


class WireScene:
    """`Stands`, on two replicants."""

    def __init__(self, cluster: LocalCluster, level: Level) -> None:
        self._cluster = cluster
        self._level = level
        self._opened: list[psycopg.Connection[Any]] = []
        with connect(cluster, 0) as connection:
            said(connection, "delete from test")
            said(connection, "insert into test values (1, 10), (2, 20)")

    def sessions(self, number: int) -> list[SqlTold]:
        return [self.session(f"r{1 + n % 2}").begin() for n in range(number)]

    def session(self, node: str) -> SqlTold:
        connection = connect(self._cluster, int(node[1:]) - 1)
        self._opened.append(connection)
        return SqlTold(lambda text: said(connection, text), self._level.value)

    def rows(self) -> dict[int, Any]:
        seen = []
        for place in (0, 1):
            with connect(self._cluster, place) as connection:
                seen.append(dict(said(connection, "select id, value from test").rows))
        assert seen[0] == seen[1], seen
        return seen[0]

    def close(self) -> None:
        for connection in self._opened:
            connection.close()


def test_levels_and_anomalies(cluster: LocalCluster, tell: Tell) -> None:
    with connect(cluster, 0) as connection:
        said(connection, "create table test (id bigint primary key, value bigint)")
    found: dict[Level, set[str]] = {level: set() for level in Level}
    for level in Level:
        for name, story in CASES.items():
            scene = WireScene(cluster, level)
            try:
                if not story(scene):
                    found[level].add(name)
            finally:
                scene.close()
    tell("over the wire, on real parts\n" + "\n".join(table(found)))
    assert found == ALLOWED


# ------------------------------------------------------------------ list-append


class Appends:
    """Threads that append to lists and read them. `refusals`: SQLSTATEs."""

    def __init__(self, cluster: LocalCluster, level: Level) -> None:
        self._cluster = cluster
        self._level = level
        self._table = f"lists_{level.value.replace(' ', '_')}"
        self._numbers = count()
        self._ticks = count()
        self._lock = threading.Lock()
        self.history: list[Transaction] = []
        self.refusals: Counter[str] = Counter()
        with connect(cluster, 0) as connection:
            said(connection, f"create table {self._table} (id bigint primary key, items text)")
            rows = ", ".join(f"({number}, '')" for number in range(LISTS))
            said(connection, f"insert into {self._table} values {rows}")

    def _next_tick(self) -> int:
        with self._lock:
            return next(self._ticks)

    def run(self) -> None:
        with ThreadPoolExecutor(CLIENTS) as pool:
            for done in [pool.submit(self._client, number) for number in range(CLIENTS)]:
                done.result()

    def _client(self, number: int) -> None:
        rng = random.Random(f"{SEED}/{self._level}/{number}")
        with connect(self._cluster, number % 2) as connection:
            for _ in range(TRANSACTIONS_EACH):
                with self._lock:
                    told = Transaction(len(self.history))
                    self.history.append(told)
                told.begun = self._next_tick()
                try:
                    self._transaction(connection, told, rng)
                    told.committed = True
                except Refused as error:
                    said(connection, "rollback")
                    with self._lock:
                        self.refusals[error.sqlstate] += 1
                told.ended = self._next_tick()

    def _transaction(
        self, connection: psycopg.Connection[Any], told: Transaction, rng: random.Random
    ) -> None:
        said(connection, BEGIN[self._level])
        own: set[int] = set()
        for _ in range(rng.randrange(2, 5)):
            at = rng.randrange(LISTS)
            if rng.random() < 0.4 and at not in own:
                own.add(at)
                with self._lock:
                    value = next(self._numbers)
                text = f"update {self._table} set items = items || ',{value}' where id = {at}"
                assert said(connection, text).rowcount == 1
                told.appends.append((at, value))
                continue
            found = said(connection, f"select items from {self._table} where id = {at}").rows
            if self._level is not Level.DEFAULT or at not in own:
                told.reads.append((at, items_of(found[0][0])))
        said(connection, "commit")

    def anomalies(self) -> set[str]:
        final = []
        for place in (0, 1):
            with connect(self._cluster, place) as connection:
                rows = said(connection, f"select id, items from {self._table}").rows
                final.append({number: items_of(items) for number, items in rows})
        assert final[0] == final[1]
        return anomalies(self.history, final[0], real_time=self._level is Level.LINEARIZABLE)


@pytest.mark.parametrize("level", list(Level))
def test_list_append(level: Level, cluster: LocalCluster, tell: Tell) -> None:
    run = Appends(cluster, level)
    run.run()
    found = run.anomalies()
    committed = sum(t.committed for t in run.history)
    tell(
        f"list-append over the wire, {level.value}: seed {SEED}, {committed} commits of"
        f" {len(run.history)}, refused {dict(run.refusals)}; seen: {sorted(found) or 'none'}"
    )
    assert found <= MAY[level]
    assert set(run.refusals) <= ENDINGS
    assert committed
