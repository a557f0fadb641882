"""The steady open-loop writer on a PostgreSQL: `python -m tests.bench.steady_postgres port table
rows per_second`.

The same rows in the same order as `steady_writer`, and the same answer. A connection carries one
write at a time, so that there are several: a write that takes long keeps none behind it waiting.
"""

from __future__ import annotations

import json
import sys
import threading
from contextlib import closing
from queue import SimpleQueue
from typing import Final

import psycopg

from leasehold.adapters.os.clock import boottime_ns
from tests.bench.postgres import connected
from tests.bench.steady import steadily
from tests.bench.steady_writer import STRIDE

CONNECTIONS: Final = 32


class Connection(threading.Thread):
    """Takes the next write as soon as its last one is committed; ends with a None."""

    def __init__(self, port: int, table: str, rows: int, due: SimpleQueue[tuple[int, int] | None]):
        super().__init__(name="connection", daemon=True)
        self.times: list[tuple[int, int]] = []
        self.error = ""
        self._connection = connected(port)
        self._connection.prepare_threshold = 0
        self._sql = f"UPDATE {table} SET n = %s WHERE id = %s"
        self._rows = rows
        self._due = due

    def run(self) -> None:
        with closing(self._connection):
            while (write := self._due.get()) is not None:
                number, due_ns = write
                try:
                    self._connection.execute(self._sql, (number, number * STRIDE % self._rows))
                except psycopg.Error as error:
                    self.error = str(error)
                    return
                self.times.append((due_ns, boottime_ns()))


def main(port: int, table: str, rows: int, per_second: int) -> None:
    due: SimpleQueue[tuple[int, int] | None] = SimpleQueue()
    connections = [Connection(port, table, rows, due) for _ in range(CONNECTIONS)]
    for each in connections:
        each.start()
    steadily(per_second, lambda number, due_ns: due.put((number, due_ns)))
    for _ in connections:
        due.put(None)
    for each in connections:
        each.join()
    if errors := [each.error for each in connections if each.error]:
        raise SystemExit(f"a write failed: {errors[0]}")
    print(json.dumps(sorted(write for each in connections for write in each.times)))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
