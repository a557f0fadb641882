"""A steady open-loop writer: `python -m tests.bench.steady_writer table rows per_second [column]`,
of numbers into column n, or of texts into another.

It ends with its standard input; its answer is [[due ns, answered ns], …] by CLOCK_BOOTTIME, the
clock that the measuring process reads too.
"""

from __future__ import annotations

import json
import sys
import threading
from queue import SimpleQueue
from typing import Final

from leasehold.adapters.os.clock import boottime_ns
from leasehold.client.change_producer import ChangeProducer
from leasehold.client.pending import Pending
from leasehold.settings.client import ClientSettings
from tests.bench.steady import steadily

TIMEOUT_S: Final = 120.0
STRIDE: Final = 7_919  # a prime: consecutive writes are far apart in the table


class Collector(threading.Thread):
    """Notes when each answer is there. Requests of one queue are answered in their order."""

    def __init__(self) -> None:
        super().__init__(name="answers", daemon=True)
        self.queue: SimpleQueue[tuple[int, Pending] | None] = SimpleQueue()
        self.times: list[tuple[int, int]] = []
        self.refused = ""

    def run(self) -> None:
        while (sent := self.queue.get()) is not None:
            due_ns, pending = sent
            outcome = pending.result(TIMEOUT_S)
            self.times.append((due_ns, boottime_ns()))
            if not outcome.lsn:
                self.refused = outcome.message


def main(table: str, rows: int, per_second: int, column: str = "n") -> None:
    with ChangeProducer(ClientSettings.read()) as producer:
        collector = Collector()
        collector.start()

        def put(number: int, due_ns: int) -> None:
            request = {
                "table": table,
                "op": "update",
                "key": [number * STRIDE % rows],
                "values": {column: number if column == "n" else str(number)},
            }
            collector.queue.put((due_ns, producer.submit(request)))

        steadily(per_second, put)
        collector.queue.put(None)
        collector.join()
    if collector.refused:
        raise SystemExit(f"a write was refused: {collector.refused}")
    print(json.dumps(collector.times))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
