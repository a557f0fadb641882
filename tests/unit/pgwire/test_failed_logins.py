"""Goal: guessing gets slow, for who guesses alone, and is forgotten in bounded memory.

Method: a clock that the test sets.
"""

from __future__ import annotations

import pytest

from leasehold.pgwire.auth.failed_logins import (
    DELAY_S,
    DELAY_S_MAX,
    FAILURES_FREE,
    FORGOTTEN_S,
    PLACES_MAX,
    WAIT_S_MAX,
    FailedLogins,
    TurnsOf,
)
from leasehold.pgwire.wire_errors import AuthenticationRefused


class Clock:
    now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


def fail(failed: FailedLogins, times: int, clock: Clock, user: str = "me", origin: int = 1) -> None:
    for _ in range(times):
        clock.now_s += failed.claim(user, origin)
        failed.settle(user, origin, right=False)


def test_each_failure_makes_the_next_try_wait_longer() -> None:
    clock = Clock()
    failed = FailedLogins(clock)
    waits = []
    for _ in range(12):
        waits.append(failed.claim("me", 1))
        clock.now_s += waits[-1]
        failed.settle("me", 1, right=False)
    assert waits[: FAILURES_FREE + 1] == [0.0] * (FAILURES_FREE + 1)
    assert waits[FAILURES_FREE + 1] == pytest.approx(DELAY_S)
    assert waits == sorted(waits)
    assert waits[-1] == pytest.approx(DELAY_S_MAX)


def test_nobody_else_waits() -> None:
    clock = Clock()
    failed = FailedLogins(clock)
    fail(failed, 12, clock)
    assert failed.claim("me", 1) > 0.0
    assert failed.claim("me", 2) == 0.0, "the user himself, from elsewhere"
    assert failed.claim("you", 1) == 0.0
    clock.now_s += DELAY_S_MAX
    turns = TurnsOf(failed, 1)
    assert turns.claim("me") > 0.0
    turns.settle("me", right=True)
    assert turns.claim("me") == 0.0, "who had the password begins anew"


def test_tries_at_a_time_have_their_turns_one_after_the_other() -> None:
    clock = Clock()
    failed = FailedLogins(clock)
    fail(failed, FAILURES_FREE + 1, clock)
    waits = [failed.claim("me", 1) for _ in range(int(WAIT_S_MAX / DELAY_S))]
    with pytest.raises(AuthenticationRefused, match="too many failed log-ins"):
        failed.claim("me", 1)
    assert waits == pytest.approx([DELAY_S * n for n in range(1, len(waits) + 1)])
    assert WAIT_S_MAX - DELAY_S <= waits[-1] <= WAIT_S_MAX


def test_failures_are_forgotten_after_a_while() -> None:
    clock = Clock()
    failed = FailedLogins(clock)
    fail(failed, 12, clock)
    clock.now_s += FORGOTTEN_S + 1
    assert failed.claim("me", 1) == 0.0


def test_there_is_a_limit_of_what_is_remembered() -> None:
    clock = Clock()
    failed = FailedLogins(clock)
    fail(failed, 12, clock)
    for number in range(PLACES_MAX):
        failed.settle(f"user{number}", 1, right=False)
        assert len(failed) <= PLACES_MAX
    assert failed.claim("me", 1) == 0.0, "the oldest went"
