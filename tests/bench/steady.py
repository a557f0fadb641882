"""The loop of a steady open-loop writer, whatever it writes to."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from itertools import count

from leasehold.adapters.os.clock import boottime_ns
from tests.bench.pacing import Schedule


def steadily(per_second: int, put: Callable[[int, int], None]) -> None:
    """Says "ready", then `put(number, due ns)` for 0, 1, 2 … at their times by CLOCK_BOOTTIME,
    until standard input ends. `put` must not wait for an answer: the next ones would be late."""
    stop = threading.Event()
    print("ready", flush=True)

    def end_of_input() -> None:
        sys.stdin.read()
        stop.set()

    threading.Thread(target=end_of_input, name="input", daemon=True).start()
    schedule = Schedule(boottime_ns(), per_second)
    for number in count():
        if stop.wait(schedule.wait_s(number, boottime_ns())):
            return
        put(number, schedule.due_ns(number))
