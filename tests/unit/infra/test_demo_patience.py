"""How long the demo waits for a schema change: as long as it moves, whatever the machine."""

from __future__ import annotations

from infra.demo.changes import JOB_TIMEOUT_S, STILL_S, Patience

S = 1_000_000_000


def test_a_slow_job_that_moves_is_waited_for() -> None:
    patience = Patience(5 * S)
    now_ns = 5 * S
    for rows in range(10):
        now_ns += int((STILL_S - 1) * S)
        patience.told(("running", rows), now_ns)
        assert patience.lost(now_ns) is None


def test_one_that_stands_still_is_given_up() -> None:
    patience = Patience(0)
    patience.told(("running", 7), 10 * S)
    patience.told(("running", 7), 100 * S)
    assert patience.lost(int((10 + STILL_S) * S)) is None
    assert patience.lost(int((10 + STILL_S) * S) + 1) == "has stood still for 120 s"


def test_one_that_never_ends_is_given_up() -> None:
    patience = Patience(0)
    end_ns = int(JOB_TIMEOUT_S * S) + 1
    patience.told("moves", end_ns)
    assert patience.lost(end_ns) == "did not end in 1800 s"
    assert patience.lost(end_ns - 1) is None
