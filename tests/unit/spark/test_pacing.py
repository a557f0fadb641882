"""The token bucket and the gate over it."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_streaming.gate import Gate, RunStopped
from spark_streaming.pacing import BURST_MS, Bucket, filled, taken, wait_ns
from spark_streaming.rate_window import RateWindow

SECOND_NS = 1_000_000_000
DEADLINE_S = 30.0


@given(
    st.integers(1, 1_000_000),
    st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, SECOND_NS)), min_size=1),
)
def test_the_average_keeps_to_the_rate(rate: int, takes: list[tuple[int, int]]) -> None:
    """Goal: whatever is taken and however long the pauses are, at the time of each take what
    passed before it is at most what the rate allows since the start, plus one burst."""
    bucket = Bucket(0.0, 0)
    now_ns, passed = 0, 0
    for rows, idle_ns in takes:
        now_ns += idle_ns
        bucket = filled(bucket, rate, now_ns)
        wait = wait_ns(bucket, rate)
        now_ns += wait
        bucket = filled(bucket, rate, now_ns)
        assert wait_ns(bucket, rate) <= 1, "after the wait that was told, the take may pass"
        burst = max(1.0, rate * BURST_MS / 1000)
        assert passed <= rate * now_ns / SECOND_NS + burst + 1
        bucket = taken(Bucket(max(0.0, bucket.rows), now_ns), rows)
        passed += rows


def test_debt_is_paid_at_the_new_rate() -> None:
    bucket = taken(Bucket(0.0, 0), 1_000)
    assert wait_ns(bucket, 100) == pytest.approx(10 * SECOND_NS, abs=10)
    assert wait_ns(bucket, 1_000) == pytest.approx(SECOND_NS, abs=10)


def test_idle_time_saves_up_one_burst_only() -> None:
    bucket = filled(Bucket(0.0, 0), 1_000, 3_600 * SECOND_NS)
    assert bucket.rows == 1_000 * BURST_MS / 1_000


def test_a_waiting_sender_is_woken_by_a_new_rate() -> None:
    """Goal: a sender that would wait for hours passes when the limit is lifted."""
    gate = Gate({"rows_per_second": 1})
    gate.wait_turn(1_000_000)
    passed = threading.Event()

    def send() -> None:
        gate.wait_turn(1)
        passed.set()

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    gate.follow({"rows_per_second": 0, "chunk_rows": 10})
    assert passed.wait(DEADLINE_S)
    assert gate.rows_per_chunk == 10


def test_a_waiting_sender_is_stopped() -> None:
    gate = Gate({"rows_per_second": 1})
    gate.wait_turn(1_000_000)
    stopped = threading.Event()

    def send() -> None:
        try:
            gate.wait_turn(1)
        except RunStopped:
            stopped.set()

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    gate.close()
    assert stopped.wait(DEADLINE_S)
    with pytest.raises(RunStopped):
        gate.wait_turn(1)
    assert gate.is_closed()


def test_rate_window() -> None:
    window = RateWindow(window_ms=1_000)
    assert window.rows_per_second() == 0.0
    window.add(0, 0)
    assert window.rows_per_second() == 0.0
    window.add(100, SECOND_NS)
    assert window.rows_per_second() == 100.0
    window.add(1_100, 2 * SECOND_NS)
    assert window.rows_per_second() == 1_000.0, "what lies before the window is forgotten"
