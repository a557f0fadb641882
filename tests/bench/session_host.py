"""Sessions in short transactions: `python -m tests.bench.session_host table rows sessions`.

Each session is a thread that reads a row of its own, adds one and commits, on one embedded
replica, by an open-loop schedule. The answer is [[due ns, answered ns], …] of all of them.
"""

from __future__ import annotations

import json
import sys
import threading
from typing import Any, Final

from leasehold.adapters.os.clock import boottime_ns
from leasehold.replica.replica import Replica, open_replica
from leasehold.settings.client import ClientSettings
from tests.bench.pacing import Schedule

PER_SECOND: Final = 5
"""Transactions of one session: twenty make a hundred in a second."""


def work(
    replica: Replica, table: str, key: int, stop: threading.Event, times: list[tuple[int, int]]
) -> None:
    def add_one(tx: Any) -> None:
        row = tx.get(table, key)
        tx.update(table, key, {"n": row["n"] + 1})

    schedule = Schedule(boottime_ns(), PER_SECOND)
    number = 0
    while not stop.wait(schedule.wait_s(number, boottime_ns())):
        replica.transact(add_one)
        times.append((schedule.due_ns(number), boottime_ns()))
        number += 1


def main(table: str, rows: int, sessions: int) -> None:
    stop = threading.Event()
    times: list[list[tuple[int, int]]] = [[] for _ in range(sessions)]
    with open_replica(ClientSettings.read()) as replica:
        threads = [
            threading.Thread(
                target=work, args=(replica, table, number * rows // sessions, stop, times[number])
            )
            for number in range(sessions)
        ]
        for thread in threads:
            thread.start()
        print("ready", flush=True)
        sys.stdin.read()
        stop.set()
        for thread in threads:
            thread.join()
    print(json.dumps([each for session in times for each in session]))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
