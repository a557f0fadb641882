"""Open-loop pacing: when each request is meant to be sent, whatever became of those before. Pure.

A writer that waits for an answer before it sends the next request sends least while the system is
slow, and so measures the good times only (Gil Tene calls it coordinated omission). Here request n
is due at a time fixed at the start, and its latency counts from then even if it was sent later.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from leasehold.model.time_units import NS_PER_S


class Schedule(NamedTuple):
    """Requests 0, 1, 2 … of a steady writer; times in ns of one clock."""

    start_ns: int
    per_second: int

    def due_ns(self, number: int) -> int:
        # From the number, not from the one before: no rounding error adds up.
        return self.start_ns + number * NS_PER_S // self.per_second

    def wait_s(self, number: int, now_ns: int) -> float:
        """0 for a request that is late already: it is sent at once, not left out."""
        return max(0, self.due_ns(number) - now_ns) / NS_PER_S


class Span(NamedTuple):
    """[begin, end) in ns of one clock."""

    begin_ns: int
    end_ns: int


class Write(NamedTuple):
    """A write by the time it was due and the time its answer was there."""

    due_ns: int
    answered_ns: int

    @property
    def latency_ms(self) -> float:
        return (self.answered_ns - self.due_ns) / 1e6


def phase_spans(marks: Sequence[tuple[int, str, int]], ahead_ns: int) -> dict[str, list[Span]]:
    """When a job was in each of its phases, whatever the step. `marks`: (step, phase, µs) as a job
    has them, of a clock that is `ahead_ns` ahead of the one that is wanted."""
    spans: dict[str, list[Span]] = {}
    for (_, phase, begin_us), (_, _, end_us) in pairwise(marks):
        span = Span(begin_us * 1_000 - ahead_ns, end_us * 1_000 - ahead_ns)
        spans.setdefault(phase, []).append(span)
    return spans


def due_in(writes: Iterable[Write], span: Span) -> list[Write]:
    return [write for write in writes if span.begin_ns <= write.due_ns < span.end_ns]


def due_between(writes: Iterable[Write], begin_ns: int, end_ns: int) -> list[float]:
    """Latencies in ms of the writes that were due in [begin, end)."""
    return [write.latency_ms for write in due_in(writes, Span(begin_ns, end_ns))]
