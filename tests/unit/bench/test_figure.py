"""Percentiles, lines and targets: what is printed must be what was measured."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench.figure import TARGETS, Figure, Target, in_words, percentile, table
from tests.bench.groups import GROUPS

TIMES = st.lists(st.floats(0, 1e6), min_size=1, max_size=200)


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([3.0], 0.5, 3.0),
        ([2.0, 1.0], 0.5, 1.0),
        ([3.0, 1.0, 2.0], 0.5, 2.0),
        (list(range(1, 101)), 0.99, 99),
        (list(range(1, 101)), 0.07, 7),  # 0.07 × 100 = 7.000000000000001
        (list(range(1, 101)), 1, 100),
    ],
)
def test_nearest_rank(values: list[float], share: float, expected: float) -> None:
    assert percentile(values, share) == expected


@given(TIMES, st.floats(0.01, 1))
def test_the_least_value_that_the_share_does_not_exceed(values: list[float], share: float) -> None:
    """By counting, without sorting: the definition, not the computation."""
    found = percentile(values, share)
    assert found in values
    wanted = round(share * len(values), 9)
    assert sum(value <= found for value in values) >= wanted
    assert sum(value < found for value in values) < wanted


@pytest.mark.parametrize(("values", "share"), [([], 0.5), ([1.0], 0.0), ([1.0], 1.1)])
def test_no_percentile_without_values_or_with_an_impossible_share(
    values: list[float], share: float
) -> None:
    with pytest.raises(ValueError, match=r"no measurement|a share"):
        percentile(values, share)


@pytest.mark.parametrize(
    ("value", "words"),
    [(0, "0"), (0.7134, "0.713"), (3.214, "3.21"), (168.4, "168"), (12345.6, "12346")],
)
def test_three_digits_and_no_exponent(value: float, words: str) -> None:
    assert in_words(value) == words


@given(st.floats(1e-6, 1e9))
def test_words_are_the_value(value: float) -> None:
    assert math.isclose(float(in_words(value)), value, rel_tol=0.005)


def test_a_line_is_metric_value_unit() -> None:
    assert Figure("commit_p50", 3.214, "ms").line() == "commit_p50 3.21 ms"


def test_a_target_is_met_at_its_bound_and_on_its_good_side() -> None:
    assert Target(4, at_most=True).is_met(4)
    assert not Target(4, at_most=True).is_met(4.01)
    assert Target(4, at_most=False).is_met(4)
    assert not Target(4, at_most=False).is_met(3.99)


def test_the_table_shows_what_is_met_and_what_has_no_target() -> None:
    shown = table(
        [
            Figure("commit_p50", 3, "ms"),
            Figure("txn_rate_1000", 9_000, "txn/s"),
            Figure("takeover", 2, "s"),
        ]
    ).splitlines()
    assert shown[1].endswith("≤ 4.00   met")
    assert shown[2].endswith("≥ 10000  missed")
    assert shown[3].split() == ["takeover", "2.00", "s"]


def test_every_target_is_of_a_metric_that_some_group_prints() -> None:
    assert TARGETS.keys() <= {metric for metrics in GROUPS.values() for metric in metrics}
