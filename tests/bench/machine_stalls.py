"""How long one processor gave nobody a turn: `python -m tests.bench.machine_stalls PROCESSOR`.

It sleeps for a moment again and again at real-time priority, as jHiccup does at an ordinary one:
where it wakes up late, whatever else wanted this processor had no turn either, because the machine
below took it away or the kernel did not yield it. What services do to each other is not in it.
It ends with its standard input; its answer is [[due ns, awake ns], …] by CLOCK_BOOTTIME of the
longer ones, null where real-time priority is not allowed.
"""

from __future__ import annotations

import json
import os
import select
import sys
from collections.abc import Iterable
from typing import Final

from leasehold.adapters.os.clock import boottime_ns
from leasehold.model.time_units import NS_PER_S
from tests.bench.pacing import Span

PAUSE_NS: Final = 2_000_000
STALL_NS: Final = 5_000_000
"""What a write may well wait for anyway; all that is longer is noted, some a minute."""
PRIORITY: Final = 1  # the least of the real-time ones stands above every ordinary thread


def watch(processor: int) -> list[Span] | None:
    """Until the end of standard input; None where this process may not have real-time priority."""
    os.sched_setaffinity(0, [processor])
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    except PermissionError:
        return None
    finally:
        print("ready", flush=True)
    stalls: list[Span] = []
    ended: list[object] = []
    awake_ns = boottime_ns()
    while not ended:
        due_ns = awake_ns + PAUSE_NS
        ended, _, _ = select.select([sys.stdin], [], [], max(0, due_ns - boottime_ns()) / NS_PER_S)
        awake_ns = boottime_ns()
        if awake_ns - due_ns >= STALL_NS:
            stalls.append(Span(due_ns, awake_ns))
    return stalls


def longest_ms(stalls: Iterable[Span], within: Span) -> float:
    """The longest part of one that lies in `within`, in ms; 0 for none."""
    return max((_shared_ns(each, within) for each in stalls), default=0) / 1e6


def shared_ms(stalls: Iterable[Span], within: Span) -> float:
    """How much of `within` some processor was in a stall; when two were at once counts once."""
    shared, end_ns = 0, within.begin_ns
    for each in sorted(stalls):
        rest = Span(max(end_ns, each.begin_ns), each.end_ns)
        shared += _shared_ns(rest, within)
        end_ns = max(end_ns, each.end_ns)
    return shared / 1e6


def _shared_ns(one: Span, other: Span) -> int:
    return max(0, min(one.end_ns, other.end_ns) - max(one.begin_ns, other.begin_ns))


def main(processor: int) -> None:
    print(json.dumps(watch(processor)))


if __name__ == "__main__":
    main(int(sys.argv[1]))
