"""A client that keeps so many verified transactions in flight: `python -m tests.bench.rate_client
table first_key in_flight warm_up_s seconds`.

Each row is a chain of its own: its next update expects the genid that its last one has given it.
The answers come in the order of the requests, so waiting for the oldest keeps all in flight.
"""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from dataclasses import replace
from typing import Any

from leasehold.client.change_producer import ChangeProducer
from leasehold.client.pending import Pending
from leasehold.model.ids import genid
from leasehold.model.records.requests import Outcome
from leasehold.settings.client import ClientSettings

TIMEOUT_S = 60.0


def _committed(pending: Pending) -> Outcome:
    outcome = pending.result(TIMEOUT_S)
    if not outcome.lsn:
        raise SystemExit(f"a request was refused: {outcome.message}")
    return outcome


def _update(table: str, key: int, number: int, expect: int) -> dict[str, Any]:
    return {
        "table": table,
        "op": "update",
        "key": [key],
        "values": {"n": number},
        "expect": expect,
        "on_conflict": "fail",
    }


def main(table: str, first: int, in_flight: int, warm_up_s: float, seconds: float) -> None:
    settings = replace(ClientSettings.read(), in_flight_max=in_flight + 1)
    with ChangeProducer(settings) as producer:
        waiting: deque[tuple[int, Pending]] = deque()
        for key in range(first, first + in_flight):
            row = {"table": table, "op": "insert", "key": [key], "values": {"n": 0}}
            waiting.append((key, producer.submit(row)))
        producer.wait(TIMEOUT_S)
        print("ready", flush=True)
        sys.stdin.readline()
        begin = time.monotonic() + warm_up_s
        end = begin + seconds
        committed, number, cpu_s = 0, 0, time.process_time()
        while (now := time.monotonic()) < end:
            key, pending = waiting.popleft()
            outcome = _committed(pending)
            committed += now >= begin
            number += 1
            request = _update(table, key, number, genid(outcome.lsn, 0))
            waiting.append((key, producer.submit(request)))
        cpu_s = time.process_time() - cpu_s
        for _, pending in waiting:
            _committed(pending)
    print(json.dumps({"committed": committed, "all": number, "cpu_s": cpu_s}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]), float(sys.argv[5]))
