"""Goal: what a client gains by not reading is bounded in all, and one that reads steadily, however
slowly within the limits, is never given up.

Method: seconds and bytes by hand.
"""

from __future__ import annotations

import random

import pytest

from leasehold.adapters.postgres.reader_pace import (
    ASIDE_BYTES_PER_S,
    ASIDE_LAG_S,
    HELD_BYTES_PER_S,
    HELD_LAG_S,
    READ_BYTES_PER_S,
    ReaderPace,
)
from leasehold.pgwire.phases import Behind

GIVES_UP_S = 300.0
PART = 48 * 1024
"""About what has to be read before a client counts as reading again."""


def reads(pace: ReaderPace, seconds: float, count: int) -> None:
    """So long it was waited for, and so much it has taken then."""
    pace.add_given(count)
    pace.add_wait(seconds)
    pace.catch_up()


def test_who_reads_nothing_falls_behind_step_by_step() -> None:
    pace = ReaderPace(GIVES_UP_S)
    passed_s, found = 0.0, []
    while not pace.is_given_up:
        wait_s = pace.wait_s
        assert wait_s > 0
        pace.add_wait(wait_s)
        passed_s += wait_s
        found.append((passed_s, pace.behind))
    assert found == [
        (ASIDE_LAG_S, Behind.SLOW),
        (HELD_LAG_S, Behind.STANDING),
        (GIVES_UP_S, Behind.STANDING),
    ]


@pytest.mark.parametrize(
    ("bytes_per_s", "at_worst"),
    [
        (ASIDE_BYTES_PER_S, None),
        (HELD_BYTES_PER_S, Behind.SLOW),
        (READ_BYTES_PER_S, Behind.STANDING),
    ],
)
def test_who_reads_steadily_is_never_farther_behind(
    bytes_per_s: int, at_worst: Behind | None
) -> None:
    """Though it may take all day."""
    pace = ReaderPace(GIVES_UP_S)
    for _ in range(10_000):
        reads(pace, 0.9 * PART / bytes_per_s, PART)
        assert not pace.is_given_up
        assert pace.behind in (None, Behind.SLOW, Behind.STANDING)[: _rank(at_worst) + 1]
    assert pace.behind is at_worst


def _rank(behind: Behind | None) -> int:
    return (None, Behind.SLOW, Behind.STANDING).index(behind)


def test_a_byte_now_and_then_gains_next_to_nothing() -> None:
    """Such a one was waited for anew after each."""
    pace, passed_s = ReaderPace(GIVES_UP_S), 0.0
    while not pace.is_given_up:
        reads(pace, 0.9 * ASIDE_LAG_S, 1)
        passed_s += 0.9 * ASIDE_LAG_S
    assert GIVES_UP_S <= passed_s < GIVES_UP_S + 2


def test_the_whole_is_bounded_by_what_was_taken() -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    draw = random.Random(seed)
    for _ in range(20):
        pace, passed_s, taken = ReaderPace(GIVES_UP_S), 0.0, 0
        slowness = draw.choice([1, 10, 100])
        for _ in range(2_000):
            if pace.is_given_up:
                break
            wait_s = min(draw.random() * slowness, pace.wait_s)
            count = draw.randrange(PART)
            reads(pace, wait_s, count)
            passed_s += wait_s
            taken += count
        assert passed_s <= GIVES_UP_S + taken / READ_BYTES_PER_S + 1e-6


def test_what_was_given_and_not_taken_gains_nothing() -> None:
    """Else whoever reads nothing would be given more and more."""
    pace = ReaderPace(GIVES_UP_S)
    pace.add_wait(ASIDE_LAG_S)
    pace.add_given(1 << 30)
    found = [pace.behind]
    pace.add_wait(HELD_LAG_S)
    found.append(pace.behind)
    pace.catch_up()
    found.append(pace.behind)
    assert found == [Behind.SLOW, Behind.STANDING, None]


def test_a_pause_does_not_end_one_that_has_read_all_before() -> None:
    pace = ReaderPace(GIVES_UP_S)
    reads(pace, 0.0, 1 << 30)
    pace.add_wait(GIVES_UP_S - 1)
    assert not pace.is_given_up
    pace.add_wait(1)
    assert pace.is_given_up, "what it has read before is no credit"
