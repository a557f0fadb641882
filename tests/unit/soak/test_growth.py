"""What is said to grow, and what is not."""

from __future__ import annotations

import random

import pytest

from tests.soak.growth import HOUR_S, Limit, Sample, judge, slope_per_s

LIMIT = Limit(0.05, 4)


def series(value_of: object, seconds: float = 7_200, every_s: float = 60) -> list[Sample]:
    assert callable(value_of)
    return [Sample(at, value_of(at)) for at in range(0, int(seconds), int(every_s))]


def test_a_line_has_its_slope() -> None:
    assert slope_per_s(series(lambda at: 3 + 0.5 * at)) == pytest.approx(0.5)
    assert slope_per_s([Sample(0, 1)]) == 0


def test_a_leak_is_found_among_noise() -> None:
    noise = random.Random(3)
    leak = judge("m", "MB", series(lambda at: 100 + at * 10 / HOUR_S + noise.gauss(0, 2)), LIMIT)
    assert leak.flat is False
    assert leak.per_hour == pytest.approx(10, rel=0.2)


def test_a_cache_that_fills_and_steps_of_restarts_are_no_leak() -> None:
    filled = judge("m", "MB", series(lambda at: 100 + min(at, 1_500) / 10), LIMIT)
    assert filled.flat is True
    sawtooth = judge("m", "MB", series(lambda at: 100 + (at % 600) / 20), LIMIT)
    assert sawtooth.flat is True


def test_little_may_come_where_there_is_little() -> None:
    assert judge("f", "", series(lambda at: 10 + at * 3.9 / HOUR_S), LIMIT).flat is True
    assert judge("f", "", series(lambda at: 10 + at * 4.2 / HOUR_S), LIMIT).flat is False
    assert judge("f", "", series(lambda at: 1_000 + at * 40 / HOUR_S), LIMIT).flat is True


def test_what_shrinks_is_flat() -> None:
    assert judge("f", "", series(lambda at: 1_000 - at / 10), LIMIT).flat is True


@pytest.mark.parametrize(("seconds", "every_s"), [(1_200, 30), (7_200, 1_800)])
def test_a_short_run_or_few_samples_say_nothing(seconds: int, every_s: int) -> None:
    assert judge("m", "MB", series(lambda at: at, seconds, every_s), LIMIT).flat is None


def test_what_has_no_limit_is_told_and_not_judged() -> None:
    told = judge("t", "MB", series(lambda at: at), None)
    assert (told.flat, told.judged) == (None, False)
    assert told.per_hour == pytest.approx(HOUR_S)


def test_a_longer_warm_up_is_left_out() -> None:
    """The log is kept whole for an hour, and as it is from then on."""
    kept = series(lambda at: 30 * min(at, 4_000))
    assert judge("log", "", kept, Limit(0.1, 10_000)).flat is False
    assert judge("log", "", kept, Limit(0.1, 10_000, warm_up=0.6)).flat is True
    grows = series(lambda at: 30 * at)
    assert judge("log", "", grows, Limit(0.1, 10_000, warm_up=0.6)).flat is False
