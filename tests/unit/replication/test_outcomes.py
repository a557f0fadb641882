"""What asking again gets, and how long it is remembered (L5)."""

from __future__ import annotations

import pytest

from leasehold.model.errors import InvalidText, RequestExpired, RequestFromFuture
from leasehold.model.ids import first_id, request_id
from leasehold.model.records.log import Disposition, Refusal
from leasehold.model.records.requests import Outcome
from leasehold.replication.outcomes import (
    Asked,
    OutcomeSettings,
    check_age,
    judge_repeat,
    outcome_of_refusal,
)

SETTINGS = OutcomeSettings(horizon_ms=1_000, ahead_ms_max=100)
NOW_MS = 1_700_000_000_000


def outcome(attempt: int = 1, lsn: int = 0, final: bool = False) -> Outcome:
    return Outcome(attempt, lsn, 0, 0, final)


@pytest.mark.parametrize("attempt", [1, 2, 7])
def test_l5_what_is_not_remembered_is_decided(attempt: int) -> None:
    assert judge_repeat(None, attempt) is Asked.DECIDE


@pytest.mark.parametrize("attempt", [1, 2, 3])
def test_l5_a_final_answer_is_given_again_whatever_the_attempt(attempt: int) -> None:
    assert judge_repeat(outcome(lsn=7, final=True), attempt) is Asked.REPEAT
    assert judge_repeat(outcome(final=True), attempt) is Asked.REPEAT


def test_l5_after_attempt_n_was_refused_only_the_next_is_decided() -> None:
    refused = outcome(attempt=3)
    decided = [n for n in range(1, 8) if judge_repeat(refused, n) is Asked.DECIDE]
    assert decided == [4]


def aged(ms: int) -> bytes:
    return request_id(NOW_MS + ms, b"\x00" * 10)


def test_l5_the_ids_own_time_counts() -> None:
    horizon_us = (NOW_MS - 1_000) * 1_000
    for ms in (-1_000, 0, 100):
        check_age(aged(ms), horizon_us, NOW_MS * 1_000, SETTINGS)
    with pytest.raises(RequestExpired, match="1001 ms old, which is 1 ms more"):
        check_age(aged(-1_001), horizon_us, NOW_MS * 1_000, SETTINGS)
    with pytest.raises(RequestExpired, match="1000 ms old"):
        check_age(aged(-1_000), horizon_us + 1, NOW_MS * 1_000, SETTINGS)
    with pytest.raises(RequestFromFuture, match="101 ms ahead"):
        check_age(aged(101), horizon_us, NOW_MS * 1_000, SETTINGS)


def test_l5_what_is_forgotten_is_what_is_refused() -> None:
    """One horizon, two uses: to the microsecond the ids that a collection takes away are those that
    are refused."""
    for horizon_us in range(NOW_MS * 1_000 - 2_001, NOW_MS * 1_000 + 2_002, 7):
        for ms in range(-3, 4):
            try:
                check_age(aged(ms), horizon_us, NOW_MS * 1_000, SETTINGS)
                refused = False
            except RequestExpired:
                refused = True
            assert refused == (aged(ms) < first_id(horizon_us)), (ms, horizon_us)


def test_l5_an_id_without_a_time_is_refused() -> None:
    with pytest.raises(InvalidText, match="version 7"):
        check_age(bytes(16), 0, NOW_MS * 1_000, SETTINGS)


@pytest.mark.parametrize(
    ("disposition", "final", "dead"),
    [
        (Disposition.FINAL, True, False),
        (Disposition.DEAD_LETTER, True, True),
        (Disposition.CONFLICT, False, False),
        (Disposition.REPLAY, False, False),
    ],
)
def test_r1_only_what_ends_a_request_is_final(
    disposition: Disposition, final: bool, dead: bool
) -> None:
    refusal = Refusal(b"", 1, disposition, "40001", "", {}, 0, -1, "requests", 0, "", None, None)
    made = outcome_of_refusal(refusal)
    assert (made.final, made.dead_lettered, made.lsn) == (final, dead, 0)
