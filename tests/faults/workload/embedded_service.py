"""A service with a replica of its own, as a process of the harness: `python -m
tests.faults.workload.embedded_service`. It reads and writes as its orders say, and writes down what
it saw; in the end, what its tables hold."""

from __future__ import annotations

import logging
import os
import random
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from leasehold import ClientSettings, Replica, open_replica
from leasehold.adapters.os.readiness import announce_ready
from leasehold.model.errors import (
    BusUnavailable,
    LeaseholdError,
    NotCoherent,
    OutcomeUnknown,
    SnapshotUnavailable,
    UnknownTable,
)
from leasehold.replica.write_set import WriteSet
from tests.faults.workload.history import Told
from tests.faults.workload.orders import LOOK_AGAIN_S, Orders, life_of, read_orders
from tests.faults.workload.recorder import Recorder
from tests.faults.workload.sql_clients import PACE_S, Values, draw_steps
from tests.faults.workload.tables import Tables, items_of

READ_S: Final = 0.05
OPEN_AGAIN_S: Final = 0.2
TRANSACT_S: Final = 10.0
OF_THIS_PROCESS: Final = 1 << 40
"""Values that it appends begin there, and for each life at a place of its own."""
LOG: Final = logging.getLogger("faults.embedded")


class Work:
    """What one life of the process does in one round, in threads."""

    def __init__(self, replica: Replica, orders: Orders, name: str) -> None:
        self._replica = replica
        self._orders = orders
        self._tables = Tables(orders.number)
        self._life = life_of(name)
        self._recorder = Recorder(Path(orders.history) / f"{self._life}.jsonl")
        first = OF_THIS_PROCESS + int(self._life.rsplit("-", 1)[1]) * 1_000_000
        self._values = Values(first)
        self._stopping = threading.Event()
        acts = [self._look, self._insert, *(self._appender(level) for level in orders.levels)]
        self._threads = [threading.Thread(target=self._repeat, args=(act,)) for act in acts]
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        """Stop, and write down what is there, once that can be read."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        op = self._recorder.begin(self._life, "final", {})
        self._replica.wait_coherent(60.0)
        rows = {
            table: [list(row.items()) for row in self._replica.scan(table)]
            for table in (self._tables.members, self._tables.lists)
        }
        self._recorder.end(op, Told.YES, rows=rows)

    def _repeat(self, act: Callable[[random.Random], float]) -> None:
        rng = random.Random(f"{self._orders.seed}/{self._life}/{act}")
        pause_s = 0.0
        while not self._stopping.wait(pause_s * rng.uniform(0.5, 1.5)):
            try:
                pause_s = act(rng)
            except OSError as error:
                LOG.error("what it does can't be written down: %s", error)  # a disk of this round
                os._exit(1)

    def _look(self, _: random.Random) -> float:
        op = self._recorder.begin(f"{self._life}/look", "look", {"node": self._life})
        try:
            row = self._replica.get(self._tables.counter, 0)
        except (NotCoherent, UnknownTable) as error:
            self._recorder.end(op, Told.NO, error.sqlstate)
            return READ_S
        except LeaseholdError as error:
            LOG.error("the replica is stopped: %s (%s)", error.message, error.sqlstate)
            os._exit(1)  # whoever runs the service starts it again
        self._recorder.end(op, Told.YES, n=row and row["n"])
        return READ_S

    def _insert(self, _: random.Random) -> float:
        tag = f"{self._life}-{self._values.next()}"
        op = self._recorder.begin(f"{self._life}/insert", "insert", {"tag": tag, "number": None})

        def insert(tx: WriteSet) -> dict[str, Any]:
            text = f"INSERT INTO {self._tables.members} (tag) VALUES ($1) RETURNING number"
            return {"number": tx.execute(text, [tag]).rows[0][0]}

        self._transact(op, insert, None)
        return PACE_S

    def _appender(self, level: str) -> Callable[[random.Random], float]:
        def act(rng: random.Random) -> float:
            steps = draw_steps(rng, level, self._values)
            value = {"level": level, "steps": steps}
            op = self._recorder.begin(f"{self._life}/{level}", "append", value)

            def work(tx: WriteSet) -> dict[str, Any]:
                return {"steps": [self._step(tx, *step) for step in steps]}

            self._transact(op, work, level)
            return PACE_S

        return act

    def _step(self, tx: WriteSet, what: str, key: int, value: Any) -> list[Any]:
        row = tx.get(self._tables.lists, key)
        assert row is not None
        if what == "append":
            tx.update(self._tables.lists, key, {"items": f"{row['items']},{value}"})
            return [what, key, value]
        return [what, key, items_of(row["items"])]

    def _transact(
        self, op: Any, work: Callable[[WriteSet], dict[str, Any]], level: str | None
    ) -> None:
        try:
            done = self._replica.transact(work, isolation=level, timeout_s=TRANSACT_S)
        except OutcomeUnknown as error:
            self._recorder.end(op, Told.UNKNOWN, error.sqlstate)
        except LeaseholdError as error:
            self._recorder.end(op, Told.NO if error.definite else Told.UNKNOWN, error.sqlstate)
        else:
            self._recorder.end(op, Told.YES, **done.value)


def main() -> None:
    logging.basicConfig(level=logging.INFO)
    settings = ClientSettings.read()
    data, name = settings.cluster.data, settings.cluster.node
    pause = threading.Event()
    with _open(settings) as replica:
        announce_ready(settings.cluster.ready_file)
        work, number = None, 0
        while True:
            orders = read_orders(data)
            if work is not None and (not orders.work or orders.number != number):
                with suppress(NotCoherent):
                    work.finish()
                work = None
            if work is None and orders.work:
                work, number = Work(replica, orders, name), orders.number
            pause.wait(LOOK_AGAIN_S)


def _open(settings: ClientSettings) -> Replica:
    """Open the replica, once Kafka is there and somebody has a copy."""
    while True:
        try:
            return open_replica(settings, wait_s=0)
        except (BusUnavailable, SnapshotUnavailable) as error:
            LOG.warning("tries again: %s (%s)", error.message, error.sqlstate)
            threading.Event().wait(OPEN_AGAIN_S)


if __name__ == "__main__":
    main()
