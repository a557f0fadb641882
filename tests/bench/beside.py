"""What a schema change does to writers beside it, whoever makes it: Leasehold or PostgreSQL."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from leasehold.adapters.os.clock import boottime_ns
from tests.bench.child import Child, Starter
from tests.bench.figure import Figure, in_words, latencies, percentile
from tests.bench.machine_stalls import longest_ms, shared_ms
from tests.bench.pacing import Span, Write, due_between, due_in
from tests.bench.stand import say

WRITES_PER_S: Final = 200
SETTLE_S: Final = 3.0
QUIET_S: Final = 10.0
WITHOUT_FILL: Final = ("default",)
"""Changes that touch no row, by their names in the figures: what counts is how long one takes,
whatever the rows."""
AT_A_TIME: Final = 20
"""So many of those are made one after the other: beside a single one hardly a write is due."""


def beside_metric(when: str) -> str:
    """The metric of how fast a change is beside the writers."""
    if when in WITHOUT_FILL:
        return f"{when}_took_beside"
    return f"{'index' if when == 'during' else when}_rows_rate_beside"


class Done(NamedTuple):
    """A change that has ended: how long it took (the median of several), and when it was in each
    of its phases (by CLOCK_BOOTTIME), where it has some."""

    took_s: float
    phases: dict[str, list[Span]]


def writes_beside(
    start: Starter,
    writer: Child,
    changes: Mapping[str, Callable[[], Done]],
    rows: int,
    suffix: str = "",
) -> Iterator[Figure]:
    """Each change on so many rows by its name in the figures, with a rest before and after: what
    a change did to the writers is told from what the machine did. `suffix` of all names."""
    processors = sorted(os.sched_getaffinity(0))
    watchers = [start(f"cpu{n}", "machine_stalls", n) for n in processors]
    for child in (*watchers, writer):
        child.wait_ready()
    say(f"{WRITES_PER_S} writes/s, changes beside them, {QUIET_S:g} s between two")
    quiet = [_quiet_span()]
    spans, phases = {}, {}
    for when, change in changes.items():
        begin_ns = boottime_ns()
        done = change()
        spans[when] = Span(begin_ns, boottime_ns())
        phases[when] = done.phases
        say(f"took {done.took_s:.3f} s beside the writes")
        if when in WITHOUT_FILL:
            yield Figure(f"{beside_metric(when)}{suffix}", done.took_s * 1e3, "ms")
        else:
            yield Figure(f"{beside_metric(when)}{suffix}", rows / done.took_s, "rows/s")
        quiet.append(_quiet_span())
    writes = _writes(writer)
    stalls = _stalls(watchers)
    yield from _waits("before", suffix, writes, quiet[0], stalls)
    for (when, span), around in zip(spans.items(), pairwise(quiet), strict=True):
        yield from _waits(when, suffix, writes, span, stalls)
        beside, alone = due_between(writes, *span), _latencies_in(writes, around)
        ratio = percentile(beside, 0.99) / percentile(alone, 0.99)
        yield Figure(f"write_p99_ratio_{when}{suffix}", ratio, "times")
        for phase, parts in {**phases[when], "alone": list(around)}.items():
            _say_phase(f"{when}: {phase}", _latencies_in(writes, parts))


def _quiet_span() -> Span:
    """Some seconds without a change; what a change before them has left is not in them."""
    time.sleep(SETTLE_S)
    begin_ns = boottime_ns()
    time.sleep(QUIET_S)
    return Span(begin_ns, boottime_ns())


def _stalls(watchers: Sequence[Child]) -> list[Span] | None:
    """The machine's own stalls; None where they can't be told from ours."""
    found = [watcher.answer(stop=True) for watcher in watchers]
    if None in found:
        say("the machine's own stalls are left out: this user may not have real-time priority")
        return None
    return [Span(*each) for stalls in found for each in stalls]


def _waits(
    when: str, suffix: str, writes: Sequence[Write], span: Span, stalls: Sequence[Span] | None
) -> Iterator[Figure]:
    due = due_in(writes, span)
    yield from latencies("write", f"{when}{suffix}", [each.latency_ms for each in due])
    if stalls is None:
        return
    yield Figure(f"machine_stall_{when}{suffix}", longest_ms(stalls, span), "ms")
    longest = max(due, key=lambda each: each.latency_ms)
    share = in_words(shared_ms(stalls, Span(*longest)))
    say(f"{when}: of its longest wait, {in_words(longest.latency_ms)} ms, the machine's {share}")


def _latencies_in(writes: Sequence[Write], spans: Iterable[Span]) -> list[float]:
    return [latency for each in spans for latency in due_between(writes, *each)]


def _say_phase(phase: str, found: Sequence[float]) -> None:
    if found:
        p50, p99, longest = (in_words(percentile(found, share)) for share in (0.5, 0.99, 1))
        say(f"{phase}: {len(found)} writes, p50 {p50}, p99 {p99}, longest {longest} ms")


def _writes(writer: Child) -> list[Write]:
    return [Write(due, answered) for due, answered in writer.answer(stop=True)]
