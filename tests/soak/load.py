"""Who works on the cluster meanwhile: writers, readers, somebody who changes the schema, and
somebody who stops and starts the processes in turn."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any, Final, LiteralString

import psycopg
from psycopg import errors

from infra.local_cluster import LocalCluster
from infra.ports import LOOPBACK
from leasehold.adapters.os.clock import boottime_ns

ROWS: Final = 20_000
LOOK_AGAIN_S: Final = 0.05
CONNECT_S: Final = 5
FAILURES_KEPT: Final = 20
MAKE: Final[tuple[LiteralString, ...]] = (
    "CREATE TABLE IF NOT EXISTS soak (id integer PRIMARY KEY, n bigint NOT NULL, words text)",
    "CREATE TABLE IF NOT EXISTS soak_log (id bigserial PRIMARY KEY, at timestamptz DEFAULT now())",
)
CHANGES: Final[tuple[LiteralString, ...]] = (
    "ALTER TABLE soak ADD COLUMN IF NOT EXISTS extra integer NOT NULL DEFAULT 7",
    "CREATE INDEX IF NOT EXISTS soak_words ON soak (words)",
    "ALTER TABLE soak ALTER COLUMN extra TYPE bigint",
    "CREATE TABLE IF NOT EXISTS soak_other (id integer PRIMARY KEY, t text UNIQUE)",
    "DROP INDEX IF EXISTS soak_words",
    "ALTER TABLE soak DROP COLUMN IF EXISTS extra",
    "DROP TABLE IF EXISTS soak_other",
)
"""Each may be said again where a restart has taken its answer."""
AGAIN: Final = (
    errors.SerializationFailure,
    errors.AdminShutdown,
    errors.CannotConnectNow,
    psycopg.OperationalError,
    psycopg.InterfaceError,
)
"""What a client is documented to run again: 40001, and the end of its connection."""


@dataclass(slots=True)
class Counts:
    """What one kind of client has met. Latencies in ms, counted from when a statement was due."""

    done: int = 0
    again: int = 0
    longest_ms: float = 0.0
    failures: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, took_ms: float) -> None:
        with self._lock:
            self.done += 1
            self.longest_ms = max(self.longest_ms, took_ms)

    def ran_again(self) -> None:
        with self._lock:
            self.again += 1

    def failed(self, words: str) -> None:
        with self._lock:
            if len(self.failures) < FAILURES_KEPT:
                self.failures.append(words)


Statement = tuple[LiteralString, Sequence[object]]
Stop = threading.Event


class Client:
    """Statements through whichever replicant answers, each run again as it may be."""

    def __init__(self, ports: Sequence[int], database: str, counts: Counts, seed: int) -> None:
        self._ports = list(ports)
        random.Random(seed).shuffle(self._ports)
        self._places = cycle(self._ports)
        self._database = database
        self._counts = counts
        self._connection: psycopg.Connection[Any] | None = None

    def run(self, sql: LiteralString, given: Sequence[object], due_ns: int, stop: Stop) -> None:
        """Run it until it is done, or has failed for a reason that no client expects."""
        while not stop.is_set():
            try:
                self._connected().execute(sql, given)
            except AGAIN:
                self._counts.ran_again()
                self._leave()
                stop.wait(LOOK_AGAIN_S)
            except psycopg.Error as error:
                self._counts.failed(f"{error.sqlstate}: {error} ({sql[:60]})")
                self._leave()
                return
            else:
                self._counts.add((boottime_ns() - due_ns) / 1e6)
                return

    def _connected(self) -> psycopg.Connection[Any]:
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(
                host=LOOPBACK,
                port=next(self._places),
                dbname=self._database,
                user="leasehold",
                autocommit=True,
                connect_timeout=CONNECT_S,
            )
        return self._connection

    def _leave(self) -> None:
        if self._connection is not None and self._connection.broken:
            self._connection = None

    def close(self) -> None:
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()


@dataclass(slots=True)
class Work:
    """The threads, until `stop`."""

    ports: Sequence[int]
    database: str
    seed: int
    stop: Stop = field(default_factory=Stop)
    writes: Counts = field(default_factory=Counts)
    reads: Counts = field(default_factory=Counts)
    changes: Counts = field(default_factory=Counts)
    restarts: Counts = field(default_factory=Counts)
    threads: list[threading.Thread] = field(default_factory=list)

    def prepare(self) -> None:
        """Make the tables and their rows."""
        with psycopg.connect(
            host=LOOPBACK,
            port=self.ports[0],
            dbname=self.database,
            user="leasehold",
            autocommit=True,
        ) as connection:
            for sql in MAKE:
                connection.execute(sql)
            connection.execute(
                "INSERT INTO soak SELECT i, 0, 'word ' || i FROM generate_series(1, %s) AS g (i)",
                (ROWS,),
            )

    def start(
        self,
        cluster: LocalCluster,
        names: Sequence[str],
        writers: int,
        per_second: float,
        change_every_s: float,
        restart_every_s: float,
    ) -> None:
        """Begin: so many writers and as many readers, each with its share of `per_second`
        statements."""
        for number in range(writers):
            random_ = random.Random(self.seed * 1_000 + number)
            share = per_second / writers
            self._begin(self.writes, number, self._paced(self._writes(random_), share))
            self._begin(self.reads, number, self._paced(self._reads(random_), share))
        self._begin(self.changes, 0, self._paced(self._changes(), 1 / change_every_s))
        thread = threading.Thread(
            target=self._restart, args=(cluster, names, restart_every_s), name="restarts"
        )
        self.threads.append(thread)
        for each in self.threads:
            each.start()

    def end(self) -> None:
        """Stop all and wait until they have."""
        self.stop.set()
        for each in self.threads:
            each.join()

    def _begin(
        self, counts: Counts, number: int, statements: Iterator[tuple[Statement, int]]
    ) -> None:
        client = Client(self.ports, self.database, counts, self.seed + number)

        def run() -> None:
            try:
                for (sql, given), due_ns in statements:
                    client.run(sql, given, due_ns, self.stop)
            finally:
                client.close()

        self.threads.append(threading.Thread(target=run, name=f"client-{len(self.threads)}"))

    def _paced(
        self, statements: Iterator[Statement], per_second: float
    ) -> Iterator[tuple[Statement, int]]:
        """Yield statements, each when it is due, with that time. A client that is late makes no
        two at once for that: the machine is to be busy, not its own queue long."""
        every_ns, due_ns = int(1e9 / per_second), boottime_ns()
        for statement in statements:
            due_ns = max(due_ns + every_ns, boottime_ns())
            if self.stop.wait(max(0.0, (due_ns - boottime_ns()) / 1e9)):
                return
            yield statement, due_ns

    def _writes(self, random_: random.Random) -> Iterator[Statement]:
        while True:
            if random_.random() < 0.2:
                yield "INSERT INTO soak_log DEFAULT VALUES", ()
                yield "DELETE FROM soak_log WHERE at < now() - interval '1 minute'", ()
            yield "UPDATE soak SET n = n + 1 WHERE id = %s", (random_.randint(1, ROWS),)

    def _reads(self, random_: random.Random) -> Iterator[Statement]:
        while True:
            first = random_.randint(1, ROWS)
            yield "SELECT n, words FROM soak WHERE id = %s", (first,)
            yield "SELECT sum(n) FROM soak WHERE id BETWEEN %s AND %s", (first, first + 200)

    def _changes(self) -> Iterator[Statement]:
        for sql in cycle(CHANGES):
            yield sql, ()

    def _restart(self, cluster: LocalCluster, names: Sequence[str], every_s: float) -> None:
        for name in cycle(names):
            if self.stop.wait(every_s):
                return
            begun_ns = boottime_ns()
            try:
                cluster.stop(name)
                cluster.start(name)
            except Exception as error:  # noqa: BLE001 - told at the end, as what it is
                self.restarts.failed(f"{name}: {error}")
                continue
            self.restarts.add((boottime_ns() - begun_ns) / 1e6)
