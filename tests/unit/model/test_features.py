"""Features: their numbers, which are on the wire, and when what they stand for may be written."""

from __future__ import annotations

from typing import Final

import pytest

from leasehold.model.errors import FeatureNotSupported, LogStopped
from leasehold.model.features import (
    NEWEST,
    WITHOUT_LEVEL,
    Feature,
    FeatureGate,
    incarnation_of,
    known_to,
    refuse_level,
    titles,
)
from leasehold.model.ids import INCARNATION_BYTES

NUMBERS: Final = {
    1: "changes in place",
    2: "range backfills",
    3: "transaction jobs",
    4: "computed backfills",
    5: "column types",
    6: "views",
    7: "enums",
    8: "feature level",
    9: "narrowed types",
    10: "equal nulls",
    11: "partial replicas",
    12: "copied rows",
    13: "notifications",
    14: "infinite times",
    15: "numeric references",
    16: "namespaces",
    17: "deferred keys",
    18: "random defaults",
    19: "row arrays",
    20: "view forms",
    21: "deferrable uniques",
    22: "deferrable keys",
    23: "including keys",
    24: "default texts",
}
"""What each number stands for, for ever: processes of all releases say it to each other."""
GIVEN: Final[frozenset[int]] = frozenset()
"""Numbers given to changes that are not here yet; a release has none."""


def test_the_numbers_stay_what_they_are() -> None:
    """A new feature gets a line at the end. ⚠ No line is ever changed, taken out or moved."""
    assert {each.value: each.title for each in Feature} == NUMBERS


def test_numbers_are_dense() -> None:
    """A process that reads up to a number is taken to read all below."""
    assert set(NUMBERS) | GIVEN == set(range(1, len(set(NUMBERS) | GIVEN) + 1))
    assert max(NUMBERS) == NEWEST < 256, "one byte of an incarnation"


def test_each_feature_says_what_is_written() -> None:
    for each in Feature:
        assert each.written, each


def test_an_incarnation_says_what_its_process_reads() -> None:
    random = bytes(INCARNATION_BYTES)
    assert known_to(incarnation_of(random)) == known_to(incarnation_of(b"")) == NEWEST
    assert known_to(random) == known_to(b"") == 0, "of a release that does not say it"


@pytest.mark.parametrize("read", range(NEWEST + 1))
@pytest.mark.parametrize("level", range(NEWEST + 1))
def test_a_feature_is_written_where_all_read_it_and_the_database_is_finalized(
    read: int, level: int
) -> None:
    """Of features that release 0.1.0 has, its masters write each as soon as all read it."""
    gate = FeatureGate(lambda number, now_ns: number <= read, lambda: level)
    for each in Feature:
        permitted = each <= level or each <= Feature.ENUMS
        assert gate.permits(each) == permitted
        assert gate.is_written(each, 0) == (permitted and each <= read)


def test_a_refusal_says_what_it_waits_for() -> None:
    level = WITHOUT_LEVEL
    gate = FeatureGate(lambda number, now_ns: number < now_ns, lambda: level)
    with pytest.raises(FeatureNotSupported, match="not finalized") as refused:
        gate.check_written(NEWEST, 99)
    assert "leasehold upgrade finalize" in str(refused.value.detail["hint"])
    level = NEWEST
    with pytest.raises(FeatureNotSupported, match=f"earlier release .*{NEWEST.title}"):
        gate.check_written(NEWEST, NEWEST)
    gate.check_written(NEWEST, 99)


def test_a_level_that_this_release_does_not_know_is_refused() -> None:
    for known in (0, NEWEST):
        refuse_level(known, "the store")
    with pytest.raises(LogStopped, match=f"level {NEWEST + 1}, says the store, .* up to {NEWEST}"):
        refuse_level(NEWEST + 1, "the store")


def test_features_are_called_by_name_where_they_are_known() -> None:
    assert titles(5, NEWEST + 1)[:2] == ["views", "enums"]
    assert titles(5, NEWEST + 1)[-1] == f"feature {NEWEST + 1}"
    assert titles(NEWEST, NEWEST) == []


def test_what_is_asked_of_the_readers_is_asked_at_that_time() -> None:
    gate = FeatureGate(lambda number, now_ns: (number, now_ns) == (Feature.VIEWS, 17))
    assert gate.is_written(Feature.VIEWS, 17)
    assert not gate.is_written(Feature.VIEWS, 18)
    assert WITHOUT_LEVEL == Feature.ENUMS
