"""The token bucket and the gate over it."""

from __future__ import annotations

import threading
from queue import Empty, SimpleQueue

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leasehold.pipeline.pacing import BURST_MS, Bucket, refill, take_rows, wait_ns
from leasehold.pipeline.rate_window import RateWindow
from spark_streaming.gate import RateLimiter, RunStopped

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
        bucket = refill(bucket, rate, now_ns)
        wait = wait_ns(bucket, rate)
        now_ns += wait
        bucket = refill(bucket, rate, now_ns)
        assert wait_ns(bucket, rate) <= 1, "after the wait that was told, the take may pass"
        burst = max(1.0, rate * BURST_MS / 1000)
        assert passed <= rate * now_ns / SECOND_NS + burst + 1
        bucket = take_rows(Bucket(max(0.0, bucket.rows), now_ns), rows)
        passed += rows


def test_debt_is_paid_at_the_new_rate() -> None:
    bucket = take_rows(Bucket(0.0, 0), 1_000)
    assert wait_ns(bucket, 100) == pytest.approx(10 * SECOND_NS, abs=10)
    assert wait_ns(bucket, 1_000) == pytest.approx(SECOND_NS, abs=10)


def test_idle_time_saves_up_one_burst_only() -> None:
    bucket = refill(Bucket(0.0, 0), 1_000, 3_600 * SECOND_NS)
    assert bucket.rows == 1_000 * BURST_MS / 1_000


def test_a_waiting_sender_is_woken_by_a_new_rate() -> None:
    """Goal: a sender that would wait for hours passes when the limit is lifted."""
    gate = RateLimiter({"rows_per_second": 1})
    gate.wait_turn(1_000_000)
    passed = threading.Event()

    def send() -> None:
        gate.wait_turn(1)
        passed.set()

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    gate.follow({"rows_per_second": 0, "chunk_rows": 10}, 0, beside_users=False)
    assert passed.wait(DEADLINE_S)
    assert gate.rows_per_chunk == 10


def test_a_waiting_sender_is_stopped() -> None:
    gate = RateLimiter({"rows_per_second": 1})
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


@pytest.fixture
def news_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody gives up waiting for news in the time of a test."""
    monkeypatch.setattr("spark_streaming.gate.NEWS_S", 10 * DEADLINE_S)


class Waiter:
    """A thread that waits at a gate until so many rows are decided; `ended`: how that ended."""

    def __init__(self, gate: RateLimiter, rows: int) -> None:
        self.ended: SimpleQueue[str] = SimpleQueue()
        self._gate, self._rows = gate, rows
        threading.Thread(target=self._wait, daemon=True).start()

    def _wait(self) -> None:
        try:
            self._gate.wait_decided(self._rows)
            self.ended.put("passed")
        except RunStopped:
            self.ended.put("stopped")


def beside_users(gate: RateLimiter, decided: int, *, beside: bool = True) -> None:
    gate.follow({}, decided, beside_users=beside)


def test_alone_nobody_waits_for_rows_to_be_decided() -> None:
    gate = RateLimiter({})
    gate.wait_decided(1_000)
    assert not gate.beside_users


@pytest.mark.usefixtures("news_awaited")
def test_beside_users_the_next_rows_wait_for_those_before() -> None:
    """Goal: with some of them decided it waits on, with all of them it goes on."""
    gate = RateLimiter({})
    beside_users(gate, 0)
    assert gate.beside_users
    waiter = Waiter(gate, 1_000)
    for decided in (1, 500, 999):
        beside_users(gate, decided)
    with pytest.raises(Empty):
        waiter.ended.get(timeout=0.05)
    beside_users(gate, 1_000)
    assert waiter.ended.get(timeout=DEADLINE_S) == "passed"
    gate.wait_decided(1_000)


@pytest.mark.usefixtures("news_awaited")
def test_who_waits_for_decided_rows_goes_on_when_users_have_gone() -> None:
    gate = RateLimiter({})
    beside_users(gate, 0)
    waiter = Waiter(gate, 1_000)
    beside_users(gate, 0, beside=False)
    assert waiter.ended.get(timeout=DEADLINE_S) == "passed"


@pytest.mark.usefixtures("news_awaited")
def test_who_waits_for_decided_rows_is_stopped() -> None:
    gate = RateLimiter({})
    beside_users(gate, 0)
    waiter = Waiter(gate, 1_000)
    gate.close()
    assert waiter.ended.get(timeout=DEADLINE_S) == "stopped"
    with pytest.raises(RunStopped):
        gate.wait_decided(0)


def test_without_news_nobody_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: a changefeed that is away, which alone tells of decided rows, holds no fill up."""
    monkeypatch.setattr("spark_streaming.gate.NEWS_S", 0.01)
    gate = RateLimiter({})
    beside_users(gate, 3)
    assert Waiter(gate, 1_000).ended.get(timeout=DEADLINE_S) == "passed"


def test_rate_window() -> None:
    window = RateWindow(window_ms=1_000)
    assert window.rows_per_second() == 0.0
    window.add(0, 0)
    assert window.rows_per_second() == 0.0
    window.add(100, SECOND_NS)
    assert window.rows_per_second() == 100.0
    window.add(1_100, 2 * SECOND_NS)
    assert window.rows_per_second() == 1_000.0, "what lies before the window is forgotten"
