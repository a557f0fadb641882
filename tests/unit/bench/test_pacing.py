"""Open-loop pacing: a slow answer must not make the next write later."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from leasehold.model.time_units import NS_PER_S
from tests.bench.pacing import Schedule, Span, Write, due_between, phase_spans


def test_due_times_are_fixed_at_the_start() -> None:
    schedule = Schedule(start_ns=1_000, per_second=200)
    assert [schedule.due_ns(number) for number in (0, 1, 200)] == [1_000, 5_001_000, 1_000_001_000]


@given(st.integers(1, 100_000), st.integers(0, 10_000))
def test_no_rounding_error_adds_up(per_second: int, seconds: int) -> None:
    schedule = Schedule(0, per_second)
    assert schedule.due_ns(per_second * seconds) == seconds * NS_PER_S


def test_a_late_writer_does_not_wait_and_leaves_nothing_out() -> None:
    """Stalled for a second at 200/s, it sends what was due meanwhile at once, one by one."""
    schedule = Schedule(0, 200)
    assert schedule.wait_s(1, now_ns=0) == 0.005
    late = [number for number in range(1, 300) if schedule.wait_s(number, NS_PER_S) == 0]
    assert late == list(range(1, 201))


def test_latency_counts_from_the_time_it_was_due() -> None:
    assert Write(due_ns=5_000_000, answered_ns=1_005_000_000).latency_ms == 1_000


def test_a_window_takes_writes_by_the_time_they_were_due() -> None:
    """One that was due in the window and answered long after it is the stall that is looked for."""
    writes = [Write(9, 10), Write(10, 2_000_010), Write(19, 5_000_019), Write(20, 21)]
    assert due_between(writes, 10, 20) == [2, 5]


def test_phases_of_all_steps_by_name_on_the_clock_of_the_writes() -> None:
    """The last mark is the job's end: nothing lasts behind it."""
    marks = [(0, "publishing", 9), (0, "draining", 10), (1, "publishing", 30), (1, "done", 31)]
    assert phase_spans(marks, ahead_ns=2_000) == {
        "publishing": [Span(7_000, 8_000), Span(28_000, 29_000)],
        "draining": [Span(8_000, 28_000)],
    }
