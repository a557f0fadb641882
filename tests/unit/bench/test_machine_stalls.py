"""The machine's own stalls beside a wait: what of it was theirs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leasehold.adapters.os.clock import boottime_ns
from tests.bench.machine_stalls import PAUSE_NS, STALL_NS, longest_ms, shared_ms
from tests.bench.pacing import Span

MS = 1_000_000
SPANS = st.tuples(st.integers(0, 40), st.integers(0, 40)).map(
    lambda ends: Span(min(ends) * MS, max(ends) * MS)
)


def test_without_a_stall_nothing_was_the_machines() -> None:
    assert longest_ms([], Span(0, MS)) == shared_ms([], Span(0, MS)) == 0


def test_a_stall_counts_by_the_part_that_lies_within() -> None:
    stalls = [Span(0, 30 * MS), Span(95 * MS, 200 * MS)]
    assert longest_ms(stalls, Span(20 * MS, 100 * MS)) == 10
    assert shared_ms(stalls, Span(20 * MS, 100 * MS)) == 15


@given(st.lists(SPANS, max_size=6), SPANS)
def test_what_is_shared_is_the_milliseconds_in_which_any_processor_stood(
    stalls: list[Span], within: Span
) -> None:
    stood = {
        ms
        for begin, end in stalls
        for ms in range(begin // MS, end // MS)
        if within.begin_ns <= ms * MS < within.end_ns
    }
    assert shared_ms(stalls, within) == len(stood)


def test_what_kept_the_watcher_from_running_is_told_by_when_it_was() -> None:
    """A process that is stopped has no turn, whatever its priority."""
    processor = min(os.sched_getaffinity(0))
    with subprocess.Popen(
        [sys.executable, "-m", "tests.bench.machine_stalls", str(processor)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as watcher:
        assert watcher.stdout is not None
        assert watcher.stdout.readline() == "ready\n"
        watcher.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, watcher.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        stopped_ns = boottime_ns()
        while boottime_ns() < stopped_ns + PAUSE_NS + 2 * STALL_NS:
            pass
        continued_ns = boottime_ns()
        watcher.send_signal(signal.SIGCONT)
        out, _ = watcher.communicate(timeout=60)
    stalls = json.loads(out)
    if stalls is None:
        pytest.skip("this user may not have real-time priority")
    assert any(due <= stopped_ns + PAUSE_NS and continued_ns <= awake for due, awake in stalls), (
        stopped_ns,
        continued_ns,
        stalls,
    )
